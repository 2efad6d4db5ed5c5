package replay_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/rng"
)

// changing is a run whose workers come and go at random: n targets from 1 to
// most, everyMs apart.
func changing(cfg config.Replay, n, most int, everyMs float64) config.Replay {
	lots := rng.Wyrand(7)
	cfg.Scaling.Policy = config.Scripted
	for i := range n {
		t := config.Target{AtMs: float64(i+1) * everyMs, Prefill: config.KeepWorkers, Decode: 1 + int(lots.Below(uint64(most)))}
		cfg.Scaling.Script = append(cfg.Scaling.Script, t)
	}
	return cfg
}

// followed steps a run to its end, answering as its script says if it asks.
func followed(t *testing.T, s *replay.Sim, script []config.Target, budget int) {
	t.Helper()
	for step := 0; ; {
		switch status := s.Step(budget); status {
		case replay.Running:
		case replay.NeedScaling:
			if _, asked := s.Tick(); !asked || s.Scale(replay.Decision{Prefill: -2}) {
				t.Fatal("asks nothing, or takes a number of workers below 0")
			}
			d := replay.Decision{Prefill: script[step].Prefill, Decode: script[step].Decode, NextMs: math.Inf(1)}
			if step++; step < len(script) {
				d.NextMs = script[step].AtMs
			}
			if !s.Scale(d) || s.Scale(d) {
				t.Fatal("takes no answer, or two")
			}
		case replay.Done:
			return
		default:
			t.Fatalf("status %d: %+v", status, s.Fault())
		}
	}
}

// Whoever answers, whatever the engine and the steps, the same happens to the
// workers and to the requests; under every policy of placement.
func TestScalingTwins(t *testing.T) {
	for _, mode := range []config.RouterMode{config.RoundRobin, config.Random, config.PowerOfTwo, config.LeastLoaded, config.KVRouter} {
		for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
			cfg := config.DefaultReplay(backend)
			cfg.Engine.NumGPUBlocks, cfg.Engine.BlockSize = 600, 16
			cfg.NumWorkers, cfg.TraceBlockSize, cfg.CaptureRequests = 2, 64, true
			cfg.Routing.Mode = mode
			if mode == config.KVRouter {
				r := config.DefaultRouter()
				r.QueueThreshold = 0.5
				cfg.Routing.Router = &r
			}
			cfg.Scaling.StartupMs = 70
			cfg = changing(cfg, 60, 6, 120)
			want := replay.New(cfg, steady(t, cfg, 400, 15), replay.Options{})
			followed(t, want, nil, math.MaxInt)
			if len(want.Lifecycle()) < 60 {
				t.Fatalf("only %d operations: the case shows little", len(want.Lifecycle()))
			}
			summary := want.Summary()
			for name, run := range map[string]struct {
				asked  bool
				o      replay.Options
				budget int
			}{
				"small steps": {budget: 3}, "plain": {o: replay.Options{Plain: true}, budget: 100}, "asked": {asked: true, budget: 7},
			} {
				other := cfg
				if run.asked {
					other.Scaling.Policy, other.Scaling.FirstMs = config.Asked, cfg.Scaling.Script[0].AtMs
				}
				s := replay.New(other, steady(t, cfg, 400, 15), run.o)
				followed(t, s, cfg.Scaling.Script, run.budget)
				if d := cmp.Diff(want.Lifecycle(), s.Lifecycle()); d != "" {
					t.Errorf("mode %d, backend %d, %s:\n%s", mode, backend, name, d)
				}
				if d := cmp.Diff(want.Records(), s.Records(), cmp.Comparer(func(x, y float64) bool { return x == y || x != x && y != y })); d != "" {
					t.Errorf("mode %d, backend %d, %s:\n%s", mode, backend, name, d)
				}
				if d := cmp.Diff(summary, s.Summary()); d != "" {
					t.Errorf("mode %d, backend %d, %s:\n%s", mode, backend, name, d)
				}
			}
		}
	}
}

// changingPools is changing for both of two pools.
func changingPools(cfg config.Replay, n, most int, everyMs float64) config.Replay {
	cfg = changing(cfg, n, most, everyMs)
	lots := rng.Wyrand(8)
	for i := range cfg.Scaling.Script {
		cfg.Scaling.Script[i].Prefill = int(lots.Below(uint64(most))) // now and then none
	}
	cfg.Scaling.Script[n-1].Prefill = 2
	return cfg
}

