package kvindex

import "math/bits"

// odds is what is known of odd hashes: external hashes that several blocks of
// the tree carry, or that somebody gave to a block which has another name in
// the tree. Their slots' entries cannot be derived from coverage, so they are
// written down. A hash stays odd until no block and no entry carries it.
type odds struct {
	list  []oddHash // 0 is none
	free  int32     // first free record, linked through blocks; 0: none
	found table     // entries by slot and hash

	entries   []entry
	freeEntry int32 // linked through next
}

// oddHash is a record of an odd hash.
type oddHash struct {
	ext     uint64
	blocks  int32 // that carry it
	entries int32 // of slots that have it
	spare   bool  // the record is free
}

// entry says that a slot calls something in a node by an odd hash.
type entry struct {
	ext        uint64
	slot       Slot
	node       int32
	next, prev int32 // of the same node
}

func newOdds() odds {
	return odds{list: make([]oddHash, 1), found: newTable(), entries: make([]entry, 1)}
}

func entryTag(w Slot, ext uint64) uint32 {
	return tagOf(ext ^ bits.RotateLeft64(uint64(w)*0xD6E8FEB86659FD93, 32))
}

// entry is a slot's entry of an odd hash and its place in the table, 0 if it
// has none.
func (x *Index) entry(w Slot, ext uint64) (id int32, at int) {
	t := &x.odd.found
	mask := len(t.slots) - 1
	tag := entryTag(w, ext)
	for i := int(tag >> t.shift); ; i++ {
		s := t.slots[i&mask]
		if s == 0 {
			return 0, 0
		}
		if uint32(s>>32) == tag {
			id := int32(uint32(s)) - 1
			if e := &x.odd.entries[id]; e.slot == w && e.ext == ext {
				return id, i & mask
			}
		}
	}
}

// enter gives slot w an entry of the odd hash ext that points to n, in place of
// the one it may have.
func (x *Index) enter(w Slot, ext uint64, n int32) {
	if id, _ := x.entry(w, ext); id != 0 {
		if x.odd.entries[id].node != n {
			x.unlinkEntry(id)
			x.linkEntry(id, n)
		}
		return
	}
	id := x.odd.freeEntry
	if id != 0 {
		x.odd.freeEntry = x.odd.entries[id].next
	} else {
		id = int32(len(x.odd.entries))
		x.odd.entries = append(x.odd.entries, entry{})
	}
	x.odd.entries[id] = entry{ext: ext, slot: w}
	x.linkEntry(id, n)
	x.odd.found.put(entryTag(w, ext), id)
	v, _ := x.find(ext)
	x.odd.list[^v].entries++
	x.count(w, 1)
}

// leave removes a slot's entry of an odd hash, if it has one.
func (x *Index) leave(w Slot, ext uint64) {
	id, at := x.entry(w, ext)
	if id == 0 {
		return
	}
	x.odd.found.drop(at)
	x.unlinkEntry(id)
	x.odd.entries[id] = entry{next: x.odd.freeEntry, slot: -1}
	x.odd.freeEntry = id
	x.count(w, -1)
	v, _ := x.find(ext)
	x.odd.list[^v].entries--
	x.settle(v)
}

func (x *Index) linkEntry(id, n int32) {
	e, c := &x.odd.entries[id], &x.nodes[n]
	e.node, e.prev, e.next = n, 0, c.entries
	if c.entries != 0 {
		x.odd.entries[c.entries].prev = id
	}
	c.entries = id
}

func (x *Index) unlinkEntry(id int32) {
	e := &x.odd.entries[id]
	c := &x.nodes[e.node]
	if e.prev != 0 {
		x.odd.entries[e.prev].next = e.next
	} else {
		c.entries = e.next
	}
	if e.next != 0 {
		x.odd.entries[e.next].prev = e.prev
	}
	if c.entries == 0 && c.cut.n == 0 && !x.anyFull(e.node) {
		x.die(e.node)
	}
}

// settle forgets an odd hash that nothing carries.
func (x *Index) settle(v int32) {
	r := &x.odd.list[^v]
	if r.blocks > 0 || r.entries > 0 {
		return
	}
	x.blocks.remove(r.ext, v)
	*r = oddHash{blocks: x.odd.free, spare: true}
	x.odd.free = ^v
}

// makeOdd makes a hash odd if it is not. Who has its only block by coverage
// gets an entry.
func (x *Index) makeOdd(ext uint64) (v int32) {
	b, known := x.find(ext)
	if known && b < 0 {
		return b
	}
	if !known {
		x.reserve(1)
		v = x.newOdd(ext)
		x.blocks.insert(ext, v)
		return v
	}
	v = x.newOdd(ext)
	at, k := x.blocks.at(ext, b, false)
	at.ids[k] = v
	n, pos := x.place(b)
	x.owner[b] |= mark
	x.nodes[n].marks |= oddly
	x.odd.list[^v].blocks = 1
	for k := range x.words {
		for set := *x.fullWord(n, k); set != 0; set &= set - 1 {
			x.inherit(Slot(k<<6+lowest(set)), ext, n)
		}
	}
	for i := range x.nodes[n].cut.n {
		if e := x.cuts.slab[x.nodes[n].cut.at+i]; e.k > pos {
			x.inherit(e.slot, ext, n)
		}
	}
	return v
}

