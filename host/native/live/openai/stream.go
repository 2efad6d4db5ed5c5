package openai

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// stream is an answer under way.
type stream struct {
	x     *exchange
	w     http.ResponseWriter
	out   *http.ResponseController
	buf   []byte
	head  []byte // of every event
	begun bool
	due   progress // of the workers
	fault breakage
}

// progress is how far the choices are.
type progress struct {
	tokens []int
	ended  []bool
	fail   failure
}

// breakage is where in the answer something goes wrong, in tokens of all choices;
// -1: nowhere.
type breakage struct {
	stall, breaks int
	sent          int
	slow          bool // events go one by one
}

// stream answers with an event for each token, as they come.
func (x *exchange) stream(ctx context.Context, w http.ResponseWriter) {
	object := "text_completion"
	if x.call.kind == chats {
		object = "chat.completion.chunk"
	}
	s := &stream{x: x, w: w, out: http.NewResponseController(w)}
	s.head = append(x.head([]byte("data: "), object), `,"choices":[`...)
	s.due.tokens, s.due.ended = make([]int, len(x.choices)), make([]bool, len(x.choices))
	s.fault = x.faultsAt()
	for {
		select {
		case <-x.wake:
		case <-ctx.Done():
			return
		}
		x.mu.Lock()
		s.due.fail = x.fail
		for i := range x.choices {
			s.due.tokens[i], s.due.ended[i] = x.choices[i].tokens, x.choices[i].ended
		}
		x.mu.Unlock()
		if !s.begun {
			if s.due.fail.failed() && !slices.ContainsFunc(s.due.tokens, func(n int) bool { return n > 0 }) {
				x.server.refuse(w, s.due.fail)
				return
			}
			s.begin()
		}
		if done, ok := s.send(ctx); done || !ok {
			return
		}
	}
}

// faultsAt places the faults of the request in its answer.
func (x *exchange) faultsAt() breakage {
	total := 0
	for i := range x.choices {
		total += len(x.choices[i].ids)
	}
	f := breakage{stall: -1, breaks: -1}
	if x.faults.Stall > 0 {
		f.stall = int(x.faults.StallAt * float64(total))
	}
	if x.faults.Disconnect {
		f.breaks = int(x.faults.BreakAt * float64(total))
	}
	f.slow = x.faults.Rough()
	return f
}

// begin sends the headers.
func (s *stream) begin() {
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
}

// send sends what has come. done: that was all. ok is false if the client has
// gone.
func (s *stream) send(ctx context.Context) (done, ok bool) {
	x := s.x
	done = true
	for i := range x.choices {
		k := &x.choices[i]
		for ; k.sent < s.due.tokens[i]; k.sent++ {
			if !s.hold(ctx) {
				return false, false
			}
			s.token(i, k)
			if s.fault.slow && !s.push() {
				return false, false
			}
		}
		if s.due.ended[i] && !k.done && !s.due.fail.failed() {
			k.done = true
			s.end(i, k)
		}
		done = done && k.done
	}
	switch {
	case s.due.fail.failed():
		s.buf = append(append(append(s.buf, "data: "...), s.due.fail.object()...), "\n\n"...)
		done = true
	case done:
		if x.call.usage {
			s.buf = append(s.buf, s.head...)
			s.buf = append(s.buf, `],"usage":`...)
			s.buf = append(x.appendUsage(s.buf), "}\n\n"...)
		}
		s.buf = append(s.buf, "data: [DONE]\n\n"...)
	}
	return done, s.push()
}

// hold lets the faults of the next token happen.
func (s *stream) hold(ctx context.Context) bool {
	f := &s.fault
	if !f.slow {
		return true
	}
	if f.sent == f.breaks {
		panic(http.ErrAbortHandler)
	}
	if f.sent == f.stall && !pause(ctx, s.x.faults.Stall) {
		return false
	}
	f.sent++
	return pause(ctx, s.x.faults.Jitter())
}

// push writes what is ready.
func (s *stream) push() bool {
	if len(s.buf) == 0 {
		return true
	}
	_ = s.out.SetWriteDeadline(time.Now().Add(s.x.server.Patience)) // a recorder has none
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err == nil && s.out.Flush() == nil
}

// token appends the event of the next token.
func (s *stream) token(i int, k *choice) {
	text := k.piece(k.sent)
	s.buf = append(s.buf, s.head...)
	s.buf = append(s.buf, `{"index":`...)
	s.buf = appendInt(s.buf, int64(i))
	if s.x.call.kind == completions {
		if k.sent == 0 {
			text = s.x.echo(i) + text
		}
		s.buf = append(s.buf, `,"text":`...)
		s.buf = cliutil.AppendJSONString(s.buf, text)
	} else {
		s.buf = append(s.buf, `,"delta":{`...)
		if k.sent == 0 {
			s.buf = append(s.buf, `"role":"assistant",`...)
		}
		thought, mark := k.thought(k.sent)
		if mark {
			text = ""
		}
		if thought {
			s.buf = append(s.buf, `"reasoning_content":`...)
		} else {
			s.buf = append(s.buf, `"content":`...)
		}
		s.buf = append(cliutil.AppendJSONString(s.buf, text), '}')
	}
	s.buf = append(s.buf, `,"logprobs":null,"finish_reason":null}]`...)
	s.close()
}

// end appends the event that ends a choice.
func (s *stream) end(i int, k *choice) {
	s.buf = append(s.buf, s.head...)
	s.buf = append(s.buf, `{"index":`...)
	s.buf = appendInt(s.buf, int64(i))
	if s.x.call.kind == completions {
		s.buf = append(s.buf, `,"text":""`...)
	} else {
		s.buf = append(s.buf, `,"delta":{}`...)
	}
	s.buf = append(s.buf, `,"logprobs":null,"finish_reason":"`...)
	s.buf = append(s.buf, k.finish()...)
	s.buf = append(s.buf, `"}]`...)
	s.close()
}

// close ends an event that has choices.
func (s *stream) close() {
	if s.x.call.usage {
		s.buf = append(s.buf, `,"usage":null`...)
	}
	s.buf = append(s.buf, "}\n\n"...)
}
