package seq

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// namespaceSeed is the XXH3 seed under which a cache namespace is hashed; a
// LoRA name is hashed under 0, so that equal texts salt differently.
const namespaceSeed = 1

// Salt is the seed of block hashes for prompts that use a LoRA adapter or a
// cache namespace; an empty text counts as none (router notes §1.1). Chains
// keep the plain Seed.
func Salt(lora, namespace string) uint64 {
	seed := uint64(Seed)
	if lora != "" {
		seed += xxh3.HashStringSeed(lora, 0)
	}
	if namespace != "" {
		seed += xxh3.HashStringSeed(namespace, namespaceSeed)
	}
	return seed
}

// Hashing says how a router names the blocks of a prompt (router notes §1.2,
// §1.6). Plain returns the usual one.
type Hashing struct {
	BlockSize int    // tokens per block; below 1 there are no blocks
	BlockSeed uint64 // of local hashes: Seed, a Salt, or one derived from a key
	ChainSeed uint64 // of sequence hashes: Seed, or one derived from a key
	Eagle     bool   // a block also covers the token after it
}

// Plain is how engines name their blocks: no salt, no key.
func Plain(blockSize int) Hashing {
	return Hashing{BlockSize: blockSize, BlockSeed: Seed, ChainSeed: Seed}
}

// Blocks is the number of complete blocks of n tokens.
func (h Hashing) Blocks(n int) int {
	if h.Eagle {
		n--
	}
	if h.BlockSize < 1 || n < 1 {
		return 0
	}
	return n / h.BlockSize
}

// hashBytes is the size of the blocks, in bytes, that are hashed without
// asking for memory: more than any usual block has.
const hashBytes = 4096

// AppendLocals appends the local hashes of the complete blocks of a prompt to
// dst. media lists, for the leading blocks, the hashes of the multimodal
// objects in each; their order does not matter (router notes §1.2). It
// allocates only to grow dst, for blocks of more than about a thousand tokens,
// and for media.
func (h Hashing) AppendLocals(dst []uint64, tokens []uint32, media [][]uint64) []uint64 {
	window := h.BlockSize
	if h.Eagle {
		window++
	}
	var room [hashBytes]byte
	buf := room[:]
	if window > hashBytes/TokenBytes {
		buf = make([]byte, window*TokenBytes)
	}
	for i := range h.Blocks(len(tokens)) {
		b := buf[:window*TokenBytes]
		for k, t := range tokens[i*h.BlockSize:][:window] {
			binary.LittleEndian.PutUint32(b[k*TokenBytes:], t)
		}
		if i < len(media) && len(media[i]) > 0 {
			b = appendSorted(b[:len(b):len(b)], media[i])
		}
		dst = append(dst, xxh3.HashSeed(b, h.BlockSeed))
	}
	return dst
}

// appendSorted appends hashes in ascending order.
func appendSorted(b []byte, hashes []uint64) []byte {
	for _, x := range slices.Sorted(slices.Values(hashes)) {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// AppendChain appends the sequence hashes that belong to local hashes to dst.
// The two may be one array.
func (h Hashing) AppendChain(dst, locals []uint64) []uint64 {
	for i, local := range locals {
		hash := local
		if i > 0 {
			hash = h.Next(dst[len(dst)-1], local)
		}
		dst = append(dst, hash)
	}
	return dst
}

// Next is the sequence hash of a block whose own tokens hash to local and that
// follows the block with sequence hash parent.
func (h Hashing) Next(parent, local uint64) uint64 {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], parent)
	binary.LittleEndian.PutUint64(b[8:], local)
	return xxh3.HashSeed(b[:], h.ChainSeed)
}
