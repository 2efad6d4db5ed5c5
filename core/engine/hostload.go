package engine

import (
	"slices"

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
// way into host memory, or being loaded for another, the request waits.
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
	run, busy := len(hits), false
	for ; run < limit; run++ {
		s := x.pool.State(ids[run].Hash)
		if s == offload.Absent {
			break
		}
		busy = busy || s == offload.Pending || x.reading(ids[run].Hash)
	}
	e.touch(r, 0, limit)
	switch {
	case run == len(hits):
		return missing
	case busy:
		e.park(h)
		return parked
	}
	return e.startLoad(h, hits, run, nowMs)
}

// startLoad takes the blocks for the contents up to run and queues their copy.
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
		x.pool.Read(c.blocks[i-n].hash)
	}
	if x.shared != nil {
		x.keys = x.keys[:0]
		for _, b := range c.blocks {
			x.keys = append(x.keys, b.hash)
		}
		x.shared.Submit(offload.ToGPU, x.client, id, c.order, len(c.blocks)*x.blockBytes, x.keys, nowMs)
	} else {
		c.endMs = x.load.Copy(len(c.blocks)*x.blockBytes, max(nowMs, e.fence(r, n)))
	}
	x.loading = append(x.loading, id)
	e.park(h)
	r.loads = true
	return parked
}

// park takes a request off the queue until a copy has ended.
func (e *Engine) park(h Handle) {
	x := &e.host
	r := &e.requests.slab[h]
	r.ready = false
	if r.parked {
		return
	}
	e.waiting.remove(e.requests.slab, h)
	r.parked = true
	if !r.ghost {
		x.parked = append(x.parked, h)
	}
	r.ghost = false
	x.lengths.counted(r).Add(r.len())
}

// unpark takes a request off the list of those that wait for copies.
func (e *Engine) unpark(h Handle) {
	x := &e.host
	r := &e.requests.slab[h]
	r.parked, r.ready = false, false
	if x.parked[0] == h {
		x.parked = slices.Delete(x.parked, 0, 1)
	} else {
		r.ghost = true
	}
	x.lengths.counted(r).Sub(r.len())
}

// firstReady is the first parked request that may be looked at again, or 0.
func (e *Engine) firstReady() Handle {
	x := &e.host
	for _, h := range x.parked {
		if e.requests.slab[h].ready {
			for e.requests.slab[x.parked[0]].ghost {
				e.requests.slab[x.parked[0]].ghost = false
				x.parked = slices.Delete(x.parked, 0, 1)
			}
			return h
		}
	}
	return 0
}

// dequeue takes a request that waits out of wherever it does.
func (e *Engine) dequeue(h Handle) {
	if e.requests.slab[h].parked {
		e.unpark(h)
		return
	}
	e.waiting.remove(e.requests.slab, h)
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
	for _, h := range e.host.parked {
		if r := &e.requests.slab[h]; r.parked && len(r.blocks) > 0 {
			n += max(e.blocksFor(r.len())-len(r.blocks), 0)
		}
	}
	return n
}
