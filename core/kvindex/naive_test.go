package kvindex

import (
	"cmp"
	"maps"
	"slices"
)

// naive is the index written down from router notes §2 as it stands there: one
// table per slot, sets as maps, an edge as a list.
type naive struct {
	root   *naiveNode
	lookup map[Slot]map[uint64]*naiveNode
	nodes  []*naiveNode // all there ever were
}

type naiveBlock struct{ local, ext uint64 }

type naiveNode struct {
	edge     []naiveBlock
	at       map[uint64]int // last position of an external hash
	full     map[Slot]bool
	cut      map[Slot]int
	children map[uint64]*naiveNode
	parent   *naiveNode
	internal bool
}

func newNaiveNode() *naiveNode {
	return &naiveNode{at: map[uint64]int{}, full: map[Slot]bool{}, cut: map[Slot]int{}, children: map[uint64]*naiveNode{}}
}

func newNaive() *naive {
	n := &naive{root: newNaiveNode(), lookup: map[Slot]map[uint64]*naiveNode{}}
	n.root.internal = true
	return n
}

func (n *naive) known(w Slot) map[uint64]*naiveNode {
	if n.lookup[w] == nil {
		n.lookup[w] = map[uint64]*naiveNode{}
	}
	return n.lookup[w]
}

func (n *naive) size() (size int) {
	for _, l := range n.lookup {
		size += len(l)
	}
	return size
}

func (x *naiveNode) covers(w Slot, pos int) bool { return x.full[w] || pos < x.cut[w] }

func (x *naiveNode) promote(w Slot) {
	delete(x.cut, w)
	x.full[w] = true
}

func (x *naiveNode) cover(w Slot, k int) {
	switch {
	case k == 0 || x.full[w]:
	case k >= len(x.edge):
		x.promote(w)
	default:
		x.cut[w] = max(x.cut[w], k)
	}
}

// place is the position of an external hash, -1 if there is none.
func (x *naiveNode) place(ext uint64) int {
	if pos, ok := x.at[ext]; ok {
		return pos
	}
	return -1
}

func (x *naiveNode) push(blocks []naiveBlock) {
	for _, b := range blocks {
		x.at[b.ext] = len(x.edge)
		x.edge = append(x.edge, b)
	}
}

func (x *naiveNode) prune() {
	if len(x.full) > 0 {
		return
	}
	clear(x.children)
	if len(x.cut) == 0 && x.parent != nil && x.parent.children[x.edge[0].local] == x {
		delete(x.parent.children, x.edge[0].local)
	}
}

func (n *naive) store(w Slot, hasParent bool, parent uint64, blocks []naiveBlock) Code {
	known := n.known(w)
	p := n.root
	note := func(to *naiveNode, blocks []naiveBlock) {
		for _, b := range blocks {
			known[b.ext] = to
		}
	}
	if hasParent {
		if slices.ContainsFunc(blocks, func(b naiveBlock) bool { return b.ext == parent }) {
			return InvalidSequence
		}
		x := known[parent]
		if x == nil || x.place(parent) < 0 {
			return ParentNotFound
		}
		pos := x.place(parent)
		if !x.covers(w, pos) {
			delete(known, parent)
			return ParentNotFound
		}
		suffix := x.edge[pos+1:]
		k := 0
		for k < min(len(suffix), len(blocks)) && suffix[k] == blocks[k] {
			k++
		}
		switch {
		case k == len(blocks):
			x.cover(w, pos+1+k)
			note(x, blocks)
			return Applied
		case !x.internal && k == len(suffix):
			x.append(w, blocks[k:])
			note(x, blocks)
			return Applied
		case len(suffix) > 0:
			n.split(x, pos+1)
		}
		p = x
	}
	for len(blocks) > 0 {
		c := p.children[blocks[0].local]
		if c == nil {
			if p != n.root && !p.internal && p.covers(w, len(p.edge)-1) {
				p.append(w, blocks)
				note(p, blocks)
				break
			}
			note(n.branch(p, w, blocks), blocks)
			break
		}
		k := 0
		for k < min(len(c.edge), len(blocks)) && c.edge[k].local == blocks[k].local {
			k++
		}
		if k < len(c.edge) {
			if k == len(blocks) {
				c.cover(w, k)
				note(c, blocks)
				break
			}
			n.split(c, k)
			c.promote(w)
			note(c, blocks[:k])
			note(n.branch(c, w, blocks[k:]), blocks[k:])
			break
		}
		c.promote(w)
		note(c, blocks[:k])
		p, blocks = c, blocks[k:]
	}
	return Applied
}

