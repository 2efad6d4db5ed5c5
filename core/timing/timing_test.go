package timing

import (
	"encoding/json"
	"math"
	"math/rand"
	"os"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

func engine(blocks, size int) config.Engine {
	return config.Engine{NumGPUBlocks: blocks, BlockSize: size, SpeedupRatio: 1, DecodeSpeedupRatio: 1}
}

// recorded is the configuration part of the recorded answers in testdata.
type recorded struct {
	Blocks, Size           int
	Role                   string
	Speedup, DecodeSpeedup float64
	Fixed                  []float64 // prefill and decode ms; absent: polynomial
}

func (r recorded) model() Model {
	e := engine(r.Blocks, r.Size)
	e.SpeedupRatio, e.DecodeSpeedupRatio = r.Speedup, r.DecodeSpeedup
	switch r.Role {
	case "prefill":
		e.Role = config.Prefill
	case "decode":
		e.Role = config.Decode
	}
	if r.Fixed != nil {
		e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: r.Fixed[0], DecodeMs: r.Fixed[1]}
	}
	return New(e)
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// TestRecordedPasses checks passes of the reference's engine scenarios: at
// most one prompt prefilled, any number of sequences decoded.
func TestRecordedPasses(t *testing.T) {
	var passes []struct {
		recorded
		Scenario                 string
		Start, End               float64
		NP, ISL, Prefix, ND, Sum int
	}
	load(t, "passes.json", &passes)
	if len(passes) < 100 {
		t.Fatalf("%d passes, want at least 100", len(passes))
	}
	for _, p := range passes {
		m := p.model()
		end := m.End(Pass{p.Start, p.NP, p.ISL, p.Prefix, p.ND, p.Sum})
		if end != p.End {
			t.Errorf("%s: pass from %v ends at %v, want %v", p.Scenario, p.Start, end, p.End)
		}
	}
}

// TestRecordedChains replays single requests of the reference, hundreds of
// decode passes each, with speed-up ratios from 1e-17 to 6e4.
func TestRecordedChains(t *testing.T) {
	var chains []struct {
		recorded
		Prompt, Out int
		First, Last float64
	}
	load(t, "chains.json", &chains)
	if len(chains) < 16 {
		t.Fatalf("%d chains, want at least 16", len(chains))
	}
	for _, c := range chains {
		m := c.model()
		now := m.Prefill(1, c.Prompt, 0)
		if now != c.First {
			t.Errorf("%+v: first token at %v", c, now)
		}
		for i := 1; i < c.Out; i++ {
			now += m.Decode(1, c.Prompt+i)
		}
		if now != c.Last {
			t.Errorf("%+v: last token at %v", c, now)
		}
	}
}

func TestKnownValues(t *testing.T) {
	m := New(engine(16, 4))
	scaled := engine(16, 4)
	scaled.SpeedupRatio, scaled.DecodeSpeedupRatio = 3, 2
	scaled.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 2.5, DecodeMs: 0.75}
	s := New(scaled)
	noPool := New(engine(0, 4))
	for _, c := range []struct {
		name string
		got  float64 // ms
		want uint32  // ns
	}{
		{"prefill of 10", m.Prefill(1, 10, 0), 16653296},
		{"prefill of 2, means floored", m.Prefill(2, 16, 0), 16744463},
		{"prefill, odd sums", m.Prefill(2, 25, 13), 16683682},
		{"no prompts", m.Prefill(0, 0, 0), 0},
		{"all cached", m.Prefill(2, 24, 24), 0},
		{"means floor together", m.Prefill(2, 13, 12), 0},
		{"decode 11 of 64", m.Decode(1, 11), 14262583},
		{"decode of a full pool", m.Decode(3, 64), 34010000},
		{"decode beyond the pool", m.Decode(3, 6400), 34010000},
		{"decode of nothing resident", m.Decode(1, 0), 5740000},
		{"no sequences", m.Decode(0, 12), 0},
		{"a pool of nothing is full", noPool.Decode(1, 0), 34010000},
		{"E19 prefill", s.Prefill(1, 5, 0), 833333},
		{"E19 decode", s.Decode(1, 6), 125000},
	} {
		if want := (fmath.Duration{Nanos: c.want}).Seconds() * 1000; c.got != want {
			t.Errorf("%s: %v ms, want %v", c.name, c.got, want)
		}
	}
}

