package active

import (
	"math/bits"
	"slices"
)

// tree holds the live prompts: a radix tree over sequence hashes. Edges are
// divided where a prompt ends or leaves another, and not joined again; a node
// goes with its last request.
type tree struct {
	nodes []node
	free  int32 // linked through parent, 0: none
	table []int32
	used  int
	spare [32][][]uint64 // lists of hashes given back, by capacity 2^k

	slots  int
	counts []int32  // slots for each node: live requests through it
	alive  []uint64 // words for each node: slots with such requests
	words  int
	still  []uint64 // scratch of Shared
}

// node is a node and the hashes of the edge that leads to it; 0 is the root.
type node struct {
	hashes []uint64
	parent int32
	total  int32 // live requests through it
}

const firstTable = 64

func (t *tree) init() {
	t.nodes = make([]node, 1)
	t.table = make([]int32, firstTable)
}

// grow makes room for more slots.
func (t *tree) grow(slots int) {
	words := (slots + 63) / 64
	counts := make([]int32, len(t.nodes)*slots)
	alive := make([]uint64, len(t.nodes)*words)
	for n := range t.nodes {
		copy(counts[n*slots:], t.counts[n*t.slots:][:t.slots])
		copy(alive[n*words:], t.alive[n*t.words:][:t.words])
	}
	t.counts, t.alive, t.slots, t.words = counts, alive, slots, words
	t.still = make([]uint64, words)
}

func (t *tree) home(parent int32, first uint64) int {
	x := (first ^ bits.RotateLeft64(uint64(parent)*0xD6E8FEB86659FD93, 32)) * 0x9E3779B97F4A7C15
	return int(x>>32) & (len(t.table) - 1)
}

func (t *tree) homeOf(n int32) int { return t.home(t.nodes[n].parent, t.nodes[n].hashes[0]) }

// find is the place of the child of a node that begins with a hash, or the
// empty one where it belongs.
func (t *tree) find(parent int32, first uint64) int {
	mask := len(t.table) - 1
	i := t.home(parent, first)
	for n := t.table[i]; n != 0; n = t.table[i] {
		if x := &t.nodes[n]; x.hashes[0] == first && x.parent == parent {
			break
		}
		i = (i + 1) & mask
	}
	return i
}

// attach enters a node whose parent and edge are set.
func (t *tree) attach(n int32) {
	if (t.used+1)*4 > len(t.table)*3 {
		old := t.table
		t.table = make([]int32, 2*len(old))
		for _, o := range old {
			if o != 0 {
				t.table[t.find(t.nodes[o].parent, t.nodes[o].hashes[0])] = o
			}
		}
	}
	t.table[t.find(t.nodes[n].parent, t.nodes[n].hashes[0])] = n
	t.used++
}

// detach takes out a node before its parent or edge changes.
func (t *tree) detach(n int32) {
	mask := len(t.table) - 1
	hole := t.find(t.nodes[n].parent, t.nodes[n].hashes[0])
	t.used--
	for i := (hole + 1) & mask; t.table[i] != 0; i = (i + 1) & mask {
		// An entry may move back to the hole unless its home lies after it.
		if (i-t.homeOf(t.table[i]))&mask >= (i-hole)&mask {
			t.table[hole] = t.table[i]
			hole = i
		}
	}
	t.table[hole] = 0
}

// newNode returns a node with an edge of its own.
func (t *tree) newNode(parent int32, hashes []uint64) int32 {
	n := t.free
	if n != 0 {
		t.free = t.nodes[n].parent
	} else {
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{})
		t.counts = slices.Grow(t.counts, t.slots)[:len(t.counts)+t.slots]
		t.alive = slices.Grow(t.alive, t.words)[:len(t.alive)+t.words]
		clear(t.counts[int(n)*t.slots:])
		clear(t.alive[int(n)*t.words:])
	}
	t.nodes[n] = node{parent: parent, hashes: t.list(hashes)}
	return n
}

// list is a copy of hashes in a list that was given back, if there is one.
func (t *tree) list(hashes []uint64) []uint64 {
	class := bits.Len(uint(len(hashes) - 1))
	spare := &t.spare[class]
	if k := len(*spare); k > 0 {
		list := (*spare)[k-1]
		*spare = (*spare)[:k-1]
		return append(list[:0], hashes...)
	}
	return append(make([]uint64, 0, 1<<class), hashes...)
}

