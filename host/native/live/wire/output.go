package wire

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Output is one frame of an answer.
type Output struct {
	Token    uint32
	HasToken bool
	Finish   string // "": not the end; length, cancelled
	Failure  string // finishes with an error
	Handoff  bool   // it is the first half of an answer: another worker decodes
	Usage    *Usage
	Native   *Native // as SGLang has it; nil: nobody asked for that
}

// handoffParams is what the first half of an answer tells the second, which
// needs nothing.
const handoffParams = "dummy"

// Usage counts tokens.
type Usage struct{ Prompt, Answer, Cached int }

// AppendOutput appends a frame of the response stream.
func AppendOutput(b []byte, c Codec, o Output) []byte {
	first := len(b)
	b = append(b, make([]byte, twoPartHead)...)
	if c == MessagePack {
		b = o.msgpack(b)
	} else {
		b = o.json(b)
	}
	binary.BigEndian.PutUint64(b[first+8:], uint64(len(b)-first-twoPartHead))
	return b
}

// msgpack appends the body: {"data": {"data": output}, "complete_final": false}.
func (o *Output) msgpack(b []byte) []byte {
	fields := 9
	for _, more := range []bool{o.Handoff, o.Usage != nil, o.Native != nil} {
		if more {
			fields++
		}
	}
	b = append(b, 0x82)
	b = append(str(b, "data"), 0x81)
	b = append(str(b, "data"), 0x80|byte(fields))
	b = str(b, "token_ids")
	if o.HasToken {
		b = num(append(b, 0x91), uint64(o.Token))
	} else {
		b = append(b, 0x90)
	}
	for _, name := range []string{"tokens", "text"} {
		b = append(str(b, name), 0xc0)
	}
	b = str(str(b, "output_type"), "text")
	for _, name := range []string{"cum_log_probs", "log_probs", "top_logprobs"} {
		b = append(str(b, name), 0xc0)
	}
	b = str(b, "finish_reason")
	switch {
	case o.Failure != "":
		b = str(str(append(b, 0x81), "error"), o.Failure)
	case o.Finish != "":
		b = str(b, o.Finish)
	default:
		b = append(b, 0xc0)
	}
	b = append(str(b, "index"), 0xc0)
	if o.Handoff {
		b = str(str(b, "disaggregated_params"), handoffParams)
	}
	if u := o.Usage; u != nil {
		b = append(str(b, "completion_usage"), 0x84)
		b = num(str(b, "prompt_tokens"), uint64(u.Prompt))
		b = num(str(b, "completion_tokens"), uint64(u.Answer))
		b = num(str(b, "total_tokens"), uint64(u.Prompt+u.Answer))
		b = append(str(b, "prompt_tokens_details"), 0x82)
		b = append(str(b, "audio_tokens"), 0xc0)
		b = num(str(b, "cached_tokens"), uint64(u.Cached))
	}
	if o.Native != nil {
		b = o.Native.append(str(b, "engine_data"), MessagePack, o)
	}
	return append(str(b, "complete_final"), 0xc2)
}

// json appends the same as JSON.
func (o *Output) json(b []byte) []byte {
	b = append(b, `{"data":{"data":{"token_ids":[`...)
	if o.HasToken {
		b = strconv.AppendUint(b, uint64(o.Token), 10)
	}
	b = append(b, `],"tokens":null,"text":null,"output_type":"text","cum_log_probs":null,"log_probs":null,"top_logprobs":null,"finish_reason":`...)
	switch {
	case o.Failure != "":
		b = append(cliutil.AppendJSONString(append(b, `{"error":`...), o.Failure), '}')
	case o.Finish != "":
		b = cliutil.AppendJSONString(b, o.Finish)
	default:
		b = append(b, "null"...)
	}
	b = append(b, `,"index":null`...)
	if o.Handoff {
		b = append(b, `,"disaggregated_params":"`+handoffParams+`"`...)
	}
	if u := o.Usage; u != nil {
		b = fmt.Appendf(b, `,"completion_usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"audio_tokens":null,"cached_tokens":%d}}`,
			u.Prompt, u.Answer, u.Prompt+u.Answer, u.Cached)
	}
	if o.Native != nil {
		b = o.Native.append(append(b, `,"engine_data":`...), JSON, o)
	}
	return append(b, `}},"complete_final":false}`...)
}

