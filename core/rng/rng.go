// Package rng is the random stream of the reference's engines: the generator
// that Rust's rand 0.9 calls StdRng, which is ChaCha with 12 rounds, seeded
// from one 64-bit number.
//
// It owns the stream, uniform numbers and the acceptance draws of speculative
// decoding. It does not own seeds (a rank derives its own) nor what is decided
// by a draw.
//
// Invariants: a Stream is a value, copying it forks the stream; equal seeds
// give equal streams on every platform; drawing allocates nothing.
//
// Sources: engine notes §9, replay notes §4.
package rng

import "math/bits"

// rounds of the cipher, taken two at a time.
const rounds = 12

// blockWords is the size of one block of the stream in 32-bit words.
const blockWords = 16

// Stream is a seeded random stream. The zero value is not seeded; use New.
type Stream struct {
	key     [8]uint32
	counter uint64 // of the next block
	block   [blockWords]uint32
	used    int // words of block that have been given out
}

// New returns the stream of a seed (rand's seed_from_u64).
func New(seed uint64) Stream {
	s := Stream{used: blockWords}
	for i := range s.key {
		seed = seed*6364136223846793005 + 11634580027462260723
		mixed := uint32(((seed >> 18) ^ seed) >> 27)
		s.key[i] = bits.RotateLeft32(mixed, -int(seed>>59))
	}
	return s
}

// Uint64 draws 64 random bits: the next two words, the first one low.
func (s *Stream) Uint64() uint64 {
	if s.used+2 <= blockWords {
		low, high := s.block[s.used], s.block[s.used+1]
		s.used += 2
		return uint64(high)<<32 | uint64(low)
	}
	low := uint64(s.Uint32())
	return uint64(s.Uint32())<<32 | low
}

// Uint32 draws 32 random bits: the next word.
func (s *Stream) Uint32() uint32 {
	if s.used == blockWords {
		s.refill()
	}
	w := s.block[s.used]
	s.used++
	return w
}

// Float64 draws a number in [0,1) with 53 random bits.
func (s *Stream) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// Below draws a number in [0,n), n > 0 (rand's random_range of a u32): the
// upper half of word*n, with the carry of a second product where the lower
// half is so large that one is possible.
func (s *Stream) Below(n uint32) uint32 {
	m := uint64(s.Uint32()) * uint64(n)
	if low := uint32(m); low > -n {
		next := uint64(s.Uint32()) * uint64(n) >> 32
		m += uint64(uint32(next)) // into the upper half, if low overflows
	}
	return uint32(m >> 32)
}

// Seek moves the stream to its word number i, counted from 0.
func (s *Stream) Seek(i uint64) {
	s.counter, s.used = i/blockWords, blockWords
	if skip := int(i % blockWords); skip > 0 {
		s.refill()
		s.used = skip
	}
}

// The first four words of every block: "expand 32-byte k".
const expa, nd3, b2by, teK = 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574

// refill makes the next block of the stream. Its words are local variables, so
// that they stay in registers.
func (s *Stream) refill() {
	k := &s.key
	low, high := uint32(s.counter), uint32(s.counter>>32)
	x0, x1, x2, x3 := uint32(expa), uint32(nd3), uint32(b2by), uint32(teK)
	x4, x5, x6, x7 := k[0], k[1], k[2], k[3]
	x8, x9, x10, x11 := k[4], k[5], k[6], k[7]
	x12, x13, x14, x15 := low, high, uint32(0), uint32(0)
	for range rounds / 2 {
		x0, x4, x8, x12 = quarter(x0, x4, x8, x12)
		x1, x5, x9, x13 = quarter(x1, x5, x9, x13)
		x2, x6, x10, x14 = quarter(x2, x6, x10, x14)
		x3, x7, x11, x15 = quarter(x3, x7, x11, x15)
		x0, x5, x10, x15 = quarter(x0, x5, x10, x15)
		x1, x6, x11, x12 = quarter(x1, x6, x11, x12)
		x2, x7, x8, x13 = quarter(x2, x7, x8, x13)
		x3, x4, x9, x14 = quarter(x3, x4, x9, x14)
	}
	s.block = [blockWords]uint32{
		x0 + expa, x1 + nd3, x2 + b2by, x3 + teK, x4 + k[0], x5 + k[1], x6 + k[2], x7 + k[3],
		x8 + k[4], x9 + k[5], x10 + k[6], x11 + k[7], x12 + low, x13 + high, x14, x15,
	}
	s.counter++
	s.used = 0
}

// quarter is the quarter round of ChaCha.
func quarter(a, b, c, d uint32) (uint32, uint32, uint32, uint32) {
	a += b
	d = bits.RotateLeft32(d^a, 16)
	c += d
	b = bits.RotateLeft32(b^c, 12)
	a += b
	d = bits.RotateLeft32(d^a, 8)
	c += d
	b = bits.RotateLeft32(b^c, 7)
	return a, b, c, d
}
