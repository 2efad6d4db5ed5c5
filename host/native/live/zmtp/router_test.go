package zmtp

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"
)

// dealer is a DEALER socket, as far as a test needs one.
type dealer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newDealer(t *testing.T, r *Router) *dealer {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(r.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	d := &dealer{t, conn, bufio.NewReader(conn)}
	var greeting [64]byte
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	copy(greeting[12:], "NULL")
	d.write(appendCommand(greeting[:], "READY", []byte("\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00")))
	if _, err := io.ReadFull(d.r, greeting[:]); err != nil {
		t.Fatal(err)
	}
	if f, err := readFrame(d.r); err != nil || !f.command || string(f.body) != "\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER" {
		t.Fatalf("%v, %q", err, f.body)
	}
	return d
}

func (d *dealer) write(b []byte) {
	d.t.Helper()
	if _, err := d.conn.Write(b); err != nil {
		d.t.Fatal(err)
	}
}

// read is the next message.
func (d *dealer) read() (parts []string) {
	d.t.Helper()
	for {
		f, err := readFrame(d.r)
		if err != nil || f.command {
			d.t.Fatalf("%v, command %v: %q", err, f.command, f.body)
		}
		if parts = append(parts, string(f.body)); !f.more {
			return parts
		}
	}
}

// Each who asks is answered, in order, also between pings; who sends nonsense is
// sent away.
func TestRouter(t *testing.T) {
	r, err := ListenRouter("127.0.0.1:0", func(parts [][]byte, send func(parts ...[]byte) bool) {
		for _, p := range parts {
			if !send(nil, p, bytes.Repeat([]byte("z"), 300)) {
				t.Error("nobody is there")
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, b := newDealer(t, r), newDealer(t, r)
	long := string(bytes.Repeat([]byte("z"), 300))
	for range 2 {
		for _, d := range []*dealer{a, b} {
			d.write(appendFrame(appendFrame(nil, nil, true), []byte("one"), false))
		}
		for _, d := range []*dealer{a, b} {
			for _, want := range []string{"", "one"} {
				if got := d.read(); !slices.Equal(got, []string{"", want, long}) {
					t.Errorf("%q", got)
				}
			}
		}
	}
	a.write(appendCommand(nil, "PING", []byte("\x00\x00hello")))
	a.write(appendFrame(nil, []byte("two"), false))
	if f, err := readFrame(a.r); err != nil || string(f.body) != "\x04PONGhello" {
		t.Errorf("%v, %q", err, f.body)
	}
	a.read()
	many := []byte{}
	for range mostParts + 1 {
		many = appendFrame(many, nil, true)
	}
	for _, text := range [][]byte{many, []byte("\x06\xff"), append(appendFrame(nil, nil, true), appendCommand(nil, "PING", []byte("\x00\x00"))...), []byte("\x02\x00\x00\x00\x00\x00\x01\x00\x01")} {
		d := newDealer(t, r)
		d.write(text)
		_ = d.conn.(*net.TCPConn).CloseWrite()
		if _, err := io.ReadAll(d.r); err != nil {
			t.Errorf("%q is not sent away: %v", text, err)
		}
	}
}

// Who does not read what it has asked for does not keep the socket from closing.
func TestRouterCloses(t *testing.T) {
	began := make(chan struct{})
	r, err := ListenRouter("127.0.0.1:0", func(_ [][]byte, send func(parts ...[]byte) bool) {
		close(began)
		for send(make([]byte, 1<<20)) {
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	d := newDealer(t, r)
	d.write(appendFrame(nil, nil, false))
	<-began
	done := make(chan struct{})
	go func() { r.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not close")
	}
}

func FuzzMessage(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, nil, true), []byte("\x00\x00\x00\x00\x00\x00\x00\x07"), false))
	f.Add(appendCommand(appendFrame(nil, nil, false), "PING", []byte("abc")))
	f.Add([]byte("\x03\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for r := bufio.NewReader(bytes.NewReader(b)); ; {
			parts, err := readMessage(r, func([]byte) bool { return true })
			if err != nil {
				return
			}
			var again []byte
			for i, p := range parts {
				again = appendFrame(again, p, i < len(parts)-1)
			}
			back, err := readMessage(bufio.NewReader(bytes.NewReader(again)), nil)
			if err != nil || len(back) != len(parts) {
				t.Fatalf("%v: %q, want %q", err, back, parts)
			}
		}
	})
}
