package group

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/timing"
)

// grid is a random grid with decode steps of a provider's least or more.
func grid(r *rand.Rand) *config.GridTable {
	values := func(n int, least float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = least + 20*r.Float64()
		}
		return v
	}
	return &config.GridTable{
		PrefillBatch: []float64{1, 3}, PrefillISL: []float64{1, 6, 20}, PrefillPrefix: []float64{0, 8}, PrefillMs: values(12, 0),
		DecodeBatch: []float64{1, 2, 5}, DecodeContext: []float64{2, 10, 30}, DecodeMs: values(9, 1),
	}
}

// answered begins a pass and answers what it asks with the model.
func answered(t *testing.T, g *Group, now float64, c *timing.Cache, m *timing.Model, asked map[timing.Query]bool) float64 {
	t.Helper()
	end, _ := g.Begin(now)
	for end == timing.Unknown {
		q, ask := g.Ask()
		if !ask || asked[q] {
			t.Fatalf("asks %+v (%v), the second time", q, ask)
		}
		if _, ok := g.Begin(now); ok || g.Ready() || !g.InFlight() {
			t.Fatal("a pass that waits is not in flight")
		}
		asked[q] = true
		ms := m.Decode(q.Batch, q.Batch*q.ISL)
		if q.Kind == timing.AskPrefill {
			ms = m.Prefill(q.Batch, q.Batch*(q.ISL+q.Prefix), q.Batch*q.Prefix)
		}
		if !c.Store(q, ms) {
			t.Fatalf("%+v: %v is refused", q, ms)
		}
		end = g.EndMs()
	}
	if q, ask := g.Ask(); ask {
		t.Fatalf("asks %+v of a pass that ends at %v", q, end)
	}
	return end
}

// TestProviderEqualsModel runs two groups beside each other, one with a grid,
// one that asks for the grid's durations: each pass ends at the same time and
// says the same.
func TestProviderEqualsModel(t *testing.T) {
	r := rand.New(rand.NewSource(31))
	questions := 0
	for i := range 400 {
		cfg := small(1 + r.Intn(3))
		cfg.NumGPUBlocks, cfg.MaxNumSeqs, cfg.MaxNumBatchedTokens = 8+r.Intn(20), 1+r.Intn(6), 4+r.Intn(30)
		switch i % 4 {
		case 0:
			cfg.Backend = config.SGLang
			cfg.SGLang.ChunkedPrefillSize = 4 * cfg.DPSize * (1 + r.Intn(4))
		case 1:
			cfg.MTP.Drafts, cfg.MTP.AcceptRates = 2, [config.MaxDrafts]float64{0.8, 0.5}
		case 2:
			cfg.KVCacheBytesPerToken = 1_000_000
			cfg.HostOffload = config.HostOffload{Blocks: 9, D2HGBs: 1, H2DGBs: 4}
		}
		cfg.Timing = config.Timing{Kind: config.Grid, Grid: grid(r)}
		m := timing.New(cfg)
		with := New(cfg, 7)
		cfg.Timing = config.Timing{Kind: config.External}
		without, answers := New(cfg, 7), timing.NewCache()
		without.ShareAnswers(answers)
		asked := map[timing.Query]bool{}
		now := 0.0
		for n := range 8 {
			for range r.Intn(3) {
				// Small enough to be served by any of the pools.
				q := engine.Request{UUID: uuid(uint64(100*n + r.Intn(100))), Tokens: span(uint32(r.Intn(3)), uint32(1+r.Intn(12))), MaxOutput: r.Intn(6)}
				rank := r.Intn(cfg.DPSize)
				_, a := with.Submit(rank, q)
				if _, b := without.Submit(rank, q); a != b {
					t.Fatalf("case %d: codes %d and %d", i, a, b)
				}
			}
			for passes := r.Intn(8); passes > 0 && with.Ready(); passes-- {
				end, _ := with.Begin(now)
				if got := answered(t, without, now, answers, &m, asked); got != end {
					t.Fatalf("case %d: a pass ends at %v, with the model at %v", i, got, end)
				}
				now = end
				for _, g := range []*Group{with, without} {
					g.Complete(now)
					for at, ok := g.NextInternalMs(); ok && at <= now; at, ok = g.NextInternalMs() {
						g.Internal(at)
					}
				}
				for rank := range cfg.DPSize {
					a, b := with.Out(rank), without.Out(rank)
					if a.Forward != b.Forward || a.Metrics != b.Metrics || !slices.Equal(a.Outputs, b.Outputs) || !slices.Equal(a.Admissions, b.Admissions) {
						t.Fatalf("case %d, rank %d: %+v\nwith the model %+v", i, rank, b, a)
					}
				}
			}
		}
		questions += len(asked)
	}
	if questions < 2000 {
		t.Errorf("only %d questions", questions)
	}
}

// A warm group with answers allocates nothing.
func TestAnsweredPassesDoNotAllocate(t *testing.T) {
	g := New(small(2, func(c *config.Engine) { c.Timing = config.Timing{Kind: config.External} }), 0)
	answers := timing.NewCache()
	g.ShareAnswers(answers)
	now, id := 0.0, uint64(0)
	prompt := span(0, 20)
	round := func() {
		for rank := range 2 {
			id++
			prompt[10] = uint32(id)
			submit(t, g, rank, id, prompt, 5+rank)
		}
		for g.Ready() {
			end, _ := g.Begin(now)
			for end == timing.Unknown {
				q, _ := g.Ask()
				answers.Store(q, 3)
				end = g.EndMs()
			}
			now = end
			g.Complete(now)
		}
	}
	for range 100 {
		round()
	}
	before := g.Passes()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	if g.Passes() == before {
		t.Error("no passes")
	}
}
