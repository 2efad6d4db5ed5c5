package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/stretch"
)

// Batch is what the workers did in one window of time, before it is merged.
type Batch struct {
	toMs     float64   // end of the window, exclusive
	arrivals []float64 // ms, ascending
	lanes    []batchLane
	passes   int // that ended in the window
}

// batchLane is one worker's part.
type batchLane struct {
	ends      []float64 // of its passes, ms, in order
	keep      int64     // oldest pass whose end later batches may still ask for
	done      []ending  // in signal order
	spans     []stretch.Span
	again     []Admission
	committed int64
}

// ending is a request that ended.
type ending struct {
	atMs   float64
	worker int32
	spans  int32 // its spans begin here in the lane's spans,
	nspans int32
	again  int32 // its admissions after the first in the lane's again
	result stretch.Result
}

func (b *Batch) reset(lanes int) {
	if len(b.lanes) != lanes {
		b.lanes = make([]batchLane, lanes)
	}
	b.arrivals, b.passes = b.arrivals[:0], 0
	for i := range b.lanes {
		l := &b.lanes[i]
		*l = batchLane{ends: l.ends[:0], done: l.done[:0], spans: l.spans[:0], again: l.again[:0]}
	}
}

// land takes what the lane's pass that ends at nowMs has done.
func (b *batchLane) land(l *lane, worker int32, nowMs float64) {
	w := l.w
	l.passes = w.Pass()
	b.committed += int64(w.CommittedPrefill())
	for _, id := range w.Ended() {
		r, req := w.Of(id)
		e := ending{atMs: nowMs, worker: worker, spans: int32(len(b.spans)), again: int32(len(b.again)), result: r.Result(req)}
		b.spans = r.AppendSpans(b.spans, req)
		e.nspans = int32(len(b.spans)) - e.spans
		for i := 1; i < int(e.result.Admits); i++ {
			atMs, reused := r.Readmission(req, i)
			b.again = append(b.again, Admission{atMs, reused})
		}
		b.done = append(b.done, e)
		r.Free(req)
	}
	w.Forget()
}

// ledger is Absorb's side of the windows: each worker's pass log as far back
// as a live request needs it, and the merge of their timestamps.
type ledger struct {
	logs   []laneLog
	merged []float64
	sorted []float64
	starts []int32 // bucket starts
	done   []ending
}

type laneLog struct {
	base int64 // pass number of ends[0]
	ends []float64
}

// Absorb books a batch: every timestamp is added to the worker-seconds in time
// order, and completions are booked by time, then worker, then signal order.
func (s *Sim) Absorb(b *Batch) {
	k := &s.books
	led := &s.ledger
	if led.logs == nil {
		led.logs = make([]laneLog, len(b.lanes))
	}
	k.arrived += int64(len(b.arrivals))
	led.merged, led.done = append(led.merged[:0], b.arrivals...), led.done[:0]
	lastMs := k.nowMs
	if n := len(b.arrivals); n > 0 {
		lastMs = b.arrivals[n-1]
	}
	for i := range b.lanes {
		l := &b.lanes[i]
		k.committed += l.committed
		led.done = append(led.done, l.done...)
		led.merged = append(led.merged, l.ends...)
		led.logs[i].ends = append(led.logs[i].ends, l.ends...)
		if n := len(l.ends); n > 0 && l.ends[n-1] > lastMs {
			lastMs = l.ends[n-1]
		}
	}
	k.tickAll(led.order(k.nowMs, lastMs))
	slices.SortStableFunc(led.done, func(x, y ending) int {
		switch {
		case x.atMs < y.atMs:
			return -1
		case x.atMs > y.atMs:
			return 1
		}
		return int(x.worker) - int(y.worker)
	})
	for i := range led.done {
		e := &led.done[i]
		l := &b.lanes[e.worker]
		times := s.tokenTimes(e, l.spans[e.spans:e.spans+e.nspans])
		again := l.again[e.again : e.again+max(e.result.Admits-1, 0)]
		k.account(e.worker, e.result, times, again, e.atMs)
	}
	for i := range b.lanes {
		led.logs[i].trim(b.lanes[i].keep)
	}
}

// tokenTimes are the times of an ended request's tokens.
func (s *Sim) tokenTimes(e *ending, spans []stretch.Span) []float64 {
	log := &s.ledger.logs[e.worker]
	if len(spans) == 1 && spans[0].Each == 1 {
		return log.ends[spans[0].From-log.base : spans[0].To-log.base+1]
	}
	k := &s.books
	k.need(e.result.Emitted)
	n := 0
	for _, p := range spans {
		n += stretch.Repeat(k.times[n:], log.ends[p.From-log.base:p.To-log.base+1], p.Each)
	}
	return k.times[:n]
}

// trim drops the passes before keep once they are most of the log.
func (l *laneLog) trim(keep int64) {
	cut := int(keep - l.base)
	if cut < 64 || cut*2 < len(l.ends) {
		return
	}
	n := copy(l.ends, l.ends[cut:])
	l.ends = l.ends[:n]
	l.base = keep
}

// order sorts the merged timestamps, which lie between fromMs and lastMs: into
// two buckets a value, so that few share one, then by insertion.
func (led *ledger) order(fromMs, lastMs float64) []float64 {
	in := led.merged
	n := len(in)
	if slices.IsSorted(in) {
		return in
	}
	buckets := 2 * n
	scale := float64(buckets-1) / (lastMs - fromMs)
	if !(scale > 0) || math.IsInf(scale, 1) {
		slices.Sort(in)
		return in
	}
	if cap(led.sorted) < n {
		led.sorted = make([]float64, n+n/4)
		led.starts = make([]int32, 2*len(led.sorted))
	}
	out, starts := led.sorted[:n], led.starts[:buckets]
	clear(starts)
	for _, t := range in {
		starts[int((t-fromMs)*scale)]++
	}
	total := int32(0)
	for i, c := range starts {
		starts[i] = total
		total += c
	}
	for _, t := range in {
		b := int((t - fromMs) * scale)
		out[starts[b]] = t
		starts[b]++
	}
	for i := 1; i < n; i++ {
		t := out[i]
		j := i
		for ; j > 0 && out[j-1] > t; j-- {
			out[j] = out[j-1]
		}
		out[j] = t
	}
	return out
}
