package stride

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// Group is a worker of several data-parallel ranks behind a shared pass
// barrier: those that have work begin a pass together, it ends when the slowest
// of them does, and every token of it is seen then. A rank without work rests.
// What all did in a pass decides when each may take prompts again (engine
// notes §3, §6.1 step 10). A request is named by its number on its rank times
// the number of ranks, plus the rank.
type Group struct {
	ranks []*Worker
	next  int    // rank of the next turn
	took  []bool // by rank: it took part in the last pass

	startMs   float64 // of the last pass
	ended     []int32
	committed int
	effect    bool
	deferred  bool // some rank held prompts back
	moved     bool // the ratio of some rank has changed
	stuck     bool
	retries   int

	ends   []float64 // of the passes from number base on
	base   int64
	passes int64
}

// NewGroup returns an idle worker of e.DPSize ranks. e is checked and one that
// it Serves.
func NewGroup(e config.Engine, w *workload.Workload, traceBlockSize int) *Group {
	g := &Group{ranks: make([]*Worker, e.DPSize), took: make([]bool, e.DPSize)}
	for i := range g.ranks {
		g.ranks[i] = New(e, w, traceBlockSize)
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

// Begin runs the pass that starts at nowMs on every rank that has work and
// returns its end, or timing.Unknown, as Worker.Begin does.
func (g *Group) Begin(nowMs float64) float64 {
	g.startMs, g.ended, g.committed = nowMs, g.ended[:0], 0
	g.effect, g.deferred, g.moved, g.stuck = false, false, false, false
	prefilled, decoded := false, false
	for i, r := range g.ranks {
		g.took[i] = r.Ready()
		if !g.took[i] {
			r.rest()
			continue
		}
		r.begin(nowMs)
		p := &r.pass
		prefilled, decoded = prefilled || p.prefilled, decoded || p.decoded
		g.committed += p.committed
		g.effect = g.effect || p.effect
		g.stuck = g.stuck || p.stuck
		g.deferred = g.deferred || p.deferred
		g.moved = g.moved || p.ratio != r.ratio.now
		for _, id := range r.ended {
			g.ended = append(g.ended, id*int32(len(g.ranks))+int32(i))
		}
	}
	for _, r := range g.ranks {
		r.endRound(prefilled, prefilled || decoded)
	}
	if g.effect {
		g.retries = 0
	}
	return g.Resume()
}

// Resume is Begin's answer for the pass that Begin ran last.
func (g *Group) Resume() float64 {
	endMs := g.startMs
	for i, r := range g.ranks {
		if !g.took[i] {
			continue
		}
		ms := r.model.End(r.timed)
		if ms == timing.Unknown {
			return ms
		}
		endMs = max(endMs, ms)
	}
	for i, r := range g.ranks {
		if g.took[i] {
			r.date(endMs)
		}
	}
	return endMs
}

// Ask is what has to be known before Resume can tell, if there is anything: of
// the first rank that cannot tell.
func (g *Group) Ask() (timing.Query, bool) {
	for i, r := range g.ranks {
		if q, ask := r.Ask(); ask && g.took[i] {
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

// Idle is the verdict on a pass without time and effect (engine notes §3).
func (g *Group) Idle() stretch.Verdict {
	switch {
	case g.deferred:
		return stretch.Again
	case g.moved && g.retries < maxRetries:
		g.retries++
		return stretch.Again
	case g.stuck:
		return stretch.Endless
	}
	return stretch.Hopeless
}

// FailHead ends what is hopeless on every rank, as Worker.FailHead does.
func (g *Group) FailHead() {
	g.ended = g.ended[:0]
	for i, r := range g.ranks {
		r.FailHead()
		for _, id := range r.ended {
			g.ended = append(g.ended, id*int32(len(g.ranks))+int32(i))
		}
	}
}

// InFlight counts requests.
func (g *Group) InFlight() int {
	n := 0
	for _, r := range g.ranks {
		n += r.InFlight()
	}
	return n
}

// Preemptions counts retracted requests since the start.
func (g *Group) Preemptions() int64 {
	n := int64(0)
	for _, r := range g.ranks {
		n += r.Preemptions()
	}
	return n
}

// Effect reports whether the last pass did anything (corrections §4).
func (g *Group) Effect() bool { return g.effect }

// CommittedPrefill is the number of prompt tokens the last pass computed
// (replay notes §9.1).
func (g *Group) CommittedPrefill() int { return g.committed }

// Ended lists the requests the last pass ended, rank by rank in signal order.
func (g *Group) Ended() []int32 { return g.ended }

func (g *Group) of(id int32) (r *Worker, rank, req int32) {
	n := int32(len(g.ranks))
	return g.ranks[id%n], id % n, id / n
}

// Result describes an ended request.
func (g *Group) Result(id int32) stretch.Result {
	r, rank, req := g.of(id)
	result := r.Result(req)
	result.Rank = rank
	return result
}

// Times returns the times of an ended request's tokens, as Worker.Times does.
func (g *Group) Times(id int32, buf []float64) []float64 {
	r, _, req := g.of(id)
	return r.Times(req, buf)
}

// Readmission is the i-th admission of an ended request, 1 <= i < Admits.
func (g *Group) Readmission(id int32, i int) (atMs float64, reused int32) {
	r, _, req := g.of(id)
	return r.Readmission(req, i)
}

// Free forgets an ended request.
func (g *Group) Free(id int32) {
	r, _, req := g.of(id)
	r.Free(req)
}

// Log is the ends of the passes from number first on, in ms; they are kept for
// the last Glide only.
func (g *Group) Log(first int64) []float64 { return g.ends[first-g.base:] }

// Pass is the number of passes that Glide has run.
func (g *Group) Pass() int64 { return g.passes }

// Trim drops the parts of the ranks' logs that no request needs any more, now
// and then.
func (g *Group) Trim() {
	for _, r := range g.ranks {
		r.Trim()
	}
}

// chunk is how many passes are computed ahead at most.
const chunk = 256

// Glide runs passes in which every rank decodes or has nothing to do, as
// Worker.Glide does. The ranks share nothing but the clock, so each gives the
// durations of a run of passes at once; the longest of each are added up.
func (g *Group) Glide(endMs, untilMs float64, most int) (float64, int) {
	g.base, g.ends = g.passes, g.ends[:0]
	for len(g.ends) < most && endMs < untilMs {
		n := g.calm(min(most-len(g.ends), g.guess(endMs, untilMs)))
		if n > 0 {
			endMs, n = g.decode(endMs, untilMs, n)
		}
		if n == 0 {
			break
		}
	}
	n := len(g.ends)
	g.passes += int64(n)
	if n > 0 {
		g.ended, g.committed, g.effect, g.retries = g.ended[:0], 0, true, 0
	}
	return endMs, n
}

// decode is Glide for at most most passes that every rank is calm for.
func (g *Group) decode(endMs, untilMs float64, most int) (float64, int) {
	from := len(g.ends)
	for range most {
		g.ends = append(g.ends, 0)
	}
	ends := g.ends[from:]
	known := most
	for _, r := range g.ranks {
		known = r.durations(ends[:known])
	}
	n := 0
	for ; n < known && endMs < untilMs; n++ {
		g.startMs = endMs
		endMs += ends[n]
		ends[n] = endMs
	}
	g.ends = g.ends[:from+n]
	if n > 0 {
		for _, r := range g.ranks {
			r.advance(ends[:n])
		}
	}
	return endMs, n
}

// calm is how many passes, at most most, every rank is calm for; 0 if none
// decodes.
func (g *Group) calm(most int) int {
	decodes := false
	for _, r := range g.ranks {
		if most = r.calm(most); most == 0 {
			return 0
		}
		decodes = decodes || len(r.run) > 0
	}
	if !decodes {
		return 0
	}
	return most
}

// guess is about how many passes begin before untilMs, if they take as long as
// the one that ends at endMs.
func (g *Group) guess(endMs, untilMs float64) int {
	step, span := endMs-g.startMs, untilMs-endMs
	if span <= step {
		return 1
	}
	if n := span / step; n < chunk-1 {
		return int(n) + 1
	}
	return chunk
}
