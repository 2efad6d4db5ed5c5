package replay

import (
	"math"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

const ticks = 900

// crowded is a run to whose workers, in one or in two pools, many join and many
// leave at random, until one of each is left.
func crowded(t *testing.T, cfg config.Replay) *Sim {
	t.Helper()
	cfg.Scaling = config.Scaling{Policy: config.Scripted, StartupMs: 3, PrefillStartupMs: 2}
	lots := rng.Wyrand(3)
	for i := range ticks {
		n := 1 + int(lots.Below(9))
		cfg.Scaling.Script = append(cfg.Scaling.Script, config.Target{AtMs: float64(i+1) * 10, Decode: n, Prefill: 1 + (n*7+i)%9})
	}
	cfg.Scaling.Script = append(cfg.Scaling.Script, config.Target{AtMs: ticks*10 + 50, Decode: 1, Prefill: 1})
	b := workload.NewBuilder(cfg.TraceBlockSize)
	for i := range int64(ticks * 2) {
		row := trace.Row{InputLength: 48, OutputLength: 3, HashIDs: []uint64{uint64(i % 7), uint64(i % 31), uint64(i)}, TimestampMs: float64(i) * 5, HasTimestamp: true}
		if f := b.Add(&row, i+1); f.Code != workload.OK {
			t.Fatal(f)
		}
	}
	last := trace.Row{InputLength: 48, OutputLength: 3, HashIDs: []uint64{1, 2, 3}, TimestampMs: 1e6, HasTimestamp: true}
	b.Add(&last, ticks*2+1)
	w, _ := b.Finish(workload.Options{ArrivalSpeedup: 1})
	s := New(cfg, w, Options{})
	if status := s.Step(math.MaxInt); status != Done {
		t.Fatalf("status %d: %+v", status, s.Fault())
	}
	for _, f := range s.control.fleets {
		if f.ids < 1000 || f.count() != 1 || len(f.stops) > 0 {
			t.Errorf("pool %d: %d workers were there, %d are, %d stops", f.pool, f.ids, f.count(), len(f.stops))
		}
	}
	return s
}

// The same of two pools.
func TestThousandWorkersLeaveNothingInPools(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		for _, mode := range []config.RouterMode{config.RoundRobin, config.KVRouter} {
			cfg := config.DefaultReplay(backend)
			cfg.Engine.NumGPUBlocks, cfg.Engine.BlockSize, cfg.TraceBlockSize = 64, 16, 16
			if cfg.Routing.Mode = mode; mode == config.KVRouter {
				r := config.DefaultRouter()
				cfg.Routing.Router = &r
			}
			cfg.Prefill = config.Pool{Engine: cfg.Engine, Workers: 1}
			cfg.Prefill.Engine.Role, cfg.Engine.Role = config.Prefill, config.Decode
			s := crowded(t, cfg)
			h := &s.pools.handoffs
			if len(h.actions)+len(h.stalled)+len(h.transfers)+len(s.pools.busy) > 0 || len(h.free) != len(h.slots) || len(h.slots) > 100 {
				t.Errorf("%d of %d requests are forgotten", len(h.free), len(h.slots))
			}
			for _, q := range []*pool{&s.pools.prefill, &s.pools.decode} {
				there := 0
				for _, m := range q.members {
					if m == nil {
						continue
					}
					if there++; m.flying || m.due || m.load != 0 || m.outside[0] != 0 || len(m.deferred[0]) > 0 {
						t.Errorf("worker %d of pool %d is not at rest", m.id, q.id)
					}
				}
				if there != 1 || len(q.active) != 1 || len(q.due) > 0 {
					t.Errorf("pool %d: %d workers are left, %d active", q.id, there, len(q.active))
				}
				if q.kv == nil {
					continue
				}
				if left := q.kv.router.Size(); left.Workers != 1 || left.Requests != 0 || left.Slots > 60 || left.Blocks > 64+3 { // one prompt more than fits
					t.Errorf("the router of pool %d is left with %+v", q.id, left)
				}
			}
		}
	}
}

// A thousand workers that join and leave at random leave nothing behind: not in
// the run, not in the router, not in its picture of the caches.
func TestThousandWorkersLeaveNothing(t *testing.T) {
	for _, mode := range []config.RouterMode{config.RoundRobin, config.KVRouter} {
		cfg := config.DefaultReplay(config.VLLM)
		cfg.Engine.NumGPUBlocks, cfg.Engine.BlockSize, cfg.TraceBlockSize = 64, 16, 16
		cfg.Routing.Mode = mode
		if mode == config.KVRouter {
			r := config.DefaultRouter()
			cfg.Routing.Router = &r
		}
		s := crowded(t, cfg)
		there := 0
		for id, w := range s.workers {
			if w != nil {
				there++
			}
			if s.flying[id] || s.isDue[id] || s.placing.loads[id] != 0 {
				t.Errorf("worker %d is not at rest", id)
			}
		}
		if there != 1 || len(s.caches) > 1 || len(s.busy)+len(s.due)+len(s.parked.list) > 0 || s.books.inFlight() > 0 {
			t.Errorf("%d workers, %d caches are left", there, len(s.caches))
		}
		if mode == config.KVRouter {
			if left := s.kv.router.Size(); left.Workers != 1 || left.Requests != 0 || left.Slots > 40 || left.Blocks > 64 {
				t.Errorf("the router is left with %+v", left)
			}
		}
	}
}
