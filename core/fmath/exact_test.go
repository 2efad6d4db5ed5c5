package fmath

import (
	"math"
	"math/big"
	"math/rand"
	"testing"
)

// points is how many random arguments each function is compared at.
func points(t *testing.T, n int) int {
	if testing.Short() {
		return n / 50
	}
	return n
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }

// TestExpCorrectlyRounded compares Exp with the reference over the whole
// range, over the exponents of sketch keys, near 0 and in the subnormal range.
func TestExpCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	draws := []func() float64{
		func() float64 { return (rng.Float64() - 0.5) * 1480 },
		func() float64 { return float64(rng.Intn(40000)-20000) * 0.0020000006666670666 },
		func() float64 { return rng.NormFloat64() },
		func() float64 { return math.Ldexp(rng.Float64()-0.5, -rng.Intn(60)) },
		func() float64 { return -708 - rng.Float64()*37.5 },
		func() float64 { return math.Ldexp(float64(2*rng.Intn(1<<20)+1), -20-rng.Intn(60)) },
	}
	for i := range points(t, 210_000) {
		x := draws[i%len(draws)]()
		if got, want := Exp(x), refExpFloat(x); !same(got, want) {
			t.Fatalf("Exp(%x) = %x, want %x", x, got, want)
		}
	}
}

// TestLogCorrectlyRounded does the same for Log: all exponents, the range of
// gaps in ms and of tokens per second, both sides of 1, subnormals.
func TestLogCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	draws := []func() float64{
		func() float64 { return math.Float64frombits(uint64(rng.Int63n(0x7ff0000000000000))) },
		func() float64 { return math.Exp(rng.Float64()*44 - 14) },
		func() float64 { return 5 + 50*rng.Float64() },
		func() float64 { return 1 + math.Ldexp(rng.Float64()-0.5, -rng.Intn(50)) },
		func() float64 { return math.Float64frombits(uint64(rng.Int63n(1 << 52))) },
		func() float64 { return 0.5 + rng.Float64() },
	}
	for i := range points(t, 210_000) {
		x := draws[i%len(draws)]()
		if x == 0 {
			continue
		}
		if got, want := Log(x), refLogFloat(x); !same(got, want) {
			t.Fatalf("Log(%x) = %x, want %x", x, got, want)
		}
	}
}

func TestLog1pCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	draws := []func() float64{
		func() float64 { return math.Ldexp(rng.Float64()-0.5, -rng.Intn(60)) },
		func() float64 { return math.Ldexp(rng.Float64(), rng.Intn(1000)) },
		func() float64 { return 2*rng.Float64() - 1 },
		func() float64 { return -1 + math.Ldexp(1+rng.Float64(), -1-rng.Intn(52)) },
	}
	for i := range points(t, 40_000) {
		x := draws[i%len(draws)]()
		if got, want := Log1p(x), refLog1pFloat(x); !same(got, want) {
			t.Fatalf("Log1p(%x) = %x, want %x", x, got, want)
		}
	}
}

// TestSecondStep forces the second step, which random arguments take only once
// in a thousand times.
func TestSecondStep(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	for range points(t, 20_000) {
		x := (rng.Float64() - 0.5) * 1480
		w, k := expWide(wideOf(x), x < 0)
		if got, want := w.round(k), refExpFloat(x); !same(got, want) {
			t.Fatalf("second step of Exp(%x) = %x, want %x", x, got, want)
		}
		y := math.Float64frombits(uint64(rng.Int63n(0x7fe0000000000000)) + 1<<52)
		if rng.Intn(2) == 0 {
			y = 1 + math.Ldexp(rng.Float64()-0.5, -rng.Intn(50))
		}
		if y == 1 {
			continue
		}
		z, exp, cell := reduceLog(y)
		hi, lo := logNear(z, 0, exp, cell)
		// Any close value will do as the start.
		lo += float64(hi * 0x1p-58 * (rng.Float64() - 0.5))
		if got, want := logExact(z, 0, exp, hi, lo), refLogFloat(y); !same(got, want) {
			t.Fatalf("second step of Log(%x) = %x, want %x", y, got, want)
		}
	}
}

// TestFirstStepAccuracy measures the claims that settled relies on. The margin
// is for arguments not drawn.
func TestFirstStepAccuracy(t *testing.T) {
	rng := rand.New(rand.NewSource(5))
	worstExp, worstLog := 0.0, 0.0
	for i := range points(t, 30_000) {
		x := (rng.Float64() - 0.5) * 1400
		hi, lo, k := expNear(x)
		worstExp = max(worstExp, relativeError(hi, lo, new(big.Float).SetMantExp(refExp(bigOf(x)), -k)))
		if hi, lo := ExpSum(x * 0.85); i%8 == 0 {
			worstExp = max(worstExp, relativeError(hi, lo, refExp(bigOf(x*0.85))))
		}
		y := math.Float64frombits(uint64(rng.Int63n(0x7fe0000000000000)) + 1<<52)
		if i%2 == 0 {
			y = 0.99 + 0.02*rng.Float64()
		}
		z, exp, cell := reduceLog(y)
		hi, lo = logNear(z, 0, exp, cell)
		worstLog = max(worstLog, relativeError(hi, lo, refLog(bigOf(y), math.Log(y))))
	}
	t.Logf("worst relative errors: exp 2^%.2f, log 2^%.2f", math.Log2(worstExp), math.Log2(worstLog))
	if worstExp > expErr/4 || worstLog > logErr/2 {
		t.Errorf("first step less accurate than claimed: exp %g, log %g", worstExp, worstLog)
	}
}

