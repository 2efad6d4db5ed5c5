//go:build !invariants

package replay_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/engineargs"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/host/native/routerconfig"
	"github.com/dryserve/dryserve/internal/parity"
)

// These runs test the routing; with the invariants of the engines checked at
// every pass they would take a minute.

// recorded is a run of the reference behind its KV router, with seeded lots.
type recorded struct {
	Name       string
	Speedup    float64         `json:"arrival_speedup_ratio"`
	EngineArgs json.RawMessage `json:"engine_args"`
	Prefill    json.RawMessage `json:"prefill_engine_args"` // of two pools, with the next three
	Decode     json.RawMessage `json:"decode_engine_args"`
	Prefillers int             `json:"num_prefill_workers"`
	Decoders   int             `json:"num_decode_workers"`
	Estimator  *string
	LagMs      float64         `json:"kv_event_lag_ms"`
	Workers    int             `json:"num_workers"`
	Router     json.RawMessage `json:"router_config"`
	Trace      string
	Requests   []recordedRequest
}

type recordedRequest struct {
	ArrivalMs float64 `json:"arrival_ms"`
	FirstMs   float64 `json:"first_token_ms"`
	LastMs    float64 `json:"last_token_ms"`
	Input     int     `json:"isl"`
	Output    int     `json:"osl"`
	Reused    int
	Routing   []recordedRoute
}

type recordedRoute struct {
	Outcome   string
	WaitMs    float64 `json:"queue_wait_ms"`
	Worker    int
	Rank      int `json:"dp_rank"`
	Scheduler int
	Overlap   int `json:"overlap_tokens"`
	Selected  int `json:"selected_blocks"`
	Best      int `json:"best_blocks"`
}

