package offload

// table maps a hash to its entry: open addressing with linear probing
// in a table of a power of two, at most three quarters full. Removal moves
// later entries back, so there are no tombstones to clean up.
type table struct {
	slots []slot
	used  int
}

type slot struct {
	hash uint64
	at   int32 // entry; 0: empty
}

func newTable() table { return table{slots: make([]slot, 64)} }

// home spreads hashes whose low bits are alike (block hashes are well mixed,
// but nothing here relies on it).
func (x *table) home(hash uint64) int {
	return int((hash*0x9E3779B97F4A7C15)>>32) & (len(x.slots) - 1)
}

func (x *table) find(hash uint64) int {
	mask := len(x.slots) - 1
	i := x.home(hash)
	for x.slots[i].at != 0 && x.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return i
}

func (x *table) get(hash uint64) int32 { return x.slots[x.find(hash)].at }

func (x *table) set(hash uint64, at int32) {
	i := x.find(hash)
	if x.slots[i].at == 0 {
		if (x.used+1)*4 > len(x.slots)*3 {
			x.grow()
			i = x.find(hash)
		}
		x.used++
	}
	x.slots[i] = slot{hash: hash, at: at}
}

func (x *table) remove(hash uint64) {
	mask := len(x.slots) - 1
	hole := x.find(hash)
	x.used--
	for i := (hole + 1) & mask; x.slots[i].at != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-x.home(x.slots[i].hash))&mask >= (i-hole)&mask {
			x.slots[hole] = x.slots[i]
			hole = i
		}
	}
	x.slots[hole] = slot{}
}

func (x *table) grow() {
	old := x.slots
	x.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.at != 0 {
			x.slots[x.find(s.hash)] = s
		}
	}
}
