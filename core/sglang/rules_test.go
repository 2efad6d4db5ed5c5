package sglang_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

// Engine notes §15, E10: a prompt stalls those that decode.
func TestPrefillFirst(t *testing.T) {
	l := newLab(t, small(16))
	l.submit(span(0, 10), 4)
	l.step()
	l.submit(span(100, 6), 2)
	l.run().wantPasses("10 [0]", "20 [1]", "22 [0 1.]", "24 [0]", "26 [0.]")
}

// Engine notes §15, E11 (b): a chunk that does not reach the end of its prompt
// goes back to the head; what is left of the budget serves the next.
func TestChunks(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.SGLang.ChunkedPrefillSize = 8 }))
	l.submit(span(0, 20), 2)
	l.submit(span(100, 6), 2)
	l.run().wantPasses("10 []", "20 []", "30 [0]", "40 [1]", "42 [0. 1.]")
	if got := fmt.Sprint(l.stories[0].reused, l.stories[1].reused); got != "[0] [0]" {
		t.Errorf("admissions %s, want one each", got)
	}
}

// Engine notes §6.2: a request that fills the estimate exactly waits.
func TestEqualityBlocks(t *testing.T) {
	for pages, want := range map[int]string{6: "10 [0.]", 5: "0 []"} {
		l := newLab(t, small(pages, func(c *config.Engine) { c.SGLang.ClipMaxNewTokens = 0 }))
		l.submit(span(0, 20), 1)
		l.step()
		l.wantPasses(want)
		if l.stories[0].outcome != "completed" != (pages == 5) {
			t.Errorf("%d pages: %q", pages, l.stories[0].outcome)
		}
	}
}

// Engine notes §6.2: charges are whole pages, against both limits of a pass.
func TestMaxPrefillTokens(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.SGLang.MaxPrefillTokens = 11 }))
	l.submit(span(0, 5), 1)
	l.submit(span(100, 4), 1) // 8 and 4 tokens are more than 11
	l.submit(span(200, 3), 1)
	l.run().wantPasses("10 [0.]", "20 [1. 2.]")
}

// The ratio falls while requests decode, until what it reserves leaves room for
// the next prompt (engine notes §6.1, step 9).
func TestTheRatioFalls(t *testing.T) {
	l := newLab(t, small(100, func(c *config.Engine) { c.SGLang.Conservativeness = 1.4 }))
	l.submit(span(0, 4), 300)
	l.step()
	l.submit(span(1000, 100), 20)
	for len(l.stories[1].reused) == 0 {
		l.step()
	}
	// 396 - 4k tokens in free pages less (299-k) times 0.98 - k*0.8428/600 must
	// exceed 120 at the first k that is a number of decode passes before.
	k := len(l.stories[0].tokens) - 1
	fits := func(k int) bool {
		ratio := 0.98 - float64(k)*(0.98-0.14*0.98)/600
		free := 4 * (100 - (4+1+k+3)/4)
		return 120 < float64(free)-float64(299-k)*ratio
	}
	if k == 0 || !fits(k) || fits(k-1) {
		t.Errorf("admitted after %d passes; fits then: %v, one before: %v", k, fits(k), k > 0 && fits(k-1))
	}
}

// The reserve is summed request by request, as the reference does: 3 and 7
// tokens at 0.7 are less than 7 in floating point, and the third request fits.
func TestReserveIsSummedByRequest(t *testing.T) {
	l := newLab(t, small(9, func(c *config.Engine) { c.SGLang.ChunkedPrefillSize = 8 }))
	l.submit(span(0, 8), 4)
	l.submit(span(100, 8), 8)
	l.submit(span(200, 4), 1)
	l.run()
	if want := "30 [2.]"; l.passes[2] != want {
		t.Errorf("third pass %q, want %q", l.passes[2], want)
	}
}

// Engine notes §15, E12: the victim is the one with the least output, the first
// of equals; it goes to the end of the queue and comes back with what it has.
func TestRetraction(t *testing.T) {
	l := newLab(t, small(6, func(c *config.Engine) { c.SGLang.Conservativeness, c.SGLang.ClipMaxNewTokens = 0, 1 }))
	l.submit(span(0, 8), 8)
	l.submit(span(100, 8), 8)
	l.step()
	l.submit(span(200, 4), 1)
	var pressure []engine.Pressure
	for l.e.Ready() {
		pressure = append(pressure, slices.Clone(l.step().Pressure)...)
	}
	want := engine.Pressure{
		Req: 1, Before: engine.Load{Running: 2, ActiveBlocks: 6}, After: engine.Load{Running: 1, ActiveBlocks: 6},
		OwnBlocks: 3, AvailableBlocks: 0, RequiredBlocks: 2,
	}
	if len(pressure) != 1 || pressure[0] != want {
		t.Fatalf("pressure %+v, want %+v", pressure, want)
	}
	if s := l.stories[0]; !slices.Equal(s.reused, []int{0, 4}) || s.outcome != "completed" {
		t.Errorf("the victim: %+v", s)
	}
	if l.stories[2].endMs > l.stories[0].tokenMs[4] {
		t.Errorf("the victim came back before the one that waited: %v", l.passes)
	}
}