func (n *naive) branch(x *naiveNode, w Slot, blocks []naiveBlock) *naiveNode {
	c := newNaiveNode()
	n.nodes = append(n.nodes, c)
	c.parent, c.full[w] = x, true
	c.push(blocks)
	x.children[blocks[0].local] = c
	x.internal = true
	return c
}

func (x *naiveNode) append(w Slot, blocks []naiveBlock) {
	for o := range maps.Clone(x.full) {
		if o != w {
			delete(x.full, o)
			x.cut[o] = len(x.edge)
		}
	}
	x.promote(w)
	x.push(blocks)
}

func (n *naive) split(x *naiveNode, pos int) {
	s := newNaiveNode()
	n.nodes = append(n.nodes, s)
	s.children, s.internal, s.parent = x.children, x.internal, x
	s.push(x.edge[pos:])
	for ext := range s.at {
		delete(x.at, ext)
	}
	for _, c := range s.children {
		c.parent = s
	}
	x.edge = slices.Clone(x.edge[:pos])
	x.internal = true
	x.children = map[uint64]*naiveNode{s.edge[0].local: s}
	s.full = maps.Clone(x.full)
	for w, k := range maps.Clone(x.cut) {
		if k < pos {
			continue
		}
		x.promote(w)
		if k > pos {
			s.cut[w] = k - pos
		}
	}
	for w := range s.full {
		for _, b := range s.edge {
			n.known(w)[b.ext] = s
		}
	}
	for w, k := range s.cut {
		for _, b := range s.edge[:k] {
			n.known(w)[b.ext] = s
		}
	}
	s.prune()
}

func (n *naive) remove(w Slot, exts []uint64) Code {
	known := n.known(w)
	eager := map[uint64]bool{}
	code := Applied
	for i := 0; i < len(exts); {
		h := exts[i]
		i++
		x := known[h]
		if x == nil {
			if !eager[h] {
				code = BlockNotFound
			}
			continue
		}
		lo := x.place(h)
		if lo < 0 {
			code = BlockNotFound
			continue
		}
		delete(known, h)
		if x.covers(w, lo) {
			for ; i < len(exts); i++ {
				pos := x.place(exts[i])
				if known[exts[i]] != x || pos < 0 || !x.covers(w, pos) {
					break
				}
				lo = min(lo, pos)
			}
		}
		had := x.cut[w]
		if x.full[w] {
			had = len(x.edge)
		}
		stale := []uint64{h}
		if lo < had {
			stale = nil
			for _, b := range x.edge[lo:had] {
				stale = append(stale, b.ext)
			}
			delete(x.full, w)
			delete(x.cut, w)
			x.cover(w, lo)
		}
		x.prune()
		for _, s := range stale {
			delete(known, s)
			eager[s] = true
		}
	}
	return code
}

// clear drops a slot. The reference visits the nodes the slot has entries for,
// which leaves coverage behind where two blocks of the slot share a name.
func (n *naive) clear(w Slot) {
	for _, x := range n.nodes {
		delete(x.full, w)
		delete(x.cut, w)
		x.prune()
	}
	clear(n.known(w))
}

type naiveMatch struct {
	slot  Slot
	depth int
	last  uint64
}

func (n *naive) match(locals []uint64, early bool) (found []naiveMatch) {
	var active map[Slot]bool
	depth, last := 0, uint64(0)
	x := n.root
	for depth < len(locals) {
		x = x.children[locals[depth]]
		if x == nil {
			break
		}
		k := 0
		for k < min(len(x.edge), len(locals)-depth) && x.edge[k].local == locals[depth+k] {
			k++
		}
		if depth == 0 {
			active = maps.Clone(x.full)
			for w, c := range x.cut {
				found = append(found, naiveMatch{w, min(c, k), x.edge[min(c, k)-1].ext})
			}
		}
		for w := range maps.Clone(active) {
			if x.full[w] {
				continue
			}
			delete(active, w)
			m := naiveMatch{w, depth, last}
			if c := min(x.cut[w], k); c > 0 {
				m.depth, m.last = depth+c, x.edge[c-1].ext
			}
			found = append(found, m)
		}
		depth += k
		last = x.edge[k-1].ext
		if len(active) == 0 || k < len(x.edge) || early && len(active) == 1 {
			break
		}
	}
	for w := range active {
		found = append(found, naiveMatch{w, depth, last})
	}
	slices.SortFunc(found, func(a, b naiveMatch) int { return cmp.Compare(a.slot, b.slot) })
	return found
}
