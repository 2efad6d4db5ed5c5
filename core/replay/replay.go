package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/ranks"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/stride"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// Status says why Step returned.
type Status uint8

// Running: the budget is used up. Idle: what happens next depends on sessions
// not fed yet (see Feed). NeedTiming: an outside provider has to be asked how
// long something takes (see Query). Done: nothing is left to happen. Stuck: see
// Sim.Fault.
const (
	Running Status = iota
	Idle
	NeedTiming
	Done
	Stuck
)

// Fault is why a run got stuck: requests are in flight and nothing is left to
// happen, or they are on a worker of SGLang that cannot go on, which ends the
// run at once. The reference ends so where a request can never be served;
// without Parity such a request fails by itself and the run goes on.
type Fault struct {
	InFlight int64 // requests, under SGLang those of the worker
	NowMs    float64
	Endless  bool // the reference does not end so, nor at all
}

// Options choose between twins that give the same bytes.
type Options struct {
	Plain    bool // the readable pass-by-pass, block-by-block engine
	Eventful bool // one event after the other, even where windows are exact
	Record   bool // passes and requests, see Recording; it takes the plain engine
}

// worker is what the event loop needs of an engine; ranks.Group documents the
// methods.
type worker interface {
	Push(turn int32)
	Ready() bool
	Begin(nowMs float64) float64
	Resume() float64
	Ask() (timing.Query, bool)
	ShareAnswers(c *timing.Cache)
	Glide(endMs, untilMs float64, most int) (float64, int)
	Effect() bool
	Idle() stretch.Verdict
	InFlight() int
	CommittedPrefill() int
	Ended() []int32
	Result(id int32) stretch.Result
	Times(id int32, buf []float64) []float64
	Readmission(id int32, i int) (atMs float64, reused int32)
	Free(id int32)
	FailHead()
	Log(first int64) []float64
	Pass() int64
	Preemptions() int64
	Trim()
}

// divider is a cache on paths of the prefix tree, which may split.
type divider interface {
	Divide(segment, front int32)
}

// Sim is one run.
type Sim struct {
	cfg      config.Replay
	load     *workload.Workload
	workers  []worker
	copiers  []copier // the workers, if they have host memory
	arrivals arrivals
	books    books
	windows  *windows  // nil: one event after the other
	caches   []divider // of fast engines
	ledger   ledger
	numbers  *numbers        // plain engines: hash ids as tokens
	talk     *talk           // nil: the workload's inputs are whole prompts
	answers  *timing.Cache   // of an outside provider of durations
	host     *offload.Shared // host memory of all workers; nil: they have their own or none
	tape     *recorder       // nil: nobody asks

	capMs   float64 // no timestamp after it is entered
	busy    heap    // passes under way
	flying  []bool  // by worker: a pass is under way
	parked  parked
	due     []int32 // idle workers to drive at nowMs
	isDue   []bool
	driven  int     // of due: those driven already, while driving
	again   []int32 // driven without effect: once more after the next effect
	copied  []int32 // of them, those to drive once more in any case
	moved   bool    // something has happened since all idle workers were driven
	driving bool
	asking  int32 // worker whose pass waits for its duration; -1: none
	begun   int64 // passes begun by drive
	dead    bool  // a worker cannot go on, and the run ends with it
	rr      int
	status  Status
	fault   Fault
}

// New prepares a run; cfg has passed config's check. A workload that says its
// trace block size wins over cfg.
func New(cfg config.Replay, w *workload.Workload, o Options) *Sim {
	return newSim(cfg, w, o, false)
}

