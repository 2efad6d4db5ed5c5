// Package radixmodel is a page pool and radix cache without any structure to
// speak of, for tests: pages are pointers, every node knows the whole list of
// its pages, and every question is answered by walking the tree. core/radix and
// the schedulers on it are compared with it.
//
// Source: engine notes §7; corrections §9.
package radixmodel

import (
	"cmp"
	"slices"
)

// Page is a page that is not free.
type Page struct {
	Number    int    // from 1
	Key       uint64 // the content's hash, in the tree
	Hash      uint64 // if Published
	Published bool
}

// Node is a node of the tree and the pages of the edge that leads to it.
type Node struct {
	Parent   *Node
	Pages    []*Page
	Children []*Node
	Holders  int
	Stamp    int
}

// Cache is the pool and the tree.
type Cache struct {
	Total   int
	Root    *Node
	clock   int
	out     []*Page // every page that is not free
	free    []int   // numbers, in the order they were freed
	given   int
	Removed []uint64 // what the last Evict or Insert made vanish, and Release since
}

// New returns an empty cache of total pages.
func New(total int) *Cache { return &Cache{Total: total, Root: &Node{}} }

// Available counts the free pages.
func (m *Cache) Available() int { return m.Total - len(m.out) }

// Allocate takes n pages, or none if there are not that many.
func (m *Cache) Allocate(n int) ([]*Page, bool) {
	if n > m.Available() {
		return nil, false
	}
	var list []*Page
	for _, number := range m.free[max(0, len(m.free)-n):] {
		list = append(list, &Page{Number: number})
	}
	m.free = m.free[:len(m.free)-len(list)]
	for len(list) < n {
		m.given++
		list = append(list, &Page{Number: m.given})
	}
	m.out = append(m.out, list...)
	return list, true
}

func (m *Cache) holds(hash uint64) bool {
	return slices.ContainsFunc(m.out, func(p *Page) bool { return p.Published && p.Hash == hash })
}

// Release frees a private page.
func (m *Cache) Release(p *Page) {
	m.out = slices.DeleteFunc(m.out, func(x *Page) bool { return x == p })
	m.free = append(m.free, p.Number)
	if p.Published && !m.holds(p.Hash) {
		m.Removed = append(m.Removed, p.Hash)
	}
}

// Publish gives a page its hash: is that new for it, and is it the first with it?
func (m *Cache) Publish(p *Page, hash uint64) (fresh, visible bool) {
	if p.Published {
		return false, false
	}
	visible = !m.holds(hash)
	p.Published, p.Hash = true, hash
	return true, visible
}

// All lists the nodes but the root.
func (m *Cache) All() []*Node {
	var list []*Node
	var walk func(n *Node)
	walk = func(n *Node) {
		for _, c := range n.Children {
			list = append(list, c)
			walk(c)
		}
	}
	walk(m.Root)
	return list
}

// Count counts the pages of the nodes that somebody holds, or of the others.
func (m *Cache) Count(locked bool) int {
	n := 0
	for _, x := range m.All() {
		if (x.Holders > 0) == locked {
			n += len(x.Pages)
		}
	}
	return n
}

// step finds the child that begins as keys do and how much of it they match.
func (n *Node) step(keys []uint64) (*Node, int) {
	for _, c := range n.Children {
		k := 0
		for k < len(c.Pages) && k < len(keys) && c.Pages[k].Key == keys[k] {
			k++
		}
		if k > 0 {
			return c, k
		}
	}
	return nil, 0
}

// Match is the number of leading keys that are known.
func (m *Cache) Match(keys []uint64) int {
	n, found := m.Root, 0
	for {
		c, k := n.step(keys[found:])
		found += k
		if c == nil || k < len(c.Pages) {
			return found
		}
		n = c
	}
}

func (m *Cache) split(n *Node, k int) *Node {
	above := &Node{Parent: n.Parent, Pages: slices.Clone(n.Pages[:k]), Children: []*Node{n}, Holders: n.Holders, Stamp: n.Stamp}
	n.Parent.Children[slices.Index(n.Parent.Children, n)] = above
	n.Parent, n.Pages = above, slices.Clone(n.Pages[k:])
	return above
}

// Lock adds holders to a node and to all above it.
func (m *Cache) Lock(n *Node, by int) {
	for ; n != m.Root; n = n.Parent {
		n.Holders += by
	}
}

// MatchLock holds the known part of keys and returns its end and its pages.
func (m *Cache) MatchLock(keys []uint64) (*Node, []*Page) {
	m.clock++
	stamp, n := m.clock, m.Root
	var pages []*Page
	for {
		c, k := n.step(keys)
		if c == nil {
			break
		}
		if k < len(c.Pages) {
			n = m.split(c, k)
			pages = append(pages, n.Pages...)
			break
		}
		c.Stamp = stamp
		pages = append(pages, c.Pages...)
		n, keys = c, keys[k:]
	}
	m.Lock(n, 1)
	return n, pages
}

// Insert returns the node where the keys end and the pages that hold them.
func (m *Cache) Insert(from *Node, keys []uint64, own []*Page) (*Node, []*Page) {
	m.Removed = nil
	if len(keys) == 0 {
		return from, nil
	}
	for i, p := range own {
		p.Key = keys[i]
	}
	m.clock++
	stamp := m.clock
	for n := from; n != m.Root; n = n.Parent {
		n.Stamp = stamp
	}
	var kept []*Page
	for n := from; ; {
		mine := n == from && n.Holders == 1
		if n != m.Root && len(n.Children) == 0 && (n.Holders == 0 || mine) {
			n.Pages = append(n.Pages, own...)
			return n, append(kept, own...)
		}
		c, k := n.step(keys)
		if c != nil {
			for i := range k {
				kept = append(kept, c.Pages[i])
				m.Release(own[i])
			}
			keys, own = keys[k:], own[k:]
			if k < len(c.Pages) {
				n = m.split(c, k)
			} else {
				c.Stamp = stamp
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
		child := &Node{Parent: n, Pages: own, Stamp: m.clock}
		n.Children = append(n.Children, child)
		return child, append(kept, own...)
	}
}

// Evict frees n pages, or as many as can be had.
func (m *Cache) Evict(n int) {
	m.Removed = nil
	for n > 0 {
		leaves := slices.DeleteFunc(m.All(), func(x *Node) bool { return x.Holders > 0 || len(x.Children) > 0 })
		if len(leaves) == 0 {
			return
		}
		oldest := slices.MinFunc(leaves, func(a, b *Node) int { return cmp.Compare(a.Stamp, b.Stamp) })
		gone := oldest.Pages[max(0, len(oldest.Pages)-n):]
		oldest.Pages = oldest.Pages[:len(oldest.Pages)-len(gone)]
		n -= len(gone)
		for _, p := range gone {
			m.Release(p)
		}
		if up := oldest.Parent; len(oldest.Pages) == 0 {
			up.Children = slices.DeleteFunc(up.Children, func(x *Node) bool { return x == oldest })
		}
	}
}
