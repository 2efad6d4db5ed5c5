//go:build invariants

package engine

import "github.com/dryserve/dryserve/core/moments"

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
		if len(r.blocks) != max(e.blocksFor(owned), r.shared) {
			panic("engine: a request does not hold the blocks of its computed tokens")
		}
		held += len(r.blocks)
	}
	held += e.checkDestinations() + e.heldByStores()
	if held < e.pool.Active() {
		panic("engine: a block is held by nobody")
	}
	e.checkQueue()
	known := 0
	for h := 1; h < len(e.requests.slab); h++ {
		if r := &e.requests.slab[h]; r.known {
			known++
			if Handle(e.requests.ids.Get(r.uuid)) != Handle(h) {
				panic("engine: a request cannot be found by its id")
			}
			if r.status == heldSource {
				known--
			}
		}
	}
	if known != len(e.running)+e.WaitingLen() {
		panic("engine: a request is lost")
	}
}

// heldByStores counts the blocks that copies to shared host memory still read.
func (e *Engine) heldByStores() (held int) {
	if !e.host.on || !e.host.memory.Shared() {
		return 0
	}
	for id, c := range e.host.copies {
		if c.disk {
			continue
		}
		for _, b := range c.blocks {
			if e.host.reads.Get(b.hash) != int32(id) {
				held++
			}
		}
	}
	return held
}

// checkDestinations returns the number of blocks held by requests that do not
// run.
func (e *Engine) checkDestinations() (held int) {
	d := &e.destinations
	var lengths moments.Moments
	for _, h := range append(append([]Handle{}, d.pending...), d.held...) {
		r := &e.requests.slab[h]
		lengths.Add(r.promptLen)
		if want := e.blocksFor(r.promptLen); r.status == heldDestination && len(r.blocks) != want {
			panic("engine: a destination does not hold its prompt's blocks")
		}
	}
	if lengths != d.lengths {
		panic("engine: the destinations' sums are wrong")
	}
	for h := 1; h < len(e.requests.slab); h++ {
		switch r := &e.requests.slab[h]; r.status {
		case heldSource, heldDestination, activated:
			held += len(r.blocks)
		case waiting, preempted:
			held += len(r.blocks)
			if len(r.blocks) > 0 && !r.parked {
				panic("engine: a request holds blocks that it must not hold")
			}
		case running:
		default:
			if len(r.blocks) > 0 {
				panic("engine: a request holds blocks that it must not hold")
			}
		}
	}
	return held
}

// checkQueue recounts the waiting queue.
func (e *Engine) checkQueue() {
	var fresh, back moments.Moments
	ready := 0
	last := Handle(0)
	for h := e.waiting.head(e.requests.slab); h != 0; h = e.requests.slab[h].next {
		r := &e.requests.slab[h]
		if r.prev != last {
			panic("engine: the waiting queue is torn")
		}
		switch r.status {
		case activated:
			ready++
			back.Add(r.waits())
		case preempted:
			back.Add(r.waits())
		default:
			fresh.Add(r.promptLen)
		}
		last = h
	}
	if fresh != e.waiting.fresh || back != e.waiting.back || ready != e.waiting.activated {
		panic("engine: the queue's sums are wrong")
	}
}
