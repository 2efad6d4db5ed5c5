// Package hashtable maps 64-bit hashes to small numbers.
//
// It owns the table only: open addressing with linear probing in a power of
// two of slots, at most three quarters full. Removal moves later entries back,
// so there are no tombstones to clean up. What a number stands for is its
// caller's business.
//
// Invariants: a hash is in the table once at most; numbers are not 0; a table
// that has reached its size allocates nothing.
package hashtable

// Table is the map. Take it from New.
type Table struct {
	slots []slot
	used  int
}

type slot struct {
	hash  uint64
	value int32 // 0: empty
}

// New returns an empty table.
func New() Table { return Table{slots: make([]slot, 64)} }

// Len is the number of hashes in the table.
func (t *Table) Len() int { return t.used }

// home spreads hashes whose low bits are alike (block hashes are well mixed,
// but nothing here relies on it).
func (t *Table) home(hash uint64) int {
	return int((hash*0x9E3779B97F4A7C15)>>32) & (len(t.slots) - 1)
}

// find returns the slot that holds hash, or the empty one where it belongs.
func (t *Table) find(hash uint64) int {
	mask := len(t.slots) - 1
	i := t.home(hash)
	for t.slots[i].value != 0 && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return i
}

// Get is the number of hash, 0 if it is not in the table.
func (t *Table) Get(hash uint64) int32 { return t.slots[t.find(hash)].value }

// Set enters or changes the number of hash; it is not 0.
func (t *Table) Set(hash uint64, value int32) {
	i := t.find(hash)
	if t.slots[i].value == 0 {
		if (t.used+1)*4 > len(t.slots)*3 {
			t.grow()
			i = t.find(hash)
		}
		t.used++
	}
	t.slots[i] = slot{hash, value}
}

// Remove takes out hash, which is in the table.
func (t *Table) Remove(hash uint64) {
	mask := len(t.slots) - 1
	hole := t.find(hash)
	t.used--
	for i := (hole + 1) & mask; t.slots[i].value != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-t.home(t.slots[i].hash))&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.value != 0 {
			t.slots[t.find(s.hash)] = s
		}
	}
}

// Slots is the number of slots, and At what slot i holds (value 0: nothing),
// for checks of a whole table.
func (t *Table) Slots() int { return len(t.slots) }

// At is what slot i holds.
func (t *Table) At(i int) (hash uint64, value int32) { return t.slots[i].hash, t.slots[i].value }
