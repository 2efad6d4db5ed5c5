package engine_test

import (
	"fmt"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
)

// desk gives an engine handoff commands and notes what it says.
type desk struct {
	t    *testing.T
	e    *engine.Engine
	now  float64
	next uint64
}

func newDesk(t *testing.T, cfg config.Engine) *desk { return &desk{t: t, e: engine.New(cfg, 0)} }

func decodes(c *config.Engine)  { c.Role, c.EmitKVEvents = config.Decode, true }
func prefills(c *config.Engine) { c.Role = config.Prefill }

func (d *desk) request(tokens []uint32, out int) engine.Request {
	d.next++
	return engine.Request{UUID: uuid(d.next), Tag: uint32(d.next), Tokens: tokens, MaxOutput: out, Handoff: 100 + d.next}
}

func (d *desk) got(h engine.Handle, code engine.Code) engine.Handle {
	d.t.Helper()
	if code != engine.Applied {
		d.t.Fatalf("code %d", code)
	}
	return h
}

func (d *desk) reserve(tokens []uint32, out int) engine.Handle {
	d.t.Helper()
	return d.got(d.e.Reserve(d.request(tokens, out)))
}

// facts are those of the last command, as text.
func facts(list []engine.Lifecycle) string {
	text := ""
	for _, f := range list {
		text += fmt.Sprintf("%s%d:%d ", []string{"held", "reserved"}[f.Kind], f.Handoff-100, f.Tokens)
	}
	return text
}

func (d *desk) said(want string) {
	d.t.Helper()
	if got := facts(d.e.Effects().Lifecycle); got != want {
		d.t.Errorf("the command said %q, want %q", got, want)
	}
}

// pass runs one pass and compares its facts.
func (d *desk) pass(want string) *engine.Out {
	d.t.Helper()
	end, ok := d.e.Begin(d.now)
	if !ok {
		d.t.Fatal("not ready")
	}
	d.e.Complete(end)
	d.now = end
	if got := facts(d.e.Out().Lifecycle); got != want {
		d.t.Errorf("the pass said %q, want %q", got, want)
	}
	return d.e.Out()
}

func (d *desk) blocks(active, inactive, waiting int) {
	d.t.Helper()
	m := d.e.Metrics()
	if m.ActiveBlocks != active || m.InactiveBlocks != inactive || m.WaitingRequests != waiting {
		d.t.Errorf("%d active, %d inactive blocks, %d waiting; want %d, %d, %d",
			m.ActiveBlocks, m.InactiveBlocks, m.WaitingRequests, active, inactive, waiting)
	}
}

// A source keeps its blocks and its id until it is released.
func TestSourceIsHeld(t *testing.T) {
	d := newDesk(t, vllm(8, prefills))
	q := d.request(span(0, 10), 1)
	h := d.got(d.e.SubmitPrefill(q))
	if d.e.ReleaseSource(h) != engine.Noop || d.e.Activate(h) != engine.Noop || d.e.CancelDestination(h) != engine.Noop {
		t.Error("a waiting source can be released, activated or cancelled as a destination")
	}
	out := d.pass("held1:10 ")
	if d.now != 10 || len(out.Outputs) != 1 || !out.Outputs[0].Completed {
		t.Errorf("at %v: %+v", d.now, out.Outputs)
	}
	d.blocks(3, 0, 0)
	if d.e.Ready() || d.e.Drained() {
		t.Error("a held source is work, or nothing")
	}
	if _, code := d.e.Submit(q); code != engine.AlreadyActive {
		t.Errorf("its id can be used again: code %d", code)
	}
	if code := d.e.ReleaseSource(h); code != engine.Applied || len(d.e.Effects().Retired) != 1 {
		t.Errorf("release: code %d, retired %v", code, d.e.Effects().Retired)
	}
	d.blocks(0, 2, 0)
	if d.e.ReleaseSource(h) != engine.Noop || !d.e.Drained() {
		t.Error("released twice, or still there")
	}
}

// A prefill worker charges no decoding, not even for a prompt that is cached
// but for its last block.
func TestPrefillWorkerDecodesForFree(t *testing.T) {
	d := newDesk(t, vllm(16, prefills))
	d.e.Submit(d.request(span(0, 8), 3))
	for range 3 {
		d.pass("")
	}
	if d.now != 10 {
		t.Errorf("ended at %v, want 10", d.now)
	}
}

