package tracestat

import (
	"math"
	"math/bits"
)

// distinct counts the different blocks of prompts, where a block is one with
// all before it: what a cache of prefixes can find again. Since every prompt
// brings its whole path, the blocks that were there before are all blocks less
// the different ones, so nothing but their number is needed.
//
// A block is known by 64 bits that are mixed from its id and the block before
// it. While the table has room, up to 1.57 million blocks in 16 MB, the count is
// exact, but for two blocks with equal bits: a million blocks have such a pair
// with odds of 1 in 40 million. When it is full, every other block is dropped by
// a bit of its name, and from then on only such blocks are looked at: a fair
// sample of at least 0.79 million blocks, each counted 2^level times. The
// standard error is below 0.12 %.
type distinct struct {
	slots []uint64 // open addressing; 0: empty
	n     int      // blocks in it
	level uint     // blocks whose highest level bits are 0 are kept
	path  []uint64 // names of the blocks of one prompt
	spare []uint64 // the table before, if it was as large

	// What last blocks of prompts lack of whole ones, in tokens, where they were
	// new; by how many of their highest bits are 0.
	lacks [65]int64
}

// maxSlots bounds the table.
const maxSlots = 1 << 21

// addPath adds the blocks of a prompt; its last one lacks so many tokens.
func (d *distinct) addPath(ids []uint64, lacks int64) {
	const seed, odd = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
	if cap(d.path) < len(ids) {
		d.path = make([]uint64, len(ids)+len(ids)/2)
	}
	path := d.path[:len(ids)]
	name := uint64(seed)
	for i, id := range ids { // apart from the look-ups, which then need not wait for each other
		high, low := bits.Mul64(bits.RotateLeft64(name, 23)^id, odd)
		name = high ^ low
		path[i] = name
	}
	for (d.n+len(path))*4 > len(d.slots)*3 && len(d.slots) < maxSlots {
		d.rebuild(max(4*len(d.slots), 1<<15))
	}
	d.insert(path, lacks)
}

// insert puts names into the table.
func (d *distinct) insert(path []uint64, lacks int64) {
	slots, limit := d.slots, d.limit()
	for n, name := range path {
		if name > limit {
			continue
		}
		name = max(name, 1)
		for i := name; ; i++ {
			slot := &slots[i&uint64(len(slots)-1)]
			if *slot == name {
				break
			}
			if *slot != 0 {
				continue
			}
			*slot = name
			if n == len(path)-1 {
				d.lacks[bits.LeadingZeros64(name)] += lacks
			}
			if d.n++; d.n*4 > len(slots)*3 {
				d.level++
				d.rebuild(len(slots))
				slots, limit = d.slots, d.limit()
			}
			break
		}
	}
}

// limit is the highest name that is kept.
func (d *distinct) limit() uint64 { return math.MaxUint64 >> d.level }

// rebuild moves the blocks that are kept into a table of so many slots.
func (d *distinct) rebuild(size int) {
	old := d.slots
	d.slots, d.n = d.spare, 0
	if len(d.slots) == size {
		clear(d.slots)
	} else {
		d.slots = make([]uint64, size)
	}
	if d.spare = nil; len(old) == size {
		d.spare = old
	}
	mask := uint64(size - 1)
	for _, name := range old {
		if name == 0 || name > d.limit() {
			continue
		}
		i := name & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = name
		d.n++
	}
}

// count is the number of different blocks, and what they lack of whole ones.
func (d *distinct) count() (blocks, lacks int64) {
	for _, n := range d.lacks[d.level:] {
		lacks += n
	}
	return int64(d.n) << d.level, lacks << d.level
}
