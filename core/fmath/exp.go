package fmath

import "math"

const (
	expBits = 7 // the reduced argument is within ±ln2/2^(expBits+1)

	// roundMagic added to and subtracted from a float64 below 2^51 rounds it
	// to an integer, ties to even.
	roundMagic = 0x1.8p52

	// ln2/128 in three parts of 35, 35 and 53 bits: the products of the first
	// two with an 18-bit integer are exact.
	ln2x128A = 0x1.62e42fef8p-8
	ln2x128B = 0x1.1cf79abc8p-43
	ln2x128C = 0x1.e3b39803f2f6bp-79

	// expErr bounds the relative error of expNear. The largest part is the
	// rounding of r²/2 and of the sums it enters, 2^-53 r²/2 each, with
	// |r| <= 2^-8.5.
	expErr = 0x1p-66

	expOverflow  = 709.7827128933841 // above: +Inf
	expUnderflow = -745.2            // below: 0
)

// expCell is 2^(j/128) as an unevaluated sum.
type expCell struct{ hi, lo float64 }

// Exp is e^x, correctly rounded (to nearest, ties to even), subnormal results
// included. Exp(+Inf) is +Inf, Exp(-Inf) is 0.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expOverflow:
		return math.Inf(1)
	case x < expUnderflow:
		return 0
	case math.Abs(x) < 0x1p-54:
		return 1 + x
	}
	hi, lo, k := expNear(x)
	if k > -1000 {
		if v, ok := settled(hi, lo, expErr); ok {
			return scale(v, k)
		}
	}
	w, k := expWide(wideOf(x), x < 0)
	return w.round(k)
}

// ExpSum is e^x as an unevaluated sum: hi is near e^x and hi+lo has a relative
// error below 2^-66. |x| must be at most 600.
func ExpSum(x float64) (hi, lo float64) {
	hi, lo, k := expNear(x)
	return scale(hi, k), scale(lo, k)
}

// scale returns v*2^k for |v| < 2 and k in (-1000, 1024].
func scale(v float64, k int) float64 {
	if k > 1000 {
		v *= 0x1p100
		k -= 100
	}
	return v * math.Float64frombits(uint64(1023+k)<<mantBits)
}

// expNear is e^x = (hi+lo)*2^k with relative error below expErr (measured:
// 2^-69) and hi within a factor of 1.01 of [1, 2).
func expNear(x float64) (hi, lo float64, k int) {
	// x = n*ln2/128 + r with |r| <= ln2/256; r is rh+rl.
	n := (float64(x*(1<<expBits/math.Ln2)) + roundMagic) - roundMagic
	rh, rl := twoSum(x-float64(n*ln2x128A), -float64(n*ln2x128B))
	rl -= float64(n * ln2x128C)
	i := int(n)
	cell := expTable[i&(1<<expBits-1)]

	// e^r - 1 = rh + q.
	p := 1.0 / 5040
	p = float64(p*rh) + 1.0/720
	p = float64(p*rh) + 1.0/120
	p = float64(p*rh) + 1.0/24
	p = float64(p*rh) + 1.0/6
	p = float64(p*rh) + 1.0/2
	q := float64(p*float64(rh*rh)) + (rl + float64(rh*rl))

	// (hi+lo) = cell * (1 + rh + q).
	prod, prodErr := twoProd(cell.hi, rh)
	hi, lo = fastTwoSum(cell.hi, prod)
	lo += prodErr + (float64(cell.hi*q) + (cell.lo + float64(cell.lo*rh)))
	hi, lo = fastTwoSum(hi, lo)
	return hi, lo, i >> expBits
}
