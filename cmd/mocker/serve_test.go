package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// log is a writer that several goroutines use.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// under starts a server and a stream that takes a while, and returns once its
// first token is there.
func under(t *testing.T, tokens string) (signals chan os.Signal, done chan error, rest io.ReadCloser, address string, said *log) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"--http", l.Addr().String(), "--speedup-ratio", "10", "--num-workers", "2", "--router-mode", "kv"})
	if err != nil {
		t.Fatal(err)
	}
	said = &log{}
	s, err := o.build(said)
	if err != nil {
		t.Fatal(err)
	}
	signals, done = make(chan os.Signal, 2), make(chan error, 1)
	go func() { done <- s.run(l, signals) }()
	address = "http://" + l.Addr().String()
	resp, err := http.Post(address+"/v1/completions", "", strings.NewReader(`{"model":"dynamo","prompt":"abc","stream":true,"max_tokens":`+tokens+`}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(err)
	}
	return signals, done, resp.Body, address, said
}

// After a signal nobody new is served; what is under way comes to its end.
func TestSignal(t *testing.T) {
	signals, done, rest, address, said := under(t, "200")
	signals <- syscall.SIGTERM
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		resp, err := http.Get(address + "/health")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("while it drains: %v", err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == 503 {
			break
		}
	}
	resp, err := http.Post(address+"/v1/completions", "", strings.NewReader(`{"model":"dynamo","prompt":"abc"}`))
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("a new request while it drains: %v", err)
	}
	_ = resp.Body.Close()
	text, err := io.ReadAll(rest)
	if err != nil || !bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) || bytes.Count(text, []byte("data: ")) != 202 {
		t.Errorf("%v: %d events", err, bytes.Count(text, []byte("data: ")))
	}
	_ = rest.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(address + "/health"); err == nil {
		t.Error("it still listens")
	}
	if s := said.String(); !strings.Contains(s, "msg=draining signal=terminated") || !strings.Contains(s, "msg=drained") {
		t.Error(s)
	}
}

// A second signal gives up what is under way.
func TestSecondSignal(t *testing.T) {
	signals, done, rest, _, said := under(t, "100000")
	signals <- syscall.SIGTERM
	signals <- os.Interrupt
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text, _ := io.ReadAll(rest); bytes.Contains(text, []byte("[DONE]")) {
		t.Error("the stream has an end")
	}
	_ = rest.Close()
	if s := said.String(); !strings.Contains(s, "requests were given up") {
		t.Error(s)
	}
}

func TestCannotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var errs bytes.Buffer
	if code := run([]string{"--http", l.Addr().String()}, io.Discard, &errs); code != 1 || errs.String() != "mocker: --http "+l.Addr().String()+": cannot listen there: address already in use\n" {
		t.Errorf("status %d: %s", code, errs.String())
	}
}

// launch runs the program in this process and waits for its port.
func launch(tb testing.TB, args ...string) (address string, stop func()) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	o, err := parse(append([]string{"--http", l.Addr().String()}, args...))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := o.build(os.Stderr)
	if err != nil {
		tb.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	done := make(chan error, 1)
	go func() { done <- s.run(l, signals) }()
	return l.Addr().String(), func() {
		signals <- syscall.SIGTERM
		if err := <-done; err != nil {
			tb.Error(err)
		}
	}
}
