package online

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Options are the host's part in a run.
type Options struct {
	// Clock shows 0 when Run is called; nil: the machine's.
	Clock clock.Clock
	// Progress is told now and then how many of all requests have ended; it may
	// be nil.
	Progress func(done, total int64)
}

// Result is what a run leaves.
type Result struct {
	Summary    replay.Summary
	Records    []replay.Record // with config.Replay.CaptureRequests
	Admissions []replay.Admission
	Unservable []int32
	Lane       func(play int32) int32                // of a graph of agents
	Route      func(turn int32) (replay.Route, bool) // nil: no KV router
	WallMs     float64                               // from the start to the last end
	LateMs     float64                               // the longest time from when a token was due to when it was told of
}

// run is the state of a run. What the workers' goroutines touch is guarded or
// theirs until they have said the last of a request.
type run struct {
	load      *workload.Workload
	course    *replay.Course
	fleet     *fleet.Fleet
	clock     clock.Clock
	progress  func(done, total int64)
	routes    []route // by turn; nil: no KV router
	told      []told  // by worker
	lateMs    float64
	committed atomic.Int64 // tokens of prompts computed by passes that have ended

	mu    sync.Mutex
	ended []*request
	fault error         // the router cannot go on
	wake  chan struct{} // holds one token: something has ended, or the run is to
}

type route struct {
	replay.Route
	known bool
}

// told is when a worker has last said something, as its model says and as the
// clock showed then, and the requests that have ended since it rested. It is touched
// by the worker's goroutine.
type told struct {
	atMs, nowMs float64
	ended       []*request
}

// Run replays w in real time and returns when its last request has ended, or when
// ctx ends, with the context's error. cfg is what NewCourse wants; host memory
// that workers share, disks, durations from outside and named workers are not for
// it.
func Run(ctx context.Context, cfg config.Replay, w *workload.Workload, o Options) (*Result, error) {
	r := &run{load: w, course: replay.NewCourse(cfg, w), clock: o.Clock, progress: o.Progress, wake: make(chan struct{}, 1)}
	if r.progress == nil {
		r.progress = func(done, total int64) {}
	}
	for range cfg.NumWorkers {
		r.told = append(r.told, told{atMs: math.NaN()})
	}
	if cfg.Routing.Mode == config.KVRouter {
		r.routes = make([]route, len(w.Turns))
	}
	if r.clock == nil {
		r.clock = clock.NewWall(true)
	}
	f := fleetOptions(cfg)
	f.Rested = r.rested
	f.Clock, f.Warn, f.Observer = r.clock, r.fail, func(int) worker.Observer { return counter{&r.committed} }
	r.fleet = fleet.New(f)
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() { r.fleet.Run(ctx) })
	defer workers.Wait()
	defer cancel()
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	wallMs := r.clock.NowMs()
	cancel()
	workers.Wait() // a pass that nobody waits for may go on
	return r.result(wallMs), nil
}

// fleetOptions are the workers and the router of a run.
func fleetOptions(cfg config.Replay) fleet.Options {
	o := fleet.Options{Engine: cfg.Engine, Workers: cfg.NumWorkers, Seed: cfg.Routing.Seed}
	switch cfg.Routing.Mode {
	case config.Random:
		o.Mode = fleet.Random
	case config.PowerOfTwo:
		o.Mode = fleet.PowerOfTwo
	case config.LeastLoaded:
		o.Mode = fleet.LeastLoaded
	case config.KVRouter:
		o.Mode, o.Router = fleet.KV, *cfg.Routing.Router
		o.Tracking = seq.Plain(cfg.Engine.BlockSize)
		if o.Router.TrackingHash == config.KeyedXXH3 {
			o.Tracking.BlockSeed, o.Tracking.ChainSeed = cfg.Routing.Tracking.Block, cfg.Routing.Tracking.Chain
		}
		if o.Router.LoadModel != config.NoLoadModel {
			if o.Prompts = cfg.Routing.LoadGrid; o.Prompts == nil {
				o.Prompts = cfg.Engine.Timing.Grid
			}
		}
	}
	return o
}

// counter adds up what passes compute.
type counter struct{ tokens *atomic.Int64 }

func (c counter) Passed(_ int, out *engine.Out, _ float64) {
	c.tokens.Add(int64(out.Forward.PrefillTokens))
}
func (c counter) Commanded(int, *engine.Effects, engine.Metrics, float64) {}

// play sends requests and takes their ends until none is left.
func (r *run) play(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.rouse)()
	waiter := r.clock.Waiter()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.settle(); err != nil {
			return err
		}
		if err := r.send(); err != nil {
			return err
		}
		r.progress(r.course.Progress())
		if r.course.Done() {
			return nil
		}
		waiter.Until(r.course.NextMs(), r.wake)
	}
}

// fail ends the run for something that should not happen, as a simulation ends
// for it.
func (r *run) fail(text string, args ...any) {
	r.mu.Lock()
	r.fault = fmt.Errorf("at %g ms: %s (%v)", r.clock.NowMs(), text, args)
	r.mu.Unlock()
	r.rouse()
}

