package engine

import "encoding/binary"

// idTable finds a request by its UUID: open addressing with linear probing
// over handles, at most three quarters full, no tombstones.
type idTable struct {
	slots []Handle // 0: empty
	used  int
}

func newIDTable() idTable { return idTable{slots: make([]Handle, 64)} }

func (t *idTable) home(uuid [16]byte) int {
	x := binary.LittleEndian.Uint64(uuid[:8])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(uuid[8:])
	x *= 0xD6E8FEB86659FD93
	return int(x>>32) & (len(t.slots) - 1)
}

// find returns the slot that holds uuid, or the empty one where it belongs.
func (t *idTable) find(slab []request, uuid [16]byte) int {
	mask := len(t.slots) - 1
	i := t.home(uuid)
	for t.slots[i] != 0 && slab[t.slots[i]].uuid != uuid {
		i = (i + 1) & mask
	}
	return i
}

func (t *idTable) get(slab []request, uuid [16]byte) Handle {
	return t.slots[t.find(slab, uuid)]
}

// add enters h, whose UUID is not in the table.
func (t *idTable) add(slab []request, h Handle) {
	if (t.used+1)*4 > len(t.slots)*3 {
		old := t.slots
		t.slots = make([]Handle, 2*len(old))
		for _, o := range old {
			if o != 0 {
				t.slots[t.find(slab, slab[o].uuid)] = o
			}
		}
	}
	t.slots[t.find(slab, slab[h].uuid)] = h
	t.used++
}

// remove takes out h, which is in the table.
func (t *idTable) remove(slab []request, h Handle) {
	mask := len(t.slots) - 1
	hole := t.find(slab, slab[h].uuid)
	t.used--
	for i := (hole + 1) & mask; t.slots[i] != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-t.home(slab[t.slots[i]].uuid))&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = 0
}
