package sglang

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/idtable"
	"github.com/dryserve/dryserve/core/radix"
	"github.com/dryserve/dryserve/core/seq"
)

// status is where a request is in its life.
type status uint8

const (
	free      status = iota
	waiting          // its prompt is not computed, or in part
	retracted        // waiting again, with what it has generated
	running
	held     // a source: complete, its KV kept
	pending  // a destination without room
	reserved // a destination with room, not activated
	prebuilt // an activated destination without a slot
	finished // completed, rejected, cancelled or failed; about to be recycled
)

// request is the state of one request. Lengths are tokens.
type request struct {
	uuid   [16]byte
	tag    uint32
	status status
	known  bool // the UUID is in the id table

	handoff uint64
	source  bool // its KV is to be held when it is complete
	tried   bool // as the first pending destination, and found no room

	promptLen int
	maxOutput int
	planned   []uint32 // output ids, if hasPlan
	hasPlan   bool

	tokens    seq.Sequence // prompt and generated
	generated int
	computed  int          // tokens with KV
	pages     []radix.Page // of the computed tokens, and room for the next
	node      radix.Node   // the path of the cache it holds
	cached    int          // pages of that path

	prev, next engine.Handle // waiting queue; next also links free slots
}

func (r *request) len() int       { return r.tokens.Len() }
func (r *request) remaining() int { return r.maxOutput - r.generated }

// requests is the slab of requests and the table of their ids. Slot 0 is the
// sentinel of the waiting queue.
type requests struct {
	slab     []request
	free     engine.Handle
	finished []engine.Handle // to be recycled by the next Begin
	ids      idtable.Table
}

func newRequests() requests {
	return requests{slab: make([]request, 1, 64), ids: idtable.New()}
}

// is reports whether h names a request in the given state.
func (q *requests) is(h engine.Handle, s status) bool {
	return h > 0 && int(h) < len(q.slab) && q.slab[h].status == s
}

// known reports whether h names a request that has not reached its end.
func (q *requests) known(h engine.Handle) bool {
	return h > 0 && int(h) < len(q.slab) && q.slab[h].known
}

// add takes a free slot; its buffers are those of the request it had before.
func (q *requests) add(uuid [16]byte) engine.Handle {
	h := q.free
	if h != 0 {
		q.free = q.slab[h].next
	} else {
		h = engine.Handle(len(q.slab))
		q.slab = append(q.slab, request{})
	}
	r := &q.slab[h]
	*r = request{uuid: uuid, known: true, tokens: r.tokens, planned: r.planned[:0], pages: r.pages[:0]}
	q.ids.Add(uuid, int32(h))
	return h
}

// finish marks the end of a request; its handle stays valid until recycle.
func (q *requests) finish(h engine.Handle) {
	q.slab[h].status = finished
	q.finished = append(q.finished, h)
}

// forget makes the request's UUID free to be submitted again.
func (q *requests) forget(h engine.Handle) {
	if r := &q.slab[h]; r.known {
		q.ids.Remove(r.uuid)
		r.known = false
	}
}

// recycle frees the slots of finished requests.
func (q *requests) recycle() {
	for _, h := range q.finished {
		q.forget(h)
		q.slab[h].status = free
		q.slab[h].next = q.free
		q.free = h
	}
	q.finished = q.finished[:0]
}
