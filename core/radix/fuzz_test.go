package radix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/internal/radixmodel"
)

// holder is a request as the cache sees it: a path it holds and, behind its
// end, private pages.
type holder struct {
	content []uint64 // of path and private pages
	node    Node
	pages   []Page
	cached  int // pages of the path

	naiveNode  *radixmodel.Node
	naivePages []*radixmodel.Page
}

// pair runs the cache and the model side by side.
type pair struct {
	t       *testing.T
	cache   *Cache
	model   *radixmodel.Cache
	holders [4]holder
}

func identities(content []uint64) []seq.Identity {
	ids := make([]seq.Identity, len(content))
	for i, c := range content {
		ids[i].Local = c
		ids[i].Hash = c
		if i > 0 {
			ids[i].Hash = seq.Chain(ids[i-1].Hash, c)
		}
	}
	return ids
}

func (x *pair) equal(what string, got, want any) {
	x.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		x.t.Fatalf("%s: %s, want %s", what, g, w)
	}
}

func (x *pair) samePages(what string, got []Page, want []*radixmodel.Page) {
	x.t.Helper()
	numbers := []int{}
	for _, p := range want {
		numbers = append(numbers, p.Number)
	}
	x.equal(what, got, numbers)
}

// match begins a new request with the prefix that is cached.
func (x *pair) match(h *holder, content []uint64) {
	x.drop(h)
	ids := identities(content)
	x.equal("match", x.cache.Match(ids), x.model.Match(content))
	h.node, h.pages = x.cache.MatchLock(ids, nil)
	h.naiveNode, h.naivePages = x.model.MatchLock(content)
	h.cached = len(h.pages)
	h.content = slices.Clone(content[:h.cached])
	x.samePages("matched pages", h.pages, h.naivePages)
}

// allocate gives a request private pages for more content, evicting as many
// as are missing.
func (x *pair) allocate(h *holder, content []uint64, publish bool) {
	missing := len(content) - x.cache.Available()
	if missing > 0 {
		x.cache.Evict(missing)
		x.model.Evict(missing)
		x.equal("evicted", x.cache.Removed(), x.model.Removed)
	}
	pages, ok := x.cache.Allocate(h.pages, len(content))
	more, wantOK := x.model.Allocate(len(content))
	x.equal("allocated", ok, wantOK)
	if !ok {
		return
	}
	first := len(h.pages)
	h.pages, h.naivePages = pages, append(h.naivePages, more...)
	h.content = append(h.content, content...)
	x.samePages("allocated pages", h.pages, h.naivePages)
	for i, id := range identities(h.content) {
		if i < first || !publish {
			continue
		}
		fresh, visible := x.cache.Publish(h.pages[i], id.Hash)
		wantFresh, wantVisible := x.model.Publish(h.naivePages[i], id.Hash)
		x.equal("published", [2]bool{fresh, visible}, [2]bool{wantFresh, wantVisible})
	}
}

// insert puts the first n private pages into the tree and moves the lock.
func (x *pair) insert(h *holder, n int) {
	to := min(h.cached+n, len(h.pages))
	ids := identities(h.content)[h.cached:to]
	node := x.cache.Insert(h.node, ids, h.pages[h.cached:to])
	wantNode, kept := x.model.Insert(h.naiveNode, h.content[h.cached:to], h.naivePages[h.cached:to])
	copy(h.naivePages[h.cached:], kept)
	x.equal("removed by insert", x.cache.Removed(), x.model.Removed)
	x.samePages("pages after insert", h.pages, h.naivePages)
	x.cache.Lock(node)
	x.cache.Unlock(h.node)
	x.model.Lock(wantNode, 1)
	x.model.Lock(h.naiveNode, -1)
	h.node, h.naiveNode, h.cached = node, wantNode, to
}

// drop ends a request; its private pages are freed.
func (x *pair) drop(h *holder) {
	if h.naiveNode == nil {
		return
	}
	x.cache.Free(h.pages[h.cached:])
	x.model.Removed = nil
	for _, p := range h.naivePages[h.cached:] {
		x.model.Release(p)
	}
	x.equal("removed by free", x.cache.Removed(), x.model.Removed)
	x.cache.Unlock(h.node)
	x.model.Lock(h.naiveNode, -1)
	*h = holder{}
}

// check compares everything that can be asked, and both trees.
func (x *pair) check() {
	x.cache.Check()
	x.equal("total, available, evictable, protected",
		[]int{x.cache.Total(), x.cache.Available(), x.cache.Evictable(), x.cache.Protected()},
		[]int{x.model.Total, x.model.Available(), x.model.Count(false), x.model.Count(true)})
	nodes := x.model.All()
	x.equal("nodes", x.cache.children.used, len(nodes))
	handles := map[*radixmodel.Node]Node{x.model.Root: 0}
	for _, w := range nodes {
		n := x.cache.child(handles[w.Parent], w.Pages[0].Key)
		handles[w] = n
		x.samePages("edge", x.cache.appendEdge([]Page{}, n), w.Pages)
		got := x.cache.nodes[n]
		x.equal("locks and children", [2]int32{got.locks, got.children}, [2]int{w.Holders, len(w.Children)})
	}
	// Stamps may be other numbers, but must order the nodes alike.
	for _, a := range nodes {
		for _, b := range nodes {
			if got := x.cache.nodes[handles[a]].stamp < x.cache.nodes[handles[b]].stamp; got != (a.Stamp < b.Stamp) {
				x.t.Fatalf("pages from %d are older than those from %d: %v", a.Pages[0].Number, b.Pages[0].Number, got)
			}
		}
	}
}

// content is a list of pages that often shares a beginning with others.
func content(family, length, own byte) []uint64 {
	list := make([]uint64, length%12)
	for i := range list {
		list[i] = uint64(family%2)*100 + uint64(i)
		if i >= int(own%8) {
			list[i] += 1000 * uint64(own%5)
		}
	}
	return list
}

// FuzzRadix reads a number of pages and a list of five-byte operations.
func FuzzRadix(f *testing.F) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 1+5*120)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		total := 1 + int(data[0])%32
		x := &pair{t: t, cache: New(total), model: radixmodel.New(total)}
		for ops := data[1:]; len(ops) >= 5; ops = ops[5:] {
			h := &x.holders[int(ops[1])%len(x.holders)]
			c := content(ops[2], ops[3], ops[4])
			switch op := ops[0] % 8; {
			case op < 3 || h.naiveNode == nil:
				x.match(h, c)
				if more := c[h.cached:]; op > 0 {
					x.allocate(h, more, op == 1)
				}
			case op < 5:
				x.allocate(h, content(ops[2], ops[3]%3, ops[4]), op == 3)
			case op == 5:
				x.drop(h)
			default:
				x.insert(h, 1+int(ops[3])%6)
			}
			x.check()
		}
	})
}
