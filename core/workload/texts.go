package workload

import (
	"math"

	"github.com/zeebo/xxh3"
)

// maxText bounds the bytes of all texts of one kind together.
const maxText = math.MaxUint32

// Texts keeps different texts, numbered from 0 in the order they were added.
// The zero value is empty.
type Texts struct {
	bytes []byte
	off   []uint32 // where they begin, and the end
	table []int32  // open addressing: 1 + number, 0: empty
}

// Len is the number of texts.
func (t *Texts) Len() int { return max(len(t.off)-1, 0) }

// At is text i. It must not be changed.
func (t *Texts) At(i int32) []byte { return t.bytes[t.off[i]:t.off[i+1]:t.off[i+1]] }

// Find is the number of a text, -1 if it is not there.
func (t *Texts) Find(text []byte) int32 {
	if len(t.table) == 0 {
		return -1
	}
	return t.table[t.slot(text)] - 1
}

// Add is the number of a text, which is added if it is new; -1 if there is no
// room for it.
func (t *Texts) Add(text []byte) int32 {
	if len(t.off) == 0 {
		t.off = append(t.off, 0)
	}
	if len(t.off)*4 > len(t.table)*3 {
		t.table = make([]int32, max(64, 2*len(t.table)))
		for i := range int32(t.Len()) {
			t.table[t.slot(t.At(i))] = i + 1
		}
	}
	slot := t.slot(text)
	if i := t.table[slot]; i > 0 {
		return i - 1
	}
	if len(t.bytes)+len(text) > maxText || len(t.off) > maxCount {
		return -1
	}
	t.bytes = append(t.bytes, text...)
	t.off = append(t.off, uint32(len(t.bytes)))
	t.table[slot] = int32(t.Len())
	return t.table[slot] - 1
}

// slot is where a text is or belongs.
func (t *Texts) slot(text []byte) int {
	mask := uint64(len(t.table) - 1)
	for i := xxh3.Hash(text) & mask; ; i = (i + 1) & mask {
		n := t.table[i]
		if n == 0 || string(text) == string(t.At(n-1)) {
			return int(i)
		}
	}
}
