package drive_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/profile"
)

// A provider that answers out of a grid gives what the grid gives.
func TestProvider(t *testing.T) {
	g, err := profile.LoadGrid("../../../examples/grid-example-gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range configs() {
		cfg.Engine.Timing = config.Timing{Kind: config.Grid, Grid: g.Table}
		m := timing.New(cfg.Engine)
		want := replay.New(cfg, load(t), replay.Options{})
		if status, err := drive.Run(context.Background(), want, drive.Options{}); status != replay.Done || err != nil {
			t.Fatalf("%s: status %d, %v", name, status, err)
		}
		cfg.Engine.Timing = config.Timing{Kind: config.External}
		got := replay.New(cfg, load(t), replay.Options{})
		asked := map[timing.Query]bool{}
		status, err := drive.Run(context.Background(), got, drive.Options{Provider: func(q timing.Query) (float64, error) {
			if asked[q] {
				return 0, fmt.Errorf("%+v is asked twice", q)
			}
			asked[q] = true
			if q.Kind == timing.AskPrefill {
				return m.Prefill(q.Batch, q.Batch*(q.ISL+q.Prefix), q.Batch*q.Prefix), nil
			}
			return m.Decode(q.Batch, q.Batch*q.ISL), nil
		}})
		if status != replay.Done || err != nil {
			t.Fatalf("%s: status %d, %v", name, status, err)
		}
		if d := cmp.Diff(want.Summary(), got.Summary()); d != "" {
			t.Errorf("%s (-grid +provider):\n%s", name, d)
		}
		t.Logf("%s: %d questions", name, len(asked))
	}
}

func TestBadProviders(t *testing.T) {
	broken := errors.New("no such model")
	for want, o := range map[string]drive.Options{
		"the engine's timing model is external and nobody answers it; a provider, or another timing model, is accepted": {},
		"the timing provider failed for a prefill of batch 1, isl 10, prefix 0: no such model":                          {Provider: func(timing.Query) (float64, error) { return 0, broken }},
		"the timing provider answered NaN ms for a prefill of batch 1, isl 10, prefix 0; a finite number is accepted":   {Provider: func(timing.Query) (float64, error) { return math.NaN(), nil }},
		"the timing provider answered +Inf ms for a decode step of batch 1, isl 11, osl 2; a finite number is accepted": {Provider: func(q timing.Query) (float64, error) { return 1 / float64(2-q.OSL), nil }},
	} {
		cfg := config.DefaultReplay(config.VLLM)
		cfg.Engine.Timing = config.Timing{Kind: config.External}
		s := replay.NewStream(cfg, true, replay.Options{})
		s.Feed(0, []replay.Input{{HashIDs: []uint64{1}, Input: 10, Output: 3}})
		s.Close()
		if _, err := drive.Run(context.Background(), s, o); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// ExampleOptions asks a performance model of the host's own: 10 ms and 0.1 a
// token for a prefill, 5 ms for any decode step.
func ExampleOptions() {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.Engine.Timing = config.Timing{Kind: config.External}
	s := replay.NewStream(cfg, true, replay.Options{})
	s.Feed(0, []replay.Input{{HashIDs: []uint64{1}, Input: 100, Output: 3}})
	s.Close()
	status, err := drive.Run(context.Background(), s, drive.Options{Provider: func(q timing.Query) (float64, error) {
		fmt.Printf("%+v\n", q)
		if q.Kind == timing.AskPrefill {
			return 10 + 0.1*float64(q.Batch*q.ISL), nil
		}
		return 5, nil
	}})
	fmt.Println(status == replay.Done, err, s.Summary().TTFT.Mean, s.Summary().E2E.Mean)
	// Output:
	// {Kind:0 Batch:1 ISL:100 Prefix:0 OSL:0}
	// {Kind:1 Batch:1 ISL:101 Prefix:0 OSL:2}
	// {Kind:1 Batch:1 ISL:102 Prefix:0 OSL:2}
	// true <nil> 20 30
}
