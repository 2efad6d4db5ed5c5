package engine

import "math/bits"

// moments sums lengths and their squares exactly, so that a variance does not
// depend on the order of the lengths.
type moments struct {
	n     uint64
	sum   uint64
	sqHi  uint64 // sum of squares, 128 bits
	sqLow uint64
}

func (m *moments) add(length int) {
	x := uint64(length)
	hi, low := bits.Mul64(x, x)
	m.n++
	m.sum += x
	var carry uint64
	m.sqLow, carry = bits.Add64(m.sqLow, low, 0)
	m.sqHi, _ = bits.Add64(m.sqHi, hi, carry)
}

func (m *moments) sub(length int) {
	x := uint64(length)
	hi, low := bits.Mul64(x, x)
	m.n--
	m.sum -= x
	var borrow uint64
	m.sqLow, borrow = bits.Sub64(m.sqLow, low, 0)
	m.sqHi, _ = bits.Sub64(m.sqHi, hi, borrow)
}

// plus is the moments of both lists together.
func (m moments) plus(o moments) moments {
	var carry uint64
	m.n += o.n
	m.sum += o.sum
	m.sqLow, carry = bits.Add64(m.sqLow, o.sqLow, 0)
	m.sqHi, _ = bits.Add64(m.sqHi, o.sqHi, carry)
	return m
}

// variance is the population variance (n*Σx² - (Σx)²)/n/n, with an exact
// numerator (engine notes §10.1); 0 for no lengths.
func (m *moments) variance() float64 {
	if m.n == 0 {
		return 0
	}
	aHi, aLow := bits.Mul64(m.n, m.sqLow)
	aHi += m.n * m.sqHi
	bHi, bLow := bits.Mul64(m.sum, m.sum)
	low, borrow := bits.Sub64(aLow, bLow, 0)
	hi, _ := bits.Sub64(aHi, bHi, borrow)
	n := float64(m.n)
	return float128(hi, low) / n / n
}

// float128 is the float64 nearest to hi*2^64 + low, ties to even.
func float128(hi, low uint64) float64 {
	if hi == 0 {
		return float64(low)
	}
	// Keep the 64 leading bits; what is cut off only decides ties, for which
	// one sticky bit is enough.
	shift := uint(64 - bits.LeadingZeros64(hi))
	top := hi<<(64-shift) | low>>shift
	if low<<(64-shift) != 0 {
		top |= 1
	}
	f := float64(top)
	for range shift {
		f *= 2
	}
	return f
}
