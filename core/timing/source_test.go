package timing

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

func TestInterval(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 5000 {
		axis := make([]float64, 2+rng.Intn(12))
		for i := range axis {
			axis[i] = float64(rng.Intn(200)) + rng.Float64()
		}
		slices.Sort(axis)
		axis = slices.Compact(axis)
		if len(axis) < 2 {
			continue
		}
		for _, x := range append([]float64{-5, 300, float64(rng.Intn(200))}, axis...) {
			want := 0
			for i := range axis[:len(axis)-1] {
				if axis[i] <= x {
					want = i
				}
			}
			if got := interval(axis, x, int32(rng.Intn(16))); got != want {
				t.Fatalf("%v in %v: interval %d, want %d", x, axis, got, want)
			}
		}
	}
}

// randomProfile has axes up to about 300 tokens.
func randomProfile(rng *rand.Rand) *config.ProfileTable {
	rising := func() []float64 {
		v := []float64{float64(rng.Intn(20))}
		for range 1 + rng.Intn(8) {
			v = append(v, v[len(v)-1]+1+float64(rng.Intn(60)))
		}
		return v
	}
	random := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.Float64()*60 - 10
		}
		return v
	}
	p := &config.ProfileTable{PrefillISL: rising(), DecodeActiveKVTokens: rising(), DecodeContextLength: rising()}
	p.PrefillTTFTMs = random(len(p.PrefillISL))
	p.DecodeITLMs = random(len(p.DecodeActiveKVTokens) * len(p.DecodeContextLength))
	return p
}

// models returns one model of each kind with a table, and one with answers to
// all queries of batches up to 8 and sums up to 600.
func models(rng *rand.Rand) map[string]*Model {
	out := map[string]*Model{}
	e := profiled(randomProfile(rng))
	e.DecodeSpeedupRatio = []float64{1, 2, 0.3}[rng.Intn(3)]
	add := func(name string) *Model {
		m := New(e)
		out[name] = &m
		return &m
	}
	add("profile")
	e.Timing = config.Timing{Kind: config.Grid, Grid: smallGrid()}
	add("grid")
	e.Timing = config.Timing{Kind: config.External}
	m := add("external")
	for batch := range 9 {
		for isl := range 601 {
			m.source.cache.Store(decodeQuery(max(batch, 1), isl*max(batch, 1)), rng.Float64()*30)
		}
	}
	return out
}

// TestStepEqualsDecode walks as a run of passes does, and jumps.
func TestStepEqualsDecode(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range 60 {
		for name, m := range models(rng) {
			step := m.DecodeStep()
			batch, sum := 1, 1
			for i := range 400 {
				if i%50 == 0 {
					batch = 1 + rng.Intn(8)
					sum = batch * rng.Intn(300)
					step.SetBatch(batch)
				}
				want := m.Decode(batch, sum)
				if want < 0 {
					t.Fatalf("%s: batch %d, sum %d is unknown", name, batch, sum)
				}
				if got := step.Fast(sum); got >= 0 && got != want {
					t.Fatalf("%s: Fast of batch %d, sum %d is %v, want %v", name, batch, sum, got, want)
				}
				if got := step.Ms(sum); got != want {
					t.Fatalf("%s: Ms of batch %d, sum %d is %v, want %v", name, batch, sum, got, want)
				}
				sum += batch
			}
		}
	}
}

func TestStepOfBatchNobodyGave(t *testing.T) {
	for name, m := range models(rand.New(rand.NewSource(5))) {
		step := m.DecodeStep()
		if got := step.Ms(10); got != Unknown {
			t.Errorf("%s: %v, want Unknown", name, got)
		}
		if got := m.Decode(0, 10); got != 0 {
			t.Errorf("%s: no sequences take %v", name, got)
		}
	}
}

func TestSourceRolesAndRatios(t *testing.T) {
	e := profiled(e18())
	e.SpeedupRatio, e.DecodeSpeedupRatio = 2, 4
	m := New(e)
	if got := m.Prefill(1, 10, 0); got != 9 {
		t.Errorf("prefill at ratio 2: %v, want 9", got)
	}
	want := fmath.Duration{Nanos: 863281}.Seconds() * 1000 // of 863281.25 ns
	if got := m.Decode(2, 19); got != want {
		t.Errorf("decode at ratio 8: %v, want %v", got, want)
	}
	e.Role = config.Decode
	if m = New(e); m.Prefill(1, 10, 0) != 0 || m.Decode(2, 19) == 0 {
		t.Error("a decode worker charges decoding only")
	}
	e.Role = config.Prefill
	if m = New(e); m.Prefill(1, 10, 0) == 0 || m.Decode(2, 19) != 0 {
		t.Error("a prefill worker charges prefill only")
	}
	step := m.DecodeStep()
	if step.Ms(19) != 0 || step.Fast(19) > 0 {
		t.Error("the step of a prefill worker takes time")
	}
}

