// Package moments sums lengths and their squares exactly, so that a variance
// depends neither on the order of the lengths nor on which of them came and
// went.
//
// It owns the sums and the rounding of the variance. It does not own the
// lengths.
//
// Invariants: Sub takes out a length that Add has put in; the sums are exact
// for fewer than 2^32 lengths of less than 2^32 each.
//
// Source: engine notes §10.1.
package moments

import "math/bits"

// Moments is the number of some lengths, their sum and the sum of their
// squares. The zero value is that of no lengths.
type Moments struct {
	n     uint64
	sum   uint64
	sqHi  uint64 // sum of squares, 128 bits
	sqLow uint64
}

// N is the number of lengths.
func (m *Moments) N() int { return int(m.n) }

// Sum is the sum of the lengths.
func (m *Moments) Sum() int { return int(m.sum) }

// Add puts in one length.
func (m *Moments) Add(length int) {
	x := uint64(length)
	hi, low := bits.Mul64(x, x)
	m.n++
	m.sum += x
	var carry uint64
	m.sqLow, carry = bits.Add64(m.sqLow, low, 0)
	m.sqHi, _ = bits.Add64(m.sqHi, hi, carry)
}

// Sub takes out one length.
func (m *Moments) Sub(length int) {
	x := uint64(length)
	hi, low := bits.Mul64(x, x)
	m.n--
	m.sum -= x
	var borrow uint64
	m.sqLow, borrow = bits.Sub64(m.sqLow, low, 0)
	m.sqHi, _ = bits.Sub64(m.sqHi, hi, borrow)
}

// Plus is the moments of the lengths of both.
func (m Moments) Plus(o Moments) Moments {
	low, carry := bits.Add64(m.sqLow, o.sqLow, 0)
	hi, _ := bits.Add64(m.sqHi, o.sqHi, carry)
	return Moments{n: m.n + o.n, sum: m.sum + o.sum, sqHi: hi, sqLow: low}
}

// Variance is the population variance (n*Σx² - (Σx)²)/n/n, with an exact
// numerator; 0 for no lengths.
func (m *Moments) Variance() float64 {
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
