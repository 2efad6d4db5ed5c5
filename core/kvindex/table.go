package kvindex

import "math/bits"

// table finds small numbers by hashes it does not keep: open addressing with
// linear probing, at most five eighths full, without tombstones. A slot holds
// 32 bits of the mixed hash, which also say where the slot belongs, and the
// number, which is not -1; who looks up compares the whole key with what the
// number stands for.
type table struct {
	slots []uint64 // tag<<32 | number+1; 0: empty
	used  int
	shift uint8 // of a tag, to the slot where it belongs
}

// firstTable is the size of a new table, a power of two.
const firstTable = 64

func newTable() table {
	return table{slots: make([]uint64, firstTable), shift: uint8(32 - bits.TrailingZeros(firstTable))}
}

const spread = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio

// tagOf mixes a hash down to a tag.
func tagOf(hash uint64) uint32 { return uint32(hash * spread >> 32) }

// put enters a number whose key is not in the table.
func (t *table) put(tag uint32, number int32) {
	if (t.used+1)*8 > len(t.slots)*5 {
		t.grow()
	}
	t.used++
	t.place(slot(tag, number))
}

// slot is how a number stands in the table.
func slot(tag uint32, number int32) uint64 { return uint64(tag)<<32 | uint64(uint32(number)+1) }

// where is the place of a number that is in the table under a tag.
func (t *table) where(tag uint32, number int32) int {
	want := slot(tag, number)
	slots := t.slots
	mask := len(slots) - 1
	i := int(tag >> t.shift)
	for slots[i&mask] != want {
		i++
	}
	return i & mask
}

func (t *table) place(s uint64) {
	slots := t.slots
	mask := len(slots) - 1
	i := int(s >> 32 >> t.shift)
	for slots[i&mask] != 0 {
		i++
	}
	slots[i&mask] = s
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	t.shift--
	for _, s := range old {
		if s != 0 {
			t.place(s)
		}
	}
}

// drop takes out what stands at slot i.
func (t *table) drop(i int) {
	slots := t.slots
	mask := len(slots) - 1
	t.used--
	hole := i
	for i = (hole + 1) & mask; slots[i] != 0; i = (i + 1) & mask {
		// A slot may move back to the hole unless it belongs after it.
		if (i-int(slots[i]>>32>>t.shift))&mask >= (i-hole)&mask {
			slots[hole] = slots[i]
			hole = i
		}
	}
	slots[hole] = 0
}
