package tokenizer

import (
	"sync"
	"unicode/utf8"
)

// bpe is a vocabulary with its merges.
type bpe struct {
	vocab  map[string]uint32
	merges map[uint64]merge // by the pair: left<<32 | right
	bytes  [256]int64       // byte level, or byte fallback: ids, -1: none
	level  bool             // a symbol is a byte; else it is a character
	unk    int64            // -1: none
	fuse   bool             // unknown characters in a row are one
	whole  bool             // a piece in the vocabulary is one token, whatever the merges
	spare  sync.Pool        // *scratch
}

type merge struct {
	rank uint32 // lower goes first
	id   uint32
}

// symbol is a token in the making, linked to those beside it.
type symbol struct {
	id         uint32
	prev, next int32
	gone       bool
}

// candidate is a merge that may be done at a place.
type candidate struct {
	rank uint32
	at   int32
	id   uint32
}

type scratch struct {
	symbols []symbol
	heap    []candidate
}

// append encodes one piece.
func (b *bpe) append(dst []uint32, piece string) []uint32 {
	if b.whole {
		if id, ok := b.vocab[b.spell(piece)]; ok {
			return append(dst, id)
		}
	}
	s, _ := b.spare.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	s.symbols, s.heap = b.symbols(s.symbols[:0], piece), s.heap[:0]
	b.mergeAll(s)
	for i := range s.symbols {
		if !s.symbols[i].gone {
			dst = append(dst, s.symbols[i].id)
		}
	}
	b.spare.Put(s)
	return dst
}

// spell is a piece as the vocabulary has it.
func (b *bpe) spell(piece string) string {
	if !b.level {
		return piece
	}
	r := make([]rune, len(piece))
	for i := range len(piece) {
		r[i] = byteRunes[piece[i]]
	}
	return string(r)
}

// symbols are what merging starts from.
func (b *bpe) symbols(list []symbol, piece string) []symbol {
	unknown := false // the last symbol
	add := func(id uint32) {
		n := int32(len(list))
		list = append(list, symbol{id: id, prev: n - 1, next: n + 1})
	}
	foreign := func() {
		if b.unk >= 0 && !(b.fuse && unknown) {
			add(uint32(b.unk))
		}
		unknown = true
	}
	for at := 0; at < len(piece); {
		if b.level {
			if id := b.bytes[piece[at]]; id >= 0 {
				add(uint32(id))
				unknown = false
			} else {
				foreign()
			}
			at++
			continue
		}
		_, n := utf8.DecodeRuneInString(piece[at:])
		if id, ok := b.vocab[piece[at:at+n]]; ok {
			add(id)
			unknown = false
		} else if ids, ok := b.fallback(piece[at : at+n]); ok {
			for _, id := range ids[:n] {
				add(id)
			}
			unknown = false
		} else {
			foreign()
		}
		at += n
	}
	return list
}

// fallback is the ids of a character's bytes, if all have one.
func (b *bpe) fallback(char string) (ids [utf8.UTFMax]uint32, ok bool) {
	for i := range len(char) {
		id := b.bytes[char[i]]
		if id < 0 {
			return ids, false
		}
		ids[i] = uint32(id)
	}
	return ids, true
}

// mergeAll merges pairs, the lowest rank first, leftmost among equals.
func (b *bpe) mergeAll(s *scratch) {
	for i := 0; i+1 < len(s.symbols); i++ {
		b.consider(s, int32(i))
	}
	for len(s.heap) > 0 {
		c := s.pop()
		left := &s.symbols[c.at]
		if left.gone || int(left.next) >= len(s.symbols) {
			continue
		}
		right := &s.symbols[left.next]
		if m, ok := b.merges[uint64(left.id)<<32|uint64(right.id)]; !ok || m.id != c.id || m.rank != c.rank {
			continue // one of the two is another by now
		}
		left.id = c.id
		right.gone = true
		if left.next = right.next; int(left.next) < len(s.symbols) {
			s.symbols[left.next].prev = c.at
		}
		b.consider(s, c.at)
		if left.prev >= 0 {
			b.consider(s, left.prev)
		}
	}
}

// consider puts the pair at a place on the heap, if it can be merged.
func (b *bpe) consider(s *scratch, at int32) {
	left := s.symbols[at]
	if int(left.next) >= len(s.symbols) {
		return
	}
	if m, ok := b.merges[uint64(left.id)<<32|uint64(s.symbols[left.next].id)]; ok {
		s.push(candidate{m.rank, at, m.id})
	}
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

func (s *scratch) push(c candidate) {
	s.heap = append(s.heap, c)
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.heap[i].before(s.heap[up]) {
			break
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (s *scratch) pop() candidate {
	h := s.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	s.heap = h
	return top
}

// byteRunes are the printable characters that byte-level vocabularies spell
// bytes with, runeBytes the way back.
var byteRunes, runeBytes = byteAlphabet()

func byteAlphabet() (runes [256]rune, bytes map[rune]byte) {
	bytes = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' && r <= 'ÿ') {
			r = next
			next++
		}
		runes[b], bytes[r] = r, byte(b)
	}
	return runes, bytes
}
