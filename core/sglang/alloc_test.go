package sglang_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/sglang"
	"github.com/dryserve/dryserve/core/timing"
)

// round is some work for a warm engine: requests that are submitted together and run to
// their ends. Everything it needs is made before it is measured.
type round struct {
	t       *testing.T
	e       *sglang.Rank
	now     float64
	next    uint64
	prompt  []uint32
	count   int
	out     int
	changed uint32 // makes each prompt's second half new
	cancel  bool
	answers *timing.Cache
	sum     struct{ prefills, decodes, events, tokenIDs, rejected, retractions int }
}

func (r *round) run() {
	for range r.count {
		r.next++
		r.changed++
		for i := len(r.prompt) / 2; i < len(r.prompt); i++ {
			r.prompt[i] = r.changed<<12 | uint32(i)
		}
		h, code := r.e.Submit(engine.Request{UUID: uuid(r.next), Tokens: r.prompt, MaxOutput: r.out})
		if code != engine.Applied {
			r.t.Fatalf("submit: code %d", code)
		}
		if r.cancel && r.next%5 == 0 {
			r.e.Cancel(h)
		}
	}
	for r.e.Ready() {
		end, _ := r.e.Begin(r.now)
		for end == timing.Unknown {
			q, _ := r.e.Ask()
			r.answers.Store(q, 3)
			end = r.e.EndMs()
		}
		r.e.Complete(end)
		r.now = end
		o := r.e.Out()
		if !o.Effect {
			r.e.FailHead()
		}
		r.sum.retractions += len(o.Pressure)
		r.sum.prefills += o.Forward.Prefills
		r.sum.decodes += o.Forward.Decodes
		r.sum.events += len(o.KVEvents)
		r.sum.tokenIDs += len(o.KVTokens)
		for _, s := range o.Outputs {
			if s.Rejected {
				r.sum.rejected++
			}
		}
	}
}

// A warm rank submits, runs and completes requests without allocating: prefill
// in chunks, decoding, retraction, churn of a full cache with events and token
// ids, the longest prefix first, bursts, rejection and cancellation.
func TestSteppingAllocatesNothing(t *testing.T) {
	if sglang.Checked {
		t.Skip("checking allocates")
	}
	events := func(c *config.Engine) { c.EmitKVEvents, c.EmitKVTokenIDs = true, true }
	chunks := func(c *config.Engine) { c.SGLang.ChunkedPrefillSize = 52 }
	cases := []struct {
		name               string
		cfg                config.Engine
		prompt, count, out int
		retracts, cancel   bool
		rejects            bool
	}{
		{name: "chunks and decoding", cfg: small(250, chunks), prompt: 90, count: 8, out: 30},
		{name: "pages of one token", cfg: small(1000, chunks, func(c *config.Engine) { c.BlockSize = 1 }), prompt: 90, count: 8, out: 30},
		{name: "without a cache", cfg: small(400, func(c *config.Engine) { c.EnablePrefixCaching = false }), prompt: 90, count: 8, out: 30},
		{name: "events and token ids", cfg: small(300, events), prompt: 90, count: 8, out: 30},
		{name: "retraction", cfg: small(60, eager, events), prompt: 20, count: 8, out: 60, retracts: true},
		{name: "longest prefix first", cfg: small(250, func(c *config.Engine) { c.SGLang.Policy, c.MaxNumSeqs = config.LPM, 3 }), prompt: 90, count: 20, out: 5},
		{name: "bursts", cfg: small(400, drafts), prompt: 90, count: 8, out: 30},
		{name: "bursts and retraction", cfg: small(60, drafts, eager), prompt: 20, count: 8, out: 60, retracts: true},
		{name: "cancellation", cfg: small(100), prompt: 60, count: 10, out: 10, cancel: true},
		{name: "a provider with answers", cfg: small(250, func(c *config.Engine) { c.Timing = config.Timing{Kind: config.External} }), prompt: 90, count: 8, out: 30},
		{name: "rejection", cfg: small(20, func(c *config.Engine) { c.MaxModelLen = 90 }), prompt: 90, count: 10, out: 10, rejects: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &round{t: t, e: sglang.New(c.cfg, 0), prompt: make([]uint32, c.prompt), count: c.count, out: c.out, cancel: c.cancel, answers: timing.NewCache()}
			r.e.ShareAnswers(r.answers)
			for range 30 {
				r.run()
			}
			if n := testing.AllocsPerRun(20, r.run); n != 0 {
				t.Errorf("%v allocations per round", n)
			}
			if m := r.e.Metrics(); c.cfg.EnablePrefixCaching && !c.rejects && m.ActiveBlocks+3*c.count < c.cfg.NumGPUBlocks {
				t.Errorf("the cache is not full: %+v", m)
			}
			if got := r.sum.retractions > 0; got != c.retracts {
				t.Errorf("retracted %v, want %v", got, c.retracts)
			}
			if got := r.sum.rejected > 0; got != c.rejects {
				t.Errorf("rejected %v, want %v", got, c.rejects)
			}
			if !c.rejects && (r.sum.prefills == 0 || r.sum.decodes == 0) ||
				c.cfg.EmitKVEvents != (r.sum.events > 0) || c.cfg.EmitKVTokenIDs != (r.sum.tokenIDs > 0) {
				t.Errorf("the rounds did not do what they are for: %+v", r.sum)
			}
		})
	}
}

// drafts speculates.
func drafts(c *config.Engine) { c.MTP.Drafts, c.MTP.AcceptRates = 2, config.DefaultAcceptRates() }

// One decoding pass of a full batch, the pass almost every pass is.
func BenchmarkDecodePass(b *testing.B) {
	cfg := config.Defaults(config.SGLang)
	cfg.BlockSize = 16
	const batch = 80
	e := sglang.New(cfg, 0)
	now, left, next := 0.0, 0, uint64(0)
	prompt := span(0, 500)
	for b.Loop() {
		if left == 0 {
			b.StopTimer()
			for e.Ready() { // to the end of the last batch
				end, _ := e.Begin(now)
				e.Complete(end)
				now = end
			}
			for i := range uint32(batch) {
				next++
				prompt[0] = i
				e.Submit(engine.Request{UUID: uuid(next), Tokens: prompt, MaxOutput: 1000})
			}
			for e.WaitingLen() > 0 {
				end, _ := e.Begin(now)
				e.Complete(end)
				now = end
			}
			left = 900
			b.StartTimer()
		}
		left--
		end, _ := e.Begin(now)
		e.Complete(end)
		now = end
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/token")
}
