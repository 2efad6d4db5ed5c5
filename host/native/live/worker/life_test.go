package worker_test

import (
	"math"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// fixed is an engine whose prompts take 10 ms and whose steps take 2.
func fixed() config.Engine {
	cfg := config.Defaults(config.VLLM)
	cfg.BlockSize, cfg.NumGPUBlocks = 4, 16
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	return cfg
}

func ask(n, prompt, output int) worker.Request {
	q := worker.Request{UUID: uuid(n), Rank: worker.AnyRank, MaxOutput: output}
	for i := range prompt {
		q.Tokens = append(q.Tokens, uint32(1000*n+i))
	}
	return q
}

// What comes at the time at which a pass ends is in the next one, and what comes
// late, however many passes late, is in none that began before.
func TestReach(t *testing.T) {
	w := worker.New(fixed(), 0, worker.Options{})
	var a, b, c record
	w.Submit(ask(1, 8, 40), &a, 0)
	w.Advance(0)
	w.Reach(12) // 10 for the prompt, 2 for a step
	if a.tokens != 2 {
		t.Fatalf("%d tokens at 12 ms", a.tokens)
	}
	w.Submit(ask(2, 8, 2), &b, 12)
	w.Reach(80) // 28 passes later
	w.Submit(ask(3, 8, 1), &c, 80)
	settle(t, w, 80)
	if b.firstMs != 24 || c.firstMs != 92 || c.end != worker.Completed {
		t.Errorf("first tokens at %g and %g ms", b.firstMs, c.firstMs)
	}
}

// settle steps w from nowMs until it waits for a command.
func settle(t *testing.T, w *worker.Worker, nowMs float64) float64 {
	t.Helper()
	for range 10_000 {
		wake := w.Advance(nowMs)
		if math.IsInf(wake, 1) {
			return nowMs
		}
		nowMs = max(nowMs, wake)
	}
	t.Fatal("it never rests")
	return 0
}

// A request waits for the worker to be up, and for the pass in flight.
func TestWaits(t *testing.T) {
	w := worker.New(fixed(), 0, worker.Options{ReadyMs: 1000})
	var a, b record
	w.Submit(ask(1, 8, 3), &a, 5)
	if wake := w.Advance(5); wake != 1000 {
		t.Fatalf("it wakes at %v", wake)
	}
	if wake := w.Advance(1000.25); wake != 1010 {
		t.Fatalf("the pass ends at %v", wake)
	}
	w.Submit(ask(2, 8, 1), &b, 1003)
	settle(t, w, 1010)
	if a.firstMs != 1010 || b.firstMs != 1022 || a.secondMs != 1022 || a.endMs != 1024 || w.Active() != 0 {
		t.Errorf("%+v %+v", a, b)
	}
}

// A pass begins where the one before ended, but not more than 100 ms ago.
func TestCatchesUp(t *testing.T) {
	w := worker.New(fixed(), 0, worker.Options{})
	var a record
	w.Submit(ask(1, 4, 3), &a, 0)
	w.Advance(0)
	if wake := w.Advance(13.5); wake != 14 || a.secondMs != 12 {
		t.Errorf("after 13.5 ms it wakes at %v, second token %v", wake, a.secondMs)
	}
	settle(t, w, 113)
	if a.lastMs != 14 {
		t.Errorf("%+v", a)
	}
	var b record
	w.Submit(ask(2, 4, 3), &b, 200)
	w.Advance(200)
	w.Advance(500) // 290 ms late: the pass that follows begins at 400
	settle(t, w, 500)
	if b.firstMs != 210 || b.secondMs != 402 || b.lastMs != 404 {
		t.Errorf("%+v", b)
	}
}

// A cancelled request leaves its place to the next, also in the middle of a
// pass; nothing more is said of it, and its id is free.
func TestCancel(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		cfg := fixed()
		cfg.Backend, cfg.MaxNumSeqs = backend, 1
		w := worker.New(cfg, 0, worker.Options{})
		var a, b, c record
		first := w.Submit(ask(1, 8, 40), &a, 0)
		w.Submit(ask(2, 8, 2), &b, 0)
		w.Advance(0)
		w.Advance(10) // a has its first token and computes the second
		queued := w.Submit(ask(3, 8, 2), &c, 11)
		w.Cancel(queued, 11)
		w.Cancel(first, 11)
		w.Cancel(first, 11)
		settle(t, w, 12)
		if a.tokens != 1 || a.ends != 0 || c.ends != 0 || c.tokens != 0 {
			t.Errorf("backend %d: cancelled: %+v %+v", backend, a, c)
		}
		if b.firstMs != 22 || b.end != worker.Completed {
			t.Errorf("backend %d: the next: %+v", backend, b)
		}
		w.Submit(ask(1, 8, 1), &a, 100)
		settle(t, w, 100)
		if a.ends != 1 || a.end != worker.Completed || w.Active() != 0 {
			t.Errorf("backend %d: the same id again: %+v", backend, a)
		}
	}
}

