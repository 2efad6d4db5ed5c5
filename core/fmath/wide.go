package fmath

import (
	"math"
	"math/bits"
)

// wide is an unsigned fixed-point number, little-endian limbs, with one limb
// before the point and 192 bits after it. It carries the second step of Exp
// and Log, taken when the first does not decide the rounding (once in a few
// thousand calls). It is good to 2^-170, and no float64 needs more than about
// 120 bits to be decided, so the second step needs no test of its own.
type wide [4]uint64

// wideOne is 1.
var wideOne = wide{0, 0, 0, 1}

// wideLn2 is ln 2 cut to 192 bits.
var wideLn2 = wide{0x40f343267298b62d, 0xc9e3b39803f2f6af, 0xb17217f7d1cf79ab, 0}

// wideOf returns |x| cut below 2^-192; |x| must be below 2^64.
func wideOf(x float64) (w wide) {
	b := math.Float64bits(x) &^ (1 << 63)
	m := b & mantMask
	e := int(b >> mantBits)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << mantBits
	}
	// x = m * 2^(e-1075): bit 0 of m belongs at bit e-1075+192 of w.
	return wide{m}.shl(e - 1075 + 192)
}

// shl returns w*2^n for n of either sign; bits that leave at either end are lost.
func (w wide) shl(n int) (r wide) {
	limbs, rest := n>>6, uint(n&63) // floor, also for n < 0
	for i := range r {
		if j := i - limbs; j >= 0 && j < len(w) {
			r[i] = w[j] << rest
		}
		if j := i - limbs - 1; j >= 0 && j < len(w) && rest > 0 {
			r[i] |= w[j] >> (64 - rest)
		}
	}
	return r
}

func (w wide) add(v wide) (r wide) {
	var c uint64
	for i := range r {
		r[i], c = bits.Add64(w[i], v[i], c)
	}
	return r
}

// sub returns w-v and whether it is negative; then r is its two's complement.
func (w wide) sub(v wide) (r wide, negative bool) {
	var b uint64
	for i := range r {
		r[i], b = bits.Sub64(w[i], v[i], b)
	}
	return r, b != 0
}

// diff returns |w-v| and whether w < v.
func (w wide) diff(v wide) (r wide, negative bool) {
	r, negative = w.sub(v)
	if negative {
		r, _ = v.sub(w)
	}
	return r, negative
}

// mul returns w*v cut below 2^-192; the product must be below 2^64.
func (w wide) mul(v wide) (r wide) {
	var p [8]uint64
	for i, a := range w {
		var carry uint64
		for j, b := range v {
			hi, lo := bits.Mul64(a, b)
			lo, c := bits.Add64(lo, p[i+j], 0)
			hi += c
			lo, c = bits.Add64(lo, carry, 0)
			p[i+j] = lo
			carry = hi + c
		}
		p[i+4] = carry
	}
	return wide(p[3:7])
}

// quo returns w/n.
func (w wide) quo(n uint64) (r wide) {
	var rem uint64
	for i := len(w) - 1; i >= 0; i-- {
		r[i], rem = bits.Div64(rem, w[i], n)
	}
	return r
}

// times returns w*n; the product must be below 2^64.
func (w wide) times(n uint64) (r wide) {
	var carry uint64
	for i := range w {
		hi, lo := bits.Mul64(w[i], n)
		var c uint64
		r[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return r
}

// topBit is the index of the highest set bit, -1 if there is none.
func (w wide) topBit() int {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] != 0 {
			return i*64 + bits.Len64(w[i]) - 1
		}
	}
	return -1
}

// round returns w*2^exp as the nearest float64, also in the subnormal range
// and beyond the largest number.
func (w wide) round(exp int) float64 {
	top := w.topBit()
	if top < 0 {
		return 0
	}
	// Keep the bits from index low up: 53 of them, or down to 2^-1074.
	low := max(top-mantBits, -1074+192-exp)
	m := w.shl(-low)[0]
	if low > 0 {
		half := w.shl(-(low - 1))[0] & 1
		below := w.shl(256 - (low - 1)) // the bits under the half bit
		if half == 1 && (below.topBit() >= 0 || m&1 == 1) {
			m++
		}
	}
	return math.Ldexp(float64(m), low-192+exp)
}

// expWide returns e^y (or e^-y) as w*2^k with w in [1, 2).
func expWide(y wide, negative bool) (w wide, k int) {
	// k = floor(±y / ln 2), found in float64 and put right below.
	n := uint64(float64(y[3]) * (1 / math.Ln2))
	var r wide
	if negative {
		for below := true; below; n++ {
			r, below = wideLn2.times(n).sub(y)
		}
		n--
		k = -int(n)
	} else {
		n += 2
		for below := true; below; n-- {
			r, below = y.sub(wideLn2.times(n))
		}
		n++
		k = int(n)
	}
	// e^r = (e^(r/2^16))^(2^16), r < ln 2; Taylor from the inside out:
	// 1 + s(1 + s/2(1 + s/3(…))). Each squaring doubles the error of 2^-191.
	const halvings = 16
	s := r.shl(-halvings)
	w = wideOne
	for i := uint64(11); i > 0; i-- {
		w = wideOne.add(s.mul(w).quo(i))
	}
	for range halvings {
		w = w.mul(w)
	}
	return w, k
}

// logExact refines the logarithm hi+lo of (z+t)*2^exp and rounds it: with y
// close to the logarithm, ln x = y + ln(x e^-y).
func logExact(z, t float64, exp int, hi, lo float64) float64 {
	y, negative := wideOf(hi), hi < 0
	if (lo < 0) == negative {
		y = y.add(wideOf(lo))
	} else {
		y, _ = y.sub(wideOf(lo))
	}
	w, k := expWide(y, !negative)
	x := wideOf(z)
	if t < 0 {
		x, _ = x.sub(wideOf(t))
	} else {
		x = x.add(wideOf(t))
	}
	// x*w*2^(exp+k) is 1+d with |d| < 2^-53; ln(1+d) = d - d²/2 + ….
	d, below := x.mul(w).shl(exp + k).diff(wideOne)
	half := d.mul(d).shl(-1)
	if below {
		d = d.add(half)
	} else {
		d, _ = d.sub(half)
	}
	if below == negative {
		y = y.add(d)
	} else {
		y, _ = y.sub(d)
	}
	v := y.round(0)
	if negative {
		return -v
	}
	return v
}
