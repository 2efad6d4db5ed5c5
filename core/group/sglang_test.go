package group

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

func sglangRanks(ranks int, change ...func(*config.Engine)) config.Engine {
	cfg := config.Defaults(config.SGLang)
	cfg.BlockSize, cfg.NumGPUBlocks, cfg.DPSize = 4, 64, ranks
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func submitSGLang(t *testing.T, g *Group, rank int, id uint64, prompt []uint32, out int) {
	t.Helper()
	q := engine.Request{UUID: uuid(id), Tokens: prompt, MaxOutput: out}
	if _, code := g.SGLang(rank).Submit(q); code != engine.Applied {
		t.Fatalf("submit of %d: code %d", id, code)
	}
}

// Engine notes §6.1, step 10: a prompt on one rank holds those of all ranks
// back, and a rank that only counts down takes part in every pass.
func TestSGLangRounds(t *testing.T) {
	g := New(sglangRanks(2, func(c *config.Engine) { c.SGLang.PrefillDecodeInterval = 2 }), 0)
	submitSGLang(t, g, 0, 1, span(0, 8), 2)
	now := pass(t, g, 0, 10)
	want := func(c Convergence) {
		t.Helper()
		if got := g.Convergence(); got != c {
			t.Errorf("convergence %+v, want %+v", got, c)
		}
	}
	want(Convergence{Repeat: Exhausted})
	submitSGLang(t, g, 1, 2, span(0, 8), 1)
	now = pass(t, g, now, 12)
	want(Convergence{Repeat: Countdown, Remaining: 1})
	if out := g.SGLang(1).Out(); out.Effect || len(out.Admissions) > 0 || out.Forward.QueuedPrefills != 1 {
		t.Errorf("the rank held back: %+v", out)
	}
	now = pass(t, g, now, 12)
	want(Convergence{Repeat: Countdown})
	if g.Effect() || g.WaveStep() != 3 {
		t.Errorf("effect %v, wave step %d", g.Effect(), g.WaveStep())
	}
	now = pass(t, g, now, 22)
	want(Convergence{Repeat: Exhausted})
	for range 2 {
		if !g.Ready() {
			t.Fatal("a countdown is left but the group is not ready")
		}
		now = pass(t, g, now, 22)
	}
	if g.Ready() || g.WaveStep() != 0 {
		t.Errorf("ready %v, wave step %d at the end", g.Ready(), g.WaveStep())
	}
}

// A queue that nothing fits into: the ratio falls pass by pass, which is worth
// a retry, until it stands still.
func TestSGLangRetries(t *testing.T) {
	g := New(sglangRanks(2), 0)
	submitSGLang(t, g, 1, 1, span(0, 256), 1)
	passes := 0
	for {
		pass(t, g, 5, 5)
		passes++
		if g.Effect() {
			t.Fatal("an effect")
		}
		c := g.Convergence()
		if c.Repeat == Exhausted {
			break
		}
		if (c != Convergence{Repeat: Retry}) || passes > MaxRetries {
			t.Fatalf("pass %d: %+v", passes, c)
		}
	}
	if passes < 600 || passes > 602 { // the first that changes nothing
		t.Errorf("exhausted after %d passes", passes)
	}
	if _, _, ok := g.SGLang(1).FailHead(); !ok || g.Ready() {
		t.Errorf("nobody to give up on, or still ready: %v", g.Ready())
	}
}
