// Package worker is a live worker: one simulated engine, with its data-parallel
// ranks, that runs as time passes.
//
// It owns when passes begin and end on a clock, what becomes of requests that
// can never be served, and who is told of each token. It does not own the
// schedulers (core/group), which token ids an answer has, or how requests come
// in.
//
// A Worker is a value that is stepped: Submit and Cancel at any time, Advance
// when the time has come that Advance named. It has no clock, so a test can turn
// time as it likes. A Loop steps one on a clock, from a goroutine of its own.
//
// Invariants:
//   - a pass begins when the one before it ended, as the model says, not when the
//     machine noticed; but never more than catchUpMs in the past.
//   - a request that comes during a pass joins the scheduler at its end, one that
//     comes at its end is in the next one, too; a cancelled one leaves at once, and
//     nothing more is said of it.
//   - every request that is taken and not cancelled gets exactly one last signal.
//
// Source: live notes §8.3; engine notes §3.
package worker

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
)

// catchUpMs is how far behind the clock a pass may begin. The reference lets it
// be 5; a machine with other work keeps a process waiting for longer now and
// then, and each time the rest would be lost for good.
const catchUpMs = 100

// burst is how many passes Advance runs before it lets others have a word. It
// matters where passes take no time.
const burst = 16

// End says why a request got its last signal.
type End uint8

// Running is no end. Completed: all its tokens came. Rejected: the engine does
// not admit it. Unservable: it never could be served and would have kept others
// waiting. Refused: the worker does not take it, see Signal.Code. Closed: the
// worker is no more.
const (
	Running End = iota
	Completed
	Rejected
	Unservable
	Refused
	Closed
)

// Fact is what happens to a request that is handed over from one worker to
// another, besides tokens and its end.
type Fact uint8

// A request's prompt is computed and kept (Held); a prompt will get room
// (Accepted), has it (Reserved), has been activated (Activated) or had nothing to
// be activated (Idle).
const (
	NoFact Fact = iota
	Held
	Accepted
	Reserved
	Activated
	Idle
)

// Duty is what a worker does of a request.
type Duty uint8

// All of it; only its prompt, which is kept until Release; all but its prompt,
// after Activate.
const (
	Whole Duty = iota
	Prompt
	Decoding
)

// Signal is what a request is told.
type Signal struct {
	AtMs   float64 // when it happened, as the model says
	Worker uint64  // number in the fleet
	Rank   int
	Token  bool // there is one more token
	End    End
	Code   engine.Code // of a Refused one
	First  bool        // the request's first signal
	Cached int         // First: prompt tokens found cached at the first admission
	Admits []Admission // with an End: when the engine let it in, in order; the sink's from then on
	Fact   Fact        // of a handoff; there is no token and no end then
	Tokens int         // Held: of the prompt; Reserved: those that have to be brought
}

// Admission is when a pass began that a request is in, the first one after it
// waited.
type Admission struct {
	AtMs   float64 // as the model says
	Reused int     // prompt tokens found cached, those loaded for it included
	Host   int     // of them, tokens loaded from host memory
}

// Sink is who is told, by the worker's goroutine: Signal must not block, nor
// call the worker.
type Sink interface{ Signal(Signal) }

// Observer is told what ranks say. Both must not block; the arguments are valid
// during the call only.
type Observer interface {
	// Passed: a pass has ended, at nowMs as the model says. It comes before the
	// signals of the pass.
	Passed(rank int, out *engine.Out, nowMs float64)
	// Commanded: a command came between two passes; m is what the rank is like
	// after it.
	Commanded(rank int, said *engine.Effects, m engine.Metrics, nowMs float64)
}

// AnyRank asks for the ranks in turn.
const AnyRank = -1

// Request is what a worker is asked.
type Request struct {
	UUID      [16]byte
	Rank      int // AnyRank: whose turn it is
	Tokens    []uint32
	MaxOutput int
	OutputIDs []uint32 // planned output, see engine.Request
	Duty      Duty
	CameMs    float64 // for a Loop: when it came, if that is before now
}

