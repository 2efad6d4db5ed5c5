package openai

import (
	"context"
	"encoding/binary"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/host/native/live/books"
	"github.com/dryserve/dryserve/host/native/live/fault"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/tokenizer"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// exchange is a request and its answers, while they come.
type exchange struct {
	server  *Server
	call    *call
	id      string
	created int64
	faults  fault.Plan
	cameMs  float64
	choices []choice
	jobs    []*fleet.Job
	wake    chan struct{} // holds one token: there is something new

	mu   sync.Mutex
	open int // choices that have not ended
	fail failure
}

// choice is one answer. It is a worker's sink.
type choice struct {
	x        *exchange
	ids      []uint32
	pieces   []string // the text of each token, where a stop string cuts; else nil
	thinking int      // tokens at the beginning that are thoughts
	stopped  bool     // the answer ends by a stop string or token

	// Guarded by the exchange's lock.
	tokens int
	ended  bool
	cached int
	lastMs float64 // when the last token came
	booked *books.Request

	// Of the handler.
	decoder tokenizer.Decoder
	sent    int
	done    bool
}

// newExchange plans the answers to a request that came at cameMs.
func (s *Server) newExchange(c *call, n uint64, plan fault.Plan, cameMs float64) (*exchange, failure) {
	x := &exchange{server: s, call: c, created: time.Now().Unix(), faults: plan, cameMs: cameMs, wake: make(chan struct{}, 1)}
	prefix := "cmpl-"
	if c.kind == chats {
		prefix = "chatcmpl-"
	}
	x.id = prefix + strconv.FormatUint(mix(s.Seed, n), 16)
	x.choices = make([]choice, len(c.prompts)*c.n)
	x.open = len(x.choices)
	for i := range x.choices {
		k := &x.choices[i]
		k.x, k.decoder = x, s.Tokenizer.Decoder()
		if f := s.plan(k, c.prompts[i/c.n], mix(s.Seed^1, n)+uint64(i), uint64(i)); f.failed() {
			return nil, f
		}
	}
	return x, failure{}
}

// mix makes a seed of two numbers.
func mix(a, b uint64) uint64 {
	x := rng.Wyrand(a)
	y := rng.Wyrand(x.Uint64() ^ b)
	return y.Uint64()
}

// plan decides what a choice says.
func (s *Server) plan(k *choice, prompt []uint32, seed, number uint64) failure {
	c := k.x.call
	length, room := c.maxTokens, s.ContextTokens-len(prompt)
	field := "messages"
	if c.kind == completions {
		field = "prompt"
	}
	if room < 1 {
		return tooLong(field, "the prompt has %d tokens; this model's maximum context length is %d tokens, answer included", len(prompt), s.ContextTokens)
	}
	if length == 0 {
		if length = s.ChatTokens; c.kind == completions {
			length = completionTokens
		}
		length = min(max(length, c.minTokens), room)
	}
	recorded, ok := s.Recorded[c.record]
	if c.record != "" && !ok {
		s.Log.Warn("no answer is recorded under this key; a random one is given", "key", c.record)
	}
	if ok {
		length = len(recorded)
	}
	if length > room {
		return tooLong(field, "this model's maximum context length is %d tokens; the request asks for %d: %d of the prompt and %d of the answer", s.ContextTokens, len(prompt)+length, len(prompt), length)
	}
	if ok {
		k.ids = recorded
	} else {
		if c.seed != nil {
			seed = mix(uint64(*c.seed), number)
		}
		k.ids = s.Style.Append(make([]uint32, 0, length), length, seed)
		k.thinking = s.Style.Thinking(length)
	}
	k.cut(c)
	return failure{}
}

// cut ends the answer at the first token that ends it, or at the first stop
// string, whose text is left out.
func (k *choice) cut(c *call) {
	if len(c.ends) > 0 {
		for i, id := range k.ids {
			if i >= c.minTokens && slices.Contains(c.ends, id) {
				k.ids, k.stopped = k.ids[:i+1], true
				break
			}
		}
	}
	if len(c.stops) == 0 {
		return
	}
	longest := 0
	for _, s := range c.stops {
		longest = max(longest, len(s))
	}
	decoder, text := k.x.server.Tokenizer.Decoder(), ""
	var at []int // by token: where its text ends
	for i, id := range k.ids {
		before := len(text)
		text += decoder.Add(id)
		if i == len(k.ids)-1 {
			text += decoder.Flush()
		}
		at = append(at, len(text))
		if i < c.minTokens {
			continue
		}
		if end := firstStop(text, max(0, before-longest+1), c.stops); end >= 0 {
			k.ids, k.stopped, k.pieces = k.ids[:i+1], true, make([]string, i+1)
			start := 0
			for j := range k.pieces {
				stop := min(at[j], end)
				k.pieces[j] = text[start:stop]
				start = stop
			}
			return
		}
	}
}

// firstStop is where the first stop string begins, -1: nowhere.
func firstStop(text string, from int, stops []string) int {
	first := -1
	for _, s := range stops {
		if i := strings.Index(text[from:], s); i >= 0 && (first < 0 || from+i < first) {
			first = from + i
		}
	}
	return first
}

// start brings the choices to the workers.
func (x *exchange) start(n uint64) failure {
	s := x.server
	for i := range x.choices {
		k := &x.choices[i]
		q := fleet.Request{Tokens: x.call.prompts[i/x.call.n], OutputIDs: k.ids, CameMs: x.cameMs}
		binary.BigEndian.PutUint64(q.UUID[:], n)
		binary.BigEndian.PutUint64(q.UUID[8:], uint64(i))
		if s.Books != nil {
			k.booked = s.Books.Arrive(len(q.Tokens), x.cameMs)
		}
		job, err := s.Backend.Submit(q, k)
		if err != nil {
			k.book(books.Rejected)
			return unavailable(err.Error())
		}
		x.jobs = append(x.jobs, job)
	}
	return failure{}
}

// cancel takes the choices from the workers; those that have ended are not
// there any more.
func (x *exchange) cancel() {
	for _, j := range x.jobs {
		j.Cancel()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.choices {
		x.choices[i].book(books.Cancelled)
	}
}

// book notes the end of a choice, if it is the first.
func (k *choice) book(how books.End) {
	if k.booked != nil {
		k.booked.End(how, k.cached, k.x.server.Clock.NowMs())
	}
}

// bookEnd is the word of the books for the end of a worker's request.
func bookEnd(e worker.End) books.End {
	switch e {
	case worker.Completed:
		return books.Completed
	case worker.Unservable:
		return books.Failed
	case worker.Closed:
		return books.Cancelled
	}
	return books.Rejected
}

// Signal is told by the choice's worker.
func (k *choice) Signal(sig worker.Signal) {
	x, m := k.x, k.x.server.Meter
	now := x.server.Clock.NowMs()
	x.mu.Lock()
	if sig.First {
		k.cached = sig.Cached
	}
	if sig.Token {
		if k.tokens++; m != nil && k.tokens == 1 {
			m.First(sig, now-x.cameMs)
		} else if m != nil {
			m.Next(sig, now-k.lastMs)
		}
		k.lastMs = now
		if k.booked != nil {
			k.booked.Token(now)
		}
	}
	if sig.End != worker.Running {
		k.ended = true
		k.book(bookEnd(sig.End))
		x.open--
		if f := endFailure(sig); f.failed() && !x.fail.failed() {
			x.fail = f
		} else if m != nil {
			m.Done(sig, now-x.cameMs)
		}
	}
	tell := x.call.stream || x.open == 0 || x.fail.failed()
	x.mu.Unlock()
	if tell {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// finish is OpenAI's finish_reason.
func (k *choice) finish() string {
	if k.stopped && k.tokens == len(k.ids) {
		return "stop"
	}
	return "length"
}

// piece is the text of token i; tokens are asked for in order.
func (k *choice) piece(i int) string {
	if k.pieces != nil {
		return k.pieces[i]
	}
	text := k.decoder.Add(k.ids[i])
	if i == len(k.ids)-1 {
		text += k.decoder.Flush()
	}
	return text
}

// thought reports whether token i belongs to the thoughts, and mark, whether it
// only opens or closes them.
func (k *choice) thought(i int) (thought, mark bool) {
	return i < k.thinking, k.thinking > 0 && (i == 0 || i == k.thinking-1)
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, kind kind) {
	cameMs := s.Clock.NowMs()
	if !s.enter() {
		s.refuse(w, unavailable("the server is shutting down"))
		return
	}
	defer s.leave()
	plan := s.Faults.Next(time.Now())
	if plan.Wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((plan.Wait+time.Second-1)/time.Second)))
		s.refuse(w, failure{http.StatusTooManyRequests, limited, "", "rate_limit_exceeded", "the rate limit is reached; try again in " + plan.Wait.Round(time.Millisecond).String()})
		return
	}
	if plan.Status != 0 {
		s.refuse(w, made(plan.Status))
		return
	}
	c, f := s.read(w, r, kind)
	if f.failed() {
		s.refuse(w, f)
		return
	}
	n := s.count.Add(1)
	x, f := s.newExchange(c, n, plan, cameMs)
	if f.failed() {
		s.refuse(w, f)
		return
	}
	if s.Meter != nil {
		s.Meter.Bind(s.Model)
	}
	defer x.cancel()
	w.Header().Set("X-Request-Id", x.id)
	if f := x.start(n); f.failed() {
		s.refuse(w, f)
		return
	}
	if c.stream {
		x.stream(r.Context(), w)
	} else {
		x.whole(r.Context(), w)
	}
	s.Log.Debug("served", "id", x.id, "choices", len(x.choices), "stream", c.stream, "ms", s.Clock.NowMs()-x.cameMs)
}

// pause waits, or reports that the client has gone.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
