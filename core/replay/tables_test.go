package replay_test

import (
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

// axis is n rising values from start.
func axis(r *rand.Rand, n int, start float64, step int) []float64 {
	v := []float64{start}
	for len(v) < n {
		v = append(v, v[len(v)-1]+1+float64(r.Intn(step)))
	}
	return v
}

// cells is n values from lo to hi.
func cells(r *rand.Rand, n int, lo, hi float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = lo + r.Float64()*(hi-lo)
	}
	return v
}

func randomProfile(r *rand.Rand) config.Timing {
	p := &config.ProfileTable{
		PrefillISL:           axis(r, 2+r.Intn(5), float64(r.Intn(5)), 40),
		DecodeActiveKVTokens: axis(r, 2+r.Intn(5), 0, 60),
		DecodeContextLength:  axis(r, 2+r.Intn(5), 0, 30),
	}
	p.PrefillTTFTMs = axis(r, len(p.PrefillISL), 5, 9)
	p.DecodeITLMs = cells(r, len(p.DecodeActiveKVTokens)*len(p.DecodeContextLength), -3, 25)
	return config.Timing{Kind: config.Profile, Profile: p}
}

func randomGrid(r *rand.Rand) config.Timing {
	g := &config.GridTable{
		PrefillBatch: axis(r, 2+r.Intn(3), 1, 4), PrefillISL: axis(r, 2+r.Intn(3), 1, 40), PrefillPrefix: axis(r, 2, 0, 50),
		DecodeBatch: axis(r, 2+r.Intn(3), 1, 4), DecodeContext: axis(r, 2+r.Intn(4), 1, 40),
	}
	g.PrefillMs = cells(r, len(g.PrefillBatch)*len(g.PrefillISL)*len(g.PrefillPrefix), 0.1, 30)
	g.DecodeMs = cells(r, len(g.DecodeBatch)*len(g.DecodeContext), 0.1, 20)
	return config.Timing{Kind: config.Grid, Grid: g}
}

// TestTablesAgree runs random tables of durations through both engines: they
// ask for batches and contexts, not only for a sum of lengths.
func TestTablesAgree(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for i := range 600 {
		cfg := tight(20 + r.Intn(400))
		cfg.Engine.BlockSize, cfg.TraceBlockSize = 4, 4
		cfg.CaptureRequests, cfg.NumWorkers = true, 1+r.Intn(3)
		cfg.Engine.MaxNumBatchedTokens, cfg.Engine.MaxNumSeqs = 8+r.Intn(200), 1+r.Intn(12)
		if r.Intn(3) == 0 {
			cfg.Concurrency = 1 + r.Intn(6)
		}
		if r.Intn(3) == 0 {
			cfg.Engine.SpeedupRatio = []float64{2, 0.3, 7}[r.Intn(3)]
		}
		cfg.Engine.Timing = randomProfile(r)
		if i%2 == 1 {
			cfg.Engine.Timing = randomGrid(r)
		}
		rows := make([]trace.Row, 1+r.Intn(12))
		for j := range rows {
			ids := make([]uint64, 1+r.Intn(8))
			for k := range ids {
				ids[k] = uint64(r.Intn(4))
			}
			rows[j] = trace.Row{
				InputLength: int64(4*len(ids) - r.Intn(4)), OutputLength: int64(r.Intn(30)), HashIDs: ids,
				TimestampMs: float64(r.Intn(300)), HasTimestamp: true,
			}
		}
		build := func() *workload.Workload {
			w, err := parity.Build(rows, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		want := run(replay.New(cfg, build(), replay.Options{Plain: true}), long)
		for _, o := range []replay.Options{{}, {Eventful: true}} {
			got := run(replay.New(cfg, build(), o), long)
			if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
				t.Fatalf("case %d, %+v (-plain +fast):\n%s", i, o, d)
			}
		}
	}
}
