package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/sorting"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/workload"
)

// arrivals issues the turns of sessions (replay notes §5). In trace mode a
// session begins at its start; with a concurrency cap the next session begins
// when one of the active ones ends. A turn after the first comes its delay
// after the one before it ended. Turns due at one time come by session, then
// by turn.
type arrivals struct {
	load   *workload.Workload
	order  []int32 // sessions by start; nil: file order, or a cap
	opened int     // sessions begun
	capped bool
	single bool // every session has one turn
	heap   heap
	agents *agents // not nil: it issues all of them

	// While sessions are still being fed: the start of the newest, before
	// which everything is known (+Inf once all are there, or under a cap), and
	// under a cap the number of sessions that should begin at owedMs.
	streaming bool
	horizonMs float64
	owed      int
	owedMs    float64
}

func (a *arrivals) init(cfg config.Replay, w *workload.Workload, streaming bool) {
	a.load, a.streaming = w, streaming
	a.capped = cfg.Concurrency > 0
	a.single = len(w.Sessions) == len(w.Turns)
	a.horizonMs = math.Inf(1)
	if w.Graph != nil {
		a.agents = newAgents(w.Graph, cfg.Lanes)
		return
	}
	if a.capped {
		for i := 0; i < cfg.Concurrency && (streaming || i < len(w.Sessions)); i++ {
			a.open(0)
		}
		return
	}
	byStart := func(x, y workload.Session) int { return cmp.Compare(x.StartMs, y.StartMs) }
	if slices.IsSortedFunc(w.Sessions, byStart) {
		return
	}
	a.order = make([]int32, len(w.Sessions))
	for i := range a.order {
		a.order[i] = int32(i)
	}
	sorting.Stable(a.order, func(i, j int32) int { return byStart(w.Sessions[i], w.Sessions[j]) })
}

// fixed reports whether every arrival is known from the start.
func (a *arrivals) fixed() bool { return a.single && !a.capped && a.agents == nil }

// session is the i-th session to begin.
func (a *arrivals) session(i int) int32 {
	if a.order != nil {
		return a.order[i]
	}
	return int32(i)
}

// upcoming is the next session to begin by itself.
func (a *arrivals) upcoming() (event, bool) {
	if a.capped || a.opened == len(a.load.Sessions) {
		return event{}, false
	}
	i := a.session(a.opened)
	s := &a.load.Sessions[i]
	return event{s.StartMs, i, s.First}, true
}

// next is the time of the next arrival in ms, +Inf if none is due by itself.
func (a *arrivals) next() float64 {
	if a.agents != nil {
		return a.agents.next()
	}
	t := math.Inf(1)
	if len(a.heap) > 0 {
		t = a.heap[0].atMs
	}
	if r, ok := a.upcoming(); ok {
		t = min(t, r.atMs)
	}
	return t
}

// pop takes the first arrival due at nowMs.
func (a *arrivals) pop(nowMs float64) (turn int32, atMs float64, ok bool) {
	if a.agents != nil {
		return a.agents.pop(nowMs)
	}
	r, ok := a.upcoming()
	if len(a.heap) > 0 && (!ok || a.heap[0].before(r)) {
		if r = a.heap[0]; r.atMs > nowMs {
			return 0, 0, false
		}
		a.heap.pop()
		return r.turn, r.atMs, true
	}
	if !ok || r.atMs > nowMs {
		return 0, 0, false
	}
	a.opened++
	return r.turn, r.atMs, true
}

// popBefore takes the next session's first turn if it arrives before untilMs;
// for fixed arrivals.
func (a *arrivals) popBefore(untilMs float64) (turn int32, atMs float64, ok bool) {
	r, ok := a.upcoming()
	if !ok || r.atMs >= untilMs {
		return 0, 0, false
	}
	a.opened++
	return r.turn, r.atMs, true
}

// turn is the i-th turn to arrive, for fixed arrivals.
func (a *arrivals) turn(i int) int32 { return a.load.Sessions[a.session(i)].First }

// start is when the i-th turn arrives, for fixed arrivals.
func (a *arrivals) start(i int) float64 { return a.load.Sessions[a.session(i)].StartMs }

// open begins the next session at atMs under a cap.
func (a *arrivals) open(atMs float64) {
	i := a.opened
	if i == len(a.load.Sessions) {
		if a.streaming {
			a.owed++
			a.owedMs = atMs
		}
		return
	}
	a.opened++
	a.heap.push(event{atMs, int32(i), a.load.Sessions[i].First})
}

// feedback continues the session of a turn that ended at nowMs; a failed turn
// ends it (corrections §5).
func (a *arrivals) feedback(turn int32, fate stretch.Fate, nowMs float64) {
	if a.agents != nil {
		a.agents.feedback(turn, status(fate))
		return
	}
	t := &a.load.Turns[turn]
	if t.Next >= 0 && fate != stretch.Failed {
		a.heap.push(event{nowMs + a.load.Turns[t.Next].DelayMs, t.Session, t.Next})
	} else if a.capped {
		a.open(nowMs)
	}
}

// settled takes a turn that has ended and of which no worker has anything left:
// where prompts are handed over it may end before its source is released.
func (a *arrivals) settled(turn int32) {
	if a.agents != nil {
		a.agents.settled(turn)
	}
}
