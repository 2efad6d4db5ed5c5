package timing

import (
	"math"
	"math/rand"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

func external() config.Engine {
	e := engine(16, 4)
	e.Timing = config.Timing{Kind: config.External}
	return e
}

// TestExternalDialogue goes through what Cache describes.
func TestExternalDialogue(t *testing.T) {
	m := New(external())
	both := Pass{StartMs: 100, Prompts: 2, ISL: 25, Prefix: 13, Decodes: 3, SumLen: 20}
	if got := m.Prefill(2, 25, 13); got != Unknown {
		t.Fatalf("unasked prefill: %v", got)
	}
	if q, ask := m.Ask(both); !ask || q.Kind != AskPrefill || m.End(both) != Unknown {
		t.Fatalf("a pass with both asks %+v, %v first", q, ask)
	}
	q, ask := m.Ask(Pass{Prompts: 2, ISL: 25, Prefix: 13})
	if want := (Query{Kind: AskPrefill, Batch: 2, ISL: 6, Prefix: 6}); !ask || q != want {
		t.Fatalf("asks %+v, %v; want %+v", q, ask, want)
	}
	if !m.source.cache.Store(q, 12.5) {
		t.Fatal("answer refused")
	}
	if _, ask := m.Ask(Pass{Prompts: 2, ISL: 25, Prefix: 13}); ask {
		t.Error("asks again")
	}
	if got := m.Prefill(2, 24, 12); got != 12.5 { // the same means
		t.Errorf("answered prefill: %v, want 12.5", got)
	}

	if got := m.Decode(3, 20); got != Unknown {
		t.Fatalf("unasked decode: %v", got)
	}
	q, ask = m.Ask(Pass{Decodes: 3, SumLen: 20})
	if want := (Query{Kind: AskDecode, Batch: 3, ISL: 6, OSL: 2}); !ask || q != want {
		t.Fatalf("asks %+v, %v; want %+v", q, ask, want)
	}
	step := m.DecodeStep()
	step.SetBatch(3)
	if got := step.Ms(20); got != Unknown || step.Fast(20) != -1 {
		t.Fatalf("unasked step: %v", got)
	}
	if !m.source.cache.Store(q, 7.25) {
		t.Fatal("answer refused")
	}
	if got := step.Ms(20); got != 7.25 || m.Decode(3, 18) != 7.25 {
		t.Errorf("answered step: %v, want 7.25", got)
	}
	if got := m.End(both); got != 100+12.5+7.25 {
		t.Errorf("the pass ends at %v", got)
	}
	if got := m.Decode(3, 21); got != Unknown {
		t.Errorf("a longer context is answered: %v", got)
	}
}

func TestExternalFloorsAndRatios(t *testing.T) {
	e := external()
	e.SpeedupRatio, e.DecodeSpeedupRatio = 2, 2
	c := NewCache()
	m := New(e)
	copied := m
	m.Share(c)
	c.Store(prefillQuery(1, 10, 0), -3)
	c.Store(prefillQuery(1, 11, 0), 3)
	c.Store(decodeQuery(1, 10), 0.5)
	c.Store(decodeQuery(1, 11), 6)
	for i, got := range []float64{m.Prefill(1, 10, 0), m.Prefill(1, 11, 0), m.Decode(1, 10), m.Decode(1, 11)} {
		if want := []float64{0, 1.5, 0.25, 1.5}[i]; got != want {
			t.Errorf("answer %d: %v, want %v", i, got, want)
		}
	}
	if step := copied.DecodeStep(); copied.Prefill(1, 11, 0) != 1.5 || copied.Decode(1, 11) != 1.5 || step.source != m.source {
		t.Error("a copy does not share the answers")
	}
	e.SpeedupRatio = 1
	other := New(e)
	if other.Share(c); other.Prefill(1, 11, 0) != 3 {
		t.Error("answers are not shared before scaling")
	}
	if alone := New(e); alone.Prefill(1, 11, 0) != Unknown {
		t.Error("answers are shared with everyone")
	}
}

func TestExternalNothingToAsk(t *testing.T) {
	m := New(external())
	asked := func(_ Query, ask bool) bool { return ask }
	if asked(m.Ask(Pass{})) || asked(m.Ask(Pass{Prompts: 2, ISL: 24, Prefix: 24})) {
		t.Error("asks about an empty batch")
	}
	e := external()
	e.Role = config.Decode
	if m := New(e); asked(m.Ask(Pass{Prompts: 1, ISL: 5})) || !asked(m.Ask(Pass{Decodes: 1, SumLen: 5})) {
		t.Error("a decode worker asks about decoding only")
	}
	e.Role = config.Prefill
	if m := New(e); asked(m.Ask(Pass{Decodes: 1, SumLen: 5})) || !asked(m.Ask(Pass{Prompts: 1, ISL: 5})) {
		t.Error("a prefill worker asks about prefill only")
	}
	if m := New(engine(16, 4)); asked(m.Ask(Pass{Prompts: 1, ISL: 5})) || asked(m.Ask(Pass{Decodes: 1, SumLen: 5})) {
		t.Error("a formula asks")
	}
	if m := New(profiled(e18())); asked(m.Ask(Pass{Prompts: 1, ISL: 5})) || asked(m.Ask(Pass{Decodes: 1, SumLen: 5})) {
		t.Error("a table asks")
	}
}

// TestCacheEqualsMap draws queries with many repeats from a small space, and
// some from all of it.
func TestCacheEqualsMap(t *testing.T) {
	rng := rand.New(rand.NewSource(10))
	c, want := NewCache(), map[Query]float64{}
	draw := func() Query {
		n := 20
		if rng.Intn(4) == 0 {
			n = math.MaxInt
		}
		q := Query{Kind: QueryKind(rng.Intn(2)), Batch: 1 + rng.Intn(n-1), ISL: rng.Intn(n)}
		if q.Kind == AskDecode {
			q.OSL = DecodeOSL
		} else {
			q.Prefix = rng.Intn(n)
		}
		return q
	}
	for range 50_000 {
		q := draw()
		if rng.Intn(2) == 0 {
			ms := rng.NormFloat64()
			if !c.Store(q, ms) {
				t.Fatalf("%+v refused", q)
			}
			want[q] = ms
		}
		ms, ok := c.Lookup(q)
		if w, has := want[q]; ok != has || ms != w {
			t.Fatalf("%+v: %v, %v; want %v, %v", q, ms, ok, w, has)
		}
	}
	if c.Len() != len(want) || c.Len() < 5000 {
		t.Errorf("%d answers, want %d", c.Len(), len(want))
	}
	for q, w := range want {
		if ms, ok := c.Lookup(q); !ok || ms != w {
			t.Fatalf("%+v: %v, %v; want %v", q, ms, ok, w)
		}
	}
}

func TestCacheRefuses(t *testing.T) {
	c := NewCache()
	good := prefillQuery(1, 10, 4)
	for _, ms := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if c.Store(good, ms) {
			t.Errorf("%v kept", ms)
		}
	}
	for _, q := range []Query{
		{},
		{Kind: AskPrefill, Batch: -1, ISL: 3},
		{Kind: AskPrefill, Batch: 1, ISL: -3},
		{Kind: AskPrefill, Batch: 1, ISL: 3, Prefix: -DecodeOSL},
		{Kind: AskPrefill, Batch: 1, ISL: 3, OSL: DecodeOSL},
		{Kind: AskDecode, Batch: 1, ISL: 3},
		{Kind: AskDecode, Batch: 1, ISL: 3, OSL: DecodeOSL, Prefix: 1},
		{Kind: AskDecode + 1, Batch: 1, ISL: 3},
	} {
		if c.Store(q, 1) {
			t.Errorf("%+v kept", q)
		}
		if _, ok := c.Lookup(q); ok {
			t.Errorf("%+v found", q)
		}
	}
	if c.Len() != 0 {
		t.Errorf("%d answers kept", c.Len())
	}
}

