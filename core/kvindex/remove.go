package kvindex

// removed is what a removal has taken from its slot so far: a block that went
// along with an earlier one of the event is no error when its turn comes.
type removed struct {
	nodes []span   // by note of a node
	odd   []uint64 // external hashes
}

// span is a range of positions of a node's edge.
type span struct{ node, lo, hi int32 }

// Remove says that slot w has removed the blocks with these external hashes. A
// block takes the rest of its edge along (router notes §2.3).
func (x *Index) Remove(w Slot, exts []uint64) Code {
	code := Applied
	x.removed.nodes, x.removed.odd = x.removed.nodes[:0], x.removed.odd[:0]
	for i := 0; i < len(exts); {
		ext := exts[i]
		i++
		n, pos, b := x.locate(w, ext)
		if pos < 0 {
			if n != 0 || !x.wasRemoved(ext) {
				code = BlockNotFound
			}
			continue
		}
		had := x.coverage(n, w)
		if pos >= had { // an entry that coverage does not bear out
			x.removed.odd = append(x.removed.odd, ext)
			x.leave(w, ext)
			x.prune(n)
			continue
		}
		lo, more := x.swallow(n, w, b, pos, had, exts[i:])
		i += more
		x.shrink(n, w, lo, had)
		x.prune(n)
	}
	x.sweep()
	return code
}

// swallow counts the leading hashes that name blocks which w has in the same
// node as block b at position pos, and returns the lowest position among these and pos.
func (x *Index) swallow(n int32, w Slot, b, pos, had int32, exts []uint64) (lo int32, count int) {
	lo = pos
	for count < len(exts) {
		ext := exts[count]
		// A neighbour, most of the time.
		if pos > 0 && x.sameRun(b, b-1) && x.ext[b-1] == ext && x.owner[b-1]&mark == 0 {
			b, pos = b-1, pos-1
		} else if pos+1 < had && x.sameRun(b, b+1) && x.ext[b+1] == ext && x.owner[b+1]&mark == 0 {
			b, pos = b+1, pos+1
		} else {
			m, q, c := x.locate(w, ext)
			if m != n || q < 0 || q >= had {
				break
			}
			b, pos = c, q
		}
		lo = min(lo, pos)
		count++
	}
	return lo, count
}

// sameRun reports whether two neighbouring slots hold blocks of one run.
func (x *Index) sameRun(b, c int32) bool {
	return c >= 0 && int(c) < len(x.owner) && (x.owner[b]^x.owner[c])&^flags == 0
}

// shrink takes the blocks of n from position lo on from w, which covers had.
func (x *Index) shrink(n int32, w Slot, lo, had int32) {
	c := &x.nodes[n]
	if spans := x.removed.nodes; int(c.note) < len(spans) && spans[c.note].node == n {
		spans[c.note].lo = lo
	} else {
		c.note = int32(len(spans))
		x.removed.nodes = append(spans, span{n, lo, had})
	}
	x.uncover(n, w, lo, had)
	if c.marks&oddly == 0 {
		return
	}
	for b := range x.blocksOf(n, lo, had) {
		if x.owner[b]&mark != 0 {
			x.removed.odd = append(x.removed.odd, x.ext[b])
			x.leave(w, x.ext[b])
		}
	}
}

// wasRemoved reports whether the event has removed a hash that the slot no
// longer has.
func (x *Index) wasRemoved(ext uint64) bool {
	if v, ok := x.find(ext); ok && v >= 0 {
		n, pos := x.place(v)
		spans, note := x.removed.nodes, x.nodes[n].note
		if int(note) < len(spans) && spans[note].node == n && spans[note].lo <= pos && pos < spans[note].hi {
			return true
		}
	}
	for _, e := range x.removed.odd {
		if e == ext {
			return true
		}
	}
	return false
}

// Clear says that slot w has nothing any more.
func (x *Index) Clear(w Slot) {
	if int(w) >= len(x.sizes) {
		return
	}
	for n := int32(1); int(n) < len(x.nodes) && x.covers[w] > 0; n++ {
		c := &x.nodes[n]
		if c.run == 0 {
			continue
		}
		if k := x.coverage(n, w); k > 0 {
			x.uncover(n, w, 0, k)
			x.prune(n)
		}
	}
	for i := range x.odd.entries {
		if e := &x.odd.entries[i]; i > 0 && e.slot == w {
			x.leave(w, e.ext)
		}
	}
	x.sweep()
}
