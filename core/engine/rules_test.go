package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

// Engine notes §15, E14: in FIFO mode the request that moves up into the place
// of the one just scheduled is passed over; in LIFO mode nobody is.
func TestE14(t *testing.T) {
	poly := func(c *config.Engine) { c.Timing.Kind = config.Polynomial }
	fifo := func(c *config.Engine) { c.Preemption = config.FIFO }
	three := func(l *lab) *lab {
		l.submit(span(0, 9), 4)
		l.submit(span(100, 8), 4)
		l.submit(span(200, 6), 4)
		return l.run()
	}
	three(newLab(t, vllm(7, poly, fifo))).wantPasses(
		"16.820458 [0 1 2]", "37.261453 [1]", "66.30489700000001 [1 2]", "96.84232000000002 [1. 2]",
		"143.89634700000002 [2. 0]", "166.88193400000003 [0]", "191.04132200000004 [0.]")
	l := three(newLab(t, vllm(7, poly)))
	if l.passes[1] != "47.357881 [0 1]" {
		t.Errorf("LIFO: second pass %q", l.passes[1])
	}
}

// Engine notes §15, E19: decoding is scaled by both ratios, and a ratio of 0
// means unscaled.
func TestE19(t *testing.T) {
	scaled := func(prefill, decode float64) func(*config.Engine) {
		return func(c *config.Engine) {
			c.Timing.PrefillMs, c.Timing.DecodeMs = 2.5, 0.75
			c.SpeedupRatio, c.DecodeSpeedupRatio = prefill, decode
		}
	}
	l := newLab(t, vllm(16, scaled(3, 2)))
	l.submit(span(0, 6), 3)
	l.run().wantPasses("0.833333 [0]", "0.958333 [0]", "1.083333 [0.]")
	l = newLab(t, vllm(16, scaled(0, 2)))
	l.submit(span(0, 6), 3)
	l.run().wantPasses("2.5 [0]", "3.25 [0]", "4 [0.]")
}

// T3: polynomial decoding depends on the pool's tokens, not on how many blocks
// they are cut into, and takes more than its floor of 1 ms (engine notes §8.3).
func TestDecodeTimeCountsTokens(t *testing.T) {
	var runs [2]*lab
	for i, size := range []int{2, 64} {
		l := newLab(t, vllm(0, func(c *config.Engine) {
			c.Timing.Kind = config.Polynomial
			c.BlockSize, c.NumGPUBlocks = size, 65536/size
		}))
		l.submit(span(0, 1000), 5)
		runs[i] = l.run()
	}
	if !slices.Equal(runs[0].passes, runs[1].passes) {
		t.Errorf("blocks of 2: %q\nblocks of 64: %q", runs[0].passes, runs[1].passes)
	}
	if s := runs[0].stories[0]; s.tokenMs[1]-s.tokenMs[0] <= 1 {
		t.Errorf("a decode pass takes %v ms", s.tokenMs[1]-s.tokenMs[0])
	}
}

// T13: one token of output is one token, and it completes the request.
func TestOneTokenOutput(t *testing.T) {
	l := newLab(t, vllm(16))
	l.submit(span(0, 10), 1)
	l.run().wantPasses("10 [0.]")
	if n := len(l.stories[0].tokens); n != 1 {
		t.Errorf("%d tokens, want 1", n)
	}
}

