package kvindex

// spareBlocks bounds the room that a growing edge gets ahead of use.
const spareBlocks = 64

// push lengthens the edge of n by blocks that slot w has just stored. n is
// covered by w and by nobody else beyond its old length.
func (x *Index) push(n int32, w Slot, locals, exts []uint64) {
	x.reserve(len(exts))
	for len(locals) > 0 {
		k, b := x.room(n, len(locals))
		copy(x.local[b:], locals[:k])
		copy(x.ext[b:], exts[:k])
		r := x.nodes[n].last
		for i := range k {
			x.owner[int(b)+i] = r
		}
		x.bind(n, w, b, exts[:k])
		x.tips[w] = b + int32(k) - 1
		locals, exts = locals[k:], exts[k:]
	}
}

// room returns slots at the end of the edge for up to want blocks, which count
// as used.
func (x *Index) room(n int32, want int) (got int, b int32) {
	c := &x.nodes[n]
	if c.last != 0 {
		if r := &x.runs[c.last]; r.room > r.n {
			got = min(want, int(r.room-r.n))
			b = r.start + r.n
			r.n += int32(got)
			c.n += int32(got)
			return got, b
		}
	}
	size := int32(want)
	if c.n > 0 { // it grows: room for as many again
		size = max(size, min(c.n+8, spareBlocks))
	}
	b, owned := x.take(size)
	want = min(want, int(owned))
	id := x.newRun()
	x.runs[id] = run{start: b, n: int32(want), room: owned, node: n, base: c.n}
	for i := want; i < int(owned); i++ {
		x.owner[int(b)+i] = loose
	}
	if c.last != 0 {
		x.runs[c.last].next = id
	} else {
		c.run = id
	}
	c.last = id
	c.n += int32(want)
	return want, b
}

func (x *Index) newRun() int32 {
	r := x.freeRun
	if r != 0 {
		x.freeRun = x.runs[r].next
		return r
	}
	x.runs = append(x.runs, run{})
	return int32(len(x.runs) - 1)
}

func (x *Index) freeRunSlot(r int32) {
	x.runs[r] = run{next: x.freeRun}
	x.freeRun = r
}

// trim gives back the room behind the blocks of an edge that will not grow.
func (x *Index) trim(n int32) {
	if last := x.nodes[n].last; last != 0 {
		r := &x.runs[last]
		x.give(r.start+r.n, r.room-r.n)
		r.room = r.n
	}
}

// bind enters the external hashes of new blocks of n, from slot b on. w has
// stored them.
func (x *Index) bind(n int32, w Slot, b int32, exts []uint64) {
	known := 0
	for k, ext := range exts {
		if k%ahead == 0 && len(exts)-k > 1 {
			x.touched ^= x.blocks.touch(exts[k:min(k+ahead, len(exts))])
		}
		if _, ok := x.find(ext); ok {
			x.bindOdd(n, w, b+int32(k), ext)
			known++
			continue
		}
		x.blocks.insert(ext, b+int32(k))
	}
	x.count(w, len(exts)-known)
}

// place is the node of a block and its position in the edge.
func (x *Index) place(b int32) (n, pos int32) {
	r := &x.runs[x.owner[b]&^flags]
	return r.node, r.base + b - r.start
}

// at is the block at a position of an edge.
func (x *Index) at(n, pos int32) int32 {
	r := &x.runs[x.nodes[n].run]
	for pos >= r.base+r.n {
		r = &x.runs[r.next]
	}
	return r.start + pos - r.base
}

// common is the number of leading blocks of locals that the edge of n has.
func (x *Index) common(n int32, locals []uint64) int {
	k := 0
	for id := x.nodes[n].run; id != 0; {
		r := &x.runs[id]
		edge := x.local[r.start:][:r.n]
		rest := locals[k:]
		if len(edge) > len(rest) {
			edge = edge[:len(rest)]
		}
		rest = rest[:len(edge)]
		for i, l := range edge {
			if l != rest[i] {
				return k + i
			}
		}
		if k += len(edge); k == len(locals) {
			break
		}
		id = r.next
	}
	return k
}

// alike is the number of leading blocks, given by both their hashes, that the
// edge to which block b belongs has behind it, and the last of them, b if there
// is none.
func (x *Index) alike(b int32, locals, exts []uint64) (k int, last int32) {
	id := x.owner[b] &^ flags
	last = b
	for b++; ; {
		r := &x.runs[id]
		n := min(int(r.start+r.n-b), len(locals)-k)
		edge, names := x.local[b:][:n], x.ext[b:][:n]
		for i := range edge {
			if edge[i] != locals[k] || names[i] != exts[k] {
				return k, last
			}
			last = b + int32(i)
			k++
		}
		if k == len(locals) || r.next == 0 {
			return k, last
		}
		id = r.next
		b = x.runs[id].start
	}
}

