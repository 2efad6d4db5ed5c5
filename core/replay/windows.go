package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
)

// windows runs workers whose arrivals are all known ahead (round robin, one
// turn a session, no cap): request i goes to worker i mod W whatever happens,
// so each worker runs through a window of time by itself, and only then are
// the windows of all workers merged into what one clock would have seen. It
// gives the same bytes as the event loop: every timestamp is added to the
// worker-seconds in time order, and completions are booked by time, then
// worker, then signal order.
//
// It is used only where a pass that emits tokens takes time, so no token
// appears twice at one timestamp of a worker.
type windows struct {
	lanes  []lane
	spanMs float64 // length of the next window
	opened int     // arrivals seen
	merged []float64
	starts []int32 // bucket starts of the merge
	sorted []float64
	ends   []finish
}

// lane is one worker within the window.
type lane struct {
	w      *stretch.Worker
	busy   bool
	endMs  float64 // of the pass under way
	at     int     // index of its next arrival
	mark   int64   // first pass not merged yet
	passes int64   // passes that end in this window: mark..passes-1
	done   []finish
}

// finish is a request that ended.
type finish struct {
	atMs   float64
	worker int32
	id     int32
}

// A window is made shorter when it held more passes than windowPasses and
// longer when it held fewer than a quarter of that.
const windowPasses = 1 << 15

func newWindows(fast []*stretch.Worker, model timing.Model) *windows {
	w := &windows{lanes: make([]lane, len(fast)), spanMs: 256 * model.Decode(1, 1)}
	for i := range w.lanes {
		w.lanes[i] = lane{w: fast[i], at: i}
	}
	return w
}

// stepWindows runs windows until about budget passes are done.
func (s *Sim) stepWindows(budget int) Status {
	win := s.windows
	for budget > 0 {
		fromMs := s.arrivals.next()
		for i := range win.lanes {
			if l := &win.lanes[i]; l.busy {
				fromMs = min(fromMs, l.endMs)
			}
		}
		if math.IsInf(fromMs, 1) {
			return s.finish()
		}
		if fromMs > s.capMs {
			s.status = Done
			return Done
		}
		toMs := fromMs + win.spanMs
		if !(toMs <= s.capMs) {
			toMs = after(s.capMs)
		}
		n := s.window(toMs)
		budget -= n + 1
		if n > windowPasses {
			win.spanMs /= 2
		} else if n < windowPasses/4 {
			win.spanMs *= 2
		}
	}
	return Running
}

// window runs every worker up to toMs, exclusive, and merges the outcome. It
// returns the number of passes that ended.
func (s *Sim) window(toMs float64) int {
	win := s.windows
	win.merged = win.merged[:0]
	first := win.opened
	for {
		turn, atMs, ok := s.arrivals.popBefore(toMs)
		if !ok {
			break
		}
		s.books.arrive(turn, atMs)
		win.merged = append(win.merged, atMs)
		win.opened++
	}
	arrived := len(win.merged)
	win.ends = win.ends[:0]
	for i := range win.lanes {
		l := &win.lanes[i]
		s.runLane(l, int32(i), win.merged[:arrived], first, toMs)
		win.merged = append(win.merged, l.w.Log(l.mark)[:l.passes-l.mark]...)
		l.mark = l.passes
	}
	s.tickAll(win.order(s.nowMs, toMs))
	s.bookEnds()
	for i := range win.lanes {
		l := &win.lanes[i]
		l.w.Trim(l.mark)
	}
	return len(win.merged) - arrived
}

// runLane runs one worker through the window. times are the window's arrivals,
// the first of which is arrival number first.
func (s *Sim) runLane(l *lane, id int32, times []float64, first int, toMs float64) {
	w := l.w
	stop := first + len(times)
	nowMs := 0.0
	for {
		if !l.busy {
			if l.at >= stop {
				return
			}
			nowMs = times[l.at-first]
		} else {
			untilMs := toMs
			if l.at < stop && (w.Waiting() == 0 || !w.Stalled()) {
				untilMs = min(untilMs, times[l.at-first])
			}
			s.glideLane(l, untilMs)
			if l.endMs >= toMs {
				return
			}
			nowMs = l.endMs
			l.busy = false
			l.passes = w.Pass()
			s.landLane(l, id, nowMs)
		}
		for l.at < stop && times[l.at-first] <= nowMs {
			w.Push(s.arrivals.turn(l.at))
			l.at += len(s.workers)
		}
		s.driveLane(l, id, nowMs)
	}
}

// glideLane runs the pure decode passes that follow the one under way.
func (s *Sim) glideLane(l *lane, untilMs float64) {
	if len(l.w.Ended()) > 0 {
		return
	}
	committed := l.w.CommittedPrefill()
	endMs, n := l.w.Glide(l.endMs, untilMs, math.MaxInt32)
	if n > 0 {
		s.books.committed += int64(committed)
		l.endMs = endMs
		l.passes = l.w.Pass() - 1
	}
}

// landLane takes what the pass that ends at nowMs has done.
func (s *Sim) landLane(l *lane, id int32, nowMs float64) {
	s.books.committed += int64(l.w.CommittedPrefill())
	for _, r := range l.w.Ended() {
		s.windows.ends = append(s.windows.ends, finish{nowMs, id, r})
	}
}

// driveLane is Sim.drive for a lane.
func (s *Sim) driveLane(l *lane, id int32, nowMs float64) {
	w := l.w
	for w.Ready() {
		endMs := w.Begin(nowMs)
		if endMs > nowMs {
			l.busy, l.endMs = true, endMs
			return
		}
		if !w.Effect() {
			if s.cfg.Parity || w.Running() > 0 {
				return
			}
			w.FailHead()
		}
		l.passes = w.Pass()
		s.landLane(l, id, nowMs)
	}
}

// bookEnds books the window's completions in the order one clock sees them.
func (s *Sim) bookEnds() {
	ends := s.windows.ends
	slices.SortStableFunc(ends, func(a, b finish) int {
		switch {
		case a.atMs < b.atMs:
			return -1
		case a.atMs > b.atMs:
			return 1
		}
		return int(a.worker) - int(b.worker)
	})
	for _, e := range ends {
		w := s.windows.lanes[e.worker].w
		s.books.end(w, e.worker, e.id, e.atMs)
		w.Free(e.id)
	}
}

// tickAll moves the clock through sorted timestamps.
func (s *Sim) tickAll(times []float64) {
	workers := float64(s.cfg.NumWorkers)
	sum, now := s.books.workerSeconds, s.nowMs
	for _, t := range times {
		sum += float64(workers*(t-now)) / 1000
		now = t
	}
	s.books.workerSeconds, s.nowMs = sum, now
}

// order sorts the window's timestamps, which lie between fromMs and toMs: into
// about as many buckets as there are values, then by insertion.
func (win *windows) order(fromMs, toMs float64) []float64 {
	in := win.merged
	n := len(in)
	if n < 2 {
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
	if cap(win.sorted) < n {
		win.sorted = make([]float64, n+n/4)
		win.starts = make([]int32, n+n/4+1)
	}
	out, starts := win.sorted[:n], win.starts[:n+1]
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
