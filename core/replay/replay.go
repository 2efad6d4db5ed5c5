package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/ranks"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/stride"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// Status says why Step returned.
type Status uint8

// Running: the budget is used up. Idle: what happens next depends on sessions
// not fed yet (see Feed). NeedTiming: an outside provider has to be asked how
// long something takes (see Query). NeedScaling: the policy has to be asked how
// many workers there are to be (see Tick). Done: nothing is left to happen. Stuck: see
// Sim.Fault.
const (
	Running Status = iota
	Idle
	NeedTiming
	NeedScaling
	Done
	Stuck
)

// Fault is why a run got stuck: requests are in flight and nothing is left to
// happen, or they are on a worker of SGLang that cannot go on, which ends the
// run at once. The reference ends so where a request can never be served;
// without Parity such a request fails by itself and the run goes on.
//
// Or the KV router cannot go on: Router says why. The reference aborts on it.
type Fault struct {
	InFlight int64 // requests, under SGLang those of the worker
	NowMs    float64
	Endless  bool // the reference does not end so, nor at all
	Nobody   bool // a request has come and no worker serves
	Router   router.Fault
}

// Options choose between twins that give the same bytes.
type Options struct {
	Plain    bool // the readable pass-by-pass, block-by-block engine
	Eventful bool // one event after the other, even where windows are exact
	Record   bool // passes and requests, see Recording; it takes the plain engine

	// Seats are, by turn, where the KV router of another run has placed turns, for
	// comparisons with one whose lots are not known. This run gets stuck if its
	// router would never have placed one there.
	Seats       []router.Seat
	DecodeSeats []router.Seat // of two pools: the same of those that decode, Seats of those that compute prompts
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
	windows  *windows // nil: one event after the other
	placing  placing
	kv       *kvRouting // nil: placing alone says where requests go
	caches   []divider  // of fast engines
	pools    *pools     // nil: workers serve whole requests
	control  *control   // nil: workers neither come nor go, and nobody looks
	gone     int64      // preemptions of workers that are gone
	readable bool       // the workers are plain ones
	ledger   ledger
	numbers  *numbers      // plain engines: hash ids as tokens
	talk     *talk         // nil: the workload's inputs are whole prompts
	answers  *timing.Cache // of an outside provider of durations
	tiers    offload.Tiers // what workers share besides the GPUs
	tape     *recorder     // nil: nobody asks

	capMs    float64 // no timestamp after it is entered
	busy     heap    // passes under way
	flying   []bool  // by worker: a pass is under way
	parked   parked
	due      []int32 // idle workers to drive at nowMs
	isDue    []bool
	driven   int     // of due: those driven already, while driving; the others ascend then
	again    []int32 // driven without effect: once more after the next effect
	copied   []int32 // of them, those to drive once more in any case
	driving  bool
	asking   int32 // worker whose pass waits for its duration; -1: none
	landing  int32 // worker whose pass has ended and is being told; -1: none
	halfway  bool  // receive could not go on
	received bool  // something has ended or arrived since the last drive
	begun    int64 // passes begun by drive
	dead     bool  // a worker or the router cannot go on, and the run ends with it
	status   Status
	fault    Fault
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
	s := &Sim{cfg: cfg, load: w, talk: says, capMs: math.Inf(1), isDue: make([]bool, cfg.NumWorkers), flying: make([]bool, cfg.NumWorkers), asking: -1, landing: -1}
	if cfg.MaxSimTimeMs >= 0 {
		s.capMs = cfg.MaxSimTimeMs
	}
	routed := cfg.Routing.Mode == config.KVRouter
	s.control = newControl(s, cfg)
	plain := s.readableOnly(o) || !stride.Serves(cfg.Engine) && !stretch.Serves(cfg.Engine)
	switch {
	case says != nil:
		says.split = s.divide
	case plain:
		s.numbers = newNumbers()
		s.numbers.addAll(w, 0)
	}
	s.tape = newRecorder(o)
	s.books.tape = s.tape
	s.readable = plain
	if cfg.Disaggregated() {
		s.pools = newPools(s, o, streaming)
		return s
	}
	fast := s.build()
	s.parked.init(cfg)
	s.arrivals.init(cfg, w, streaming)
	s.books.init(cfg, w, !s.arrivals.fixed())
	s.placing.init(cfg)
	if s.control != nil {
		s.control.enroll(ServingPool, aggregate{s}, cfg.Scaling.StartupMs, cfg.NumWorkers)
		s.placing.changes = true
		s.placing.active = appendIDs(nil, s.control.fleets[0].active)
	}
	if routed {
		s.kv = newKVRouting(cfg, w, s.workers, o.Seats)
		if s.kv.paths != nil {
			s.caches = append(s.caches, s.kv.paths)
		}
	}
	asks := cfg.Engine.Timing.Kind == config.External
	if asks || cfg.Routing.AskLoad {
		s.answers = timing.NewCache()
	}
	if s.kv != nil && s.answers != nil {
		s.kv.predict.Share(s.answers)
	}
	if asks {
		for _, w := range s.workers {
			w.ShareAnswers(s.answers)
		}
		return s // without windows: their workers run on beside each other
	}
	model := timing.New(cfg.Engine)
	// A window goes on until its time is up. Under parity speculation may keep a
	// worker at one time for ever (stretch.Circling), and Step has to return.
	endless := cfg.Parity && cfg.Engine.MTP.Drafts > 0
	alone := s.placing.inTurn() || s.kv != nil && !s.kv.router.Waits()
	if len(fast) > 0 && !o.Eventful && alone && s.arrivals.fixed() && s.answers == nil && !model.CanBeZero() && !endless && !counts(cfg.Engine) && s.control == nil {
		s.windows = newWindows(fast, model, routed)
	}
	return s
}

