package group

import (
	"encoding/binary"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

func uuid(id uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], id)
	return u
}

func span(start, n uint32) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = start + uint32(i)
	}
	return ids
}

// small is a worker of ranks with blocks of 4 tokens and fixed times of 10 ms
// per prefill and 2 ms per decode.
func small(ranks int, change ...func(*config.Engine)) config.Engine {
	cfg := config.Defaults(config.VLLM)
	cfg.BlockSize, cfg.NumGPUBlocks, cfg.DPSize = 4, 64, ranks
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func submit(t *testing.T, g *Group, rank int, id uint64, prompt []uint32, out int) engine.Handle {
	t.Helper()
	h, code := g.Rank(rank).Submit(engine.Request{UUID: uuid(id), Tokens: prompt, MaxOutput: out})
	if code != engine.Applied {
		t.Fatalf("submit of %d: code %d", id, code)
	}
	return h
}

func pass(t *testing.T, g *Group, now, want float64) float64 {
	t.Helper()
	end, ok := g.Begin(now)
	if !ok || end != want {
		t.Fatalf("pass at %v ends at %v (%v), want %v", now, end, ok, want)
	}
	g.Complete(end)
	return end
}

// Engine notes §3: the slowest rank ends the pass of all; a rank without work
// takes part with nothing but the duration.
func TestBarrier(t *testing.T) {
	g := New(small(3), 0)
	if _, ok := g.Begin(0); ok || g.Ready() || g.Complete(0) {
		t.Fatal("an idle group runs a pass")
	}
	submit(t, g, 0, 1, span(0, 8), 3)
	now := pass(t, g, 5, 15)
	submit(t, g, 1, 2, span(100, 8), 1)
	end, _ := g.Begin(now)
	if end != 25 || g.RankEndMs(0) != 17 || g.RankEndMs(1) != 25 || g.RankEndMs(2) != 15 {
		t.Errorf("ends %v: %v %v %v", end, g.RankEndMs(0), g.RankEndMs(1), g.RankEndMs(2))
	}
	if !g.InFlight() || g.Ready() {
		t.Error("not in flight")
	}
	if _, ok := g.Begin(now); ok {
		t.Error("two passes in flight")
	}
	g.Complete(end)
	for i, outputs := range []int{1, 1, 0} {
		out := g.Rank(i).Out()
		if len(out.Outputs) != outputs || out.Forward.DurationMs != 10 {
			t.Errorf("rank %d: %d outputs in %v ms, want %d in 10", i, len(out.Outputs), out.Forward.DurationMs, outputs)
		}
	}
	idle := g.Rank(2).Out()
	if (idle.Forward != engine.Forward{DurationMs: 10}) || idle.Effect || idle.Metrics.TotalBlocks != 64 {
		t.Errorf("the idle rank: %+v", idle)
	}
	if g.Passes() != 2 || g.WaveStep() != 2 || !g.Effect() {
		t.Errorf("%d passes, wave step %d, effect %v", g.Passes(), g.WaveStep(), g.Effect())
	}
	pass(t, g, end, 27)
	if g.WaveStep() != 0 || g.Passes() != 3 || g.Ready() {
		t.Errorf("drained: wave step %d, %d passes", g.WaveStep(), g.Passes())
	}
}

// What a rank said in an earlier pass is not said again by a pass it rests in.
func TestRestingSaysNothing(t *testing.T) {
	g := New(small(2, func(c *config.Engine) { c.EmitKVEvents = true }), 0)
	submit(t, g, 0, 1, span(0, 8), 1)
	submit(t, g, 1, 2, span(0, 8), 2)
	now := pass(t, g, 0, 10)
	pass(t, g, now, 12)
	if out := g.Rank(0).Out(); len(out.Outputs)+len(out.KVEvents)+len(out.Admissions)+len(out.Committed) > 0 || out.Acceptance.Forwards > 0 {
		t.Errorf("the resting rank: %+v", out)
	}
	if m := g.Rank(0).Out().Metrics; m.InactiveBlocks != 2 {
		t.Errorf("metrics of the resting rank: %+v", m)
	}
}

// A request given to an idle rank during a pass waits for the next one.
func TestCommandsDuringAPass(t *testing.T) {
	g := New(small(2), 0)
	submit(t, g, 0, 1, span(0, 8), 2)
	end, _ := g.Begin(0)
	h := submit(t, g, 1, 2, span(0, 8), 1)
	submit(t, g, 1, 3, span(0, 8), 1)
	if g.Rank(1).Cancel(h) != engine.Applied {
		t.Error("cannot cancel")
	}
	if r := g.Rank(1).Effects().Retired; len(r) != 1 || r[0] != h {
		t.Errorf("retired %v, want %d", r, h)
	}
	g.Complete(end)
	if out := g.Rank(1).Out(); len(out.Outputs) != 0 || out.Metrics.WaitingRequests != 1 {
		t.Errorf("the rank that rested: %+v", out)
	}
	pass(t, g, end, 20)
	if out := g.Rank(1).Out(); len(out.Outputs) != 1 || !out.Outputs[0].Completed {
		t.Errorf("outputs %+v", out.Outputs)
	}
}

// Engine notes §4.2: between the turns of the interval only decoding goes on,
// unless the last turn left somebody waiting or nobody decodes.
func TestPrefillInterval(t *testing.T) {
	interval := func(c *config.Engine) { c.PrefillScheduleInterval, c.MaxNumSeqs = 3, 2 }
	g := New(small(2, interval), 0)
	submit(t, g, 0, 1, span(0, 8), 9)
	now := pass(t, g, 0, 10) // step 0
	submit(t, g, 0, 2, span(100, 8), 4)
	submit(t, g, 1, 3, span(200, 8), 1) // nobody decodes on rank 1
	now = pass(t, g, now, 20)           // step 1
	if n := len(g.Rank(0).Out().Admissions); n != 0 {
		t.Errorf("%d admissions out of turn", n)
	}
	now = pass(t, g, now, 22) // step 2
	now = pass(t, g, now, 34) // step 3: prefill and decode
	if n := len(g.Rank(0).Out().Admissions); n != 1 {
		t.Errorf("%d admissions in turn, want 1", n)
	}
	for range 3 { // steps 4 to 6; the sequences are used up at 6
		if g.WaveStep() == 6 {
			submit(t, g, 0, 4, span(300, 8), 1)
		}
		now = pass(t, g, now, now+2)
	}
	if n := g.Rank(0).Out().Metrics.WaitingRequests; n != 1 {
		t.Fatalf("%d requests wait, want 1", n)
	}
	end, _ := g.Begin(now) // step 7, but capacity bound
	if n := len(g.Rank(0).Out().Admissions); n != 1 || end != now+12 {
		t.Errorf("%d admissions at step 7, pass of %v ms; want 1 in 12", n, end-now)
	}
	g.Complete(end)
}

func TestConvergence(t *testing.T) {
	if c := New(small(1), 0).Convergence(); c != (Convergence{Repeat: NotApplicable}) {
		t.Errorf("%+v", c)
	}
}

// The passes of a warm group allocate nothing.
func TestPassingAllocatesNothing(t *testing.T) {
	for name, change := range map[string]func(*config.Engine){
		"plain":    func(c *config.Engine) {},
		"interval": func(c *config.Engine) { c.PrefillScheduleInterval = 2 },
	} {
		g := New(small(3, change), 0)
		now, id := 0.0, uint64(0)
		prompt := span(0, 20)
		round := func() {
			for rank := range 2 {
				id++
				prompt[10] = uint32(id)
				submit(t, g, rank, id, prompt, 5+rank)
			}
			for g.Ready() {
				now, _ = g.Begin(now)
				g.Complete(now)
			}
		}
		for range 100 {
			round()
		}
		before := g.Passes()
		if n := testing.AllocsPerRun(20, round); n != 0 {
			t.Errorf("%s: %v allocations per round", name, n)
		}
		if g.Passes() == before {
			t.Errorf("%s: no passes", name)
		}
	}
}

// Engine notes §3, §11: between passes the group has work of its own, and it is
// not drained before that is done.
func TestInternal(t *testing.T) {
	g := New(small(2, func(c *config.Engine) {
		c.KVCacheBytesPerToken = 1_000_000
		c.HostOffload = config.HostOffload{Blocks: 9, D2HGBs: 1, H2DGBs: 1}
	}), 0)
	submit(t, g, 0, 1, span(0, 9), 1)  // stores 2 blocks in 8 ms
	submit(t, g, 1, 2, span(50, 5), 1) // one in 4 ms
	if end, _ := g.Begin(0); end != 10 || g.Internal(10) {
		t.Error("a pass in flight does internal work")
	}
	if _, ok := g.NextInternalMs(); ok {
		t.Error("a pass in flight has internal work")
	}
	g.Complete(10)
	for _, want := range []float64{14, 18} {
		if g.WaveStep() != 1 {
			t.Errorf("wave step %d while copying, want 1", g.WaveStep())
		}
		at, ok := g.NextInternalMs()
		if !ok || at != want || g.Internal(at-1) || !g.Internal(at) {
			t.Errorf("next internal work at %v %v, want %v", at, ok, want)
		}
	}
	if _, ok := g.NextInternalMs(); ok || g.WaveStep() != 0 || g.Ready() {
		t.Errorf("at the end: wave step %d", g.WaveStep())
	}
}
