package sglang

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/moments"
	"github.com/dryserve/dryserve/core/seq"
)

// decode is a step of the running requests: each gets its next tokens
// (engine notes §6.3).
func (e *Rank) decode() {
	p := &e.pass
	kept := e.running[:0]
	var lengths moments.Moments
	for _, h := range e.running {
		r := &e.requests.slab[h]
		if r.remaining() == 0 { // a destination that wants no token
			e.completeSilently(h)
			continue
		}
		kept = append(kept, h)
		lengths.Add(r.len())
	}
	e.running = kept
	p.hadDecodes = len(kept) > 0
	p.forward.Decodes, p.forward.DecodeKVTokens, p.forward.DecodeVariance = lengths.N(), lengths.Sum(), lengths.Variance()
	if len(kept) == 0 {
		return
	}
	growth := e.retract()
	if !e.makeRoom(growth) {
		p.stuck = true
		return
	}
	p.decoded = true
	p.timed.Decodes = len(e.running)
	for _, h := range e.running {
		p.timed.SumLen += e.requests.slab[h].len()
	}
	kept = e.running[:0]
	for _, h := range e.running {
		e.out.Committed = append(e.out.Committed, h)
		if !e.burst(h) {
			kept = append(kept, h)
		}
	}
	e.running = kept
}

// maxBurst is the largest number of tokens a request gets in one step.
func (e *Rank) maxBurst() int {
	if e.cfg.Role == config.Prefill {
		return 1
	}
	return e.bursts.Most()
}

// growth is the number of pages that the running requests need for the step.
func (e *Rank) growth() int {
	burst, pages := e.maxBurst(), 0
	for _, h := range e.running {
		r := &e.requests.slab[h]
		pages += max(e.pagesFor(r.len()+min(burst, r.remaining()))-len(r.pages), 0)
	}
	return pages
}

// retract takes requests out of the running batch until the others have room,
// or one is left: each time the one that has generated least. It gives up its
// KV, keeps what it has generated, and waits at the end of the queue. The pages
// that the others need are returned.
func (e *Rank) retract() (growth int) {
	p := &e.pass
	growth = e.growth()
	for growth > e.logicalPages() && len(e.running) > 1 {
		least := 0
		for i, h := range e.running {
			if e.requests.slab[h].generated < e.requests.slab[e.running[least]].generated {
				least = i
			}
		}
		h := e.running[least]
		r := &e.requests.slab[h]
		event := engine.Pressure{
			Req: h, Tag: r.tag, Before: e.load(), OwnBlocks: len(r.pages),
			AvailableBlocks: e.logicalPages(), RequiredBlocks: growth,
		}
		e.running = remove(e.running, h)
		e.drop(r)
		r.status = retracted
		p.retracted = append(p.retracted, h)
		event.After = e.load()
		e.out.Pressure = append(e.out.Pressure, event)
		growth = e.growth()
	}
	if len(p.retracted) > 0 {
		generated, maxOutput := 0, 0
		for _, h := range e.running {
			generated += e.requests.slab[h].generated
			maxOutput += e.requests.slab[h].maxOutput
		}
		e.ratio.retracted(len(e.running), generated, maxOutput)
	}
	return growth
}

func (e *Rank) load() engine.Load {
	return engine.Load{Running: len(e.running), ActiveBlocks: e.activePages()}
}

// burst gives a request the tokens of one step and reports whether it is
// complete. What speculation yields is counted before the output's end cuts it
// (engine notes §9).
func (e *Rank) burst(h engine.Handle) (complete bool) {
	r := &e.requests.slab[h]
	accepted := 1
	if e.maxBurst() > 1 {
		accepted = e.bursts.Next()
	}
	e.pass.acceptance.Forwards++
	e.pass.acceptance.AcceptedTokens += accepted
	for range min(accepted, r.remaining()) {
		complete = e.nextToken(h)
	}
	return complete
}

// nextToken appends a token that has KV; room for it has been made. A page
// that it completes enters the cache, unless it is the last, which leaves that
// to the request's end.
func (e *Rank) nextToken(h engine.Handle) (complete bool) {
	r := &e.requests.slab[h]
	if r.len()+1 > len(r.pages)*e.cfg.BlockSize {
		r.pages, _ = e.cache.Allocate(r.pages, 1)
	}
	r.computed++
	if e.token(h) {
		return true
	}
	e.cachePrefix(r)
	return false
}

// token appends the request's next token and reports whether it is the last.
func (e *Rank) token(h engine.Handle) (complete bool) {
	r := &e.requests.slab[h]
	o := engine.Output{Req: h, Tag: r.tag, HasToken: true}
	if r.hasPlan {
		o.Token = r.planned[r.generated]
	} else {
		o.Token = seq.OutputToken(r.uuid, uint64(r.generated))
	}
	r.tokens.Append(o.Token)
	r.generated++
	if r.remaining() == 0 {
		o.Completed = true
		e.pass.done = append(e.pass.done, h)
	}
	e.pass.outputs = append(e.pass.outputs, o)
	return o.Completed
}

// completeSilently completes a request that wants no token.
func (e *Rank) completeSilently(h engine.Handle) {
	e.pass.outputs = append(e.pass.outputs, engine.Output{Req: h, Tag: e.requests.slab[h].tag, Completed: true})
	e.pass.done = append(e.pass.done, h)
}
