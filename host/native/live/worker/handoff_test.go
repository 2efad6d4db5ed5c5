package worker_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/host/native/live/worker"
	"github.com/dryserve/dryserve/host/native/tracefile"
)

// half is a sink that keeps facts.
type half struct {
	record
	facts []worker.Signal
}

func (h *half) Signal(s worker.Signal) {
	if s.Fact != worker.NoFact {
		h.facts = append(h.facts, s)
		return
	}
	h.record.Signal(s)
}

// took empties the list of facts and spells them.
func (h *half) took() string {
	text := ""
	for _, f := range h.facts {
		text += []string{"", "held ", "accepted ", "reserved ", "activated ", "idle "}[f.Fact]
	}
	h.facts = nil
	return text
}

// Prompts handed over one by one, from one worker to another, give every token at
// the time at which a replay of two pools does, to the last bit.
func TestHandoffEqualsReplay(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		for _, timing := range []config.TransferTiming{config.FullPrompt, config.DestinationMissing} {
			cfg := config.Defaults(backend)
			if cfg.Transfer = (config.Transfer{BytesPerToken: 100_000, BandwidthGBs: 3, Timing: timing}); backend == config.SGLang {
				cfg.BlockSize = 16
			}
			prompts, decodes := cfg, cfg
			prompts.Role, decodes.Role = config.Prefill, config.Decode
			arrivals, want, handoffs := pooled(t, prompts, decodes, 20)
			p, d := worker.New(prompts, 0, worker.Options{}), worker.New(decodes, 0, worker.Options{})
			for i, a := range arrivals {
				got, h := handOver(t, p, d, a, i+1, cfg.Transfer, backend == config.SGLang)
				if h != handoffs[i] {
					t.Fatalf("backend %d, timing %d, request %d: held, reserved, activated at %v, want %v", backend, timing, i, h, handoffs[i])
				}
				compare(t, []record{got}, want[i:i+1], 0)
			}
			if p.Active() != 0 || d.Active() != 0 {
				t.Errorf("%d and %d requests are left", p.Active(), d.Active())
			}
		}
	}
}

// handOver takes a request over two idle workers, the prompt first or room for
// it first, and returns what became of it and when it was held, reserved and
// activated.
func handOver(t *testing.T, p, d *worker.Worker, a arrival, n int, link config.Transfer, roomFirst bool) (record, [3]float64) {
	t.Helper()
	var source, target half
	q := worker.Request{UUID: uuid(n), Tokens: a.prompt, MaxOutput: a.output, Duty: worker.Decoding}
	first := q
	first.MaxOutput, first.Duty = 1, worker.Prompt
	nowMs, at := a.atMs, [3]float64{}
	var kept, room worker.Ticket
	compute := func() {
		p.Advance(nowMs)
		kept = p.Submit(first, &source, nowMs)
		settle(t, p, nowMs)
		nowMs = source.facts[len(source.facts)-1].AtMs
		if at[0] = nowMs; source.took() != "held " || source.tokens != 1 || source.ends != 0 {
			t.Fatalf("request %d: the prompt's %+v", n, source)
		}
	}
	missing := 0
	reserve := func() {
		d.Advance(nowMs)
		room = d.Submit(q, &target, nowMs)
		if at[1], missing = nowMs, target.facts[1].Tokens; target.took() != "accepted reserved " {
			t.Fatalf("request %d: the room's %+v", n, target)
		}
	}
	if roomFirst {
		reserve()
		compute()
	} else {
		compute()
		reserve()
	}
	tokens := len(a.prompt)
	if link.Timing == config.DestinationMissing {
		tokens = missing
	}
	nowMs += float64(float64(tokens)*float64(link.BytesPerToken)) / float64(link.BandwidthGBs*1e9) * 1000
	d.Activate(room, nowMs)
	p.Release(kept, nowMs)
	if at[2] = nowMs; target.took() != "activated " {
		t.Fatalf("request %d: the activation's %+v", n, target)
	}
	settle(t, d, nowMs)
	return target.record, at
}

