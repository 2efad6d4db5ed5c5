package replay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/internal/gen"
	"github.com/dryserve/dryserve/internal/parity"
)

// routed is a random case with a random routing, and rows that a router may
// order.
func routed(seed uint64, family string, mode config.RouterMode) (cfg config.Replay, rows []trace.Row, text []byte, ok bool) {
	c, err := gen.FamilyCase(seed, family)
	if err != nil {
		return cfg, nil, nil, false
	}
	cfg, err = parity.ConfigWith(c.Kwargs, func(path string) (*config.ProfileTable, error) { return profile.ParseProfile(path, c.Profile) })
	if err != nil {
		return cfg, nil, nil, false
	}
	text = c.Trace()
	if rows, err = parity.Rows(text); err != nil {
		return cfg, nil, nil, false
	}
	r := gen.NewRand(seed ^ 0x6F12A3)
	cfg.NumWorkers = r.Between(1, 4)
	cfg.Parity = seed%2 == 0
	cfg.Routing = config.Routing{Mode: mode, Seed: seed}
	if mode != config.KVRouter {
		return cfg, rows, text, true
	}
	k := config.DefaultRouter()
	if r.Chance(0.4) { // passes without duration wake others in the middle of things
		cfg.Engine.Timing = config.Timing{Kind: config.Fixed, DecodeMs: float64(2 * r.Intn(2))}
		for i := range rows {
			if !rows[i].HasOutputIDs {
				rows[i].OutputLength = int64(r.Intn(3))
			}
			rows[i].TimestampMs = float64(int(rows[i].TimestampMs) / 50)
		}
	}
	if r.Chance(0.6) {
		k.QueueThreshold = []float64{0, 0.1, 0.5, 2}[r.Intn(4)]
		k.QueuePolicy = config.QueuePolicy(r.Intn(3))
		for i := range rows { // crowded, so that requests wait
			rows[i].TimestampMs = float64(int(rows[i].TimestampMs) / 20)
		}
	}
	if r.Chance(0.3) {
		k.Temperature = 0.5
	}
	k.TrackActiveBlocks, k.AssumeKVReuse, k.TrackPrefillTokens = !r.Chance(0.2), !r.Chance(0.2), !r.Chance(0.2)
	if r.Chance(0.3) {
		k.TrackingHash = config.KeyedXXH3
		cfg.Routing.Tracking = config.Seeds{Block: 11, Chain: 12}
	}
	if k.TrackPrefillTokens && r.Chance(0.5) {
		k.LoadModel, cfg.Routing.AskLoad = config.PredictedLoad, true
	}
	if r.Chance(0.3) {
		cfg.Routing.EventLagMs = float64(r.Between(1, 60))
	}
	cfg.Routing.Router = &k
	for i := range rows {
		if r.Chance(0.3) {
			rows[i].Priority = int32(r.Between(0, 5)) - 2
		}
		if r.Chance(0.2) {
			rows[i].StrictPriority = uint32(r.Intn(3))
		}
	}
	return cfg, rows, text, true
}

// estimate is the tests' model of how long a prompt takes, in ms.
func estimate(q timing.Query) float64 { return float64(20*q.ISL+q.Prefix) / 1000 }

// feed streams a workload's sessions into a run, stepping in between.
func feed(t *testing.T, cfg config.Replay, rows []trace.Row, w *workload.Workload, budget int) *replay.Sim {
	t.Helper()
	s := replay.NewStream(cfg, len(w.Sessions) == len(w.Turns), replay.Options{})
	for i, session := range w.Sessions {
		var turns []replay.Input
		for at := session.First; at >= 0; at = w.Turns[at].Next {
			r, turn := &rows[at], &w.Turns[at]
			in := replay.Input{HashIDs: r.HashIDs, Input: turn.Input, Output: turn.Output, DelayMs: turn.DelayMs,
				Priority: r.Priority, Strict: r.StrictPriority, Class: string(r.PolicyClass)}
			if w.Targets != nil {
				in.Worker = w.Targets[at]
			}
			turns = append(turns, in)
		}
		if !s.Feed(session.StartMs, turns) {
			t.Fatal("unsorted")
		}
		for n := i % 5; n > 0; n-- {
			if status := s.Step(budget); status == replay.NeedTiming {
				q, _ := s.Query()
				s.Answer(estimate(q))
			} else if status != replay.Running {
				break
			}
		}
	}
	s.Close()
	return s
}

