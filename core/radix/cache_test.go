package radix

import (
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/seq"
)

// hold brings content into the cache as a request does and holds it.
func hold(t *testing.T, c *Cache, content ...uint64) (Node, []Page) {
	t.Helper()
	ids := identities(content)
	node, pages := c.MatchLock(ids, nil)
	found := len(pages)
	missing := len(ids) - found
	c.Evict(max(0, missing-c.Available()))
	pages, ok := c.Allocate(pages, missing)
	if !ok {
		t.Fatalf("no room for %v", content)
	}
	next := c.Insert(node, ids[found:], pages[found:])
	c.Lock(next)
	c.Unlock(node)
	return next, pages
}

func let(t *testing.T, c *Cache, content ...uint64) {
	t.Helper()
	node, _ := hold(t, c, content...)
	c.Unlock(node)
}

func known(c *Cache, contents ...[]uint64) (n []int) {
	for _, content := range contents {
		n = append(n, c.Match(identities(content)))
	}
	return n
}

func wantKnown(t *testing.T, c *Cache, want []int, contents ...[]uint64) {
	t.Helper()
	if got := known(c, contents...); !slices.Equal(got, want) {
		t.Errorf("known %v, want %v", got, want)
	}
}

// Engine notes §15, E11 (c): the end of the oldest leaf goes first.
func TestEvictsTheEndOfTheOldestLeaf(t *testing.T) {
	c := New(6)
	a, b, d := []uint64{1, 2}, []uint64{11, 12}, []uint64{21, 22, 23}
	let(t, c, a...)
	let(t, c, b...)
	let(t, c, d...)
	wantKnown(t, c, []int{1, 2, 3}, a, b, d)
	let(t, c, a...) // grows the leaf again at the cost of the next oldest
	wantKnown(t, c, []int{2, 1, 3}, a, b, d)
}

// Corrections §9: an unlocked leaf grows in place wherever the descent meets
// it, a locked one gets a child, which is younger than its parent.
func TestGrowsInPlace(t *testing.T) {
	c := New(16)
	node, pages := hold(t, c, 1, 2)
	if len(c.nodes) != 2 {
		t.Fatalf("%d nodes", len(c.nodes)-1)
	}
	more, _ := c.Allocate(nil, 1)
	if next := c.Insert(node, identities([]uint64{3}), more); next != node {
		t.Errorf("the only holder's leaf did not grow but got node %d", next)
	}
	let(t, c, 1, 2, 3, 4) // held by another: a child
	if len(c.nodes) != 3 {
		t.Errorf("%d nodes, want 2", len(c.nodes)-1)
	}
	let(t, c, 1, 2, 3, 4, 5) // the child is nobody's: found from above, it grows
	if len(c.nodes) != 3 || c.Protected() != 3 || c.Evictable() != 2 {
		t.Errorf("%d nodes, %d protected, %d evictable", len(c.nodes)-1, c.Protected(), c.Evictable())
	}
	if len(pages) != 2 {
		t.Errorf("pages %v", pages)
	}
}

// Corrections §9: the part of a node that is matched in part keeps its age.
func TestSplitKeepsItsAge(t *testing.T) {
	c := New(16)
	let(t, c, 1, 2, 3)
	let(t, c, 7, 8)
	node, pages := c.MatchLock(identities([]uint64{1, 2, 9}), nil)
	c.Unlock(node)
	if len(pages) != 2 || len(c.nodes) != 4 {
		t.Fatalf("matched %v, %d nodes", pages, len(c.nodes)-1)
	}
	c.Evict(3) // [3] and [1 2] are still the oldest
	wantKnown(t, c, []int{0, 2}, []uint64{1, 2, 3}, []uint64{7, 8})
}

