package radix

import "github.com/dryserve/dryserve/core/seq"

// page is the state of one page that was given out. Local and the links are
// set while it stands in the tree.
type page struct {
	local      uint64
	prev, next Page // neighbours on the edge, 0 at its ends

	hash      uint64 // sequence hash, if published
	published bool
}

// Cache is the page pool and the radix cache of one rank.
type Cache struct {
	pool  pool
	pages []page // by Page

	nodes     []node // by Node; the first is the root
	freeNode  Node
	children  children
	heap      []Node // unlocked leaves, the oldest stamp on top
	clock     uint64
	evictable int // pages of unlocked nodes
	protected int // pages of locked nodes

	hashes  hashes
	removed []uint64
}

// New returns an empty cache of total pages.
func New(total int) *Cache {
	return &Cache{
		pool:     pool{total: total},
		pages:    make([]page, 1, 64),
		nodes:    make([]node, 1, 64),
		children: newChildren(),
		hashes:   newHashes(),
	}
}

// Total, Available, Evictable and Protected count pages: all, the free ones,
// and those in the tree by whether anybody holds them. What is missing from
// the total is private.
func (c *Cache) Total() int     { return c.pool.total }
func (c *Cache) Available() int { return c.pool.available() }
func (c *Cache) Evictable() int { return c.evictable }
func (c *Cache) Protected() int { return c.protected }

// Allocate appends n free pages, private to the caller from now on, to list.
// If there are not that many it changes nothing and reports false.
func (c *Cache) Allocate(list []Page, n int) ([]Page, bool) {
	if n > c.pool.available() {
		return list, false
	}
	list = c.pool.allocate(list, n)
	for len(c.pages) <= c.pool.given {
		c.pages = append(c.pages, page{})
	}
	return list, true
}

// Free gives back private pages in order. Removed tells what vanished.
func (c *Cache) Free(list []Page) {
	c.removed = c.removed[:0]
	for _, p := range list {
		c.release(p)
	}
}

// Removed lists the hashes that the last Evict, Free or Insert made disappear,
// those of whose pages none is left, in the order of the pages. It is valid
// until the next of these calls.
func (c *Cache) Removed() []uint64 { return c.removed }

func (c *Cache) release(p Page) {
	x := &c.pages[p]
	if x.published && c.hashes.remove(x.hash) {
		c.removed = append(c.removed, x.hash)
	}
	*x = page{}
	c.pool.free(p)
}

// Publish announces a page under its sequence hash. It reports whether that is
// new for the page and whether it is the first page with this hash. A page
// keeps its hash until it is freed.
func (c *Cache) Publish(p Page, hash uint64) (fresh, visible bool) {
	x := &c.pages[p]
	if x.published {
		return false, false
	}
	x.published, x.hash = true, hash
	return true, c.hashes.add(hash)
}

// Match is the number of leading pages of ids that the tree knows. It changes
// nothing.
func (c *Cache) Match(ids []seq.Identity) int {
	n, found := Node(0), 0
	for found < len(ids) {
		child := c.child(n, ids[found].Local)
		if child == 0 {
			break
		}
		k := c.common(child, ids[found:])
		found += k
		if k < int(c.nodes[child].count) {
			break
		}
		n = child
	}
	return found
}

// MatchLock finds the leading pages of ids that the tree knows, appends them to
// list and locks them: it returns the node that ends there, which the caller
// holds until Unlock. Nodes on the way are stamped. One that matches in part
// is split; the part that matches keeps the stamp it had.
func (c *Cache) MatchLock(ids []seq.Identity, list []Page) (Node, []Page) {
	c.clock++
	stamp := c.clock
	n := Node(0)
	for len(ids) > 0 {
		child := c.child(n, ids[0].Local)
		if child == 0 {
			break
		}
		k := c.common(child, ids)
		whole := k == int(c.nodes[child].count)
		if whole {
			c.stamp(child, stamp)
		} else {
			child = c.split(child, k)
		}
		list = c.appendEdge(list, child)
		n = child
		ids = ids[k:]
		if !whole {
			break
		}
	}
	c.Lock(n)
	return n, list
}

// Lock makes a node and all above it safe from eviction, once more.
func (c *Cache) Lock(n Node) {
	for n != 0 {
		x := &c.nodes[n]
		if x.locks == 0 {
			c.evictable -= int(x.count)
			c.protected += int(x.count)
			c.notEvictable(n)
		}
		x.locks++
		n = x.parent
	}
}

// Unlock takes back one Lock, or the one of MatchLock.
func (c *Cache) Unlock(n Node) {
	for n != 0 {
		x := &c.nodes[n]
		x.locks--
		if x.locks == 0 {
			c.protected -= int(x.count)
			c.evictable += int(x.count)
			if x.children == 0 {
				c.push(n)
			}
		}
		n = x.parent
	}
}