// runAnswered is run for a routed case, with the routes it took.
func runAnswered(s *replay.Sim, turns, budget int) (outcome, []replay.Route) {
	for events := 0; events < long; events += budget {
		switch status := s.Step(budget); status {
		case replay.Running:
		case replay.NeedTiming:
			q, _ := s.Query()
			s.Answer(estimate(q))
		default:
			var routes []replay.Route
			for turn := range turns {
				if r, ok := s.Route(int32(turn)); ok {
					routes = append(routes, r)
				}
			}
			return finish(s, status), routes
		}
	}
	return outcome{Status: replay.Running}, nil
}

// TestRoutedTwins runs random cases behind every policy: both engines, any
// steps and fed traces give the same bytes. A KV router never meets an event it
// does not believe, and before one worker it is as good as none.
func TestRoutedTwins(t *testing.T) {
	n := uint64(120)
	if testing.Short() {
		n = 30
	}
	modes := []config.RouterMode{config.KVRouter, config.Random, config.PowerOfTwo, config.LeastLoaded, config.Direct}
	waited, ended := 0, 0
	for seed := range n {
		for i, family := range []string{"vllm", "trtllm", "sglang", "dp", "any"} {
			for _, mode := range []config.RouterMode{config.KVRouter, modes[(int(seed)+i)%len(modes)]} {
				w, e := routedTwins(t, seed, family, mode)
				waited, ended = waited+w, ended+e
			}
		}
		if t.Failed() {
			return
		}
	}
	if waited < int(n)*2 || ended < int(n)*5 {
		t.Errorf("only %d requests waited, only %d runs ended: the cases show little", waited, ended)
	}
}

func routedTwins(t *testing.T, seed uint64, family string, mode config.RouterMode) (waited, ended int) {
	cfg, rows, text, ok := routed(seed, family, mode)
	if !ok {
		return 0, 0
	}
	build := func() *workload.Workload {
		w, err := parity.Build(rows, cfg)
		if err != nil {
			return nil
		}
		for i := range w.Turns {
			if mode == config.Direct {
				w.Targets = append(w.Targets, int32((i*i+int(seed))%cfg.NumWorkers))
			}
		}
		return w
	}
	w := build()
	if w == nil {
		return 0, 0
	}
	turns := len(w.Turns)
	want, routes := runAnswered(replay.New(cfg, w, replay.Options{Plain: true}), turns, long)
	if want.Status == replay.Running {
		return 0, 0 // there may be no end under parity
	}
	for _, r := range routes {
		if r.Waited {
			waited++
		}
	}
	name := fmt.Sprintf("%s %d, mode %d", family, seed, mode)
	if c := want.Fault.Router.Code; c != router.OK {
		t.Errorf("%s: the router's fault %+v\n%s", name, want.Fault.Router, text)
	}
	check := func(how string, s *replay.Sim, budget int) {
		t.Helper()
		got, took := runAnswered(s, turns, budget)
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs()) + cmp.Diff(routes, took); d != "" {
			routing, _ := json.Marshal(cfg.Routing)
			t.Errorf("%s: %s differs:\n%s\n%s\n%s", name, how, d, routing, text)
		}
	}
	check("default", replay.New(cfg, build(), replay.Options{}), long)
	check("budget 1", replay.New(cfg, build(), replay.Options{}), 1)
	check("budget 7", replay.New(cfg, build(), replay.Options{Eventful: true}), 7)
	inOrder := slices.IsSortedFunc(w.Turns, func(a, b workload.Turn) int { return int(a.Session) - int(b.Session) })
	sorted := slices.IsSortedFunc(w.Sessions, func(a, b workload.Session) int {
		if a.StartMs < b.StartMs {
			return -1
		}
		return 1
	})
	if len(w.Planned) == 0 && inOrder && (cfg.Concurrency > 0 || sorted) {
		check("streamed", feed(t, cfg, rows, w, 3), 3)
	}
	if k := cfg.Routing.Router; k != nil && cfg.NumWorkers*cfg.Engine.DPSize == 1 && k.QueueThreshold < 0 {
		cfg.Routing, routes = config.Routing{}, nil
		check("one worker in turn", replay.New(cfg, build(), replay.Options{Plain: true}), long)
	}
	return waited, 1
}
