package openai_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/books"
	"github.com/dryserve/dryserve/host/native/live/openai"
)

// Every answer is booked once: those that came to their end, those that the
// engine did not take, those whose client went.
func TestBooks(t *testing.T) {
	var b books.Books
	e := config.Defaults(config.VLLM)
	e.BlockSize, e.NumGPUBlocks = 4, 256
	e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 20, DecodeMs: 5}
	s := start(t, e, func(o *openai.Options) { o.Books = &b; o.ContextTokens = 5000 })
	if status, text := s.call("POST", "/v1/completions", `{"model":"m","prompt":"abcdefgh","max_tokens":4,"n":2}`); status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
	if status, _ := s.call("POST", "/v1/completions", `{"model":"m","prompt":"`+strings.Repeat("a", 2000)+`","max_tokens":4}`); status == 200 {
		t.Fatal("a prompt that does not fit is answered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", s.http.URL+"/v1/completions", strings.NewReader(`{"model":"m","prompt":"a","max_tokens":400,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	for end := time.Now().Add(10 * time.Second); b.Summary(1, 1).UnfinishedRequests > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("an answer has no end in the books")
		}
	}
	x := b.Summary(1, 1)
	if x.NumRequests != 4 || x.CompletedRequests != 2 || x.RejectedRequests+x.FailedRequests != 1 || x.CancelledRequests != 1 || x.TotalInputTokens != 16 || x.TotalOutputTokens != 8 {
		t.Errorf("%+v", x)
	}
	if x.TTFT.Min < 20 || x.ITL.Max < 5 || x.E2E.Min < 35 || x.NumTPOT != 2 {
		t.Errorf("TTFT %+v, ITL %+v, E2E %+v", x.TTFT, x.ITL, x.E2E)
	}
}