// T16: pools too small for what is asked. Blocks of 16, prefill and decode
// 10 ms each.
func TestSmallPools(t *testing.T) {
	pool := func(blocks int) config.Engine {
		return vllm(blocks, func(c *config.Engine) { c.BlockSize, c.Timing.DecodeMs = 16, 10 })
	}
	mean := func(l *lab, of func(*story) float64) float64 {
		sum := 0.0
		for _, s := range l.stories {
			sum += of(s) / float64(len(l.stories))
		}
		return sum
	}
	ttft := func(s *story) float64 { return s.tokenMs[0] - s.arrivalMs }
	e2e := func(s *story) float64 { return s.endMs - s.arrivalMs }

	a := newLab(t, pool(8)) // one at a time fits
	a.submit(span(0, 100), 20)
	a.submit(span(1000, 100), 20)
	a.run()
	if a.now != 400 || mean(a, ttft) != 110 || mean(a, e2e) != 300 {
		t.Errorf("a: duration %v, mean TTFT %v, mean E2E %v; want 400, 110, 300", a.now, mean(a, ttft), mean(a, e2e))
	}
	b := newLab(t, pool(8)) // longer than the pool
	b.submit(span(0, 200), 1)
	if b.run(); b.stories[0].outcome != "rejected" {
		t.Errorf("b: %s, want rejected", b.stories[0].outcome)
	}
	c := newLab(t, pool(8)) // outgrows the pool; the next is served
	c.submit(span(0, 100), 40)
	c.submit(span(1000, 100), 2)
	c.run()
	if got := c.stories[0]; got.outcome != "failed" || len(got.tokens) != 29 || got.endMs != 290 {
		t.Errorf("c: first %s after %d tokens at %v; want failed after 29 at 290", got.outcome, len(got.tokens), got.endMs)
	}
	if got := c.stories[1]; got.outcome != "completed" || got.endMs != 310 {
		t.Errorf("c: second %s at %v; want completed at 310", got.outcome, got.endMs)
	}
	d := newLab(t, pool(12)) // both fit at first, one is preempted
	d.submit(span(0, 60), 60)
	d.submit(span(1000, 60), 60)
	d.run()
	reused, first := 0, 0
	for _, s := range d.stories {
		reused += slices.Max(s.reused)
		first += s.reused[0]
	}
	if d.now != 830 || mean(d, e2e) != 715 || reused != 64 || first != 0 {
		t.Errorf("d: duration %v, mean E2E %v, reused %d, at first admission %d; want 830, 715, 64, 0", d.now, mean(d, e2e), reused, first)
	}
}

// Corrections §4: the last token needs no KV, so a request may have one token
// more than the pool holds; with two more it waits for ever.
func TestTheLastTokenNeedsNoBlock(t *testing.T) {
	for out, outcome := range map[int]string{21: "completed", 22: "failed"} {
		l := newLab(t, vllm(6))
		l.submit(span(0, 4), out)
		l.run()
		if s := l.stories[0]; s.outcome != outcome || len(s.tokens) != 21 || s.endMs != 50 {
			t.Errorf("output %d: %s after %d tokens at %v; want %s after 21 at 50", out, s.outcome, len(s.tokens), s.endMs, outcome)
		}
	}
}

// Corrections §4: a chunk that costs nothing is progress.
func TestAFreeChunkIsAnEffect(t *testing.T) {
	l := newLab(t, vllm(16, func(c *config.Engine) { c.Timing.PrefillMs, c.MaxNumBatchedTokens = 0, 4 }))
	l.submit(span(0, 8), 1)
	if out := l.step(); !out.Effect || len(out.Outputs) > 0 {
		t.Errorf("first chunk: effect %v, outputs %v", out.Effect, out.Outputs)
	}
	l.run().wantPasses("0 []", "0 [0.]")
}

// Engine notes §4.2: a prompt that no budget admits keeps the queue waiting,
// without any effect.
func TestAPromptBeyondTheBudget(t *testing.T) {
	l := newLab(t, vllm(16, func(c *config.Engine) { c.MaxNumBatchedTokens, c.EnableChunkedPrefill = 8, false }))
	l.submit(span(0, 9), 1)
	l.submit(span(100, 8), 1)
	for range 2 {
		if out := l.step(); out.Effect {
			t.Fatal("an effect")
		}
	}
	l.run()
	if got := l.stories[0].outcome + " " + l.stories[1].outcome; got != "failed completed" {
		t.Errorf("outcomes %s", got)
	}
}

