package events

import (
	"encoding/binary"
	"net"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/zmtp"
)

// ZMQ is a plane of sockets: each publisher listens on a port of its own.
type ZMQ struct {
	Bind string // host where they listen
	Host string // where they are reached; "": there
}

// Open listens.
func (z ZMQ) Open(_ card.Endpoint, topic string, id uint64) (*Publisher, error) {
	pub, err := zmtp.Listen(net.JoinHostPort(z.Bind, "0"))
	if err != nil {
		return nil, err
	}
	host := z.Host
	if host == "" {
		host = z.Bind
	}
	return newPublisher(id, topic, &socket{pub, []byte(topic), "tcp://" + net.JoinHostPort(host, strconv.Itoa(pub.Port()))}), nil
}

// Close does nothing: publishers share nothing.
func (ZMQ) Close() {}

// socket is a PUB socket.
type socket struct {
	pub     *zmtp.Pub
	topic   []byte
	address string
}

func (s *socket) channel() card.Channel { return card.ZMQ(s.address) }
func (s *socket) wanted() bool          { return s.pub.Wanted(s.topic) }
func (s *socket) single() bool          { return false }
func (s *socket) close()                { s.pub.Close() }

func (s *socket) carry(p *Publisher, n uint64, envelope []byte) {
	s.pub.Publish(s.frames(p.ID, n, envelope)...)
}

// frames are the four parts of a message.
func (s *socket) frames(id, n uint64, envelope []byte) [][]byte {
	framed := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(envelope)))
	return [][]byte{s.topic, binary.BigEndian.AppendUint64(nil, id), binary.BigEndian.AppendUint64(nil, n), append(framed, envelope...)}
}

// Limits of what waits for NATS.
const (
	mostWaiting      = 100_000 // messages, as ZeroMQ's
	mostWaitingBytes = 32 << 20
)

// NATS is a plane of subjects: all publishers share a connection. What they say
// waits in a queue, so a server that does not read holds up nobody.
type NATS struct {
	conn outlet
	warn func(text string, args ...any)
	done chan struct{}

	mu      sync.Mutex
	more    *sync.Cond
	waiting []*nats.Msg
	bytes   int
	full    bool
	closed  bool
}

// outlet is what is needed of a connection.
type outlet interface {
	PublishMsg(m *nats.Msg) error
}

// OverNATS publishes over a connection that stays the caller's. warn is told when
// events are lost.
func OverNATS(conn outlet, warn func(text string, args ...any)) *NATS {
	n := &NATS{conn: conn, warn: warn, done: make(chan struct{})}
	n.more = sync.NewCond(&n.mu)
	go n.pump()
	return n
}

// Open returns a publisher.
func (n *NATS) Open(e card.Endpoint, topic string, id uint64) (*Publisher, error) {
	return newPublisher(id, topic, &subject{n, card.NATSEvents(e), e.EventSubject() + "." + topic}), nil
}

// Close publishes what is in the queue and ends it.
func (n *NATS) Close() {
	n.mu.Lock()
	n.closed = true
	n.more.Signal()
	n.mu.Unlock()
	<-n.done
}

// push puts a message into the queue, or loses it.
func (n *NATS) push(m *nats.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if len(n.waiting) >= mostWaiting || n.bytes >= mostWaitingBytes {
		if !n.full {
			n.warn("NATS takes no events; they are lost until it does, and routers ask for them", "waiting", len(n.waiting), "bytes", n.bytes)
		}
		n.full = true
		return
	}
	n.waiting, n.bytes = append(n.waiting, m), n.bytes+len(m.Data)
	n.more.Signal()
}

// pump publishes what waits.
func (n *NATS) pump() {
	defer close(n.done)
	lost := false
	for {
		n.mu.Lock()
		for len(n.waiting) == 0 && !n.closed {
			n.more.Wait()
		}
		if len(n.waiting) == 0 {
			n.mu.Unlock()
			return
		}
		list := n.waiting
		n.waiting, n.bytes, n.full = nil, 0, false
		n.mu.Unlock()
		var err error
		for _, m := range list {
			if e := n.conn.PublishMsg(m); e != nil {
				err = e // the others may be taken
			}
		}
		if err != nil && !lost {
			n.warn("NATS does not take events; routers ask for what they miss", "error", err)
		}
		lost = err != nil
	}
}

// subject is where a publisher's events go.
type subject struct {
	plane *NATS
	by    card.Channel
	name  string
}

func (s *subject) channel() card.Channel { return s.by }
func (s *subject) wanted() bool          { return true }
func (s *subject) single() bool          { return true }
func (s *subject) close()                {}

func (s *subject) carry(_ *Publisher, _ uint64, envelope []byte) {
	s.plane.push(&nats.Msg{Subject: s.name, Data: envelope})
}
