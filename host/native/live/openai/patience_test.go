package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/host/native/live/openai"
)

// A client that is there but does not read is given up after a while, and stops
// nobody else meanwhile; so is one that does not send its body.
func TestPatience(t *testing.T) {
	e := instant()
	e.NumGPUBlocks = 100_000
	s := start(t, e, func(o *openai.Options) {
		o.Patience, o.ContextTokens, o.MaxBodyBytes = 300*time.Millisecond, 300_000, 1<<20
	})
	dial := func(text string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.http.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	const body = `{"model":"m","prompt":"a","stream":true,"max_tokens":200000}`
	deaf := dial(fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	mute := dial("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")

	// Others are served.
	if status, _ := s.call("POST", "/v1/completions", `{"model":"m","prompt":"b","max_tokens":3}`); status != 200 {
		t.Errorf("status %d beside a client that does not read", status)
	}
	resp, err := http.ReadResponse(bufio.NewReader(mute), nil)
	if err != nil || resp.StatusCode != 400 {
		t.Errorf("half a body: %v", err)
	} else if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), "the body cannot be read to its end") {
		t.Errorf("half a body: %s", text)
	}
	// The answer of the deaf one, more than the system keeps, is broken off: it has no
	// end.
	time.Sleep(time.Second)
	_ = deaf.SetReadDeadline(time.Now().Add(20 * time.Second))
	if text, err := io.ReadAll(deaf); err != nil || strings.Contains(string(text), "[DONE]") || len(text) == 0 {
		t.Errorf("%v: %d bytes, with an end", err, len(text))
	}
}
