package radix

import (
	"math/bits"

	"github.com/dryserve/dryserve/core/seq"
)

// Node is a handle of a node of the tree; 0 is the root, which holds nothing.
type Node int32

// node is a node and the edge that leads to it.
type node struct {
	parent      Node // of a free slot: the next free one
	first, last Page // its edge
	count       int32
	children    int32
	locks       int32 // holders of it or of a node below
	at          int32 // place in the heap, -1 if not there
	stamp       uint64
}

// newNode takes a slot, the one freed last if there is one.
func (c *Cache) newNode() Node {
	n := c.freeNode
	if n != 0 {
		c.freeNode = c.nodes[n].parent
	} else {
		n = Node(len(c.nodes))
		c.nodes = append(c.nodes, node{})
	}
	c.nodes[n] = node{at: -1}
	return n
}

func (c *Cache) freeSlot(n Node) {
	c.nodes[n] = node{parent: c.freeNode, at: -1}
	c.freeNode = n
}

// common is the number of leading pages of ids that an edge has.
func (c *Cache) common(n Node, ids []seq.Identity) int {
	k := 0
	for p := c.nodes[n].first; p != 0 && k < len(ids) && c.pages[p].local == ids[k].Local; p = c.pages[p].next {
		k++
	}
	return k
}

func (c *Cache) appendEdge(list []Page, n Node) []Page {
	for p := c.nodes[n].first; p != 0; p = c.pages[p].next {
		list = append(list, p)
	}
	return list
}

// children finds the child of a node by the first page of its edge: open
// addressing over the children themselves, at most three quarters full, no
// tombstones.
type children struct {
	slots []Node // 0: empty
	used  int
}

func newChildren() children { return children{slots: make([]Node, 64)} }

func (c *Cache) home(parent Node, local uint64) int {
	x := (local ^ bits.RotateLeft64(uint64(parent)*0xD6E8FEB86659FD93, 32)) * 0x9E3779B97F4A7C15
	return int(x>>32) & (len(c.children.slots) - 1)
}

func (c *Cache) homeOf(n Node) int { return c.home(c.nodes[n].parent, c.pages[c.nodes[n].first].local) }

func (c *Cache) find(parent Node, local uint64) int {
	slots := c.children.slots
	mask := len(slots) - 1
	i := c.home(parent, local)
	for n := slots[i]; n != 0; n = slots[i] {
		if x := &c.nodes[n]; x.parent == parent && c.pages[x.first].local == local {
			break
		}
		i = (i + 1) & mask
	}
	return i
}

// child is the child of n whose edge begins with the page local, or 0.
func (c *Cache) child(n Node, local uint64) Node {
	return c.children.slots[c.find(n, local)]
}

// attach enters a node whose parent and edge are set.
func (c *Cache) attach(n Node) {
	t := &c.children
	if (t.used+1)*4 > len(t.slots)*3 {
		old := t.slots
		t.slots = make([]Node, 2*len(old))
		for _, o := range old {
			if o != 0 {
				t.slots[c.find(c.nodes[o].parent, c.pages[c.nodes[o].first].local)] = o
			}
		}
	}
	t.slots[c.find(c.nodes[n].parent, c.pages[c.nodes[n].first].local)] = n
	t.used++
}

// detach takes out a node before its parent or edge changes.
func (c *Cache) detach(n Node) {
	slots := c.children.slots
	mask := len(slots) - 1
	hole := c.find(c.nodes[n].parent, c.pages[c.nodes[n].first].local)
	c.children.used--
	for i := (hole + 1) & mask; slots[i] != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-c.homeOf(slots[i]))&mask >= (i-hole)&mask {
			slots[hole] = slots[i]
			hole = i
		}
	}
	slots[hole] = 0
}

// stamp marks a node as used now.
func (c *Cache) stamp(n Node, stamp uint64) {
	c.nodes[n].stamp = stamp
	if c.nodes[n].at >= 0 {
		c.siftDown(int(c.nodes[n].at))
	}
}

// push enters an unlocked leaf into the heap.
func (c *Cache) push(n Node) {
	c.nodes[n].at = int32(len(c.heap))
	c.heap = append(c.heap, n)
	c.siftUp(len(c.heap) - 1)
}

// notEvictable takes a node out of the heap if it is there.
func (c *Cache) notEvictable(n Node) {
	i := int(c.nodes[n].at)
	if n == 0 || i < 0 {
		return
	}
	c.nodes[n].at = -1
	last := len(c.heap) - 1
	moved := c.heap[last]
	c.heap = c.heap[:last]
	if i == last {
		return
	}
	c.heap[i] = moved
	c.nodes[moved].at = int32(i)
	c.siftUp(i)
	c.siftDown(int(c.nodes[moved].at))
}

func (c *Cache) siftUp(i int) {
	for i > 0 {
		up := (i - 1) / 2
		if c.nodes[c.heap[up]].stamp <= c.nodes[c.heap[i]].stamp {
			return
		}
		c.swap(i, up)
		i = up
	}
}

func (c *Cache) siftDown(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if c.nodes[c.heap[child]].stamp < c.nodes[c.heap[least]].stamp {
				least = child
			}
		}
		if least == i {
			return
		}
		c.swap(i, least)
		i = least
	}
}

func (c *Cache) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.nodes[c.heap[i]].at, c.nodes[c.heap[j]].at = int32(i), int32(j)
}
