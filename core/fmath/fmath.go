// Package fmath is the floating-point ground of the core: elementary functions
// whose result is the correctly rounded one, durations in whole nanoseconds,
// and float to integer conversion that saturates.
//
// It owns everything whose bits would otherwise depend on the target: the
// standard library's Exp and Log differ between amd64, arm64 and wasm, and Go
// leaves out-of-range conversions to the hardware. It does not own models,
// clocks or statistics.
//
// Invariants: every function is pure, allocates nothing, and gives the same
// bits on every target. Products are written float64(a*b) so that no compiler
// fuses them with an addition; the error-free transformations below are wrong
// otherwise. The tables are never written to.
package fmath

import "math"

// splitter cuts a float64 into two halves of 26 bits (Dekker).
const splitter = 1<<27 + 1

// twoSum returns s = fl(a+b) and the exact error e, so that s+e = a+b.
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	t := s - a
	return s, (a - (s - t)) + (b - t)
}

// fastTwoSum is twoSum for |a| >= |b| or a = 0.
func fastTwoSum(a, b float64) (s, e float64) {
	s = a + b
	return s, b - (s - a)
}

// split returns a = h+l where h and l have at most 26 significant bits.
// |a| must be below 2^990.
func split(a float64) (h, l float64) {
	t := float64(splitter * a)
	h = t - (t - a)
	return h, a - h
}

// twoProd returns p = fl(a*b) and the exact error e, so that p+e = a*b. The
// product must be far from the ends of the exponent range.
func twoProd(a, b float64) (p, e float64) {
	p = float64(a * b)
	ah, al := split(a)
	bh, bl := split(b)
	e = float64(ah*bh) - p
	e += float64(ah * bl)
	e += float64(al * bh)
	return p, e + float64(al*bl)
}

// settled rounds the value hi+lo, known to the relative accuracy err, to one
// float64; ok is false when the uncertainty spans a rounding boundary.
func settled(hi, lo, err float64) (v float64, ok bool) {
	slack := float64(math.Abs(hi) * err)
	v = hi + (lo - slack)
	return v, v == hi+(lo+slack)
}

// Int64 converts x to the integer towards zero; values outside the range of
// int64 give its nearest end and NaN gives 0, on every target.
func Int64(x float64) int64 {
	switch {
	case x != x:
		return 0
	case x >= 0x1p63:
		return math.MaxInt64
	case x < -0x1p63:
		return math.MinInt64
	}
	return int64(x)
}

// Uint64 converts x to the integer towards zero; values outside the range of
// uint64 give its nearest end and NaN gives 0, on every target.
func Uint64(x float64) uint64 {
	switch {
	case !(x > 0):
		return 0
	case x >= 0x1p64:
		return math.MaxUint64
	case x >= 0x1p63:
		return 1<<63 | uint64(int64(x-0x1p63))
	}
	return uint64(int64(x))
}
