package fmath

import "math"

const (
	// logOffset is the bit pattern of 0.6875: arguments are reduced to
	// [0.6875, 1.375), so that 1 lies well inside.
	logOffset  = 0x3fe6000000000000
	logBits    = 7
	mantBits   = 52
	mantMask   = 1<<mantBits - 1
	lowHalf    = 1<<27 - 1 // mantissa bits dropped to leave 26
	minNormal  = 0x1p-1022
	tinyFactor = 0x1p52

	// ln 2 in two parts; the first is a multiple of 2^-42, so that its product
	// with an exponent is exact.
	ln2Hi = 0x1.62e42fefa38p-1
	ln2Lo = 0x1.ef35793c7673p-45

	// logErr bounds the relative error of logNear. The largest part, near the
	// ends of the cells that touch 1, is the rounding of r³/3 and of the sum
	// it enters: 2^-53 r²/3 each of r, with |r| <= 2^-7.
	logErr = 0x1p-65
)

// logCell describes one of the 128 cells of [0.6875, 1.375): inv is close to
// the reciprocal of the cell's centre and has at most 13 significant bits, and
// hi+lo = -ln(inv) with hi a multiple of 2^-42. The two cells that touch 1
// have inv = 1.
type logCell struct{ inv, hi, lo float64 }

// Log is the natural logarithm of x, correctly rounded (to nearest, ties to
// even). Log(0) is -Inf, Log(x<0) is NaN, Log(+Inf) is +Inf.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x == 1:
		return 0
	}
	return logSum(x, 0)
}

// Log1p is ln(1+x), correctly rounded. Log1p(-1) is -Inf, Log1p(x<-1) is NaN,
// Log1p(+Inf) is +Inf; zeros keep their sign.
func Log1p(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < -1:
		return math.NaN()
	case x == -1:
		return math.Inf(-1)
	case math.Abs(x) < 0x1p-54:
		return x // ln(1+x) = x - x²/2 + …, less than half an ulp away
	}
	return logSum(twoSum(1, x))
}

// logSum is the correctly rounded logarithm of s+t, where |t| is at most half
// an ulp of s > 0 and s+t differs from 1.
func logSum(s, t float64) float64 {
	z, exp, cell := reduceLog(s)
	if t != 0 {
		t = math.Ldexp(t, -exp)
	}
	hi, lo := logNear(z, t, exp, cell)
	if v, ok := settled(hi, lo, logErr); ok {
		return v
	}
	return logExact(z, t, exp, hi, lo)
}

// reduceLog writes s > 0 as z*2^exp with z in [0.6875, 1.375) and finds the
// cell of z.
func reduceLog(s float64) (z float64, exp int, cell logCell) {
	if s < minNormal {
		s *= tinyFactor
		exp = -mantBits
	}
	bits := math.Float64bits(s)
	off := bits - logOffset
	shift := int64(off) >> mantBits
	z = math.Float64frombits(bits - uint64(shift)<<mantBits)
	return z, exp + int(shift), logTable[off>>(mantBits-logBits)&(1<<logBits-1)]
}

// logNear is ln((z+t)*2^exp) as an unevaluated sum with relative error below
// logErr (measured: 2^-66.9). z is in [0.6875, 1.375).
func logNear(z, t float64, exp int, cell logCell) (hi, lo float64) {
	// r = (z+t)*inv - 1, |r| < 2^-6.9. Both partial products are exact, and
	// so is the subtraction of 1.
	zh := math.Float64frombits(math.Float64bits(z) &^ lowHalf)
	zl := z - zh
	rh, rl := twoSum(float64(zh*cell.inv)-1, float64(zl*cell.inv))
	if t != 0 {
		rh, rl = twoSum(rh, rl+float64(t*cell.inv))
	}
	// ln(1+r) = r - r²/2 + r³(1/3 - r/4 + …): the first two terms exactly,
	// the rest in plain arithmetic.
	sq, sqErr := twoProd(rh, rh)
	p := -1.0 / 12
	p = float64(p*rh) + 1.0/11
	p = float64(p*rh) - 1.0/10
	p = float64(p*rh) + 1.0/9
	p = float64(p*rh) - 1.0/8
	p = float64(p*rh) + 1.0/7
	p = float64(p*rh) - 1.0/6
	p = float64(p*rh) + 1.0/5
	p = float64(p*rh) - 1.0/4
	p = float64(p*rh) + 1.0/3
	tail := float64(p * float64(sq*rh))
	tail += rl - (float64(rh*rl) + float64(0.5*sqErr))

	k := float64(exp)
	base := float64(k*ln2Hi) + cell.hi // exact: multiples of 2^-42
	s1, e1 := twoSum(base, rh)
	s2, e2 := twoSum(s1, float64(-0.5*sq))
	tail += float64(k*ln2Lo) + cell.lo
	return fastTwoSum(s2, (e1+e2)+tail)
}
