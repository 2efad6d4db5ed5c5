package dynamo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// quick is an engine that takes no time.
func quick() config.Engine {
	e := config.Defaults(config.VLLM)
	e.SpeedupRatio, e.BlockSize, e.NumGPUBlocks = 1e9, 4, 1000
	return e
}

// options describe a quick worker.
func options(t *testing.T) dynamo.Options {
	o := dynamo.Options{
		Engine: quick(), Workers: 1, StaggerMs: func(int) float64 { return 0 }, Namespace: "dynamo", Component: "backend", Endpoint: "generate",
		Model: card.Model{Name: "m1", Path: "../card/testdata/model"}, Root: t.TempDir(), Host: "127.0.0.1", Port: "0", EventHost: "127.0.0.1",
		Clock: clock.NewWall(true), Log: slog.New(slog.DiscardHandler),
	}
	o.Meter = meter.New(o.Engine.Backend, o.Workers, o.Engine.DPSize)
	return o
}

// start launches workers and stops them at the end of the test.
func start(t *testing.T, change func(*dynamo.Options)) (*dynamo.Site, dynamo.Options) {
	t.Helper()
	o := options(t)
	if change != nil {
		change(&o)
	}
	o.Meter = meter.New(o.Engine.Backend, o.Workers, o.Engine.DPSize)
	s, err := dynamo.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, o
}

// records are the names of a bucket's records.
func records(t *testing.T, root, bucket string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "v1", bucket))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// endpoint is the path of the first endpoint whose name has a part.
func endpoint(t *testing.T, root, part string) string {
	t.Helper()
	for _, name := range records(t, root, "instances") {
		if !strings.Contains(name, part) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, "v1/instances", name))
		if err != nil {
			t.Fatal(err)
		}
		var r struct{ Transport struct{ TCP string } }
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(r.Transport.TCP, "/")
		return path
	}
	t.Fatalf("no endpoint %s", part)
	return ""
}

// frontend asks as a frontend does.
type frontend struct {
	t        *testing.T
	listener net.Listener
	conn     net.Conn
	r        *bufio.Reader
	n        int
}

func newFrontend(t *testing.T, address string) *frontend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = conn.Close() })
	return &frontend{t: t, listener: l, conn: conn, r: bufio.NewReader(conn)}
}

// requestID is of the n-th request of a frontend.
func requestID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// ask sends a request and returns the reply to its frame.
func (f *frontend) ask(path, body string) string {
	f.t.Helper()
	f.n++
	id := requestID(f.n)
	info, _ := json.Marshal(map[string]string{"address": f.listener.Addr().String(), "subject": fmt.Sprint("s", f.n), "context": id, "stream_type": "response"})
	control, _ := json.Marshal(map[string]any{
		"id": id, "request_type": "single_in", "response_type": "many_out", "payload_codec": "json",
		"connection_info": map[string]string{"transport": "tcp_server", "info": string(info)},
	})
	b, err := wire.AppendRequest(nil, wire.Request{Path: path, Headers: map[string]string{}, Payload: wire.AppendTwoPart(nil, control, []byte(body))})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.conn.Write(b); err != nil {
		f.t.Fatal(err)
	}
	_ = f.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	var head [4]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		f.t.Fatal(err)
	}
	text := make([]byte, int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(f.r, text); err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// stream is the connection back.
type stream struct {
	t    *testing.T
	conn net.Conn
}

func (f *frontend) accept() *stream {
	f.t.Helper()
	s := f.called()
	if h := s.header(); h != `{"error":null}` {
		f.t.Fatalf("prologue %s", h)
	}
	return s
}

// refused is why a request is not taken.
func (f *frontend) refused() string {
	f.t.Helper()
	s := f.called()
	var h struct {
		Error string
		Typed struct{ Message, Diagnostic string } `json:"typed_error"`
	}
	if err := json.Unmarshal([]byte(s.header()), &h); err != nil {
		f.t.Fatal(err)
	}
	why, ok := strings.CutPrefix(h.Error, "Generate Error: ")
	if !ok || h.Typed.Message != why || h.Typed.Diagnostic != why {
		f.t.Errorf("the prologue is %+v", h)
	}
	if items := s.all(); len(items) > 0 {
		f.t.Errorf("after it comes %q", items)
	}
	return why
}

// called is the connection back before its prologue.
func (f *frontend) called() *stream {
	f.t.Helper()
	_ = f.listener.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second))
	conn, err := f.listener.Accept()
	if err != nil {
		f.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	s := &stream{f.t, conn}
	f.t.Cleanup(func() { _ = conn.Close() })
	if h := s.header(); h != fmt.Sprintf(`{"subject":"s%d","stream_type":"response"}`, f.n) {
		f.t.Fatalf("handshake %s", h)
	}
	return s
}

func (s *stream) header() string {
	s.t.Helper()
	header, _, err := wire.ReadTwoPart(s.conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(header)
}

// item is the next item; "" at the sentinel, "cut" if the stream ends without.
func (s *stream) item() string {
	s.t.Helper()
	header, data, err := wire.ReadTwoPart(s.conn)
	switch {
	case errors.Is(err, io.EOF):
		return "cut"
	case err != nil:
		s.t.Fatal(err)
	case string(header) == `"sentinel"`:
		return ""
	}
	return string(data)
}

// say sends a word.
func (s *stream) say(word string) {
	s.t.Helper()
	if _, err := s.conn.Write(wire.AppendTwoPart(nil, []byte(word), nil)); err != nil {
		s.t.Fatal(err)
	}
}

// all is every item to the end.
func (s *stream) all() (items []string) {
	s.t.Helper()
	for {
		i := s.item()
		if i == "" || i == "cut" {
			if i == "cut" {
				items = append(items, i)
			}
			_ = s.conn.Close()
			return items
		}
		items = append(items, i)
	}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
