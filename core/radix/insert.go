package radix

import "github.com/dryserve/dryserve/core/seq"

// Insert puts private pages, whose contents are ids, into the tree below from,
// the node that the caller holds (0: the root), and returns the node where
// they end; its lock is the caller's business. Where the tree knows the content
// already its page takes the place of the caller's in list, which is freed.
// Removed tells what vanished.
//
// A leaf that nobody holds, or the caller alone as its from, grows in place;
// any other gets a child. An Insert of nothing does nothing (corrections §9).
func (c *Cache) Insert(from Node, ids []seq.Identity, list []Page) Node {
	c.removed = c.removed[:0]
	if len(ids) == 0 {
		return from
	}
	c.clock++
	stamp := c.clock
	for n := from; n != 0; n = c.nodes[n].parent {
		c.stamp(n, stamp)
	}
	n := from
	for {
		x := &c.nodes[n]
		if n != 0 && x.children == 0 && (x.locks == 0 || x.locks == 1 && n == from) {
			c.extend(n, ids, list)
			return n
		}
		child := c.child(n, ids[0].Local)
		if child == 0 {
			return c.grow(n, ids, list)
		}
		k := c.common(child, ids)
		c.adopt(child, list[:k])
		ids, list = ids[k:], list[k:]
		if k < int(c.nodes[child].count) {
			n = c.split(child, k)
			if len(ids) > 0 {
				n = c.grow(n, ids, list)
			}
			return n
		}
		c.stamp(child, stamp)
		n = child
		if len(ids) == 0 {
			return n
		}
	}
}

// adopt replaces the pages of list by the first ones of a node's edge.
func (c *Cache) adopt(n Node, list []Page) {
	p := c.nodes[n].first
	for i, own := range list {
		list[i] = p
		p = c.pages[p].next
		if own != list[i] {
			c.release(own)
		}
	}
}

// extend appends pages to the edge of a leaf.
func (c *Cache) extend(n Node, ids []seq.Identity, list []Page) {
	x := &c.nodes[n]
	for i, p := range list[:len(ids)] {
		c.pages[p].local = ids[i].Local
		c.pages[p].prev, c.pages[p].next = x.last, 0
		if x.last != 0 {
			c.pages[x.last].next = p
		} else {
			x.first = p
		}
		x.last = p
	}
	x.count += int32(len(ids))
	if x.locks > 0 {
		c.protected += len(ids)
	} else {
		c.evictable += len(ids)
	}
}

// grow gives a node a child, stamped later than what led to it.
func (c *Cache) grow(parent Node, ids []seq.Identity, list []Page) Node {
	n := c.newNode()
	c.clock++
	c.nodes[n].stamp = c.clock
	c.nodes[n].parent = parent
	c.extend(n, ids, list)
	c.notEvictable(parent)
	c.nodes[parent].children++
	c.attach(n)
	c.push(n)
	return n
}

// split cuts a node after k pages of its edge, 0 < k < count. The first part
// becomes a node of its own above the rest, with the same stamp and locks.
func (c *Cache) split(n Node, k int) (above Node) {
	above = c.newNode()
	c.detach(n)
	x, a := &c.nodes[n], &c.nodes[above]
	last := x.first
	for range k - 1 {
		last = c.pages[last].next
	}
	*a = node{
		parent: x.parent, first: x.first, last: last, count: int32(k),
		children: 1, locks: x.locks, stamp: x.stamp, at: -1,
	}
	x.parent = above
	x.first = c.pages[last].next
	x.count -= int32(k)
	c.pages[last].next = 0
	c.pages[x.first].prev = 0
	c.attach(above)
	c.attach(n)
	return above
}

// Evict frees at least n pages of the leaves that nobody holds, or all that can
// be had: whole leaves in the order of their stamps, and of the last one only
// as many pages, from its end, as are still wanted. A node whose last child
// goes becomes a leaf. Removed tells what vanished.
func (c *Cache) Evict(n int) {
	c.removed = c.removed[:0]
	for n > 0 && len(c.heap) > 0 {
		leaf := c.heap[0]
		x := &c.nodes[leaf]
		count := int(x.count)
		if n < count {
			c.trim(leaf, n)
			return
		}
		c.notEvictable(leaf)
		c.detach(leaf)
		c.evictable -= count
		n -= count
		parent := x.parent
		c.releaseFrom(x.first)
		c.freeSlot(leaf)
		up := &c.nodes[parent]
		up.children--
		if parent != 0 && up.children == 0 && up.locks == 0 {
			c.push(parent)
		}
	}
}

// trim frees the last k pages of an edge, k < count.
func (c *Cache) trim(n Node, k int) {
	x := &c.nodes[n]
	from := x.last
	for range k - 1 {
		from = c.pages[from].prev
	}
	x.last = c.pages[from].prev
	c.pages[x.last].next = 0
	x.count -= int32(k)
	c.evictable -= k
	c.releaseFrom(from)
}

// releaseFrom frees a page and those after it on its edge.
func (c *Cache) releaseFrom(p Page) {
	for p != 0 {
		next := c.pages[p].next
		c.release(p)
		p = next
	}
}
