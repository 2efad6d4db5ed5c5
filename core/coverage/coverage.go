// Package coverage is what the caches of ranks hold, block by block of paths of
// the prefix tree: the picture that core/kvindex has of hashes, for runs in which
// a block is named by its place on a path.
//
// It owns who has how much of a path. It does not own the tree, nor caches; its
// caller tells it what they store and remove.
//
// Why it is enough. A cache gives up the end of what it has of a path before the
// beginning, because requests hold beginnings and release them last. So what a
// slot has of a path is a number of blocks, and of a segment it has all blocks up
// to one of them; core/kvindex, which also keeps what lies behind a gap, then
// says the same.
//
// Invariants:
//   - a slot that has a block of a segment has all blocks of the segments
//     above it.
//   - a slot is in some of a segment if it has a block of it, in full if it has
//     all; the table says how many of those in some but not in full.
//   - segments that no block ends in are nowhere.
//   - a warm index allocates nothing.
package coverage

import (
	"math"
	"math/bits"

	"github.com/dryserve/dryserve/core/hashtable"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/prefix"
)

// Index is the state. Take it from New.
type Index struct {
	tree    *prefix.Tree
	bs, tbs int64 // tokens per engine block, per trace hash id
	words   int   // of 64 slots in a set of slots

	some []uint64 // words for each segment
	full []uint64
	upto hashtable.Table // by segment and slot: one past the last block

	path  []int32  // scratch: segments with blocks, leaf first
	alive []uint64 // scratch
}

// New returns the index of slots 0 to slots-1 that have nothing, for blocks of
// blockSize tokens on paths of tree with traceBlockSize tokens per id.
func New(tree *prefix.Tree, blockSize, traceBlockSize, slots int) *Index {
	words := max(1, (slots+63)/64)
	return &Index{
		tree: tree, bs: int64(blockSize), tbs: int64(traceBlockSize), words: words,
		upto: hashtable.New(), alive: make([]uint64, words),
	}
}

// span is the blocks of segment s: from the first to one before the last. Block
// j belongs to the id its last token falls into.
func (x *Index) span(s int32) (start, end int32) {
	seg := x.tree.Seg(s)
	return x.block(int64(seg.Depth)), x.block(int64(seg.Depth) + int64(seg.Len))
}

// block is the first block that is not full within a path's first ids.
func (x *Index) block(ids int64) int32 {
	if ids > math.MaxInt64/x.tbs {
		return math.MaxInt32
	}
	return int32(min(ids*x.tbs/x.bs, math.MaxInt32))
}

func key(s int32, w kvindex.Slot) uint64 { return uint64(uint32(s))<<32 | uint64(uint32(w)) }

// at is the place of slot w in the sets of segment s.
func (x *Index) at(s int32, w kvindex.Slot) (i int, bit uint64) {
	return int(s)*x.words + int(w)>>6, 1 << (w & 63)
}

// reach makes room for the sets of segment s.
func (x *Index) reach(s int32) {
	if need := (int(s) + 1) * x.words; need > len(x.some) {
		need = max(need, x.tree.Len()*x.words)
		x.some = append(x.some, make([]uint64, need-len(x.some))...)
		x.full = append(x.full, make([]uint64, need-len(x.full))...)
	}
}

// Store says that slot w has the path that ends at leaf up to block to, to not
// included.
func (x *Index) Store(w kvindex.Slot, leaf, to int32) {
	for s := leaf; s != 0; s = x.tree.Seg(s).Parent {
		start, end := x.span(s)
		if start == end || start >= to {
			continue
		}
		x.reach(s)
		i, bit := x.at(s, w)
		if x.full[i]&bit != 0 {
			return // and all above it
		}
		had := x.some[i]&bit != 0
		x.some[i] |= bit
		switch {
		case to >= end:
			x.full[i] |= bit
			if had {
				x.upto.Remove(key(s, w))
			}
		case !had || x.upto.Get(key(s, w)) < to:
			x.upto.Set(key(s, w), to)
		}
		if had {
			return
		}
	}
}

