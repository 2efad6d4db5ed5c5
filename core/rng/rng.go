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

import (
	"encoding/binary"
	"math/bits"
)

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

// refill makes the next block of the stream.
func (s *Stream) refill() {
	var in [blockWords]uint32
	for i := range 4 {
		in[i] = binary.LittleEndian.Uint32([]byte("expand 32-byte k")[4*i:])
	}
	copy(in[4:12], s.key[:])
	in[12], in[13] = uint32(s.counter), uint32(s.counter>>32)
	x := in
	for range rounds / 2 {
		quarter(&x, 0, 4, 8, 12)
		quarter(&x, 1, 5, 9, 13)
		quarter(&x, 2, 6, 10, 14)
		quarter(&x, 3, 7, 11, 15)
		quarter(&x, 0, 5, 10, 15)
		quarter(&x, 1, 6, 11, 12)
		quarter(&x, 2, 7, 8, 13)
		quarter(&x, 3, 4, 9, 14)
	}
	for i := range x {
		s.block[i] = x[i] + in[i]
	}
	s.counter++
	s.used = 0
}

// quarter is the quarter round of ChaCha on four words of the state.
func quarter(x *[blockWords]uint32, a, b, c, d int) {
	x[a] += x[b]
	x[d] = bits.RotateLeft32(x[d]^x[a], 16)
	x[c] += x[d]
	x[b] = bits.RotateLeft32(x[b]^x[c], 12)
	x[a] += x[b]
	x[d] = bits.RotateLeft32(x[d]^x[a], 8)
	x[c] += x[d]
	x[b] = bits.RotateLeft32(x[b]^x[c], 7)
}
