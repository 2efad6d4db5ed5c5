package fmath

import (
	"math"
	"math/big"
	"math/rand"
	"testing"
)

// refRoundSeconds is R of engine notes §8.1 in rational arithmetic.
func refRoundSeconds(seconds float64) Duration {
	if !(seconds > 0) {
		return Duration{}
	}
	if seconds >= 0x1p64 {
		return MaxDuration()
	}
	r := new(big.Rat).SetFloat64(seconds)
	r.Mul(r, big.NewRat(nanosPerSec, 1))
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	switch rest.Lsh(rest, 1).Cmp(r.Denom()) {
	case 1:
		n.Add(n, big.NewInt(1))
	case 0:
		n.Add(n, new(big.Int).And(n, big.NewInt(1)))
	}
	secs, nanos := new(big.Int).QuoRem(n, big.NewInt(nanosPerSec), new(big.Int))
	return Duration{secs.Uint64(), uint32(nanos.Uint64())}
}

func TestRoundSeconds(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	draws := []func() float64{
		func() float64 { return rng.Float64() * 0.1 },
		func() float64 { return math.Ldexp(1+rng.Float64(), rng.Intn(100)-34) },
		func() float64 { return float64(rng.Intn(1e9)) / 1e9 },
		func() float64 { return float64(rng.Intn(1e9)) / 1e9 * (1 + math.Ldexp(1, -52)) },
		// Exact ties: odd multiples of 2^-10 ns do not exist in seconds, but
		// k/2^n seconds with n > 9 are ties or close to them.
		func() float64 { return math.Ldexp(float64(rng.Intn(1<<20)), -10-rng.Intn(25)) },
		func() float64 { return (float64(rng.Intn(1e6)) + 0.5) / 1e9 },
		func() float64 { return float64(rng.Intn(1e6)) + float64(rng.Intn(1e9))/1e9 },
	}
	for i := range points(t, 120_000) {
		x := draws[i%len(draws)]()
		if got, want := RoundSeconds(x), refRoundSeconds(x); got != want {
			t.Fatalf("RoundSeconds(%x) = %v, want %v", x, got, want)
		}
	}
	for _, c := range []struct {
		x    float64
		want Duration
	}{
		{0, Duration{}}, {-1, Duration{}}, {math.NaN(), Duration{}}, {math.Inf(-1), Duration{}},
		{math.Inf(1), MaxDuration()}, {0x1p64, MaxDuration()}, {0x1.fffffffffffffp63, Duration{Secs: 0xfffffffffffff800}},
		{0x1p-31, Duration{}}, {0.5e-9, Duration{Nanos: 1}}, {math.Nextafter(0.5e-9, 0), Duration{}}, {5e-324, Duration{}},
		{0x1p-10, Duration{Nanos: 976562}}, {0x3p-10, Duration{Nanos: 2929688}}, // ties at .5
		{0x1.fffffffffffffp-1, Duration{Secs: 1}}, {1, Duration{Secs: 1}}, {0x1.fffffffffffffp52, Duration{Secs: 1<<53 - 1}},
		{0x1.fffffffffffffp51, Duration{Secs: 1<<52 - 1, Nanos: 5e8}},
	} {
		if got := RoundSeconds(c.x); got != c.want {
			t.Errorf("RoundSeconds(%x) = %v, want %v", c.x, got, c.want)
		}
		if got := refRoundSeconds(c.x); got != c.want {
			t.Errorf("the reference gives %v at %x, want %v", got, c.x, c.want)
		}
	}
}

// TestModeledMsFastPath compares the fast path with the exact one, with most
// draws on or next to rounding ties.
func TestModeledMsFastPath(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	ratios := []float64{1, 1, 0, -1, 2, 3, 0.5, 1.7, 10, 1e3, 1e9, 1e300, 5e-324, 0.01, 7.25, math.Inf(1), math.NaN()}
	nudge := func(x float64) float64 {
		for range rng.Intn(4) {
			x = math.Nextafter(x, math.Inf(2*rng.Intn(2)-1))
		}
		return x
	}
	draws := []func() float64{
		func() float64 { return rng.Float64() * 50 },
		func() float64 { return nudge(float64(rng.Intn(1e9)) / 1e6) },
		func() float64 { return nudge((float64(rng.Intn(1e8)) + 0.5) / 1e6) },
		func() float64 { return nudge(math.Ldexp(float64(rng.Intn(1<<16)), -9-rng.Intn(12)) * 1000) },
		func() float64 { return rng.Float64() * 4000 },
		func() float64 { return nudge(999 + rng.Float64()) },
		func() float64 { return math.Exp(rng.Float64()*80 - 20) },
		func() float64 { return float64(rng.Intn(40)) * 0.125e-6 },
	}
	for i := range points(t, 1_000_000) {
		raw, ratio := draws[i%len(draws)](), ratios[rng.Intn(len(ratios))]
		if got, want := ModeledMs(raw, ratio), modeledExact(raw, ratio); !same(got, want) {
			t.Fatalf("ModeledMs(%x, %v) = %x, want %x", raw, ratio, got, want)
		}
	}
	for _, raw := range []float64{0, -1, math.NaN(), math.Inf(1), math.MaxFloat64, 5e-324} {
		for _, ratio := range ratios {
			if got, want := ModeledMs(raw, ratio), modeledExact(raw, ratio); !same(got, want) {
				t.Errorf("ModeledMs(%v, %v) = %v, want %v", raw, ratio, got, want)
			}
		}
	}
}

// TestModeledMsKnown holds values seen in the reference.
func TestModeledMsKnown(t *testing.T) {
	for _, c := range []struct{ raw, ratio, want float64 }{
		{10, 1, 10}, {0.0000005, 1, 0}, {0.00000050001, 1, 1.0000000000000002e-06}, {0.0000015, 1, 1.0000000000000002e-06},
		{10, 1e9, 0}, {16.5, 1e300, 0}, {1e20, 1, 1e20}, {1.8e22, 1, 1.8e22},
		{16.5, 1e-20, 1.6500000000000003e+21}, {2.5, 3, 0.833333}, {2.5, 0, 2.5},
		{2e22, 1, MaxModeledMs}, // the reference gives up here
	} {
		if got := ModeledMs(c.raw, c.ratio); got != c.want {
			t.Errorf("ModeledMs(%v, %v) = %v, want %v", c.raw, c.ratio, got, c.want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		sink += Exp(1.25) + Log(1.75) + Log1p(0.002) + Exp(-740) + ModeledMs(16.5, 3) + modeledExact(16.5, 3)
	}); n != 0 {
		t.Errorf("%v allocations per run, want 0", n)
	}
}

func BenchmarkModeledMs(b *testing.B) {
	for i := range b.N {
		sink += ModeledMs(float64(i&1023)*0.0173, 1)
	}
}

func BenchmarkModeledHalved(b *testing.B) { // half of the calls are ties
	for i := range b.N {
		sink += ModeledMs(float64(i&1023)*0.017301, 2)
	}
}

func BenchmarkModeledExact(b *testing.B) {
	for i := range b.N {
		sink += modeledExact(float64(i&1023)*0.0173, 3)
	}
}
