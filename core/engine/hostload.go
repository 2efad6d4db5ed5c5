package engine

import (
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
)

// answer is what host memory has for a request.
type answer uint8

const (
	missing answer = iota // nothing, or the request has been served already
	parked                // the request waits for a copy
	noRoom                // it would load, but the pool has no room for it
)

// consult looks into host memory for the blocks after those that the GPU has.
// The leading run of contents there is loaded; if one of them is still on its
// way into host memory, or being loaded for another request of the rank, the
// request waits.
func (e *Engine) consult(h Handle, nowMs float64) answer {
	x := &e.host
	r := &e.requests.slab[h]
	if len(r.blocks) > 0 {
		return missing
	}
	ids := r.tokens.Blocks()
	limit := min(r.promptLen/e.cfg.BlockSize, len(ids))
	hits := e.resident(r, limit)
	if r.copy != 0 {
		e.park(h)
		return parked
	}
	if e.restore(h, hits, limit, nowMs) {
		e.touch(r)
		e.park(h)
		return parked
	}
	run, busy := len(hits), false
	for ; run < limit; run++ {
		s := x.memory.State(ids[run].Hash)
		if s == offload.Absent {
			break
		}
		busy = busy || s == offload.Pending || x.reads.Get(ids[run].Hash) != 0
	}
	e.touch(r)
	switch {
	case run == len(hits):
		return missing
	case busy:
		e.park(h)
		return parked
	}
	return e.startLoad(h, hits, run, nowMs)
}

// startLoad takes the blocks for the contents up to run and begins their copy.
func (e *Engine) startLoad(h Handle, hits []kv.Block, run int, nowMs float64) answer {
	x := &e.host
	r := &e.requests.slab[h]
	if !e.fits(h) {
		return missing // to be rejected
	}
	needed := e.blocksFor(r.len()) + e.headroom()
	for _, b := range hits {
		if e.pool.Held(b) {
			needed--
		}
	}
	if needed > e.pool.Total()-e.pool.Active() {
		return noRoom
	}
	n := len(hits)
	blocks, ok := e.pool.Acquire(r.blocks, hits, run-n)
	if !ok {
		return noRoom
	}
	e.events.removed(e.pool.Evicted())
	r.blocks = blocks
	r.computed = n * e.cfg.BlockSize
	id := e.newCopy(h)
	c := &x.copies[id]
	for i := n; i < run; i++ {
		e.copyBlock(c, r, i)
		hash := c.blocks[i-n].hash
		x.memory.Read(hash)
		x.reads.Set(hash, id)
	}
	e.submit(offload.ToGPU, id, max(nowMs, e.fence(r, n)))
	x.began = true
	e.park(h)
	r.loads = true
	return parked
}

// loaded ends a load: its blocks are in the GPU's prefix cache.
func (e *Engine) loaded(id int32) {
	x := &e.host
	c := &x.copies[id]
	for _, b := range c.blocks {
		x.reads.Remove(b.hash)
	}
	if c.req != 0 {
		r := &e.requests.slab[c.req]
		before := r.computed
		r.computed += len(c.blocks) * e.cfg.BlockSize
		e.publish(r, before, r.computed)
		r.shared = len(r.blocks)
		if e.remaining(r) > 0 { // it computes its last token, whose block it keeps
			r.computed = min(r.computed, max(r.len()-1, 0)/e.cfg.BlockSize*e.cfg.BlockSize)
		}
		r.fromHost = max(r.computed-before, 0)
		r.offered = r.computed / e.cfg.BlockSize
		r.loads = false
		x.parking.setReady(r, true)
	}
	e.freeCopy(id)
}

// park takes a request off the queue until a copy has ended.
func (e *Engine) park(h Handle) {
	if !e.requests.slab[h].parked {
		e.waiting.remove(e.requests.slab, h)
	}
	e.host.parking.add(e.requests.slab, h)
}

// dequeue takes a request that waits out of wherever it does.
func (e *Engine) dequeue(h Handle) {
	if e.requests.slab[h].parked {
		e.host.parking.remove(e.requests.slab, h)
		return
	}
	e.waiting.remove(e.requests.slab, h)
}

// Unload takes the blocks that were loaded for the last request that waits to be
// admitted with such, so that those before it may go on; it is loaded for again
// when its turn comes. It is for an engine that cannot go on because several
// requests have a part of what they need each. The reference has no such rule:
// its run ends. It reports false, and does nothing, if there is no such request
// beside the one to be admitted next or a pass is in flight.
func (e *Engine) Unload() bool {
	if e.pass.inFlight {
		return false
	}
	slab, next := e.requests.slab, e.host.parking.first(e.requests.slab)
	for i := len(e.host.parking.list) - 1; i >= 0; i-- {
		h := e.host.parking.list[i]
		if r := &slab[h]; r.ready && h != next && len(r.blocks) > 0 {
			e.pool.Release(r.blocks)
			r.blocks, r.shared, r.computed, r.fromHost = r.blocks[:0], 0, 0, 0
			return true
		}
	}
	return false
}

// headroom counts the blocks that prompts in the making will still need: those
// of running requests that are computed in chunks, and the rest of those for
// which a part was or is being loaded.
func (e *Engine) headroom() int {
	n := 0
	for _, h := range e.running {
		r := &e.requests.slab[h]
		if r.computed < r.promptLen {
			n += max(e.blocksFor(r.promptLen)-len(r.blocks), 0)
		}
	}
	for _, h := range e.host.parking.list {
		if r := &e.requests.slab[h]; r.parked && len(r.blocks) > 0 {
			n += max(e.blocksFor(r.len())-len(r.blocks), 0)
		}
	}
	return n
}
