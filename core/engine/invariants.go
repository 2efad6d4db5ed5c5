//go:build invariants

package engine

// check panics if the engine, between two passes, breaks an invariant of the
// package.
func (e *Engine) check() {
	e.pool.Check()
	held := 0
	for _, h := range e.running {
		r := &e.requests.slab[h]
		if r.status != running || r.computed >= r.len() {
			panic("engine: a running request has nothing left to do")
		}
		owned := r.computed
		if e.cfg.MTP.Drafts > 0 && owned == r.len()-1 && r.emitted {
			owned++ // the newest token of a burst has its room already
		}
		if len(r.blocks) != e.blocksFor(owned) {
			panic("engine: a request does not hold the blocks of its computed tokens")
		}
		held += len(r.blocks)
	}
	if held < e.pool.Active() {
		panic("engine: a block is held by nobody")
	}
	var fresh, back moments
	last := Handle(0)
	for h := e.waiting.head(e.requests.slab); h != 0; h = e.requests.slab[h].next {
		r := &e.requests.slab[h]
		if r.prev != last || r.computed != 0 || len(r.blocks) != 0 {
			panic("engine: a waiting request holds something")
		}
		if r.status == preempted {
			back.add(r.len())
		} else {
			fresh.add(r.promptLen)
		}
		last = h
	}
	if fresh != e.waiting.fresh || back != e.waiting.preempted {
		panic("engine: the queue's sums are wrong")
	}
	known := 0
	for h := 1; h < len(e.requests.slab); h++ {
		if r := &e.requests.slab[h]; r.known {
			known++
			if e.requests.ids.get(e.requests.slab, r.uuid) != Handle(h) {
				panic("engine: a request cannot be found by its id")
			}
		}
	}
	if known != e.requests.ids.used || known != len(e.running)+e.waiting.len() {
		panic("engine: a request is lost")
	}
}
