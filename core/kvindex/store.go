package kvindex

import "slices"

// Store says that slot w has stored blocks, given by their local and external
// hashes, first to last: as children of the block with the external hash
// parent, or as the first blocks of prompts if hasParent is false (router notes
// §2.2). The two slices have one length.
func (x *Index) Store(w Slot, hasParent bool, parent uint64, locals, exts []uint64) Code {
	p := int32(0)
	if hasParent {
		if slices.Contains(exts, parent) {
			return InvalidSequence
		}
		b := x.parent(w, parent)
		if b < 0 {
			return ParentNotFound
		}
		n, pos := x.place(b)
		had := x.coverage(n, w)
		if pos >= had {
			if x.owner[b]&mark != 0 {
				x.leave(w, parent)
				x.sweep()
			}
			return ParentNotFound
		}
		var done bool
		if p, done = x.resume(n, w, b, pos+1, had, locals, exts); done {
			x.sweep()
			return Applied
		}
	}
	x.descend(p, w, locals, exts)
	x.sweep()
	return Applied
}

// locate is where slot w has the block it calls by an external hash: the block,
// its node and its position there. pos is negative if it has none, or has an
// entry of that hash which leads nowhere (then n is not 0).
func (x *Index) locate(w Slot, ext uint64) (n, pos, b int32) {
	b, ok := x.find(ext)
	if !ok {
		return 0, -1, 0
	}
	if b >= 0 {
		n, pos = x.place(b)
		if pos >= x.coverage(n, w) {
			return 0, -1, 0
		}
		return n, pos, b
	}
	id, _ := x.entry(w, ext)
	if id == 0 {
		return 0, -1, 0
	}
	n = x.odd.entries[id].node
	if pos = x.position(n, ext); pos >= 0 {
		b = x.at(n, pos)
	}
	return n, pos, b
}

// parent is the block that slot w means by an external hash, if it has it;
// negative if there is none.
func (x *Index) parent(w Slot, ext uint64) (b int32) {
	if b = x.tips[w]; int(b) < len(x.ext) && x.ext[b] == ext && x.owner[b] >= 0 && x.owner[b]&mark == 0 {
		return b
	}
	v, ok := x.find(ext)
	if ok && v >= 0 {
		return v
	}
	_, pos, b := x.locate(w, ext)
	if pos < 0 {
		return -1
	}
	return b
}

// resume stores blocks behind block b of the edge of n, which stands before
// position from; w covers had blocks of the edge, b among them. If it cannot
// place all of them there it returns the node that they are children of.
func (x *Index) resume(n int32, w Slot, b, from, had int32, locals, exts []uint64) (p int32, done bool) {
	rest := int(x.nodes[n].n - from)
	k := 0
	if rest > 0 {
		k, b = x.alike(b, locals, exts)
	}
	leaf := x.nodes[n].marks&internal == 0
	if k < len(exts) && (k < rest || !leaf) {
		if rest > 0 {
			n = x.split(n, from)
		}
		return n, false
	}
	if to := from + int32(k); to > had {
		x.raise(n, w, to, had)
	}
	x.name(n, w, from, exts[:k])
	if k < len(exts) {
		x.lengthen(n, w, locals[k:], exts[k:])
	} else {
		x.tips[w] = b
	}
	return n, true
}

// lengthen adds blocks of w alone to the edge of a leaf that w covers.
func (x *Index) lengthen(n int32, w Slot, locals, exts []uint64) {
	x.extendOnly(n, w)
	x.push(n, w, locals, exts)
}

// descend stores blocks below p, along what the tree has of them.
func (x *Index) descend(p int32, w Slot, locals, exts []uint64) {
	for len(locals) > 0 {
		c := x.child(p, locals[0])
		if c == 0 {
			if p != 0 && x.nodes[p].marks&internal == 0 && x.coverage(p, w) == x.nodes[p].n {
				x.lengthen(p, w, locals, exts)
			} else {
				x.branch(p, w, locals, exts)
			}
			return
		}
		k := int32(x.common(c, locals))
		whole := k == x.nodes[c].n
		if !whole && int(k) < len(locals) {
			c = x.split(c, k)
			whole = true
		}
		x.rename(c, exts[:k])
		x.cover(c, w, k)
		x.name(c, w, 0, exts[:k])
		if !whole {
			return
		}
		p, locals, exts = c, locals[k:], exts[k:]
	}
}

// branch adds a child of p with blocks of w alone.
func (x *Index) branch(p int32, w Slot, locals, exts []uint64) {
	n := x.newNode()
	if x.nodes[p].marks&internal == 0 {
		x.trim(p)
	}
	x.nodes[n].first = locals[0]
	x.attach(n, p)
	*x.fullWord(n, int(w)>>6) = 1 << (w & 63)
	x.covers[w]++
	x.push(n, w, locals, exts)
}
