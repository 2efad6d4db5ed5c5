package handoff

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func listen(t *testing.T, limit int, meet time.Duration) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", "vllm", SourceFirst, limit, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.meetTime = meet
	s.mu.Unlock()
	t.Cleanup(s.Close)
	return s
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) }

func named(n byte) Identity { return Identity{UUID{n}, uint64(n), UUID{15: n}} }

// guest is a destination.
func guest(t *testing.T, s *Server, id Identity) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), s.address(), id, 0, "vllm", SourceFirst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hears wants a message, or an error, from the other side.
func hears(t *testing.T, c *Conn, kind Kind, text string) {
	t.Helper()
	select {
	case h := <-c.Heard():
		if h.Err != nil || h.Message.Kind != kind || h.Message.Text != text {
			t.Errorf("heard %+v, want %d %q", h, kind, text)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("nothing is heard, want %d %q", kind, text)
	}
}

// arrived waits until a server knows so many handoffs under way and over.
func arrived(t *testing.T, s *Server, meets, over int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ok := len(s.meets) == meets && len(s.over) == over
		s.mu.Unlock()
		if ok {
			return
		}
	}
	t.Fatalf("there are %d meetings and %d that are over, want %d and %d", len(s.meets), len(s.over), meets, over)
}

// Whoever comes first, the two meet, speak and part; who comes afterwards is told
// so.
func TestMeeting(t *testing.T) {
	s := listen(t, 4, 20*time.Second)
	for n, early := range []bool{true, false} {
		id := named(byte(n + 1))
		late := make(chan *Conn, 1)
		if early {
			c := guest(t, s, id)
			late <- c
			arrived(t, s, 1, n)
			second := guest(t, s, id)
			hears(t, second, ProtocolError, "duplicate destination participant")
		} else {
			go func() {
				time.Sleep(20 * time.Millisecond)
				c, _ := Dial(context.Background(), s.address(), id, 0, "vllm", SourceFirst)
				late <- c
			}()
		}
		source, err := s.Await(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		arrived(t, s, 1, n)
		c := <-late
		hears(t, c, Registered, "")
		if err := c.Send(Message{Kind: Abort, Text: "x"}); err != nil {
			t.Fatal(err)
		}
		hears(t, source, Abort, "x")
		if _, err := s.Await(t.Context(), id); err != errTaken {
			t.Errorf("a second source: %v", err)
		}
		hears(t, guest(t, s, id), ProtocolError, "handoff session is already active or retired")
		s.Leave(source, Message{Kind: Complete})
		hears(t, c, Complete, "")
		if h := <-c.Heard(); h.Err != errGone {
			t.Errorf("after the end: %+v", h)
		}
		arrived(t, s, 0, n+1)
		hears(t, guest(t, s, id), ProtocolError, "handoff session is already active or retired")
		c.Close()
	}
}

// Those that do not agree are both told so.
func TestMismatch(t *testing.T) {
	s := listen(t, 4, 20*time.Second)
	id := named(1)
	other := id
	other.Room++
	failed := make(chan error)
	go func() {
		_, err := s.Await(context.Background(), id)
		failed <- err
	}()
	arrived(t, s, 1, 0)
	hears(t, guest(t, s, other), ProtocolError, "handoff participant identity or backend mismatch")
	if err := <-failed; err != errMismatch {
		t.Error(err)
	}
	id = named(2)
	c, err := Dial(t.Context(), s.address(), id, 0, "sglang", DestinationFirst)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	arrived(t, s, 1, 1)
	if _, err := s.Await(t.Context(), id); err != errMismatch {
		t.Error(err)
	}
	hears(t, c, ProtocolError, "handoff participant identity or backend mismatch")
	arrived(t, s, 0, 2)
}

// Nobody waits for ever, and who goes is not waited for.
func TestNobodyComes(t *testing.T) {
	s := listen(t, 4, 50*time.Millisecond)
	if _, err := s.Await(t.Context(), named(1)); err != errLate {
		t.Error(err)
	}
	hears(t, guest(t, s, named(2)), ProtocolError, "handoff participant rendezvous timed out")
	arrived(t, s, 0, 2)
	silent, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadAll(silent); err != nil {
		t.Errorf("who says nothing is not sent away: %v", err)
	}

	s = listen(t, 4, 20*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := s.Await(ctx, named(1))
		left <- err
	}()
	arrived(t, s, 1, 0)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	arrived(t, s, 0, 1)
	guest(t, s, named(2)).Close()
	arrived(t, s, 0, 2)
}

// There are no more handoffs than a server may have.
func TestLimit(t *testing.T) {
	s := listen(t, 2, 20*time.Second)
	guest(t, s, named(1))
	guest(t, s, named(2))
	arrived(t, s, 2, 0)
	hears(t, guest(t, s, named(3)), Overloaded, "")
	if _, err := s.Await(t.Context(), named(4)); err != errFull {
		t.Error(err)
	}
	c, err := s.Await(t.Context(), named(1))
	if err != nil {
		t.Fatal(err)
	}
	s.Leave(c)
	guest(t, s, named(5))
	arrived(t, s, 2, 1)
}

// What is no frame ends its connection and nothing else; what comes later in a
// dialogue ends that, with a reason where there is one.
func TestGarbage(t *testing.T) {
	s := listen(t, 4, 20*time.Second)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "DMHF\x02\x00\x00\x00", Hello, Hello + "\xff\xff\xff\xff", Hello + "\x03\x00\x00\x00abc", Hello + string(AppendFrame(nil, named(1), Message{Kind: Complete}))} {
		c, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %q, %v", text, b, err)
		}
		_ = c.Close()
	}
	arrived(t, s, 0, 0)
	for n, x := range []struct {
		text string
		want error
		lost bool
	}{
		{"\x00\x00\x00\x00", errEmpty, false}, {"\x01\x00\x01\x00", errSize, true}, {"\x01\x00\x00\x00x", errMalformed, false},
		{string(AppendFrame(nil, named(99), Message{Kind: Complete})), errIdentity, false}, {"\x02\x00\x00\x00x", errCut, true}, {"", errGone, true},
	} {
		id := named(byte(n + 1))
		c := guest(t, s, id)
		source, err := s.Await(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c.conn, x.text); err != nil {
			t.Fatal(err)
		}
		if x.lost {
			_ = c.conn.(*net.TCPConn).CloseWrite()
		}
		if h := <-source.Heard(); h.Err != x.want || h.Lost != x.lost {
			t.Errorf("%q: %+v, want %v", x.text, h, x.want)
		}
		s.Leave(source)
	}
	arrived(t, s, 0, 6)
}

// A worker that is not there is said so, as the reference does.
func TestDialNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if _, err := Dial(t.Context(), address, named(1), 0, "vllm", SourceFirst); err == nil || err.Error() != "bootstrap connection failed: Connection refused (os error 111)" {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), "127.0.0.1:99999", named(1), 0, "vllm", SourceFirst); err == nil || !strings.HasPrefix(err.Error(), "bootstrap connection failed: ") {
		t.Error(err)
	}
}

// Thousands of strangers do not keep the two from meeting.
func TestManyStrangers(t *testing.T) {
	s := listen(t, 1, 20*time.Second)
	var all []net.Conn
	for range 1500 {
		c, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		_ = c.Close()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := len(s.strange)
		s.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d strangers are left", n)
		}
	}
	guest(t, s, named(1))
	c, err := s.Await(t.Context(), named(1))
	if err != nil {
		t.Fatal(err)
	}
	s.Leave(c)
}

// Whoever goes before the first word is an error at once, and not one of the
// answer that never comes.
func TestGoneAtOnce(t *testing.T) {
	here, there := net.Pipe()
	there.Close()
	if err := newConn(here).register(Message{Kind: Register}); err == nil {
		t.Error("nobody was told, and that is no error")
	}
}