func (t *tree) giveBack(list []uint64) {
	class := bits.Len(uint(cap(list) - 1))
	t.spare[class] = append(t.spare[class], list)
}

// insert returns the node at which a sequence ends, making it if there is
// none; the root if the sequence is empty.
func (t *tree) insert(sequence []uint64) int32 {
	p := int32(0)
	for len(sequence) > 0 {
		n := t.table[t.find(p, sequence[0])]
		if n == 0 {
			n = t.newNode(p, sequence)
			t.attach(n)
			return n
		}
		k := common(t.nodes[n].hashes, sequence)
		if k < len(t.nodes[n].hashes) {
			n = t.split(n, k)
		}
		p, sequence = n, sequence[k:]
	}
	return p
}

func common(a, b []uint64) int {
	if len(a) > len(b) {
		a = a[:len(b)]
	}
	b = b[:len(a)]
	for i, x := range a {
		if x != b[i] {
			return i
		}
	}
	return len(a)
}

// split divides the edge of n after k hashes. A new node takes the first part;
// n keeps the rest, its children and its handle.
func (t *tree) split(n int32, k int) (front int32) {
	t.detach(n)
	front = t.newNode(t.nodes[n].parent, t.nodes[n].hashes[:k])
	x := &t.nodes[n]
	rest := t.list(x.hashes[k:])
	t.giveBack(x.hashes)
	x.hashes, x.parent = rest, front
	t.nodes[front].total = x.total
	copy(t.counts[int(front)*t.slots:][:t.slots], t.counts[int(n)*t.slots:])
	copy(t.alive[int(front)*t.words:][:t.words], t.alive[int(n)*t.words:])
	t.attach(front)
	t.attach(n)
	return front
}

// hold counts a request of slot w that ends at n and returns how many blocks
// the slot did not have.
func (t *tree) hold(n int32, w Slot) (blocks int) {
	for ; n != 0; n = t.nodes[n].parent {
		t.nodes[n].total++
		count := &t.counts[int(n)*t.slots+int(w)]
		if *count++; *count == 1 {
			blocks += len(t.nodes[n].hashes)
			t.alive[int(n)*t.words+int(w)>>6] |= 1 << (w & 63)
		}
	}
	return blocks
}

// release is the opposite of hold; it returns how many blocks the slot has no
// more. Nodes without requests go.
func (t *tree) release(n int32, w Slot) (blocks int) {
	for n != 0 {
		x := &t.nodes[n]
		parent := x.parent
		count := &t.counts[int(n)*t.slots+int(w)]
		if *count--; *count == 0 {
			blocks += len(x.hashes)
			t.alive[int(n)*t.words+int(w)>>6] &^= 1 << (w & 63)
		}
		if x.total--; x.total == 0 {
			t.detach(n)
			t.giveBack(x.hashes)
			*x = node{parent: t.free}
			t.free = n
		}
		n = parent
	}
	return blocks
}

// Shared is how many of the first blocks of a prompt each slot has in live
// prompts: Blocks[i] of slot Slots[i]; slots with none are not listed. It is
// valid until the next call of Tracker.Shared with it.
type Shared struct {
	Slots  []Slot
	Blocks []int32
}

// Shared finds who has live prompts that begin like a sequence.
func (t *Tracker) Shared(sequence []uint64, s *Shared) {
	s.Slots, s.Blocks = s.Slots[:0], s.Blocks[:0]
	x := &t.tree
	depth := int32(0)
	p := int32(0)
	for int(depth) < len(sequence) {
		n := x.table[x.find(p, sequence[depth])]
		if n == 0 {
			break
		}
		some := uint64(0)
		for i := range x.still {
			here := x.alive[int(n)*x.words+i]
			if depth == 0 {
				x.still[i] = here
			}
			s.end(x.still[i]&^here, i, depth)
			x.still[i] &= here
			some |= x.still[i]
		}
		if some == 0 {
			return
		}
		k := common(x.nodes[n].hashes, sequence[depth:])
		depth += int32(k)
		if k < len(x.nodes[n].hashes) {
			break
		}
		p = n
	}
	if depth > 0 {
		for i, set := range x.still {
			s.end(set, i, depth)
		}
	}
}

// end lists the slots of word i of a set.
func (s *Shared) end(set uint64, i int, depth int32) {
	for ; set != 0; set &= set - 1 {
		s.Slots = append(s.Slots, Slot(i<<6+bits.TrailingZeros64(set)))
		s.Blocks = append(s.Blocks, depth)
	}
}
