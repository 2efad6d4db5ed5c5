package kvindex

import "math/bits"

// Slot names a rank of a worker: a small number that its owner chose, from 0.
type Slot int32

// Code is the outcome of an event.
type Code uint8

// Outcomes of events. After all but Applied and BlockNotFound the index is as
// it was, but for an odd entry that turned out to be stale.
const (
	Applied         Code = iota
	ParentNotFound       // the slot does not have the parent of the stored blocks
	InvalidSequence      // a stored block is its own parent
	BlockNotFound        // the slot does not have one of the removed blocks; the others are removed
)

// Index is the tree of blocks on the devices. Take it from New.
type Index struct {
	// Blocks: three parallel slabs of slots, in which an edge has ranges.
	local []uint64
	ext   []uint64
	owner []int32 // run of the block, with mark; negative: none
	space space

	runs    []run
	freeRun int32 // linked through next, 0: none

	nodes    []node // 0 is the root
	freeNode int32  // linked through parent
	children table  // by parent and first local hash
	blocks   names  // by external hash: the block, or ^number of an odd hash

	words int      // of 64 slots in a set of slots
	more  []uint64 // words-1 for each node: full beyond the first word
	cuts  cuts
	odd   odds

	sizes  []int   // by slot: its entries
	covers []int   // by slot: nodes it covers, wholly or in part
	tips   []int32 // by slot: the block it stored last, likely the next one's parent
	size   int     // of all slots

	dead    []int32 // nodes to be freed at the end of the event
	removed removed
	alive   []uint64 // scratch of Match
	touched uint64   // what names.touch returned
}

// Flags on an owner.
const (
	mark  = 1 << 30 // the block's external hash is odd
	lost  = 1 << 29 // and does not lead to it from its node
	flags = mark | lost
)

// run is a range of block slots that holds part of an edge. The capacity
// behind its blocks belongs to it, too.
type run struct {
	start, n, room int32 // slots: first, used, owned
	node           int32
	base           int32 // place of its first block in the edge
	next           int32 // of the same edge, 0: none
}

// node is a node and the edge that leads to it.
type node struct {
	full  uint64 // slots 0 to 63 that cover the whole edge
	first uint64 // local hash of the edge's first block

	parent     int32
	child      int32 // the last one attached, 0: none
	next, prev int32 // among the parent's children
	run, last  int32 // first and last run of the edge
	n          int32 // blocks in the edge
	cut        cutList
	entries    int32 // odd entries that point here, linked; 0: none
	note       int32 // place in removed.nodes, if that entry names this node
	marks      uint8
}

// Marks of a node.
const (
	internal uint8 = 1 << iota // it has, or once had, a child
	attached                   // its parent knows it
	oddly                      // a block of the edge is marked
	dying                      // in the list of the dead
)

// New returns an empty index for slots 0 to slots-1; Grow adds more.
func New(slots int) *Index {
	x := &Index{
		space: newSpace(), runs: make([]run, 1), nodes: make([]node, 1),
		children: newTable(), blocks: newNames(), cuts: newCuts(), odd: newOdds(),
	}
	x.nodes[0].marks = internal
	x.Grow(slots)
	return x
}

// Grow makes room for slots 0 to slots-1.
func (x *Index) Grow(slots int) {
	if n := slots - len(x.sizes); n > 0 {
		x.sizes = append(x.sizes, make([]int, n)...)
		x.covers = append(x.covers, make([]int, n)...)
		x.tips = append(x.tips, make([]int32, n)...)
	}
	words := max(1, (len(x.sizes)+63)/64)
	if words == x.words {
		return
	}
	wide := make([]uint64, len(x.nodes)*(words-1))
	for i := range x.nodes {
		if x.words > 1 {
			copy(wide[i*(words-1):], x.more[i*(x.words-1):][:x.words-1])
		}
	}
	x.more, x.words = wide, words
	x.alive = make([]uint64, words)
}

// Slots is the number of slots there is room for.
func (x *Index) Slots() int { return len(x.sizes) }