func TestSourceSaturates(t *testing.T) {
	p := e18()
	p.PrefillTTFTMs = []float64{1e300, 1e305, 1.7e308}
	p.DecodeITLMs = []float64{-1e308, 1e308, 1e308, 1e308, 1e308, -1e308, 1e308, 1e308, 1e308}
	m := New(profiled(p))
	for tokens := range 200 {
		got := m.Prefill(1, tokens, 0) + m.Decode(1, tokens) + m.Decode(3, tokens)
		if !(got >= 0) || math.IsInf(got, 0) {
			t.Fatalf("%d tokens: %v", tokens, got)
		}
	}
}

func TestSourceCanBeZero(t *testing.T) {
	with := func(edit func(*config.Engine)) config.Engine {
		e := profiled(e18())
		edit(&e)
		return e
	}
	ttft := func(v ...float64) func(*config.Engine) {
		return func(e *config.Engine) { e.Timing.Profile.PrefillTTFTMs = v }
	}
	grid := func(edit func(*config.GridTable)) func(*config.Engine) {
		return func(e *config.Engine) {
			g := smallGrid()
			edit(g)
			e.Timing = config.Timing{Kind: config.Grid, Grid: g}
		}
	}
	for _, c := range []struct {
		name string
		e    config.Engine
		want bool
	}{
		{"profile", with(func(*config.Engine) {}), false},
		{"falling at the end", with(ttft(10, 14, 13)), true},
		{"a point at zero", with(ttft(10, 0, 13)), true},
		{"zero before the first point", with(ttft(1, 5, 6)), true}, // 1 token: -2 ms
		{"above zero before the first point", with(ttft(4, 5, 6)), false},
		{"falling, on a decode worker", with(func(e *config.Engine) { ttft(10, 14, 13)(e); e.Role = config.Decode }), false},
		{"decode of half a nanosecond", with(func(e *config.Engine) { e.DecodeSpeedupRatio = 2.1e6 }), true},
		{"the same on a prefill worker", with(func(e *config.Engine) { e.DecodeSpeedupRatio, e.Role = 2.1e6, config.Prefill }), false},
		{"grid", with(grid(func(*config.GridTable) {})), false},
		{"grid with a zero", with(grid(func(g *config.GridTable) { g.PrefillMs[3] = 0 })), true},
		{"grid with a zero step", with(grid(func(g *config.GridTable) { g.DecodeMs[3] = 0 })), true},
		{"external", with(func(e *config.Engine) { e.Timing = config.Timing{Kind: config.External} }), true},
		{"external decode", with(func(e *config.Engine) { e.Timing = config.Timing{Kind: config.External}; e.Role = config.Decode }), false},
	} {
		m := New(c.e)
		if got := m.CanBeZero(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCanBeZeroIsSafe: what is said never to be zero is not.
func TestCanBeZeroIsSafe(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	never := 0
	for range 3000 {
		m := New(profiled(randomProfile(rng)))
		if m.CanBeZero() {
			continue
		}
		never++
		for range 40 {
			tokens := 1 + rng.Intn(400)
			if m.Prefill(1, tokens, 0) == 0 || m.Decode(1, tokens) == 0 {
				t.Fatalf("%+v: %d tokens take no time", *m.source.profile, tokens)
			}
		}
	}
	if never < 100 {
		t.Errorf("only %d profiles that never vanish", never)
	}
}

func TestSourcesDoNotAllocate(t *testing.T) {
	for name, m := range models(rand.New(rand.NewSource(7))) {
		step := m.DecodeStep()
		step.SetBatch(3)
		if n := testing.AllocsPerRun(100, func() {
			for i := range 50 {
				sink += m.Prefill(2, 100+i, 3) + m.Decode(2, 100+i) + step.Fast(i) + step.Ms(i)
				p := Pass{StartMs: 1, Prompts: 2, ISL: 100 + i, Prefix: 3, Decodes: 2, SumLen: 100 + i}
				if _, ask := m.Ask(p); ask {
					sink += m.End(p)
				}
			}
			if m.CanBeZero() {
				sink++
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per run, want 0", name, n)
		}
	}
}

func BenchmarkSourceDecode(b *testing.B) {
	all := models(rand.New(rand.NewSource(8)))
	for _, name := range []string{"profile", "grid", "external"} {
		m := all[name]
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				sink += m.Decode(4, 4*(i&0xff))
			}
		})
		b.Run(name+"/step", func(b *testing.B) {
			step := m.DecodeStep()
			step.SetBatch(4)
			for i := range b.N {
				sink += step.Ms(4 * (i & 0xff))
			}
		})
	}
}

func BenchmarkSourcePrefill(b *testing.B) {
	all := models(rand.New(rand.NewSource(8)))
	for _, name := range []string{"profile", "grid"} {
		m := all[name]
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				sink += m.Prefill(2, 100+i&0xff, 50)
			}
		})
	}
}
