package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/ranks"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
)

// windows runs workers whose arrivals are all known ahead (one turn a session, no
// cap) through a window of time. In a round robin request i goes to worker i mod
// W whatever happens, so each worker runs by itself; behind a KV router workers
// meet at every arrival (produceRouted). What they did is put into a Batch.
// Absorb then merges the workers into what one clock would have seen. It gives the
// same bytes as the event loop.
//
// It is used only where a pass that emits tokens takes time, so no token
// appears twice at one timestamp of a worker, and where no interval between
// prompts depends on what arrives while a pass is under way.
type windows struct {
	lanes  []lane
	spanMs float64 // length of the next window
	most   int     // passes it should hold
	opened int     // arrivals seen
	cutOff bool    // the cap on simulated time was reached
	own    Batch   // Step's

	placed  int          // behind a KV router: arrivals placed
	fault   router.Fault // it could not go on
	faultMs float64
}

// lane is one worker within the window.
type lane struct {
	w      *ranks.Group
	busy   bool
	due    bool    // behind a KV router: it may begin a pass now
	endMs  float64 // of the pass under way
	at     int     // index of its next arrival
	mark   int64   // first pass not handed out yet
	passes int64   // one past the last pass that has ended
}

// A window is made shorter when it held more passes per worker than
// lanePasses, or more than windowPasses in all, and longer when it held fewer
// than a quarter of that. (With few workers a pass has many tokens.) Behind a KV
// router workers meet at every arrival, so long windows gain nothing there.
const (
	lanePasses   = 1 << 11
	windowPasses = 1 << 13
	routedPasses = 1 << 10
)

func newWindows(fast []*ranks.Group, model timing.Model, routed bool) *windows {
	w := &windows{lanes: make([]lane, len(fast)), spanMs: 256 * model.Decode(1, 1), most: min(lanePasses*len(fast), windowPasses)}
	if routed {
		w.most = routedPasses
	}
	for i := range w.lanes {
		w.lanes[i] = lane{w: fast[i], at: i}
	}
	return w
}

// stepWindows runs windows until about budget passes are done.
func (s *Sim) stepWindows(budget int) Status {
	for budget > 0 {
		b := &s.windows.own
		if status := s.Produce(b); status != Running {
			return s.Conclude(status)
		}
		budget -= b.passes + 1
		s.Absorb(b)
	}
	return Running
}

// Windowed reports whether the run can be driven by Produce and Absorb.
func (s *Sim) Windowed() bool { return s.windows != nil }

// Produce runs the workers through the next window of time and fills b. It
// touches the workers only, Absorb the accounts only, so a host with two
// cores may absorb one batch while the next is produced. Batches are absorbed
// in the order they were produced; when Produce returns something other than
// Running (then b is empty) and all are absorbed, Conclude ends the run.
func (s *Sim) Produce(b *Batch) Status {
	status := s.open(b)
	if status != Running {
		return status
	}
	win := s.windows
	passes := 0
	if s.kv != nil {
		s.produceRouted(b)
	}
	for i := range win.lanes {
		l, out := &win.lanes[i], &b.lanes[i]
		if s.kv == nil {
			s.runLane(out, l, int32(i), b.toMs)
		}
		out.ends = append(out.ends, l.w.Log(l.mark)[:l.passes-l.mark]...)
		l.mark = l.passes
		l.w.Cut(l.mark)
		out.keep = l.w.Oldest(l.mark)
		passes += len(out.ends)
	}
	b.passes = passes
	win.resize(passes)
	return Running
}

// open begins the next window of time in b with what arrives in it.
func (s *Sim) open(b *Batch) Status {
	win := s.windows
	b.reset(len(win.lanes))
	if !win.fault.OK() {
		return Stuck
	}
	fromMs := s.arrivals.next()
	for i := range win.lanes {
		if l := &win.lanes[i]; l.busy {
			fromMs = min(fromMs, l.endMs)
		}
	}
	if fromMs >= s.arrivals.horizonMs && s.arrivals.streaming {
		return Idle
	}
	if win.cutOff = fromMs > s.capMs && !math.IsInf(fromMs, 1); win.cutOff || math.IsInf(fromMs, 1) {
		return Done
	}
	b.toMs = min(fromMs+win.spanMs, s.arrivals.horizonMs)
	if !(b.toMs <= s.capMs) {
		b.toMs = after(s.capMs)
	}
	for {
		_, atMs, ok := s.arrivals.popBefore(b.toMs)
		if !ok {
			break
		}
		b.arrivals = append(b.arrivals, atMs)
		win.opened++
	}
	return Running
}

// resize sets the length of the next window by the passes of the last.
func (win *windows) resize(passes int) {
	if passes > win.most {
		win.spanMs /= 2
	} else if passes < win.most/4 {
		win.spanMs *= 2
	}
}

// Conclude ends a windowed run whose batches are absorbed.
func (s *Sim) Conclude(status Status) Status {
	if status == Stuck {
		s.fail()
	}
	if status != Done {
		return status
	}
	if s.windows.cutOff {
		s.status = Done
		return Done
	}
	return s.finish()
}

// runLane runs one worker up to toMs, exclusive.
func (s *Sim) runLane(b *batchLane, l *lane, id int32, toMs float64) {
	w := l.w
	stop := s.windows.opened
	for {
		arriveMs := math.Inf(1)
		if l.at < stop {
			arriveMs = s.arrivals.start(l.at)
		}
		nowMs := arriveMs
		if !l.busy {
			if l.at >= stop {
				return
			}
		} else {
			untilMs := toMs
			if !w.Blocked() {
				untilMs = min(untilMs, arriveMs)
			}
			s.glideLane(b, l, untilMs)
			if l.endMs >= toMs {
				return
			}
			nowMs = l.endMs
			l.busy = false
			b.land(l, id, nowMs)
		}
		for l.at < stop && s.arrivals.start(l.at) <= nowMs {
			w.Push(s.arrivals.turn(l.at))
			l.at += len(s.workers)
		}
		s.driveLane(b, l, id, nowMs)
	}
}

// glideLane runs the pure decode passes that follow the one under way.
func (s *Sim) glideLane(b *batchLane, l *lane, untilMs float64) {
	if len(l.w.Ended()) > 0 {
		return
	}
	committed := l.w.CommittedPrefill()
	endMs, n := l.w.Glide(l.endMs, untilMs, math.MaxInt32)
	if n > 0 {
		b.committed += int64(committed)
		l.endMs = endMs
		l.passes = l.w.Pass() - 1
	}
}

// driveLane is Sim.drive for a lane.
func (s *Sim) driveLane(b *batchLane, l *lane, id int32, nowMs float64) {
	w := l.w
	for w.Ready() {
		endMs := w.Begin(nowMs)
		if endMs > nowMs {
			l.busy, l.endMs = true, endMs
			return
		}
		if !w.Effect() {
			if s.cfg.Parity || w.Idle() != stretch.Hopeless {
				l.passes = w.Pass() // this one is over too
				return
			}
			w.FailHead()
		}
		s.land(b, l, id, nowMs)
	}
}