// Size is the number of blocks all slots have, each counted once per slot
// (the reference's current_size).
func (x *Index) Size() int { return x.size }

// SlotSize is the number of blocks one slot has.
func (x *Index) SlotSize(w Slot) int { return x.sizes[w] }

// Blocks is the number of different names that blocks have, also of blocks that
// nobody covers any more.
func (x *Index) Blocks() int { return x.blocks.used }

// Nodes is the number of nodes that a query can reach.
func (x *Index) Nodes() int { return x.children.used }

// newNode takes a node, the one freed last if there is one.
func (x *Index) newNode() int32 {
	n := x.freeNode
	if n != 0 {
		x.freeNode = x.nodes[n].parent
	} else {
		n = int32(len(x.nodes))
		x.nodes = append(x.nodes, node{})
		for range x.words - 1 {
			x.more = append(x.more, 0)
		}
	}
	x.nodes[n] = node{cut: noCuts}
	return n
}

// child is the child of a node whose edge begins with a local hash, 0 if there
// is none.
func (x *Index) child(parent int32, local uint64) int32 {
	slots := x.children.slots
	mask := len(slots) - 1
	tag := childTag(parent, local)
	for i := int(tag >> x.children.shift); ; i++ {
		s := slots[i&mask]
		if s == 0 {
			return 0
		}
		if uint32(s>>32) == tag {
			n := int32(uint32(s)) - 1
			if c := &x.nodes[n]; c.parent == parent && c.first == local {
				return n
			}
		}
	}
}

func childTag(parent int32, local uint64) uint32 {
	return tagOf(local ^ bits.RotateLeft64(uint64(parent)*0xD6E8FEB86659FD93, 32))
}

// childSlot is where an attached node stands in the table of children.
func (x *Index) childSlot(n int32) int {
	c := &x.nodes[n]
	return x.children.where(childTag(c.parent, c.first), n)
}

// attach makes n, whose first hash is set, a child of parent.
func (x *Index) attach(n, parent int32) {
	c, p := &x.nodes[n], &x.nodes[parent]
	c.parent, c.prev, c.next = parent, 0, p.child
	if p.child != 0 {
		x.nodes[p.child].prev = n
	}
	p.child = n
	p.marks |= internal
	c.marks |= attached
	x.children.put(childTag(parent, c.first), n)
}

// detach makes the parent forget n.
func (x *Index) detach(n int32) {
	c := &x.nodes[n]
	if c.marks&attached == 0 {
		return
	}
	x.children.drop(x.childSlot(n))
	c.marks &^= attached
	if c.prev != 0 {
		x.nodes[c.prev].next = c.next
	} else {
		x.nodes[c.parent].child = c.next
	}
	if c.next != 0 {
		x.nodes[c.next].prev = c.prev
	}
}

// prune lets go of what the coverage of a node no longer holds (router notes
// §2.1): without a slot that covers the whole edge the children are forgotten,
// without any slot the node is unlinked.
func (x *Index) prune(n int32) {
	if x.anyFull(n) {
		return
	}
	for c := x.nodes[n].child; c != 0; c = x.nodes[n].child {
		x.detach(c)
	}
	if x.nodes[n].cut.n == 0 {
		x.detach(n)
		x.die(n)
	}
}

// die notes a node without coverage; sweep frees it unless odd entries point
// to it, and then the last of them does.
func (x *Index) die(n int32) {
	if c := &x.nodes[n]; c.marks&dying == 0 {
		c.marks |= dying
		x.dead = append(x.dead, n)
	}
}

// sweep frees the nodes that died.
func (x *Index) sweep() {
	for _, n := range x.dead {
		if x.nodes[n].entries != 0 {
			x.nodes[n].marks &^= dying
			continue
		}
		x.dropEdge(n)
		x.cuts.free(&x.nodes[n].cut)
		x.nodes[n] = node{parent: x.freeNode, cut: noCuts}
		x.freeNode = n
	}
	x.dead = x.dead[:0]
}
