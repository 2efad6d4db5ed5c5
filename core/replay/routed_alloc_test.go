package replay_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
)

// A warm run behind any policy allocates nothing.
func TestWarmRoutedStepsDoNotAllocate(t *testing.T) {
	kv := func(change func(*config.Router)) *config.Router {
		r := config.DefaultRouter()
		if change != nil {
			change(&r)
		}
		return &r
	}
	waits := func(r *config.Router) { r.QueueThreshold, r.QueuePolicy = 0, config.QueueWSPT }
	for _, c := range []struct {
		name    string
		routing config.Routing
		plain   bool
		waits   bool
		engine  func(*config.Engine)
	}{
		{name: "random", routing: config.Routing{Mode: config.Random}},
		{name: "power of two", routing: config.Routing{Mode: config.PowerOfTwo}},
		{name: "least loaded", routing: config.Routing{Mode: config.LeastLoaded}},
		{name: "least loaded, plain", routing: config.Routing{Mode: config.LeastLoaded}, plain: true},
		{name: "kv", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}},
		{name: "kv, plain", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, plain: true},
		{name: "kv, queue, plain", routing: config.Routing{Mode: config.KVRouter, Router: kv(waits)}, waits: true, plain: true},
		{name: "kv, sglang, plain", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, engine: sglang, plain: true},
		{name: "kv, sglang ranks", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, engine: func(e *config.Engine) { sglang(e); e.DPSize = 2 }},
		{name: "kv, drafts", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, engine: drafts},
		{name: "kv, keyed", routing: config.Routing{Mode: config.KVRouter, Router: kv(func(r *config.Router) { r.TrackingHash = config.KeyedXXH3 })}},
		{name: "kv, late", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil), EventLagMs: 100}},
		{name: "kv, queue", routing: config.Routing{Mode: config.KVRouter, Router: kv(waits)}, waits: true},
		{name: "kv, ranks", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, engine: func(e *config.Engine) { e.DPSize = 2 }},
		{name: "kv, sglang", routing: config.Routing{Mode: config.KVRouter, Router: kv(nil)}, engine: sglang},
	} {
		t.Run(c.name, func(t *testing.T) {
			if checked && c.name == "kv, sglang, plain" {
				t.Skip("checking allocates")
			}
			cfg := tight(150)
			cfg.NumWorkers, cfg.Routing = 4, c.routing
			gapMs := 60.0
			if c.waits {
				cfg.NumWorkers, gapMs = 1, 200
			}
			if c.engine != nil {
				c.engine(&cfg.Engine)
			}
			s := replay.New(cfg, steady(t, cfg, 8000, gapMs), replay.Options{Plain: c.plain})
			ended := func() int64 {
				n, _ := s.Progress()
				return n
			}
			for ended() < 5000 {
				if status := s.Step(64); status != replay.Running {
					t.Fatalf("the run ended while warming up: %d %+v", status, s.Fault())
				}
			}
			if allocs := testing.AllocsPerRun(500, func() { s.Step(16) }); allocs != 0 {
				t.Errorf("%v allocations a step, want 0", allocs)
			}
			if ended() <= 5000 {
				t.Error("no request ended while counting: the test shows nothing")
			}
			waited := 0
			for turn := range int32(ended()) {
				if r, ok := s.Route(turn); ok && r.Waited {
					waited++
				}
			}
			if c.waits != (waited > 100) {
				t.Errorf("%d requests waited: the case does not show what it says", waited)
			}
		})
	}
}
