package radix

// hashes counts the published pages of each sequence hash: open addressing
// with linear probing, at most three quarters full, no tombstones.
type hashes struct {
	slots []hashSlot
	used  int
}

type hashSlot struct {
	hash  uint64
	pages int32 // 0: empty
}

func newHashes() hashes { return hashes{slots: make([]hashSlot, 64)} }

func (t *hashes) home(hash uint64) int {
	return int((hash*0x9E3779B97F4A7C15)>>32) & (len(t.slots) - 1)
}

func (t *hashes) find(hash uint64) int {
	mask := len(t.slots) - 1
	i := t.home(hash)
	for t.slots[i].pages != 0 && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return i
}

// add counts a page and reports whether it is the first.
func (t *hashes) add(hash uint64) (first bool) {
	i := t.find(hash)
	if t.slots[i].pages > 0 {
		t.slots[i].pages++
		return false
	}
	if (t.used+1)*4 > len(t.slots)*3 {
		old := t.slots
		t.slots = make([]hashSlot, 2*len(old))
		for _, s := range old {
			if s.pages > 0 {
				t.slots[t.find(s.hash)] = s
			}
		}
		i = t.find(hash)
	}
	t.used++
	t.slots[i] = hashSlot{hash, 1}
	return true
}

// remove uncounts a page and reports whether it was the last.
func (t *hashes) remove(hash uint64) (last bool) {
	hole := t.find(hash)
	if t.slots[hole].pages--; t.slots[hole].pages > 0 {
		return false
	}
	mask := len(t.slots) - 1
	t.used--
	for i := (hole + 1) & mask; t.slots[i].pages != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-t.home(t.slots[i].hash))&mask >= (i-hole)&mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = hashSlot{}
	return true
}