// rouse ends the wait of play.
func (r *run) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// send sends the requests that are due, all that are due at one time together.
func (r *run) send() error {
	nowMs := r.clock.NowMs()
	turn, atMs, ok := r.course.Arrive(nowMs)
	for ok {
		var list []fleet.Request
		var sinks []worker.Sink
		var requests []*request
		for dueMs := atMs; ok && atMs == dueMs; turn, atMs, ok = r.course.Arrive(nowMs) {
			q := &request{run: r, turn: turn}
			list, sinks, requests = append(list, r.spell(turn, atMs)), append(sinks, q), append(requests, q)
		}
		jobs, err := r.fleet.SubmitAll(list, sinks)
		if err != nil {
			return fmt.Errorf("at %g ms: %w", nowMs, err)
		}
		for i, j := range jobs {
			requests[i].job = j
		}
	}
	return nil
}

// spell is a turn as the fleet is asked it.
func (r *run) spell(turn int32, atMs float64) fleet.Request {
	q := fleet.Request{UUID: r.course.ID(turn), MaxOutput: int(r.load.Turns[turn].Output), CameMs: atMs}
	prompt, output := r.course.Spell(turn)
	q.Tokens, q.OutputIDs = slices.Clone(prompt), slices.Clone(output)
	if r.routes != nil {
		c := r.load.Class(turn)
		q.Priority, q.Strict = max(float64(c.Priority), 0), c.Strict
		if c.Policy >= 0 {
			q.Class = string(r.load.Policies.At(c.Policy))
		}
	}
	return q
}

// request is a request that was sent. It is the sink of its worker's signals.
type request struct {
	run     *run
	turn    int32
	job     *fleet.Job // of play
	timesMs []float64  // of tokens
	lateMs  float64
	last    worker.Signal
	endMs   float64
}

// Signal measures. What comes of one pass has one time, so tokens that a
// speculating engine gives together are together.
func (q *request) Signal(s worker.Signal) {
	if s.End == worker.Closed {
		return // with the run
	}
	r := q.run
	t := &r.told[s.Worker]
	if t.atMs != s.AtMs {
		t.atMs, t.nowMs = s.AtMs, r.clock.NowMs()
		q.lateMs = max(q.lateMs, t.nowMs-s.AtMs)
	}
	if s.Token {
		q.timesMs = append(q.timesMs, t.nowMs)
	}
	if s.End == worker.Running {
		return
	}
	q.last, q.endMs = s, t.nowMs
	t.ended = append(t.ended, q)
}

// rested hands over what has ended on a worker, all of a pass together: what follows
// is sent together, too.
func (r *run) rested(worker int) {
	t := &r.told[worker]
	if len(t.ended) == 0 {
		return
	}
	r.mu.Lock()
	r.ended = append(r.ended, t.ended...)
	r.mu.Unlock()
	clear(t.ended)
	t.ended = t.ended[:0]
	r.rouse()
}

// settle books what has ended, by time and then by worker, as in a simulation.
func (r *run) settle() error {
	r.mu.Lock()
	ended, err := r.ended, r.fault
	r.ended = nil
	r.mu.Unlock()
	if err != nil {
		return err
	}
	slices.SortStableFunc(ended, func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.endMs, b.endMs), cmp.Compare(a.last.Worker, b.last.Worker))
	})
	for _, q := range ended {
		status := replay.Completed
		switch q.last.End {
		case worker.Rejected:
			status = replay.Rejected
		case worker.Unservable:
			status = replay.Failed
		case worker.Refused:
			return fmt.Errorf("worker %d does not take request %d (code %d), which is a fault of this program", q.last.Worker, q.turn+1, q.last.Code)
		}
		r.lateMs = max(r.lateMs, q.lateMs)
		r.note(q)
		out := replay.Outcome{Turn: q.turn, Worker: int32(q.last.Worker), Rank: int32(q.last.Rank), Status: status, EndMs: q.endMs, TimesMs: q.timesMs}
		for i, a := range q.last.Admits {
			if i == 0 {
				out.HostTokens = int32(a.Host)
			}
			out.Admissions = append(out.Admissions, replay.Admission{AtMs: a.AtMs, Reused: int32(a.Reused)})
		}
		r.course.End(&out)
	}
	return nil
}

// note keeps what the KV router said of a request.
func (r *run) note(q *request) {
	if r.routes == nil {
		return
	}
	p, known := q.job.Placement()
	r.routes[q.turn] = route{replay.Route{
		Waited: p.Waited, EnteredMs: p.EnteredMs, ReleasedMs: p.ReleasedMs, OverlapBlocks: int32(p.OverlapBlocks), BestBlocks: int32(p.BestBlocks),
	}, known}
}

// result reduces the books.
func (r *run) result(wallMs float64) *Result {
	out := &Result{
		Summary: r.course.Summary(r.committed.Load()), Records: r.course.Records(), Admissions: r.course.Admissions(), Unservable: r.course.Unservable(),
		WallMs: wallMs, LateMs: r.lateMs,
	}
	if r.load.Graph != nil {
		out.Lane = r.course.Lane
	}
	if r.routes != nil {
		out.Route = func(turn int32) (replay.Route, bool) { return r.routes[turn].Route, r.routes[turn].known }
	}
	return out
}