// Ticket names a request in a worker, from Submit to its last signal or to
// Cancel.
type Ticket uint32

// Options of a worker.
type Options struct {
	ReadyMs  float64  // requests wait until then
	Observer Observer // may be nil
}

// Worker is the state. Take it from New.
type Worker struct {
	g       *group.Group
	id      uint64
	readyMs float64
	watch   Observer

	entries []entry // by ticket
	free    []Ticket
	later   []errand // came during the pass in flight
	active  int
	outside int // prompts kept, and rooms reserved, for others to ask for
	turn    int // rank of the next request that may have any

	cursorMs   float64 // no pass begins before it
	startMs    float64 // of the pass begun last
	endMs      float64 // of the pass in flight
	parked     bool    // passing again would change nothing
	retries    int     // passes in a row repeated for moved estimates
	speculates bool
	fruitless  []int // by rank: passes that preempted since the last output
}

// entry is a request.
type entry struct {
	state   state
	rank    int
	handle  engine.Handle
	request Request
	sink    Sink
	told    bool
	admits  []Admission
	duty    Duty
	outside bool // counted by the worker's outside
}

type state uint8

const (
	absent state = iota
	queued       // in later
	submitted
)

// New returns an idle worker, number id of a fleet. cfg has passed config's check.
func New(cfg config.Engine, id uint64, o Options) *Worker {
	g := group.New(cfg, id)
	return &Worker{
		g: g, id: id, readyMs: o.ReadyMs, watch: o.Observer, cursorMs: o.ReadyMs, fruitless: make([]int, g.Ranks()),
		speculates: cfg.MTP.Drafts > 0 && cfg.Backend != config.SGLang,
	}
}

// Ranks is the number of ranks.
func (w *Worker) Ranks() int { return w.g.Ranks() }

// Active counts the requests that have come and not ended.
func (w *Worker) Active() int { return w.active }

// Submit brings a request at nowMs. It may be refused, now or at the end of the
// pass in flight; the signal says so.
func (w *Worker) Submit(q Request, to Sink, nowMs float64) Ticket {
	if q.Rank == AnyRank {
		q.Rank = w.turn
		w.turn = (w.turn + 1) % w.g.Ranks()
	}
	t := w.ticket()
	w.active++
	w.entries[t] = entry{state: queued, rank: q.Rank, request: q, sink: to, duty: q.Duty}
	switch {
	case q.Duty == Decoding: // as in the reference it asks for room at once
		w.reserve(t, nowMs)
	case w.g.InFlight():
		w.later = append(w.later, errand{t, admission})
	default:
		w.cursorMs = max(w.cursorMs, nowMs)
		w.admit(t, nowMs)
	}
	return t
}

func (w *Worker) ticket() Ticket {
	if n := len(w.free); n > 0 {
		t := w.free[n-1]
		w.free = w.free[:n-1]
		return t
	}
	w.entries = append(w.entries, entry{})
	return Ticket(len(w.entries) - 1)
}

// admit gives a request to its rank, between two passes.
func (w *Worker) admit(t Ticket, nowMs float64) {
	e := &w.entries[t]
	submit := w.g.Submit
	if e.duty == Prompt {
		submit = w.g.SubmitPrefill
	}
	h, code := submit(e.rank, e.request.to(t))
	if code != engine.Applied {
		w.finish(t, Signal{AtMs: nowMs, End: Refused, Code: code})
		return
	}
	e.state, e.handle, e.request = submitted, h, Request{} // the engine has its copy
	w.parked = false
	w.tellEffects(e.rank, nowMs)
}

// to is the request as the engine has it.
func (q *Request) to(t Ticket) engine.Request {
	return engine.Request{UUID: q.UUID, Tag: uint32(t), Tokens: q.Tokens, MaxOutput: q.MaxOutput, OutputIDs: q.OutputIDs}
}

