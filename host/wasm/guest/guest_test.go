package guest

import (
	"bytes"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/internal/gen"
)

func request(fields ...frame.Field) []byte { return frame.Append(nil, fields) }

func number(name string, n int) frame.Field { return frame.Field{Name: name, Var: &n} }

// opened is a simulation that has all of a generated trace.
func opened(t *testing.T, g *Guest, seed uint64, chunk int) uint32 {
	t.Helper()
	run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	run.TraceBlockSize, run.CaptureRequests, run.Concurrency = 1<<20, true, 2
	h := g.Open()
	ok(t, g.Call(h, frame.Configure, request(run.Fields()...)))
	text := gen.Case(seed).Trace()
	for end := false; !end; {
		n := min(chunk, len(text))
		end = n == len(text)
		in := frame.Feeding{Text: text[:n], End: end}
		ok(t, g.Call(h, frame.Feed, request(in.Fields()...)))
		text = text[n:]
	}
	return h
}

// ok wants an answer that is no refusal.
func ok(t *testing.T, answer []byte) []byte {
	t.Helper()
	if bytes.Contains(answer, []byte("\xA5error")) {
		t.Fatalf("refused: %q", answer)
	}
	return bytes.Clone(answer)
}

// results are all answers of a run that is done.
func results(t *testing.T, g *Guest, h uint32) []byte {
	t.Helper()
	var all []byte
	for _, op := range []frame.Op{frame.Progress, frame.Summarize, frame.Records, frame.Unservable, frame.Turns, frame.Sessions} {
		all = append(all, ok(t, g.Call(h, op, request()))...)
	}
	return all
}

// Simulations that take turns give what each gives alone, whatever the budgets
// and chunks.
func TestIndependent(t *testing.T) {
	alone := map[uint64][]byte{}
	for seed := uint64(1); seed < 5; seed++ {
		var g Guest
		h := opened(t, &g, seed, 1<<20)
		ok(t, g.Call(h, frame.Step, request(number("events", 1<<20))))
		alone[seed] = results(t, &g, h)
	}
	var g Guest
	handles := map[uint64]uint32{}
	for seed := range alone {
		g.Close(g.Open()) // handles are never used again
		handles[seed] = opened(t, &g, seed, 100)
	}
	for left := len(alone); left > 0; {
		left = 0
		for _, h := range handles {
			if g.Status(h) == frame.Running {
				ok(t, g.Call(h, frame.Step, request(number("events", 3))))
				left++
			}
		}
	}
	for seed, want := range alone {
		if got := results(t, &g, handles[seed]); !bytes.Equal(got, want) {
			t.Errorf("seed %d: another result beside others", seed)
		}
	}
}

func TestHandles(t *testing.T) {
	var g Guest
	a := g.Open()
	b := g.Open()
	if a == 0 || b == 0 || a == b || g.Status(a) != frame.Opened {
		t.Fatal(a, b)
	}
	g.Close(a)
	for _, h := range []uint32{0, a, 3, 1 << 31, 1<<32 - 1} {
		g.Close(h)
		code, found := frame.UnknownHandle, int64(h)
		want := request(frame.Field{Name: "error", Var: (*uint8)(&code)}, frame.Field{Name: "found", Var: &found})
		if got := g.Call(h, frame.Progress, request()); !bytes.Equal(got, want) || g.Status(h) != frame.NoSimulation {
			t.Errorf("handle %d: %q", h, got)
		}
	}
	if c := g.Open(); c == a || c == b {
		t.Errorf("handle %d is used again", c)
	}
}

// A refused call leaves the simulation as it was.
func TestRefusalsChangeNothing(t *testing.T) {
	var g Guest
	h := opened(t, &g, 2, 1<<20)
	ok(t, g.Call(h, frame.Step, request(number("events", 1))))
	if g.Status(h) != frame.Running {
		t.Fatal("the run is too short")
	}
	before := ok(t, g.Call(h, frame.Progress, request()))
	for _, bad := range []struct {
		op      frame.Op
		request []byte
	}{
		{frame.Configure, request()}, {frame.Feed, request()}, {frame.Step, request()}, {frame.Step, request(number("events", 0))},
		{frame.Step, request(number("events", 1), number("answer_ms", 1))}, {frame.Summarize, request()}, {frame.Records, request()},
		{frame.Turns, request(number("from", -1))}, {frame.Sessions, request(number("most", -1))}, {0, request()}, {frame.Progress, nil},
	} {
		if answer := g.Call(h, bad.op, bad.request); !bytes.Contains(answer, []byte("\xA5error")) {
			t.Errorf("operation %d with %q is not refused", bad.op, bad.request)
		}
		if after := ok(t, g.Call(h, frame.Progress, request())); !bytes.Equal(after, before) {
			t.Errorf("operation %d with %q changes %q to %q", bad.op, bad.request, before, after)
		}
	}
}

// Tables come in parts that add up.
func TestParts(t *testing.T) {
	var g Guest
	var h uint32
	var whole, parts frame.TurnColumns
	for seed := uint64(0); len(whole.Session) < 5; seed++ {
		h = opened(t, &g, seed, 1<<20)
		if f := frame.Decode(g.Call(h, frame.Turns, request()), whole.Fields()); f.Code != frame.OK {
			t.Fatalf("%+v", f)
		}
	}
	for from := 0; ; from += 2 {
		var c frame.TurnColumns
		p := frame.Part{From: from, Most: 2}
		if f := frame.Decode(g.Call(h, frame.Turns, request(p.Fields()...)), c.Fields()); f.Code != frame.OK {
			t.Fatalf("%+v", f)
		}
		if len(c.Session) == 0 {
			break
		}
		parts.Session, parts.Index, parts.Next = append(parts.Session, c.Session...), append(parts.Index, c.Index...), append(parts.Next, c.Next...)
		parts.Input, parts.Output = append(parts.Input, c.Input...), append(parts.Output, c.Output...)
	}
	if a, b := frame.Append(nil, whole.Fields()), frame.Append(nil, parts.Fields()); !bytes.Equal(a, b) {
		t.Errorf("%q\n%q", a, b)
	}
}
