package replay_test

import (
	"fmt"
	"testing"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/internal/parity"
)

// steady is a workload that goes on and on in the same way: requests of a few
// lengths that share prefixes, gapMs apart.
func steady(t testing.TB, cfg config.Replay, n int, gapMs float64) *workload.Workload {
	rows := make([]trace.Row, n)
	for i := range rows {
		group := uint64(i*7%11) + 1
		ids := []uint64{group, group * 100, group*100 + uint64(i*5%13), 1 << 20 * uint64(i%37+1)}
		rows[i] = trace.Row{
			InputLength: int64(4*cfg.TraceBlockSize - i*3%cfg.TraceBlockSize), OutputLength: int64(20 + i*11%60),
			HashIDs: ids, TimestampMs: float64(i) * gapMs, HasTimestamp: true,
		}
	}
	w, err := parity.Build(rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// talking is a workload of sessions of four turns, each of which repeats what
// was said before.
func talking(t testing.TB, cfg config.Replay, n int, gapMs float64) *workload.Workload {
	b := workload.NewBuilder(cfg.TraceBlockSize)
	for i := range n {
		row := trace.Row{
			SessionID: fmt.Append(nil, "s", i/4), InputLength: int64(20 + i*7%90), OutputLength: int64(20 + i*11%60),
			HashIDs: []uint64{uint64(i%50 + 1), uint64(i)}, TimestampMs: float64(i/4*4) * gapMs, HasTimestamp: true,
		}
		if i%4 > 0 {
			row.DelayMs, row.HasDelay = 3, true
		}
		if f := b.Add(&row, int64(i)+1); f.Code != workload.OK {
			t.Fatal(f)
		}
	}
	w, f := b.Finish(workload.Options{Delta: true, ArrivalSpeedup: 1})
	if f.Code != workload.OK || !w.Delta {
		t.Fatal(f)
	}
	return w
}

// waiting is a graph of plays: a root, two requests it spawns, and one that
// waits for both.
func waiting(t testing.TB, cfg config.Replay, n int, gapMs float64) *workload.Workload {
	b := agentic.NewBuilder(int64(cfg.TraceBlockSize), "test", "none")
	for i := range n {
		first := i / 4 * 4
		name := func(i int) []byte { return fmt.Appendf(nil, "r%06d", i) }
		row := trace.AgenticRow{
			RequestID: name(i), PlayID: fmt.Appendf(nil, "p%06d", first), SessionID: []byte("s"), Model: []byte("m"), PlayOrdinal: -1,
			InputLength: 100, OutputLength: int64(20 + i*11%60), HashIDs: []uint64{uint64(i%50 + 1), uint64(i)}, NotBeforeMs: float64(first) * gapMs,
		}
		switch i % 4 {
		case 1, 2:
			row.Dependencies = []trace.Dependency{{RequestID: name(first), Trigger: trace.Dispatch, Relation: trace.Spawn, DelayMs: 5}}
		case 3:
			row.Dependencies = []trace.Dependency{
				{RequestID: name(first + 1), Trigger: trace.Completion, Relation: trace.Join}, {RequestID: name(first + 2), Trigger: trace.Completion, Relation: trace.Join},
			}
		}
		if f := b.Add(&row, int64(i)+1); f.Code != agentic.OK {
			t.Fatal(f)
		}
	}
	w, f := b.Finish(1)
	if f.Code != agentic.OK {
		t.Fatal(f)
	}
	return w
}

// tight is an engine whose pool is always full.
func tight(blocks int) config.Replay {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize = 64
	cfg.Engine.BlockSize, cfg.Engine.NumGPUBlocks = 16, blocks
	cfg.Engine.MaxNumBatchedTokens = 512
	return cfg
}

func sglang(e *config.Engine) { e.Backend = config.SGLang }

func ranks(n int) func(*config.Engine) { return func(e *config.Engine) { e.DPSize = n } }

func drafts(e *config.Engine) { e.MTP = config.MTP{Drafts: 3, AcceptRates: [5]float64{0.8, 0.6, 0.4}} }

func TestWarmStepsDoNotAllocate(t *testing.T) {
	for _, c := range []struct {
		name     string
		blocks   int
		gapMs    float64
		workers  int
		cap      int
		options  replay.Options
		preempts bool
		engine   func(*config.Engine)
		build    func(testing.TB, config.Replay, int, float64) *workload.Workload
	}{
		{name: "prefill and decode", blocks: 400, gapMs: 90, workers: 1, options: replay.Options{Eventful: true}},
		{name: "a full pool", blocks: 120, gapMs: 90, workers: 1, options: replay.Options{Eventful: true}},
		{name: "preempting", blocks: 60, gapMs: 150, workers: 1, options: replay.Options{Eventful: true}, preempts: true},
		{name: "four workers", blocks: 120, gapMs: 30, workers: 4, options: replay.Options{Eventful: true}},
		{name: "windows", blocks: 120, gapMs: 30, workers: 4},
		{name: "a cap", blocks: 120, gapMs: 30, workers: 2, cap: 8},
		{name: "four ranks", blocks: 60, gapMs: 45, workers: 1, options: replay.Options{Eventful: true}, preempts: true, engine: ranks(4)},
		{name: "four ranks in windows", blocks: 120, gapMs: 15, workers: 2, engine: ranks(4)},
		{name: "sglang", blocks: 400, gapMs: 90, workers: 2, engine: sglang},
		{name: "four sglang ranks", blocks: 100, gapMs: 40, workers: 1, engine: func(e *config.Engine) {
			sglang(e)
			e.DPSize = 4
		}},
		{name: "a full sglang pool", blocks: 100, gapMs: 150, workers: 1, engine: sglang},
		{name: "retracting", blocks: 100, gapMs: 90, workers: 1, preempts: true, engine: func(e *config.Engine) {
			sglang(e)
			e.SGLang.Conservativeness, e.SGLang.ClipMaxNewTokens = 0, 0
		}},
		{name: "sglang pages of one token, longest prefix first", blocks: 3000, gapMs: 60, workers: 1, engine: func(e *config.Engine) {
			sglang(e)
			e.BlockSize, e.SGLang.Policy = 1, config.LPM
		}},
		{name: "ranks, prompts at intervals", blocks: 60, gapMs: 130, workers: 2, preempts: true, engine: func(e *config.Engine) { e.DPSize, e.PrefillScheduleInterval = 2, 3 }},
		{name: "bursts", blocks: 400, gapMs: 90, workers: 2, engine: drafts},
		{name: "bursts, preempting", blocks: 60, gapMs: 110, workers: 1, preempts: true, engine: drafts},
		{name: "bursts, event by event", blocks: 60, gapMs: 110, workers: 1, preempts: true, engine: drafts, options: replay.Options{Eventful: true}},
		{name: "bursts, plain", blocks: 60, gapMs: 250, workers: 1, preempts: true, engine: drafts, options: replay.Options{Plain: true}},
		{name: "bursts, trtllm", blocks: 120, gapMs: 110, workers: 1, engine: func(e *config.Engine) { drafts(e); e.Backend = config.TRTLLM }},
		{name: "bursts, sglang", blocks: 400, gapMs: 90, workers: 1, engine: func(e *config.Engine) { drafts(e); sglang(e) }},
		{name: "sessions of increments", blocks: 300, gapMs: 60, workers: 2, build: talking},
		{name: "agents", blocks: 120, gapMs: 90, workers: 2, build: waiting},
		{name: "recorded", blocks: 60, gapMs: 250, workers: 2, options: replay.Options{Record: true}, preempts: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if checked && c.name == "bursts, sglang" {
				t.Skip("checking allocates")
			}
			cfg := tight(c.blocks)
			cfg.NumWorkers, cfg.Concurrency = c.workers, c.cap
			if c.engine != nil {
				c.engine(&cfg.Engine)
			}
			if c.build == nil {
				c.build = steady
			}
			s := replay.New(cfg, c.build(t, cfg, 6000, c.gapMs), c.options)
			ended := func() int64 {
				n, _ := s.Progress()
				return n
			}
			var tape replay.Recording
			step := func(n int) replay.Status {
				defer s.TakeRecording(&tape)
				return s.Step(n)
			}
			for ended() < 3000 {
				if step(64) != replay.Running {
					t.Fatal("the run ended while warming up")
				}
			}
			const runs = 500
			allocs := testing.AllocsPerRun(runs, func() { step(16) })
			if allocs != 0 {
				t.Errorf("%v allocations a step, want 0", allocs)
			}
			if ended() <= 3000 {
				t.Error("no request ended while counting: the test shows nothing")
			}
			if c.preempts && s.Preemptions() < 100 {
				t.Errorf("only %d preemptions: the case does not show what it says", s.Preemptions())
			}
		})
	}
}
