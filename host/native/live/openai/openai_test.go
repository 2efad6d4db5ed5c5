package openai_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/openai"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

const (
	text = "/v1/completions"
	chat = "/v1/chat/completions"
)

func TestCompletion(t *testing.T) {
	s := start(t, instant(), nil)
	r := s.ask(text, `{"model":"m","prompt":"abcdefghij","seed":1}`)
	if r.Object != "text_completion" || r.Model != "m" || !strings.HasPrefix(r.ID, "cmpl-") || r.Created == 0 || len(r.Choices) != 1 {
		t.Errorf("%+v", r)
	}
	if c := r.Choices[0]; len(strings.Fields(*c.Text)) != 16 || *c.Finish != "length" || c.Index != 0 {
		t.Errorf("%+v", c)
	}
	if want := (usage{Prompt: 10, Answer: 16, Total: 26}); *r.Usage != want {
		t.Errorf("%+v", *r.Usage)
	}
	// The same again: two blocks of four tokens are cached, the third is not full.
	again := s.ask(text, `{"model":"m","prompt":[97,98,99,100,101,102,103,104,105,106],"seed":1,"max_tokens":16}`)
	if *again.Choices[0].Text != *r.Choices[0].Text || again.Usage.Details.Cached != 8 || again.ID == r.ID {
		t.Errorf("%+v, cached %d", again, again.Usage.Details.Cached)
	}
}

// What was an answer is found in the cache when it comes back in a prompt.
func TestAnswersAreCached(t *testing.T) {
	s := start(t, instant(), nil)
	r := s.ask(text, `{"model":"m","prompt":"abcd","max_tokens":13}`)
	again := s.ask(text, `{"model":"m","prompt":"abcd`+*r.Choices[0].Text+`x","max_tokens":1}`)
	// 4 + 13 tokens; the last has no KV.
	if again.Usage.Prompt != 18 || again.Usage.Details.Cached != 16 {
		t.Errorf("%+v", *again.Usage)
	}
}

// Several prompts and several answers to each.
func TestChoices(t *testing.T) {
	s := start(t, instant(), nil)
	r := s.ask(text, `{"model":"m","prompt":["ab","cde"],"n":2,"max_tokens":3,"echo":true}`)
	seen := map[string]bool{}
	for i, c := range r.Choices {
		if c.Index != i || !strings.HasPrefix(*c.Text, []string{"ab ", "cde "}[i/2]) || seen[*c.Text] {
			t.Errorf("choice %d: %+v %q", i, c, *c.Text)
		}
		seen[*c.Text] = true
	}
	if want := (usage{Prompt: 5, Answer: 12, Total: 17}); len(r.Choices) != 4 || *r.Usage != want {
		t.Errorf("%+v", *r.Usage)
	}
	r = s.ask(text, `{"model":"m","prompt":[[97,98],[99]],"max_tokens":2,"echo":true}`)
	if len(r.Choices) != 2 || !strings.HasPrefix(*r.Choices[0].Text, "ab ") || !strings.HasPrefix(*r.Choices[1].Text, "c ") {
		t.Errorf("%+v", r)
	}
}

