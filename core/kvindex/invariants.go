//go:build invariants

package kvindex

// Check panics if the index breaks an invariant of the package. It looks at
// every node, block, cut and entry.
func (x *Index) Check() {
	free := map[int32]bool{}
	for n := x.freeNode; n != 0; n = x.nodes[n].parent {
		free[n] = true
	}
	sizes, covers := make([]int, len(x.sizes)), make([]int, len(x.sizes))
	known, known2 := map[uint64]int32{}, map[uint64]int32{} // unmarked, marked: blocks
	children := 0
	owned := 0
	for i := 1; i < len(x.nodes); i++ {
		n := int32(i)
		if free[n] {
			if x.anyFull(n) || x.nodes[n].run != 0 {
				panic("kvindex: a free node is not empty")
			}
			continue
		}
		c := &x.nodes[n]
		if c.marks&attached != 0 {
			children++
			if x.child(c.parent, c.first) != n || x.nodes[c.parent].marks&internal == 0 {
				panic("kvindex: a child cannot be found")
			}
		}
		if c.cut.n == 0 && !x.anyFull(n) && (c.entries == 0 || c.marks&attached != 0 || c.child != 0) {
			panic("kvindex: a node that nobody covers")
		}
		if !x.anyFull(n) && c.child != 0 {
			panic("kvindex: children of a node that nobody covers wholly")
		}
		owned += x.checkEdge(n, known, known2)
		x.checkCoverage(n, sizes, covers)
	}
	if children != x.children.used {
		panic("kvindex: the table of children is wrong")
	}
	x.checkNames(known, known2, sizes)
	total := 0
	for w, size := range sizes {
		total += size
		if x.sizes[w] != size || x.covers[w] != covers[w] {
			panic("kvindex: a slot is miscounted")
		}
	}
	if total != x.size || len(x.dead) != 0 {
		panic("kvindex: the sums are wrong")
	}
	x.checkSpace(owned)
}

func (x *Index) checkEdge(n int32, plain, odd map[uint64]int32) (owned int) {
	c := &x.nodes[n]
	count, last := int32(0), int32(0)
	for id := c.run; id != 0; id = x.runs[id].next {
		r := x.runs[id]
		if r.node != n || r.base != count || r.n < 1 || r.n > r.room || r.next != 0 && r.n != r.room {
			panic("kvindex: a run is wrong")
		}
		for b := r.start; b < r.start+r.n; b++ {
			if x.owner[b]&^flags != id {
				panic("kvindex: a block of another run")
			}
			if x.owner[b]&mark != 0 {
				odd[x.ext[b]]++
				if c.marks&oddly == 0 {
					panic("kvindex: a marked block in an unmarked node")
				}
			} else if v, ok := x.find(x.ext[b]); !ok || v != b || x.owner[b]&lost != 0 {
				panic("kvindex: a block cannot be found")
			} else {
				plain[x.ext[b]]++
			}
		}
		for b := r.start + r.n; b < r.start+r.room; b++ {
			if x.owner[b] != loose {
				panic("kvindex: spare room in use")
			}
		}
		count += r.n
		owned += int(r.room)
		last = id
	}
	if count == 0 || count != c.n || last != c.last || c.first != x.local[x.runs[c.run].start] {
		panic("kvindex: an edge is miscounted")
	}
	if c.marks&internal != 0 && x.runs[last].n != x.runs[last].room {
		panic("kvindex: spare room behind an edge that will not grow")
	}
	return owned
}

func (x *Index) checkCoverage(n int32, sizes, covers []int) {
	c := &x.nodes[n]
	for w := range x.sizes {
		if x.isFull(n, Slot(w)) {
			covers[w]++
			sizes[w] += int(c.n) - x.marked(n, 0, c.n)
		}
	}
	last := Slot(-1)
	for _, e := range x.cuts.list(c.cut) {
		if e.slot <= last || e.k < 1 || e.k >= c.n || x.isFull(n, e.slot) {
			panic("kvindex: a cut is wrong")
		}
		last = e.slot
		covers[e.slot]++
		sizes[e.slot] += int(e.k) - x.marked(n, 0, e.k)
	}
}

// checkNames checks the odd hashes and adds their entries to sizes.
func (x *Index) checkNames(plain, odd map[uint64]int32, sizes []int) {
	used := len(plain)
	for ext, n := range plain {
		if n != 1 || odd[ext] != 0 {
			panic("kvindex: two blocks share a hash that is not odd")
		}
	}
	entries := map[uint64]int32{}
	for i := 1; i < len(x.nodes); i++ {
		prev := int32(0)
		for id := x.nodes[i].entries; id != 0; id = x.odd.entries[id].next {
			e := x.odd.entries[id]
			if found, _ := x.entry(e.slot, e.ext); found != id || e.node != int32(i) || e.prev != prev {
				panic("kvindex: an entry is lost")
			}
			prev = id
			entries[e.ext]++
			sizes[e.slot]++
		}
	}
	total := 0
	for i := range x.odd.list {
		r := &x.odd.list[i]
		if i == 0 || r.spare {
			continue
		}
		if v, ok := x.find(r.ext); !ok || v != ^int32(i) || r.blocks != odd[r.ext] || r.entries != entries[r.ext] || r.blocks+r.entries == 0 {
			panic("kvindex: an odd hash is miscounted")
		}
		used++
		total += int(r.entries)
	}
	if used != x.blocks.used || total != x.odd.found.used {
		panic("kvindex: the tables of hashes are miscounted")
	}
	x.checkBuckets()
}

// checkBuckets checks that no entry is lost and that passing is counted.
func (x *Index) checkBuckets() {
	t := &x.blocks
	passed := make([]uint64, len(t.buckets))
	count := 0
	for i := range t.buckets {
		b := &t.buckets[i]
		n := b.hi >> countShift & 0xFF
		count += int(n)
		for k := range uint64(bucketSize) {
			if k >= n {
				if b.tag(k) != 0 {
					panic("kvindex: a tag without an entry")
				}
				continue
			}
			h := mix(x.nameOf(b.ids[k]))
			if b.tag(k) != tagByte(h) {
				panic("kvindex: a wrong tag")
			}
			for j := int(h >> t.shift); j != i; j = (j + 1) % len(t.buckets) {
				passed[j]++
			}
		}
	}
	for i := range t.buckets {
		if t.buckets[i].hi>>passedShift != passed[i] {
			panic("kvindex: passing is miscounted")
		}
	}
	if count != t.used {
		panic("kvindex: the buckets are miscounted")
	}
}

func (x *Index) checkSpace(owned int) {
	free := 0
	for order, b := range x.space.heads {
		for prev := int32(-1); b >= 0; b = int32(uint32(x.local[b])) {
			if x.owner[b] != int32(head-order) || b&(1<<order-1) != 0 || int32(uint32(x.ext[b])) != prev {
				panic("kvindex: a free piece is wrong")
			}
			prev = b
			free += 1 << order
		}
	}
	if free+owned != len(x.owner) {
		panic("kvindex: slots are lost")
	}
}
