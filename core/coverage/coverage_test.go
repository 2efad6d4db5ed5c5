package coverage_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/prefix"
)

// rig keeps the blocks of slots one by one, by what they are and all before them,
// in a plain model and in the index of hashes.
type rig struct {
	r       *rand.Rand
	tree    *prefix.Tree
	x       *coverage.Index
	plain   *kvindex.Index
	slots   int
	bs, tbs int
	rows    [][]uint64
	leaves  []int32
	tokens  []int
	has     []map[string]bool // by slot
}

func newRig(seed uint64) *rig {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &rig{r: r, tree: prefix.New(), slots: 1 + r.IntN(130), bs: 1 + r.IntN(6), tbs: 1 + r.IntN(12)}
	g.x = coverage.New(g.tree, g.bs, g.tbs, g.slots)
	g.plain = kvindex.New(g.slots)
	for range g.slots {
		g.has = append(g.has, map[string]bool{})
	}
	return g
}

// prompt makes a prompt, which often shares a beginning with an earlier one.
func (g *rig) prompt() int {
	var ids []uint64
	if len(g.rows) > 0 && g.r.IntN(4) > 0 {
		row := g.rows[g.r.IntN(len(g.rows))]
		ids = append(ids, row[:g.r.IntN(len(row)+1)]...)
	}
	for n := g.r.IntN(6); n > 0 || len(ids) == 0; n-- {
		ids = append(ids, uint64(g.r.IntN(4)))
	}
	g.rows = append(g.rows, ids)
	g.leaves = append(g.leaves, g.tree.Insert(ids, g.x.Divide))
	g.tokens = append(g.tokens, len(ids)*g.tbs-g.r.IntN(g.tbs))
	return len(g.rows) - 1
}

func (g *rig) blocks(p int) int { return g.tokens[p] / g.bs }

// name says what block j of a prompt is.
func (g *rig) name(p, j int) string {
	return fmt.Sprint(g.rows[p][:((j+1)*g.bs-1)/g.tbs+1], j)
}