func relativeError(hi, lo float64, want *big.Float) float64 {
	got := bigOf(hi)
	got.Add(got, bigOf(lo))
	got.Sub(got, want)
	got.Quo(got, want)
	e, _ := got.Float64()
	return math.Abs(e)
}

// TestHardCases holds arguments whose results lie extremely close to a
// rounding boundary, and the ends of the ranges.
func TestHardCases(t *testing.T) {
	exps := []float64{
		0x1p-53, 0x1.8p-53, 0x1p-52, -0x1p-54, -0x1p-53, -0x1.8p-54, 0x1.8p-54,
		0x1p-26, 0x1.8p-26, 0x1.4p-26, 0x1.cp-26, -0x1p-26, 0x1p-27, 0x1.0000000000001p-53,
		0x1.fffffffffffffp-54, 7.541752749995959e-10, expOverflow, math.Nextafter(expOverflow, 0),
		-708.3964185322641, -708.3964185322642, -745.1332191019411, -745.1332191019412, -744.4400719213812, 1, -1,
	}
	for i := 1; i < 2000; i++ {
		exps = append(exps, math.Ldexp(float64(i), -34), -math.Ldexp(float64(i), -34), math.Ldexp(float64(2*i+1), -27))
	}
	for _, x := range exps {
		if got, want := Exp(x), refExpFloat(x); !same(got, want) {
			t.Errorf("Exp(%x) = %x, want %x", x, got, want)
		}
	}
	logs := []float64{0x1.62a88613629b5p+678, 0x1.62a88613629b6p+678, math.MaxFloat64, minNormal, 5e-324, math.E, 2, 10, 0.1}
	for i := 1; i < 2000; i++ {
		logs = append(logs, 1+math.Ldexp(float64(i), -52), 1-math.Ldexp(float64(i), -53), 1+math.Ldexp(float64(i), -26), float64(i+1))
		logs = append(logs, math.Ldexp(1, i/2-500))
	}
	for _, x := range logs {
		if x == 1 {
			continue
		}
		if got, want := Log(x), refLogFloat(x); !same(got, want) {
			t.Errorf("Log(%x) = %x, want %x", x, got, want)
		}
	}
	for i := 1; i < 2000; i++ {
		for _, x := range []float64{math.Ldexp(float64(i), -53), -math.Ldexp(float64(i), -54), math.Ldexp(float64(i), 30)} {
			if got, want := Log1p(x), refLog1pFloat(x); !same(got, want) {
				t.Errorf("Log1p(%x) = %x, want %x", x, got, want)
			}
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1}, {"Exp(-0)", Exp(math.Copysign(0, -1)), 1}, {"Exp(inf)", Exp(inf), inf},
		{"Exp(-inf)", Exp(-inf), 0}, {"Exp(nan)", Exp(nan), nan}, {"Exp(710)", Exp(710), inf},
		{"Exp(over)", Exp(math.Nextafter(expOverflow, 1e3)), inf}, {"Exp(-746)", Exp(-746), 0},
		{"Exp(5e-324)", Exp(5e-324), 1}, {"Exp(-5e-324)", Exp(-5e-324), 1},
		{"Log(0)", Log(0), -inf}, {"Log(-0)", Log(math.Copysign(0, -1)), -inf}, {"Log(1)", Log(1), 0},
		{"Log(-1)", Log(-1), nan}, {"Log(-inf)", Log(-inf), nan}, {"Log(inf)", Log(inf), inf}, {"Log(nan)", Log(nan), nan},
		{"Log1p(0)", Log1p(0), 0}, {"Log1p(-0)", Log1p(math.Copysign(0, -1)), math.Copysign(0, -1)},
		{"Log1p(-1)", Log1p(-1), -inf}, {"Log1p(-2)", Log1p(-2), nan}, {"Log1p(inf)", Log1p(inf), inf},
		{"Log1p(nan)", Log1p(nan), nan}, {"Log1p(5e-324)", Log1p(5e-324), 5e-324},
	} {
		if !same(c.got, c.want) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestIntegerConversionSaturates(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x float64
		i int64
		u uint64
	}{
		{0, 0, 0}, {-0.9, 0, 0}, {1.9, 1, 1}, {-1.9, -1, 0}, {nan, 0, 0},
		{inf, math.MaxInt64, math.MaxUint64}, {-inf, math.MinInt64, 0},
		{0x1p63, math.MaxInt64, 1 << 63}, {-0x1p63, math.MinInt64, 0}, {0x1.fffffffffffffp62, 0x7ffffffffffffc00, 0x7ffffffffffffc00},
		{0x1.8p63, math.MaxInt64, 3 << 62}, {0x1p64, math.MaxInt64, math.MaxUint64}, {0x1.fffffffffffffp63, math.MaxInt64, 0xfffffffffffff800},
		{1e300, math.MaxInt64, math.MaxUint64}, {-1e300, math.MinInt64, 0},
	} {
		if got := Int64(c.x); got != c.i {
			t.Errorf("Int64(%v) = %d, want %d", c.x, got, c.i)
		}
		if got := Uint64(c.x); got != c.u {
			t.Errorf("Uint64(%v) = %d, want %d", c.x, got, c.u)
		}
	}
}

var sink float64

func BenchmarkExp(b *testing.B) {
	for i := range b.N {
		sink += Exp(float64(i&1023) * 0.01)
	}
}

func BenchmarkLog(b *testing.B) {
	for i := range b.N {
		sink += Log(float64(i&1023) + 5.5)
	}
}
