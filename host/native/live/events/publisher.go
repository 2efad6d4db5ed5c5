// Package events is Dynamo's event plane over ZeroMQ or NATS: what workers tell
// routers of their caches and of what they are busy with.
//
// It owns envelopes, the rules by which events of a cache are joined, filtered
// and numbered, the memory of them that recovery queries ask for, and when
// loads are told. It does not own sockets (live/zmtp), the connection to NATS
// (live/bus) or the messages' bytes (routerwire).
//
// Invariants: nothing here blocks the worker that tells it; the ids of a cache's
// events are 1, 2, 3, … without a gap; a dump names parents before children.
//
// Source: live notes §4; checked against its captures.
package events

import (
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// Topics.
const (
	TopicCache    = "kv-events"
	TopicLoad     = "kv_metrics"
	TopicRequests = "active_sequences_events"
	TopicPasses   = "forward-pass-metrics"
)

// Plane is where events go.
type Plane interface {
	// Open returns a publisher of a topic of an endpoint.
	Open(e card.Endpoint, topic string, id uint64) (*Publisher, error)
	// Close ends what the publishers share.
	Close()
}

// Publisher publishes one topic.
type Publisher struct {
	ID    uint64
	topic string
	by    carrier
	now   func() time.Time

	mu       sync.Mutex
	sequence uint64
}

// carrier carries envelopes.
type carrier interface {
	channel() card.Channel
	wanted() bool // somebody listens, or it cannot be known
	single() bool // lists of marks are told one by one
	carry(p *Publisher, n uint64, envelope []byte)
	close()
}

func newPublisher(id uint64, topic string, by carrier) *Publisher {
	return &Publisher{ID: id, topic: topic, by: by, now: time.Now}
}

// Channel is how it is heard.
func (p *Publisher) Channel() card.Channel { return p.by.channel() }

// Topic is what it publishes.
func (p *Publisher) Topic() string { return p.topic }

// Wanted reports whether anybody listens, as far as that can be known.
func (p *Publisher) Wanted() bool { return p.by.wanted() }

// Close ends it.
func (p *Publisher) Close() { p.by.close() }

// envelope is around every payload.
type envelope struct {
	Publisher uint64 `msgpack:"publisher_id"`
	Sequence  uint64 `msgpack:"sequence"`
	At        uint64 `msgpack:"published_at"` // ms since 1970
	Topic     string `msgpack:"topic"`
	Payload   []byte `msgpack:"payload"`
}

// Send publishes a message. The message is lost if nobody listens, as ever with
// events, and with ZeroMQ then not even written; its number is used up.
func (p *Publisher) Send(message any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.sequence
	p.sequence++
	if !p.Wanted() {
		return nil
	}
	payload, err := routerwire.Marshal(message)
	if err != nil {
		return err
	}
	body, err := p.envelope(n, payload)
	if err != nil {
		return err
	}
	p.by.carry(p, n, body)
	return nil
}

// envelope puts a payload into its envelope.
func (p *Publisher) envelope(n uint64, payload []byte) ([]byte, error) {
	return routerwire.Marshal(envelope{p.ID, n, uint64(p.now().UnixMilli()), p.topic, payload})
}
