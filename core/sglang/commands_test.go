package sglang_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/sglang"
)

func TestSubmitRefuses(t *testing.T) {
	e := sglang.New(small(16), 0)
	if h, code := e.Submit(engine.Request{UUID: uuid(1), MaxOutput: -1}); code != engine.NegativeOutput || h != 0 {
		t.Errorf("negative output: %d, code %d", h, code)
	}
	q := engine.Request{UUID: uuid(1), Tokens: span(0, 4), MaxOutput: 2}
	h, _ := e.Submit(q)
	refused := func(when string) {
		t.Helper()
		if again, code := e.Submit(q); code != engine.AlreadyActive || again != 0 {
			t.Errorf("%s: %d, code %d", when, again, code)
		}
	}
	refused("waiting")
	end, _ := e.Begin(0)
	refused("in flight")
	e.Complete(end)
	refused("running")
	end, _ = e.Begin(end)
	refused("its last pass is in flight")
	e.Complete(end)
	if o := e.Out().Outputs; len(o) != 1 || !o[0].Completed || o[0].Req != h {
		t.Fatalf("outputs %+v, want the completion of %d", o, h)
	}
	again, code := e.Submit(q)
	if code != engine.Applied || again == h {
		t.Errorf("after the end: handle %d, code %d; want a handle other than %d, which Out still names", again, code, h)
	}
	if e.WaitingLen() != 1 || e.RunningLen() != 0 {
		t.Errorf("%d waiting, %d running", e.WaitingLen(), e.RunningLen())
	}
	e.Begin(end)
	third, _ := e.Submit(engine.Request{UUID: uuid(2)})
	if third != h {
		t.Errorf("a new request got handle %d, want the recycled %d", third, h)
	}
}

func TestSubmitCopies(t *testing.T) {
	tokens, ids := span(0, 8), []uint32{5, 6}
	l := newLab(t, small(16))
	l.submitRequest(engine.Request{Tokens: tokens, MaxOutput: 9, OutputIDs: ids})
	clear(tokens)
	clear(ids)
	l.run()
	l.submit(span(0, 8), 0)
	l.run()
	if got := l.stories[0].tokens; !slices.Equal(got, []uint32{5, 6}) {
		t.Errorf("tokens %v, want the planned ones", got)
	}
	if got := l.stories[1].reused; !slices.Equal(got, []int{8}) {
		t.Errorf("reused %v, want the prompt as it was submitted", got)
	}
}

// An empty plan is a plan for no output; no plan means MaxOutput.
func TestEmptyPlan(t *testing.T) {
	l := newLab(t, small(16))
	l.submitRequest(engine.Request{Tokens: span(0, 4), MaxOutput: 3, OutputIDs: []uint32{}})
	l.submitRequest(engine.Request{Tokens: span(100, 4), MaxOutput: 3})
	l.run().wantPasses("10 [0-. 1]", "12 [1]", "14 [1.]")
}

func TestBeginAndCompleteTakeTurns(t *testing.T) {
	e := sglang.New(small(16), 5)
	if e.WorkerID() != 5 {
		t.Errorf("worker id %d", e.WorkerID())
	}
	if _, ok := e.Begin(0); ok || e.Ready() || e.Complete(0) {
		t.Error("an idle engine runs a pass")
	}
	e.Submit(engine.Request{UUID: uuid(1), Tokens: span(0, 4), MaxOutput: 2})
	if !e.Ready() {
		t.Error("not ready with a request waiting")
	}
	end, ok := e.Begin(7)
	if !ok || end != 17 || !e.InFlight() || e.Ready() {
		t.Errorf("begin: %v %v, in flight %v, ready %v", end, ok, e.InFlight(), e.Ready())
	}
	if _, ok := e.Begin(8); ok {
		t.Error("two passes in flight")
	}
	if _, _, ok := e.FailHead(); ok {
		t.Error("FailHead during a pass")
	}
	if !e.Complete(20) || e.InFlight() || e.Out().Forward.DurationMs != 13 {
		t.Errorf("complete: in flight %v, duration %v, want 13", e.InFlight(), e.Out().Forward.DurationMs)
	}
}

