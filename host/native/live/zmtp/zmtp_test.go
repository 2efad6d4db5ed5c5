package zmtp

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"testing"
	"time"
)

// subscriber is a SUB socket, as far as a test needs one.
func subscriber(t *testing.T, p *Pub, minor byte, topic string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(p.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var greeting [64]byte
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, minor
	copy(greeting[12:], "NULL")
	b := appendCommand(greeting[:], "READY", []byte("\x0bSocket-Type\x00\x00\x00\x03SUB"))
	if minor == 0 {
		b = appendFrame(b, []byte("\x01"+topic), false)
	} else {
		b = appendCommand(b, "SUBSCRIBE", []byte(topic))
	}
	b = appendCommand(b, "PING", []byte("\x00\x00hello"))
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	var theirs [64]byte
	if _, err := io.ReadFull(r, theirs[:]); err != nil || theirs[0] != 0xff || theirs[10] != 3 || theirs[11] != 1 || string(theirs[12:16]) != "NULL" {
		t.Fatalf("%v, greeting %x", err, theirs)
	}
	// The capture of the reference: 04 19 05 READY 0b Socket-Type 00000003 PUB.
	if f, err := readFrame(r); err != nil || !f.command || string(f.body) != "\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB" {
		t.Fatalf("%v, %q", err, f.body)
	}
	if f, err := readFrame(r); err != nil || !f.command || string(f.body) != "\x04PONGhello" {
		t.Fatalf("%v, %q", err, f.body)
	}
	return r
}

func TestPub(t *testing.T) {
	p, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Publish([]byte("lost"), []byte("x")) // nobody is there
	all, some, old := subscriber(t, p, 1, ""), subscriber(t, p, 1, "kv-"), subscriber(t, p, 0, "kv-events")
	if !p.Wanted([]byte("kv-events")) {
		t.Error("nobody wants it")
	}
	long := bytes.Repeat([]byte("z"), 1000)
	p.Publish([]byte("other"), []byte("1"))
	p.Publish([]byte("kv-events"), []byte("2"), long)
	expect := func(r *bufio.Reader, parts ...string) {
		t.Helper()
		for i, want := range parts {
			flags, _ := r.Peek(1)
			f, err := readFrame(r)
			if err != nil || string(f.body) != want || flags[0]&flagMore != 0 != (i < len(parts)-1) || f.command {
				t.Errorf("%v: %.20q, want %.20q", err, f.body, want)
			}
		}
	}
	expect(all, "other", "1")
	for _, r := range []*bufio.Reader{all, some, old} {
		expect(r, "kv-events", "2", string(long))
	}
}

// Peers that say something else are left alone.
func TestStrangers(t *testing.T) {
	p, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n" + string(make([]byte, 64)), "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00PLAIN" + string(make([]byte, 60))} {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(p.Port()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		var b [256]byte
		for err == nil {
			_, err = conn.Read(b[:]) // the greeting, then the end
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("%.10q is not sent away", text)
		}
		_ = conn.Close()
	}
	if p.Wanted(nil) {
		t.Error("a stranger has subscribed")
	}
}

func FuzzPeer(f *testing.F) {
	f.Add(appendCommand(appendFrame(nil, []byte("\x01topic"), false), "PING", []byte("abc")))
	f.Add([]byte("\x06\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(appendCommand(nil, "CANCEL", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		q := newPeer(nil)
		r := bufio.NewReader(bytes.NewReader(b))
		if err := greet(&bytes.Buffer{}, bufio.NewReader(bytes.NewReader(b)), "PUB"); err == nil && len(b) < 64 {
			t.Error("a greeting of nothing")
		}
		for {
			x, err := readFrame(r)
			if err != nil || !q.hear(x) {
				return
			}
		}
	})
}
