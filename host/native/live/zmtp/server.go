package zmtp

import (
	"errors"
	"net"
	"sync"
	"time"
)

// server has the connections of a socket that listens.
type server struct {
	listener net.Listener
	running  sync.WaitGroup // one for each connection, and what those start

	connsMu sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
}

// listen binds the server to an address and has serve speak with each peer.
func (s *server) listen(address string, serve func(net.Conn)) (err error) {
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return err
	}
	s.conns = map[net.Conn]bool{}
	s.running.Go(func() { s.accept(serve) })
	return nil
}

// Port is where it listens.
func (s *server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close ends all connections.
func (s *server) Close() {
	s.connsMu.Lock()
	s.closed = true
	_ = s.listener.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.connsMu.Unlock()
	s.running.Wait()
}

func (s *server) accept(serve func(net.Conn)) {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, as a rule
			continue
		}
		if !s.keep(conn) {
			_ = conn.Close()
			return
		}
		s.running.Go(func() {
			serve(conn)
			_ = conn.Close()
			s.connsMu.Lock()
			delete(s.conns, conn)
			s.connsMu.Unlock()
		})
	}
}

// keep notes a connection, unless the server is closed.
func (s *server) keep(conn net.Conn) bool {
	s.connsMu.Lock()
	defer s.connsMu.Unlock()
	if !s.closed {
		s.conns[conn] = true
	}
	return !s.closed
}
