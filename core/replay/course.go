package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/workload"
)

// Course is a run whose engines are the caller's, on whatever clock: it says
// which turn arrives when and how its prompt is spelt, and keeps the books of
// what becomes of it. Sessions, caps and graphs, and every formula of the
// report, are those of a Sim (replay notes §5, §8, §9.1).
//
// The caller lets turns arrive with Arrive and says of each of them once, with
// End, how it ended. Times are ms since the run began.
type Course struct {
	speller
	arrivals arrivals
	books    books
	again    []Admission // scratch
}

// Outcome is what became of a turn. Its slices are the caller's.
type Outcome struct {
	Turn         int32
	Worker, Rank int32          // that had it
	Status       TerminalStatus // Completed, Rejected or Failed
	EndMs        float64
	TimesMs      []float64   // of its tokens
	Admissions   []Admission // in order
	HostTokens   int32       // of those reused at the first admission, loaded from host memory
}

// NewCourse prepares a run; cfg has passed config's check, and asks neither for
// two pools nor for scaling, samples or a last time. A workload that says its
// trace block size wins over cfg.
func NewCourse(cfg config.Replay, w *workload.Workload) *Course {
	c := &Course{}
	if w.Delta {
		c.talk = newTalk(w, cfg.Engine.BlockSize)
		w = c.talk.load
	} else {
		c.numbers = newNumbers()
		c.numbers.addAll(w, 0)
	}
	if w.TraceBlockSize > 0 {
		cfg.TraceBlockSize = w.TraceBlockSize
	}
	c.load, c.traceSize = w, cfg.TraceBlockSize
	c.arrivals.init(cfg, w, false)
	c.books.init(cfg, w, true)
	return c
}

// NextMs is when the next turn arrives, +Inf if that depends on ends to come or
// none is left.
func (c *Course) NextMs() float64 { return c.arrivals.next() }

// Arrive takes the next turn if it is due at nowMs. atMs is when it was due,
// which its latencies count from. Turns due at one time come in the order of a
// Sim.
func (c *Course) Arrive(nowMs float64) (turn int32, atMs float64, ok bool) {
	dueMs := c.arrivals.next()
	if dueMs > nowMs {
		return 0, 0, false
	}
	if turn, atMs, ok = c.arrivals.pop(dueMs); ok {
		c.books.arrive(turn, atMs)
	}
	return turn, atMs, ok
}

// ID is the UUID of a turn's request.
func (c *Course) ID(turn int32) [16]byte { return turnID(turn) }

// Spell spells a turn's prompt in tokens, and its output where that matters, as
// an engine takes them. Both are valid until the next call.
func (c *Course) Spell(turn int32) (prompt, output []uint32) { return c.spell(turn) }

// End takes the end of a turn that has arrived, and lets follow what waited for
// it.
func (c *Course) End(e *Outcome) {
	r := stretch.Result{Turn: e.Turn, Rank: e.Rank, Fate: fate(e.Status), Emitted: int32(len(e.TimesMs)), Admits: int32(len(e.Admissions)), Host: e.HostTokens}
	c.again = c.again[:0]
	for i, a := range e.Admissions {
		r.Most = max(r.Most, a.Reused)
		if i == 0 {
			r.AdmitMs, r.Reused = a.AtMs, a.Reused
		} else {
			c.again = append(c.again, a)
		}
	}
	c.books.account(e.Worker, r, e.TimesMs, c.again, e.EndMs)
	if c.talk != nil {
		c.talk.heard(e.Turn, r.Emitted)
	}
	c.arrivals.feedback(e.Turn, r.Fate, e.EndMs)
	c.arrivals.settled(e.Turn)
	if a := c.arrivals.agents; a != nil {
		a.flush(e.EndMs)
	}
}

func fate(s TerminalStatus) stretch.Fate {
	switch s {
	case Rejected:
		return stretch.Rejected
	case Failed:
		return stretch.Failed
	}
	return stretch.Completed
}

// Done reports whether all turns have ended, and none is to come.
func (c *Course) Done() bool { return c.books.inFlight() == 0 && math.IsInf(c.arrivals.next(), 1) }

// Progress is the number of requests that have ended and of all requests.
func (c *Course) Progress() (done, total int64) { return c.books.ended(), int64(len(c.load.Turns)) }

// Records returns the per-request records (CaptureRequests) in the order of
// their ends.
func (c *Course) Records() []Record { return c.books.records }

// Admissions backs the records' admission histories.
func (c *Course) Admissions() []Admission { return c.books.admissions }

// Unservable lists the turns that failed because they can never be served, in file order.
func (c *Course) Unservable() []int32 { return c.books.failures() }

// Lane is the lane that took up a play of a graph, -1 if there are no lanes.
func (c *Course) Lane(play int32) int32 { return c.arrivals.agents.plays[play].lane }

// Summary computes the report's numbers; engines have computed so many tokens of
// prompts. Every worker counts from the beginning to the last end. What becomes
// of single plays, and in which order, is not told: as in the reference, whose
// reports of real time lack it. It sorts the samples: call it once, at the end.
func (c *Course) Summary(committed int64) Summary {
	b := &c.books
	b.committed = committed
	b.workerSeconds = b.workers * b.seconds()
	r := b.summary(c.arrivals.agents)
	if r.Agents != nil {
		r.Agents.Events, r.Agents.Outcomes, r.Agents.Digest = 0, nil, [32]byte{}
	}
	return r
}
