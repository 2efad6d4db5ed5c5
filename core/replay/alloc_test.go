package replay_test

import (
	"testing"

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
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := tight(c.blocks)
			cfg.NumWorkers, cfg.Concurrency = c.workers, c.cap
			if c.engine != nil {
				c.engine(&cfg.Engine)
			}
			s := replay.New(cfg, steady(t, cfg, 6000, c.gapMs), c.options)
			ended := func() int64 {
				n, _ := s.Progress()
				return n
			}
			for ended() < 3000 {
				if s.Step(64) != replay.Running {
					t.Fatal("the run ended while warming up")
				}
			}
			const runs = 500
			allocs := testing.AllocsPerRun(runs, func() { s.Step(16) })
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