// What belongs to the end of a pass is not seen before it.
func TestOutIsFilledInTwoSteps(t *testing.T) {
	e := sglang.New(small(16, func(c *config.Engine) { c.EmitKVEvents = true }), 0)
	e.Submit(engine.Request{UUID: uuid(1), Tokens: span(0, 4), MaxOutput: 2, Tag: 9})
	end, _ := e.Begin(0)
	o := e.Out()
	if len(o.Admissions) != 1 || o.Admissions[0].Tag != 9 || len(o.Committed) != 1 {
		t.Errorf("at the start: %+v", o)
	}
	if len(o.Outputs)+len(o.KVEvents)+o.Forward.Prefills != 0 || o.Effect {
		t.Errorf("at the start the end is known: %+v", o)
	}
	e.Complete(end)
	if len(o.Outputs) != 1 || len(o.KVEvents) != 1 || o.Forward.Prefills != 1 || !o.Effect || len(o.Admissions) != 1 {
		t.Errorf("at the end: %+v", o)
	}
}

func TestFindAndUnknownHandles(t *testing.T) {
	e := sglang.New(small(16), 0)
	h, _ := e.Submit(engine.Request{UUID: uuid(1), Tokens: span(0, 4), MaxOutput: 1})
	if got, ok := e.Find(uuid(1)); !ok || got != h || e.UUID(h) != uuid(1) {
		t.Errorf("found %d %v, UUID %v", got, ok, e.UUID(h))
	}
	if _, ok := e.Find(uuid(2)); ok {
		t.Error("found a request nobody submitted")
	}
	for _, bad := range []engine.Handle{-1, 0, h + 1} {
		if code := e.Cancel(bad); code != engine.Noop {
			t.Errorf("cancel of handle %d: code %d", bad, code)
		}
	}
}

// cancelled cancels one of three requests when the given number of passes is
// over. The pool has room for two of them, at first.
func cancelled(t *testing.T, passes int, id uint64) *lab {
	l := newLab(t, small(6, eager))
	l.submit(span(0, 8), 9)
	l.submit(span(100, 8), 9)
	l.submit(span(200, 8), 2)
	for range passes {
		l.step()
	}
	h, _ := l.e.Find(uuid(id))
	if code := l.e.Cancel(h); code != engine.Applied {
		t.Fatalf("after %d passes: code %d", passes, code)
	}
	if r := l.e.Effects().Retired; !slices.Equal(r, []engine.Handle{h}) {
		t.Errorf("after %d passes: retired %v, want %d", passes, r, h)
	}
	if code := l.e.Cancel(h); code != engine.Noop {
		t.Errorf("after %d passes, again: code %d", passes, code)
	}
	if _, ok := l.e.Find(uuid(id)); ok {
		t.Errorf("after %d passes: still found", passes)
	}
	return l
}

// eager reserves nothing for outputs to come.
func eager(c *config.Engine) { c.SGLang.Conservativeness, c.SGLang.ClipMaxNewTokens = 0, 1 }

