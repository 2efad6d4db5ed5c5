package seq

import (
	"encoding/binary"
	"slices"
)

// Identity names one complete block of a sequence.
type Identity struct {
	Hash  uint64 // chain over all blocks so far
	Local uint64 // the block's own tokens
}

// Format says what a Sequence keeps of the tokens it is given.
type Format struct {
	BlockSize  int  // tokens per block, > 0
	Identify   bool // give complete blocks an identity; else only count tokens
	KeepTokens bool // remember the ids of complete blocks (with Identify)
}

// Sequence is the token list of a request: its prompt and what it has
// generated. The zero value is empty and must be Reset before use; its buffers
// are kept from one use to the next.
type Sequence struct {
	format Format
	n      int
	blocks []Identity
	ids    []byte // token ids as hashed: all of them, or those of the open block
	open   int    // offset in ids of the open block's first token
}

// Reset empties s and reserves room for capacity tokens, so that appending
// them allocates nothing.
func (s *Sequence) Reset(f Format, capacity int) {
	*s = Sequence{format: f, blocks: s.blocks[:0], ids: s.ids[:0]}
	if !f.Identify {
		return
	}
	s.blocks = slices.Grow(s.blocks, capacity/f.BlockSize)
	if !f.KeepTokens {
		capacity = min(capacity, f.BlockSize)
	}
	s.ids = slices.Grow(s.ids, capacity*TokenBytes)
}

// Len is the number of tokens.
func (s *Sequence) Len() int { return s.n }

// Blocks lists the identities of the complete blocks, first to last. The slice
// is valid until the next call that changes s. It is empty when the format
// does not identify blocks.
func (s *Sequence) Blocks() []Identity { return s.blocks }

// Append adds one token.
func (s *Sequence) Append(token uint32) {
	s.n++
	if !s.format.Identify {
		return
	}
	s.ids = binary.LittleEndian.AppendUint32(s.ids, token)
	if len(s.ids)-s.open == s.format.BlockSize*TokenBytes {
		s.seal()
	}
}

// AppendAll adds tokens in order.
func (s *Sequence) AppendAll(tokens []uint32) {
	if !s.format.Identify {
		s.n += len(tokens)
		return
	}
	size := s.format.BlockSize * TokenBytes
	for len(tokens) > 0 {
		at := len(s.ids)
		n := min(len(tokens), (size-(at-s.open))/TokenBytes) // up to the end of the open block
		s.ids = slices.Grow(s.ids, n*TokenBytes)[:at+n*TokenBytes]
		to := s.ids[at:]
		for i, t := range tokens[:n] {
			binary.LittleEndian.PutUint32(to[i*TokenBytes:], t)
		}
		tokens = tokens[n:]
		s.n += n
		if len(s.ids)-s.open == size {
			s.seal()
		}
	}
}

// seal gives the open block, now complete, its identity.
func (s *Sequence) seal() {
	local := LocalHash(s.ids[s.open:])
	hash := local
	if k := len(s.blocks); k > 0 {
		hash = Chain(s.blocks[k-1].Hash, local)
	}
	s.blocks = append(s.blocks, Identity{Hash: hash, Local: local})
	if s.format.KeepTokens {
		s.open = len(s.ids)
	} else {
		s.ids = s.ids[:0]
	}
}

// AppendBlockTokens appends the token ids of complete block i to dst. The
// format must keep tokens.
func (s *Sequence) AppendBlockTokens(dst []uint32, i int) []uint32 {
	size := s.format.BlockSize * TokenBytes
	for b := s.ids[i*size : (i+1)*size]; len(b) > 0; b = b[TokenBytes:] {
		dst = append(dst, binary.LittleEndian.Uint32(b))
	}
	return dst
}
