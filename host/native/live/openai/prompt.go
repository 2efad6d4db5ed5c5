package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/host/native/live/tokenizer"
)

// message is a turn of a chat.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// roles are those that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// format is how a chat becomes a prompt. Templates of models are programs, which
// are not run here: a chat is spelt with the special tokens that the tokenizer
// has, those of ChatML or of Llama 3, or in plain words.
type format struct {
	open, role, end []uint32 // before a role, between role and content, behind the content
	plain           bool
}

func formatOf(t *tokenizer.Tokenizer) format {
	start, ok1 := t.Special("<|im_start|>")
	end, ok2 := t.Special("<|im_end|>")
	if ok1 && ok2 {
		newline := t.EncodePart(nil, "\n")
		return format{[]uint32{start}, newline, append([]uint32{end}, newline...), false}
	}
	start, ok1 = t.Special("<|start_header_id|>")
	middle, ok2 := t.Special("<|end_header_id|>")
	end, ok3 := t.Special("<|eot_id|>")
	if ok1 && ok2 && ok3 {
		return format{[]uint32{start}, append([]uint32{middle}, t.EncodePart(nil, "\n\n")...), []uint32{end}, false}
	}
	return format{plain: true}
}

// chat makes the prompt of a chat.
func (s *Server) chat(b *body, c *call) failure {
	if b.Prompt != nil {
		return wrong("prompt", "prompt is for completions; messages are accepted")
	}
	if len(b.Messages) == 0 {
		return wrong("messages", "messages are missing or empty; a list of at least one message is accepted")
	}
	var ids []uint32
	if t := string(b.Tools); b.Tools != nil && t != "null" && t != "[]" {
		ids = s.turn(ids, "system", t) // templates show the model its tools
	}
	for i, m := range b.Messages {
		if !slices.Contains(roles, m.Role) {
			return wrong("messages", "messages[%d].role is %s; %s is accepted", i, short(m.Role), strings.Join(roles, ", "))
		}
		text, f := content(i, m.Content)
		if f.failed() {
			return f
		}
		if t := string(m.ToolCalls); m.ToolCalls != nil && t != "null" {
			text += t
		}
		ids = s.turn(ids, m.Role, text)
	}
	if s.format.plain {
		ids = s.Tokenizer.EncodePart(ids, "assistant:")
	} else {
		ids = append(s.Tokenizer.EncodePart(append(ids, s.format.open...), "assistant"), s.format.role...)
	}
	c.prompts = [][]uint32{ids}
	return failure{}
}

// turn appends a message. What was an answer keeps its tokens, so that they are
// found in the cache again.
func (s *Server) turn(ids []uint32, role, text string) []uint32 {
	f := &s.format
	if f.plain {
		return s.Tokenizer.EncodePart(ids, role+": "+text+"\n")
	}
	ids = s.Tokenizer.EncodePart(append(ids, f.open...), role)
	ids = s.Tokenizer.EncodePart(append(ids, f.role...), text)
	return append(ids, f.end...)
}

// content is the text of message i: a string, or a list of texts.
func content(i int, v json.RawMessage) (string, failure) {
	if v == nil || string(v) == "null" {
		return "", failure{}
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text, failure{}
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(v, &parts) != nil {
		return "", wrong("messages", "messages[%d].content is %s; a string or a list of text parts is accepted", i, short(string(v)))
	}
	for j, p := range parts {
		if p.Type != "text" && p.Type != "input_text" {
			return "", wrong("messages", "messages[%d].content[%d].type is %s; text is accepted", i, j, short(p.Type))
		}
		text += p.Text
	}
	return text, failure{}
}

// hasNull reports whether a list, or one in it, has a null, which otherwise
// would pass for "" or 0.
func hasNull(v json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return false
	}
	for _, x := range list {
		if string(x) == "null" || x[0] == '[' && hasNull(x) {
			return true
		}
	}
	return false
}

// tokenIDs reads a list of token ids, which is valid JSON. It is many times as fast
// as the decoder, and prompts of this form are long. Not ok: it is something else,
// or empty.
func tokenIDs(v json.RawMessage) (ids []uint32, ok bool) {
	if len(v) < 2 || v[0] != '[' {
		return nil, false
	}
	var n uint64
	digits := false
	for i, c := range v[1:] {
		switch {
		case c >= '0' && c <= '9':
			if !digits && ids == nil {
				ids = make([]uint32, 0, (len(v)-i)/4)
			}
			digits = true
			if n = 10*n + uint64(c-'0'); n > math.MaxUint32 {
				return nil, false
			}
		case c == ',' || c == ']':
			if !digits {
				return nil, false
			}
			ids, n, digits = append(ids, uint32(n)), 0, false
		case c != ' ' && c != '\n' && c != '\r' && c != '\t':
			return nil, false
		}
	}
	return ids, true
}

// prompts reads the prompts of a completion: a text, token ids, or a list of
// either.
func (s *Server) prompts(b *body, c *call) failure {
	if b.Messages != nil {
		return wrong("messages", "messages are for chats; prompt is accepted")
	}
	bad := wrong("prompt", "prompt is %s; a string, a list of strings, a list of token ids or a list of such lists is accepted", short(string(b.Prompt)))
	if b.Prompt == nil || string(b.Prompt) == "null" {
		return wrong("prompt", "prompt is missing; a string, a list of strings, a list of token ids or a list of such lists is accepted")
	}
	var text string
	var texts []string
	var ids []uint32
	var lists [][]uint32
	if bytes.Contains(b.Prompt, []byte("null")) && b.Prompt[0] == '[' && hasNull(b.Prompt) {
		return bad
	}
	if one, ok := tokenIDs(b.Prompt); ok {
		lists = [][]uint32{one}
	}
	switch {
	case lists != nil:
	case json.Unmarshal(b.Prompt, &text) == nil:
		texts = []string{text}
	case json.Unmarshal(b.Prompt, &texts) == nil && len(texts) > 0:
	case json.Unmarshal(b.Prompt, &ids) == nil && len(ids) > 0:
		texts, lists = nil, [][]uint32{ids}
	case json.Unmarshal(b.Prompt, &lists) == nil && len(lists) > 0:
		texts = nil
		for _, l := range lists {
			if len(l) == 0 {
				return bad
			}
		}
	default:
		return bad
	}
	for _, t := range texts {
		c.prompts = append(c.prompts, s.Tokenizer.Encode(nil, t))
		if b.Echo {
			c.echoes = append(c.echoes, t)
		}
	}
	for _, l := range lists {
		c.prompts = append(c.prompts, l)
		if b.Echo {
			c.echoes = append(c.echoes, s.Tokenizer.Decode(l))
		}
	}
	return failure{}
}
