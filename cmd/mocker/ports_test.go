package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/internal/stand"
)

// stranger is what a port may be sent, with the statuses that may answer it; none:
// the connection ends without.
type stranger struct {
	name, text string
	statuses   []int
}

// strangers are all of them. They are long: kept, they would hide from TestSoak what
// the server keeps.
func strangers() []stranger {
	return []stranger{
		{"nonsense", "\x00\x01\x02\xff\xfe nonsense\r\n\r\n", []int{400}},
		{"a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xab", 100) + "\r\n\r\n", []int{400}},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400, 404, 505}},
		{"a ZeroMQ greeting", "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL" + strings.Repeat("\x00", 48) + "\r\n\r\n", []int{400}},
		{"no version", "GET /\r\n\r\n", []int{400}},
		{"no host", "GET /health HTTP/1.1\r\n\r\n", []int{400}},
		{"a long line", "GET /" + strings.Repeat("a", 3<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", []int{400, 414, 431}},
		{"long headers", "GET /live HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 3000) + "\r\n", []int{400, 431}},
		{"a negative length", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", []int{400}},
		{"two lengths", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", []int{400}},
		{"a bad chunk", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", []int{400, 404}},
		{"an unknown encoding", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: rot13\r\n\r\n", []int{400, 501}},
		{"a long body, announced", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + strings.Repeat("x", 33<<20), []int{404, 413}},
		{"a long body in chunks", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 33), []int{404, 413}},
		{"deep JSON", post(strings.Repeat("[", 100_000)), []int{400, 404}},
		{"a path upwards", "GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", []int{301, 307, 308, 400, 404}},
		{"a strange method", "BREW /health HTTP/1.1\r\nHost: x\r\n\r\n", []int{404, 405}},
		{"a proxy's request", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", []int{404, 405}},
	}
}

func post(body string) string {
	return fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// What strangers send to either HTTP port is refused, and others are served as
// before.
func TestStrangers(t *testing.T) {
	api, stop := launch(t, "--speedup-ratio", "1e9", "--log-level", "error")
	defer stop()
	for name, address := range map[string]string{"the API": api, "the system server": systemOnly(t)} {
		for _, x := range strangers() {
			status, err := sent(address, x.text)
			ok := err != nil // the connection ended, perhaps in the middle of what was sent
			for _, s := range x.statuses {
				ok = ok || status == s
			}
			if !ok {
				t.Errorf("%s, %s: status %d, want one of %v", name, x.name, status, x.statuses)
			}
			resp, err := http.Get("http://" + address + "/metrics")
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%s, after %s: %v", name, x.name, err)
			}
			_ = resp.Body.Close()
		}
		// Half a request, and gone.
		for n := range 20 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, post("{}")[:3*n])
			_ = conn.Close()
		}
		if status, err := sent(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil || status != 200 {
			t.Errorf("%s: status %d, %v after half requests", name, status, err)
		}
	}
}

// sent sends a text and returns the status of the answer.
func sent(address, text string) (int, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	go func() { _, _ = io.WriteString(conn, text) }() // the server need not read it all
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			return -1, nil
		}
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// systemOnly is the system server of a worker behind a frontend that is not there.
func systemOnly(t *testing.T) string {
	t.Helper()
	t.Setenv("DYN_SYSTEM_PORT", strconv.Itoa(stand.Port(t)))
	t.Setenv("DYN_FILE_KV", filepath.Join(t.TempDir(), "records"))
	o, err := parse([]string{"--discovery-backend", "file", "--model-name", "m", "--log-level", "error"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := o.behind(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	d.Log = slog.New(slog.DiscardHandler)
	site, done, err := open(o, &d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Close(); done() })
	return site.System()
}
