package handoff

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Times of the reference.
const (
	meetTime  = 30 * time.Second // for a worker to wait for the other
	writeTime = 10 * time.Second
	dialTime  = 10 * time.Second
)

// Faults of meetings, in the reference's words.
var (
	errTaken    = errors.New("handoff session is already active or retired")
	errTwice    = errors.New("duplicate destination participant")
	errMismatch = errors.New("handoff participant identity or backend mismatch")
	errLate     = errors.New("handoff participant rendezvous timed out")
	errGone     = errors.New("destination disconnected")
	errFull     = errors.New("handoff session limit reached")
)

// remembered is how many handoffs that are over a Server remembers, so that a
// worker that comes late is told so.
const remembered = 1 << 16

// Server is the bootstrap port of a worker that computes prompts. There the
// workers that decode look for it. Take it from Listen.
type Server struct {
	listener net.Listener
	log      *slog.Logger
	engine   string
	order    Order
	limit    int // of meetings
	meetTime time.Duration

	mu      sync.Mutex
	closed  bool
	meets   map[UUID]*meeting
	over    map[UUID]bool
	overs   []UUID // the same in order, a ring
	oldest  int
	conns   map[*Conn]bool
	strange map[*Conn]bool // those that have not met anybody
	running sync.WaitGroup
}

// meeting is two workers, or one that waits for the other.
type meeting struct {
	terms  terms
	source chan *Conn // of one, nil if they do not agree; nil: no source yet
	guest  *Conn      // a destination that waits; nil: none
	met    bool
}

// terms are what both workers have to agree on.
type terms struct {
	identity Identity
	order    Order
	engine   string
}

// Listen opens a bootstrap port for an engine, for so many handoffs at a time.
func Listen(address string, engine string, order Order, limit int, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: l, log: log, engine: engine, order: order, limit: limit, meetTime: meetTime,
		meets: map[UUID]*meeting{}, over: map[UUID]bool{}, conns: map[*Conn]bool{}, strange: map[*Conn]bool{},
	}
	s.running.Go(s.accept)
	return s, nil
}