// Engine notes §4.4: without chunking only prompt tokens must fit the budget;
// generated ones are recomputed in parts.
func TestUnchunkedCountsThePromptOnly(t *testing.T) {
	l := newLab(t, vllm(6, func(c *config.Engine) {
		c.MaxNumBatchedTokens, c.EnableChunkedPrefill, c.EnablePrefixCaching = 5, false, false
	}))
	l.submit(span(0, 4), 13)
	l.submit(span(100, 4), 13)
	l.run()
	for i, s := range l.stories {
		if s.outcome != "completed" || len(s.tokens) != 13 {
			t.Errorf("request %d: %s with %d tokens", i, s.outcome, len(s.tokens))
		}
	}
	// The second is preempted with 8 generated tokens and comes back when the
	// first is done: 4 prompt and 8 generated tokens in passes of 5, 5 and 2,
	// which cost a prefill, nothing and a decode.
	second := l.stories[1]
	if len(second.reused) != 2 || second.tokenMs[8]-l.stories[0].endMs != 12 {
		t.Errorf("admissions %v, tokens at %v; want two, and the ninth token 12 ms after %v",
			second.reused, second.tokenMs, l.stories[0].endMs)
	}
}

// Engine notes §4.2: when the budget is used up one request that needs no
// computation may still join, then the pass is full.
func TestOneFreeRiderAtAnEmptyBudget(t *testing.T) {
	l := newLab(t, vllm(16, func(c *config.Engine) { c.MaxNumBatchedTokens = 4 }))
	l.submit(span(0, 4), 1)
	l.run()
	l.submit(span(100, 4), 1)
	l.submit(span(0, 4), 0)
	l.submit(span(0, 4), 0)
	l.run().wantPasses("10 [0.]", "20 [2-. 1.]", "20 [3-.]")
}

// Engine notes §4.5: completions without a token come first, and their blocks
// are the first to be evicted.
func TestCompletionsWithoutATokenReleaseFirst(t *testing.T) {
	l := newLab(t, vllm(6))
	l.submit(span(0, 8), 1)
	l.submit(span(100, 8), 0)
	l.submit(span(200, 12), 1)
	l.submit(span(0, 12), 1)
	l.run()
	if got := l.stories[3].reused; !slices.Equal(got, []int{8}) {
		t.Errorf("reused %v, want all 8 tokens of the first request", got)
	}
}

// Engine notes §4.4: a victim that had prompt work in the pass takes it back.
func TestAVictimTakesBackItsPromptWork(t *testing.T) {
	l := newLab(t, vllm(3, func(c *config.Engine) { c.MaxNumBatchedTokens, c.Preemption = 8, config.FIFO }))
	l.submit(span(0, 12), 2)
	l.submit(nil, 3) // joins when the budget is used up
	first := l.step()
	if got := fmt.Sprint(first.Admissions); got != "[{1 0 0 0} {2 1 0 0}]" {
		t.Fatalf("admissions %v", got)
	}
	out := l.step()
	if len(out.Pressure) != 1 || out.Pressure[0].Tag != 0 || out.Pressure[0].OwnBlocks != 3 {
		t.Fatalf("pressure %+v, want request 0 to give up 3 blocks", out.Pressure)
	}
	if f := out.Forward; f.Prefills != 0 || f.PrefillTokens != 0 || f.Decodes != 1 || f.DurationMs != 2 {
		t.Errorf("forward %+v, want one decode of 2 ms and no prefill", f)
	}
	if fmt.Sprint(out.Committed) != "[2]" {
		t.Errorf("committed %v, want the second request only", out.Committed)
	}
}

// Engine notes §5.5: a block whose content was cached already separates the
// events around it.
func TestADuplicateBlockSplitsAnEvent(t *testing.T) {
	l := newLab(t, vllm(16, func(c *config.Engine) { c.EmitKVEvents, c.MaxNumBatchedTokens = true, 8 }))
	l.submitRequest(engine.Request{Tokens: span(0, 7), OutputIDs: []uint32{7, 50}})
	l.submit(span(0, 12), 1)
	l.step()
	out := l.step() // the first completes tokens 4..7, the second 4..7 and 8..11
	want := []engine.KVEvent{
		{ID: 1, Kind: engine.Stored, HasParent: true, Parent: 9143094415614847814, First: 0, Count: 1},
		{ID: 2, Kind: engine.Stored, HasParent: true, Parent: 9510318385840434533, First: 1, Count: 1},
	}
	if !slices.Equal(out.KVEvents, want) {
		t.Errorf("events %+v\nwant %+v", out.KVEvents, want)
	}
	if out.Metrics.InactiveBlocks != 4 {
		t.Errorf("%d inactive blocks, want 3 and a copy", out.Metrics.InactiveBlocks)
	}
}

