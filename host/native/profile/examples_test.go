package profile

import (
	"path/filepath"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
)

// example is what docs/timing.md says a model answers, to the nanosecond.
type example struct {
	what      string
	got, want float64
}

func checkExamples(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		if d := e.got - e.want; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s: %v, the page says %v", e.what, e.got, e.want)
		}
	}
}

func modelOf(timed config.Timing) timing.Model {
	e := config.Defaults(config.VLLM)
	e.NumGPUBlocks, e.BlockSize = 16, 4
	e.Timing = timed
	return timing.New(e)
}

func TestExamplesOfFormulas(t *testing.T) {
	p := modelOf(config.Timing{})
	f := modelOf(config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2})
	checkExamples(t, []example{
		{"polynomial prefill", p.Prefill(1, 10, 0), 16.653296},
		{"polynomial decode", p.Decode(1, 11), 14.262583},
		{"fixed", f.Prefill(2, 8, 0) + 2*f.Decode(2, 8), 14},
	})
}

func TestExamplesOfResults(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, prefillJSON), []byte(`{"prefill_isl": [100, 200, 400], "prefill_ttft": [5, 7, 11]}`))
	write(t, filepath.Join(dir, decodeJSON), []byte(`{"x_kv_usage": [0.1, 0.2, 0.4, 0.8], "y_context_length": [100, 50, 200, 100],
 "z_itl": [5.5, 8, 9, 16], "max_kv_tokens": 1000}`))
	p, err := LoadProfile(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(config.Timing{Kind: config.Profile, Profile: p})
	checkExamples(t, []example{
		{"150 tokens", m.Prefill(1, 150, 0), 6},
		{"800 tokens", m.Prefill(1, 800, 0), 19},
		{"two sequences", m.Decode(2, 400), 9},
		{"four sequences", m.Decode(4, 400), 10.000151},
	})
}

func TestExamplesOfGrids(t *testing.T) {
	g, err := ParseGrid("grid.json", []byte(`{"backend": "vllm", "system": "my_gpu", "model": "my/model", "tp": 1, "num_gpu_blocks": 1000,
 "prefill": {"batch": [1, 4], "isl": [16, 64], "prefix": [0, 512],
             "ms": [[[10, 11], [20, 22]], [[16, 18], [60, 66]]]},
 "decode": {"batch": [1, 16], "context": [64, 1024], "ms": [[8, 9], [12, 18]]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := modelOf(config.Timing{Kind: config.Grid, Grid: g.Table})
	checkExamples(t, []example{
		{"40 tokens", m.Prefill(1, 40, 0), 15},
		{"two of 40 on 256", m.Prefill(2, 2*(40+256), 2*256), 23.833333},
		{"8 tokens", m.Prefill(1, 8, 0), 10},
		{"128 tokens", m.Prefill(1, 128, 0), 33.333333},
		{"four of 304", m.Decode(4, 4*304), 9.3},
		{"31 of 1024", m.Decode(31, 31*1024), 27},
		{"blocks of 16", float64(g.Blocks(16)), 4000},
	})
}
