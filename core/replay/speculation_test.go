package replay_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/internal/parity"
)

// TestSpeculationWithoutEnd: with speculation a request that outgrows the pool
// preempts itself for ever under the reference (corrections §4), and so may
// requests that do not. The reference has not ended the second case after 10^5
// simulated ms. One request has to fail, the others are served.
func TestSpeculationWithoutEnd(t *testing.T) {
	circle := func(e *config.Engine) {
		e.NumGPUBlocks, e.MaxNumBatchedTokens, e.Preemption = 5, 6, config.FIFO
		e.MTP = config.MTP{Drafts: 3, AcceptRates: [5]float64{0.5}, Seed: 42}
	}
	lone := func(e *config.Engine) {
		e.NumGPUBlocks = 6
		e.MTP = config.MTP{Drafts: 1, AcceptRates: [5]float64{0.85}, Seed: 42}
	}
	for _, c := range []struct {
		name   string
		engine func(*config.Engine)
		rows   []trace.Row
		ends   bool
		failed int64
	}{
		{"as long as the pool", lone, []trace.Row{prompt(0, 4, 20)}, true, 0},
		{"longer than the pool", lone, []trace.Row{prompt(0, 4, 21)}, false, 1},
		{"longer than the pool, and another", lone, []trace.Row{prompt(0, 4, 21), prompt(1, 4, 5)}, false, 1},
		{"in circles", circle, []trace.Row{prompt(0, 9, 7), prompt(0, 5, 10)}, false, 1},
		{"in circles, last in first out", func(e *config.Engine) { circle(e); e.Preemption = config.LIFO }, []trace.Row{prompt(0, 9, 7), prompt(0, 5, 10)}, true, 0},
	} {
		for _, plain := range []bool{false, true} {
			for _, parityMode := range []bool{false, true} {
				cfg := config.DefaultReplay(config.VLLM)
				cfg.TraceBlockSize, cfg.Parity = 4, parityMode
				cfg.Engine.BlockSize = 4
				cfg.Engine.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
				c.engine(&cfg.Engine)
				w, err := parity.Build(c.rows, cfg)
				if err != nil {
					t.Fatal(err)
				}
				got := run(replay.New(cfg, w, replay.Options{Plain: plain}), 256)
				if parityMode && !c.ends {
					if got.Status != replay.Running {
						t.Errorf("%s, plain %v: ends with status %d under parity", c.name, plain, got.Status)
					}
					continue
				}
				s := got.Summary
				if got.Status != replay.Done || s.FailedRequests != c.failed || s.CompletedRequests+s.FailedRequests != int64(len(c.rows)) {
					t.Errorf("%s, plain %v, parity %v: status %d, %d completed, %d failed", c.name, plain, parityMode, got.Status, s.CompletedRequests, s.FailedRequests)
				}
				if c.name == "as long as the pool" && s.DurationMs != 30 {
					t.Errorf("%s: ends at %v ms, want 30", c.name, s.DurationMs)
				}
			}
		}
	}
}
