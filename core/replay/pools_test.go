package replay_test

import (
	"math"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/internal/parity"
)

// inPools makes the workers of a run two pools of so many.
func inPools(cfg config.Replay, prefill, decode int) config.Replay {
	cfg.Prefill = config.Pool{Engine: cfg.Engine, Workers: prefill}
	cfg.Prefill.Engine.Role, cfg.Engine.Role, cfg.NumWorkers = config.Prefill, config.Decode, decode
	return cfg
}

// ms wants a time, NaN for an absent one.
func ms(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

// TestHandoffsByHand: what happens to two prompts on one worker of each kind, to
// the last bit (engine notes §15, E13).
func TestHandoffsByHand(t *testing.T) {
	rows := []trace.Row{
		{InputLength: 10, OutputLength: 3, HashIDs: []uint64{1, 2, 3}, HasTimestamp: true},
		{InputLength: 6, OutputLength: 2, HashIDs: []uint64{4, 5}, TimestampMs: 5, HasTimestamp: true},
	}
	// of both: held, reserved, activated, released, first token, last token
	type times [2][6]float64
	for _, c := range []struct {
		name      string
		backend   config.Backend
		bandwidth float64
		want      times
	}{
		{"vllm", config.VLLM, 1, times{
			{16.653296, 16.653296, 26.653296, 33.24583200000001, 40.203941, 73.360762}, {33.24583200000001, 40.203941, 54.466524, 54.466524, 73.360762, 84.70018099999999},
		}},
		{"vllm without time", config.VLLM, 0, times{
			{16.653296, 16.653296, 16.653296, 16.653296, 30.203941, math.NaN()}, {33.24583200000001, math.NaN(), 44.466524, math.NaN(), math.NaN(), 74.700181},
		}},
		{"sglang", config.SGLang, 1, times{
			{math.NaN(), 0, 26.653296, math.NaN(), 40.203941, 77.979849}, {math.NaN(), 5, 40.203941, math.NaN(), 58.474219000000005, 77.979849},
		}},
	} {
		cfg := tight(16)
		cfg.Engine.Backend, cfg.Engine.BlockSize, cfg.TraceBlockSize = c.backend, 4, 4
		cfg.CaptureRequests = true
		cfg = inPools(cfg, 1, 1)
		cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 1_000_000, BandwidthGBs: c.bandwidth}
		w, err := parity.Build(rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := run(replay.New(cfg, w, replay.Options{}), 3)
		if got.Status != replay.Done || len(got.Handoffs) != 2 {
			t.Fatalf("%s: %+v", c.name, got)
		}
		for i, want := range c.want {
			h, rec := got.Handoffs[i], got.Records[i]
			for j, x := range []float64{h.HeldMs, h.ReservedMs, h.ActivatedMs, h.ReleasedMs, rec.FirstTokenMs, rec.LastTokenMs} {
				if !math.IsNaN(want[j]) { // not told
					ms(t, c.name, x, want[j])
				}
			}
		}
	}
}

// TestHandoffsTakeNoTime: engines that take no time end at the time of the
// arrival, and every request comes to its end (peers notes T4).
func TestHandoffsTakeNoTime(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.TRTLLM, config.SGLang} {
		cfg := tight(64)
		cfg.Engine.Backend = backend
		cfg.Engine.Timing = config.Timing{Kind: config.Fixed}
		cfg = inPools(cfg, 2, 2)
		got := run(replay.New(cfg, steady(t, cfg, 20, 10), replay.Options{}), 1)
		if got.Status != replay.Done || got.Summary.CompletedRequests != 20 || got.Summary.E2E.Max != 0 {
			t.Errorf("backend %d: %+v", backend, got)
		}
	}
}

// TestTransferVolume: a prompt that the destination already has is transferred
// in no time if only what it lacks is charged (peers notes T6).
func TestTransferVolume(t *testing.T) {
	row := trace.Row{InputLength: 64, OutputLength: 2, HashIDs: []uint64{1}, HasTimestamp: true}
	again := row
	again.TimestampMs = 1000
	for _, c := range []struct {
		timing        config.TransferTiming
		first, second float64
	}{{config.FullPrompt, 64, 64}, {config.DestinationMissing, 64, 0}} {
		cfg := tight(100)
		cfg.CaptureRequests = true
		cfg = inPools(cfg, 1, 1)
		cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 1_000_000, BandwidthGBs: 1, Timing: c.timing}
		cfg.Engine.Transfer = config.Transfer{BytesPerToken: 7, BandwidthGBs: 1} // of no account
		w, err := parity.Build([]trace.Row{row, again}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := run(replay.New(cfg, w, replay.Options{}), 100)
		for i, want := range []float64{c.first, c.second} {
			h := got.Handoffs[i]
			ms(t, "activated", h.ActivatedMs, h.ReservedMs+want)
		}
	}
}

