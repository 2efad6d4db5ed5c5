package openai

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// whole answers when all of the answer is there.
func (x *exchange) whole(ctx context.Context, w http.ResponseWriter) {
	for open := true; open; {
		select {
		case <-x.wake:
		case <-ctx.Done():
			return
		}
		x.mu.Lock()
		f := x.fail
		open = x.open > 0 && !f.failed()
		x.mu.Unlock()
		if f.failed() {
			x.server.refuse(w, f)
			return
		}
	}
	if !pause(ctx, x.faults.Jitter()) || !pause(ctx, x.faults.Stall) {
		return
	}
	if x.faults.Disconnect {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(x.server.Patience)) // a recorder has none
	respond(w, http.StatusOK, x.object())
}

// object is the whole answer.
func (x *exchange) object() []byte {
	object := "text_completion"
	if x.call.kind == chats {
		object = "chat.completion"
	}
	b := x.head(nil, object)
	b = append(b, `,"choices":[`...)
	for i := range x.choices {
		if i > 0 {
			b = append(b, ',')
		}
		k := &x.choices[i]
		b = append(b, `{"index":`...)
		b = appendInt(b, int64(i))
		if x.call.kind == chats {
			b = k.appendMessage(b)
		} else {
			b = append(b, `,"text":`...)
			b = cliutil.AppendJSONString(b, x.echo(i)+k.text(0, k.tokens, nil))
		}
		b = append(b, `,"logprobs":null,"finish_reason":"`...)
		b = append(b, k.finish()...)
		b = append(b, `"}`...)
	}
	b = append(b, `],"usage":`...)
	return append(x.appendUsage(b), "}\n"...)
}

// head begins an object.
func (x *exchange) head(b []byte, object string) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, x.id...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = appendInt(b, x.created)
	b = append(b, `,"model":`...)
	return cliutil.AppendJSONString(b, x.server.Model)
}

// echo is the prompt of choice i, if it is to be repeated.
func (x *exchange) echo(i int) string {
	if x.call.echoes == nil {
		return ""
	}
	return x.call.echoes[i/x.call.n]
}

// text is that of the tokens from first to end, without those that skip names.
func (k *choice) text(first, end int, skip func(i int) bool) string {
	var b strings.Builder
	for i := first; i < end; i++ {
		if t := k.piece(i); skip == nil || !skip(i) {
			b.WriteString(t)
		}
	}
	return b.String()
}

// appendMessage appends a chat's message, its thoughts apart.
func (k *choice) appendMessage(b []byte) []byte {
	b = append(b, `,"message":{"role":"assistant"`...)
	marks := func(i int) bool {
		_, mark := k.thought(i)
		return mark
	}
	think := min(k.thinking, k.tokens)
	if think > 0 {
		b = append(b, `,"reasoning_content":`...)
		b = cliutil.AppendJSONString(b, k.text(0, think, marks))
	}
	b = append(b, `,"content":`...)
	b = cliutil.AppendJSONString(b, k.text(think, k.tokens, marks))
	return append(b, `,"refusal":null}`...)
}

// appendUsage counts tokens; a prompt with several answers counts once.
func (x *exchange) appendUsage(b []byte) []byte {
	prompt, cached, answers, thoughts := 0, 0, 0, 0
	for i, p := range x.call.prompts {
		prompt += len(p)
		cached += x.choices[i*x.call.n].cached
	}
	for i := range x.choices {
		answers += x.choices[i].tokens
		thoughts += min(x.choices[i].thinking, x.choices[i].tokens)
	}
	b = append(b, `{"prompt_tokens":`...)
	b = appendInt(b, int64(prompt))
	b = append(b, `,"completion_tokens":`...)
	b = appendInt(b, int64(answers))
	b = append(b, `,"total_tokens":`...)
	b = appendInt(b, int64(prompt+answers))
	b = append(b, `,"prompt_tokens_details":{"audio_tokens":null,"cached_tokens":`...)
	b = appendInt(b, int64(cached))
	b = append(b, '}')
	if x.server.Style.Reasoning != nil {
		b = append(b, `,"completion_tokens_details":{"reasoning_tokens":`...)
		b = appendInt(b, int64(thoughts))
		b = append(b, '}')
	}
	return append(b, '}')
}
