package engine

import (
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
)

// scheduleStores decides, when the pass has been scheduled, which prompt
// blocks go to host memory: for each request with work, in running order, the
// complete ones it has computed and not offered before. They go together or,
// for want of room, not yet. If one of them is still being read for another store
// they wait for a later pass, too. The copies begin when the pass ends.
func (e *Engine) scheduleStores() {
	for _, h := range e.running {
		if r := &e.requests.slab[h]; r.pass == e.pass.number {
			e.scheduleStore(h)
		}
	}
}

func (e *Engine) scheduleStore(h Handle) {
	x := &e.host
	r := &e.requests.slab[h]
	eligible := min(r.computed, r.promptLen) / e.cfg.BlockSize
	if r.offered >= eligible {
		return
	}
	ids := r.tokens.Blocks()
	x.keys, x.keep = x.keys[:0], x.keep[:0]
	for i := r.offered; i < eligible; i++ {
		absent := x.memory.State(ids[i].Hash) == offload.Absent
		if absent && x.fence(r.blocks[i]) > e.pass.startMs {
			return
		}
		if absent {
			x.keys = append(x.keys, ids[i].Hash)
		}
		x.keep = append(x.keep, ids[i].Hash)
	}
	if x.memory.Shared() && len(x.keys) > 0 {
		x.memory.Advance(e.pass.startMs)
	}
	if !x.memory.Store(x.keys, x.keep) {
		return
	}
	e.events.hostRemoved(x.memory.Evicted())
	first := r.offered
	r.offered = eligible
	if len(x.keys) == 0 {
		return
	}
	id := e.newCopy(h)
	c := &x.copies[id]
	for i, k := first, 0; k < len(x.keys); i++ {
		if ids[i].Hash == x.keys[k] {
			e.copyBlock(c, r, i)
			k++
		}
	}
	x.fresh = append(x.fresh, id)
	if x.memory.Shared() {
		for _, b := range c.blocks {
			e.pool.Hold(b.block)
		}
	}
	e.touch(r)
}

// submitStores begins the copies that the pass decided on, at its end.
func (e *Engine) submitStores(endMs float64) {
	x := &e.host
	for _, id := range x.fresh {
		e.submit(offload.ToHost, id, endMs)
		if x.memory.Shared() {
			continue
		}
		for _, b := range x.copies[id].blocks {
			for int(b.block) >= len(x.fences) {
				x.fences = append(x.fences, 0)
			}
			x.fences[b.block] = x.copies[id].endMs
		}
	}
	x.fresh = x.fresh[:0]
}

// stored ends a store: its blocks can be loaded from now on.
func (e *Engine) stored(id int32, nowMs float64) {
	x := &e.host
	c := &x.copies[id]
	if x.memory.Shared() {
		x.held = x.held[:0]
		for _, b := range c.blocks {
			x.held = append(x.held, b.block)
		}
		e.pool.Release(x.held)
	}
	e.events.hostStored(c.blocks)
	e.spill(c.blocks, nowMs)
	e.freeCopy(id)
}

// fence is when a block is no longer read for a store.
func (x *host) fence(b kv.Block) (ms float64) {
	if int(b) < len(x.fences) {
		ms = x.fences[b]
	}
	return ms
}

// fence is when the blocks that a request got last, from place first on, are no
// longer read: what is written into them has to wait until then.
func (e *Engine) fence(r *request, first int) (ms float64) {
	for _, b := range r.blocks[first:] {
		ms = max(ms, e.host.fence(b))
	}
	return ms
}
