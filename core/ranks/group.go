package ranks

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// Group is one worker. A request is named by its number on its rank times the
// number of ranks, plus the rank.
type Group struct {
	ranks     []*stretch.Worker
	log       stretch.Log
	next      int     // rank of the next turn
	interval  int     // prompts are computed in every interval-th pass
	step      int     // passes since the group was last drained
	startMs   float64 // of the last pass
	ended     []int32
	committed int
	effect    bool
}

// New returns worker id (from 0) of a run, idle. cfg is checked and its engine one
// that stretch.Serves.
func New(cfg config.Replay, id int, w *workload.Workload) *Group {
	g := &Group{ranks: make([]*stretch.Worker, cfg.Engine.DPSize), interval: 1}
	if len(g.ranks) > 1 {
		g.interval = cfg.Engine.PrefillScheduleInterval
	}
	for i := range g.ranks {
		g.ranks[i] = stretch.New(cfg, w, &g.log, id, i)
	}
	return g
}

// Divide follows a split in the prefix tree.
func (g *Group) Divide(s, front int32) {
	for _, r := range g.ranks {
		r.Divide(s, front)
	}
}

// Push queues a turn on the rank whose turn it is. It is seen by the next pass.
func (g *Group) Push(turn int32) {
	g.ranks[g.next].Push(turn)
	if g.next++; g.next == len(g.ranks) {
		g.next = 0
	}
}

// Ready reports whether a pass could do something on any rank.
func (g *Group) Ready() bool {
	for _, r := range g.ranks {
		if r.Ready() {
			return true
		}
	}
	return false
}

// Blocked reports whether whatever arrives only waits until a running request
// ends, on every rank.
func (g *Group) Blocked() bool {
	for _, r := range g.ranks {
		if !r.Blocked() {
			return false
		}
	}
	return true
}

// InFlight counts requests that run or wait.
func (g *Group) InFlight() int {
	n := 0
	for _, r := range g.ranks {
		n += r.Running() + r.Waiting()
	}
	return n
}

// Preemptions counts preempted requests since the start.
func (g *Group) Preemptions() int64 {
	n := int64(0)
	for _, r := range g.ranks {
		n += r.Preemptions()
	}
	return n
}

// Begin runs the pass that starts at nowMs on every rank that has work and
// returns its end, which is that of the slowest of them.
//
// If an outside provider has to say how long the pass takes, the answer is
// timing.Unknown. All but the end is done then; Resume tells it once what Ask
// asks has been answered, and nothing else may be called before.
func (g *Group) Begin(nowMs float64) float64 {
	endMs, known := nowMs, true
	free := g.interval == 1 || g.step%g.interval == 0
	committed, effect, ended := 0, false, g.ended[:0]
	for i, r := range g.ranks {
		if !r.Ready() {
			r.Advance(1, free)
			continue
		}
		if ms := r.Begin(nowMs, free); ms > endMs {
			endMs = ms
		} else if ms == timing.Unknown {
			known = false
		}
		committed += r.CommittedPrefill()
		effect = effect || r.Effect()
		ended = g.append(ended, i, r.Ended())
	}
	if !known {
		endMs = timing.Unknown
	}
	g.startMs, g.committed, g.effect, g.ended = nowMs, committed, effect, ended
	g.log.Add(endMs)
	return endMs
}

// Resume is Begin's answer for the pass that Begin ran last.
func (g *Group) Resume() float64 {
	endMs := 0.0 // no time is before it
	for _, r := range g.ranks {
		ms := r.Resume()
		if ms == timing.Unknown {
			return ms
		}
		endMs = max(endMs, ms)
	}
	g.log.Amend(endMs)
	return endMs
}

// Complete is to be called at the end of a pass. What arrives before keeps the
// group from being drained, on which the interval between prompts depends; where
// there is none, it may be left out (engine notes §3).
func (g *Group) Complete() {
	if g.interval == 1 {
		return
	}
	if g.step++; !g.Ready() {
		g.step = 0
	}
}

// Ask is what has to be known before Resume can tell, if there is anything: of
// the first rank that cannot tell.
func (g *Group) Ask() (timing.Query, bool) {
	for _, r := range g.ranks {
		if q, ask := r.Ask(); ask {
			return q, true
		}
	}
	return timing.Query{}, false
}

// ShareAnswers lets all ranks find an outside provider's answers in c.
func (g *Group) ShareAnswers(c *timing.Cache) {
	for _, r := range g.ranks {
		r.ShareAnswers(c)
	}
}

// append names requests of a rank.
func (g *Group) append(dst []int32, rank int, requests []int32) []int32 {
	for _, id := range requests {
		dst = append(dst, id*int32(len(g.ranks))+int32(rank))
	}
	return dst
}

// Effect reports whether the last pass did anything (corrections §4).
func (g *Group) Effect() bool { return g.effect }

// Idle is the verdict on a pass without effect: with nothing running, nothing
// can change any more.
func (g *Group) Idle() stretch.Verdict {
	for _, r := range g.ranks {
		if r.Running() > 0 {
			return stretch.Parked
		}
	}
	return stretch.Hopeless
}

// FailHead ends the head of every rank's queue, after a verdict of Hopeless.
func (g *Group) FailHead() {
	g.ended = g.ended[:0]
	for i, r := range g.ranks {
		if r.Waiting() > 0 {
			r.FailHead()
			g.ended = g.append(g.ended, i, r.Ended())
		}
	}
}

// CommittedPrefill is the number of tokens the last pass scheduled for
// requests that had prompt work (replay notes §9.1).
func (g *Group) CommittedPrefill() int { return g.committed }

// Ended lists the requests the last pass ended, rank by rank in signal order.
// Each is to be given back with Free before the next pass begins.
func (g *Group) Ended() []int32 { return g.ended }

// Forget empties Ended, once all are freed.
func (g *Group) Forget() { g.ended = g.ended[:0] }

// Of is the rank of a request, and its name there.
func (g *Group) Of(id int32) (*stretch.Worker, int32) {
	n := int32(len(g.ranks))
	if n == 1 {
		return g.ranks[0], id
	}
	return g.ranks[id%n], id / n
}

// Result describes an ended request.
func (g *Group) Result(id int32) stretch.Result {
	r, req := g.Of(id)
	return r.Result(req)
}

// Times returns the times of an ended request's tokens, as stretch.Worker does.
func (g *Group) Times(id int32, buf []float64) []float64 {
	r, req := g.Of(id)
	return r.Times(req, buf)
}

// Readmission is the i-th admission of an ended request, 1 <= i < Admits.
func (g *Group) Readmission(id int32, i int) (atMs float64, reused int32) {
	r, req := g.Of(id)
	return r.Readmission(req, i)
}

// Free forgets an ended request.
func (g *Group) Free(id int32) {
	r, req := g.Of(id)
	r.Free(req)
}

// Log is the ends of the passes from number first on, in ms.
func (g *Group) Log(first int64) []float64 { return g.log.From(first) }

// Pass is the number of passes begun.
func (g *Group) Pass() int64 { return g.log.Next() }

// Oldest is the first pass that gave a token to a request still with a rank
// (running, preempted, or ended by the last pass), at most keep.
func (g *Group) Oldest(keep int64) int64 {
	for _, r := range g.ranks {
		keep = r.Oldest(keep)
	}
	return keep
}

// Cut drops the log before pass keep.
func (g *Group) Cut(keep int64) { g.log.Cut(keep) }

// Trim drops the part of the log that no request needs any more, now and then.
func (g *Group) Trim() {
	if g.log.Full() {
		g.log.Trim(g.Oldest(g.log.Next()))
	}
}
