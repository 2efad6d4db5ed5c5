// Package idtable finds handles by 128-bit ids.
//
// It owns the table only: open addressing with linear probing, at most three
// quarters full, without tombstones. What a handle stands for is its caller's
// business.
//
// Invariants: an id is in the table once at most; a table that has reached its
// size allocates nothing.
package idtable

import "encoding/binary"

// Table maps ids to handles. Handles are above 0.
type Table struct {
	slots []slot
	used  int
}

type slot struct {
	id     [16]byte
	handle int32 // 0: empty
}

// New returns an empty table.
func New() Table { return Table{slots: make([]slot, 64)} }

// Len is the number of ids in the table.
func (t *Table) Len() int { return t.used }

func (t *Table) home(id [16]byte) int {
	x := binary.LittleEndian.Uint64(id[:8])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(id[8:])
	x *= 0xD6E8FEB86659FD93
	return int(x>>32) & (len(t.slots) - 1)
}

// find returns the slot that holds id, or the empty one where it belongs.
func (t *Table) find(id [16]byte) int {
	mask := len(t.slots) - 1
	i := t.home(id)
	for t.slots[i].handle != 0 && t.slots[i].id != id {
		i = (i + 1) & mask
	}
	return i
}

// Get is the handle of id, or 0.
func (t *Table) Get(id [16]byte) int32 { return t.slots[t.find(id)].handle }

// Add enters id, which is not in the table.
func (t *Table) Add(id [16]byte, handle int32) {
	if (t.used+1)*4 > len(t.slots)*3 {
		old := t.slots
		t.slots = make([]slot, 2*len(old))
		for _, s := range old {
			if s.handle != 0 {
				t.slots[t.find(s.id)] = s
			}
		}
	}
	t.slots[t.find(id)] = slot{id, handle}
	t.used++
}

// Remove takes out id, which is in the table.
func (t *Table) Remove(id [16]byte) {
	mask := len(t.slots) - 1
	hole := t.find(id)
	t.used--
	for i := (hole + 1) & mask; t.slots[i].handle != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-t.home(t.slots[i].id))&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
}
