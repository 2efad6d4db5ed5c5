package branch

import "math"

// Seq names the pages of a request: Pages full pages of the prompt that ends
// at Leaf of the prefix tree, then those that only turn Turn has.
type Seq struct {
	Leaf  int32
	Turn  int32
	Pages int32
}

// everything is more pages than a sequence has.
const everything = math.MaxInt32

// page is the first page that is not full within a path's first ids: page j
// belongs to the id its last token falls into.
func (c *Cache) page(ids int64) int32 {
	if ids > math.MaxInt64/c.tbs {
		return everything
	}
	return int32(min(ids*c.tbs/c.bs, everything))
}

// common is the number of leading pages that two sequences share.
func (c *Cache) common(a, b Seq) int32 {
	if a.Turn == b.Turn {
		return everything
	}
	s, t := a.Leaf, b.Leaf
	x, y := c.tree.Seg(s), c.tree.Seg(t)
	for s != t {
		if x.Depth >= y.Depth {
			s = x.Parent
			x = c.tree.Seg(s)
		} else {
			t = y.Parent
			y = c.tree.Seg(t)
		}
	}
	return min(a.Pages, b.Pages, c.page(int64(x.Depth)+int64(x.Len)))
}

// Key names page at of a sequence: by the segment of the prefix tree that owns
// it, or behind the prompt by the turn.
func (c *Cache) Key(q Seq, at int32) uint64 {
	if at >= q.Pages {
		return 1<<63 | uint64(uint32(q.Turn))<<32 | uint64(uint32(at))
	}
	s := q.Leaf
	x := c.tree.Seg(s)
	for c.page(int64(x.Depth)) > at {
		s = x.Parent
		x = c.tree.Seg(s)
	}
	return uint64(uint32(s))<<32 | uint64(uint32(at))
}

// Divide follows a split in the prefix tree: the front part of segment s is
// now segment front.
func (c *Cache) Divide(s, front int32) {
	x := c.tree.Seg(front)
	from, to := c.page(int64(x.Depth)), c.page(int64(x.Depth)+int64(x.Len))
	for at := from; at < to && c.entries > 0; at++ {
		old := uint64(uint32(s))<<32 | uint64(uint32(at))
		if n := c.find(old); n != 0 {
			c.remove(old)
			c.put(uint64(uint32(front))<<32|uint64(uint32(at)), n)
		}
	}
}