// A stream says what the whole answer says, a token an event.
func TestStream(t *testing.T) {
	s := start(t, instant(), nil)
	for _, c := range []struct{ path, rest string }{
		{text, `"prompt":"abc","echo":true`}, {chat, `"messages":[{"role":"user","content":"abc"}]`},
	} {
		body := `{"model":"m","seed":5,"n":2,"max_tokens":7,` + c.rest
		whole := s.ask(c.path, body+"}")
		list, done := s.stream(c.path, body+`,"stream":true,"stream_options":{"include_usage":true}}`)
		texts, roles, finishes := map[int]string{}, map[int]string{}, map[int]string{}
		for i, e := range list {
			if i == len(list)-1 {
				if len(e.Choices) != 0 || e.Usage == nil || e.Usage.Answer != 14 || e.Usage.Total != whole.Usage.Total {
					t.Errorf("the last event: %+v", e)
				}
				continue
			}
			k := e.Choices[0]
			switch {
			case k.Text != nil:
				texts[k.Index] += *k.Text
			case k.Delta != nil:
				texts[k.Index] += k.Delta.Content
				roles[k.Index] += k.Delta.Role
			}
			if k.Finish != nil {
				finishes[k.Index] += *k.Finish
			}
			if e.ID != list[0].ID || e.Usage != nil {
				t.Errorf("event %d: %+v", i, e)
			}
		}
		for i, k := range whole.Choices {
			want := k.Text
			if want == nil {
				want = &k.Message.Content
				if roles[i] != "assistant" || k.Message.Role != "assistant" {
					t.Errorf("roles %q, %q", roles[i], k.Message.Role)
				}
			}
			if texts[i] != *want || finishes[i] != "length" {
				t.Errorf("%s, choice %d: %q, want %q, %q", c.path, i, texts[i], *want, finishes[i])
			}
		}
		if !done || len(list) != 2*8+1 {
			t.Errorf("%d events, done %v", len(list), done)
		}
	}
	if list, _ := s.stream(text, `{"model":"m","prompt":"a","stream":true,"max_tokens":2}`); len(list) != 3 {
		t.Errorf("%d events without usage", len(list))
	}
}

// The prompt of a chat, as it is spelt.
func TestChatPrompt(t *testing.T) {
	s := start(t, instant(), nil)
	for body, want := range map[string]string{
		`[{"role":"user","content":"Hi"}]`: "_user\nHi_\n_assistant\n",
		`[{"role":"system","content":""},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":null,"tool_calls":[{}]},{"role":"tool","content":"x"}]`: "_system\n_\n_user\nab_\n_assistant\n[{}]_\n_tool\nx_\n_assistant\n",
		`[{"role":"user","content":"Hi"}],"tools":[{"a":1}]`: "_system\n[{\"a\":1}]_\n_user\nHi_\n_assistant\n",
	} {
		r := s.ask(chat, `{"model":"m","max_tokens":1,"messages":`+body+`}`)
		if r.Usage.Prompt != len(want) {
			t.Errorf("%s: %d tokens, want %d", body, r.Usage.Prompt, len(want))
		}
	}
	r := s.ask(chat, `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`)
	if r.Usage.Answer != 20 || r.Object != "chat.completion" || !strings.HasPrefix(r.ID, "chatcmpl-") {
		t.Errorf("%+v", r)
	}
}

// Stop strings and end tokens end an answer there, and the engine is not asked
// for more.
func TestStops(t *testing.T) {
	s := start(t, instant(), func(o *openai.Options) {
		ids := o.Tokenizer.Encode(nil, "Hello world, stop here. More")
		o.Recorded = answer.Recorded{"a": ids, "b": slices.Concat(ids[:5], []uint32{258}, ids[5:]), "e": {}}
	})
	const ask = `{"model":"m","prompt":"x","nvext":{"annotations":["other","output_replay_id:`
	for _, c := range []struct {
		body, text, finish string
		tokens             int
	}{
		{`a"]}`, "Hello world, stop here. More", "length", 28},
		{`a"]},"max_tokens":3`, "Hello world, stop here. More", "length", 28},
		{`a"]},"stop":"stop"`, "Hello world, ", "stop", 17},
		{`a"]},"stop":["wor","llo w","zzz"]`, "He", "stop", 7},
		{`a"]},"stop":["stop"],"min_tokens":20`, "Hello world, stop here. More", "length", 28},
		{`a"]},"stop_token_ids":[119]`, "Hello w", "stop", 7},
		{`b"]}`, "Hello", "stop", 6},
		{`b"]},"ignore_eos":true`, "Hello world, stop here. More", "length", 29},
		{`b"],"ignore_eos":true}`, "Hello world, stop here. More", "length", 29},
		{`e"]}`, "", "length", 0},
	} {
		r := s.ask(text, ask+c.body+"}")
		if k := r.Choices[0]; *k.Text != c.text || *k.Finish != c.finish || r.Usage.Answer != c.tokens {
			t.Errorf("%s: %q, %s, %d tokens, want %q, %s, %d", c.body, *k.Text, *k.Finish, r.Usage.Answer, c.text, c.finish, c.tokens)
		}
		list, done := s.stream(text, ask+c.body+`,"stream":true}`)
		whole := ""
		for _, e := range list {
			whole += *e.Choices[0].Text
		}
		if last := list[len(list)-1].Choices[0]; whole != c.text || *last.Finish != c.finish || len(list) != c.tokens+1 || !done {
			t.Errorf("%s as a stream: %q, %d events, %s", c.body, whole, len(list), *last.Finish)
		}
	}
	if r := s.ask(text, ask+`none"]}}`); r.Usage.Answer != 16 {
		t.Errorf("without a record: %+v", r)
	}
}

