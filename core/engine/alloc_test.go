package engine_test

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

// round is some work for a warm engine: requests that are submitted together and run to
// their ends. Everything it needs is made before it is measured.
type round struct {
	t       *testing.T
	e       *engine.Engine
	now     float64
	next    uint64
	prompt  []uint32
	count   int
	out     int
	changed uint32 // makes each prompt's second half new
	cancel  bool
	sum     struct{ prefills, decodes, events, tokenIDs, rejected int }
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
		r.e.Complete(end)
		r.now = end
		o := r.e.Out()
		if !o.Effect {
			r.e.FailHead()
		}
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

// A warm engine submits, runs and completes requests without allocating:
// prefill in chunks, decoding, preemption in both orders, churn of a full
// cache with events and token ids, rejection and cancellation.
func TestSteppingAllocatesNothing(t *testing.T) {
	cases := []struct {
		name               string
		cfg                config.Engine
		prompt, count, out int
		preempts, cancel   bool
		rejects            bool
	}{
		{name: "chunks and decoding", cfg: vllm(400, func(c *config.Engine) { c.MaxNumBatchedTokens = 50 }), prompt: 90, count: 8, out: 30},
		{name: "without a cache", cfg: vllm(400, func(c *config.Engine) { c.EnablePrefixCaching = false }), prompt: 90, count: 8, out: 30},
		{name: "events and token ids", cfg: vllm(200, func(c *config.Engine) { c.EmitKVEvents, c.EmitKVTokenIDs = true, true }), prompt: 90, count: 8, out: 30},
		{name: "LIFO preemption", cfg: vllm(60, func(c *config.Engine) { c.EmitKVEvents = true }), prompt: 30, count: 8, out: 60, preempts: true},
		{name: "FIFO preemption", cfg: vllm(60, func(c *config.Engine) { c.EmitKVEvents, c.Preemption = true, config.FIFO }), prompt: 30, count: 8, out: 60, preempts: true},
		{name: "TensorRT-LLM", cfg: vllm(60, trtllm), prompt: 30, count: 8, out: 60},
		{name: "speculation", cfg: vllm(400, drafts), prompt: 90, count: 8, out: 30},
		{name: "speculation and preemption", cfg: vllm(60, drafts), prompt: 30, count: 8, out: 60, preempts: true},
		{name: "cancellation", cfg: vllm(100), prompt: 60, count: 10, out: 10, cancel: true},
		{name: "rejection", cfg: vllm(20), prompt: 90, count: 10, out: 10, rejects: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := &round{t: t, e: engine.New(c.cfg, 0), prompt: make([]uint32, c.prompt), count: c.count, out: c.out, cancel: c.cancel}
			for range 20 {
				r.run()
			}
			before := r.e.Metrics()
			if n := testing.AllocsPerRun(20, r.run); n != 0 {
				t.Errorf("%v allocations per round", n)
			}
			after := r.e.Metrics()
			// Only the last blocks of the last requests were given back as free.
			if c.cfg.EnablePrefixCaching && !c.rejects && after.InactiveBlocks+c.count < c.cfg.NumGPUBlocks {
				t.Errorf("the pool is not full: %+v", after)
			}
			if got := after.Preemptions > before.Preemptions; got != c.preempts {
				t.Errorf("preempted %v, want %v", got, c.preempts)
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

// One decoding pass of a full batch, the pass almost every pass is.
func BenchmarkDecodePass(b *testing.B) {
	cfg := config.Defaults(config.VLLM)
	const batch = 80
	e := engine.New(cfg, 0)
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