// replayOf is the run that a recording is of.
func replayOf(t *testing.T, c *recorded, traceBlock int) config.Replay {
	t.Helper()
	parse := func(text json.RawMessage, role config.Role) config.Engine {
		args, err := engineargs.Options{Role: role}.Parse("engine args", text)
		if err != nil {
			t.Fatal(err)
		}
		return args.Engine
	}
	router, err := routerconfig.Parse("router config", c.Router, routerconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize, cfg.ArrivalSpeedup = traceBlock, c.Speedup
	if c.EngineArgs != nil {
		cfg.Engine, cfg.NumWorkers = parse(c.EngineArgs, config.Aggregated), c.Workers
	} else {
		cfg.Engine, cfg.NumWorkers = parse(c.Decode, config.Decode), c.Decoders
		cfg.Prefill = config.Pool{Engine: parse(c.Prefill, config.Prefill), Workers: c.Prefillers}
	}
	cfg.Parity, cfg.CaptureRequests = true, true
	cfg.Routing.Mode, cfg.Routing.Router, cfg.Routing.EventLagMs = config.KVRouter, &router.Router, c.LagMs
	cfg.Routing.AskLoad = c.Estimator != nil
	return cfg
}

// answered steps a run to its end and answers what it asks.
func answered(t *testing.T, s *replay.Sim, budget int) replay.Status {
	t.Helper()
	for {
		switch status := s.Step(budget); status {
		case replay.Running:
		case replay.NeedTiming:
			if q, ask := s.Query(); !ask || !s.Answer(estimate(q)) {
				t.Fatalf("asks nothing that can be answered: %+v", q)
			}
		default:
			return status
		}
	}
}

// requestsOf is what a run says, as it was recorded.
func requestsOf(s *replay.Sim, cfg config.Replay, n int) []recordedRequest {
	out := make([]recordedRequest, n)
	place := func(scheduler int32, ranks int, route replay.Route) recordedRoute {
		x := recordedRoute{"immediate", route.ReleasedMs - route.EnteredMs, int(scheduler) / ranks, int(scheduler) % ranks, int(scheduler),
			int(route.OverlapBlocks) * cfg.Engine.BlockSize, int(route.OverlapBlocks), int(route.BestBlocks)}
		if route.Waited {
			x.Outcome = "queued"
		}
		return x
	}
	for i, r := range s.Records() {
		var routes []recordedRoute
		if cfg.Disaggregated() {
			h := s.Handoffs()[i]
			routes = []recordedRoute{place(h.PrefillScheduler, cfg.Prefill.Engine.DPSize, h.PrefillRoute), place(h.DecodeScheduler, cfg.Engine.DPSize, h.DecodeRoute)}
		} else {
			route, _ := s.Route(r.Turn)
			routes = []recordedRoute{place(r.Worker, cfg.Engine.DPSize, route)}
		}
		out[r.Turn] = recordedRequest{r.ArrivalMs, r.FirstTokenMs, r.LastTokenMs, int(r.InputLength), int(r.OutputLength), int(r.ReusedTokens), routes}
	}
	return out
}

// The reference's runs of 120 requests over aggregated workers and over two
// pools: who served
// each, after how long, with what overlap, and when its tokens came. And the
// same whatever the steps, and when the trace is fed.
func TestRecordedRuns(t *testing.T) {
	t.Chdir("../../testdata/router") // the policy file is named from there
	text, err := os.ReadFile("e2e.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases      []recorded
		Trace      string
		TraceBlock int `json:"trace_block_size"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range file.Cases {
		ran++
		cfg := replayOf(t, &c, file.TraceBlock)
		if c.Trace == "" {
			c.Trace = file.Trace
		}
		text, err := os.ReadFile(c.Trace)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parity.Rows(text)
		if err != nil {
			t.Fatal(err)
		}
		build := func() *workload.Workload {
			w, err := parity.Build(rows, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		s := replay.New(cfg, build(), replay.Options{})
		if status := answered(t, s, math.MaxInt); status != replay.Done {
			t.Fatalf("%s: status %d, %+v", c.Name, status, s.Fault())
		}
		want := finish(s, replay.Done)
		got := requestsOf(s, cfg, len(rows))
		if len(c.Requests) != 120 {
			t.Errorf("%s: %d requests", c.Name, len(c.Requests))
		}
		for i, want := range c.Requests {
			if fmt.Sprint(got[i]) != fmt.Sprint(want) {
				t.Errorf("%s, request %d: %+v, want %+v", c.Name, i, got[i], want)
				break
			}
		}
		for how, s := range map[string]*replay.Sim{
			"budget 1": replay.New(cfg, build(), replay.Options{}), "budget 7": replay.New(cfg, build(), replay.Options{}),
			"streamed": feed(t, cfg, rows, build(), 3),
		} {
			budget := 7
			if how == "budget 1" {
				budget = 1
			}
			if d := cmp.Diff(want, finish(s, answered(t, s, budget)), cmpopts.EquateNaNs()); d != "" {
				t.Errorf("%s, %s:\n%s", c.Name, how, d)
			}
			if d := cmp.Diff(got, requestsOf(s, cfg, len(rows))); d != "" {
				t.Errorf("%s, %s:\n%s", c.Name, how, d)
			}
		}
	}
	if ran != 23 {
		t.Errorf("%d runs, want 23", ran)
	}
}

// Predictions of a grid are those that an outside provider gives out of it.
func TestPredictionsOfAGrid(t *testing.T) {
	grid, err := profile.LoadGrid("../../examples/grid-example-gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	cfg := tight(400)
	cfg.NumWorkers, cfg.CaptureRequests = 2, true
	cfg.Engine.Timing = config.Timing{Kind: config.Grid, Grid: grid.Table}
	cfg.Engine.SpeedupRatio = 0.5 // which predictions do not know
	router := config.DefaultRouter()
	router.QueueThreshold = 0.1
	run := func() (outcome, int) {
		cfg.Routing = config.Routing{Mode: config.KVRouter, Router: &router, AskLoad: cfg.Routing.AskLoad}
		s := replay.New(cfg, steady(t, cfg, 300, 20), replay.Options{})
		raw := timing.New(config.Engine{Timing: cfg.Engine.Timing})
		asked := 0
		for {
			switch status := s.Step(5); status {
			case replay.Running:
			case replay.NeedTiming:
				q, _ := s.Query()
				if asked++; !s.Answer(raw.Prefill(q.Batch, q.ISL+q.Prefix, q.Prefix)) {
					t.Fatalf("%+v cannot be answered", q)
				}
			default:
				return finish(s, status), asked
			}
		}
	}
	without, _ := run()
	router.LoadModel = config.PredictedLoad
	with, asked := run()
	if asked != 0 {
		t.Errorf("%d questions beside a grid", asked)
	}
	cfg.Routing.AskLoad = true
	outside, asked := run()
	if asked == 0 {
		t.Error("nothing was asked")
	}
	if d := cmp.Diff(with, outside, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("-grid +provider:\n%s", d)
	}
	if cmp.Equal(with, without, cmpopts.EquateNaNs()) {
		t.Error("predictions change nothing: the case shows nothing")
	}
}

// A router that cannot go on ends a run in the same way on all engines, in
// windows and without.
func TestFaultOfTheRouter(t *testing.T) {
	cfg := tight(400)
	cfg.NumWorkers, cfg.CaptureRequests = 3, true
	r := config.DefaultRouter()
	r.PrefillLoadScale, r.ActiveRequestWeight = 1e300, 1e308 // two live requests of a rank are too many
	cfg.Routing = config.Routing{Mode: config.KVRouter, Router: &r}
	var want replay.Fault
	for i, o := range []replay.Options{{Plain: true}, {}, {Eventful: true}} {
		for _, budget := range []int{1, 7, 1 << 20} {
			s := replay.New(cfg, steady(t, cfg, 300, 20), o)
			status := replay.Running
			for status == replay.Running {
				status = s.Step(budget)
			}
			got := s.Fault()
			if status != replay.Stuck || got.Router.Code != router.NotFinite || got.InFlight < 3 {
				t.Fatalf("%+v: status %d, %+v", o, status, got)
			}
			if i == 0 {
				want = got
			} else if got != want {
				t.Errorf("%+v: %+v, want %+v", o, got, want)
			}
		}
	}
}
