package engine

// queue is the waiting queue: a list through the requests' links, around the
// sentinel in slot 0. It keeps the moments of the lengths that wait, so that
// describing a long queue costs nothing per pass.
type queue struct {
	fresh     moments // prompt lengths of requests never admitted
	preempted moments // sequence lengths of preempted ones
}

func (q *queue) len() int { return int(q.fresh.n + q.preempted.n) }

func (q *queue) head(slab []request) Handle { return slab[0].next }

func (q *queue) pushBack(slab []request, h Handle)  { q.insert(slab, h, slab[0].prev, 0) }
func (q *queue) pushFront(slab []request, h Handle) { q.insert(slab, h, 0, slab[0].next) }

func (q *queue) insert(slab []request, h, prev, next Handle) {
	r := &slab[h]
	r.prev, r.next = prev, next
	slab[prev].next = h
	slab[next].prev = h
	q.moments(r).add(r.len())
}

func (q *queue) remove(slab []request, h Handle) {
	r := &slab[h]
	slab[r.prev].next = r.next
	slab[r.next].prev = r.prev
	q.moments(r).sub(r.len())
}

// moments is where the request is counted. A fresh request has generated
// nothing: its length is its prompt's.
func (q *queue) moments(r *request) *moments {
	if r.status == preempted {
		return &q.preempted
	}
	return &q.fresh
}