// Corrections §8: pages of requests that a prefill completes are given back at
// the end of the pass only, so the others may have to wait for their token; it
// comes with the next decode step.
func TestFirstTokensWaitTogether(t *testing.T) {
	l := newLab(t, small(6, func(c *config.Engine) { c.SGLang.Conservativeness, c.SGLang.ClipMaxNewTokens = 0, 0 }))
	l.submit(span(0, 4), 1)
	l.submit(span(100, 8), 3)
	l.submit(span(200, 8), 3)
	l.run().wantPasses("10 [0.]", "12 [1 2]", "14 [1 2]", "16 [1. 2.]")
}

// The last token that a prefill yields has no KV, so the page it would complete
// is not cached; in a decode step it has, and the page is.
func TestTheLastTokensKV(t *testing.T) {
	for out, want := range map[int]int{1: 4, 2: 8} {
		l := newLab(t, small(16))
		l.submitRequest(engine.Request{Tokens: span(0, 8-uint32(out)), OutputIDs: span(8-uint32(out), uint32(out))})
		l.run()
		l.submit(span(0, 9), 1)
		l.run()
		if got := l.stories[1].reused; !slices.Equal(got, []int{want}) {
			t.Errorf("output %d: reused %v, want %d", out, got, want)
		}
	}
}

// A prompt that is wholly cached computes its last page, unless it wants no
// token: then it takes no time (engine notes §6.2, §15 E19).
func TestWhollyCached(t *testing.T) {
	l := newLab(t, small(16))
	l.submit(span(0, 8), 1)
	l.submit(span(0, 8), 1)
	l.run()
	l.submit(span(0, 8), 1)
	l.submit(span(0, 8), 0)
	out := l.step()
	l.wantPasses("10 [0. 1.]", "20 [3-. 2.]")
	if got := fmt.Sprint(l.stories[1].reused, l.stories[2].reused, l.stories[3].reused); got != "[0] [4] [8]" {
		t.Errorf("reused %s", got)
	}
	if len(out.Committed) != 1 || out.Forward.Prefills != 1 || out.Metrics.CacheHitTokens != 12 || out.Metrics.CacheTotalTokens != 16 {
		t.Errorf("the one without work is counted: %+v", out)
	}
	l.submit(span(0, 8), 0)
	if out := l.step(); !out.Effect || l.passes[2] != "20 [4-.]" {
		t.Errorf("pass %q, effect %v", l.passes[2], out.Effect)
	}
}

// Corrections §13: it does count in the means that the prefill's time is made
// of.
func TestWhollyCachedCountsInTheMeans(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.Timing.Kind = config.Polynomial }))
	l.submit(span(0, 12), 1)
	l.run()
	l.now = 100
	l.submit(span(0, 12), 0)
	l.submit(span(100, 13), 1)
	l.run()
	if l.stories[2].endMs != 116.683682 { // (25/2 - 12/2) * 2 = 12 tokens
		t.Errorf("ends at %v, want 116.683682", l.stories[2].endMs)
	}
}

// Corrections §9: an unlocked leaf that an insert reaches grows in place, so a
// match that ends inside it later does not renew it.
func TestAgeOfAGrownLeaf(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.BlockSize = 1 }))
	at := func(ms float64, tokens []uint32, out int) {
		l.now = ms
		l.submit(tokens, out)
		l.run()
	}
	at(0, span(0, 4), 1)
	at(20, span(0, 4), 3) // computes page 3 again and grows the known one
	at(60, span(20, 3), 1)
	at(100, span(0, 4), 0) // ends inside the grown leaf
	at(140, span(30, 10), 1)
	at(180, append(span(0, 4), 7), 1)
	if got := l.stories[5].reused; !slices.Equal(got, []int{3}) {
		t.Errorf("reused %v, want 3 tokens as in the reference", got)
	}
}

