package engine

import (
	"github.com/dryserve/dryserve/core/idtable"
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/seq"
)

// status is where a request is in its life.
type status uint8

const (
	free      status = iota
	waiting          // never admitted
	preempted        // waiting again, with what it has generated
	running          // admitted
	finished         // completed, rejected, cancelled or failed; about to be recycled

	// Of handed-off requests.
	heldSource         // completed here, kept for the transfer
	pendingDestination // waits for blocks
	heldDestination    // has blocks, waits for its prompt
	activated          // waiting, its prompt has KV
)

// request is the state of one request. Lengths are tokens.
type request struct {
	uuid   [16]byte
	tag    uint32
	status status
	known  bool   // the UUID is in the id table
	order  uint64 // of the commands that brought requests

	source  bool   // its prompt is handed off when it completes
	handoff uint64 // echoed

	destination bool // its prompt is computed elsewhere
	shared      int  // blocks of a destination that were resident when it was reserved

	promptLen int
	maxOutput int
	planned   []uint32 // output ids, if hasPlan
	hasPlan   bool

	tokens    seq.Sequence // prompt and generated
	generated int
	computed  int        // tokens with KV
	named     int        // blocks that ever had an identity: full prompt blocks aside, those ever computed in full
	blocks    []kv.Block // of the computed tokens

	admitted     bool // once or more
	signalled    bool // had an output
	cachedPrefix int  // prefix tokens found at the first admission

	// With host memory.
	parked    bool  // waits for a copy instead of in the queue
	ready     bool  // parked, but to be looked at again
	loads     bool  // parked, its blocks are being loaded
	leftPlace bool  // not parked, but it left its place behind
	copy      int32 // its latest store or load under way, 0: none
	offered   int   // prompt blocks that were offered to host memory
	fromHost  int   // tokens loaded for the coming admission
	restores  int   // reads from disk since the time of restored
	restored  int   // the rank's progress then
	bypasses  bool  // reads from disk no more
	pass      int   // number of the last pass that scheduled it

	prompt  int  // prompt tokens scheduled in this pass
	emitted bool // got a token in this pass

	prev, next Handle // waiting queue; next also links free slots
}

func (r *request) len() int { return r.tokens.Len() }

// requests is the slab of requests and the table of their ids. Slot 0 is the
// sentinel of the waiting queue.
type requests struct {
	slab     []request
	free     Handle
	finished []Handle // to be recycled by the next Begin
	ids      idtable.Table
}

func newRequests() requests {
	return requests{slab: make([]request, 1, 64), ids: idtable.New()}
}

// add takes a free slot; its buffers are those of the request it had before.
func (q *requests) add(uuid [16]byte) Handle {
	h := q.free
	if h != 0 {
		q.free = q.slab[h].next
	} else {
		h = Handle(len(q.slab))
		q.slab = append(q.slab, request{})
	}
	r := &q.slab[h]
	*r = request{uuid: uuid, known: true, tokens: r.tokens, planned: r.planned[:0], blocks: r.blocks[:0]}
	q.ids.Add(uuid, int32(h))
	return h
}

// finish marks the end of a request; its handle stays valid until recycle.
func (q *requests) finish(h Handle) {
	q.slab[h].status = finished
	q.finished = append(q.finished, h)
}

// known reports whether h is a request that has not reached its end.
func (q *requests) known(h Handle) bool {
	return h > 0 && int(h) < len(q.slab) && q.slab[h].known
}

// is reports whether h is such a request in the given state.
func (q *requests) is(h Handle, s status) bool { return q.known(h) && q.slab[h].status == s }

// forget makes the request's UUID free to be submitted again.
func (q *requests) forget(h Handle) {
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
