package dynamo

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/answer"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/wire"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// ear hears what becomes of a request. It is a worker's sink.
type ear struct {
	site   *Site
	cameMs float64
	wake   chan struct{} // holds one token: there is something new

	mu      sync.Mutex
	tokens  int
	cached  int
	last    worker.Signal
	lastMs  float64         // when the last token came
	handoff []worker.Signal // facts of it
}

// ear returns one that hears of a request that comes now.
func (w *unit) ear() *ear {
	return &ear{site: w.site, cameMs: w.site.o.Clock.NowMs(), wake: make(chan struct{}, 1)}
}

func (e *ear) Signal(s worker.Signal) {
	e.mu.Lock()
	switch {
	case s.Fact != worker.NoFact:
		e.handoff = append(e.handoff, s)
	default:
		e.heard(s)
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// heard takes a token, or the end.
func (e *ear) heard(s worker.Signal) {
	now, m := e.site.o.Clock.NowMs(), e.site.o.Meter
	whole := e.site.o.Engine.Role != config.Prefill // whose answers are nobody's
	if s.First {
		e.cached = s.Cached
	}
	if s.Token {
		switch e.tokens++; {
		case !whole:
		case e.tokens == 1:
			m.First(s, now-e.cameMs)
		default:
			m.Next(s, now-e.lastMs)
		}
		e.lastMs = now
	}
	if s.End == worker.Completed && whole {
		m.Done(s, now-e.cameMs)
	}
	e.last = s
}

// facts are those of a handoff since the last time.
func (e *ear) facts() []worker.Signal {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.handoff
	e.handoff = nil
	return list
}

func (e *ear) now() (tokens, cached int, last worker.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens, e.cached, e.last
}

// Sentences of the reference that clients see.
const (
	noMaxTokens       = "max_output_tokens must be specified for mocker"
	noMaxTokensPublic = "`max_output_tokens` (or `max_tokens`) is required by the mocker worker"
	rejected          = "request rejected: request exceeds worker admission limits"
)

// generate answers a request for tokens.
func (w *unit) generate(ctx context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
	p, err := wire.DecodePreprocessed(c.Codec, body)
	var unusable wire.Unusable
	switch {
	case errors.As(err, &unusable):
		to.Invalid(err.Error(), "")
		return true
	case err != nil:
		to.Invalid(err.Error(), err.Error())
		return true
	}
	recorded, ok := w.recorded(&p)
	dp, prompts := w.site.o.Engine.DPSize, w.site.o.Engine.Role == config.Prefill
	switch {
	case p.MaxTokens == nil && !ok && !prompts:
		to.Invalid(noMaxTokens, noMaxTokensPublic)
		return true
	case p.Rank != nil && int64(*p.Rank) >= int64(dp):
		text := fmt.Sprintf("dp_rank %d is out of bounds for dp_size %d", *p.Rank, dp)
		to.Invalid(text, text)
		return true
	}
	if why := w.misplaced(&p); why != "" {
		to.Refuse(why)
		return true
	}
	q := worker.Request{UUID: w.site.uuid(c.ID), Rank: w.desk.rank(&p), Tokens: p.TokenIDs}
	a := &reply{w: w, p: &p, to: to, id: c.ID, recorded: recorded}
	switch {
	case prompts:
		q.MaxOutput = 1
	case ok:
		q.MaxOutput = len(recorded)
	default:
		q.MaxOutput = int(*p.MaxTokens)
	}
	if !ok {
		a.draw = w.site.o.Style.Draw(q.MaxOutput, w.site.o.Seed^binary.BigEndian.Uint64(q.UUID[8:]))
	}
	if q.MaxOutput == 0 {
		to.Refuse(noTokens)
		return true
	}
	if err := w.desk.enter(q.UUID); err != nil {
		to.Refuse(err.Error())
		return true
	}
	defer w.desk.leave(q.UUID)
	if !prompts {
		w.site.o.Meter.Bind(p.Model)
	}
	if p.Bootstrap != nil && p.Bootstrap.Handoff != nil {
		return w.handOver(ctx, a, q)
	}
	return w.alone(ctx, a, q)
}

// alone answers a request that has nothing to do with other workers.
func (w *unit) alone(ctx context.Context, a *reply, q worker.Request) bool {
	e := w.ear()
	job := w.loop.Submit(q, e)
	ended := false
	defer func() {
		if !ended {
			job.Cancel()
		}
	}()
	if !a.to.Flush() { // while the engine works
		return false
	}
	for {
		select {
		case <-e.wake:
		case <-ctx.Done():
			return false
		}
		var complete bool
		if ended, complete = a.hear(ctx, e); ended {
			return complete
		}
		if !a.to.Flush() {
			return false
		}
	}
}

// hear says what has come. The end of a prompt that is handed over directly comes
// when its blocks have been moved.
func (a *reply) hear(ctx context.Context, e *ear) (done, complete bool) {
	tokens, cached, last := e.now()
	if last.End == worker.Completed && a.prompts() {
		last.End = worker.Running
		a.say(tokens, cached, last)
		if !a.to.Flush() || !a.w.sleep(ctx, a) {
			return true, false
		}
		a.finish()
		return true, true
	}
	return a.say(tokens, cached, last)
}

// prompts reports whether only the prompt is computed here.
func (a *reply) prompts() bool { return a.w.site.o.Engine.Role == config.Prefill }

// recorded is the answer that the request names, if there is one.
func (w *unit) recorded(p *wire.Preprocessed) ([]uint32, bool) {
	key, ok := p.Annotation(answer.Annotation)
	if !ok {
		return nil, false
	}
	ids, ok := w.site.o.Recorded[key]
	if !ok {
		w.site.o.Log.Warn("no answer is recorded under this key; a random one is given", "key", key)
	}
	return ids, ok
}

// uuid is the id of a request in the engine: that of the control message, or
// one of our own where that is none.
func (s *Site) uuid(text string) (id [16]byte) {
	if b, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil && len(b) == 16 {
		copy(id[:], b)
		return id
	}
	binary.BigEndian.PutUint64(id[:], s.count.Add(1))
	binary.BigEndian.PutUint64(id[8:], random(64))
	return id
}

// reply is an answer under way.
type reply struct {
	w        *unit
	p        *wire.Preprocessed
	to       *plane.Stream
	id       string
	recorded []uint32    // nil: tokens are drawn
	draw     answer.Draw // else
	sent     int
	cached   int
}

// token is the id of the next token.
func (a *reply) token() uint32 {
	if a.recorded != nil {
		return a.recorded[a.sent]
	}
	return a.draw.Next()
}

// usage counts tokens, nil if the engine does not say what was cached.
func (a *reply) usage() *wire.Usage {
	if a.w.site.o.Engine.Backend == config.SGLang {
		return nil
	}
	return &wire.Usage{Prompt: len(a.p.TokenIDs), Answer: a.sent, Cached: a.cached}
}

// finish says that all tokens have come.
func (a *reply) finish() { a.output(wire.Output{Finish: "length", Usage: a.usage()}) }

// output says one frame.
func (a *reply) output(o wire.Output) {
	if g := a.p.Generate; g != nil {
		o.Native = &wire.Native{Ask: g, ID: g.ID, Prompt: a.p.TokenIDs, Answer: a.sent}
		if g.ID == "" {
			o.Native.ID = a.id
		}
	}
	a.to.Output(o)
}

// say says what has come. done: that was all; complete: the answer has an end.
func (a *reply) say(tokens, cached int, last worker.Signal) (done, complete bool) {
	a.cached = cached
	for a.sent < tokens {
		o := wire.Output{Token: a.token(), HasToken: true, Handoff: a.prompts()}
		if a.sent++; a.sent == 1 {
			o.Usage = a.usage()
			if a.p.Rank != nil && a.w.marks != nil {
				a.w.marks.Prefilled(a.id, int(*a.p.Rank))
			}
		}
		if a.p.Generate != nil && a.sent == tokens && last.End == worker.Completed { // as SGLang does
			o.Finish, o.Usage = "length", a.usage()
			a.output(o)
			return true, true
		}
		a.output(o)
	}
	switch last.End {
	case worker.Running:
		return false, false
	case worker.Completed:
		a.finish()
	case worker.Rejected:
		a.output(wire.Output{Failure: rejected})
	case worker.Unservable:
		a.output(wire.Output{Failure: "the request needs more KV cache than the engine has, and was given up"})
	case worker.Refused:
		a.output(wire.Output{Failure: fmt.Sprintf("the engine does not take the request (code %d)", last.Code)})
	case worker.Closed:
		return true, false
	}
	return true, true
}
