package router

import (
	"slices"

	"github.com/dryserve/dryserve/core/kvindex"
)

// worker is a worker that is there, or was: then ranks is 0.
type worker struct {
	first    int32 // slot of its first rank; the others follow
	ranks    int32
	budget   uint64 // tokens of a rank's pass
	draining bool
}

// slots hands out ranges of slots.
type slots struct {
	n     int32
	spare []slotRange
}

type slotRange struct{ first, n int32 }

func (s *slots) take(n int32) int32 {
	for i, r := range s.spare {
		if r.n == n {
			s.spare = slices.Delete(s.spare, i, i+1)
			return r.first
		}
	}
	s.n += n
	return s.n - n
}

// NoBudget stands for the token budget of a pass without limit (router notes
// §6.1).
const NoBudget = 10_000_000

// AddWorker lets a worker serve, under a number that no other has or will have
// before this one is gone. budget is the most tokens that a pass of a rank
// computes, or NoBudget. Requests that wait are looked at with Settle.
func (r *Router) AddWorker(id, ranks, budget int) {
	for len(r.workers) <= id {
		r.workers = append(r.workers, worker{})
	}
	first := r.slots.take(int32(ranks))
	r.workers[id] = worker{first: first, ranks: int32(ranks), budget: uint64(budget)}
	i, _ := slices.BinarySearch(r.order, int32(id))
	r.order = slices.Insert(r.order, i, int32(id))
	r.ranks += ranks
	n := int(r.slots.n)
	r.index.Grow(n)
	r.tiers.Grow(n)
	r.load.Grow(n)
	for len(r.scratch.at) < n {
		r.scratch.at = append(r.scratch.at, -1)
		r.serving = append(r.serving, false)
	}
	r.serve(r.workers[id], true)
}

// serve notes whether requests may go to a worker.
func (r *Router) serve(w worker, yes bool) {
	for slot := w.first; slot < w.first+w.ranks; slot++ {
		r.serving[slot] = yes
	}
}

// Drain keeps requests from a worker. What it runs goes on, and what its caches
// say is believed.
func (r *Router) Drain(id int) {
	if w := &r.workers[id]; w.ranks > 0 && !w.draining {
		w.draining = true
		i, _ := slices.BinarySearch(r.order, int32(id))
		r.order = slices.Delete(r.order, i, i+1)
		r.ranks -= int(w.ranks)
		r.serve(*w, false)
	}
}

// RemoveWorker forgets a worker: its caches, its events that are not believed
// yet, and its requests, which may still be freed.
func (r *Router) RemoveWorker(id int) {
	r.Drain(id)
	w := r.workers[id]
	r.workers[id] = worker{}
	r.late.drop(id)
	for slot := w.first; slot < w.first+w.ranks; slot++ {
		r.index.Clear(kvindex.Slot(slot))
		for in := range kvindex.TierCount {
			r.tiers.Forget(in, kvindex.Slot(slot))
		}
	}
	if w.ranks > 0 {
		r.slots.spare = append(r.slots.spare, slotRange{w.first, w.ranks})
	}
	for h := range r.requests {
		q := &r.requests[h]
		switch q.state {
		case booked:
			if slot := int32(r.load.Slot(q.booking)); slot >= w.first && slot < w.first+w.ranks {
				r.load.Free(q.booking, r.nowNs)
				q.state = homeless
			}
		case waiting:
			q.found = slices.DeleteFunc(q.found, func(f found) bool {
				return int32(f.slot) >= w.first && int32(f.slot) < w.first+w.ranks
			})
		}
	}
}

// Settle says that workers have come or gone: requests that wait may go to
// those that have room now.
func (r *Router) Settle(nowMs float64) Fault {
	if f := r.at(nowMs); !f.OK() {
		return f
	}
	return r.drain()
}

// slot is the slot of a rank; false if there is none.
func (r *Router) slot(id, rank int) (kvindex.Slot, bool) {
	if id < 0 || id >= len(r.workers) || rank < 0 || rank >= int(r.workers[id].ranks) {
		return 0, false
	}
	return kvindex.Slot(r.workers[id].first + int32(rank)), true
}

// Size is how much a router holds.
type Size struct {
	Workers  int // that are there
	Slots    int // that were ever needed at once
	Requests int // that wait, are asked about or are booked
	Blocks   int // different ones that ranks are believed to have on their devices
}

// Size counts.
func (r *Router) Size() Size {
	s := Size{Slots: int(r.slots.n), Blocks: r.index.Blocks()}
	for _, w := range r.workers {
		if w.ranks > 0 {
			s.Workers++
		}
	}
	for h := range r.requests {
		if r.requests[h].state != unknown {
			s.Requests++
		}
	}
	return s
}
