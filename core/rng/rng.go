// Package rng is the random stream of the reference's engines: the generator
// that Rust's rand 0.9 calls StdRng, which is ChaCha with 12 rounds, seeded
// from one 64-bit number.
//
// It owns the stream and the acceptance draws of speculative decoding. It does
// not own seeds (a rank derives its own) nor what is decided by a draw.
//
// Invariants: a Stream is a value, copying it forks the stream; equal seeds
// give equal streams on every platform; drawing allocates nothing.
//
// Source: engine notes §9.
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

// Uint64 draws 64 random bits: the next two words, the first one low. Words
// are drawn in pairs only, so a pair never spans two blocks.
func (s *Stream) Uint64() uint64 {
	if s.used == blockWords {
		s.refill()
	}
	low, high := s.block[s.used], s.block[s.used+1]
	s.used += 2
	return uint64(high)<<32 | uint64(low)
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
