package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve answers as a frontend does, with so many pieces of text.
func serve(t *testing.T, pieces int, seen *atomic.Int64) Load {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		for i := range pieces {
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\" w%d\"}]}\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return Load{Address: strings.TrimPrefix(s.URL, "http://"), Model: "m1", Concurrency: 3, Requests: 10, PromptBytes: 20, Tokens: 4}
}

// A load asks for all its requests and times the first token and the whole.
func TestLoad(t *testing.T) {
	var seen atomic.Int64
	l := serve(t, 4, &seen)
	f, err := l.Run()
	if err != nil || seen.Load() != 10 {
		t.Fatalf("%v, %d requests", err, seen.Load())
	}
	if f.Total50-f.TTFT50 < 14 || f.Total99 < f.Total50 || f.TTFT99 < f.TTFT50 || f.PerSecond <= 0 {
		t.Errorf("%+v", f)
	}
}

// An answer with too few tokens is no answer, nor is one without an end.
func TestLoadFails(t *testing.T) {
	var seen atomic.Int64
	l := serve(t, 3, &seen)
	if _, err := l.Run(); err == nil || !strings.Contains(err.Error(), "3 pieces of text, want 4") {
		t.Error(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {}\n") }))
	defer s.Close()
	l.Address = strings.TrimPrefix(s.URL, "http://")
	if _, err := l.Run(); err == nil || !strings.Contains(err.Error(), "the stream has no end") {
		t.Error(err)
	}
}

// The instant worker can be found: it writes a card and an endpoint.
func TestFloor(t *testing.T) {
	root, model := t.TempDir(), t.TempDir()
	if err := writeModel("../../../host/native/live/card/testdata/model", model); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(model, "tokenizer.json"))
	if err != nil || !strings.Contains(string(text), `"Ġw1999":1999`) {
		t.Fatalf("%v: the model has no words", err)
	}
	failed := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { failed <- Floor(ctx, root, model) }()
	s := &station{root: root}
	for end := time.Now().Add(10 * time.Second); s.records() < floorRecords; time.Sleep(time.Millisecond) {
		select {
		case err := <-failed:
			t.Fatal(err)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%d records", s.records())
		}
	}
	stop()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}
