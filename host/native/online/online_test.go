package online_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/online"
)

// made is a workload of 40 requests, or 20 sessions of two, with shared
// prefixes.
func made(t *testing.T, cfg config.Replay, turns int) *workload.Workload {
	t.Helper()
	spec := synth.Spec{
		InputTokens: 200, OutputTokens: 12, Sessions: 40 / turns, Turns: turns, RatePerS: 60, ArrivalSeed: 7, PrefixRatio: 0.5, PrefixGroups: 3, TurnDelayMs: 20,
		BlockSize: cfg.Engine.BlockSize,
	}
	if cfg.Concurrency == 0 {
		spec.Arrival = synth.Poisson
	}
	if f := spec.Check(); f != synth.None {
		t.Fatal(f)
	}
	w, f := synth.Build(spec, workload.Options{Concurrency: cfg.Concurrency > 0, ArrivalSpeedup: 1})
	if f.Code != workload.OK {
		t.Fatal(f)
	}
	return w
}

func configured(b config.Backend, workers int, mode config.RouterMode) config.Replay {
	cfg := config.DefaultReplay(b)
	cfg.NumWorkers, cfg.CaptureRequests = workers, true
	cfg.Routing = config.Routing{Mode: mode, Seed: config.CanonicalSeed}
	if mode == config.KVRouter {
		r := config.DefaultRouter()
		cfg.Routing.Router = &r
	}
	return cfg
}

// simulated is what a simulation leaves.
func simulated(t *testing.T, cfg config.Replay, w *workload.Workload) (replay.Summary, []replay.Record) {
	t.Helper()
	sim := replay.New(cfg, w, replay.Options{})
	if status := sim.Step(math.MaxInt); status != replay.Done {
		t.Fatalf("status %d", status)
	}
	return sim.Summary(), sim.Records()
}

// replayed is what comes of it on a clock that moves while everybody waits.
func replayed(t *testing.T, cfg config.Replay, w *workload.Workload) (run *online.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		done := int64(0)
		run, err = online.Run(t.Context(), cfg, w, online.Options{Clock: clock.NewWall(false), Progress: func(n, total int64) {
			if n < done || n > total || total != int64(len(w.Turns)) {
				t.Errorf("progress goes from %d to %d of %d", done, n, total)
			}
			done = n
		}})
		if err != nil {
			t.Fatal(err)
		}
		if done != int64(len(w.Turns)) {
			t.Errorf("progress ends at %d", done)
		}
	})
	return run
}

// An open loop has the times of a simulation, a closed one its counts, in about
// the same time: its next request comes when the engine has begun a pass.
func TestEqualsSimulation(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang, config.TRTLLM} {
		for _, workers := range []int{1, 3} {
			for _, mode := range []config.RouterMode{config.RoundRobin, config.KVRouter, config.Random, config.PowerOfTwo, config.LeastLoaded} {
				for _, ranks := range []int{1, 2} {
					for _, c := range []struct{ concurrency, turns int }{{0, 1}, {5, 1}, {0, 2}, {4, 2}} {
						t.Run(fmt.Sprint(backend, workers, mode, ranks, c.concurrency, c.turns), func(t *testing.T) {
							cfg := configured(backend, workers, mode)
							cfg.Engine.DPSize, cfg.Concurrency = ranks, c.concurrency
							compare(t, cfg, made(t, cfg, c.turns), c.concurrency == 0 && c.turns == 1 && mode <= config.KVRouter)
						})
					}
				}
			}
		}
	}
}

