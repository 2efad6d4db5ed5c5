// Package zmtp is the publishing side of ZeroMQ on TCP, ZMTP 3.0 and 3.1: a PUB
// socket for SUB sockets, and a ROUTER socket that answers DEALER and REQ sockets.
//
// It owns the greeting, the handshake without security, subscriptions, and the
// queue of each subscriber. It does not own what is published or answered.
//
// Invariants: publishing never blocks; a subscriber whose queue is full loses
// messages and nobody else does; what a peer sends has a bounded size; messages
// have all their parts or none.
//
// Source: live notes §4.2; ZMTP 3.1 (RFC 37).
package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Limits of a peer.
const (
	queueLimit   = 100_000 // messages, as the reference's
	frameLimit   = 64 << 10
	greetingTime = 10 * time.Second
)

// Pub is a PUB socket. Take it from Listen.
type Pub struct {
	server

	mu    sync.Mutex
	peers map[*peer]bool
}

// peer is a subscriber.
type peer struct {
	conn net.Conn

	mu     sync.Mutex
	more   *sync.Cond
	topics [][]byte // prefixes
	queue  [][]byte // messages as bytes
	closed bool
}

// Listen binds a socket to an address such as 127.0.0.1:0.
func Listen(address string) (*Pub, error) {
	p := &Pub{peers: map[*peer]bool{}}
	if err := p.listen(address, p.serve); err != nil {
		return nil, err
	}
	return p, nil
}

// Wanted reports whether anybody has subscribed to a topic.
func (p *Pub) Wanted(topic []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for peer := range p.peers {
		if peer.wants(topic) {
			return true
		}
	}
	return false
}

// Publish sends a message to all who have subscribed to its first part.
func (p *Pub) Publish(parts ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var whole []byte
	for peer := range p.peers {
		if !peer.wants(parts[0]) {
			continue
		}
		if whole == nil {
			for i, part := range parts {
				whole = appendFrame(whole, part, i < len(parts)-1)
			}
		}
		peer.push(whole)
	}
}

// serve speaks with one subscriber until it goes.
func (p *Pub) serve(conn net.Conn) {
	q := newPeer(conn)
	p.mu.Lock()
	p.peers[q] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.peers, q)
		p.mu.Unlock()
		q.close()
	}()
	r := bufio.NewReader(conn)
	_ = conn.SetDeadline(time.Now().Add(greetingTime))
	if err := greet(conn, r, "PUB"); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	p.running.Go(q.write)
	for {
		f, err := readFrame(r)
		if err != nil || !q.hear(f) {
			return
		}
	}
}

func newPeer(conn net.Conn) *peer {
	q := &peer{conn: conn}
	q.more = sync.NewCond(&q.mu)
	return q
}

// wants reports whether the peer has subscribed to a topic.
func (q *peer) wants(topic []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.topics {
		if bytes.HasPrefix(topic, t) {
			return true
		}
	}
	return false
}

func (q *peer) push(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) < queueLimit {
		q.queue = append(q.queue, b)
		q.more.Signal()
	}
}

func (q *peer) close() {
	q.mu.Lock()
	q.closed = true
	q.more.Signal()
	q.mu.Unlock()
}

// write sends the queue.
func (q *peer) write() {
	var batch [][]byte
	for {
		q.mu.Lock()
		for len(q.queue) == 0 && !q.closed {
			q.more.Wait()
		}
		if q.closed {
			q.mu.Unlock()
			return
		}
		batch, q.queue = q.queue, batch[:0]
		q.mu.Unlock()
		all := net.Buffers(batch)
		if _, err := all.WriteTo(q.conn); err != nil {
			_ = q.conn.Close()
			return
		}
		clear(batch)
	}
}

// hear takes what the peer says. It is false if the peer is not understood.
func (q *peer) hear(f frame) bool {
	switch {
	case f.command:
		name, rest, ok := command(f.body)
		switch {
		case !ok:
			return false
		case name == "SUBSCRIBE":
			q.subscribe(rest)
		case name == "CANCEL":
			q.unsubscribe(rest)
		case name == "PING" && len(rest) >= 2:
			q.push(appendCommand(nil, "PONG", rest[2:]))
		}
	case len(f.body) > 0 && f.body[0] == 1: // as in ZMTP 3.0
		q.subscribe(f.body[1:])
	case len(f.body) > 0 && f.body[0] == 0:
		q.unsubscribe(f.body[1:])
	}
	return true
}

// topicLimit bounds what a peer can make us remember.
const topicLimit = 1000

func (q *peer) subscribe(topic []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.topics) < topicLimit {
		q.topics = append(q.topics, bytes.Clone(topic))
	}
}

func (q *peer) unsubscribe(topic []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, t := range q.topics {
		if bytes.Equal(t, topic) {
			q.topics = append(q.topics[:i], q.topics[i+1:]...)
			return
		}
	}
}

// greet exchanges greetings and handshakes: version 3.1, no security, a socket of
// a type.
func greet(w io.Writer, r *bufio.Reader, socket string) error {
	var ours [64]byte
	ours[0], ours[9], ours[10], ours[11] = 0xff, 0x7f, 3, 1
	copy(ours[12:], "NULL")
	if _, err := w.Write(ours[:]); err != nil {
		return err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(r, theirs[:]); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[9]&1 != 1 || theirs[10] < 3 {
		return errors.New("the peer does not speak ZMTP 3")
	}
	if mechanism := string(bytes.TrimRight(theirs[12:32], "\x00")); mechanism != "NULL" {
		return fmt.Errorf("the peer asks for security %q; NULL is accepted", mechanism)
	}
	property := binary.BigEndian.AppendUint32([]byte("\x0bSocket-Type"), uint32(len(socket)))
	property = append(property, socket...)
	if _, err := w.Write(appendCommand(nil, "READY", property)); err != nil {
		return err
	}
	f, err := readFrame(r)
	if err != nil {
		return err
	}
	if name, _, ok := command(f.body); !f.command || !ok || name != "READY" {
		return errors.New("the peer does not say READY")
	}
	return nil
}

// Flags of a frame.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

type frame struct {
	command bool
	more    bool // of the same message follows
	body    []byte
}

func readFrame(r *bufio.Reader) (f frame, err error) {
	flags, err := r.ReadByte()
	if err != nil {
		return f, err
	}
	var size uint64
	if flags&flagLong != 0 {
		var b [8]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return f, err
		}
		size = binary.BigEndian.Uint64(b[:])
	} else {
		b, err := r.ReadByte()
		if err != nil {
			return f, err
		}
		size = uint64(b)
	}
	if size > frameLimit {
		return f, fmt.Errorf("a frame of %d bytes is announced; %d at most are accepted", size, frameLimit)
	}
	f.command, f.more = flags&flagCommand != 0, flags&flagMore != 0
	f.body = make([]byte, size)
	_, err = io.ReadFull(r, f.body)
	return f, err
}

// command splits the body of a command frame.
func command(body []byte) (name string, rest []byte, ok bool) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, false
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], true
}

func appendCommand(b []byte, name string, rest []byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	return appendBody(b, append(body, rest...), flagCommand)
}

func appendFrame(b, body []byte, more bool) []byte {
	if more {
		return appendBody(b, body, flagMore)
	}
	return appendBody(b, body, 0)
}

func appendBody(b, body []byte, flags byte) []byte {
	if len(body) > 255 {
		b = binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}
