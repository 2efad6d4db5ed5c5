package stride

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/stretch"
)

// times is when tokens were emitted: the log of the ends of decode steps, and
// what of it belongs to whom.
type times struct {
	log    []float64 // ms, from step base on
	base   int64
	trimAt int // log length at which Trim looks again

	spans    []span
	freeSpan int32
	agains   []readmit
	freeMit  int32
}

// span is a range of steps, both ends included, that each gave a request one
// token, or with a to of -1 the one token at the time whose bits are from.
type span struct {
	from, to int64
	prev     int32
}

// readmit is an admission after the first.
type readmit struct {
	atMs   float64
	reused int32
	prev   int32
}

func newTimes() times { return times{spans: make([]span, 1, 8), agains: make([]readmit, 1, 2)} }

// span adds a range to a list, single one token that date gives its time,
// readmit an admission to another; each returns the list's new head.
func (t *times) span(from, to int64, prev int32) int32 {
	i := t.freeSpan
	if i != 0 {
		t.freeSpan = t.spans[i].prev
	} else {
		i = int32(len(t.spans))
		t.spans = append(t.spans, span{})
	}
	t.spans[i] = span{from: from, to: to, prev: prev}
	return i
}

func (t *times) single(prev int32) int32 { return t.span(0, -1, prev) }

func (t *times) date(single int32, ms float64) { t.spans[single].from = int64(math.Float64bits(ms)) }

func (t *times) readmit(atMs float64, reused, prev int32) int32 {
	i := t.freeMit
	if i != 0 {
		t.freeMit = t.agains[i].prev
	} else {
		i = int32(len(t.agains))
		t.agains = append(t.agains, readmit{})
	}
	t.agains[i] = readmit{atMs: atMs, reused: reused, prev: prev}
	return i
}

// free gives the lists of a request back.
func (t *times) free(spans, agains int32) {
	for i := spans; i != 0; {
		prev := t.spans[i].prev
		t.spans[i].prev = t.freeSpan
		t.freeSpan, i = i, prev
	}
	for i := agains; i != 0; {
		prev := t.agains[i].prev
		t.agains[i].prev = t.freeMit
		t.freeMit, i = i, prev
	}
}

// oldest is the first step of a list, at most keep.
func (t *times) oldest(spans int32, keep int64) int64 {
	for i := spans; i != 0; i = t.spans[i].prev {
		if s := t.spans[i]; s.to >= 0 {
			keep = min(keep, s.from)
		}
	}
	return keep
}

// Result describes an ended request.
func (w *Worker) Result(id int32) stretch.Result {
	r := &w.reqs[id]
	return stretch.Result{
		Turn: r.turn(), Fate: r.fate, Emitted: r.generated, Admits: r.admits, Reused: r.reused, Most: r.most, AdmitMs: r.admitMs,
	}
}

// Times returns the times of an ended request's tokens in ms, in order, in
// buf, which has room for them all.
func (w *Worker) Times(id int32, buf []float64) []float64 {
	r := &w.reqs[id]
	t := &w.times
	at := int(r.generated)
	for i := r.spans; i != 0; i = t.spans[i].prev {
		s := t.spans[i]
		if s.to < 0 {
			at--
			buf[at] = math.Float64frombits(uint64(s.from))
			continue
		}
		at -= int(s.to - s.from + 1)
		copy(buf[at:], t.log[s.from-t.base:s.to-t.base+1])
	}
	return buf[:r.generated]
}

// Readmission is the i-th admission of an ended request, 1 <= i < Admits.
func (w *Worker) Readmission(id int32, i int) (atMs float64, reused int32) {
	r := &w.reqs[id]
	at := r.again
	for k := int(r.admits) - 1; k > i; k-- {
		at = w.times.agains[at].prev
	}
	return w.times.agains[at].atMs, w.times.agains[at].reused
}

// Free forgets an ended request.
func (w *Worker) Free(id int32) {
	r := &w.reqs[id]
	w.times.free(r.spans, r.again)
	*r = request{spans: w.freeReq}
	w.freeReq = id
}

// Log is the ends of the decode steps from number first on, in ms.
func (w *Worker) Log(first int64) []float64 { return w.times.log[first-w.times.base:] }

// Pass is the number of decode steps begun.
func (w *Worker) Pass() int64 { return w.steps }

// Trim drops the part of the log that no request needs any more, now and then.
func (w *Worker) Trim() {
	t := &w.times
	if len(t.log) < t.trimAt {
		return
	}
	keep := w.steps
	for _, id := range w.run {
		keep = t.oldest(w.reqs[id].spans, min(keep, w.reqs[id].join))
	}
	for i := range w.wait.len() {
		if entry := w.wait.at(i); entry < 0 {
			keep = t.oldest(w.reqs[^entry].spans, keep)
		}
	}
	t.log = slices.Delete(t.log, 0, int(keep-t.base))
	t.base = keep
	t.trimAt = max(1024, 2*len(t.log))
}

// queue is a double-ended queue of int32 in a ring.
type queue struct {
	ring []int32
	head int
	n    int
}

func (q *queue) len() int           { return q.n }
func (q *queue) at(i int) int32     { return q.ring[(q.head+i)&(len(q.ring)-1)] }
func (q *queue) set(i int, v int32) { q.ring[(q.head+i)&(len(q.ring)-1)] = v }
func (q *queue) front() int32       { return q.ring[q.head] }
func (q *queue) setFront(v int32)   { q.ring[q.head] = v }
func (q *queue) popFront()          { q.head = (q.head + 1) & (len(q.ring) - 1); q.n-- }

func (q *queue) pushBack(v int32) {
	q.room()
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *queue) pushFront(v int32) {
	q.room()
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = v
	q.n++
}

func (q *queue) room() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]int32, max(16, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.at(i)
	}
	q.ring, q.head = ring, 0
}
