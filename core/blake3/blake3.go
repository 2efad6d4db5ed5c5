// Package blake3 is the BLAKE3 hash with its default output of 32 bytes.
//
// It owns the function only: no keys, no key derivation, no longer outputs,
// because nothing here needs them. Source: the BLAKE3 paper, §2.
//
// Invariants: a Hasher allocates nothing and its zero value is ready; Sum
// changes nothing, so writing may go on after it.
package blake3

import (
	"encoding/binary"
	"math/bits"
)

// Size is the length of a hash in bytes.
const Size = 32

const (
	blockBytes = 64
	chunkBytes = 1024
	maxDepth   = 54 // of the tree over 2^64 bytes
)

// What a compression is told about its place.
const (
	chunkStart = 1 << iota
	chunkEnd
	parent
	root
)

// initial is the first state, the digits of square roots as in SHA-2.
var initial = [8]uint32{
	0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
}

// Hasher takes bytes in any pieces.
type Hasher struct {
	chain  [8]uint32 // of the chunk under way
	block  [blockBytes]byte
	used   int    // bytes of block
	blocks int    // of the chunk, compressed
	chunks uint64 // complete ones before it
	stack  [maxDepth][8]uint32
	depth  int // of stack: complete subtrees, the largest first
}

// Write adds bytes. It never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if h.used == blockBytes {
			h.spend()
		}
		k := copy(h.block[h.used:], p)
		h.used += k
		p = p[k:]
	}
	return n, nil
}

// spend compresses a full block that is not the input's last one.
func (h *Hasher) spend() {
	if h.blocks == 0 {
		h.chain = initial
	}
	flags := uint32(0)
	if h.blocks == 0 {
		flags |= chunkStart
	}
	last := h.blocks == chunkBytes/blockBytes-1
	if last {
		flags |= chunkEnd
	}
	m := words(&h.block)
	h.chain = compress(&h.chain, &m, h.chunks, blockBytes, flags)
	h.used = 0
	h.blocks++
	if !last {
		return
	}
	h.blocks = 0
	h.chunks++
	// Every two complete subtrees of one size become one.
	node := h.chain
	for n := h.chunks; n&1 == 0; n >>= 1 {
		h.depth--
		node = join(&h.stack[h.depth], &node, 0)
	}
	h.stack[h.depth] = node
	h.depth++
}

// Sum is the hash of what was written.
func (h *Hasher) Sum() [Size]byte {
	// What is left is the last chunk, or, where the input ends with a full
	// chunk, its last block, which Write has not spent.
	chain := h.chain
	flags := uint32(chunkEnd)
	if h.blocks == 0 {
		chain = initial
		flags |= chunkStart
	}
	block := h.block
	clear(block[h.used:])
	m := words(&block)
	if h.depth == 0 {
		return bytesOf(compress(&chain, &m, 0, uint32(h.used), flags|root))
	}
	node := compress(&chain, &m, h.chunks, uint32(h.used), flags)
	for i := h.depth - 1; i > 0; i-- {
		node = join(&h.stack[i], &node, 0)
	}
	return bytesOf(join(&h.stack[0], &node, root))
}

// Sum256 is the hash of p.
func Sum256(p []byte) [Size]byte {
	var h Hasher
	h.Write(p)
	return h.Sum()
}

// join is the parent of two subtrees.
func join(left, right *[8]uint32, flags uint32) [8]uint32 {
	var m [16]uint32
	copy(m[:8], left[:])
	copy(m[8:], right[:])
	chain := initial
	return compress(&chain, &m, 0, blockBytes, parent|flags)
}

// compress is the compression function, cut to its first half: seven rounds,
// each of which takes the message in the order of the round before, permuted.
func compress(chain *[8]uint32, m *[16]uint32, counter uint64, length, flags uint32) [8]uint32 {
	v0, v1, v2, v3, v4, v5, v6, v7 := chain[0], chain[1], chain[2], chain[3], chain[4], chain[5], chain[6], chain[7]
	v8, v9, v10, v11 := initial[0], initial[1], initial[2], initial[3]
	v12, v13, v14, v15 := uint32(counter), uint32(counter>>32), length, flags
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[0], m[1])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[2], m[3])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[4], m[5])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[6], m[7])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[8], m[9])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[10], m[11])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[12], m[13])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[14], m[15])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[2], m[6])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[3], m[10])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[7], m[0])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[4], m[13])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[1], m[11])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[12], m[5])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[9], m[14])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[15], m[8])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[3], m[4])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[10], m[12])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[13], m[2])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[7], m[14])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[6], m[5])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[9], m[0])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[11], m[15])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[8], m[1])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[10], m[7])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[12], m[9])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[14], m[3])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[13], m[15])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[4], m[0])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[11], m[2])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[5], m[8])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[1], m[6])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[12], m[13])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[9], m[11])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[15], m[10])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[14], m[8])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[7], m[2])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[5], m[3])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[0], m[1])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[6], m[4])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[9], m[14])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[11], m[5])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[8], m[12])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[15], m[1])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[13], m[3])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[0], m[10])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[2], m[6])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[4], m[7])
	v0, v4, v8, v12 = mix(v0, v4, v8, v12, m[11], m[15])
	v1, v5, v9, v13 = mix(v1, v5, v9, v13, m[5], m[0])
	v2, v6, v10, v14 = mix(v2, v6, v10, v14, m[1], m[9])
	v3, v7, v11, v15 = mix(v3, v7, v11, v15, m[8], m[6])
	v0, v5, v10, v15 = mix(v0, v5, v10, v15, m[14], m[10])
	v1, v6, v11, v12 = mix(v1, v6, v11, v12, m[2], m[12])
	v2, v7, v8, v13 = mix(v2, v7, v8, v13, m[3], m[4])
	v3, v4, v9, v14 = mix(v3, v4, v9, v14, m[7], m[13])
	return [8]uint32{v0 ^ v8, v1 ^ v9, v2 ^ v10, v3 ^ v11, v4 ^ v12, v5 ^ v13, v6 ^ v14, v7 ^ v15}
}

// mix is the quarter round: BLAKE2s's.
func mix(a, b, c, d, x, y uint32) (uint32, uint32, uint32, uint32) {
	a += b + x
	d = bits.RotateLeft32(d^a, -16)
	c += d
	b = bits.RotateLeft32(b^c, -12)
	a += b + y
	d = bits.RotateLeft32(d^a, -8)
	c += d
	return a, bits.RotateLeft32(b^c, -7), c, d
}

func words(block *[blockBytes]byte) (m [16]uint32) {
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(block[4*i:])
	}
	return m
}

func bytesOf(w [8]uint32) (out [Size]byte) {
	for i, x := range w {
		binary.LittleEndian.PutUint32(out[4*i:], x)
	}
	return out
}
