package radix

import (
	"cmp"
	"slices"
)

// A model without any structure to speak of: pages are pointers, every node
// knows the whole list of its pages, and every question is answered by walking
// the tree.

type naivePage struct {
	number    int
	key       uint64
	hash      uint64
	published bool
}

type naiveNode struct {
	parent   *naiveNode
	pages    []*naivePage
	children []*naiveNode
	holders  int
	stamp    int
}

type naive struct {
	total   int
	root    *naiveNode
	clock   int
	out     []*naivePage // every page that is not free
	free    []int        // numbers, in the order they were freed
	given   int
	removed []uint64
}

func newNaive(total int) *naive { return &naive{total: total, root: &naiveNode{}} }

func (m *naive) available() int { return m.total - len(m.out) }

func (m *naive) allocate(n int) ([]*naivePage, bool) {
	if n > m.available() {
		return nil, false
	}
	var list []*naivePage
	for _, number := range m.free[max(0, len(m.free)-n):] {
		list = append(list, &naivePage{number: number})
	}
	m.free = m.free[:len(m.free)-len(list)]
	for len(list) < n {
		m.given++
		list = append(list, &naivePage{number: m.given})
	}
	m.out = append(m.out, list...)
	return list, true
}

func (m *naive) holds(hash uint64) bool {
	return slices.ContainsFunc(m.out, func(p *naivePage) bool { return p.published && p.hash == hash })
}

func (m *naive) release(p *naivePage) {
	m.out = slices.DeleteFunc(m.out, func(x *naivePage) bool { return x == p })
	m.free = append(m.free, p.number)
	if p.published && !m.holds(p.hash) {
		m.removed = append(m.removed, p.hash)
	}
}

func (m *naive) publish(p *naivePage, hash uint64) (fresh, visible bool) {
	if p.published {
		return false, false
	}
	visible = !m.holds(hash)
	p.published, p.hash = true, hash
	return true, visible
}

// all lists the nodes but the root.
func (m *naive) all() []*naiveNode {
	var list []*naiveNode
	var walk func(n *naiveNode)
	walk = func(n *naiveNode) {
		for _, c := range n.children {
			list = append(list, c)
			walk(c)
		}
	}
	walk(m.root)
	return list
}

func (m *naive) count(locked bool) int {
	n := 0
	for _, x := range m.all() {
		if (x.holders > 0) == locked {
			n += len(x.pages)
		}
	}
	return n
}

// step finds the child that begins as keys do and how much of it they match.
func (n *naiveNode) step(keys []uint64) (*naiveNode, int) {
	for _, c := range n.children {
		k := 0
		for k < len(c.pages) && k < len(keys) && c.pages[k].key == keys[k] {
			k++
		}
		if k > 0 {
			return c, k
		}
	}
	return nil, 0
}

func (m *naive) match(keys []uint64) int {
	n, found := m.root, 0
	for {
		c, k := n.step(keys[found:])
		found += k
		if c == nil || k < len(c.pages) {
			return found
		}
		n = c
	}
}

func (m *naive) split(n *naiveNode, k int) *naiveNode {
	above := &naiveNode{parent: n.parent, pages: slices.Clone(n.pages[:k]), children: []*naiveNode{n}, holders: n.holders, stamp: n.stamp}
	n.parent.children[slices.Index(n.parent.children, n)] = above
	n.parent, n.pages = above, slices.Clone(n.pages[k:])
	return above
}

func (m *naive) lock(n *naiveNode, by int) {
	for ; n != m.root; n = n.parent {
		n.holders += by
	}
}

func (m *naive) matchLock(keys []uint64) (*naiveNode, []*naivePage) {
	m.clock++
	stamp, n := m.clock, m.root
	var pages []*naivePage
	for {
		c, k := n.step(keys)
		if c == nil {
			break
		}
		if k < len(c.pages) {
			n = m.split(c, k)
			pages = append(pages, n.pages...)
			break
		}
		c.stamp = stamp
		pages = append(pages, c.pages...)
		n, keys = c, keys[k:]
	}
	m.lock(n, 1)
	return n, pages
}

// insert returns the node where the keys end and the pages that hold them.
func (m *naive) insert(from *naiveNode, keys []uint64, own []*naivePage) (*naiveNode, []*naivePage) {
	m.removed = nil
	if len(keys) == 0 {
		return from, nil
	}
	for i, p := range own {
		p.key = keys[i]
	}
	m.clock++
	stamp := m.clock
	for n := from; n != m.root; n = n.parent {
		n.stamp = stamp
	}
	var kept []*naivePage
	for n := from; ; {
		mine := n == from && n.holders == 1
		if n != m.root && len(n.children) == 0 && (n.holders == 0 || mine) {
			n.pages = append(n.pages, own...)
			return n, append(kept, own...)
		}
		c, k := n.step(keys)
		if c != nil {
			for i := range k {
				kept = append(kept, c.pages[i])
				m.release(own[i])
			}
			keys, own = keys[k:], own[k:]
			if k < len(c.pages) {
				n = m.split(c, k)
			} else {
				c.stamp = stamp
				n = c
			}
			if len(keys) == 0 {
				return n, kept
			}
			if k == 0 || n == c {
				continue
			}
		}
		m.clock++
		child := &naiveNode{parent: n, pages: own, stamp: m.clock}
		n.children = append(n.children, child)
		return child, append(kept, own...)
	}
}

func (m *naive) evict(n int) {
	m.removed = nil
	for n > 0 {
		leaves := slices.DeleteFunc(m.all(), func(x *naiveNode) bool { return x.holders > 0 || len(x.children) > 0 })
		if len(leaves) == 0 {
			return
		}
		oldest := slices.MinFunc(leaves, func(a, b *naiveNode) int { return cmp.Compare(a.stamp, b.stamp) })
		gone := oldest.pages[max(0, len(oldest.pages)-n):]
		oldest.pages = oldest.pages[:len(oldest.pages)-len(gone)]
		n -= len(gone)
		for _, p := range gone {
			m.release(p)
		}
		if up := oldest.parent; len(oldest.pages) == 0 {
			up.children = slices.DeleteFunc(up.children, func(x *naiveNode) bool { return x == oldest })
		}
	}
}
