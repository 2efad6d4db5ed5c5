// Package plane is the worker's side of Dynamo's request plane over TCP: a
// server that takes requests, and a connection back to the frontend for each
// answer.
//
// It owns connections, their frames' order, and cancellation as it comes over
// the wire. It does not own the frames' bytes (live/wire) or what endpoints
// answer.
//
// Invariants:
//   - every frame on a connection is replied to, in order, before its request is
//     served.
//   - a handler's context ends when the frontend cancels the request, or cannot
//     be written to any more.
//   - a complete answer ends with a final item and a sentinel; a cancelled one with
//     neither.
//
// Source: live notes §3.1 to §3.3.
package plane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/dryserve/dryserve/host/native/live/wire"
)

// Handler answers a request. It returns whether the answer is complete; what it
// leaves unsaid when ctx has ended is nobody's loss.
type Handler func(ctx context.Context, c wire.Control, body []byte, to *Stream) (complete bool)

// Server takes requests for endpoints.
type Server struct {
	log      *slog.Logger
	listener net.Listener

	mu        sync.Mutex
	endpoints map[string]Handler
	conns     map[net.Conn]bool
	requests  sync.WaitGroup
	readers   sync.WaitGroup
	ctx       context.Context
	stop      context.CancelFunc
}

// Listen returns a server at an address such as 127.0.0.1:0. Serve must follow.
func Listen(address string, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{log: log, listener: l, endpoints: map[string]Handler{}, conns: map[net.Conn]bool{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Address is where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Handle lets an endpoint answer under a path.
func (s *Server) Handle(path string, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[path] = h
}

// Forget takes an endpoint away; its requests under way go on.
func (s *Server) Forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.endpoints, path)
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
		s.conns[conn] = true
		s.mu.Unlock()
		s.readers.Go(func() { s.read(conn) })
	}
}

// Drain waits for the requests under way, or for ctx.
func (s *Server) Drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.requests.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
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
		if _, err := conn.Write(wire.AppendReply(nil, s.take(q))); err != nil {
			return
		}
	}
}

// take begins to serve a request and returns the reply: empty for success.
func (s *Server) take(q wire.Request) string {
	s.mu.Lock()
	h := s.endpoints[q.Path]
	if h != nil {
		s.requests.Add(1)
	}
	s.mu.Unlock()
	if h == nil {
		return "Server unavailable: unknown endpoint " + q.Path
	}
	header, body, err := wire.SplitTwoPart(q.Payload)
	var c wire.Control
	if err == nil {
		c, err = wire.ParseControl(header)
	}
	if err != nil {
		s.requests.Done()
		s.log.Debug("a request cannot be understood", "path", q.Path, "error", err)
		return "Read error: " + err.Error()
	}
	go func() {
		defer s.requests.Done()
		s.answer(h, c, body)
	}()
	return ""
}

// Times that a frontend is given.
const (
	dialTime = 10 * time.Second
	byeTime  = 10 * time.Second
)

// answer lets the handler speak, and ends the answer. The frontend is called at
// the first Flush, so a handler can set its engine to work before.
func (s *Server) answer(h Handler, c wire.Control, body []byte) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	to := &Stream{Codec: c.Codec, server: s, ctx: ctx, cancel: cancel, address: c.Address}
	defer to.close()
	to.buf = wire.AppendPrologue(wire.AppendHandshake(to.buf, c.Subject), "")
	if complete := h(ctx, c, body, to); !complete || ctx.Err() != nil {
		if to.conn == nil && ctx.Err() == nil {
			to.Flush() // the frontend must see that the answer is broken off
		}
		return
	}
	to.buf = wire.AppendSentinel(wire.AppendFinal(to.buf, c.Codec))
	if !to.Flush() {
		return
	}
	// The frontend closes when it has read to the end.
	t := time.NewTimer(byeTime)
	defer t.Stop()
	select {
	case <-to.gone:
	case <-t.C:
	}
}

// listen hears what the frontend says on the connection of an answer. Its end
// alone is no cancellation: writes fail then, if there is more to say.
func listen(conn net.Conn, cancel context.CancelFunc) {
	r := bufio.NewReader(conn)
	for {
		header, data, err := wire.ReadTwoPart(r)
		if err != nil {
			return
		}
		if len(data) > 0 || wire.ParseWord(header) != wire.Other || len(header) > 0 {
			cancel() // stopped, killed, or nothing that belongs here
		}
	}
}

// Stream is an answer under way. Its methods are for the handler's goroutine.
type Stream struct {
	Codec   wire.Codec
	Sent    int64 // bytes
	server  *Server
	ctx     context.Context
	cancel  context.CancelFunc
	address string
	conn    net.Conn      // nil: the frontend has not been called
	gone    chan struct{} // closed when nothing comes from the frontend any more
	stop    func() bool
	buf     []byte
}

// open calls the frontend.
func (t *Stream) open() bool {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(t.ctx, "tcp", t.address)
	if err != nil {
		if t.ctx.Err() == nil {
			t.server.log.Warn("the frontend cannot be reached for an answer", "address", t.address, "error", err)
		}
		t.cancel()
		return false
	}
	t.conn, t.gone = conn, make(chan struct{})
	t.stop = context.AfterFunc(t.server.ctx, func() { _ = conn.SetDeadline(time.Now()) })
	go func() {
		listen(conn, t.cancel)
		close(t.gone)
	}()
	return true
}

func (t *Stream) close() {
	if t.conn == nil {
		return
	}
	t.stop()
	_ = t.conn.Close()
	<-t.gone
}

// Output says one frame, at the next Flush.
func (t *Stream) Output(o wire.Output) { t.buf = wire.AppendOutput(t.buf, t.Codec, o) }

// Invalid says what is wrong with the request.
func (t *Stream) Invalid(message, public string) {
	t.buf = wire.AppendInvalid(t.buf, t.Codec, message, public)
}

// Item says something whose body is written in the codec already.
func (t *Stream) Item(body []byte) { t.buf = wire.AppendItem(t.buf, t.Codec, body) }

// Flush writes what has been said; the first one calls the frontend before. It
// is false if the frontend has gone or cannot be reached.
func (t *Stream) Flush() bool {
	if t.conn == nil && (t.ctx.Err() != nil || !t.open()) {
		return false
	}
	n, err := t.conn.Write(t.buf)
	t.Sent += int64(n)
	t.buf = t.buf[:0]
	if err != nil {
		t.cancel()
	}
	return err == nil
}
