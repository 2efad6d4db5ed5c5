package engine

import "github.com/dryserve/dryserve/core/moments"

// queue is the waiting queue: a list through the requests' links, around the
// sentinel in slot 0. It keeps the moments of the lengths that wait, so that
// describing a long queue costs nothing per pass.
type queue struct {
	fresh     moments.Moments // prompt lengths of requests never admitted
	back      moments.Moments // lengths of preempted and activated ones
	activated int             // how many of them are activated
}

func (q *queue) len() int { return q.fresh.N() + q.back.N() }

func (q *queue) head(slab []request) Handle { return slab[0].next }

func (q *queue) pushBack(slab []request, h Handle)  { q.insert(slab, h, slab[0].prev, 0) }
func (q *queue) pushFront(slab []request, h Handle) { q.insert(slab, h, 0, slab[0].next) }

// insertByOrder puts a request before the first that came after it.
func (q *queue) insertByOrder(slab []request, h Handle) {
	next := slab[0].next
	for next != 0 && slab[next].order < slab[h].order {
		next = slab[next].next
	}
	q.insert(slab, h, slab[next].prev, next)
}

// firstActivated is the activated request nearest to the head, or 0.
func (q *queue) firstActivated(slab []request) Handle {
	if q.activated == 0 {
		return 0
	}
	h := slab[0].next
	for slab[h].status != activated {
		h = slab[h].next
	}
	return h
}

func (q *queue) insert(slab []request, h, prev, next Handle) {
	r := &slab[h]
	r.prev, r.next = prev, next
	slab[prev].next = h
	slab[next].prev = h
	q.counted(r).Add(r.waits())
	if r.status == activated {
		q.activated++
	}
}

func (q *queue) remove(slab []request, h Handle) {
	r := &slab[h]
	slab[r.prev].next = r.next
	slab[r.next].prev = r.prev
	q.counted(r).Sub(r.waits())
	if r.status == activated {
		q.activated--
	}
}

// waits is the length with which a request is counted: of a preempted one that of
// its sequence, but of a destination always that of its prompt.
func (r *request) waits() int {
	if r.destination {
		return r.promptLen
	}
	return r.len()
}

// counted is where the request is counted. A fresh request has generated
// nothing: its length is its prompt's.
func (q *queue) counted(r *request) *moments.Moments {
	if r.status != waiting {
		return &q.back
	}
	return &q.fresh
}
