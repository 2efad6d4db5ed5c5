// Package gen makes test and benchmark inputs from a seed: conversation traces
// in Mooncake's format and small random replay cases for differential tests.
//
// It owns its random streams and the arithmetic behind them, so one seed gives
// the same bytes on every target and with every Go release. It does not run
// anything and knows nothing of the simulator's own code, so a mistake in the
// simulator cannot hide in its inputs.
//
// Invariants: equal arguments give equal output; no function here reads a
// clock, the environment or math/rand; floating-point sums are written so
// that no target may fuse them.
package gen

import (
	"math"
	"math/bits"
)

// Rand is one splitmix64 stream. The zero value is the stream of seed 0.
type Rand struct{ state uint64 }

// NewRand returns the stream of a seed.
func NewRand(seed uint64) *Rand { return &Rand{state: seed} }

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Intn returns a number in [0, n) without bias; n must be positive.
func (r *Rand) Intn(n int) int {
	if n <= 0 {
		panic("gen: Intn needs a positive bound")
	}
	bound := uint64(n)
	hi, lo := bits.Mul64(r.Uint64(), bound)
	if lo < bound {
		for threshold := -bound % bound; lo < threshold; {
			hi, lo = bits.Mul64(r.Uint64(), bound)
		}
	}
	return int(hi)
}

// Between returns a number in [lo, hi]; an empty range gives lo.
func (r *Rand) Between(lo, hi int) int {
	if hi <= lo {
		return lo
	}
	return lo + r.Intn(hi-lo+1)
}

// Float64 returns a number in [0, 1) with 53 random bits.
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) * 0x1p-53 }

// Chance reports true with probability p.
func (r *Rand) Chance(p float64) bool { return r.Float64() < p }

// Exp returns an exponential variate of mean 1. It follows von Neumann: only
// uniform numbers are compared, so there is no logarithm whose last bit could
// depend on the target.
func (r *Rand) Exp() float64 {
	for whole := 0.0; ; whole++ {
		first := r.Float64()
		length, last := 1, first
		for {
			next := r.Float64()
			if next > last {
				break
			}
			length, last = length+1, next
		}
		if length%2 == 1 {
			return whole + first
		}
	}
}

// Normal returns an approximately normal variate of mean 0 and deviation 1:
// the sum of twelve uniform numbers, centred. Its tails end at 6.
func (r *Rand) Normal() float64 {
	sum := -6.0
	for range 12 {
		sum += r.Float64()
	}
	return sum
}

// LogNormal returns exp(mu + sigma*Normal()).
func (r *Rand) LogNormal(mu, sigma float64) float64 {
	return exp(mu + float64(sigma*r.Normal()))
}

// exp is e^x from exact operations only: x is split into k*ln2 + f, e^f is a
// Taylor sum, 2^k is a shift of the exponent. The relative error stays below
// 1e-14, and every target computes the same bits.
func exp(x float64) float64 {
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	f := x - float64(k*math.Ln2)
	sum := 1.0
	for i := 20; i >= 1; i-- {
		sum = 1 + float64(float64(f*sum)/float64(i))
	}
	return math.Ldexp(sum, int(k))
}

// pick returns one of the choices.
func pick[T any](r *Rand, choices ...T) T { return choices[r.Intn(len(choices))] }

// shuffle permutes s.
func shuffle[T any](r *Rand, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.Intn(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}
