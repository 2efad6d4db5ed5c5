// Package events is Dynamo's event plane over ZeroMQ: what workers tell routers
// of their caches and of what they are busy with.
//
// It owns envelopes, the rules by which events of a cache are joined, filtered
// and numbered, the memory of them that recovery queries ask for, and when
// loads are told. It does not own sockets (live/zmtp) or the messages' bytes
// (routerwire).
//
// Invariants: nothing here blocks the worker that tells it; the ids of a cache's
// events are 1, 2, 3, … without a gap; a dump names parents before children.
//
// Source: live notes §4; checked against its captures.
package events

import (
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/zmtp"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// Topics.
const (
	TopicCache    = "kv-events"
	TopicLoad     = "kv_metrics"
	TopicRequests = "active_sequences_events"
	TopicPasses   = "forward-pass-metrics"
)

// Publisher publishes one topic.
type Publisher struct {
	ID    uint64
	topic []byte
	pub   *zmtp.Pub
	now   func() time.Time

	mu       sync.Mutex
	sequence uint64
}

// Listen returns a publisher that listens on any port of a host.
func Listen(host, topic string, id uint64) (*Publisher, error) {
	pub, err := zmtp.Listen(net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	return &Publisher{ID: id, topic: []byte(topic), pub: pub, now: time.Now}, nil
}

// Port is where it listens.
func (p *Publisher) Port() string { return strconv.Itoa(p.pub.Port()) }

// Topic is what it publishes.
func (p *Publisher) Topic() string { return string(p.topic) }

// Wanted reports whether anybody listens.
func (p *Publisher) Wanted() bool { return p.pub.Wanted(p.topic) }

// Close ends it.
func (p *Publisher) Close() { p.pub.Close() }

// envelope is around every payload.
type envelope struct {
	Publisher uint64 `msgpack:"publisher_id"`
	Sequence  uint64 `msgpack:"sequence"`
	At        uint64 `msgpack:"published_at"` // ms since 1970
	Topic     string `msgpack:"topic"`
	Payload   []byte `msgpack:"payload"`
}

// Send publishes a message. The message is lost if nobody listens, as ever with
// PUB sockets, and then not even written; its number is used up.
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
	parts, err := p.frames(n, payload)
	if err != nil {
		return err
	}
	p.pub.Publish(parts...)
	return nil
}

// frames are the four parts of a message.
func (p *Publisher) frames(n uint64, payload []byte) ([][]byte, error) {
	body, err := routerwire.Marshal(envelope{p.ID, n, uint64(p.now().UnixMilli()), string(p.topic), payload})
	if err != nil {
		return nil, err
	}
	framed := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body)))
	return [][]byte{p.topic, binary.BigEndian.AppendUint64(nil, p.ID), binary.BigEndian.AppendUint64(nil, n), append(framed, body...)}, nil
}