// refDecode is the model as engine notes §8.1 to §8.4 write it.
func refDecode(e config.Engine, batch, sumLen int) float64 {
	if batch == 0 || e.Role == config.Prefill {
		return 0
	}
	raw := e.Timing.DecodeMs
	if e.Timing.Kind == config.Polynomial {
		p := 1.0
		if total := float64(e.NumGPUBlocks * e.BlockSize); total != 0 {
			p = math.Min(float64(sumLen)/total, 1)
		}
		square := -25.74 * float64(p*p)
		slope := 54.01 * p
		raw = math.Max(1, float64(square)+float64(slope)+5.74)
	}
	ratio := e.SpeedupRatio * e.DecodeSpeedupRatio
	d := fmath.RoundSeconds(raw / 1000)
	if ratio > 0 && (d.Secs > 0 || d.Nanos > 0) {
		d = fmath.RoundSeconds(d.Seconds() / ratio)
	}
	ms := d.Seconds() * 1000
	return fmath.RoundSeconds(ms/1000).Seconds() * 1000
}

// TestDecodeEqualsReference draws configurations and totals, also such that
// many durations are rounding ties, and compares all three ways to ask.
func TestDecodeEqualsReference(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	ratios := []float64{1, 1, 1, 0, 2, 4, 0.5, 3, 1.7, 0.001, 1e-12, 1e6, 1e9, 1e300, 5e-324}
	fixed := []float64{0, 1, 10, 0.75, 0.5e-6, 1.5e-6, 2.5e-6, 989.9, 990.1, 1e15, 1e300}
	calls, undecided := 0, 0
	for range 1500 {
		e := engine(1+rng.Intn(20000), 1<<rng.Intn(8))
		e.SpeedupRatio = ratios[rng.Intn(len(ratios))]
		e.DecodeSpeedupRatio = ratios[rng.Intn(4)]
		if rng.Intn(3) == 0 {
			e.Timing = config.Timing{Kind: config.Fixed, DecodeMs: fixed[rng.Intn(len(fixed))]}
		}
		if rng.Intn(20) == 0 {
			e.Role = config.Prefill
		}
		total := e.NumGPUBlocks * e.BlockSize
		m := New(e)
		step := m.DecodeStep()
		for range 500 {
			sum := rng.Intn(total + total/8 + 1)
			want := refDecode(e, 1, sum)
			if got := m.Decode(1, sum); got != want {
				t.Fatalf("%+v: Decode of %d is %v, want %v", e, sum, got, want)
			}
			if got := step.Ms(sum); got != want {
				t.Fatalf("%+v: Ms of %d is %v, want %v", e, sum, got, want)
			}
			got := step.Fast(sum)
			if got >= 0 && got != want {
				t.Fatalf("%+v: Fast of %d is %v, want %v", e, sum, got, want)
			}
			if e.SpeedupRatio == 1 && e.DecodeSpeedupRatio == 1 && e.Timing.Kind == config.Polynomial {
				calls++
				if got < 0 {
					undecided++
				}
			}
		}
	}
	if calls == 0 || undecided > calls/1000 {
		t.Errorf("Fast left %d of %d calls undecided", undecided, calls)
	}
}

