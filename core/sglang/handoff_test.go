package sglang_test

import (
	"fmt"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/sglang"
)

// desk gives a rank handoff commands and notes what it says.
type desk struct {
	t    *testing.T
	e    *sglang.Rank
	now  float64
	next uint64
}

func newDesk(t *testing.T, cfg config.Engine) *desk { return &desk{t: t, e: sglang.New(cfg, 0)} }

func decodes(c *config.Engine)  { c.Role, c.EmitKVEvents = config.Decode, true }
func prefills(c *config.Engine) { c.Role, c.EmitKVEvents = config.Prefill, true }

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

func (d *desk) prefill(tokens []uint32, out int) engine.Handle {
	d.t.Helper()
	return d.got(d.e.SubmitPrefill(d.request(tokens, out)))
}

func (d *desk) do(command func(engine.Handle) engine.Code, h engine.Handle, want engine.Code) {
	d.t.Helper()
	if code := command(h); code != want {
		d.t.Errorf("code %d, want %d", code, want)
	}
}

func facts(list []engine.Lifecycle) string {
	text := ""
	for _, f := range list {
		text += fmt.Sprintf("%s%d:%d ", []string{"held", "reserved"}[f.Kind], f.Handoff-100, f.Tokens)
	}
	return text
}

// said compares the facts of the last command and its KV events.
func (d *desk) said(want string, events int) {
	d.t.Helper()
	e := d.e.Effects()
	if got := facts(e.Lifecycle); got != want || len(e.KVEvents) != events {
		d.t.Errorf("the command said %q and %d events, want %q and %d", got, len(e.KVEvents), want, events)
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
	out := d.e.Out()
	if got := facts(out.Lifecycle); got != want {
		d.t.Errorf("the pass said %q, want %q", got, want)
	}
	return out
}

func (d *desk) state(active, running, waiting int) {
	d.t.Helper()
	m := d.e.Metrics()
	if m.ActiveBlocks != active || m.RunningRequests != running || m.WaitingRequests != waiting {
		d.t.Errorf("%d pages, %d running, %d waiting; want %d, %d, %d",
			m.ActiveBlocks, m.RunningRequests, m.WaitingRequests, active, running, waiting)
	}
}

// A source keeps its pages and its id until it is released; only then is its
// prompt known to others.
func TestSourceIsHeld(t *testing.T) {
	d := newDesk(t, small(16, prefills))
	h := d.prefill(span(0, 10), 1)
	out := d.pass("held1:10 ")
	if len(out.Outputs) != 1 || !out.Outputs[0].Completed || d.now != 10 {
		t.Errorf("outputs %+v at %v", out.Outputs, d.now)
	}
	d.state(3, 0, 0)
	if _, known := d.e.Find(uuid(1)); !known || d.e.Ready() {
		t.Error("the held source is not known, or makes work")
	}
	other := d.prefill(span(0, 10), 1)
	if a := d.pass("held2:10 ").Admissions; len(a) != 1 || a[0].Reused != 0 {
		t.Errorf("beside a held source: %+v", a)
	}
	d.do(d.e.ReleaseSource, h, engine.Applied)
	d.state(5, 0, 0)
	d.do(d.e.ReleaseSource, h, engine.Noop)
	if _, known := d.e.Find(uuid(1)); known {
		t.Error("still known after the release")
	}
	d.do(d.e.CancelSource, other, engine.Applied)
	d.state(2, 0, 0)
	d.prefill(span(0, 10), 1)
	if a := d.pass("held3:10 ").Admissions; a[0].Reused != 8 {
		t.Errorf("after the release: %+v", a)
	}
}

// Sources can be cancelled wherever they are; what is not a held source is not
// released.
func TestCancelSource(t *testing.T) {
	d := newDesk(t, small(16, prefills))
	waits := d.prefill(span(0, 8), 1)
	plain := d.got(d.e.Submit(d.request(span(100, 8), 1)))
	for _, h := range []engine.Handle{0, 99, waits, plain} {
		d.do(d.e.ReleaseSource, h, engine.Noop)
	}
	d.do(d.e.CancelSource, plain, engine.Noop)
	d.do(d.e.CancelSource, waits, engine.Applied)
	d.state(0, 0, 1)
	flies := d.prefill(span(200, 8), 1)
	end, _ := d.e.Begin(d.now)
	d.do(d.e.CancelSource, flies, engine.Applied)
	d.e.Complete(end)
	if out := d.e.Out(); len(out.Outputs) != 1 || len(out.Lifecycle) != 0 {
		t.Errorf("cancelled in flight: %+v", out)
	}
	d.state(2+2, 0, 0) // both prompts are cached
}

// A destination holds what is cached, all of it, enters the cache when it is
// activated, and decodes without prefill (goldens; corrections §2).
func TestDestination(t *testing.T) {
	d := newDesk(t, small(16, decodes))
	h := d.reserve(span(0, 8), 2)
	d.said("reserved1:8 ", 0)
	d.state(2, 0, 1)
	if d.e.Ready() {
		t.Error("a reservation makes work")
	}
	d.do(d.e.Activate, 0, engine.Noop)
	d.do(d.e.Activate, h, engine.Applied)
	d.said("", 1)
	d.do(d.e.Activate, h, engine.Noop)
	d.do(d.e.CancelDestination, h, engine.Noop)
	out := d.pass("")
	if len(out.Admissions) != 1 || out.Admissions[0].Reused != 0 || out.Forward.Prefills != 0 || out.Forward.Decodes != 1 || d.now != 2 {
		t.Errorf("the first pass: %+v at %v", out, d.now)
	}
	d.pass("")
	d.state(3-1, 0, 0) // 10 tokens: two pages are complete
	d.reserve(span(0, 8), 1)
	d.said("reserved2:0 ", 0)
	d.reserve(span(0, 10), 1)
	d.said("reserved3:4 ", 0)
}

// Corrections §1: one reservation per attempt; a head that failed is due again
// when room was made; attempts are made at Reserve, after every command that
// was applied and once per completed pass.
func TestPendingDestinations(t *testing.T) {
	d := newDesk(t, small(6, decodes))
	a := d.reserve(span(0, 16), 2) // 4 of 6 pages
	b := d.reserve(span(100, 12), 1)
	c := d.reserve(span(200, 4), 1)
	d.said("", 0)
	e := d.reserve(span(300, 4), 1)
	d.said("", 0) // the head is not passed over
	d.do(d.e.Activate, a, engine.Applied)
	d.said("", 1) // and not due: no page became free
	d.pass("")
	d.pass("reserved2:12 ") // a is complete; one per attempt
	d.state(6, 0, 3)
	d.do(d.e.CancelDestination, b, engine.Applied)
	d.said("reserved3:4 ", 0)
	d.do(d.e.Activate, c, engine.Applied)
	d.said("reserved4:4 ", 1)
	d.do(d.e.CancelDestination, e, engine.Applied)
	d.pass("")
}

// Pages that become free because a generated page is known already do not make
// a head due that failed (corrections §1: only what counts as room made does).
func TestFailedHeadWaits(t *testing.T) {
	d := newDesk(t, small(4, decodes))
	for range 2 {
		q := d.request(span(0, 8), 0)
		q.OutputIDs = span(8, 6)
		h := d.got(d.e.Reserve(q))
		d.do(d.e.Activate, h, engine.Applied)
	}
	d.pass("") // both take a page
	d.reserve(span(100, 4), 1)
	for range 3 {
		d.pass("")
	}
	d.state(3, 2, 1) // the second page of the two is free again
	d.do(d.e.Cancel, 1, engine.Applied)
	d.said("reserved3:4 ", 0)
}

// While a destination waits for pages no prompt is computed; what is activated
// goes on, in the order of the activations.
func TestPendingDestinationStopsPrompts(t *testing.T) {
	d := newDesk(t, small(6, decodes, func(c *config.Engine) { c.MaxNumSeqs = 1 }))
	a, b := d.reserve(span(0, 8), 2), d.reserve(span(100, 8), 2)
	d.reserve(span(200, 20), 1)
	d.got(d.e.Submit(d.request(span(300, 4), 1)))
	d.do(d.e.Activate, b, engine.Applied)
	d.do(d.e.Activate, a, engine.Applied)
	for _, want := range []uint32{2, 2, 1, 1} {
		out := d.pass(map[bool]string{true: "reserved3:20 "}[want == 1 && d.e.RunningLen() == 1 && d.now == 6])
		if len(out.Outputs) != 1 || out.Outputs[0].Tag != want || out.Forward.Prefills != 0 {
			t.Errorf("outputs %+v, want a token of %d", out.Outputs, want)
		}
	}
}

// A command during a pass waits for its end, and so do its events.
func TestReserveInFlight(t *testing.T) {
	d := newDesk(t, small(16, decodes))
	h := d.reserve(span(0, 8), 3)
	d.do(d.e.Activate, h, engine.Applied)
	waits := d.reserve(span(100, 8), 1)
	end, _ := d.e.Begin(d.now)
	d.reserve(span(200, 8), 1)
	d.said("", 0)
	d.do(d.e.Activate, waits, engine.Applied)
	d.said("reserved3:8 ", 0)
	d.e.Complete(end)
	out := d.e.Out()
	if facts(out.Lifecycle) != "" || len(out.KVEvents) != 1 || out.KVEvents[0].ID != 1 {
		t.Errorf("the pass said %q and %+v", facts(out.Lifecycle), out.KVEvents)
	}
}

func TestReserveRefuses(t *testing.T) {
	d := newDesk(t, small(4, decodes, func(c *config.Engine) { c.MaxModelLen = 20 }))
	for _, c := range []struct {
		tokens []uint32
		out    int
		want   engine.Code
	}{
		{span(0, 20), 1, engine.PromptTooLong},
		{span(0, 17), 1, engine.PromptTooLarge},
		{span(0, 16), -1, engine.NegativeOutput},
	} {
		if h, code := d.e.Reserve(d.request(c.tokens, c.out)); code != c.want || h != 0 {
			t.Errorf("%d tokens, output %d: handle %d, code %d, want %d", len(c.tokens), c.out, h, code, c.want)
		}
	}
	q := d.request(span(0, 16), 1)
	d.got(d.e.Reserve(q))
	if _, code := d.e.SubmitPrefill(q); code != engine.AlreadyActive {
		t.Errorf("the same again: code %d", code)
	}
	d.state(4, 0, 1)
}

// A warm decode rank takes, runs and ends destinations without allocating.
func TestHandoffAllocatesNothing(t *testing.T) {
	if sglang.Checked {
		t.Skip("checking allocates")
	}
	d := newDesk(t, small(5, decodes, func(c *config.Engine) { c.MaxNumSeqs = 2 }))
	prompt := span(0, 8)
	var handles [4]engine.Handle
	reservations := 0
	round := func() {
		for i := range handles {
			prompt[0] = uint32(d.next)
			handles[i] = d.reserve(prompt, 3)
		}
		for left := len(handles); left > 0; {
			for _, h := range handles {
				d.e.Activate(h)
			}
			end, _ := d.e.Begin(d.now)
			d.e.Complete(end)
			d.now = end
			reservations += len(d.e.Out().Lifecycle)
			for _, o := range d.e.Out().Outputs {
				if o.Completed {
					left--
				}
			}
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
