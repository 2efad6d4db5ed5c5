package dynamo

import (
	"context"
	"encoding/binary"
	"encoding/hex"
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

	mu     sync.Mutex
	tokens int
	cached int
	last   worker.Signal
	lastMs float64 // when the last token came
}

func (e *ear) Signal(s worker.Signal) {
	now, m := e.site.o.Clock.NowMs(), e.site.o.Meter
	e.mu.Lock()
	if s.First {
		e.cached = s.Cached
	}
	if s.Token {
		if e.tokens++; e.tokens == 1 {
			m.First(s, now-e.cameMs)
		} else {
			m.Next(s, now-e.lastMs)
		}
		e.lastMs = now
	}
	if s.End == worker.Completed {
		m.Done(s, now-e.cameMs)
	}
	e.last = s
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
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
	handoffHere       = "aggregated mocker request cannot carry handoff metadata"
	rejected          = "request rejected: request exceeds worker admission limits"
)

// generate answers a request for tokens.
func (w *unit) generate(ctx context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
	p, err := wire.DecodePreprocessed(c.Codec, body)
	if err != nil {
		to.Invalid(err.Error(), err.Error())
		return true
	}
	recorded, ok := w.recorded(&p)
	dp := w.site.o.Engine.DPSize
	switch {
	case p.Bootstrap:
		to.Invalid(handoffHere, handoffHere)
		return true
	case p.MaxTokens == nil && !ok:
		to.Invalid(noMaxTokens, noMaxTokensPublic)
		return true
	case p.Rank != nil && int64(*p.Rank) >= int64(dp):
		text := fmt.Sprintf("dp_rank %d is out of bounds for dp_size %d", *p.Rank, dp)
		to.Invalid(text, text)
		return true
	}
	q := worker.Request{UUID: w.site.uuid(c.ID), Rank: worker.AnyRank, Tokens: p.TokenIDs}
	if p.Rank != nil {
		q.Rank = int(*p.Rank)
	}
	a := &reply{w: w, p: &p, to: to, id: c.ID, recorded: recorded}
	if q.MaxOutput = len(recorded); !ok {
		q.MaxOutput = int(*p.MaxTokens)
		a.draw = w.site.o.Style.Draw(q.MaxOutput, w.site.o.Seed^binary.BigEndian.Uint64(q.UUID[8:]))
	}
	w.site.o.Meter.Bind(p.Model)
	e := &ear{site: w.site, cameMs: w.site.o.Clock.NowMs(), wake: make(chan struct{}, 1)}
	job := w.loop.Submit(q, e)
	ended := false
	defer func() {
		if !ended {
			job.Cancel()
		}
	}()
	if !to.Flush() { // while the engine works
		return false
	}
	for {
		select {
		case <-e.wake:
		case <-ctx.Done():
			return false
		}
		var complete bool
		if ended, complete = a.say(e.now()); ended {
			return complete
		}
		if !to.Flush() {
			return false
		}
	}
}

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
}

// token is the id of the next token.
func (a *reply) token() uint32 {
	if a.recorded != nil {
		return a.recorded[a.sent]
	}
	return a.draw.Next()
}

// say says what has come. done: that was all; complete: the answer has an end.
func (a *reply) say(tokens, cached int, last worker.Signal) (done, complete bool) {
	told := a.w.site.o.Engine.Backend != config.SGLang // who never tells what is cached
	usage := func(n int) *wire.Usage {
		if !told {
			return nil
		}
		return &wire.Usage{Prompt: len(a.p.TokenIDs), Answer: n, Cached: cached}
	}
	for ; a.sent < tokens; a.sent++ {
		o := wire.Output{Token: a.token(), HasToken: true}
		if a.sent == 0 {
			o.Usage = usage(1)
			if a.p.Rank != nil {
				a.w.marks.Prefilled(a.id, int(*a.p.Rank))
			}
		}
		a.to.Output(o)
	}
	switch last.End {
	case worker.Running:
		return false, false
	case worker.Completed:
		a.to.Output(wire.Output{Finish: "length", Usage: usage(a.sent)})
	case worker.Rejected:
		a.to.Output(wire.Output{Failure: rejected})
	case worker.Unservable:
		a.to.Output(wire.Output{Failure: "the request needs more KV cache than the engine has, and was given up"})
	case worker.Refused:
		a.to.Output(wire.Output{Failure: fmt.Sprintf("the engine does not take the request (code %d)", last.Code)})
	case worker.Closed:
		return true, false
	}
	return true, true
}
