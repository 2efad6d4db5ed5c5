package stats

import (
	"math"
	"math/big"
	"slices"

	"github.com/dryserve/dryserve/core/fmath"
)

// naive keeps every gap and summarises as replay notes §9.1 write it: one
// logarithm per gap and rate, one division per mean.
type naive struct{ gaps, rates []float64 }

func (v *naive) add(times []float64) {
	for i := 1; i < len(times); i++ {
		x := times[i] - times[i-1]
		if x < 0x1p-1000 {
			x = 0
		}
		v.gaps = append(v.gaps, x)
		if x > 0 {
			v.rates = append(v.rates, 1000/x)
		}
	}
}

func naiveKey(x float64) float64 {
	a, one := 0.001, 1.0
	inv := 1 / fmath.Log1p(2*a/(one-a))
	return math.Ceil(fmath.Log(x) * inv)
}

func naiveDist(samples []float64) Dist {
	if len(samples) == 0 {
		return Dist{}
	}
	mean, squares := 0.0, 0.0
	for i, x := range samples {
		d := x - mean
		mean += d / float64(i+1)
		squares += float64(d * (x - mean))
	}
	d := Dist{
		Mean: mean, Std: math.Sqrt(squares / float64(len(samples))),
		Min: slices.Min(samples), Max: slices.Max(samples),
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := func(percent float64) float64 {
		x := sorted[int(math.Round(float64(len(sorted)-1)*percent/100))]
		if x == 0 || len(sorted) == 1 {
			return x
		}
		a, one := 0.001, 1.0
		gamma := (one + a) / (one - a)
		inv := 1 / fmath.Log1p(2*a/(one-a))
		k := naiveKey(x)
		return libmExp(int64(k), fmath.Exp(k*(1/inv))) * (2 / (1 + gamma))
	}
	d.Median, d.P75, d.P90, d.P95, d.P99 = at(50), at(75), at(90), at(95), at(99)
	return d
}

// reciprocalBounds reports whether low <= 1/n <= high as real numbers.
func reciprocalBounds(n, low, high float64) bool {
	exact := new(big.Rat).Inv(new(big.Rat).SetFloat64(n))
	return new(big.Rat).SetFloat64(low).Cmp(exact) <= 0 && new(big.Rat).SetFloat64(high).Cmp(exact) >= 0
}
