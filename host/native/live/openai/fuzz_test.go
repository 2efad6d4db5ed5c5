package openai

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fault"
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