// Characters of several tokens come whole.
func TestCharacters(t *testing.T) {
	s := start(t, instant(), func(o *openai.Options) { o.Recorded = answer.Recorded{"a": o.Tokenizer.Encode(nil, "é🎉\xf0")} })
	list, _ := s.stream(text, `{"model":"m","prompt":"x","stream":true,"nvext":{"annotations":["output_replay_id:a"]}}`)
	var texts []string
	for _, e := range list {
		texts = append(texts, *e.Choices[0].Text)
	}
	if fmt.Sprintf("%q", texts) != `["" "é" "" "" "" "🎉" "�" ""]` {
		t.Errorf("%q", texts)
	}
}

func TestReasoning(t *testing.T) {
	s := start(t, instant(), func(o *openai.Options) { o.Style.Reasoning = &answer.Reasoning{Start: '<', End: '>', Ratio: 0.5} })
	body := `{"model":"m","seed":1,"max_tokens":10,"messages":[{"role":"user","content":"Hi"}]`
	r := s.ask(chat, body+"}")
	m := r.Choices[0].Message
	if len(strings.Fields(m.Reasoning)) != 3 || len(strings.Fields(m.Content)) != 5 || r.Usage.Thoughts.Tokens != 5 || strings.ContainsAny(m.Reasoning+m.Content, "<>") {
		t.Errorf("%+v, %+v", *m, *r.Usage)
	}
	list, _ := s.stream(chat, body+`,"stream":true}`)
	var thoughts, content string
	for _, e := range list {
		thoughts += e.Choices[0].Delta.Reasoning
		content += e.Choices[0].Delta.Content
	}
	if thoughts != m.Reasoning || content != m.Content || len(list) != 11 {
		t.Errorf("%q, %q", thoughts, content)
	}
	if c := s.ask(text, `{"model":"m","prompt":"x","max_tokens":4}`); !strings.HasPrefix(*c.Choices[0].Text, "<>") {
		t.Errorf("%q", *c.Choices[0].Text)
	}
}

// Tokenizers without the special tokens of chats have chats in plain words.
func TestPlainChat(t *testing.T) {
	k, err := tokenizer.Parse("t", []byte(`{"model":{"vocab":{"a":0,"b":1,"s":2,"u":3,"e":4,"r":5,":":6,"Ġ":7,"Ċ":8,"i":9,"t":10,"n":11}},"pre_tokenizer":{"type":"ByteLevel","use_regex":false,"add_prefix_space":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, instant(), func(o *openai.Options) { o.Tokenizer, o.Style.IDs = k, k.Words() })
	if r := s.ask(chat, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"ab"}]}`); r.Usage.Prompt != len("user: ab\nassistant:") {
		t.Errorf("%+v", *r.Usage)
	}
}

// SGLang and TensorRT-LLM answer as well, and tell what they found cached.
func TestBackends(t *testing.T) {
	for _, b := range []config.Backend{config.SGLang, config.TRTLLM} {
		e := instant()
		e.Backend = b
		s := start(t, e, nil)
		for i := range 2 {
			r := s.ask(text, `{"model":"m","prompt":"abcdefghi","max_tokens":5}`)
			if r.Usage.Answer != 5 || r.Usage.Details.Cached != 8*i {
				t.Errorf("backend %d: %+v", b, *r.Usage)
			}
		}
	}
}
