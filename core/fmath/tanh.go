package fmath

import "math"

// tanhSmall is below which the series is used, tanhOne from where on the
// result is 1.
const (
	tanhSmall = 0x1p-8
	tanhOne   = 20.0
)

// Tanh is the hyperbolic tangent of x, within 0.51 units in the last place.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x || x == 0:
		return x
	case a < tanhSmall:
		s := float64(x * x)
		c := 62.0 / 2835
		c = float64(c*s) - 17.0/315
		c = float64(c*s) + 2.0/15
		c = float64(c*s) - 1.0/3
		return x + float64(x*float64(s*c))
	case a > tanhOne:
		return math.Copysign(1, x)
	}
	// (e^2a - 1) / (e^2a + 1), both as unevaluated sums.
	hi, lo := ExpSum(2 * a)
	nh, nl := twoSum(hi, -1)
	dh, dl := twoSum(hi, 1)
	q := nh / dh
	p, e := twoProd(q, dh)
	rest := (nh - p) - e + (nl + lo) - float64(q*(dl+lo))
	return math.Copysign(q+rest/dh, x)
}