func TestCancel(t *testing.T) {
	if l := cancelled(t, 0, 2); l.e.WaitingLen() != 2 || l.e.RunningLen() != 0 {
		t.Errorf("waiting: %d waiting, %d running", l.e.WaitingLen(), l.e.RunningLen())
	}
	l := cancelled(t, 2, 2)
	if m := l.e.Metrics(); m.ActiveBlocks != 5 || m.RunningRequests != 1 {
		t.Errorf("running: %+v, want one request with 3 pages and the prompt of the other cached", m)
	}
	l = cancelled(t, 5, 1) // both need a fourth page: the first was retracted
	if m := l.e.Metrics(); m.WaitingRequests != 1 || m.RunningRequests != 1 {
		t.Errorf("retracted: %+v, want one request to run and the third to wait", m)
	}
	l.run()
	for i, want := range []string{"", "completed", "completed"} {
		if got := l.stories[i].outcome; got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
	if m := l.e.Metrics(); m.RunningRequests+m.WaitingRequests != 0 {
		t.Errorf("at the end: %+v", m)
	}
}

// A prompt computed in part gives its private pages back and leaves the others
// in the cache.
func TestCancelBetweenChunks(t *testing.T) {
	l := newLab(t, small(16, func(c *config.Engine) { c.SGLang.ChunkedPrefillSize = 8 }))
	h := l.submit(span(0, 20), 1)
	l.step()
	l.e.Cancel(h)
	if m := l.e.Metrics(); m.ActiveBlocks != 2 || l.e.Ready() {
		t.Errorf("%+v, ready %v", m, l.e.Ready())
	}
	l.submit(span(0, 20), 1)
	l.run()
	if got := l.stories[1].reused; !slices.Equal(got, []int{8}) {
		t.Errorf("reused %v", got)
	}
}

// A request cancelled during a pass says nothing at its end, whether it goes
// on or was completed by the pass.
func TestCancelInFlight(t *testing.T) {
	for _, out := range []int{1, 5} {
		e := sglang.New(small(16), 0)
		h, _ := e.Submit(engine.Request{UUID: uuid(1), Tokens: span(0, 8), MaxOutput: out})
		other, _ := e.Submit(engine.Request{UUID: uuid(2), Tokens: span(100, 8), MaxOutput: 1})
		end, _ := e.Begin(0)
		if code := e.Cancel(h); code != engine.Applied {
			t.Fatalf("output %d: code %d", out, code)
		}
		e.Complete(end)
		o := e.Out()
		if len(o.Outputs) != 1 || o.Outputs[0].Req != other {
			t.Errorf("output %d: outputs %+v, want the other request's only", out, o.Outputs)
		}
		if len(o.Admissions) != 2 || o.Forward.Prefills != 2 {
			t.Errorf("output %d: what the pass began with is gone: %+v", out, o)
		}
		if m := o.Metrics; m.ActiveBlocks != 4 || e.Ready() {
			t.Errorf("output %d: %+v, ready %v", out, m, e.Ready())
		}
	}
}

// A command during a pass changes the queue at once; the pass after sees it.
func TestSubmitInFlight(t *testing.T) {
	l := newLab(t, small(16))
	l.submit(span(0, 8), 1)
	end, _ := l.e.Begin(0)
	l.submit(span(100, 8), 1)
	if l.e.WaitingLen() != 1 {
		t.Error("the submitted request does not wait")
	}
	l.e.Complete(end)
	o := l.e.Out()
	if len(o.Outputs) != 1 || o.Metrics.WaitingRequests != 1 || o.Forward.QueuedPrefills != 0 {
		t.Errorf("the pass in flight: %+v", o)
	}
	l.now = end
	l.run().wantPasses("20 [1.]")
}

func TestFailHead(t *testing.T) {
	e := sglang.New(small(2), 0)
	if _, _, ok := e.FailHead(); ok {
		t.Error("failed the head of an empty queue")
	}
	first, _ := e.Submit(engine.Request{UUID: uuid(1), Tokens: span(0, 4), MaxOutput: 1, Tag: 11})
	e.Submit(engine.Request{UUID: uuid(2), Tokens: span(0, 4), MaxOutput: 1, Tag: 12})
	h, tag, ok := e.FailHead()
	if h != first || tag != 11 || !ok || e.WaitingLen() != 1 {
		t.Errorf("failed %d, tag %d, %v; %d left", h, tag, ok, e.WaitingLen())
	}
	if _, known := e.Find(uuid(1)); known || e.Cancel(h) != engine.Noop {
		t.Error("the failed request is still known")
	}
	if h, _ := e.Submit(engine.Request{UUID: uuid(1)}); h == first {
		t.Error("its handle was recycled before the next pass")
	}
	if got := fmt.Sprint(e.UUID(first)[15]); got != "1" {
		t.Errorf("UUID of the failed request: …%s", got)
	}
}

// Many ids at once, ended in an order of their own.
func TestManyRequests(t *testing.T) {
	e := sglang.New(small(16), 0)
	handles := map[uint64]engine.Handle{}
	for id := range uint64(1000) {
		h, code := e.Submit(engine.Request{UUID: uuid(id), MaxOutput: 1})
		if code != engine.Applied {
			t.Fatalf("submit %d: code %d", id, code)
		}
		handles[id] = h
	}
	for i := range uint64(1000) {
		id := i * 389 % 1000
		if got, ok := e.Find(uuid(id)); !ok || got != handles[id] {
			t.Fatalf("request %d is handle %d %v, want %d", id, got, ok, handles[id])
		}
		e.Cancel(handles[id])
		if _, ok := e.Find(uuid(id)); ok || e.WaitingLen() != int(999-i) {
			t.Fatalf("request %d after its end: found %v, %d waiting", id, ok, e.WaitingLen())
		}
	}
}
