// Package prefix keeps prompts as paths in a radix tree over trace hash ids.
// It owns the tree only: what is cached where is known by the pools that hang
// their state on its segments. Invariants: a segment has at least one id; the
// first ids of siblings differ; a segment keeps its number when a new prompt
// splits it (the number stays with the back part, the front part is new), so
// a leaf stays a valid end of its path for ever.
package prefix

import "slices"

// Seg is one compressed edge: ids[Off:Off+Len] below Parent.
type Seg struct {
	Parent int32 // 0: the root
	Depth  int32 // ids on the path before this segment
	Len    int32
	Off    int32 // into the tree's ids
}

// Tree is a radix tree. Segment 0 is the root and has no ids.
type Tree struct {
	segs  []Seg
	ids   []uint64
	table []slot // open addressing: (parent, first id) -> segment
	used  int
}

type slot struct {
	id     uint64
	parent int32
	seg    int32 // 0: empty
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{segs: make([]Seg, 1, 1024), table: make([]slot, 1024)}
}

// Len is the number of segments, the root included.
func (t *Tree) Len() int { return len(t.segs) }

// Seg returns segment s.
func (t *Tree) Seg(s int32) Seg { return t.segs[s] }

// Reserve makes room for as much again as there is, factor times over; it saves
// copying, and changes nothing else.
func (t *Tree) Reserve(factor float64) {
	more := func(n int) int { return int(min(factor*float64(n), 1<<24)) }
	t.ids = slices.Grow(t.ids, more(len(t.ids)))
	t.segs = slices.Grow(t.segs, more(len(t.segs)))
	for want := t.used + more(t.used); want*4 >= len(t.table)*3; {
		t.grow()
	}
}

// Room makes room for so many ids more on so many new paths; it saves copying,
// and changes nothing else.
func (t *Tree) Room(ids, paths int) {
	t.ids = slices.Grow(t.ids, ids)
	t.segs = slices.Grow(t.segs, 2*paths)
	for want := t.used + 2*paths; want*4 >= len(t.table)*3; {
		t.grow()
	}
}

// Insert adds a path and returns its leaf: the segment that holds the path's
// last id at that time (0 for an empty path). The path may end inside that segment; its
// length is the caller's to remember. split, when not nil, is told of each
// segment s whose front part became the new segment front.
func (t *Tree) Insert(path []uint64, split func(s, front int32)) int32 {
	at := int32(0)
	for i := 0; i < len(path); {
		s := t.child(at, path[i])
		if s == 0 {
			return t.add(at, path, i)
		}
		seg := t.segs[s]
		ids := t.ids[seg.Off : seg.Off+seg.Len]
		n := 1
		for n < len(ids) && i+n < len(path) && ids[n] == path[i+n] {
			n++
		}
		i += n
		if i == len(path) {
			return s
		}
		if n == len(ids) {
			at = s
			continue
		}
		front := t.cut(s, int32(n))
		if split != nil {
			split(s, front)
		}
		return t.add(front, path, i)
	}
	return at
}

// add appends path[from:] as one new segment below parent.
func (t *Tree) add(parent int32, path []uint64, from int) int32 {
	off := int32(len(t.ids))
	t.ids = append(t.ids, path[from:]...)
	s := int32(len(t.segs))
	t.segs = append(t.segs, Seg{Parent: parent, Depth: int32(from), Len: int32(len(path) - from), Off: off})
	t.put(parent, path[from], s)
	return s
}

// cut gives the first n ids of s to a new segment above it.
func (t *Tree) cut(s, n int32) int32 {
	seg := t.segs[s]
	front := int32(len(t.segs))
	t.segs = append(t.segs, Seg{Parent: seg.Parent, Depth: seg.Depth, Len: n, Off: seg.Off})
	t.set(seg.Parent, t.ids[seg.Off], front)
	t.segs[s] = Seg{Parent: front, Depth: seg.Depth + n, Len: seg.Len - n, Off: seg.Off + n}
	t.put(front, t.ids[seg.Off+n], s)
	return front
}

// AppendIDs appends the first n ids of the path that ends at leaf to dst.
func (t *Tree) AppendIDs(dst []uint64, leaf int32, n int) []uint64 {
	start := len(dst)
	for i := 0; i < n; i++ {
		dst = append(dst, 0)
	}
	for s := leaf; s != 0; s = t.segs[s].Parent {
		seg := t.segs[s]
		if int(seg.Depth) < n {
			copy(dst[start+int(seg.Depth):], t.ids[seg.Off:seg.Off+seg.Len])
		}
	}
	return dst
}

func mix(parent int32, id uint64) uint64 {
	h := id ^ uint64(uint32(parent))*0x9E3779B97F4A7C15
	h ^= h >> 32
	h *= 0xD6E8FEB86659FD93
	return h ^ h>>29
}

func (t *Tree) child(parent int32, id uint64) int32 {
	mask := uint64(len(t.table) - 1)
	for i := mix(parent, id) & mask; ; i = (i + 1) & mask {
		s := &t.table[i]
		if s.seg == 0 || (s.id == id && s.parent == parent) {
			return s.seg
		}
	}
}

func (t *Tree) set(parent int32, id uint64, seg int32) {
	mask := uint64(len(t.table) - 1)
	for i := mix(parent, id) & mask; ; i = (i + 1) & mask {
		if s := &t.table[i]; s.id == id && s.parent == parent && s.seg != 0 {
			s.seg = seg
			return
		}
	}
}

func (t *Tree) put(parent int32, id uint64, seg int32) {
	if t.used*4 >= len(t.table)*3 {
		t.grow()
	}
	mask := uint64(len(t.table) - 1)
	i := mix(parent, id) & mask
	for t.table[i].seg != 0 {
		i = (i + 1) & mask
	}
	t.table[i] = slot{id: id, parent: parent, seg: seg}
	t.used++
}

func (t *Tree) grow() {
	old := t.table
	t.table = make([]slot, 2*len(old))
	mask := uint64(len(t.table) - 1)
	for _, s := range old {
		if s.seg == 0 {
			continue
		}
		i := mix(s.parent, s.id) & mask
		for t.table[i].seg != 0 {
			i = (i + 1) & mask
		}
		t.table[i] = s
	}
}