// Engine notes §15, E11 (d).
func TestLPM(t *testing.T) {
	l := newLab(t, small(64, func(c *config.Engine) { c.SGLang.Policy, c.MaxNumSeqs = config.LPM, 1 }))
	l.submit(span(0, 40), 1)
	l.submit(span(500, 8), 1)
	l.submit(span(0, 44), 1)
	l.submit(span(0, 44), 1)
	l.run().wantPasses("10 [0.]", "20 [2.]", "30 [3.]", "40 [1.]")
}

// Engine notes §6.1, step 3: who is put off. Requests are given as the number
// of tokens that they share with what is cached and with each other, and two
// are served per pass.
func TestLPMPutsOff(t *testing.T) {
	lpm := func(c *config.Engine) {
		c.BlockSize, c.SGLang.Policy, c.MaxNumSeqs = 16, config.LPM, 2
		c.SGLang.ClipMaxNewTokens = 0
	}
	own := uint32(1000)
	prompt := func(shared, n uint32) []uint32 {
		own += 1000
		return append(span(0, shared), span(own, n-shared)...)
	}
	cases := []struct {
		name    string
		cached  uint32
		prompts [][]uint32
		want    []string
	}{
		{"the same beginning, nothing cached", 0,
			[][]uint32{prompt(32, 40), prompt(32, 40), prompt(0, 40)}, []string{"20 [1. 3.]", "30 [2.]"}},
		{"of exactly the length that counts", 0,
			[][]uint32{prompt(32, 32), prompt(32, 32), prompt(0, 40)}, []string{"20 [1. 3.]", "30 [2.]"}},
		{"a shorter one does not count", 0,
			[][]uint32{prompt(16, 31), prompt(16, 31), prompt(0, 40)}, []string{"20 [1. 2.]", "30 [3.]"}},
		{"just as much is cached", 32,
			[][]uint32{prompt(32, 40), prompt(32, 40), prompt(0, 40)}, []string{"20 [1. 3.]", "30 [2.]"}},
		{"more is cached", 48,
			[][]uint32{prompt(48, 60), prompt(48, 60), prompt(0, 40)}, []string{"20 [1. 2.]", "30 [3.]"}},
		{"the one before has more cached, so it was not looked at", 48,
			[][]uint32{prompt(0, 40), prompt(48, 60), prompt(32, 60)}, []string{"20 [2. 3.]", "30 [1.]"}},
	}
	for _, c := range cases {
		l := newLab(t, small(64, lpm))
		l.submit(span(0, c.cached), 1)
		l.run()
		l.now = 10
		for _, p := range c.prompts {
			l.submit(p, 1)
		}
		l.run()
		if got := l.passes[1:]; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Engine notes §6.1: a queue above 128 is not sorted, nor one without a cache.
func TestLPMHasItsLimits(t *testing.T) {
	for name, change := range map[string]func(*config.Engine){
		"long queue": func(c *config.Engine) {},
		"no cache":   func(c *config.Engine) { c.EnablePrefixCaching = false },
	} {
		l := newLab(t, small(600, change, func(c *config.Engine) { c.SGLang.Policy, c.MaxNumSeqs = config.LPM, 1 }))
		l.submit(span(0, 40), 1)
		l.run()
		l.submit(span(1000, 40), 1)
		l.submit(span(0, 41), 1)
		if name == "long queue" {
			for i := range uint32(127) {
				l.submit(span(2000+100*i, 4), 1)
			}
		}
		l.step()
		if want := "20 [1.]"; l.passes[1] != want {
			t.Errorf("%s: %q, want %q", name, l.passes[1], want)
		}
	}
}

// Prompts above the model's limit are rejected wherever they wait, at the end
// of the pass; the limit also ends outputs (engine notes §15, E8).
func TestMaxModelLen(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.MaxModelLen, c.MaxNumSeqs = 10, 1 }))
	l.submit(span(0, 9), 5)
	l.submit(span(100, 9), 1)
	l.submit(span(200, 10), 1)
	l.run().wantPasses("10 [0. 2!]", "20 [1.]")
}

// Engine notes §6.1, step 10: passes without prompts follow one with prompts;
// one that takes no time counts too.
func TestPrefillDecodeInterval(t *testing.T) {
	l := newLab(t, small(32, func(c *config.Engine) { c.SGLang.PrefillDecodeInterval = 2 }))
	l.submit(span(0, 6), 4)
	l.step()
	l.submit(span(100, 6), 1)
	l.run().wantPasses("10 [0]", "12 [0]", "14 [0]", "24 [1.]", "26 [0.]", "26 []")
	if l.e.PrefillRounds() != 0 || l.e.Ready() {
		t.Errorf("%d rounds left, ready %v", l.e.PrefillRounds(), l.e.Ready())
	}
}

