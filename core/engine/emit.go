package engine

import "github.com/dryserve/dryserve/core/seq"

// emit ends the pass's work for every running request whose tokens are all
// computed: it gets its next token, or completes without one if it wants none.
// It fills the pass's outputs and returns the decoding time in ms
// (engine notes §4.5).
//
// The first token of a request whose prompt was computed in this pass comes
// out of that computation and is not decoding.
func (e *Engine) emit() (decodeMs float64) {
	p := &e.pass
	p.ready = p.ready[:0]
	decodes, sumLen := 0, 0
	for _, h := range e.running {
		r := &e.requests.slab[h]
		if r.computed < r.len() {
			continue
		}
		if e.remaining(r) == 0 {
			p.outputs = append(p.outputs, e.signal(h))
			p.outputs[len(p.outputs)-1].Completed = true
			e.end(h)
			continue
		}
		p.ready = append(p.ready, h)
		if r.generated > 0 || r.prompt == 0 {
			decodes++
			sumLen += r.len()
		}
		if r.prompt == 0 {
			p.acceptance.Forwards++
			p.acceptance.AcceptedTokens++
		}
	}
	if decodes > 0 {
		decodeMs = e.timing.Decode(decodes, sumLen)
	}
	for _, h := range p.ready {
		e.emitToken(h)
	}
	for _, h := range p.rejected {
		p.outputs = append(p.outputs, Output{Req: h, Tag: e.requests.slab[h].tag, Completed: true, Rejected: true})
	}
	kept := e.running[:0]
	for _, h := range e.running {
		if e.requests.slab[h].status == running {
			kept = append(kept, h)
		}
	}
	e.running = kept
	return decodeMs
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
		e.end(h)
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