// TestFastPathError measures the claim behind nearTie: the fast path's value
// in ns is within 2^-21 of the reference's.
func TestFastPathError(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	worst := 0.0
	for range 200_000 {
		e := engine(1+rng.Intn(20000), 1<<rng.Intn(8))
		m := New(e)
		s := m.DecodeStep()
		sum := rng.Intn(s.total + 1)
		p := float64(sum) * s.perToken
		y := float64((float64(s.square*p)+s.slope)*p) + s.base
		worst = max(worst, math.Abs(y-s.rawMs(sum)/1000*1e9))
	}
	t.Logf("worst difference 2^%.1f ns", math.Log2(worst))
	if worst > 0x1p-22 {
		t.Errorf("worst difference %g ns, want under 2^-22", worst)
	}
}

func TestCanBeZero(t *testing.T) {
	fixed := func(prefill, decode, ratio float64, role config.Role) config.Engine {
		e := engine(16, 4)
		e.SpeedupRatio, e.Role = ratio, role
		e.Timing = config.Timing{Kind: config.Fixed, PrefillMs: prefill, DecodeMs: decode}
		return e
	}
	fast := engine(16, 4)
	fast.SpeedupRatio = 1e9
	quick := engine(16, 4)
	quick.DecodeSpeedupRatio = 1.2e7
	for _, c := range []struct {
		name string
		e    config.Engine
		want bool
	}{
		{"polynomial", engine(16, 4), false},
		{"polynomial, speed-up 1e9", fast, true},
		{"polynomial, decode under half a nanosecond", quick, true},
		{"fixed", fixed(10, 2, 1, config.Aggregated), false},
		{"fixed prefill 0", fixed(0, 2, 1, config.Aggregated), true},
		{"fixed decode 0", fixed(10, 0, 1, config.Aggregated), true},
		{"fixed prefill 0 on a decode worker", fixed(0, 2, 1, config.Decode), false},
		{"fixed decode 0 on a prefill worker", fixed(10, 0, 1, config.Prefill), false},
		{"fixed, less than half a nanosecond", fixed(10, 0.4e-6, 1, config.Aggregated), true},
		{"fixed, scaled to less than half a nanosecond", fixed(10, 1, 2.1e6, config.Aggregated), true},
		{"fixed, scaled to a nanosecond", fixed(10, 1, 1e6, config.Aggregated), false},
		{"ratio 0 does not scale", fixed(10, 1, 0, config.Aggregated), false},
	} {
		m := New(c.e)
		if got := m.CanBeZero(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

var sink float64

func TestNoAllocations(t *testing.T) {
	m := New(engine(512, 16))
	e := engine(512, 16)
	e.SpeedupRatio = 2
	h := New(e)
	if n := testing.AllocsPerRun(100, func() {
		step := m.DecodeStep()
		for i := range 50 {
			sink += m.Prefill(2, 100+i, 3) + m.Decode(2, 100+i) + h.Decode(2, 100+i) + step.Fast(i) + step.Ms(i)
		}
		if m.CanBeZero() {
			sink++
		}
	}); n != 0 {
		t.Errorf("%v allocations per run, want 0", n)
	}
}

func benchmarkDecode(b *testing.B, ratio float64) {
	e := engine(16384, 64)
	e.SpeedupRatio = ratio
	m := New(e)
	now := 0.0
	for i := range b.N {
		now += m.Decode(79, 200_000+i&0xfff*79)
	}
	sink = now
}

func BenchmarkDecode(b *testing.B)       { benchmarkDecode(b, 1) }
func BenchmarkDecodeScaled(b *testing.B) { benchmarkDecode(b, 1.7) }
func BenchmarkDecodeHalved(b *testing.B) { benchmarkDecode(b, 2) } // half of the calls are ties

func BenchmarkDecodeStep(b *testing.B) {
	m := New(engine(16384, 64))
	step := m.DecodeStep()
	now := 0.0
	for i := range b.N {
		sum := 200_000 + i&0xfff*79
		ms := step.Fast(sum)
		if ms < 0 {
			ms = step.Ms(sum)
		}
		now += ms
	}
	sink = now
}

func BenchmarkPrefill(b *testing.B) {
	m := New(engine(16384, 64))
	for i := range b.N {
		sink += m.Prefill(2, 2000+i&0xfff, 512)
	}
}