// Cancel ends a request at nowMs; nothing more is said of it. It is nothing if
// the request has had its last signal.
func (w *Worker) Cancel(t Ticket, nowMs float64) {
	e := &w.entries[t]
	switch e.state {
	case absent:
		return
	case submitted:
		rank := e.rank
		w.cancelIn(e)
		w.release(t)
		if !w.g.InFlight() {
			w.cursorMs = max(w.cursorMs, nowMs)
		}
		w.tellEffects(rank, nowMs)
		w.parked = false
		return
	}
	w.release(t)
}

func (w *Worker) cancelIn(e *entry) {
	if r := w.g.SGLang(e.rank); r != nil {
		r.Cancel(e.handle)
		return
	}
	w.g.Rank(e.rank).Cancel(e.handle)
}

// tellEffects passes on what a command said. During a pass blocks are told of at
// its end, so there are facts of handoffs only.
func (w *Worker) tellEffects(rank int, nowMs float64) {
	said := w.g.Effects(rank)
	if w.watch != nil && !w.g.InFlight() {
		if r := w.g.SGLang(rank); r != nil {
			w.watch.Commanded(rank, said, r.Metrics(), nowMs)
		} else {
			w.watch.Commanded(rank, said, w.g.Rank(rank).Metrics(), nowMs)
		}
	}
	w.facts(said.Lifecycle, nowMs)
}

// Close ends all requests.
func (w *Worker) Close(nowMs float64) {
	for t := range w.entries {
		if w.entries[t].state != absent {
			w.finish(Ticket(t), Signal{AtMs: nowMs, End: Closed})
		}
	}
	w.later = w.later[:0]
}

// Advance does what is due at nowMs and returns when it wants to be called
// next, +Inf if only a command gives it something to do. A time that is not
// after nowMs means at once, but commands may come first.
func (w *Worker) Advance(nowMs float64) (wakeMs float64) { return w.advance(nowMs, math.Inf(1)) }

// Reach does what is due before a command that comes at nowMs: as in a replay a
// pass that ends then has ended, and none has begun that could have it in
// (corrections §3). Passes that take no time are left to Advance.
func (w *Worker) Reach(nowMs float64) {
	for beforeMs := w.cursorMs; w.advance(nowMs, nowMs) <= nowMs && w.cursorMs > beforeMs; {
		beforeMs = w.cursorMs
	}
}

// advance is Advance; no pass begins at untilMs or later.
func (w *Worker) advance(nowMs, untilMs float64) (wakeMs float64) {
	if nowMs < w.readyMs {
		return w.readyMs
	}
	for range burst {
		if w.g.InFlight() {
			if w.endMs > nowMs {
				return w.endMs
			}
			w.complete()
			continue
		}
		internal, copies := w.g.NextInternalMs()
		if copies && internal <= nowMs {
			w.internal(internal)
			continue
		}
		start := max(w.cursorMs, nowMs-catchUpMs)
		if start >= untilMs {
			return nowMs
		}
		if w.parked || !w.begin(start) {
			if copies {
				return internal
			}
			return math.Inf(1)
		}
	}
	return nowMs
}

// internal does what ranks do by themselves between passes.
func (w *Worker) internal(nowMs float64) {
	w.g.Internal(nowMs)
	w.cursorMs, w.parked = max(w.cursorMs, nowMs), false
	for rank := range w.g.Ranks() {
		if w.g.Stirred(rank) {
			w.tellEffects(rank, nowMs)
		}
	}
}

// begin begins a pass, if there is something to do.
func (w *Worker) begin(start float64) bool {
	end, ok := w.g.Begin(start)
	if !ok {
		return false
	}
	w.startMs, w.endMs = start, end
	for rank := range w.g.Ranks() {
		for _, a := range w.g.Out(rank).Admissions {
			e := &w.entries[a.Tag]
			e.admits = append(e.admits, Admission{start, a.Reused, a.Host})
		}
	}
	return true
}
