package kvindex

import (
	"math/bits"
	"slices"
)

// cut says that a slot covers the first k blocks of an edge, k below its length.
type cut struct {
	slot Slot
	k    int32
}

// cutList is the cuts of a node in ascending order of their slots: n of 2^class
// cuts in the slab from at on.
type cutList struct {
	at    int32
	n     int32
	class int32 // noRoom: none yet
}

const noRoom = -1

var noCuts = cutList{class: noRoom}

// cuts is the slab of all lists. Free stretches of a class are linked through
// the slot of their first cut.
type cuts struct {
	slab  []cut
	frees [32]int32 // -1: none
}

func newCuts() cuts {
	var c cuts
	for i := range c.frees {
		c.frees[i] = -1
	}
	return c
}

// list is valid until the next insertion anywhere.
func (c *cuts) list(l cutList) []cut { return c.slab[l.at:][:l.n] }

// find is the place of a slot's cut, or where it belongs.
func (c *cuts) find(l cutList, w Slot) (i int, ok bool) {
	list := c.slab[l.at:][:l.n]
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); list[mid].slot < w {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(list) && list[lo].slot == w
}

// get is how much a slot covers, 0 if it has no cut.
func (c *cuts) get(l cutList, w Slot) int32 {
	if i, ok := c.find(l, w); ok {
		return c.slab[int(l.at)+i].k
	}
	return 0
}

// set enters or changes a slot's cut.
func (c *cuts) set(l *cutList, w Slot, k int32) {
	i, ok := c.find(*l, w)
	if !ok {
		if l.class == noRoom || l.n == 1<<l.class {
			c.enlarge(l)
		}
		l.n++
		list := c.list(*l)
		copy(list[i+1:], list[i:])
	}
	c.slab[int(l.at)+i] = cut{w, k}
}

// remove takes out a slot's cut and returns it, 0 if there is none.
func (c *cuts) remove(l *cutList, w Slot) (k int32) {
	i, ok := c.find(*l, w)
	if !ok {
		return 0
	}
	list := c.list(*l)
	k = list[i].k
	copy(list[i:], list[i+1:])
	if l.n--; l.n == 0 {
		c.free(l)
	}
	return k
}

func (c *cuts) enlarge(l *cutList) {
	bigger := cutList{n: l.n, class: l.class + 1}
	if at := c.frees[bigger.class]; at >= 0 {
		c.frees[bigger.class] = int32(c.slab[at].slot)
		bigger.at = at
	} else {
		bigger.at = int32(len(c.slab))
		c.slab = slices.Grow(c.slab, 1<<bigger.class)[:len(c.slab)+1<<bigger.class]
	}
	copy(c.slab[bigger.at:], c.list(*l))
	c.free(l)
	*l = bigger
}

// free empties a list and gives back its room.
func (c *cuts) free(l *cutList) {
	if l.class != noRoom {
		c.slab[l.at].slot = Slot(c.frees[l.class])
		c.frees[l.class] = l.at
	}
	*l = noCuts
}

// fullWord is the k-th word of the set of slots that cover all of a node.
func (x *Index) fullWord(n int32, k int) *uint64 {
	if k == 0 {
		return &x.nodes[n].full
	}
	return &x.more[int(n)*(x.words-1)+k-1]
}

func (x *Index) isFull(n int32, w Slot) bool {
	return *x.fullWord(n, int(w)>>6)&(1<<(w&63)) != 0
}

func (x *Index) anyFull(n int32) bool {
	if x.nodes[n].full != 0 {
		return true
	}
	for k := 1; k < x.words; k++ {
		if *x.fullWord(n, k) != 0 {
			return true
		}
	}
	return false
}

// coverage is how many blocks of a node's edge a slot covers.
func (x *Index) coverage(n int32, w Slot) int32 {
	if x.isFull(n, w) {
		return x.nodes[n].n
	}
	return x.cuts.get(x.nodes[n].cut, w)
}

// cover lets a slot cover at least the first k blocks of a node.
func (x *Index) cover(n int32, w Slot, k int32) {
	if old := x.coverage(n, w); k > old {
		x.raise(n, w, k, old)
	}
}

// raise lets a slot that covers old blocks of a node cover k, which are more.
func (x *Index) raise(n int32, w Slot, k, old int32) {
	c := &x.nodes[n]
	if k < c.n {
		x.cuts.set(&c.cut, w, k)
	} else {
		if old > 0 {
			x.cuts.remove(&c.cut, w)
		}
		*x.fullWord(n, int(w)>>6) |= 1 << (w & 63)
	}
	if old == 0 {
		x.covers[w]++
	}
	x.count(w, int(k-old)-x.marked(n, old, k))
}

// uncover takes the blocks from k on from a slot that covers old of them.
func (x *Index) uncover(n int32, w Slot, k, old int32) {
	c := &x.nodes[n]
	if old == c.n {
		*x.fullWord(n, int(w)>>6) &^= 1 << (w & 63)
	}
	if k > 0 {
		x.cuts.set(&c.cut, w, k)
	} else {
		if old < c.n {
			x.cuts.remove(&c.cut, w)
		}
		x.covers[w]--
	}
	x.count(w, x.marked(n, k, old)-int(old-k))
}

// count changes the number of entries of a slot.
func (x *Index) count(w Slot, by int) {
	x.sizes[w] += by
	x.size += by
}

// extendOnly makes w the only slot that covers all of a node whose edge is
// about to become longer; the others keep what they have. The edge's length is
// still the old one, and w covers all of it.
func (x *Index) extendOnly(n int32, w Slot) {
	for k := range x.words {
		word := x.fullWord(n, k)
		for others := *word; others != 0; others &= others - 1 {
			if s := Slot(k<<6 + bits.TrailingZeros64(others)); s != w {
				x.cuts.set(&x.nodes[n].cut, s, x.nodes[n].n)
			}
		}
		*word = 0
	}
	*x.fullWord(n, int(w)>>6) = 1 << (w & 63)
}