// readableOnly reports whether the fast engines do not do what is asked for,
// whatever the engine.
func (s *Sim) readableOnly(o Options) bool {
	routed := s.cfg.Routing.Mode == config.KVRouter
	changing := s.control != nil && (s.control.meters || routed)
	return o.Plain || o.Record || changing || len(s.load.Planned) > 0 || routed && s.talk != nil || s.cfg.Disaggregated()
}

// build makes the workers of the start and returns those that windows can run.
func (s *Sim) build() (fast []*ranks.Group) {
	s.tiers = group.NewTiers(s.cfg.Engine, s.cfg.NumWorkers)
	for i := range s.cfg.NumWorkers {
		if x, ok := s.newWorker(i).(*ranks.Group); ok {
			fast = append(fast, x)
		}
	}
	return fast
}

// newWorker makes the worker with the next number, a plain or a fast one.
func (s *Sim) newWorker(i int) worker {
	cfg, w := s.cfg, s.load
	var x interface {
		worker
		divider
	}
	switch {
	case s.readable:
		if s.tiers.Host != nil {
			s.tiers.Host.Grow((i + 1) * cfg.Engine.DPSize)
		}
		p := newPlain(cfg, w, s.numbers, i, s.tiers)
		p.talk, p.tape = s.talk, s.tape
		if s.control != nil && s.control.meters {
			p.meter = newMeter(s.books.into, cfg.Engine.DPSize, cfg.Engine.NumGPUBlocks)
		}
		if p.copies {
			s.copiers = append(s.copiers, p)
		}
		s.workers = append(s.workers, p)
		return p
	case !stride.Serves(cfg.Engine):
		x = ranks.New(cfg, i, w)
	case cfg.Engine.DPSize > 1:
		x = stride.NewGroup(cfg.Engine, w, cfg.TraceBlockSize)
	default:
		x = stride.New(cfg.Engine, w, cfg.TraceBlockSize)
	}
	s.caches, s.workers = append(s.caches, x), append(s.workers, x)
	return x
}

// Fault explains Stuck.
func (s *Sim) Fault() Fault { return s.fault }

// Progress is the number of requests with a terminal and of all requests.
func (s *Sim) Progress() (done, total int64) { return s.books.ended(), int64(len(s.load.Turns)) }

// Preemptions counts preempted requests since the start.
func (s *Sim) Preemptions() int64 {
	if s.pools != nil {
		return s.pools.preemptions()
	}
	n := s.gone
	for _, w := range s.workers {
		if w != nil {
			n += w.Preemptions()
		}
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
	if s.pools != nil {
		status := s.pools.step(budget)
		if status == Done || status == Stuck {
			s.status = status
		}
		return status
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
		if s.undecided() {
			return s.waits()
		}
		if len(s.due) > 0 || s.halfway || s.control != nil && s.control.again {
			budget -= s.settle() // goes on where it stopped
			continue
		}
		if n := s.glide(budget); n > 0 {
			budget -= n
			continue
		}
		t := s.next()
		if s.arrivals.streaming && t >= s.arrivals.horizonMs {
			return Idle
		}
		if math.IsInf(t, 1) {
			if s.unblock() {
				budget -= s.settle()
				continue
			}
			return s.finish()
		}
		if t > s.capMs {
			return s.end(Done)
		}
		s.books.tick(t)
		budget -= s.settle()
	}
	return s.paused()
}

// paused is the status of a run whose budget is used up.
func (s *Sim) paused() Status {
	if s.unanswered() {
		return NeedTiming
	}
	if s.control != nil && s.control.asked {
		return NeedScaling
	}
	return Running
}

// undecided reports whether the run waits for the policy, or waits to know
// whether it is to be asked at all; waits says which.
func (s *Sim) undecided() bool {
	c := s.control
	if c == nil || c.asked || !c.again {
		return c != nil && c.asked
	}
	_, unsure := c.over()
	return unsure
}

func (s *Sim) waits() Status {
	if s.control.asked {
		return NeedScaling
	}
	return Idle
}

// next is the time of the next event in ms, +Inf if there is none.
func (s *Sim) next() float64 {
	t := s.arrivals.next()
	if len(s.busy) > 0 {
		t = min(t, s.busy[0].atMs)
	}
	t = min(t, s.nextInternalMs())
	if s.control != nil {
		t = s.control.next(t)
	}
	return t
}

// finish ends a run that has no next timestamp.
func (s *Sim) finish() Status {
	if n := s.books.inFlight(); n > 0 {
		s.fault = Fault{InFlight: n, NowMs: s.books.nowMs}
		return s.end(Stuck)
	}
	return s.end(Done)
}

func (s *Sim) end(status Status) Status {
	s.status = status
	if s.control != nil && status == Done {
		s.control.last()
	}
	return status
}

// book books one request that ended at the current timestamp.
func (s *Sim) book(w worker, id, req int32) stretch.Result {
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
	if len(w.Ended()) > 0 || s.kv != nil && s.kv.workers[f.id].Begun() {
		return 0
	}
	untilMs := min(s.arrivals.next(), s.arrivals.horizonMs)
	if s.control != nil {
		untilMs = min(untilMs, s.control.nextMs())
	}
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
	if s.kv != nil {
		s.kv.paths.learn(f.id, passEnds{lastMs: f.atMs, firstMs: f.atMs, ends: w.Log(first)[:n-1], underWay: true})
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
