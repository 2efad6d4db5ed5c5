package branch

import (
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/prefix"
)

// node is a node and the edge that leads to it: pages start to start+count-1
// of seq. Slot 0 is the root, which has none.
type node struct {
	seq      Seq
	start    int32
	count    int32
	parent   int32 // of a free slot: the next free one
	children int32
	locks    int32 // holders of it or of a node below
	at       int32 // place in the heap, -1 if not there
	stamp    Stamp
}

// Cache is the pool and the radix cache of one rank.
type Cache struct {
	tree      *prefix.Tree
	bs, tbs   int64 // tokens per page, per trace hash id
	total     int
	used      int // pages that are private or of locked nodes
	evictable int // pages of unlocked nodes

	nodes    []node
	freeNode int32
	heap     []int32 // unlocked leaves, the oldest stamp on top
	table    []entry
	entries  int

	// Changes notes what becomes of the pages of prompts, if it is on.
	Changes coverage.Log

	// Now is the stamp of the next use; the caller sets it, and each use takes
	// one Seq or two.
	Now Stamp
}

// New returns an empty cache of total pages of pageSize tokens, for prompts
// that are paths of tree with traceBlockSize tokens per id.
func New(tree *prefix.Tree, total, pageSize, traceBlockSize int) *Cache {
	return &Cache{
		tree: tree, bs: int64(pageSize), tbs: int64(traceBlockSize), total: total,
		nodes: append(make([]node, 0, 64), node{at: -1}), table: make([]entry, 64),
	}
}

// Free, Evictable and Used count pages; together they are the pool.
func (c *Cache) Free() int      { return c.total - c.used - c.evictable }
func (c *Cache) Evictable() int { return c.evictable }
func (c *Cache) Used() int      { return c.used }

// Room is what can be had: free pages and evictable ones.
func (c *Cache) Room() int { return c.total - c.used }

// Take makes n free pages private, evicting what is missing. The caller has
// checked that there is Room.
func (c *Cache) Take(n int) {
	c.Evict(n - c.Free())
	c.used += n
}

// Give frees n private pages.
func (c *Cache) Give(n int) { c.used -= n }

// now is the stamp of a use.
func (c *Cache) now() Stamp {
	c.Now.Seq++
	return c.Now
}

// Match is the number of the first limit pages of q that the tree knows. It
// changes nothing.
func (c *Cache) Match(q Seq, limit int32) int32 {
	at := int32(0)
	for at < limit {
		n := c.find(c.Key(q, at))
		if n == 0 {
			break
		}
		k := c.along(n, q, limit)
		at += k
		if k < c.nodes[n].count {
			break
		}
	}
	return at
}

// along is the number of leading pages of a node's edge that q has among its
// first limit; the edge begins on q.
func (c *Cache) along(n int32, q Seq, limit int32) int32 {
	x := &c.nodes[n]
	return min(x.count, min(limit, c.common(q, x.seq))-x.start)
}

// MatchLock locks what Match finds: it returns the node that ends there, which
// the caller holds until Unlock, and the number of pages. Nodes on the way are
// stamped. One that matches in part is split; the part that matches keeps the
// stamp it had.
func (c *Cache) MatchLock(q Seq, limit int32) (node, pages int32) {
	stamp := c.now()
	at := int32(0)
	for at < limit {
		child := c.find(c.Key(q, at))
		if child == 0 {
			break
		}
		k := c.along(child, q, limit)
		at += k
		if k < c.nodes[child].count {
			node = c.split(child, k)
			break
		}
		c.mark(child, stamp)
		node = child
	}
	c.Lock(node)
	return node, at
}

// Lock makes a node and all above it safe from eviction, once more.
func (c *Cache) Lock(n int32) {
	for n != 0 {
		x := &c.nodes[n]
		if x.locks == 0 {
			c.evictable -= int(x.count)
			c.used += int(x.count)
			c.pull(n)
		}
		x.locks++
		n = x.parent
	}
}

// Unlock takes back one Lock, or the one of MatchLock.
func (c *Cache) Unlock(n int32) {
	for n != 0 {
		x := &c.nodes[n]
		x.locks--
		if x.locks == 0 {
			c.used -= int(x.count)
			c.evictable += int(x.count)
			if x.children == 0 {
				c.push(n)
			}
		}
		n = x.parent
	}
}