// TestSharedLinks: two prompts that are ready together on two workers reach one
// worker that decodes in the time that one takes, unless both are on one link.
func TestSharedLinks(t *testing.T) {
	rows := []trace.Row{
		{InputLength: 64, OutputLength: 2, HashIDs: []uint64{1}, HasTimestamp: true}, {InputLength: 64, OutputLength: 2, HashIDs: []uint64{2}, HasTimestamp: true},
	}
	for _, c := range []struct {
		sharing config.LinkSharing
		perNode int
		prefill int // workers
		want    float64
	}{
		{config.NotShared, 1, 2, 64}, {config.SharedByPair, 1, 2, 64}, {config.SharedByNode, 1, 2, 64}, {config.SharedByNode, 2, 2, 128},
		{config.NotShared, 1, 1, 64}, {config.SharedByPair, 1, 1, 128}, {config.SharedByNode, 1, 1, 128},
	} {
		cfg := tight(100)
		cfg.CaptureRequests, cfg.Sharing, cfg.PrefillPerNode = true, c.sharing, c.perNode
		cfg = inPools(cfg, c.prefill, 1)
		cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 1_000_000, BandwidthGBs: 1}
		w, err := parity.Build(rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := run(replay.New(cfg, w, replay.Options{}), 1)
		for _, h := range got.Handoffs {
			if took := h.ActivatedMs - h.ReservedMs; math.Abs(took-c.want) > 1e-9 {
				t.Errorf("%+v: %v ms", c, took)
			}
		}
		if got.Status != replay.Done || len(got.Handoffs) != 2 {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestSharedLinksAlone: transfers that never overlap take as long as ever, to
// the last bit, and budgets do not matter.
func TestSharedLinksAlone(t *testing.T) {
	for _, gapMs := range []float64{20, 900} {
		var first outcome
		for i, sharing := range []config.LinkSharing{config.NotShared, config.SharedByPair, config.SharedByNode} {
			cfg := tight(300)
			cfg.CaptureRequests, cfg.Sharing = true, sharing
			cfg = inPools(cfg, 1, 1)
			cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 300_000, BandwidthGBs: 1}
			got := run(replay.New(cfg, steady(t, cfg, 100, gapMs), replay.Options{}), 100)
			if again := run(replay.New(cfg, steady(t, cfg, 100, gapMs), replay.Options{}), 1); !cmp.Equal(got, again, cmpopts.EquateNaNs()) {
				t.Errorf("%v ms apart, sharing %d: the budget matters", gapMs, sharing)
			}
			if i == 0 {
				first = got
				continue
			}
			if same := cmp.Equal(first, got, cmpopts.EquateNaNs()); same != (gapMs > 500) {
				t.Errorf("%v ms apart, sharing %d: equal %v", gapMs, sharing, same)
			}
		}
	}
}

// TestWarmPoolsDoNotAllocate: a warm step of two pools allocates nothing.
func TestWarmPoolsDoNotAllocate(t *testing.T) {
	for _, c := range []struct {
		name    string
		engine  func(*config.Engine)
		cap     int
		sharing config.LinkSharing
		router  bool
		build   func(testing.TB, config.Replay, int, float64) *workload.Workload
	}{
		{name: "vllm", engine: func(e *config.Engine) {}},
		{name: "trtllm", engine: func(e *config.Engine) { e.Backend = config.TRTLLM }},
		{name: "sglang", engine: sglang},
		{name: "ranks", engine: ranks(3)},
		{name: "bursts", engine: drafts},
		{name: "shared links", engine: func(e *config.Engine) {}, sharing: config.SharedByPair},
		{name: "a router", engine: func(e *config.Engine) {}, router: true},
		{name: "a cap", engine: func(e *config.Engine) {}, cap: 12},
		{name: "sessions of increments", engine: func(e *config.Engine) {}, build: talking},
		{name: "agents", engine: func(e *config.Engine) {}, build: waiting},
		{name: "asking", engine: func(e *config.Engine) { e.Timing.Kind = config.External }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if checked {
				t.Skip("checking allocates")
			}
			cfg := tight(150)
			cfg.Concurrency, cfg.Sharing = c.cap, c.sharing
			if c.router {
				router := config.DefaultRouter()
				cfg.Routing.Mode, cfg.Routing.Router = config.KVRouter, &router
			}
			c.engine(&cfg.Engine)
			cfg = inPools(cfg, 2, 3)
			cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 100_000, BandwidthGBs: 1, Timing: config.DestinationMissing}
			if c.build == nil {
				c.build = steady
			}
			s := replay.New(cfg, c.build(t, cfg, 6000, 90), replay.Options{})
			allocs, ended := answering(s)
			if allocs != 0 {
				t.Errorf("%v allocations a step, want 0", allocs)
			}
			if n := ended(); n <= 3000 || n == 6000 {
				t.Errorf("%d requests have ended: the test shows nothing", n)
			}
		})
	}
}

// TestPoolsAskProvider: a provider that answers as a model does gives the bytes
// of that model, whatever the budget; each pool may ask, and neither.
func TestPoolsAskProvider(t *testing.T) {
	r := rand.New(rand.NewSource(31))
	questions := 0
	for i := range 200 {
		cfg, rows := asking(r)
		kind := randomGrid(r)
		for j := range kind.Grid.DecodeMs {
			kind.Grid.DecodeMs[j]++ // a provider's least
		}
		answer := modelled(cfg.Engine, kind)
		cfg.Engine.Timing = kind
		cfg = inPools(cfg, 1+r.Intn(3), 1+r.Intn(3))
		cfg.Prefill.Engine.Transfer = config.Transfer{BytesPerToken: 100_000, BandwidthGBs: float64(r.Intn(4))}
		build := func() *workload.Workload {
			w, err := parity.Build(rows, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		want := run(replay.New(cfg, build(), replay.Options{}), long)
		if i%3 != 1 {
			cfg.Prefill.Engine.Timing = config.Timing{Kind: config.External}
		}
		if i%3 != 2 {
			cfg.Engine.Timing = config.Timing{Kind: config.External}
		}
		for _, budget := range []int{1, 7, 1000} {
			got, n := ask(t, replay.New(cfg, build(), replay.Options{}), budget, answer)
			questions += n
			if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
				t.Fatalf("case %d, budget %d (-model +provider):\n%s", i, budget, d)
			}
		}
	}
	if questions < 3000 {
		t.Errorf("only %d questions", questions)
	}
}