// Sources can be cancelled wherever they are.
func TestCancelSource(t *testing.T) {
	for _, when := range []string{"waiting", "in flight", "held"} {
		d := newDesk(t, vllm(8, prefills))
		h := d.got(d.e.SubmitPrefill(d.request(span(0, 10), 1)))
		end := 0.0
		switch when {
		case "in flight":
			end, _ = d.e.Begin(0)
		case "held":
			d.pass("held1:10 ")
		}
		if d.e.CancelSource(h) != engine.Applied || d.e.CancelSource(h) != engine.Noop {
			t.Errorf("%s: cannot be cancelled once", when)
		}
		if when == "in flight" {
			d.e.Complete(end)
			if o := d.e.Out(); len(o.Lifecycle)+len(o.Outputs) != 0 {
				t.Errorf("the pass still speaks of it: %v %v", o.Lifecycle, o.Outputs)
			}
		}
		if d.e.Metrics().ActiveBlocks != 0 || !d.e.Drained() {
			t.Errorf("%s: %+v", when, d.e.Metrics())
		}
	}
	d := newDesk(t, vllm(8))
	if h := d.got(d.e.Submit(d.request(span(0, 10), 1))); d.e.CancelSource(h) != engine.Noop {
		t.Error("an ordinary request was cancelled as a source")
	}
}

// A destination reserves what is not resident, all of it if need be, enters
// the cache when it is activated and decodes without prefill.
func TestDestination(t *testing.T) {
	d := newDesk(t, vllm(8, decodes))
	h := d.reserve(span(0, 10), 3)
	d.said("reserved1:12 ")
	d.blocks(3, 0, 1)
	if d.e.Ready() || d.e.Drained() {
		t.Error("a reservation is work, or nothing")
	}
	if d.e.Activate(h) != engine.Applied || len(d.e.Effects().KVEvents) != 1 || d.e.Effects().KVEvents[0].Count != 2 {
		t.Errorf("activation: events %+v", d.e.Effects().KVEvents)
	}
	if d.e.Activate(h) != engine.Noop {
		t.Error("activated twice")
	}
	d.blocks(3, 0, 1)
	out := d.pass("")
	if d.now != 2 || len(out.Admissions) != 1 || out.Admissions[0].Reused != 0 || out.Forward.Prefills != 0 || out.Forward.Decodes != 1 {
		t.Errorf("at %v: %+v %+v", d.now, out.Admissions, out.Forward)
	}
	d.pass("")
	d.pass("")
	d.reserve(span(0, 12), 3) // the third block has other tokens
	d.said("reserved2:4 ")
	d.reserve(span(0, 8), 3)
	d.said("reserved3:0 ")
}

// Corrections §1: one reservation per attempt; a head that failed is due again
// when capacity was given back; attempts are made at Reserve, after every
// command that was applied and once per completed pass.
func TestPendingDestinations(t *testing.T) {
	d := newDesk(t, vllm(6, decodes))
	first := d.reserve(span(0, 12), 2)
	d.said("reserved1:12 ")
	d.e.Activate(first)
	d.pass("")
	second := d.reserve(span(100, 12), 2) // the first has four blocks in the next pass
	d.said("reserved2:12 ")
	d.reserve(span(200, 12), 1)
	d.said("")
	fourth := d.reserve(span(300, 4), 1)
	d.said("")
	d.blocks(6, 0, 3)
	d.pass("reserved3:12 ") // the first is preempted by its own need; one gets its blocks
	if p := d.e.Out().Pressure; len(p) != 1 {
		t.Fatalf("pressure %+v", p)
	}
	if d.e.CancelDestination(second) != engine.Applied {
		t.Fatal("cannot cancel the second")
	}
	d.said("reserved4:4 ")
	if d.e.CancelDestination(fourth) != engine.Applied || d.e.Cancel(fourth) != engine.Noop {
		t.Error("cannot cancel the fourth once")
	}
	d.blocks(3, 0, 2)
}