// Engine notes §2.2, §5.5: events need both the switch and a prefix cache.
func TestEventsAreOptional(t *testing.T) {
	for name, change := range map[string]func(*config.Engine){
		"switched off": func(c *config.Engine) {},
		"no cache":     func(c *config.Engine) { c.EmitKVEvents, c.EmitKVTokenIDs, c.EnablePrefixCaching = true, true, false },
	} {
		l := newLab(t, vllm(16, change))
		l.submit(span(0, 8), 1)
		if out := l.step(); len(out.KVEvents)+len(out.KVBlocks)+len(out.KVTokens) > 0 {
			t.Errorf("%s: %d events", name, len(out.KVEvents))
		}
	}
}

// Engine notes §4.1: TensorRT-LLM cuts the output to what the model's limit and
// the pool leave; a prompt that fills the pool is rejected.
func TestTensorRTCutsOutputs(t *testing.T) {
	for _, c := range []struct {
		prompt  uint32
		out     int
		limit   int
		tokens  int
		outcome string
	}{
		{10, 100, 0, 14, "completed"},
		{10, 100, 13, 3, "completed"},
		{10, 100, 10, 0, "rejected"},
		{10, 2, 0, 2, "completed"},
		{23, 9, 0, 1, "completed"},
		{24, 9, 0, 0, "rejected"},
		{24, math.MaxInt, 0, 0, "rejected"},
	} {
		l := newLab(t, vllm(6, trtllm, func(e *config.Engine) { e.MaxModelLen = c.limit }))
		l.submit(span(0, c.prompt), c.out)
		l.run()
		if s := l.stories[0]; s.outcome != c.outcome || len(s.tokens) != c.tokens {
			t.Errorf("prompt %d, output %d, limit %d: %s after %d tokens, want %s after %d",
				c.prompt, c.out, c.limit, s.outcome, len(s.tokens), c.outcome, c.tokens)
		}
	}
}

// Engine notes §4.3: guaranteed_no_evict admits what can be completed beside
// those that run, counting each to its last token; it never preempts.
func TestTensorRTAdmitsToCompletion(t *testing.T) {
	three := func(blocks int) *lab {
		l := newLab(t, vllm(blocks, trtllm))
		l.submit(span(0, 8), 9) // 5 blocks to its last token
		l.submit(span(100, 8), 4)
		l.submit(span(200, 4), 1)
		l.run()
		return l
	}
	for blocks, first := range map[int]string{7: "10 [0]", 8: "10 [0 1]", 9: "10 [0 1]", 10: "10 [0 1 2.]"} {
		l := three(blocks)
		if l.passes[0] != first {
			t.Errorf("%d blocks: first pass %q, want %q", blocks, l.passes[0], first)
		}
		if m := l.e.Metrics(); m.Preemptions != 0 {
			t.Errorf("%d blocks: %d preemptions", blocks, m.Preemptions)
		}
	}
}

// Engine notes §4.6: a whole prompt that is cached is no work for TensorRT-LLM,
// and its first token is decoded.
func TestTensorRTReusesTheLastBlock(t *testing.T) {
	l := newLab(t, vllm(16, trtllm))
	l.submit(span(0, 8), 1)
	l.run()
	l.submit(span(0, 8), 1)
	l.run().wantPasses("10 [0.]", "12 [1.]")
	if got := l.stories[1].reused; !slices.Equal(got, []int{8}) {
		t.Errorf("reused %v, want 8", got)
	}
}
