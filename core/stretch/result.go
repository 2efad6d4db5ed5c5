package stretch

import "slices"

// Verdict is what becomes of a worker whose pass took no time and had no effect
// (engine notes §3, same-timestamp convergence).
type Verdict uint8

const (
	// Parked: it is left alone until something else happens.
	Parked Verdict = iota
	// Again: another pass at the same time may do something.
	Again
	// Hopeless: what it has can never be served. FailHead makes it go on.
	Hopeless
	// Endless: Hopeless, and the reference would repeat the pass for ever.
	Endless
)

// Result is what is known of a request that ended.
type Result struct {
	Turn    int32
	Rank    int32 // data-parallel rank within the worker
	Fate    Fate
	Emitted int32 // tokens
	Admits  int32 // admissions
	Reused  int32 // tokens, at the first admission
	Host    int32 // of these, tokens loaded from host memory
	Most    int32 // tokens, maximum over the admissions
	AdmitMs float64
}

// Result describes an ended request.
func (w *Worker) Result(id int32) Result {
	r := &w.reqs[id]
	fate := r.fate
	if fate == ending {
		fate = Completed
	}
	return Result{Turn: r.turn, Rank: w.rank, Fate: fate, Emitted: r.emitted, Admits: r.admits, Reused: r.reused, Most: r.most, AdmitMs: r.admitMs}
}

// Span is a range of passes, both ends included, each of which gave a request
// Each tokens.
type Span struct {
	From, To int64
	Each     int32
}

// AppendSpans appends the passes of an ended request's tokens, oldest first.
func (w *Worker) AppendSpans(dst []Span, id int32) []Span {
	start := len(dst)
	for i := w.reqs[id].spans; i != 0; i = w.spans[i].prev {
		dst = append(dst, Span{w.spans[i].from, w.spans[i].to, w.spans[i].each})
	}
	slices.Reverse(dst[start:])
	return dst
}

// Times returns the times of an ended request's tokens in ms, in order. The
// slice is part of the worker's log where the tokens came without a pause, else
// buf, which has room for them all; it is valid until the next pass.
func (w *Worker) Times(id int32, buf []float64) []float64 {
	r := &w.reqs[id]
	if r.spans == 0 {
		return nil
	}
	if s := w.spans[r.spans]; s.prev == 0 && s.each == 1 {
		return w.log.span(s.from, s.to)
	}
	at := int(r.emitted)
	for i := r.spans; i != 0; i = w.spans[i].prev {
		s := w.spans[i]
		ends := w.log.span(s.from, s.to)
		at -= len(ends) * int(s.each)
		Repeat(buf[at:], ends, s.each)
	}
	return buf[:r.emitted]
}

// Repeat writes each end as often as a pass that ended then gave tokens, and
// returns the number of tokens. dst has room for them.
func Repeat(dst, ends []float64, each int32) int {
	if each == 1 {
		return copy(dst, ends)
	}
	n := 0
	for _, ms := range ends {
		for range each {
			dst[n] = ms
			n++
		}
	}
	return n
}

// Readmission is the i-th admission of an ended request, 1 <= i < Admits.
func (w *Worker) Readmission(id int32, i int) (atMs float64, reused int32) {
	r := &w.reqs[id]
	at := r.again
	for k := int(r.admits) - 1; k > i; k-- {
		at = w.agains[at].prev
	}
	return w.agains[at].atMs, w.agains[at].reused
}

// Free forgets an ended request.
func (w *Worker) Free(id int32) {
	r := &w.reqs[id]
	for i := r.spans; i != 0; {
		prev := w.spans[i].prev
		w.spans[i].prev = w.freeSpan
		w.freeSpan, i = i, prev
	}
	for i := r.again; i != 0; {
		prev := w.agains[i].prev
		w.agains[i].prev = w.freeMit
		w.freeMit, i = i, prev
	}
	*r = request{turn: w.freeReq, from: -1}
	w.freeReq = id
}

// Blocked reports whether the head of the queue stays where it is until a
// running request ends, whatever arrives behind it.
func (w *Worker) Blocked() bool { return w.wait.len() > 0 && w.stalled }

// Oldest is the first pass that gave a token to a request still with the
// rank (running, preempted, or ended by the last pass), at most keep.
func (w *Worker) Oldest(keep int64) int64 {
	for _, id := range w.run {
		keep = min(keep, w.oldest(id))
	}
	for i := 0; i < w.wait.len() && w.wait.at(i) < 0; i++ {
		keep = min(keep, w.oldest(^w.wait.at(i)))
	}
	for _, id := range w.ended {
		keep = min(keep, w.oldest(id))
	}
	return keep
}

// oldest is the first pass that gave the request a token, or the next pass.
func (w *Worker) oldest(id int32) int64 {
	r := &w.reqs[id]
	first := w.pass
	if r.from >= 0 {
		first = r.from
	}
	for i := r.spans; i != 0; i = w.spans[i].prev {
		first = w.spans[i].from
	}
	return first
}

// queue is a double-ended queue of int32 in a ring.
type queue struct {
	ring []int32
	head int
	n    int
}

func (q *queue) len() int         { return q.n }
func (q *queue) at(i int) int32   { return q.ring[(q.head+i)&(len(q.ring)-1)] }
func (q *queue) front() int32     { return q.ring[q.head] }
func (q *queue) popFront()        { q.head = (q.head + 1) & (len(q.ring) - 1); q.n-- }
func (q *queue) pushBack(v int32) { q.room(); q.ring[(q.head+q.n)&(len(q.ring)-1)] = v; q.n++ }

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
	for i := 0; i < q.n; i++ {
		ring[i] = q.at(i)
	}
	q.ring, q.head = ring, 0
}