// While a destination waits for blocks no prompt is computed; activated
// requests go on, in the order in which they were reserved.
func TestPendingDestinationStopsPrompts(t *testing.T) {
	d := newDesk(t, vllm(6, decodes))
	a := d.reserve(span(0, 8), 2)
	b := d.reserve(span(100, 8), 2)
	d.e.Submit(d.request(span(300, 4), 1))
	d.reserve(span(200, 16), 1)
	d.said("")
	d.e.Activate(b)
	d.e.Activate(a)
	out := d.pass("")
	if len(out.Admissions) != 2 || out.Admissions[0].Req != a || out.Admissions[1].Req != b {
		t.Errorf("admissions %+v, want %d and %d", out.Admissions, a, b)
	}
	if out.Forward.QueuedPrefills != 1 || out.Forward.QueuedDecodes != 1 || out.Forward.QueuedDecodeLen != 16 {
		t.Errorf("queued: %+v", out.Forward)
	}
	d.pass("reserved4:16 ") // both are done
}

// A command during a pass waits for its end, and so do its events.
func TestReserveInFlight(t *testing.T) {
	d := newDesk(t, vllm(8, decodes))
	h := d.reserve(span(0, 8), 2)
	d.e.Submit(d.request(span(100, 4), 1))
	end, _ := d.e.Begin(0)
	d.reserve(span(200, 8), 1)
	d.said("")
	if d.e.Activate(h) != engine.Applied || len(d.e.Effects().KVEvents) != 0 {
		t.Errorf("events of the activation: %+v", d.e.Effects().KVEvents)
	}
	d.said("reserved3:8 ")
	d.e.Complete(end)
	events := d.e.Out().KVEvents
	if len(events) != 2 || events[0].ID != 0 || events[1].ID != 1 || events[1].Count != 2 {
		t.Errorf("events of the pass: %+v", events)
	}
}

func TestReserveRefuses(t *testing.T) {
	for _, c := range []struct {
		name        string
		cfg         config.Engine
		prompt      uint32
		out         int
		code        engine.Code
		transferred string
	}{
		{"longer than the model", vllm(8, decodes, func(c *config.Engine) { c.MaxModelLen = 10 }), 10, 1, engine.PromptTooLong, ""},
		{"shorter", vllm(8, decodes, func(c *config.Engine) { c.MaxModelLen = 10 }), 9, 1, engine.Applied, "reserved1:12 "},
		{"larger than the pool", vllm(8, decodes), 33, 1, engine.PromptTooLarge, ""},
		{"as large", vllm(8, decodes), 32, 1, engine.Applied, "reserved1:32 "},
		{"TensorRT-LLM, as large", vllm(8, decodes, trtllm), 32, 1, engine.PromptTooLarge, ""},
		{"TensorRT-LLM, cut", vllm(8, decodes, trtllm), 31, 9, engine.Applied, "reserved1:32 "},
		{"negative output", vllm(8, decodes), 3, -1, engine.NegativeOutput, ""},
		{"TensorRT-LLM, negative output", vllm(8, decodes, trtllm), 3, -1, engine.NegativeOutput, ""},
	} {
		d := newDesk(t, c.cfg)
		h, code := d.e.Reserve(d.request(span(0, c.prompt), c.out))
		if code != c.code || (h != 0) != (code == engine.Applied) {
			t.Errorf("%s: handle %d, code %d, want code %d", c.name, h, code, c.code)
		}
		d.said(c.transferred)
	}
}

// Corrections §14: a TensorRT-LLM destination must be completable beside
// everything that runs, is held or is activated, and reuses nothing.
func TestTensorRTDestination(t *testing.T) {
	d := newDesk(t, vllm(8, decodes, trtllm))
	a := d.reserve(span(0, 8), 5) // 4 blocks to its end, 2 now
	d.said("reserved1:8 ")
	d.reserve(span(0, 8), 9) // 5
	d.said("")
	d.e.Activate(a)
	d.said("") // the head is not due
	d.pass("")
	d.pass("")
	d.pass("")
	d.pass("")
	d.pass("reserved2:8 ")
}

// A warm decode worker takes, runs and ends destinations without allocating.
func TestHandoffAllocatesNothing(t *testing.T) {
	d := newDesk(t, vllm(5, decodes, func(c *config.Engine) { c.MaxNumSeqs = 2 }))
	prompt := span(0, 8)
	var handles [4]engine.Handle
	reservations := 0
	round := func() {
		for i := range handles {
			prompt[6] = uint32(d.next)
			handles[i] = d.reserve(prompt, 3)
		}
		for !d.e.Drained() {
			for _, h := range handles {
				d.e.Activate(h)
			}
			end, _ := d.e.Begin(d.now)
			d.e.Complete(end)
			d.now = end
			reservations += len(d.e.Out().Lifecycle)
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
	if reservations == 0 {
		t.Error("nobody waited for a reservation")
	}
}