// pooled replays the first n requests of the trace, far from each other, on one
// worker of each kind.
func pooled(t *testing.T, prompts, decodes config.Engine, n int) (arrivals []arrival, records []replay.Record, at [][3]float64) {
	t.Helper()
	loaded, err := tracefile.Load(context.Background(), []string{trace}, tracefile.Options{TraceBlockSize: 512, ArrivalSpeedup: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := loaded.Workload
	w.Turns, w.Sessions = w.Turns[:n], w.Sessions[:n]
	for i := range w.Sessions {
		w.Sessions[i].StartMs = 1e6 * float64(i)
	}
	run := config.DefaultReplay(decodes.Backend)
	run.Engine, run.Prefill, run.CaptureRequests = decodes, config.Pool{Engine: prompts, Workers: 1}, true
	s := replay.New(run, w, replay.Options{})
	if status := s.Step(math.MaxInt); status != replay.Done {
		t.Fatalf("status %d", status)
	}
	records = slices.Clone(s.Records())
	handoffs := s.Handoffs()
	for i, r := range records {
		if int(r.Turn) != i {
			t.Fatalf("request %d is the record's number %d", r.Turn, i)
		}
		at = append(at, [3]float64{handoffs[i].HeldMs, handoffs[i].ReservedMs, handoffs[i].ActivatedMs})
	}
	texts := promptsOf(t, n)
	for i, r := range records {
		arrivals = append(arrivals, arrival{r.ArrivalMs, texts[i], int(r.RequestedOutput)})
	}
	return arrivals, records, at
}

// During a pass room is asked for at once, but there is some at its end only;
// activations and releases wait for the end.
func TestHandoffDuringAPass(t *testing.T) {
	cfg := fixed()
	cfg.Role = config.Decode
	w := worker.New(cfg, 0, worker.Options{})
	var plain record
	var a half
	w.Submit(ask(1, 8, 5), &plain, 0)
	settled := func(nowMs float64, want string) {
		t.Helper()
		w.Advance(nowMs)
		if got := a.took(); got != want {
			t.Errorf("at %v: %q, want %q", nowMs, got, want)
		}
	}
	settled(0, "")
	q := ask(2, 8, 2)
	q.Duty = worker.Decoding
	room := w.Submit(q, &a, 1)
	settled(1, "accepted ")
	settled(2, "reserved ")
	w.Activate(room, 3)
	settled(3, "")
	settled(4, "activated ")
	w.Activate(room, 5)
	settled(5, "")
	settled(6, "idle ")
	settle(t, w, 6)
	if a.firstMs != 6 || a.lastMs != 8 || a.end != worker.Completed || plain.lastMs != 10 || w.Active() != 0 {
		t.Errorf("%+v, beside it %+v", a.record, plain)
	}

	cfg.Role = config.Prefill
	w = worker.New(cfg, 0, worker.Options{})
	var p, next half
	q = ask(3, 60, 1)
	q.Duty = worker.Prompt
	kept := w.Submit(q, &p, 0)
	settled(0, "")
	settled(10, "")
	if p.took() != "held " || p.tokens != 1 {
		t.Errorf("%+v", p)
	}
	q = ask(4, 8, 1)
	q.Duty = worker.Prompt
	w.Submit(q, &next, 20)
	settle(t, w, 20)
	if next.tokens != 0 || next.ends != 0 {
		t.Errorf("there is room beside a prompt that is kept: %+v", next)
	}
	w.Release(kept, 100)
	settle(t, w, 100)
	if next.firstMs != 110 || next.took() != "held " || p.ends != 0 || w.Active() != 1 {
		t.Errorf("after the release: %+v, %+v, %d are active", next, p, w.Active())
	}
}

// Whatever a handoff has come to, it can be cancelled and leaves nothing behind;
// what cannot be is refused; and room that is given back is the next one's.
func TestHandoffEnds(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		cfg := fixed()
		cfg.Backend, cfg.Role = backend, config.Decode
		w := worker.New(cfg, 0, worker.Options{})
		ask := func(n, prompt int) worker.Request {
			q := ask(n, prompt, 2)
			q.Duty = worker.Decoding
			return q
		}
		var big, a, b half
		w.Submit(ask(1, 100), &big, 0)
		if big.end != worker.Refused || engine.Code(big.code) != engine.PromptTooLarge || big.took() != "" {
			t.Errorf("backend %d: %+v", backend, big)
		}
		first := w.Submit(ask(2, 60), &a, 0)
		second := w.Submit(ask(3, 60), &b, 0)
		if a.took() != "accepted reserved " || b.took() != "accepted " {
			t.Errorf("backend %d: %+v %+v", backend, a, b)
		}
		w.Cancel(first, 1)
		if b.took() != "reserved " || a.ends != 0 {
			t.Errorf("backend %d: %+v", backend, b)
		}
		w.Activate(first, 2) // it is no more
		w.Activate(second, 2)
		settle(t, w, 2)
		if b.took() != "activated " || b.end != worker.Completed || w.Active() != 0 {
			t.Errorf("backend %d: %+v", backend, b)
		}
		w.Close(9)
	}
}