// Port is where it listens.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close ends it and all connections.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	_ = s.listener.Close()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("a worker that decodes cannot be taken", "error", err)
			time.Sleep(10 * time.Millisecond) // out of descriptors, as a rule
			continue
		}
		c := newConn(conn)
		s.mu.Lock()
		// Each handoff has one connection; who has yet to say of which it is may
		// be many times more.
		full := s.closed || len(s.strange) >= 1024+4*s.limit
		if !full {
			s.conns[c], s.strange[c] = true, true
		}
		s.mu.Unlock()
		if full {
			_ = conn.Close()
			continue
		}
		s.running.Go(func() {
			s.greet(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// known takes a connection off those that have not met anybody.
func (s *Server) known(c *Conn) {
	s.mu.Lock()
	delete(s.strange, c)
	s.mu.Unlock()
}

// greet hears of which handoff a connection is.
func (s *Server) greet(c *Conn) {
	_ = c.conn.SetDeadline(time.Now().Add(s.meetTime))
	if err := ReadHello(c.conn); err != nil {
		s.known(c)
		c.Close()
		return
	}
	id, m, err := ReadFrame(c.conn)
	if err != nil || m.Kind != Register {
		s.known(c)
		c.Close()
		return
	}
	c.identity = id
	if err := s.join(c, terms{id, m.Order, m.Engine}); err != nil {
		s.dismiss(c, err)
		return
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	c.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.meets[id.Handoff]; x != nil && x.guest == c && !x.met { // it has gone while it waited
		c.lonely.Stop()
		s.forget(x)
		c.Close()
	}
	delete(s.strange, c)
}

// dismiss tells a destination why it is not wanted.
func (s *Server) dismiss(c *Conn, why error) {
	m := Message{Kind: ProtocolError, Text: why.Error()}
	if why == errFull {
		m = Message{Kind: Overloaded}
	}
	s.known(c)
	_ = c.Send(m)
	c.Close()
}

// join brings a destination to its meeting.
func (s *Server) join(c *Conn, t terms) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := t.identity.Handoff
	x := s.meets[id]
	switch {
	case s.closed, s.over[id], x != nil && x.met:
		return errTaken
	case x != nil && x.guest != nil:
		return errTwice
	case x != nil && x.terms != t:
		s.forget(x)
		x.source <- nil
		return errMismatch
	case x != nil:
		s.meet(x, c)
		return nil
	case len(s.meets) >= s.limit:
		return errFull
	}
	x = &meeting{terms: t, guest: c}
	s.meets[id] = x
	c.lonely = time.AfterFunc(s.meetTime, func() {
		if s.expire(x) {
			s.dismiss(c, errLate)
		}
	})
	return nil
}

// meet lets two workers speak. The lock is held.
func (s *Server) meet(x *meeting, c *Conn) {
	x.met = true
	delete(s.strange, c)
	if c.lonely != nil {
		c.lonely.Stop()
	}
	x.source <- c
}

// expire ends a meeting at which nobody else has come, and reports whether it
// has.
func (s *Server) expire(x *meeting) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.met || s.meets[x.terms.identity.Handoff] != x {
		return false
	}
	s.forget(x)
	return true
}

// forget ends a meeting; its handoff does not come again. The lock is held.
func (s *Server) forget(x *meeting) {
	id := x.terms.identity.Handoff
	if s.meets[id] != x {
		return
	}
	delete(s.meets, id)
	if len(s.overs) < remembered {
		s.overs = append(s.overs, id)
	} else {
		delete(s.over, s.overs[s.oldest])
		s.overs[s.oldest] = id
		s.oldest = (s.oldest + 1) % remembered
	}
	s.over[id] = true
}

// Await waits for the destination of a handoff and tells it that its source is
// there. The connection is the caller's, who must give it back to Leave.
func (s *Server) Await(ctx context.Context, id Identity) (*Conn, error) {
	x, err := s.wait(terms{id, s.order, s.engine})
	if err != nil {
		return nil, err
	}
	t := time.NewTimer(s.meetTime)
	defer t.Stop()
	select {
	case c := <-x.source:
		return s.greeted(c)
	case <-t.C:
		err = errLate
	case <-ctx.Done():
		err = ctx.Err()
	}
	if s.expire(x) {
		return nil, err
	}
	c, met := s.greeted(<-x.source) // just now
	if met == nil && ctx.Err() != nil {
		s.Leave(c, Message{Kind: Abort, Text: Left})
		return nil, err
	}
	return c, met
}

// Left is what a destination is told whose source does not want it any more.
const Left = "source request was canceled"

// greeted tells a destination that it has met its source.
func (s *Server) greeted(c *Conn) (*Conn, error) {
	if c == nil {
		return nil, errMismatch
	}
	if err := c.Send(Message{Kind: Registered}); err != nil {
		s.Leave(c)
		return nil, errGone
	}
	return c, nil
}

// wait enters a source.
func (s *Server) wait(t terms) (*meeting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := t.identity.Handoff
	x := s.meets[id]
	switch {
	case s.closed, s.over[id], x != nil && x.source != nil:
		return nil, errTaken
	case x != nil && x.terms != t:
		c := x.guest
		s.forget(x)
		c.lonely.Stop()
		s.running.Go(func() { s.dismiss(c, errMismatch) })
		return nil, errMismatch
	case x == nil && len(s.meets) >= s.limit:
		return nil, errFull
	case x == nil:
		x = &meeting{terms: t}
		s.meets[id] = x
	}
	x.source = make(chan *Conn, 1)
	if x.guest != nil {
		s.meet(x, x.guest)
	}
	return x, nil
}

// Leave ends a dialogue with last words.
func (s *Server) Leave(c *Conn, last ...Message) {
	if len(last) > 0 {
		_ = c.Send(last...)
	}
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.meets[c.identity.Handoff]; x != nil && x.met {
		s.forget(x)
	}
}
