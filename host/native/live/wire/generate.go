package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Generate is what a request of SGLang's own /generate asks for besides tokens.
// The frontend passes it on as extra_args.sglang_tito (live notes §3.6).
type Generate struct {
	ID       string // "": that of the request
	Logprobs bool
	Top      int // alternatives of each token
	Start    int // of the prompt's logprobs; -1: none
}

// generateForm is the part of it that counts.
type generateForm struct {
	ID       *string `json:"rid" msgpack:"rid"`
	Logprobs *bool   `json:"return_logprob" msgpack:"return_logprob"`
	Top      *int64  `json:"top_logprobs_num" msgpack:"top_logprobs_num"`
	Start    *int64  `json:"logprob_start_len" msgpack:"logprob_start_len"`
}

// mostTop is the most alternatives of a token.
const mostTop = 20

// parseGenerate reads it; the error is for the client.
func parseGenerate(c Codec, raw []byte) (*Generate, error) {
	var m generateForm
	err := errors.New("it is no object of its form")
	if c == MessagePack {
		if e := msgpack.Unmarshal(raw, &m); e == nil {
			err = nil
		}
	} else if e := json.Unmarshal(raw, &m); e == nil {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("invalid extra_args.sglang_tito: %w", err)
	}
	g := &Generate{Start: -1}
	if m.ID != nil {
		g.ID = *m.ID
	}
	g.Logprobs = m.Logprobs != nil && *m.Logprobs
	if m.Top != nil {
		if *m.Top < 0 || *m.Top > mostTop {
			return nil, errors.New("top_logprobs_num must be between 0 and 20")
		}
		g.Top = int(*m.Top)
	}
	if m.Start != nil {
		if *m.Start < -1 {
			return nil, errors.New("logprob_start_len must be -1 or greater")
		}
		g.Start = int(min(*m.Start, math.MaxInt32))
	}
	return g, nil
}

// raw is a value that is read later, as it was written.
type raw []byte

// DecodeMsgpack keeps the value.
func (r *raw) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := d.DecodeRaw()
	*r = raw(b)
	return err
}

// UnmarshalJSON keeps the value, but for null.
func (r *raw) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		*r = append(raw{}, b...)
	}
	return nil
}

// Native is a frame as SGLang has it, beside the one of Dynamo.
type Native struct {
	Ask    *Generate
	ID     string
	Prompt []uint32
	Answer int // tokens so far
}

// logprob is the made-up chance of a token, as the reference makes it up.
func logprob(token uint32) float64 { return -float64(0.1 * float64(token%10+1)) }

// alternative is the token with rank k after another, and its chance.
func alternative(token uint32, k int) (uint32, float64) {
	t := token + uint32(k)
	return t, logprob(t) - float64(0.01*float64(k))
}

// writer writes one of the two codecs.
type writer struct {
	b    []byte
	json bool
	// JSON: a comma is due, by depth.
	due []bool
}

func (w *writer) open(n int, kind byte) {
	w.next()
	if w.json {
		w.b = append(w.b, kind)
		w.due = append(w.due, false)
		return
	}
	short, long := byte(0x90), byte(0xdc)
	if kind == '{' {
		short, long = 0x80, 0xde
	}
	switch {
	case n < 16:
		w.b = append(w.b, short|byte(n))
	case n < 1<<16:
		w.b = binary.BigEndian.AppendUint16(append(w.b, long), uint16(n))
	default:
		w.b = binary.BigEndian.AppendUint32(append(w.b, long+1), uint32(n))
	}
}

func (w *writer) close(kind byte) {
	if w.json {
		w.b = append(w.b, kind)
		w.due = w.due[:len(w.due)-1]
	}
}

// next begins a value.
func (w *writer) next() {
	if n := len(w.due); w.json && n > 0 {
		if w.due[n-1] {
			w.b = append(w.b, ',')
		}
		w.due[n-1] = true
	}
}