// What is held cannot be evicted, nor anything above it.
func TestEvictSparesWhatIsHeld(t *testing.T) {
	c := New(8)
	node, _ := hold(t, c, 1, 2)
	let(t, c, 1, 2, 3)
	let(t, c, 7)
	c.Evict(100)
	wantKnown(t, c, []int{2, 0}, []uint64{1, 2, 3}, []uint64{7})
	c.Unlock(node)
	c.Evict(1)
	wantKnown(t, c, []int{1}, []uint64{1, 2})
	c.Evict(1)
	if c.Available() != 8 || len(c.heap) != 0 {
		t.Errorf("%d pages free, %d leaves", c.Available(), len(c.heap))
	}
}

// The page of the tree replaces the caller's copy, which is freed but whose
// hash is still there.
func TestInsertDropsCopies(t *testing.T) {
	c := New(8)
	ids := identities([]uint64{1, 2, 3})
	first, _ := c.Allocate(nil, 2)
	second, _ := c.Allocate(nil, 3)
	for i, p := range first {
		if fresh, visible := c.Publish(p, ids[i].Hash); !fresh || !visible {
			t.Errorf("page %d: %v %v", i, fresh, visible)
		}
	}
	if fresh, visible := c.Publish(second[0], ids[0].Hash); !fresh || visible {
		t.Errorf("the copy: %v %v", fresh, visible)
	}
	if fresh, _ := c.Publish(second[0], 77); fresh {
		t.Error("a page got a second hash")
	}
	node := c.Insert(0, ids[:2], first)
	c.Lock(node)
	c.Insert(0, ids, second)
	if want := []Page{1, 2, 5}; !slices.Equal(second, want) || len(c.Removed()) > 0 || c.Available() != 5 {
		t.Errorf("pages %v, want %v; removed %v; %d free", second, want, c.Removed(), c.Available())
	}
	c.Unlock(node)
	c.Evict(3)
	if got := c.Removed(); !slices.Equal(got, []uint64{ids[0].Hash, ids[1].Hash}) {
		t.Errorf("removed %v", got)
	}
}

// Engine notes §7: pages freed last are given out first, in their order; then
// come new ones.
func TestPageOrder(t *testing.T) {
	c := New(8)
	a, _ := c.Allocate(nil, 4)
	c.Free([]Page{a[2], a[0], a[3]})
	b, ok := c.Allocate(a[1:2], 2)
	if want := []Page{2, 1, 4}; !ok || !slices.Equal(b, want) {
		t.Errorf("pages %v, want %v", b, want)
	}
	if _, ok := c.Allocate(nil, 6); ok || c.Available() != 5 {
		t.Errorf("more pages than there are; %d free", c.Available())
	}
	b, _ = c.Allocate(nil, 3)
	if want := []Page{3, 5, 6}; !slices.Equal(b, want) {
		t.Errorf("pages %v, want %v", b, want)
	}
}

// Churn at a full cache: every round matches, splits, evicts, grows and
// publishes.
func TestChurnAllocatesNothing(t *testing.T) {
	c := New(256)
	next := uint64(0)
	var pages []Page
	ids := make([]seq.Identity, 40)
	run := func() {
		next++
		for i := range ids {
			ids[i].Local = next%5*100 + uint64(i)
			if i >= int(next%23) {
				ids[i].Local += next << 20
			}
			ids[i].Hash = ids[i].Local
		}
		var node Node
		node, pages = c.MatchLock(ids, pages[:0])
		found := len(pages)
		if missing := len(ids) - found - c.Available(); missing > 0 {
			c.Evict(missing)
		}
		var ok bool
		if pages, ok = c.Allocate(pages, len(ids)-found); !ok {
			t.Fatal("no room")
		}
		for i := found; i < len(ids); i++ {
			c.Publish(pages[i], ids[i].Hash)
		}
		half := (found + len(ids)) / 2
		first := c.Insert(node, ids[found:half], pages[found:half])
		c.Lock(first)
		c.Unlock(node)
		c.Insert(first, ids[half:], pages[half:])
		c.Unlock(first)
	}
	for range 5000 {
		run()
	}
	if c.Available() > len(ids) {
		t.Fatalf("%d pages free: the cache is not full", c.Available())
	}
	if n := testing.AllocsPerRun(500, run); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
