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
		n, pos := x.locate(w, parent)
		if pos < 0 {
			return ParentNotFound
		}
		if pos >= x.coverage(n, w) {
			x.leave(w, parent)
			x.sweep()
			return ParentNotFound
		}
		var done bool
		if p, done = x.resume(n, w, pos+1, locals, exts); done {
			x.sweep()
			return Applied
		}
	}
	x.descend(p, w, locals, exts)
	x.sweep()
	return Applied
}

// locate is where slot w has the block it calls by an external hash; pos is
// negative if it has none, or has an entry of that hash which leads nowhere
// (then n is not 0).
func (x *Index) locate(w Slot, ext uint64) (n, pos int32) {
	v, ok := x.find(ext)
	if !ok {
		return 0, -1
	}
	if v >= 0 {
		n, pos = x.place(v)
		if pos >= x.coverage(n, w) {
			return 0, -1
		}
		return n, pos
	}
	id, _ := x.entry(w, ext)
	if id == 0 {
		return 0, -1
	}
	n = x.odd.entries[id].node
	return n, x.position(n, ext)
}

// resume stores blocks behind position from of the edge of n, whose blocks
// before that w covers. If it cannot place all of them there it returns the
// node that they are children of.
func (x *Index) resume(n int32, w Slot, from int32, locals, exts []uint64) (p int32, done bool) {
	rest := int(x.nodes[n].n - from)
	k := min(x.same(x.local, n, from, locals), x.same(x.ext, n, from, exts))
	switch {
	case k == len(exts):
		x.cover(n, w, from+int32(k))
		x.name(n, w, from, exts)
		return n, true
	case k == rest && x.nodes[n].marks&internal == 0:
		x.cover(n, w, from+int32(rest))
		x.name(n, w, from, exts[:k])
		x.lengthen(n, w, locals[k:], exts[k:])
		return n, true
	case rest > 0:
		return x.split(n, from), false
	}
	return n, false
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
		x.rename(c, 0, exts[:k])
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