// Insert puts private pages from..to-1 of q into the tree below the node that
// the caller holds (0: the root), which ends at page from, and returns the node
// where they end; its lock is the caller's business. Copies of what the tree
// knows already are freed.
//
// A leaf that nobody holds, or the caller alone as its below, grows in place;
// any other gets a child. An Insert of nothing does nothing (corrections §9).
func (c *Cache) Insert(below int32, q Seq, from, to int32) int32 {
	if from >= to {
		return below
	}
	if c.Changes.On && from < q.Pages {
		c.Changes.Stored(q.Leaf, min(to, q.Pages))
	}
	stamp := c.now()
	for n := below; n != 0; n = c.nodes[n].parent {
		c.mark(n, stamp)
	}
	n := below
	for {
		x := &c.nodes[n]
		if n != 0 && x.children == 0 && (x.locks == 0 || x.locks == 1 && n == below) {
			x.seq = q
			c.lengthen(n, to-from)
			return n
		}
		child := c.find(c.Key(q, from))
		if child == 0 {
			return c.grow(n, q, from, to)
		}
		k := c.along(child, q, to)
		c.used -= int(k)
		from += k
		if k < c.nodes[child].count {
			n = c.split(child, k)
			if from < to {
				n = c.grow(n, q, from, to)
			}
			return n
		}
		c.mark(child, stamp)
		n = child
		if from == to {
			return n
		}
	}
}

// lengthen adds k private pages to the edge of a leaf.
func (c *Cache) lengthen(n, k int32) {
	x := &c.nodes[n]
	x.count += k
	if x.locks == 0 {
		c.used -= int(k)
		c.evictable += int(k)
	}
}

// grow gives a node a child, stamped later than what led to it.
func (c *Cache) grow(parent int32, q Seq, from, to int32) int32 {
	n := c.newNode()
	c.nodes[n] = node{seq: q, start: from, parent: parent, at: -1, stamp: c.now()}
	c.lengthen(n, to-from)
	c.pull(parent)
	c.nodes[parent].children++
	c.put(c.Key(q, from), n)
	c.push(n)
	return n
}

// Own reports whether a node that q holds is a leaf that nobody else can reach
// as long as q holds it: it is q's alone and ends with a page of q's own.
func (c *Cache) Own(n int32, q Seq) bool {
	x := &c.nodes[n]
	return x.locks == 1 && x.children == 0 && x.start+x.count > q.Pages
}

// Advance lets a leaf that is its holder's Own end at page to: the holder has
// cached pages of its own since, the last of them at stamp.
func (c *Cache) Advance(n, to int32, stamp Stamp) {
	c.nodes[n].count = to - c.nodes[n].start
	for ; n != 0; n = c.nodes[n].parent {
		if x := &c.nodes[n]; x.stamp.before(stamp) {
			x.stamp = stamp // locked, so in no heap
		}
	}
}

// Evict frees at least n pages of the leaves that nobody holds, or all that can
// be had: whole leaves in the order of their stamps, and of the last one only
// as many pages, from its end, as are still wanted. A node whose last child
// goes becomes a leaf.
func (c *Cache) Evict(n int) {
	for n > 0 && len(c.heap) > 0 {
		leaf := c.heap[0]
		x := &c.nodes[leaf]
		if c.Changes.On {
			c.lost(leaf, min(int32(n), x.count))
		}
		if n < int(x.count) {
			x.count -= int32(n)
			c.evictable -= n
			return
		}
		c.pull(leaf)
		c.remove(c.Key(x.seq, x.start))
		c.evictable -= int(x.count)
		n -= int(x.count)
		parent := x.parent
		c.freeSlot(leaf)
		up := &c.nodes[parent]
		up.children--
		if parent != 0 && up.children == 0 && up.locks == 0 {
			c.push(parent)
		}
	}
}

// lost notes that the last n pages of a leaf are gone, as far as they are those of
// a prompt.
func (c *Cache) lost(leaf, n int32) {
	x := &c.nodes[leaf]
	end := min(x.start+x.count, x.seq.Pages)
	if from := x.start + x.count - n; from < end {
		c.Changes.Removed(int32(c.Key(x.seq, end-1)>>32), from)
	}
}

// split cuts a node after k pages of its edge, 0 < k < count. The first part
// becomes a node of its own above the rest, with the same stamp and locks.
func (c *Cache) split(n, k int32) (above int32) {
	above = c.newNode()
	x := &c.nodes[n]
	c.nodes[above] = node{
		seq: x.seq, start: x.start, count: k, parent: x.parent,
		children: 1, locks: x.locks, stamp: x.stamp, at: -1,
	}
	key := c.Key(x.seq, x.start)
	c.remove(key)
	c.put(key, above)
	x.parent = above
	x.start += k
	x.count -= k
	c.put(c.Key(x.seq, x.start), n)
	return above
}

// newNode takes a slot, the one freed last if there is one.
func (c *Cache) newNode() int32 {
	n := c.freeNode
	if n != 0 {
		c.freeNode = c.nodes[n].parent
		return n
	}
	c.nodes = append(c.nodes, node{})
	return int32(len(c.nodes) - 1)
}

func (c *Cache) freeSlot(n int32) {
	c.nodes[n] = node{parent: c.freeNode, at: -1}
	c.freeNode = n
}