func (g *rig) hash(p, j int) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(g.name(p, j)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// cover is how many of the first blocks of a prompt a slot has.
func (g *rig) cover(w, p int) int {
	n := 0
	for n < g.blocks(p) && g.has[w][g.name(p, n)] {
		n++
	}
	return n
}

func (g *rig) store(t *testing.T, w, p, to int) {
	from := g.cover(w, p)
	if from >= to {
		to = from // storing it again changes nothing
	}
	var hashes []uint64
	for j := from; j < to; j++ {
		g.has[w][g.name(p, j)] = true
		hashes = append(hashes, g.hash(p, j))
	}
	g.x.Store(kvindex.Slot(w), g.leaves[p], int32(to))
	if len(hashes) == 0 {
		return
	}
	parent := uint64(0)
	if from > 0 {
		parent = g.hash(p, from-1)
	}
	if code := g.plain.Store(kvindex.Slot(w), from > 0, parent, hashes, hashes); code != kvindex.Applied {
		t.Fatalf("the index of hashes refuses a store: %d", code)
	}
}

// remove takes from a slot everything of a path from one of its blocks on, unless
// another path that it has goes on from there.
func (g *rig) remove(t *testing.T, w, p int) {
	have := g.cover(w, p)
	if have == 0 {
		return
	}
	from := g.r.IntN(have)
	gone := map[string]bool{}
	for j := from; j < have; j++ {
		gone[g.name(p, j)] = true
	}
	for q := range g.rows {
		if n := g.cover(w, q); n > from && g.name(q, from) == g.name(p, from) {
			for j := from; j < n; j++ {
				if !gone[g.name(q, j)] {
					return
				}
			}
		}
	}
	for j := have - 1; j >= from; j-- { // caches give up the end first
		g.plain.Remove(kvindex.Slot(w), []uint64{g.hash(p, j)})
		delete(g.has[w], g.name(p, j))
	}
	// The segment that owns the last block that is gone.
	s := g.leaves[p]
	for int(g.tree.Seg(s).Depth)*g.tbs/g.bs > have-1 {
		s = g.tree.Seg(s).Parent
	}
	g.x.Remove(kvindex.Slot(w), s, int32(from))
}

func depths(m *kvindex.Matches) map[kvindex.Slot]int32 {
	out := map[kvindex.Slot]int32{}
	for i, w := range m.Slots {
		out[w] = m.Depths[i]
	}
	return out
}

func (g *rig) check(t *testing.T) {
	t.Helper()
	p := g.r.IntN(len(g.rows))
	n := g.r.IntN(g.blocks(p) + 1)
	var got, plain kvindex.Matches
	g.x.Match(g.leaves[p], int32(n), &got)
	var hashes []uint64
	for j := range n {
		hashes = append(hashes, g.hash(p, j))
	}
	g.plain.Match(hashes, false, &plain)
	want := map[kvindex.Slot]int32{}
	for w := range g.slots {
		if k := min(g.cover(w, p), n); k > 0 {
			want[kvindex.Slot(w)] = int32(k)
		}
	}
	if len(got.Slots) != len(want) || !maps.Equal(depths(&got), want) {
		t.Fatalf("%d blocks of %v: %v, want %v", n, g.rows[p], depths(&got), want)
	}
	if !maps.Equal(depths(&plain), want) {
		t.Fatalf("%d blocks of %v: by hashes %v, want %v", n, g.rows[p], depths(&plain), want)
	}
}

// What caches that keep beginnings longer than ends have is known as it is block
// by block and in the index of hashes, also while the tree splits.
func TestAgainstBlocksAndHashes(t *testing.T) {
	for seed := range uint64(120) {
		g := newRig(seed)
		for range 150 {
			switch k := g.r.IntN(10); {
			case k < 3 || len(g.rows) == 0:
				g.prompt()
			case k < 7:
				p := g.r.IntN(len(g.rows))
				g.store(t, g.r.IntN(g.slots), p, g.r.IntN(g.blocks(p)+1))
			default:
				g.remove(t, g.r.IntN(g.slots), g.r.IntN(len(g.rows)))
			}
			if len(g.rows) > 0 {
				g.check(t)
			}
		}
	}
}

func TestWarmIndexDoesNotAllocate(t *testing.T) {
	tree := prefix.New()
	var leaves []int32
	for i := range uint64(64) {
		leaves = append(leaves, tree.Insert([]uint64{1, 2, i, i + 100}, nil))
	}
	x := coverage.New(tree, 16, 64, 70)
	var m kvindex.Matches
	turn := 0
	churn := func() {
		leaf := leaves[turn%len(leaves)]
		w := kvindex.Slot(turn % 70)
		x.Store(w, leaf, 9)
		x.Store(w, leaf, 15)
		x.Match(leaf, 16, &m)
		x.Remove(w, leaf, 10)
		x.Remove(w, leaf, 8)
		turn++
	}
	for range 20_000 {
		churn()
	}
	if n := testing.AllocsPerRun(1000, churn); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// Changes come out pass by pass, each once.
func TestLog(t *testing.T) {
	var l coverage.Log
	for pass := range int64(50) {
		l.Pass = pass
		l.Stored(int32(pass)+1, 7)
		l.Removed(int32(pass)+1, 3)
		got := l.Take(pass) // the pass before
		if pass == 0 && len(got) != 0 || pass > 0 && len(got) != 2 {
			t.Fatalf("pass %d: %v", pass, got)
		}
		if pass > 0 && (got[0] != coverage.Change{Pass: pass - 1, Seg: int32(pass), At: 7} || got[1] != coverage.Change{Pass: pass - 1, Seg: -int32(pass), At: 3}) {
			t.Fatalf("pass %d: %v", pass, got)
		}
	}
	if got := l.Take(50); len(got) != 2 || len(l.Take(50)) != 0 {
		t.Errorf("the last: %v", got)
	}
}
