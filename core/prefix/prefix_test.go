package prefix

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// naive is a trie of maps with one id per node.
type naive struct {
	next map[uint64]*naive
}

func (n *naive) insert(path []uint64) {
	for _, id := range path {
		if n.next == nil {
			n.next = map[uint64]*naive{}
		}
		if n.next[id] == nil {
			n.next[id] = &naive{}
		}
		n = n.next[id]
	}
}

func (n *naive) count() int {
	total := 0
	for _, c := range n.next {
		total += 1 + c.count()
	}
	return total
}

// path is a path that was inserted, and what Insert said.
type path struct {
	ids  []uint64
	leaf int32
}

// check inserts the paths into a tree and compares it with the naive trie
// after each.
func check(t *testing.T, paths [][]uint64) {
	t.Helper()
	tree, model := New(), &naive{}
	var done []path
	front := map[int32]int32{} // what split said last of each segment
	for _, ids := range paths {
		before := tree.Len()
		splits := 0
		leaf := tree.Insert(ids, func(s, f int32) {
			splits++
			front[s] = f
			if tree.Seg(s).Parent != f || tree.Seg(s).Depth != tree.Seg(f).Depth+tree.Seg(f).Len {
				t.Fatalf("split of %d: %+v below %d, %+v", s, tree.Seg(s), f, tree.Seg(f))
			}
		})
		model.insert(ids)
		done = append(done, path{ids, leaf})
		if grown := tree.Len() - before; splits > 1 || grown != 0 && grown != 1+splits || leaf >= int32(before) != (grown > 0) {
			t.Fatalf("%d: %d splits, %d new segments, leaf %d of %d", ids, splits, grown, leaf, tree.Len())
		}
		if again := tree.Insert(ids, func(s, f int32) { t.Fatalf("%d: split of %d at the second time", ids, s) }); again != leaf {
			t.Fatalf("%d: leaf %d, then %d", ids, leaf, again)
		}
		seg := tree.Seg(leaf)
		if n := int32(len(ids)); n > 0 && (n <= seg.Depth || n > seg.Depth+seg.Len) {
			t.Fatalf("%d: leaf %d is %+v, which does not hold the last id", ids, leaf, seg)
		}
		verify(t, tree, model, done)
	}
	for s, f := range front { // a later split of s put its front between
		if at := tree.Seg(s).Parent; at != f {
			t.Errorf("parent of %d is %d, split said %d", s, at, f)
		}
	}
}

// verify checks the invariants and that every path can still be read back.
func verify(t *testing.T, tree *Tree, model *naive, done []path) {
	t.Helper()
	ids := 0
	type start struct {
		parent int32
		id     uint64
	}
	starts := map[start]bool{}
	for s := int32(1); s < int32(tree.Len()); s++ {
		seg := tree.Seg(s)
		parent := tree.Seg(seg.Parent)
		if seg.Len < 1 || seg.Depth != parent.Depth+parent.Len {
			t.Fatalf("segment %d: %+v below %+v", s, seg, parent)
		}
		ids += int(seg.Len)
		first := start{seg.Parent, tree.ids[seg.Off]}
		if starts[first] {
			t.Fatalf("two children of %d begin with %d", first.parent, first.id)
		}
		starts[first] = true
		if got := tree.child(seg.Parent, first.id); got != s {
			t.Fatalf("child %d of %d: found %d, want %d", first.id, seg.Parent, got, s)
		}
	}
	if want := model.count(); ids != want {
		t.Fatalf("%d ids, want %d", ids, want)
	}
	for _, p := range done {
		if got := tree.AppendIDs(nil, p.leaf, len(p.ids)); fmt.Sprint(got) != fmt.Sprint(p.ids) {
			t.Fatalf("leaf %d: %d, want %d", p.leaf, got, p.ids)
		}
		// Later splits may leave the leaf below the path's end, never above.
		if seg := tree.Seg(p.leaf); int32(len(p.ids)) > seg.Depth+seg.Len {
			t.Fatalf("%d: leaf %d is %+v, which ends before the path", p.ids, p.leaf, seg)
		}
	}
}

func TestInsert(t *testing.T) {
	check(t, [][]uint64{{}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2}, {1, 2, 5}, {1, 9}, {1}, {2}, {1, 2, 3, 4, 5}, {1, 2, 3, 6}, {math.MaxUint64, 0}, {0}, {0, 0, 0}, {}})
}

func TestEmptyPath(t *testing.T) {
	tree := New()
	if leaf := tree.Insert(nil, nil); leaf != 0 || tree.Len() != 1 {
		t.Errorf("leaf %d, %d segments", leaf, tree.Len())
	}
}

// A leaf keeps its number while others split its segment.
func TestLeafIsForEver(t *testing.T) {
	tree := New()
	long := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	leaf := tree.Insert(long, nil)
	for n := 7; n >= 1; n-- {
		tree.Insert(append(append([]uint64{}, long[:n]...), 100), nil)
		if got := fmt.Sprint(tree.AppendIDs([]uint64{9}, leaf, 8)); got != "[9 1 2 3 4 5 6 7 8]" {
			t.Fatalf("after a split at %d: %s", n, got)
		}
		if seg := tree.Seg(leaf); seg.Depth != 7 || seg.Len != 1 { // the first split cut it, the later ones its fronts
			t.Fatalf("after a split at %d: %+v", n, seg)
		}
	}
}

func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		paths := make([][]uint64, 1+r.IntN(60))
		values := uint64(1 + r.IntN(4))
		for i := range paths {
			n := r.IntN(12)
			if i > 0 && r.IntN(2) == 0 { // continue another path
				from := paths[r.IntN(i)]
				paths[i] = append(paths[i], from[:r.IntN(len(from)+1)]...)
			}
			for range n {
				paths[i] = append(paths[i], r.Uint64N(values)*0x0123456789ABCDEF)
			}
		}
		check(t, paths)
	}
}

// Enough segments that the table grows several times.
func TestGrowth(t *testing.T) {
	tree := New()
	const n = 20000
	leaves := make([]int32, n)
	for i := range leaves {
		leaves[i] = tree.Insert([]uint64{uint64(i % 100), uint64(i), 7}, nil)
	}
	for i, leaf := range leaves {
		if got := tree.Insert([]uint64{uint64(i % 100), uint64(i), 7}, nil); got != leaf {
			t.Fatalf("path %d: leaf %d, then %d", i, leaf, got)
		}
		if got := tree.AppendIDs(nil, leaf, 3); got[0] != uint64(i%100) || got[1] != uint64(i) || got[2] != 7 {
			t.Fatalf("path %d: %d", i, got)
		}
	}
}

// FuzzInsert reads paths from bytes: a length, then ids, few of them distinct.
func FuzzInsert(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 3, 1, 2, 4, 2, 1, 2, 0, 1, 9})
	f.Add(binary.LittleEndian.AppendUint64(nil, 0x0504030201040302))
	f.Fuzz(func(t *testing.T, data []byte) {
		var paths [][]uint64
		for len(data) > 0 && len(paths) < 16 {
			n := min(int(data[0]%16), len(data)-1)
			var ids []uint64
			for _, b := range data[1 : 1+n] {
				ids = append(ids, uint64(b)*0x9E3779B97F4A7C15)
			}
			paths, data = append(paths, ids), data[1+n:]
		}
		check(t, paths)
	})
}