func newSim(cfg config.Replay, w *workload.Workload, o Options, streaming bool) *Sim {
	var says *talk
	if w.Delta {
		says = newTalk(w, cfg.Engine.BlockSize)
		w = says.load
	}
	if w.TraceBlockSize > 0 {
		cfg.TraceBlockSize = w.TraceBlockSize
	}
	s := &Sim{cfg: cfg, load: w, talk: says, capMs: math.Inf(1), isDue: make([]bool, cfg.NumWorkers), flying: make([]bool, cfg.NumWorkers), asking: -1}
	if cfg.MaxSimTimeMs >= 0 {
		s.capMs = cfg.MaxSimTimeMs
	}
	strides := stride.Serves(cfg.Engine)
	plain := o.Plain || o.Record || len(w.Planned) > 0 || !strides && !stretch.Serves(cfg.Engine)
	switch {
	case says != nil:
		says.split = s.divide
	case plain:
		s.numbers = newNumbers()
		s.numbers.addAll(w, 0)
	}
	s.host = group.NewHost(cfg.Engine, cfg.NumWorkers)
	s.tape = newRecorder(o)
	fast := make([]*ranks.Group, 0, cfg.NumWorkers)
	for i := range cfg.NumWorkers {
		if plain {
			p := newPlain(cfg, w, s.numbers, i, s.host)
			p.talk, p.tape = says, s.tape
			if p.copies {
				s.copiers = append(s.copiers, p)
			}
			s.workers = append(s.workers, p)
			continue
		}
		if strides && cfg.Engine.DPSize > 1 {
			x := stride.NewGroup(cfg.Engine, w, cfg.TraceBlockSize)
			s.caches, s.workers = append(s.caches, x), append(s.workers, x)
			continue
		}
		if strides {
			x := stride.New(cfg.Engine, w, cfg.TraceBlockSize)
			s.caches, s.workers = append(s.caches, x), append(s.workers, x)
			continue
		}
		x := ranks.New(cfg, i, w)
		s.caches, s.workers, fast = append(s.caches, x), append(s.workers, x), append(fast, x)
	}
	s.parked.init(cfg)
	s.arrivals.init(cfg, w, streaming)
	s.books.init(cfg, w, !s.arrivals.fixed())
	s.books.tape = s.tape
	if cfg.Engine.Timing.Kind == config.External {
		s.answers = timing.NewCache()
		for _, w := range s.workers {
			w.ShareAnswers(s.answers)
		}
		return s // without windows: their workers run on beside each other
	}
	model := timing.New(cfg.Engine)
	// A window goes on until its time is up. Under parity speculation may keep a
	// worker at one time for ever (stretch.Circling), and Step has to return.
	endless := cfg.Parity && cfg.Engine.MTP.Drafts > 0
	if len(fast) > 0 && !o.Eventful && s.arrivals.fixed() && !model.CanBeZero() && !endless && !counts(cfg.Engine) {
		s.windows = newWindows(fast, model)
	}
	return s
}

// Fault explains Stuck.
func (s *Sim) Fault() Fault { return s.fault }

// Progress is the number of requests with a terminal and of all requests.
func (s *Sim) Progress() (done, total int64) { return s.books.ended(), int64(len(s.load.Turns)) }

// Preemptions counts preempted requests since the start.
func (s *Sim) Preemptions() int64 {
	n := int64(0)
	for _, w := range s.workers {
		n += w.Preemptions()
	}
	return n
}

// Step runs about budget internal events (passes and timestamps), at least
// one. The outcome does not depend on the budgets it is run with.
func (s *Sim) Step(budget int) Status {
	if s.status != Running {
		return s.status
	}
	if s.windows != nil {
		return s.stepWindows(budget)
	}
	for budget > 0 {
		if s.dead {
			s.status = Stuck
			return Stuck
		}
		if s.unanswered() {
			return NeedTiming
		}
		if s.arrivals.owed > 0 {
			return Idle
		}
		if len(s.due) > 0 {
			budget -= s.settle() // goes on where it stopped
			continue
		}
		if n := s.glide(budget); n > 0 {
			budget -= n
			continue
		}
		t := s.arrivals.next()
		if len(s.busy) > 0 {
			t = min(t, s.busy[0].atMs)
		}
		t = min(t, s.nextInternalMs())
		if s.arrivals.streaming && t >= s.arrivals.horizonMs {
			return Idle
		}
		if math.IsInf(t, 1) {
			return s.finish()
		}
		if t > s.capMs {
			s.status = Done
			return Done
		}
		s.books.tick(t)
		s.moved = true
		budget -= s.settle()
	}
	if s.unanswered() {
		return NeedTiming
	}
	return Running
}

// finish ends a run that has no next timestamp.
func (s *Sim) finish() Status {
	s.status = Done
	if n := s.books.inFlight(); n > 0 {
		s.status = Stuck
		s.fault = Fault{InFlight: n, NowMs: s.books.nowMs}
	}
	return s.status
}

// settle does everything that happens at the current timestamp, or as much as
// it can before a session is fed that begins now or a worker spins too long.
// It returns how many events that were: the timestamp and the passes begun.
func (s *Sim) settle() int {
	before := s.begun
	for {
		if !s.driving {
			received := s.receive()
			if s.arrivals.owed > 0 {
				return 1 + int(s.begun-before)
			}
			s.unpark(received)
			s.stir()
			if len(s.due) == 0 {
				return 1 + int(s.begun-before)
			}
			slices.Sort(s.due)
			s.driving = true
		}
		for s.driven < len(s.due) {
			w := s.due[s.driven]
			if !s.drive(w) {
				return 1 + int(s.begun-before)
			}
			s.isDue[w] = false
			s.driven++
		}
		s.due, s.driven, s.driving = s.due[:0], 0, false
		for _, w := range s.copied {
			s.wake(w)
		}
		s.again, s.copied = s.again[:0], s.copied[:0]
	}
}

