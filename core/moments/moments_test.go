package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestVarianceIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, top := range []int64{1, 10, 1 << 20, 1<<31 - 1, 1 << 44} {
		for n := range 40 {
			var m Moments
			var all []int
			for range n {
				x := int(rng.Int64N(top))
				all = append(all, x)
				m.Add(x)
			}
			gone := rng.IntN(len(all) + 1)
			for _, x := range all[:gone] {
				m.Sub(x)
			}
			if got, want := m.Variance(), variance(all[gone:]); math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("%d lengths below %d: %v, want %v", n-gone, top, got, want)
			}
		}
	}
}

func variance(lengths []int) float64 {
	if len(lengths) == 0 {
		return 0
	}
	sum, squares := new(big.Int), new(big.Int)
	for _, x := range lengths {
		b := big.NewInt(int64(x))
		sum.Add(sum, b)
		squares.Add(squares, new(big.Int).Mul(b, b))
	}
	squares.Mul(squares, big.NewInt(int64(len(lengths))))
	numerator, _ := new(big.Float).SetInt(squares.Sub(squares, sum.Mul(sum, sum))).Float64()
	return numerator / float64(len(lengths)) / float64(len(lengths))
}

func TestFloat128RoundsToNearestEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	check := func(hi, low uint64) {
		t.Helper()
		x := new(big.Int).SetUint64(hi)
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(low))
		want, _ := new(big.Float).SetInt(x).Float64()
		if got := float128(hi, low); got != want {
			t.Errorf("%d*2^64 + %d: %v, want %v", hi, low, got, want)
		}
	}
	for shift := range 64 {
		for range 20 {
			check(rng.Uint64()>>shift, rng.Uint64())
		}
		half := uint64(1) << 63 >> shift // ties and their neighbours
		for _, low := range []uint64{0, 1, half - 1, half, half + 1, math.MaxUint64} {
			check(1<<53, low)
			check(1<<53+1, low)
			check(1<<52+uint64(shift), low)
			check(1, low)
			check(math.MaxUint64>>shift, low)
		}
	}
}

func TestPlus(t *testing.T) {
	var a, b, both Moments
	for i := range 20 {
		x := 1<<40 + i*i*i
		if i%3 == 0 {
			a.Add(x)
		} else {
			b.Add(x)
		}
		both.Add(x)
	}
	if got := a.Plus(b); got != both || got.N() != 20 || got.Sum() != a.Sum()+b.Sum() {
		t.Errorf("%+v and %+v make %+v, want %+v", a, b, got, both)
	}
}
