package replay_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/internal/parity"
)

// prompt is a row of its own content.
func prompt(atMs float64, input, output int) trace.Row {
	return trace.Row{
		TimestampMs: atMs, HasTimestamp: true, InputLength: int64(input), OutputLength: int64(output),
		HashIDs: []uint64{uint64(atMs * 4), 1, 2, 3, 4}[:(input+3)/4],
	}
}

// TestIntervalCountsPasses: the interval between prompts counts the passes of a
// worker since it was drained. A pass at whose end a request has arrived does
// not leave it drained, and passes of a worker that can do nothing count too:
// with each drive at a timestamp, and again after each effect on a later
// worker. The times are the reference's (engine notes §3, corrections §3).
func TestIntervalCountsPasses(t *testing.T) {
	for _, c := range []struct {
		name              string
		interval, workers int
		rows              []trace.Row
		admitMs           []float64 // by row, -1: no record
	}{
		{"arrivals in flight", 4, 1, []trace.Row{prompt(0, 1, 0), prompt(1.6875, 1, 15), prompt(29, 1, 0), prompt(29.0625, 2, 0)},
			[]float64{0, 10, 30, 40}},
		{"a blocked rank", 7, 1, []trace.Row{prompt(0, 20, 1), prompt(100, 4, 60), prompt(101, 4, 1), prompt(105, 4, 1)},
			[]float64{-1, -1, -1, 118}},
		{"a blocked rank and another worker", 7, 2, []trace.Row{prompt(0, 20, 1), prompt(10, 4, 1), prompt(100, 4, 60), prompt(101, 4, 1), prompt(102, 4, 1), prompt(103, 4, 1), prompt(105, 4, 1)},
			[]float64{-1, 10, -1, 101, -1, 111, 122}},
		{"a blocked rank and two later workers", 7, 3, []trace.Row{prompt(0, 20, 1), prompt(0, 4, 1), prompt(0, 4, 1), prompt(100, 4, 60), prompt(101, 4, 1),
			prompt(102, 4, 1), prompt(102, 4, 1), prompt(103, 4, 1), prompt(103, 4, 1), prompt(105, 4, 1)},
			[]float64{-1, 0, 0, -1, 101, 102, -1, 111, 112, 110}},
	} {
		cfg := config.DefaultReplay(config.VLLM)
		cfg.TraceBlockSize, cfg.NumWorkers, cfg.MaxSimTimeMs, cfg.Parity, cfg.CaptureRequests = 4, c.workers, 200, true, true
		e := &cfg.Engine
		e.BlockSize, e.NumGPUBlocks, e.MaxNumBatchedTokens, e.EnableChunkedPrefill = 4, 64, 16, false
		e.DPSize, e.PrefillScheduleInterval = 2, c.interval
		e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
		w, err := parity.Build(c.rows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := replay.New(cfg, w, replay.Options{})
		for s.Step(1) == replay.Running {
		}
		got := make([]float64, len(c.rows))
		for i := range got {
			got[i] = -1
		}
		for _, r := range s.Records() {
			got[r.Turn] = r.FirstAdmitMs
		}
		for i, want := range c.admitMs {
			if got[i] != want {
				t.Errorf("%s: row %d was admitted at %v ms, want %v", c.name, i, got[i], want)
			}
		}
	}
}
