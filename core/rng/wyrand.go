package rng

import "math/bits"

// Wyrand is the random stream of the reference's router: the generator that
// Rust's fastrand 2 uses. The number is its state; a fresh one is its seed.
//
// Source: router notes §4.4.
type Wyrand uint64

// Uint64 draws 64 random bits.
func (s *Wyrand) Uint64() uint64 {
	*s += 0x2d358dccaa6c78a5
	hi, lo := bits.Mul64(uint64(*s), uint64(*s)^0x8bb84b93962eacc9)
	return hi ^ lo
}

// Below draws a number from 0 up to but not including n, n > 0.
func (s *Wyrand) Below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// Float64 draws a number from 0 up to but not including 1.
func (s *Wyrand) Float64() float64 {
	for {
		if x := float64(s.Uint64()>>1) * 0x1p-63; x < 1 {
			return x
		}
	}
}
