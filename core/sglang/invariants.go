//go:build invariants

package sglang

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/moments"
	"github.com/dryserve/dryserve/core/radix"
)

const checked = true

// check panics if the rank, between two passes, breaks an invariant of the
// package.
func (e *Rank) check() {
	e.cache.Check()
	owned := map[radix.Page]bool{}
	private := 0
	counts := map[status]int{}
	known := 0
	for i := 1; i < len(e.requests.slab); i++ {
		r := &e.requests.slab[i]
		if r.status == free || r.status == finished {
			continue
		}
		counts[r.status]++
		if !r.known || e.requests.ids.Get(r.uuid) != int32(i) {
			panic("sglang: a request cannot be found by its id")
		}
		known++
		e.checkPages(r)
		for _, p := range r.pages[r.cached:] {
			if owned[p] {
				panic("sglang: a private page has two owners")
			}
			owned[p] = true
			private++
		}
	}
	if known != e.requests.ids.Len() {
		panic("sglang: an id is left over")
	}
	if private != e.cache.Total()-e.cache.Available()-e.cache.Evictable()-e.cache.Protected() {
		panic("sglang: a page is lost")
	}
	if counts[running] != len(e.running) || counts[pending] != len(e.pending) || counts[prebuilt] != len(e.prebuilt) {
		panic("sglang: a request is lost")
	}
	if counts[pending]+counts[reserved]+counts[prebuilt] != e.destinations.N() {
		panic("sglang: the destinations are miscounted")
	}
	e.checkQueue(counts[waiting] + counts[retracted])
}

// checkPages: a request has pages for exactly what is computed, or for its
// prompt if that is to arrive.
func (e *Rank) checkPages(r *request) {
	want := r.computed
	switch r.status {
	case running:
		if r.computed != r.len() || r.remaining() < 0 {
			panic("sglang: a running request has something left to compute")
		}
	case reserved:
		want = r.promptLen
	case pending:
		want = 0
	case waiting, retracted:
		if r.computed >= r.len() && r.computed > 0 {
			panic("sglang: a waiting request has nothing left to compute")
		}
	}
	if len(r.pages) != e.pagesFor(want) || r.cached > want/e.cfg.BlockSize {
		panic("sglang: a request does not hold the pages of its tokens")
	}
}

func (e *Rank) checkQueue(want int) {
	var fresh, back moments.Moments
	last := engine.Handle(0)
	for h := e.waiting.head(e.requests.slab); h != 0; h = e.requests.slab[h].next {
		r := &e.requests.slab[h]
		if r.prev != last {
			panic("sglang: the queue is not linked")
		}
		if r.status == retracted {
			back.Add(r.len())
		} else {
			fresh.Add(r.promptLen)
		}
		last = h
	}
	if fresh != e.waiting.fresh || back != e.waiting.retracted || e.waiting.len() != want {
		panic("sglang: the queue's sums are wrong")
	}
}