// named is the number of leading external hashes that the edge of n begins
// with.
func (x *Index) named(n int32, exts []uint64) int {
	k := 0
	for id := x.nodes[n].run; id != 0 && k < len(exts); id = x.runs[id].next {
		r := &x.runs[id]
		names := x.ext[r.start:][:min(int(r.n), len(exts)-k)]
		for i := range names {
			if names[i] != exts[k+i] {
				return k + i
			}
		}
		k += len(names)
	}
	return k
}

// split divides the edge of n before position pos, 0 < pos < its length. A new
// node takes the blocks before it and the place below the parent; n keeps the
// rest, its children and its handle. n may be dead afterwards.
func (x *Index) split(n, pos int32) (front int32) {
	front = x.newNode()
	p, c := &x.nodes[front], &x.nodes[n]
	p.first = c.first
	p.marks = internal | c.marks&(attached|oddly)
	p.parent, p.prev, p.next = c.parent, c.prev, c.next
	if c.marks&attached != 0 {
		x.children.slots[x.childSlot(n)] = slot(childTag(c.parent, c.first), front)
		if c.prev != 0 {
			x.nodes[c.prev].next = front
		} else {
			x.nodes[c.parent].child = front
		}
		if c.next != 0 {
			x.nodes[c.next].prev = front
		}
		c.marks &^= attached
	}
	x.splitRuns(n, front, pos)
	x.splitCoverage(n, front, pos)
	c.first = x.local[x.runs[c.run].start]
	x.attach(n, front)
	if c.marks&oddly != 0 || c.entries != 0 {
		x.splitEntries(n, front)
	}
	x.prune(n)
	return front
}

// splitRuns moves the runs of the first pos blocks to front.
func (x *Index) splitRuns(n, front, pos int32) {
	p, c := &x.nodes[front], &x.nodes[n]
	id := c.run
	p.run = id
	for ; x.runs[id].base+x.runs[id].n < pos; id = x.runs[id].next {
		x.runs[id].node = front
	}
	x.runs[id].node = front
	p.last = id
	if r := &x.runs[id]; r.base+r.n > pos {
		x.halve(id, pos-r.base, n)
	}
	c.run = x.runs[id].next
	x.runs[id].next = 0
	p.n = pos
	c.n -= pos
	for id = c.run; id != 0; id = x.runs[id].next {
		x.runs[id].base -= pos
	}
	if c.last == p.last {
		c.last = c.run
	}
}

// halve divides a run after k of its blocks; the second part goes to node n.
func (x *Index) halve(id, k, n int32) {
	tail := x.newRun()
	r := &x.runs[id]
	x.runs[tail] = run{start: r.start + k, n: r.n - k, room: r.room - k, node: n, base: r.base + k, next: r.next}
	r.n, r.room, r.next = k, k, tail
	for b := r.start + k; b < r.start+k+x.runs[tail].n; b++ {
		x.owner[b] = tail | x.owner[b]&flags
	}
}

// splitCoverage: who covered the whole edge covers both parts; the others keep
// what they had.
func (x *Index) splitCoverage(n, front, pos int32) {
	p, c := &x.nodes[front], &x.nodes[n]
	for k := range x.words {
		*x.fullWord(front, k) = *x.fullWord(n, k)
		for set := *x.fullWord(n, k); set != 0; set &= set - 1 {
			x.covers[k<<6+lowest(set)]++
		}
	}
	// The cuts at or after pos stay in n's list, shortened; those at pos leave.
	kept := int32(0)
	for i := range c.cut.n {
		e := x.cuts.slab[c.cut.at+i]
		if e.k < pos {
			x.cuts.set(&p.cut, e.slot, e.k)
			continue
		}
		*x.fullWord(front, int(e.slot)>>6) |= 1 << (e.slot & 63)
		if e.k > pos {
			x.covers[e.slot]++
			x.cuts.slab[c.cut.at+kept] = cut{e.slot, e.k - pos}
			kept++
		}
	}
	if c.cut.n = kept; kept == 0 {
		x.cuts.free(&c.cut)
	}
}

// dropEdge frees the blocks of a dead node.
func (x *Index) dropEdge(n int32) {
	for id := x.nodes[n].run; id != 0; {
		r := x.runs[id]
		for b := r.start; b < r.start+r.n; b++ {
			if (b-r.start)%ahead == 0 {
				x.touched ^= x.blocks.touch(x.ext[b:min(b+ahead, r.start+r.n)])
			}
			if x.owner[b]&mark != 0 {
				x.unbindOdd(x.ext[b])
			} else {
				x.blocks.remove(x.ext[b], b)
			}
			x.owner[b] = loose
		}
		x.give(r.start, r.room)
		x.freeRunSlot(id)
		id = r.next
	}
	for k := 1; k < x.words; k++ {
		*x.fullWord(n, k) = 0
	}
}