// Remove says that slot w has nothing any more of the path that ends with segment
// s from block from on, nor below it.
func (x *Index) Remove(w kvindex.Slot, s, from int32) {
	for ; s != 0; s = x.tree.Seg(s).Parent {
		start, end := x.span(s)
		if from >= end {
			return
		}
		if start < end && (int(s)+1)*x.words <= len(x.some) {
			x.cut(s, w, start, from)
		}
		if from >= start {
			return
		}
	}
}

// cut leaves slot w the blocks of segment s, which begins at start, before from.
func (x *Index) cut(s int32, w kvindex.Slot, start, from int32) {
	i, bit := x.at(s, w)
	full := x.full[i]&bit != 0
	switch {
	case x.some[i]&bit == 0:
	case from <= start:
		if !full {
			x.upto.Remove(key(s, w))
		}
		x.some[i] &^= bit
		x.full[i] &^= bit
	case full || x.upto.Get(key(s, w)) > from:
		x.upto.Set(key(s, w), from)
		x.full[i] &^= bit
	}
}

// Match finds how many of the first n blocks of the path that ends at leaf each
// slot has. It fills all of m but Last.
func (x *Index) Match(leaf, n int32, m *kvindex.Matches) {
	m.Slots, m.Depths = m.Slots[:0], m.Depths[:0]
	x.path = x.path[:0]
	for s := leaf; s != 0; s = x.tree.Seg(s).Parent {
		if start, end := x.span(s); start < min(end, n) {
			x.path = append(x.path, s)
		}
	}
	depth := int32(0)
	for k := len(x.path) - 1; k >= 0; k-- {
		s := x.path[k]
		if (int(s)+1)*x.words > len(x.some) {
			break // nobody has ever had any of it
		}
		_, end := x.span(s)
		end = min(end, n)
		left := uint64(0)
		for i := range x.words {
			left |= x.pass(m, i, s, depth, end)
		}
		if left == 0 {
			return
		}
		depth = end
	}
	if depth == 0 {
		return
	}
	for i, set := range x.alive {
		for ; set != 0; set &= set - 1 {
			add(m, kvindex.Slot(i<<6+bits.TrailingZeros64(set)), depth)
		}
	}
}

// pass goes through segment s with word i of the slots that have all blocks
// before depth, lists those that do not have it up to end, and returns the others.
func (x *Index) pass(m *kvindex.Matches, i int, s, depth, end int32) uint64 {
	some, full := x.some[int(s)*x.words+i], x.full[int(s)*x.words+i]
	alive := some
	if depth > 0 {
		alive = x.alive[i]
		for set := alive &^ some; set != 0; set &= set - 1 {
			add(m, kvindex.Slot(i<<6+bits.TrailingZeros64(set)), depth)
		}
	}
	for set := alive & some &^ full; set != 0; set &= set - 1 {
		w := kvindex.Slot(i<<6 + bits.TrailingZeros64(set))
		if to := x.upto.Get(key(s, w)); to < end {
			add(m, w, to)
			full &^= 1 << (w & 63)
		} else {
			full |= 1 << (w & 63)
		}
	}
	x.alive[i] = alive & full
	return x.alive[i]
}

func add(m *kvindex.Matches, w kvindex.Slot, depth int32) {
	m.Slots, m.Depths = append(m.Slots, w), append(m.Depths, depth)
}

// Divide follows a split in the prefix tree: the front part of segment s is now
// segment front.
func (x *Index) Divide(s, front int32) {
	if (int(s)+1)*x.words > len(x.some) {
		return
	}
	x.reach(front)
	start, cut := x.span(front)
	_, end := x.span(s)
	for i := range x.words {
		at, to := int(s)*x.words+i, int(front)*x.words+i
		for set := x.some[at]; set != 0; set &= set - 1 {
			w, bit := kvindex.Slot(i<<6+bits.TrailingZeros64(set)), set&-set
			upto := end
			if x.full[at]&bit == 0 {
				upto = x.upto.Get(key(s, w))
				x.upto.Remove(key(s, w))
			}
			if start < cut {
				x.some[to] |= bit
				if upto >= cut {
					x.full[to] |= bit
				} else {
					x.upto.Set(key(front, w), upto)
				}
			}
			switch {
			case upto <= cut:
				x.some[at] &^= bit
				x.full[at] &^= bit
			case upto < end:
				x.upto.Set(key(s, w), upto)
			}
		}
	}
}
