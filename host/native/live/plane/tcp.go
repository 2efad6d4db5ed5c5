package plane

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// Server takes requests over TCP.
type Server struct {
	*desk
	listener net.Listener
	address  string
	gate     gate

	mu        sync.Mutex
	endpoints map[string]Handler
	conns     map[net.Conn]bool
	readers   sync.WaitGroup
}

// Listen returns a server at an address such as 127.0.0.1:0. Frontends reach it
// there, or at another host if one is named. Serve must follow.
func Listen(address, host string, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{desk: newDesk(log), listener: l, address: l.Addr().String(), endpoints: map[string]Handler{}, conns: map[net.Conn]bool{}, gate: gate{run: UsualRunning, wait: UsualWaiting}}
	if host != "" {
		s.address = net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return s, nil
}

// Limit lets so many requests be answered at a time, and as many wait as the
// reference lets wait with a queue of a length: one more, which has left the queue.
// Others are told that the worker is overloaded. Serve must follow.
func (s *Server) Limit(running, queue int) { s.gate.run, s.gate.wait = max(running, 1), max(queue, 1) }

// Address is where frontends reach it.
func (s *Server) Address() string { return s.address }

// Transport says so in records.
func (s *Server) Transport() card.Transport { return card.TCP(s.address) }

// Handle lets an endpoint answer under its path.
func (s *Server) Handle(e card.Endpoint, h Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[e.Path()] = h
	return nil
}

// Forget takes an endpoint away.
func (s *Server) Forget(e card.Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.endpoints, e.Path())
}

// Serve takes connections until Close.
func (s *Server) Serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("a connection cannot be taken", "error", err)
			time.Sleep(10 * time.Millisecond) // out of descriptors, as a rule
			continue
		}
		s.mu.Lock()
		if s.ctx.Err() != nil {
			_ = conn.Close()
		} else {
			s.conns[conn] = true
			s.readers.Go(func() { s.read(conn) })
		}
		s.mu.Unlock()
	}
}

// Close ends everything, requests under way too.
func (s *Server) Close() {
	s.stop()
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.readers.Wait()
	s.requests.Wait()
}

// read serves the frames of a connection.
func (s *Server) read(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	r := bufio.NewReaderSize(conn, 16<<10)
	for {
		q, err := wire.ReadRequest(r)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				s.log.Debug("a request cannot be read", "from", conn.RemoteAddr().String(), "error", err)
				_, _ = conn.Write(wire.AppendReply(nil, "Read error: "+err.Error()))
			}
			return
		}
		if _, err := conn.Write(wire.AppendReply(nil, s.reply(q))); err != nil {
			return
		}
	}
}

// Crowd is how full it is.
func (s *Server) Crowd() Crowd { return s.gate.crowd() }

// reply begins to serve a request and returns the reply: empty for success.
func (s *Server) reply(q wire.Request) string {
	s.mu.Lock()
	h := s.endpoints[q.Path]
	s.mu.Unlock()
	if h == nil {
		return "Server unavailable: unknown endpoint " + q.Path
	}
	serve, err := s.understand(h, q.Payload, q.Headers[wire.SentHeader])
	if err != nil {
		s.log.Debug("a request cannot be understood", "path", q.Path, "error", err)
		return "Read error: " + err.Error()
	}
	s.requests.Add(1)
	if !s.gate.enter(func() { defer s.requests.Done(); serve() }) {
		s.requests.Done()
		s.log.Debug("a request is one too many", "path", q.Path)
		return "Server overloaded: worker at capacity"
	}
	return ""
}
