package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

// No body makes the server panic, and what is taken can be planned or is
// refused with an error object.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model":"m","prompt":"a","stop":["b"],"n":2,"echo":true,"seed":4,"stream_options":{"include_usage":true}}`), false)
	f.Add([]byte(`{"model":"m","prompt":[[1,2],[4294967295]],"max_tokens":9,"stop_token_ids":[1001],"best_of":1}`), false)
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"<|im_end|>"}],"tool_calls":[]}],"tools":[{}],"nvext":{"annotations":["output_replay_id:k"]}}`), true)
	s := New(Options{
		Clock: clock.NewWall(false), Tokenizer: tokenizer.Builtin(), Faults: fault.New(fault.Options{}), Log: slog.New(slog.DiscardHandler),
		Model: "m", ContextTokens: 500, ChatTokens: 5, Ends: []uint32{1500},
	})
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		k := completions
		if chat {
			k = chats
		}
		c, fail := s.parse(body, k)
		if !fail.failed() {
			var x *exchange
			if x, fail = s.newExchange(c, 1, fault.Plan{}, 0); !fail.failed() {
				for i := range x.choices {
					x.choices[i].tokens = len(x.choices[i].ids)
				}
				if b := x.object(); !json.Valid(b) {
					t.Fatalf("%s", b)
				}
			}
		}
		if fail.failed() && (fail.status < 400 || !json.Valid(fail.object())) {
			t.Fatalf("%+v: %s", fail, fail.object())
		}
	})
}

// No request makes the server panic or leaves it without an answer; errors are
// OpenAI's.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\n{\"model\":\"m\",\"prompt\":\"a\",\"n\":2,\"stream\":true}",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"GET /v1/models/m%2e%2e//x HTTP/1.0\r\n\r\n", "GET /metrics?x=%zz HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "DELETE /health HTTP/1.1\r\nHost: x\r\nX-\xff: y\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	c := clock.NewWall(false)
	e := config.Defaults(config.VLLM)
	e.SpeedupRatio, e.BlockSize, e.NumGPUBlocks = 1e9, 4, 256
	workers := fleet.New(fleet.Options{Engine: e, Workers: 1, Clock: c})
	go workers.Run(f.Context())
	s := New(Options{
		Backend: workers, Clock: c, Tokenizer: tokenizer.Builtin(), Faults: fault.New(fault.Options{}), Log: slog.New(slog.DiscardHandler),
		Model: "m", ContextTokens: 500, ChatTokens: 5, Ends: []uint32{1500}, MaxBodyBytes: 1 << 16, Style: answer.Style{IDs: tokenizer.Builtin().Words()}, Meter: meter.New(e.Backend, 1, 1),
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			t.Skip()
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 400 {
			var e struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
		} else if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
	})
}
