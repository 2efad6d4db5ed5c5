package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/stretch"
)

// Batch is what the workers did in one window of time, before it is merged.
type Batch struct {
	arrivals  []float64 // ms, ascending
	lanes     []batchLane
	ends      []ending
	spans     []stretch.Span
	again     []Admission
	committed int64
	passes    int
}

// batchLane is one worker's part: the ends of its passes, in order, and the
// oldest pass whose end later batches may still ask for.
type batchLane struct {
	ends []float64
	keep int64
}

// ending is a request that ended.
type ending struct {
	atMs   float64
	worker int32
	spans  int32 // its spans begin here in Batch.spans,
	nspans int32
	again  int32 // its admissions after the first in Batch.again
	result stretch.Result
}

func (b *Batch) reset(lanes int) {
	if len(b.lanes) != lanes {
		b.lanes = make([]batchLane, lanes)
	}
	for i := range b.lanes {
		b.lanes[i].ends = b.lanes[i].ends[:0]
	}
	b.arrivals, b.ends, b.spans, b.again = b.arrivals[:0], b.ends[:0], b.spans[:0], b.again[:0]
	b.committed, b.passes = 0, 0
}

// land takes what the lane's pass that ends at nowMs has done.
func (b *Batch) land(l *lane, id int32, nowMs float64) {
	w := l.w
	l.passes = w.Pass()
	b.committed += int64(w.CommittedPrefill())
	for _, req := range w.Ended() {
		e := ending{atMs: nowMs, worker: id, spans: int32(len(b.spans)), again: int32(len(b.again)), result: w.Result(req)}
		b.spans = w.AppendSpans(b.spans, req)
		e.nspans = int32(len(b.spans)) - e.spans
		for i := 1; i < int(e.result.Admits); i++ {
			atMs, reused := w.Readmission(req, i)
			b.again = append(b.again, Admission{atMs, reused})
		}
		b.ends = append(b.ends, e)
		w.Free(req)
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
	k.committed += b.committed
	led.merged = append(led.merged[:0], b.arrivals...)
	for i := range b.lanes {
		led.merged = append(led.merged, b.lanes[i].ends...)
		led.logs[i].ends = append(led.logs[i].ends, b.lanes[i].ends...)
	}
	k.tickAll(led.order(k.nowMs))
	slices.SortStableFunc(b.ends, func(x, y ending) int {
		switch {
		case x.atMs < y.atMs:
			return -1
		case x.atMs > y.atMs:
			return 1
		}
		return int(x.worker) - int(y.worker)
	})
	for i := range b.ends {
		e := &b.ends[i]
		times := s.tokenTimes(e, b.spans[e.spans:e.spans+e.nspans])
		again := b.again[e.again : e.again+max(e.result.Admits-1, 0)]
		k.account(e.worker, e.result, times, again, e.atMs)
	}
	for i := range b.lanes {
		led.logs[i].trim(b.lanes[i].keep)
	}
}

// tokenTimes are the times of an ended request's tokens.
func (s *Sim) tokenTimes(e *ending, spans []stretch.Span) []float64 {
	log := &s.ledger.logs[e.worker]
	if len(spans) == 1 {
		return log.ends[spans[0].From-log.base : spans[0].To-log.base+1]
	}
	k := &s.books
	k.times = k.times[:0]
	for _, p := range spans {
		k.times = append(k.times, log.ends[p.From-log.base:p.To-log.base+1]...)
	}
	return k.times
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

// order sorts the merged timestamps, none of which is before fromMs: into
// about as many buckets as there are values, then by insertion.
func (led *ledger) order(fromMs float64) []float64 {
	in := led.merged
	n := len(in)
	if slices.IsSorted(in) {
		return in
	}
	last := fromMs
	for _, t := range in {
		last = max(last, t)
	}
	scale := float64(n-1) / (last - fromMs)
	if !(scale > 0) || math.IsInf(scale, 1) {
		slices.Sort(in)
		return in
	}
	if cap(led.sorted) < n {
		led.sorted = make([]float64, n+n/4)
		led.starts = make([]int32, n+n/4+1)
	}
	out, starts := led.sorted[:n], led.starts[:n]
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