func compare(t *testing.T, cfg config.Replay, w *workload.Workload, exact bool) {
	t.Helper()
	want, wantRecords := simulated(t, cfg, w)
	run := replayed(t, cfg, w)
	got := run.Summary
	if got.NumRequests != 40 || got.CompletedRequests != 40 || got.TotalInputTokens != want.TotalInputTokens || got.TotalOutputTokens != want.TotalOutputTokens || got.NumTPOT != 40 || len(run.Records) != 40 {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if ratio := got.DurationMs / want.DurationMs; ratio < 0.8 || ratio > 1.25 {
		t.Errorf("it took %g ms, simulated %g", got.DurationMs, want.DurationMs)
	}
	if got.DecodeWorkerSeconds != float64(cfg.NumWorkers)*(got.DurationMs/1000) || run.WallMs < got.DurationMs || run.LateMs > 1e-4 {
		t.Errorf("%g worker-seconds, %g ms, %g by the clock, %g late", got.DecodeWorkerSeconds, got.DurationMs, run.WallMs, run.LateMs)
	}
	if !exact {
		return
	}
	if got.CommittedPrefillTokens != want.CommittedPrefillTokens || got.PrefixReusedRatio != want.PrefixReusedRatio {
		t.Errorf("%d tokens computed, %g reused; want %d, %g", got.CommittedPrefillTokens, got.PrefixReusedRatio, want.CommittedPrefillTokens, want.PrefixReusedRatio)
	}
	turns := func(a, b replay.Record) int { return int(a.Turn - b.Turn) }
	slices.SortFunc(run.Records, turns)
	slices.SortFunc(wantRecords, turns)
	for i, g := range run.Records {
		w := wantRecords[i]
		for _, ms := range [][2]float64{{g.ArrivalMs, w.ArrivalMs}, {g.FirstAdmitMs, w.FirstAdmitMs}, {g.FirstTokenMs, w.FirstTokenMs}, {g.SecondTokenMs, w.SecondTokenMs}, {g.TerminalMs, w.TerminalMs}} {
			if !(math.Abs(ms[0]-ms[1]) < 1e-4) {
				t.Fatalf("%+v\nwant %+v", g, w)
			}
		}
		if g.Worker != w.Worker {
			t.Fatalf("turn %d is on rank %d, want %d", g.Turn, g.Worker, w.Worker)
		}
	}
}

// A router with a threshold keeps requests, in the order of their classes, and
// the records say so.
func TestRouterQueue(t *testing.T) {
	cfg := configured(config.VLLM, 2, config.KVRouter)
	cfg.Engine.MaxNumBatchedTokens = 300
	cfg.Routing.Router.QueueThreshold = 0
	w := made(t, cfg, 1)
	for i := range w.Turns {
		w.Classes = append(w.Classes, workload.Class{Priority: int32(i % 3), Policy: -1})
	}
	run := replayed(t, cfg, w)
	waited := 0
	for turn := range w.Turns {
		r, known := run.Route(int32(turn))
		if !known || r.Waited && !(r.EnteredMs < r.ReleasedMs) {
			t.Errorf("turn %d: %+v, %v", turn, r, known)
		}
		if r.Waited {
			waited++
		}
	}
	if run.Summary.CompletedRequests != 40 || waited < 10 {
		t.Errorf("%d requests, %d of them waited", run.Summary.CompletedRequests, waited)
	}
}

// Where the router's queue is full the run ends, as a simulation does.
func TestRouterFull(t *testing.T) {
	cfg := configured(config.VLLM, 1, config.KVRouter)
	cfg.Engine.MaxNumBatchedTokens = 300
	policy := config.OneClass(*cfg.Routing.Router)
	policy.Classes[0].BusyFraction, policy.Classes[0].MaxRequests = 0, 1
	cfg.Routing.Router.Policy = &policy
	w := made(t, cfg, 1)
	synctest.Test(t, func(t *testing.T) {
		_, err := online.Run(t.Context(), cfg, w, online.Options{Clock: clock.NewWall(false)})
		if err == nil || !strings.HasSuffix(err.Error(), " ms: every worker is busy and the router's queue is full") {
			t.Errorf("%v", err)
		}
	})
}

// A run ends with its context, wherever it is, and leaves nobody behind.
func TestCancelled(t *testing.T) {
	cfg := configured(config.VLLM, 2, config.RoundRobin)
	w := made(t, cfg, 1)
	for _, after := range []time.Duration{0, 7 * time.Millisecond, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			start := time.Now()
			if _, err := online.Run(ctx, cfg, w, online.Options{Clock: clock.NewWall(false)}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took != after {
				t.Errorf("it ends after %v, want %v", took, after)
			}
		})
	}
}

// slow is a clock whose waits are too long.
type slow struct {
	clock.Clock
	byMs float64
}

func (s slow) Waiter() clock.Waiter { return slowWaiter{s.Clock.Waiter(), s.byMs} }

type slowWaiter struct {
	clock.Waiter
	byMs float64
}

func (w slowWaiter) Until(ms float64, wake <-chan struct{}) bool {
	return w.Waiter.Until(ms+w.byMs, wake)
}

// On a machine that is late a request still counts from when it was due, and is
// as much longer as its tokens were late.
func TestLate(t *testing.T) {
	cfg := configured(config.VLLM, 1, config.RoundRobin)
	w := made(t, cfg, 1)
	want, _ := simulated(t, cfg, w)
	synctest.Test(t, func(t *testing.T) {
		run, err := online.Run(t.Context(), cfg, w, online.Options{Clock: slow{clock.NewWall(false), 3}})
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Summary; got.TTFT.Mean < want.TTFT.Mean+2 || got.TTFT.Mean > want.TTFT.Mean+10 || got.DurationMs > want.DurationMs+20 {
			t.Errorf("TTFT %g ms, it took %g; on time %g, %g", got.TTFT.Mean, got.DurationMs, want.TTFT.Mean, want.DurationMs)
		}
		if run.LateMs < 3 || run.LateMs > 6.1 {
			t.Errorf("%g ms late", run.LateMs)
		}
	})
}

// On the machine's clock all is counted, and nothing comes before its time.
func TestMachine(t *testing.T) {
	cfg := configured(config.VLLM, 2, config.KVRouter)
	cfg.Engine.SpeedupRatio = 50
	w := made(t, cfg, 2)
	for i := range w.Sessions {
		w.Sessions[i].StartMs /= 10
	}
	run, err := online.Run(t.Context(), cfg, w, online.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := run.Summary; s.CompletedRequests != 40 || s.TotalOutputTokens != 480 || !(s.DurationMs > 20 && s.DurationMs <= run.WallMs) {
		t.Errorf("%+v", s)
	}
	for _, r := range run.Records {
		if !(r.ArrivalMs <= r.FirstAdmitMs && r.FirstAdmitMs < r.FirstTokenMs && r.FirstTokenMs <= r.SecondTokenMs && r.LastTokenMs == r.TerminalMs) {
			t.Errorf("%+v", r)
		}
	}
}
