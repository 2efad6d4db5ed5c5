// Package seq names KV blocks by the tokens they hold.
//
// It owns the hashes of the reference (block, chain and output token) and
// Sequence, the growing token list of one request with the identity of each of
// its complete blocks. It does not know which blocks are resident (core/kv) or
// who runs (core/engine).
//
// Invariants: only complete blocks have an identity; an identity depends on
// all tokens up to the end of its block and never changes; appending within
// the reserved capacity allocates nothing.
//
// Source: engine notes §1.2 to §1.4.
package seq

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Seed is the XXH3 seed of block and chain hashes; engines use no other.
const Seed = 1337

// TokenBytes is the size of one token id where blocks are hashed: 32 bits,
// little endian.
const TokenBytes = 4

// LocalHash is the hash of one complete block's own tokens, given as
// little-endian 32-bit ids. It is also the sequence hash of a first block
// (engine notes §1.2: tokens_hash).
func LocalHash(block []byte) uint64 { return xxh3.HashSeed(block, Seed) }

// Chain is the sequence hash of a block that follows the block with sequence
// hash parent and whose own tokens hash to local (engine notes §1.2:
// block_hash).
func Chain(parent, local uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], parent)
	binary.LittleEndian.PutUint64(b[8:], local)
	return xxh3.HashSeed(b[:], Seed)
}

// OutputToken is the id of the k-th token (from 0) that a request without
// planned output generates: the low half of a hash of its UUID, in RFC byte
// order, and k (engine notes §1.3).
func OutputToken(uuid [16]byte, k uint64) uint32 {
	var b [24]byte
	copy(b[:16], uuid[:])
	binary.LittleEndian.PutUint64(b[16:], k)
	return uint32(xxh3.HashSeed(b[:], 0))
}