// The same of two pools, with samples.
func TestScalingTwinsInPools(t *testing.T) {
	for _, mode := range []config.RouterMode{config.RoundRobin, config.KVRouter} {
		for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
			cfg := config.DefaultReplay(backend)
			cfg.Engine.NumGPUBlocks, cfg.Engine.BlockSize, cfg.TraceBlockSize, cfg.CaptureRequests = 600, 16, 64, true
			cfg.Routing.Mode = mode
			if mode == config.KVRouter {
				r := config.DefaultRouter()
				r.QueueThreshold = 0.5
				cfg.Routing.Router = &r
			}
			cfg = inPools(cfg, 2, 2)
			cfg.Scaling.StartupMs, cfg.Scaling.PrefillStartupMs, cfg.Samples.EveryMs = 70, 30, 45
			cfg = changingPools(cfg, 60, 5, 120)
			want := replay.New(cfg, steady(t, cfg, 300, 25), replay.Options{})
			followed(t, want, nil, math.MaxInt)
			if len(want.Lifecycle()) < 120 || len(want.Samples()) < 100 {
				t.Fatalf("only %d operations and %d samples: the case shows little", len(want.Lifecycle()), len(want.Samples()))
			}
			summary := want.Summary()
			if summary.CompletedRequests != 300 {
				t.Errorf("%d requests have completed, want 300", summary.CompletedRequests)
			}
			for name, run := range map[string]struct {
				asked  bool
				budget int
			}{"steps of 1": {budget: 1}, "small steps": {budget: 7}, "asked": {asked: true, budget: 5}} {
				other := cfg
				if run.asked {
					other.Scaling.Policy, other.Scaling.FirstMs = config.Asked, cfg.Scaling.Script[0].AtMs
				}
				s := replay.New(other, steady(t, cfg, 300, 25), replay.Options{})
				followed(t, s, cfg.Scaling.Script, run.budget)
				nan := cmp.Comparer(func(x, y float64) bool { return x == y || x != x && y != y })
				for what, pair := range map[string][2]any{
					"operations": {want.Lifecycle(), s.Lifecycle()}, "samples": {want.Samples(), s.Samples()},
					"records": {want.Records(), s.Records()}, "handoffs": {want.Handoffs(), s.Handoffs()}, "summary": {summary, s.Summary()},
				} {
					if d := cmp.Diff(pair[0], pair[1], nan); d != "" {
						t.Errorf("mode %d, backend %d, %s, %s:\n%s", mode, backend, name, what, d)
					}
				}
			}
		}
	}
}

// watched warms a run with samples for so many steps; then it counts what a step
// allocates and the samples taken meanwhile.
func watched(t *testing.T, s *replay.Sim, warm int) (allocs float64, taken int) {
	t.Helper()
	for range warm {
		s.Step(10)
		s.ForgetSamples()
	}
	allocs = testing.AllocsPerRun(200, func() {
		if s.Step(10) != replay.Running {
			t.Fatal("the run has ended")
		}
		taken += len(s.Samples())
		s.ForgetSamples()
	})
	return allocs, taken
}

// A step of two pools between decisions and samples allocates nothing, once as
// much has been seen.
func TestWatchedPoolsAllocateNothing(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		cfg := config.DefaultReplay(backend)
		cfg.TraceBlockSize = 64
		cfg = inPools(cfg, 2, 3)
		cfg.Samples.EveryMs = 5
		cfg = changingPools(cfg, 3, 6, 100)
		n, taken := watched(t, replay.New(cfg, steady(t, cfg, 4000, 20), replay.Options{}), 5000)
		if n != 0 && !checked || taken == 0 { // checking allocates
			t.Errorf("backend %d: %v allocations a step, %d samples", backend, n, taken)
		}
	}
}

// What a pool without a worker is to do waits until one serves; if none will, the
// run cannot end.
func TestPoolWaitsForWorker(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize, cfg.CaptureRequests = 64, true
	cfg = inPools(cfg, 1, 1)
	cfg.Scaling = config.Scaling{Policy: config.Scripted, PrefillStartupMs: 50, Script: []config.Target{
		{AtMs: 0, Prefill: 0, Decode: config.KeepWorkers}, {AtMs: 100, Prefill: 1, Decode: config.KeepWorkers},
	}}
	s := replay.New(cfg, steady(t, cfg, 1, 20), replay.Options{})
	followed(t, s, nil, math.MaxInt)
	if h := s.Handoffs()[0]; h.PrefillAdmitMs != 0 {
		t.Errorf("a worker that has a request is gone: the prompt was admitted at %v ms", h.PrefillAdmitMs)
	}
	cfg.Scaling.Script[0].AtMs, cfg.Scaling.Script[1].AtMs = 1, 5000
	s = replay.New(cfg, steady(t, cfg, 2, 4000), replay.Options{})
	followed(t, s, nil, math.MaxInt)
	if h := s.Handoffs()[1]; h.PrefillAdmitMs != 5050 {
		t.Errorf("the prompt was admitted at %v ms, want 5050", h.PrefillAdmitMs)
	}
	cfg.Scaling.Script = cfg.Scaling.Script[:1]
	s = replay.New(cfg, steady(t, cfg, 2, 4000), replay.Options{})
	if status, f := s.Step(math.MaxInt), s.Fault(); status != replay.Stuck || f.InFlight != 1 || f.Nobody {
		t.Errorf("status %d, %+v", status, f)
	}
}

// A step between decisions and samples allocates nothing, once as much has been
// seen.
func TestWatchedStepsAllocateNothing(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.NumWorkers, cfg.TraceBlockSize = 3, 64
	cfg.Samples.EveryMs = 5
	cfg = changing(cfg, 3, 6, 100)
	if n, taken := watched(t, replay.New(cfg, steady(t, cfg, 4000, 20), replay.Options{}), 4000); n != 0 || taken == 0 {
		t.Errorf("%v allocations a step, %d samples", n, taken)
	}
}

// Without a worker a request ends the run, with its time.
func TestNobodyServes(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize = 64
	cfg.Scaling = config.Scaling{Policy: config.Scripted, Script: []config.Target{{AtMs: 30, Prefill: config.KeepWorkers, Decode: 0}}}
	s := replay.New(cfg, steady(t, cfg, 10, 20), replay.Options{})
	if status, f := s.Step(math.MaxInt), s.Fault(); status != replay.Stuck || !f.Nobody || f.NowMs != 40 {
		t.Errorf("status %d, %s", status, fmt.Sprintf("%+v", f))
	}
}