// AppendInvalid appends an item that tells the client what is wrong with its
// request: message is for logs, public for the client, if that has words of its own.
func AppendInvalid(b []byte, c Codec, message, public string) []byte {
	fields := [][2]string{{"error_type", "InvalidArgument"}, {"class", "InvalidRequest"}, {"reason", "request.invalid_argument"}, {"message", message}, {"diagnostic", message}}
	var body []byte
	if c == MessagePack {
		body = append(str(append(body, 0x82), "data"), 0x82)
		body = str(str(body, "event"), "error")
		body = append(str(body, "error"), 0x85)
		if public != "" {
			body[len(body)-1]++
		}
		for _, f := range fields {
			body = str(str(body, f[0]), f[1])
		}
		if public != "" {
			body = append(str(body, "public"), 0x82)
			body = str(str(str(str(body, "type"), "message"), "message"), public)
		}
		body = append(str(body, "complete_final"), 0xc2)
	} else {
		body = append(body, `{"data":{"event":"error","error":{`...)
		for i, f := range fields {
			if i > 0 {
				body = append(body, ',')
			}
			body = cliutil.AppendJSONString(append(cliutil.AppendJSONString(body, f[0]), ':'), f[1])
		}
		if public != "" {
			body = append(cliutil.AppendJSONString(append(body, `,"public":{"type":"message","message":`...), public), '}')
		}
		body = append(body, `}},"complete_final":false}`...)
	}
	return AppendTwoPart(b, nil, body)
}

// AppendItem appends an item whose body is already written in the codec, such as
// the answer to a query.
func AppendItem(b []byte, c Codec, body []byte) []byte {
	var whole []byte
	if c == MessagePack {
		whole = append(str(append(whole, 0x82), "data"), body...)
		whole = append(str(whole, "complete_final"), 0xc2)
	} else {
		whole = append(append(append(whole, `{"data":`...), body...), `,"complete_final":false}`...)
	}
	return AppendTwoPart(b, nil, whole)
}

// AppendFinal appends the end of a complete answer.
func AppendFinal(b []byte, c Codec) []byte {
	if c == MessagePack {
		return AppendTwoPart(b, nil, append(str([]byte{0x81}, "complete_final"), 0xc3))
	}
	return AppendTwoPart(b, nil, []byte(`{"complete_final":true}`))
}

// AppendHandshake appends the first frame of a response stream.
func AppendHandshake(b []byte, subject string) []byte {
	head := append(cliutil.AppendJSONString([]byte(`{"subject":`), subject), `,"stream_type":"response"}`...)
	return AppendTwoPart(b, head, nil)
}

// AppendPrologue appends the second: the stream begins, or why it does not.
func AppendPrologue(b []byte, failure string) []byte {
	if failure == "" {
		return AppendTwoPart(b, []byte(`{"error":null}`), nil)
	}
	head := cliutil.AppendJSONString([]byte(`{"error":`), "Generate Error: "+failure)
	head = append(head, `,"typed_error":{"error_type":"Unknown","class":"Internal","reason":"runtime.unclassified","message":`...)
	head = append(cliutil.AppendJSONString(head, failure), `,"diagnostic":`...)
	return AppendTwoPart(b, append(cliutil.AppendJSONString(head, failure), "}}"...), nil)
}

// AppendSentinel appends the last.
func AppendSentinel(b []byte) []byte { return AppendTwoPart(b, []byte(`"sentinel"`), nil) }

// str appends a text in MessagePack.
func str(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

// num appends a number in MessagePack, as short as it can be.
func num(b []byte, n uint64) []byte {
	switch {
	case n < 1<<7:
		return append(b, byte(n))
	case n < 1<<8:
		return append(b, 0xcc, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}