// Every way to end.
func TestEnds(t *testing.T) {
	cfg := fixed()
	w := worker.New(cfg, 0, worker.Options{})
	var first, twice, big, grows, after, left record
	w.Submit(ask(1, 4, 2), &first, 0)
	w.Submit(ask(1, 4, 2), &twice, 0)
	w.Submit(ask(2, 100, 2), &big, 0)
	w.Submit(ask(3, 32, 100), &grows, 0)
	settle(t, w, 0)
	w.Submit(ask(4, 4, 2), &after, 1000)
	settle(t, w, 1000)
	w.Submit(ask(5, 4, 2), &left, 2000)
	w.Close(2000)
	for _, c := range []struct {
		name   string
		got    *record
		end    worker.End
		tokens int
	}{
		{"served", &first, worker.Completed, 2}, {"the same id twice", &twice, worker.Refused, 0},
		{"larger than the pool", &big, worker.Rejected, 0}, {"outgrows the pool", &grows, worker.Unservable, 33},
		{"after it", &after, worker.Completed, 2}, {"when it closes", &left, worker.Closed, 0},
	} {
		if c.got.end != c.end || c.got.ends != 1 || c.got.tokens != c.tokens {
			t.Errorf("%s: %+v", c.name, *c.got)
		}
	}
	if twice.code != int(engine.AlreadyActive) || w.Active() != 0 {
		t.Errorf("refused with code %d; %d are active", twice.code, w.Active())
	}
}

// SGLang's lone request that finds no room for its next token does not spin.
func TestOutgrowsSGLang(t *testing.T) {
	cfg := fixed()
	cfg.Backend, cfg.NumGPUBlocks, cfg.SGLang.ClipMaxNewTokens = config.SGLang, 6, 1
	w := worker.New(cfg, 0, worker.Options{})
	var a record
	w.Submit(ask(1, 4, 40), &a, 0)
	settle(t, w, 0)
	if a.end != worker.Unservable || a.ends != 1 {
		t.Errorf("%+v", a)
	}
}

// Passes without time let commands in between.
func TestYields(t *testing.T) {
	cfg := fixed()
	cfg.Timing = config.Timing{Kind: config.Fixed}
	w := worker.New(cfg, 0, worker.Options{})
	var a record
	w.Submit(ask(1, 4, 40), &a, 7)
	if wake := w.Advance(7); wake != 7 || a.tokens == 0 || a.ends != 0 {
		t.Errorf("it wakes at %v: %+v", wake, a)
	}
	settle(t, w, 7)
	if a.tokens != 40 || a.endMs != 7 {
		t.Errorf("%+v", a)
	}
}

// Ranks are asked in turn, and an observer hears of each pass before its
// requests do.
func TestObserver(t *testing.T) {
	cfg := fixed()
	cfg.DPSize, cfg.EmitKVEvents = 2, true
	o := &observer{}
	w := worker.New(cfg, 0, worker.Options{Observer: o})
	var a, b record
	w.Submit(ask(1, 8, 1), &a, 0)
	w.Submit(ask(2, 8, 1), &b, 0)
	w.Submit(worker.Request{UUID: uuid(3), Rank: 1, Tokens: ask(3, 4, 0).Tokens, MaxOutput: 1}, &b, 0)
	settle(t, w, 0)
	if o.outputs != [2]int{1, 2} || o.stored != [2]int{2, 3} || o.commands != 3 {
		t.Errorf("%+v", *o)
	}
}

type observer struct {
	outputs, stored [2]int
	commands        int
}

func (o *observer) Passed(rank int, out *engine.Out, nowMs float64) {
	o.outputs[rank] += len(out.Outputs)
	for _, e := range out.KVEvents {
		o.stored[rank] += e.Count
	}
}

func (o *observer) Commanded(int, *engine.Effects, engine.Metrics, float64) { o.commands++ }