func (w *writer) key(s string) {
	w.text(s)
	if w.json {
		w.b = append(w.b, ':')
		w.due[len(w.due)-1] = false
	}
}

func (w *writer) text(s string) {
	w.next()
	if w.json {
		w.b = cliutil.AppendJSONString(w.b, s)
	} else {
		w.b = str(w.b, s)
	}
}

func (w *writer) null() {
	w.next()
	if w.json {
		w.b = append(w.b, "null"...)
	} else {
		w.b = append(w.b, 0xc0)
	}
}

func (w *writer) number(n int) {
	w.next()
	if w.json {
		w.b = strconv.AppendInt(w.b, int64(n), 10)
	} else {
		w.b = num(w.b, uint64(n))
	}
}

func (w *writer) real(x float64) {
	w.next()
	if w.json {
		w.b = cliutil.AppendSerdeFloat(w.b, x)
	} else {
		w.b = binary.BigEndian.AppendUint64(append(w.b, 0xcb), math.Float64bits(x))
	}
}

// entry is [chance, token, null]; the first of a prompt has no chance.
func (w *writer) entry(token uint32, chance float64, known bool) {
	w.open(3, '[')
	if known {
		w.real(chance)
	} else {
		w.null()
	}
	w.number(int(token))
	w.null()
	w.close(']')
}

// tops are the alternatives of a token.
func (w *writer) tops(token uint32, n int) {
	w.open(n, '[')
	for k := range n {
		t, chance := alternative(token, k)
		w.entry(t, chance, true)
	}
	w.close(']')
}

// append appends the value of engine_data: what SGLang would say with o.
func (n *Native) append(b []byte, c Codec, o *Output) []byte {
	w := &writer{b: b, json: c != MessagePack}
	ended := o.Finish != "" || o.Failure != ""
	fields, ask := 4, n.Ask
	input := ask.Logprobs && ask.Start >= 0 && ended
	for _, more := range []bool{ask.Logprobs, ask.Logprobs && ask.Top > 0, input, input && ask.Top > 0} {
		if more {
			fields++
		}
	}
	w.open(1, '{')
	w.key("sglang_response")
	w.open(2, '{')
	w.key("output_ids")
	var ids []uint32
	if o.HasToken {
		ids = []uint32{o.Token}
	}
	w.open(len(ids), '[')
	for _, id := range ids {
		w.number(int(id))
	}
	w.close(']')
	w.key("meta_info")
	w.open(fields, '{')
	w.key("id")
	w.text(n.ID)
	w.key("finish_reason")
	w.finish(o)
	w.key("prompt_tokens")
	w.number(len(n.Prompt))
	w.key("completion_tokens")
	w.number(n.Answer)
	if ask.Logprobs {
		w.chances("output", ids, 0, ask.Top)
	}
	if input {
		w.chances("input", n.Prompt[min(ask.Start, len(n.Prompt)):], 1, ask.Top)
	}
	w.close('}')
	w.close('}')
	w.close('}')
	return w.b
}

// chances are those of tokens, but for the first few, which have none.
func (w *writer) chances(of string, tokens []uint32, without, top int) {
	w.key(of + "_token_logprobs")
	w.open(len(tokens), '[')
	for i, t := range tokens {
		w.entry(t, logprob(t), i >= without)
	}
	w.close(']')
	if top == 0 {
		return
	}
	w.key(of + "_top_logprobs")
	w.open(len(tokens), '[')
	for i, t := range tokens {
		if i < without {
			w.null()
		} else {
			w.tops(t, top)
		}
	}
	w.close(']')
}

func (w *writer) finish(o *Output) {
	switch {
	case o.Failure != "":
		w.open(2, '{')
		w.key("type")
		w.text("abort")
		w.key("message")
		w.text(o.Failure)
		w.close('}')
	case o.Finish != "":
		w.open(1, '{')
		w.key("type")
		w.text(o.Finish)
		w.close('}')
	default:
		w.null()
	}
}
