package runner

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// watched is what a run tells whose workers come and go.
type watched struct {
	Summary   replay.Summary
	Ticks     []replay.Tick
	Samples   []replay.Sample
	Lifecycle []replay.Operation
}

// options answer with numbers that go up and down, and note what is told.
func (w *watched) options() drive.Options {
	return drive.Options{
		Alone: true,
		Policy: func(t *replay.Tick) (replay.Decision, error) {
			w.Ticks = append(w.Ticks, replay.Tick{Ordinal: t.Ordinal, NowMs: t.NowMs, Traffic: t.Traffic, Prefill: pool(t.Prefill), Decode: pool(t.Decode)})
			d := replay.Decision{Prefill: 1 + int(t.Ordinal)%2, Decode: 1 + int(t.Ordinal*7)%4, NextMs: math.NaN()}
			if t.Ordinal < 12 {
				d.NextMs = t.NowMs + 40
			}
			return d, nil
		},
		Samples: func(list []replay.Sample) error {
			for _, s := range list {
				s.Prefill, s.Decode = sampled(s.Prefill), sampled(s.Decode)
				w.Samples = append(w.Samples, s)
			}
			return nil
		},
	}
}

// pool and sampled are copies that stay.
func pool(p replay.PoolState) replay.PoolState {
	return replay.PoolState{Active: slices.Clone(p.Active), Starting: slices.Clone(p.Starting), Draining: slices.Clone(p.Draining), Passes: slices.Clone(p.Passes)}
}

func sampled(p replay.PoolSample) replay.PoolSample {
	p.Active, p.Starting, p.Draining, p.Gauges = slices.Clone(p.Active), slices.Clone(p.Starting), slices.Clone(p.Draining), slices.Clone(p.Gauges)
	return p
}

// A policy is told the same through frames, and its decisions and the samples
// come out the same.
func TestSameScaling(t *testing.T) {
	ctx := context.Background()
	pools, routed, changes, gauges := 0, 0, 0, 0
	for seed, ran := 0, 0; ran < 24; seed++ {
		paths, cfg, o, ok := prepared(t, t.TempDir(), seed, []string{"any", "kv", "pd", "kvpd", "scale", "dp"}[seed%6])
		if !ok {
			continue
		}
		cfg.Parity, cfg.MaxSimTimeMs = false, -1
		cfg.Scaling = config.Scaling{Policy: config.Asked, StartupMs: float64(seed % 3 * 15), PrefillStartupMs: 10}
		if seed%4 == 0 {
			cfg.Scaling.Policy, cfg.Scaling.Script = config.Scripted, []config.Target{{AtMs: 5, Prefill: 2, Decode: 3}, {AtMs: 60, Prefill: config.KeepWorkers, Decode: 1}}
		}
		if cfg.Samples.EveryMs = 25; seed%5 == 0 {
			cfg.Samples.EveryMs = 0
		}
		if !cfg.Check().OK() {
			continue
		}
		run := described(cfg, o)
		guest := port(newNativePort())
		if seed%2 == 0 {
			guest = newWasmPort(t)
		}
		s, load := handed(t, paths, o, guest, run)
		if load == nil {
			continue
		}
		ran++
		var want, got watched
		sim := replay.New(cfg, load, replay.Options{})
		options := want.options()
		if status, err := drive.Run(ctx, sim, options); err != nil || status != replay.Done {
			t.Fatalf("seed %d: %v, %v", seed, status, err)
		}
		want.Summary, want.Lifecycle = sim.Summary(), sim.Lifecycle()
		options = got.options()
		if cfg.Samples.EveryMs == 0 {
			options.Samples = nil
		}
		p, err := s.Run(ctx, options)
		if err != nil || p.Status != frame.Done {
			t.Fatalf("seed %d: %+v, %v", seed, p, err)
		}
		if got.Summary, err = s.Summary(); err != nil {
			t.Fatal(err)
		}
		if got.Lifecycle, err = s.Lifecycle(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); d != "" {
			t.Fatalf("seed %d (-without +through frames):\n%s", seed, d)
		}
		changes += len(want.Lifecycle)
		for _, s := range want.Samples {
			gauges += len(s.Decode.Gauges)
		}
		if cfg.Disaggregated() {
			pools++
		}
		if cfg.Routing.Mode == config.KVRouter {
			routed++
		}
	}
	if pools < 4 || routed < 4 || changes < 100 || gauges < 100 {
		t.Errorf("only %d cases in two pools, %d behind a KV router, %d changes, %d gauges", pools, routed, changes, gauges)
	}
}

// A policy that answers nonsense ends the run with a sentence.
func TestBadPolicies(t *testing.T) {
	ctx := context.Background()
	for want, o := range map[string]drive.Options{
		"the run asks how many workers there are to be and nobody answers; a policy is accepted":   {},
		"the scaling policy answered 0 and -2 workers at 0 ms; numbers of at least 0 are accepted": {Policy: func(*replay.Tick) (replay.Decision, error) { return replay.Decision{Decode: -2}, nil }},
	} {
		run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
		run.Scaling.Policy = config.Asked
		s, err := open(ctx, newNativePort(), run)
		if err != nil {
			t.Fatal(err)
		}
		feed(t, s, []byte(`{"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]}`))
		if _, err := s.Run(ctx, o); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if _, err := s.Scale(replay.Decision{Prefill: -2}, 1); err == nil || err.Error() != `core.wasm refuses the frame: the key "target_prefill" has a value out of range` {
			t.Errorf("%v", err)
		}
	}
}