// inherit writes an entry down that coverage gave until now.
func (x *Index) inherit(w Slot, ext uint64, n int32) {
	x.count(w, -1)
	x.enter(w, ext, n)
}

func (x *Index) newOdd(ext uint64) (v int32) {
	if i := x.odd.free; i != 0 {
		x.odd.free = x.odd.list[i].blocks
		x.odd.list[i] = oddHash{ext: ext}
		return ^i
	}
	x.odd.list = append(x.odd.list, oddHash{ext: ext})
	return ^int32(len(x.odd.list) - 1)
}

// bindOdd enters a new block of n whose hash is in the table already.
func (x *Index) bindOdd(n int32, w Slot, b int32, ext uint64) {
	v := x.makeOdd(ext)
	x.owner[b] |= mark
	x.nodes[n].marks |= oddly
	x.odd.list[^v].blocks++
	x.enter(w, ext, n)
}

// unbindOdd drops a block that carries an odd hash.
func (x *Index) unbindOdd(ext uint64) {
	v, _ := x.find(ext)
	x.odd.list[^v].blocks--
	x.settle(v)
}

// marked is the number of blocks with odd hashes among those of n from
// position lo up to hi.
func (x *Index) marked(n, lo, hi int32) (k int) {
	if x.nodes[n].marks&oddly == 0 {
		return 0
	}
	for b := range x.blocksOf(n, lo, hi) {
		if x.owner[b]&mark != 0 {
			k++
		}
	}
	return k
}

// blocksOf visits the blocks of n from position lo up to hi.
func (x *Index) blocksOf(n, lo, hi int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for id := x.nodes[n].run; id != 0 && lo < hi; id = x.runs[id].next {
			r := &x.runs[id]
			for ; lo < hi && lo < r.base+r.n; lo++ {
				if !yield(r.start + lo - r.base) {
					return
				}
			}
		}
	}
}

// rename prepares for a slot to cover the first blocks of n under external
// hashes of its own: where they differ from the tree's, the tree's become odd.
func (x *Index) rename(n int32, exts []uint64) {
	k := x.named(n, exts)
	if k == len(exts) {
		return
	}
	for b := range x.blocksOf(n, int32(k), int32(len(exts))) {
		if x.ext[b] != exts[k] {
			x.makeOdd(x.ext[b])
		}
		k++
	}
}

// name gives slot w its entries for the blocks of n from position pos on, which
// it covers and calls by exts. Where coverage gives them there is nothing to do.
func (x *Index) name(n int32, w Slot, pos int32, exts []uint64) {
	if x.nodes[n].marks&oddly == 0 {
		return
	}
	k := 0
	for b := range x.blocksOf(n, pos, pos+int32(len(exts))) {
		if ext := exts[k]; x.owner[b]&mark != 0 || x.ext[b] != ext {
			x.makeOdd(ext)
			x.enter(w, ext, n)
		}
		k++
	}
}

// position is where an odd hash leads to in the edge of n: the last place, if
// it stands there several times; -1 if it leads nowhere.
func (x *Index) position(n int32, ext uint64) (pos int32) {
	pos = -1
	i := int32(0)
	for b := range x.blocksOf(n, 0, x.nodes[n].n) {
		if x.ext[b] == ext && x.owner[b]&lost == 0 {
			pos = i
		}
		i++
	}
	return pos
}

// splitNames: of a hash that stands on both sides of a split, only the places
// in n are found from now on, all of them.
func (x *Index) splitNames(n, front int32) {
	for b := range x.blocksOf(n, 0, x.nodes[n].n) {
		if x.owner[b]&mark == 0 {
			continue
		}
		x.owner[b] &^= lost
		if v, _ := x.find(x.ext[b]); x.odd.list[^v].blocks < 2 {
			continue
		}
		for f := range x.blocksOf(front, 0, x.nodes[front].n) {
			if x.ext[f] == x.ext[b] {
				x.owner[f] |= lost
			}
		}
	}
}

// splitEntries does to the entries of n what the reference does when front
// takes the first blocks of its edge: those of the blocks that stay in n point
// to n for every slot that covers them, all others that pointed to n point to
// front.
func (x *Index) splitEntries(n, front int32) {
	x.splitNames(n, front)
	for id := x.nodes[n].entries; id != 0; id = x.nodes[n].entries {
		x.unlinkEntry(id)
		x.linkEntry(id, front)
	}
	pos := int32(0)
	for b := range x.blocksOf(n, 0, x.nodes[n].n) {
		if x.owner[b]&mark != 0 {
			ext := x.ext[b]
			for k := range x.words {
				for set := *x.fullWord(n, k); set != 0; set &= set - 1 {
					x.enter(Slot(k<<6+lowest(set)), ext, n)
				}
			}
			for i := range x.nodes[n].cut.n {
				if e := x.cuts.slab[x.nodes[n].cut.at+i]; e.k > pos {
					x.enter(e.slot, ext, n)
				}
			}
		}
		pos++
	}
}

// lowest is the number of the lowest bit of a set, which has one.
func lowest(set uint64) int { return bits.TrailingZeros64(set) }
