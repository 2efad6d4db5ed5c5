// Package fleet is several live workers in one process and the router before
// them.
//
// It owns when workers are launched, to which of them a request goes, and what
// the router is told of caches and of how far requests are. It does not own how
// a worker runs (live/worker) or what a placement costs (core/router).
//
// Invariants:
//   - the router learns of the blocks of a pass before it learns of the tokens.
//   - a request counts for its worker from its placement to its last signal or
//     its cancellation.
//   - equal calls at equal times choose equal workers: lots come from one seed.
//
// Source: live notes §1, §8.2; router notes §7.1, §8.
package fleet

import (
	"context"
	"math"
	"sync"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// Mode is how a worker is chosen.
type Mode uint8

// The modes of the reference's frontend that workers of one kind have a use for.
const (
	RoundRobin  Mode = iota
	Random           // any
	PowerOfTwo       // of two, the one with fewer requests; the first of equals
	LeastLoaded      // the one with the fewest requests; any of equals
	KV               // where it costs least, see core/router
)

// Modes are the modes' names on the command line.
func Modes() []string {
	return []string{"round-robin", "random", "power-of-two", "least-loaded", "kv"}
}

// Options describe a fleet.
type Options struct {
	Engine    config.Engine // checked
	Workers   int
	StaggerMs float64 // between launches; negative: chosen by the number of workers
	StartupMs float64 // from a worker's launch until it works; requests wait
	Mode      Mode
	Router    config.Router // KV: checked
	Tracking  seq.Hashing   // KV: how the blocks of live prompts are named
	// Prompts is where a router with a load model reads how long prompts take.
	Prompts *config.GridTable
	Seed    uint64 // of lots
	Clock   clock.Clock
	// Warn is told, once, of what should not happen; it may be nil.
	Warn func(text string, args ...any)
	// Observer watches worker number i; it may be nil.
	Observer func(i int) worker.Observer
	// Rested is told that worker number i has said everything that was due, by its
	// goroutine; it may be nil.
	Rested func(i int)
}

// Fleet is the state. Take it from New.
type Fleet struct {
	o      Options
	loops  []*worker.Loop
	bornMs float64

	mu       sync.Mutex
	launched int
	loads    []int // requests, by worker
	turn     int
	lots     rng.Wyrand
	router   *router.Router // nil unless Mode is KV
	predict  timing.Model   // of prompts, with Prompts
	jobs     []*Job         // by tag, of the router's
	free     []uint32
	warned   bool
}

// New returns a fleet whose first worker is launched.
func New(o Options) *Fleet {
	f := &Fleet{o: o, bornMs: o.Clock.NowMs(), loads: make([]int, o.Workers), lots: rng.Wyrand(o.Seed)}
	if o.Mode == KV {
		o.Engine.EmitKVEvents = true
		f.router = router.New(router.Params{Config: o.Router, BlockSize: o.Engine.BlockSize, Seed: o.Seed, Predicts: o.Prompts != nil})
	}
	if o.Prompts != nil {
		e := o.Engine
		e.Timing, e.SpeedupRatio = config.Timing{Kind: config.Grid, Grid: o.Prompts}, 0 // as in the reference the router knows of no speedup
		f.predict = timing.New(e)
	}
	for i := range o.Workers {
		launch := f.bornMs + LaunchMs(i, o.Workers, o.StaggerMs)
		w := worker.New(o.Engine, uint64(i), worker.Options{ReadyMs: launch + o.StartupMs, Observer: f.observer(i)})
		l := worker.NewLoop(w, o.Clock)
		if o.Rested != nil {
			l.Rested = func() { o.Rested(i) }
		}
		f.loops = append(f.loops, l)
	}
	f.launch()
	return f
}

// LaunchMs is when worker i is launched, after the first: the delay before each,
// and two seconds after every 32 (live notes §1, --stagger-delay).
func LaunchMs(i, workers int, delayMs float64) float64 {
	if delayMs < 0 {
		switch {
		case workers <= 32:
			delayMs = 0
		case workers <= 128:
			delayMs = 100
		default:
			delayMs = 200
		}
	}
	if delayMs == 0 {
		return 0
	}
	return float64(float64(i)*delayMs) + float64(i/32)*2000
}

// launch lets those workers serve whose time has come, and says when the next
// one's comes, +Inf if there is none.
func (f *Fleet) launch() (nextMs float64) {
	f.mu.Lock()
	nowMs, before := f.o.Clock.NowMs(), f.launched
	nextMs = math.Inf(1)
	for f.launched < f.o.Workers {
		at := f.bornMs + LaunchMs(f.launched, f.o.Workers, f.o.StaggerMs)
		if at > nowMs && f.launched > 0 {
			nextMs = at
			break
		}
		if f.router != nil {
			f.router.AddWorker(f.launched, f.o.Engine.DPSize, min(f.o.Engine.MaxNumBatchedTokens, router.NoBudget))
		}
		f.launched++
	}
	var ready []dispatch
	if f.router != nil && f.launched > before {
		ready = f.placed(f.router.Settle(nowMs))
	}
	f.mu.Unlock()
	send(ready)
	return nextMs
}

// warn tells the first thing that should not happen.
func (f *Fleet) warn(text string, args ...any) {
	if f.o.Warn != nil && !f.warned {
		f.warned = true
		f.o.Warn(text, args...)
	}
}

// Workers is how many workers there are, launched or not.
func (f *Fleet) Workers() int { return f.o.Workers }

// Launched is how many serve.
func (f *Fleet) Launched() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.launched
}

// Run runs the workers until ctx ends, then ends their requests.
func (f *Fleet) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, l := range f.loops {
		all.Go(func() { l.Run(ctx) })
	}
	all.Go(func() {
		waiter := f.o.Clock.Waiter()
		ended := make(chan struct{}, 1)
		defer context.AfterFunc(ctx, func() { ended <- struct{}{} })()
		for next := f.launch(); !math.IsInf(next, 1); next = f.launch() {
			if waiter.Until(next, ended) {
				return
			}
		}
	})
	all.Wait()
}
