package engine

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/seq"
)

// emit ends the pass's work for every running request whose tokens are all
// computed: it gets its next token, or completes without one if it wants none.
// It fills the pass's outputs and says what is decoded (engine notes §4.5).
func (e *Engine) emit() {
	p := &e.pass
	p.ready = p.ready[:0]
	for _, h := range e.running {
		r := &e.requests.slab[h]
		switch {
		case r.computed < r.len():
		case e.remaining(r) == 0:
			o := e.signal(h)
			o.Completed = true
			p.outputs = append(p.outputs, o)
			e.complete(h)
		default:
			p.ready = append(p.ready, h)
		}
	}
	if e.cfg.MTP.Drafts > 0 {
		e.running = e.stillRunning(e.running)
		e.reserveBursts()
	}
	p.work.Decodes, p.work.SumLen = e.decoding()
	for _, h := range p.ready {
		if e.cfg.MTP.Drafts > 0 {
			e.emitBurst(h)
			continue
		}
		if e.requests.slab[h].prompt == 0 {
			p.acceptance.Forwards++
			p.acceptance.AcceptedTokens++
		}
		e.emitToken(h)
	}
	e.pool.Release(p.reserve)
	p.reserve = p.reserve[:0]
	for _, h := range p.rejected {
		p.outputs = append(p.outputs, Output{Req: h, Tag: e.requests.slab[h].tag, Completed: true, Rejected: true})
	}
	e.running = e.stillRunning(e.running)
}

// stillRunning keeps the requests of a list that run.
func (e *Engine) stillRunning(list []Handle) []Handle {
	kept := list[:0]
	for _, h := range list {
		if e.requests.slab[h].status == running {
			kept = append(kept, h)
		}
	}
	return kept
}

// decoding counts the ready requests that are charged for decoding, and their
// tokens. On an aggregated worker without speculation the first token of a
// request whose prompt was computed in this pass comes out of that computation
// and is not decoding. A prefill worker charges nothing.
func (e *Engine) decoding() (decodes, sumLen int) {
	if e.cfg.Role == config.Prefill {
		return 0, 0
	}
	free := e.cfg.Role == config.Aggregated && e.cfg.MTP.Drafts == 0
	for _, h := range e.pass.ready {
		r := &e.requests.slab[h]
		if free && r.generated == 0 && r.prompt > 0 {
			continue
		}
		decodes++
		sumLen += r.len()
	}
	return decodes, sumLen
}

// emitToken appends the request's next token; the last one completes it. The
// token has no KV until a later pass computes it, so the last never has.
func (e *Engine) emitToken(h Handle) {
	r := &e.requests.slab[h]
	o := e.signal(h)
	o.HasToken = true
	if r.hasPlan {
		o.Token = r.planned[r.generated]
	} else {
		o.Token = seq.OutputToken(r.uuid, uint64(r.generated))
	}
	r.tokens.Append(o.Token)
	r.generated++
	r.emitted = true
	if e.remaining(r) == 0 {
		o.Completed = true
		e.complete(h)
	}
	e.pass.outputs = append(e.pass.outputs, o)
}

// signal begins an output; a request's first one tells the length of the
// cached prefix it was first admitted with.
func (e *Engine) signal(h Handle) Output {
	r := &e.requests.slab[h]
	o := Output{Req: h, Tag: r.tag}
	if !r.signalled {
		r.signalled = true
		o.HasCached, o.CachedTokens = true, r.cachedPrefix
	}
	return o
}
