package fmath

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigTanh is tanh(x) to about 200 bits, for |x| <= 25.
func bigTanh(x float64) *big.Float {
	const prec = 260
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(v) }
	// e^2x by the series of 2x/2^10, squared ten times.
	y := num(2 * x)
	y.SetMantExp(y, -10)
	sum, term := num(1), num(1)
	for k := 1; k < 60; k++ {
		term.Mul(term, y)
		term.Quo(term, num(float64(k)))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	top := new(big.Float).SetPrec(prec).Sub(sum, num(1))
	return top.Quo(top, new(big.Float).SetPrec(prec).Add(sum, num(1)))
}

func TestTanh(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	for i := range 20000 {
		x := (r.Float64() - 0.5) * math.Ldexp(40, -i%30)
		got := Tanh(x)
		want := bigTanh(x)
		near, _ := want.Float64()
		ulp := math.Nextafter(math.Abs(near), 2) - math.Abs(near)
		off, _ := new(big.Float).Sub(want, new(big.Float).SetFloat64(got)).Float64()
		if math.Abs(off) > 0.51*ulp {
			t.Fatalf("tanh(%v) is %v, %v units off", x, got, off/ulp)
		}
		if Tanh(-x) != -got {
			t.Fatalf("tanh(%v) is not odd", x)
		}
	}
	for x, want := range map[float64]float64{0: 0, 21: 1, math.Inf(1): 1, math.Inf(-1): -1, 0x1p-40: 0x1p-40} {
		if got := Tanh(x); got != want {
			t.Errorf("tanh(%v) is %v", x, got)
		}
	}
	if !math.IsNaN(Tanh(math.NaN())) || !math.Signbit(Tanh(math.Copysign(0, -1))) {
		t.Error("NaN or -0 is lost")
	}
}