// TestExternalRun goes through passes as a scheduler does: it stops at the end
// of a pass until both durations are known, and asks nothing twice.
func TestExternalRun(t *testing.T) {
	rng := rand.New(rand.NewSource(11))
	e := external()
	e.SpeedupRatio, e.DecodeSpeedupRatio = 1.7, 3
	m := New(e)
	provider := func(q Query) float64 {
		ms := 0.03*float64(q.Batch*q.ISL) + 0.001*float64(q.Prefix) - 0.5
		return ms + float64(q.OSL)
	}
	asked := map[Query]int{}
	now, want := 0.0, 0.0
	for range 2000 {
		count, batch := rng.Intn(3), rng.Intn(5)
		prefix := count * rng.Intn(10)
		isl := prefix + count*rng.Intn(20)
		sum := batch*(1+rng.Intn(40)) + rng.Intn(batch+1)
		p := Pass{StartMs: now, Prompts: count, ISL: isl, Prefix: prefix, Decodes: batch, SumLen: sum}
		stops := 0
		for m.End(p) == Unknown {
			q, ask := m.Ask(p)
			if !ask {
				t.Fatalf("%+v is unknown and asks nothing", p)
			}
			stops++
			asked[q]++
			if !m.source.cache.Store(q, provider(q)) {
				t.Fatalf("%+v refused", q)
			}
		}
		if _, ask := m.Ask(p); ask || stops > 2 {
			t.Fatalf("%d questions about one pass, %v", stops, ask)
		}
		now = m.End(p)
		if count > 0 && isl > prefix {
			want += fmath.ModeledMs(max(provider(prefillQuery(count, isl/count-prefix/count, prefix/count)), 0), 1.7)
		}
		if batch > 0 {
			want += fmath.ModeledMs(max(provider(decodeQuery(batch, sum)), 1), float64(e.SpeedupRatio*e.DecodeSpeedupRatio))
		}
		if now != want {
			t.Fatalf("the clock is at %v, want %v", now, want)
		}
	}
	for q, n := range asked {
		if n != 1 {
			t.Errorf("%+v asked %d times", q, n)
		}
	}
	if len(asked) < 100 || m.source.cache.Len() != len(asked) {
		t.Errorf("%d questions, %d answers kept", len(asked), m.source.cache.Len())
	}
}
