package sglang

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/moments"
)

// queue is the waiting queue: a list through the requests' links, around the
// sentinel in slot 0. It keeps the moments of the lengths that wait, so that
// describing a long queue costs nothing per pass.
type queue struct {
	fresh     moments.Moments // prompt lengths of requests not retracted
	retracted moments.Moments // sequence lengths of retracted ones
}

func (q *queue) len() int { return q.fresh.N() + q.retracted.N() }

func (q *queue) head(slab []request) engine.Handle { return slab[0].next }

func (q *queue) pushBack(slab []request, h engine.Handle)  { q.insert(slab, h, slab[0].prev, 0) }
func (q *queue) pushFront(slab []request, h engine.Handle) { q.insert(slab, h, 0, slab[0].next) }

func (q *queue) insert(slab []request, h, prev, next engine.Handle) {
	r := &slab[h]
	r.prev, r.next = prev, next
	slab[prev].next = h
	slab[next].prev = h
	q.moments(r).Add(r.len())
}

func (q *queue) remove(slab []request, h engine.Handle) {
	r := &slab[h]
	slab[r.prev].next = r.next
	slab[r.next].prev = r.prev
	q.moments(r).Sub(r.len())
}

// relink puts all that wait into the given order.
func (q *queue) relink(slab []request, order []ranked) {
	last := engine.Handle(0)
	for _, o := range order {
		slab[last].next, slab[o.req].prev = o.req, last
		last = o.req
	}
	slab[last].next, slab[0].prev = 0, last
}

// moments is where the request is counted. One that is not retracted has
// generated nothing: its length is its prompt's.
func (q *queue) moments(r *request) *moments.Moments {
	if r.status == retracted {
		return &q.retracted
	}
	return &q.fresh
}