// receive lets copies to and from host memory end, completes the passes that
// end now, then lets arrive what is due; what waits for requests of a graph that
// have ended is decided in between. It reports whether anything ended or arrived.
func (s *Sim) receive() (any bool) {
	s.internal()
	for len(s.busy) > 0 && s.busy[0].atMs == s.books.nowMs {
		w := s.busy.pop().id
		s.flying[w] = false
		complete(s.workers[w], s.books.nowMs)
		s.show(w)
		s.wake(w)
		any = true
	}
	if s.host != nil {
		s.internal()
	}
	if a := s.arrivals.agents; a != nil {
		a.flush(s.books.nowMs)
	}
	for {
		turn, atMs, ok := s.arrivals.pop(s.books.nowMs)
		if !ok {
			return any
		}
		any = true
		s.books.arrive(turn, atMs)
		w := int32(s.rr)
		if s.rr++; s.rr == len(s.workers) {
			s.rr = 0
		}
		s.workers[w].Push(turn)
		if !s.flying[w] {
			s.wake(w)
		}
	}
}

func (s *Sim) wake(w int32) {
	if !s.isDue[w] {
		s.isDue[w] = true
		s.due = append(s.due, w)
	}
}

// spins is how many passes without duration drive runs in one go: under parity
// there may be no end of them (corrections §4), and Step has to return.
const spins = 1 << 10

// drive runs an idle worker's passes at the current timestamp: those that take
// no time, until one takes time or has no effect. False: there may be more, or
// the run is dead, or a duration has to be asked for.
func (s *Sim) drive(id int32) bool {
	w := s.workers[id]
	for n := 0; s.asking == id || w.Ready(); n++ {
		if n == spins {
			return false
		}
		endMs, ok := s.begin(w, id)
		if !ok {
			return false
		}
		if endMs > s.books.nowMs {
			s.busy.push(event{atMs: endMs, id: id})
			s.flying[id] = true
			s.affect()
			s.moved = true
			s.rescan(id, false)
			return true
		}
		complete(w, endMs)
		if w.Effect() {
			s.affect()
		} else {
			if s.copiers != nil && s.later(id) {
				return true
			}
			v := w.Idle()
			switch {
			case v == stretch.Again:
				continue
			case v == stretch.Parked:
				s.park(id)
				return true
			case s.cfg.Parity:
				s.park(id)
				return s.giveUp(w, v)
			}
			w.FailHead()
		}
		s.show(id)
		s.moved = true
		if len(s.again) > 0 {
			s.rescan(id, true)
			return true
		}
	}
	return true
}

// giveUp is what the reference does with a worker that cannot go on: one of
// vLLM's family is left alone until something arrives, one of SGLang ends the
// run.
func (s *Sim) giveUp(w worker, v stretch.Verdict) bool {
	if s.cfg.Engine.Backend != config.SGLang {
		return true
	}
	s.dead = true
	s.fault = Fault{InFlight: int64(w.InFlight()), NowMs: s.books.nowMs, Endless: v == stretch.Endless}
	return false
}

// show books what a completed pass has done.
func (s *Sim) show(id int32) {
	w := s.workers[id]
	s.books.committed += int64(w.CommittedPrefill())
	ended := w.Ended()
	for _, r := range ended {
		e := s.end(w, id, r)
		if s.talk != nil {
			s.talk.heard(e.Turn, e.Emitted)
		}
		s.arrivals.feedback(e.Turn, e.Fate, s.books.nowMs)
		w.Free(r)
	}
	if len(ended) > 0 {
		w.Trim()
	}
}

// end books one request that ended at the current timestamp.
func (s *Sim) end(w worker, id, req int32) stretch.Result {
	b := &s.books
	r := w.Result(req)
	b.need(r.Emitted)
	b.again = b.again[:0]
	for i := 1; i < int(r.Admits); i++ {
		atMs, reused := w.Readmission(req, i)
		b.again = append(b.again, Admission{atMs, reused})
	}
	b.account(id, r, w.Times(req, b.times), b.again, s.books.nowMs)
	return r
}

// glide lets the worker whose pass ends next run on alone while nothing else
// can happen. It returns the number of passes.
func (s *Sim) glide(most int) int {
	if len(s.busy) == 0 {
		return 0
	}
	f := s.busy[0]
	w := s.workers[f.id]
	if len(w.Ended()) > 0 {
		return 0
	}
	untilMs := min(s.arrivals.next(), s.arrivals.horizonMs)
	for i := 1; i < min(3, len(s.busy)); i++ {
		untilMs = min(untilMs, s.busy[i].atMs)
	}
	if s.capMs < untilMs {
		untilMs = after(s.capMs)
	}
	committed := w.CommittedPrefill()
	first := w.Pass()
	endMs, n := w.Glide(f.atMs, untilMs, most)
	if n == 0 {
		return 0
	}
	s.books.committed += int64(committed)
	s.books.tick(f.atMs)
	s.books.tickAll(w.Log(first)[:n-1])
	s.busy[0].atMs = endMs
	s.busy.sink()
	return n
}

// after is the smallest float above x, x >= 0.
func after(x float64) float64 { return math.Float64frombits(math.Float64bits(x) + 1) }