// What a group asks of a rank: the ranks of two share the chunk and reserve
// less, and the end of a round is told to them.
func TestRankOfAGroup(t *testing.T) {
	l := newLab(t, small(32, func(c *config.Engine) {
		c.DPSize, c.SGLang.ChunkedPrefillSize, c.SGLang.PrefillDecodeInterval = 2, 16, 3
	}))
	l.submit(span(0, 12), 2)
	l.step()
	if r := l.e.Round(); !r.Prefilled || !r.RanModel || r.Deferred || r.RatioChanged {
		t.Errorf("after half of the prompt: %+v", r)
	}
	if l.passes[0] != "10 []" || l.e.PrefillRounds() != 0 {
		t.Errorf("pass %q, %d rounds", l.passes[0], l.e.PrefillRounds())
	}
	l.e.EndRound(true, true)
	if l.e.PrefillRounds() != 3 {
		t.Errorf("%d rounds, want 3", l.e.PrefillRounds())
	}
	l.step() // held back, nothing to decode
	if r := l.e.Round(); r.Prefilled || r.RanModel || !r.Deferred || r.RatioChanged {
		t.Errorf("held back: %+v", r)
	}
	l.e.EndRound(false, false)
	for l.e.PrefillRounds() > 0 {
		l.e.EndRound(false, false)
	}
	l.step()
	l.step()
	if r := l.e.Round(); r.Prefilled || !r.RanModel || !r.RatioChanged {
		t.Errorf("decoding: %+v", r)
	}
	l.e.Rest(l.now)
	l.e.Complete(l.now + 5)
	if out := l.e.Out(); out.Effect || (out.Forward != engine.Forward{DurationMs: 5}) || (l.e.Round().RanModel) {
		t.Errorf("resting: %+v", out)
	}
}

// Corrections §4: a lone request that outgrows the pool is stuck in a decode
// step that counts as an effect. Giving up on it lets the next one run.
func TestStuck(t *testing.T) {
	for out, want := range map[int]string{20: "completed", 21: "failed"} {
		l := newLab(t, small(6, func(c *config.Engine) { c.SGLang.ClipMaxNewTokens = 1 }))
		l.submit(span(0, 4), out)
		l.run()
		l.submit(span(100, 8), 1)
		l.run()
		if s := l.stories[0]; s.outcome != want || s.endMs != 48 || len(s.tokens) != 20 {
			t.Errorf("output %d: %s with %d tokens at %v", out, s.outcome, len(s.tokens), s.endMs)
		}
		if s := l.stories[1]; s.outcome != "completed" || s.endMs != 58 {
			t.Errorf("output %d: the next %s at %v", out, s.outcome, s.endMs)
		}
	}
}

// A prompt that no pool can hold is computed until the pool is full, keeps its
// pages, and fails with them.
func TestAPromptBeyondThePool(t *testing.T) {
	l := newLab(t, small(6, func(c *config.Engine) { c.SGLang.ChunkedPrefillSize = 8 }))
	l.submit(span(0, 40), 1)
	l.submit(span(100, 4), 1)
	l.run()
	if got := l.stories[0].outcome + " " + l.stories[1].outcome; got != "failed completed" {
		t.Errorf("outcomes %s", got)
	}
	if m := l.e.Metrics(); m.RunningRequests+m.WaitingRequests > 0 {
		t.Errorf("left over: %+v", m)
	}
}

// Without a cache every page is free again at the end, and nothing is told.
func TestWithoutACache(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.EnablePrefixCaching, c.EmitKVEvents = false, true }))
	l.submit(span(0, 8), 3)
	l.run()
	l.submit(span(0, 8), 3)
	l.run()
	if m := l.e.Metrics(); m.ActiveBlocks != 0 || !slices.Equal(l.stories[1].reused, []int{0}) || len(l.e.Out().KVEvents) > 0 {
		t.Errorf("%+v, reused %v", m, l.stories[1].reused)
	}
}

// Token ids of stored pages come with the events if they are asked for.
func TestTokenIDs(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.EmitKVEvents, c.EmitKVTokenIDs = true, true }))
	l.submit(span(7, 9), 1)
	out := l.step()
	if len(out.KVEvents) != 1 || out.KVEvents[0].Count != 2 || !slices.Equal(out.KVTokens, span(7, 8)) {
		t.Errorf("events %+v, tokens %v", out.KVEvents, out.KVTokens)
	}
}
