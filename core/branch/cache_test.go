package branch

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/dryserve/dryserve/core/prefix"
	"github.com/dryserve/dryserve/core/radix"
	"github.com/dryserve/dryserve/core/seq"
)

// user is a request in both caches.
type user struct {
	q      Seq
	ids    []seq.Identity // what core/radix knows its pages by, prompt first
	node   int32
	twin   radix.Node
	cached int32        // pages of the tree that it holds
	pages  []radix.Page // all it has
	lazy   int32        // pages cached that this cache has not been told of
	stamp  Stamp        // of the last of them
	order  uint64
}

// rig drives a Cache and the page-by-page one through the same life.
type rig struct {
	t     *testing.T
	r     *rand.Rand
	tree  *prefix.Tree
	c     *Cache
	twin  *radix.Cache
	names map[string]uint64
	rows  [][]uint64
	users []*user
	turns int32
	order uint64
	step  int64
}

func newRig(t *testing.T, seed int64) *rig {
	r := rand.New(rand.NewSource(seed))
	total := 8 + r.Intn(80)
	tree := prefix.New()
	return &rig{
		t: t, r: r, tree: tree, c: New(tree, total, 1+r.Intn(5), 1+r.Intn(9)), twin: radix.New(total),
		names: map[string]uint64{},
	}
}

// name numbers the places of pages.
func (g *rig) name(path string) seq.Identity {
	n, ok := g.names[path]
	if !ok {
		n = uint64(len(g.names)) + 1
		g.names[path] = n
	}
	return seq.Identity{Local: n, Hash: n}
}

// newcomer is a request whose prompt often begins as another's.
func (g *rig) newcomer() *user {
	var ids []uint64
	if len(g.rows) > 0 && g.r.Intn(5) > 0 {
		row := g.rows[g.r.Intn(len(g.rows))]
		ids = append(ids, row[:g.r.Intn(len(row)+1)]...)
	}
	for n := g.r.Intn(5); n > 0 || len(ids) == 0; n-- {
		ids = append(ids, uint64(g.r.Intn(4)))
	}
	g.rows = append(g.rows, ids)
	tokens := len(ids)*int(g.c.tbs) - g.r.Intn(int(g.c.tbs))
	ids = ids[:(tokens+int(g.c.tbs)-1)/int(g.c.tbs)]
	g.turns++
	u := &user{q: Seq{Leaf: g.tree.Insert(ids, g.c.Divide), Turn: g.turns, Pages: int32(tokens / int(g.c.bs))}}
	for j := range int(u.q.Pages) {
		touched := ((j+1)*int(g.c.bs)-1)/int(g.c.tbs) + 1
		u.ids = append(u.ids, g.name(fmt.Sprint(ids[:touched], j)))
	}
	return u
}

// own gives the request k generated pages more to know.
func (g *rig) own(u *user, k int) {
	for range k {
		u.ids = append(u.ids, g.name(fmt.Sprint("turn", u.q.Turn, len(u.ids))))
	}
}

// tick orders an operation after all before it.
func (g *rig) tick() {
	g.step++
	g.c.Now = Stamp{Step: g.step}
}

// catchUp tells this cache of pages cached since.
func (g *rig) catchUp(u *user) {
	if u.lazy > 0 {
		g.c.Advance(u.node, u.cached, u.stamp)
		u.lazy = 0
	}
}

func (g *rig) admit(u *user) bool {
	limit := g.r.Intn(len(u.ids) + 1)
	if a, b := g.c.Match(u.q, int32(limit)), g.twin.Match(u.ids[:limit]); int(a) != b {
		g.t.Fatalf("match of %+v up to %d: %d pages, want %d", u.q, limit, a, b)
	}
	g.tick()
	u.node, u.cached = g.c.MatchLock(u.q, int32(limit))
	u.twin, u.pages = g.twin.MatchLock(u.ids[:limit], nil)
	if int(u.cached) != len(u.pages) {
		g.t.Fatalf("locked %d pages, want %d", u.cached, len(u.pages))
	}
	return g.take(u, g.r.Intn(len(u.ids)-int(u.cached)+2))
}

// take gets n more pages.
func (g *rig) take(u *user, n int) bool {
	if n > g.c.Room() {
		return false
	}
	g.c.Take(n)
	if missing := n - g.twin.Available(); missing > 0 {
		g.twin.Evict(missing)
	}
	var ok bool
	if u.pages, ok = g.twin.Allocate(u.pages, n); !ok {
		g.t.Fatal("no room in the twin")
	}
	return true
}

// cache puts what the request has into the tree, up to page to.
func (g *rig) cache(u *user, to int) {
	if to <= int(u.cached) {
		return
	}
	g.tick()
	node := g.c.Insert(u.node, u.q, u.cached, int32(to))
	g.c.Lock(node)
	g.c.Unlock(u.node)
	twin := g.twin.Insert(u.twin, u.ids[u.cached:to], u.pages[u.cached:to])
	g.twin.Lock(twin)
	g.twin.Unlock(u.twin)
	u.node, u.twin, u.cached = node, twin, int32(to)
}

// grown lets every request whose leaf is its own cache one page more, in order;
// this cache hears of it now or later.
func (g *rig) grown() {
	g.step++
	for _, u := range g.users {
		if u.lazy == 0 && !g.c.Own(u.node, u.q) || int(u.cached) < len(u.pages) && g.r.Intn(2) == 0 {
			continue
		}
		g.own(u, int(u.cached)+1-len(u.ids))
		if len(u.pages) == int(u.cached) && !g.take(u, 1) {
			continue
		}
		at := int(u.cached)
		twin := g.twin.Insert(u.twin, u.ids[at:at+1], u.pages[at:at+1])
		g.twin.Lock(twin)
		g.twin.Unlock(u.twin)
		if twin != u.twin {
			g.t.Fatal("a leaf of its own did not grow in place")
		}
		u.cached++
		u.lazy++
		u.stamp = Stamp{Step: g.step, Seq: u.order << 1}
		if g.r.Intn(4) == 0 {
			g.catchUp(u)
		}
	}
}

// leave ends a request; keep: what it has enters the cache.
func (g *rig) leave(i int, keep bool) *user {
	u := g.users[i]
	g.users = append(g.users[:i], g.users[i+1:]...)
	g.catchUp(u)
	if keep {
		g.tick()
		to := min(len(u.ids), len(u.pages))
		g.c.Give(len(u.pages) - to)
		g.twin.Free(u.pages[to:])
		g.c.Insert(u.node, u.q, u.cached, int32(to))
		g.twin.Insert(u.twin, u.ids[u.cached:to], u.pages[u.cached:to])
	} else {
		g.c.Give(len(u.pages) - int(u.cached))
		g.twin.Free(u.pages[u.cached:])
	}
	g.c.Unlock(u.node)
	g.twin.Unlock(u.twin)
	u.node, u.twin, u.cached, u.pages = 0, 0, 0, nil
	return u
}

func (g *rig) join(u *user) {
	if !g.admit(u) {
		g.users = append(g.users, u)
		g.leave(len(g.users)-1, false)
		return
	}
	g.order++
	u.order = g.order
	g.users = append(g.users, u)
	if to := min(len(u.ids), len(u.pages)); to > 0 {
		g.cache(u, g.r.Intn(to+1))
	}
}

func (g *rig) run() {
	switch k := g.r.Intn(12); {
	case k < 4:
		g.join(g.newcomer())
	case len(g.users) == 0:
	case k < 6:
		u := g.users[g.r.Intn(len(g.users))]
		g.catchUp(u)
		g.own(u, g.r.Intn(3))
		if g.take(u, g.r.Intn(4)) {
			g.cache(u, min(len(u.ids), len(u.pages)))
		}
	case k < 9:
		g.grown()
	case k == 9: // taken out, and back later with what it has generated
		u := g.leave(g.r.Intn(len(g.users)), false)
		if g.r.Intn(2) == 0 {
			g.join(g.newcomer())
		}
		g.join(u)
	default:
		g.leave(g.r.Intn(len(g.users)), true)
	}
	if g.c.Evictable() != g.twin.Evictable() || g.c.Free() != g.twin.Available() {
		g.t.Fatalf("%d free, %d evictable; want %d and %d", g.c.Free(), g.c.Evictable(), g.twin.Available(), g.twin.Evictable())
	}
	u := g.newcomer()
	if a, b := g.c.Match(u.q, u.q.Pages), g.twin.Match(u.ids); int(a) != b {
		g.t.Fatalf("match of %+v: %d pages, want %d", u.q, a, b)
	}
}

func TestAgainstPages(t *testing.T) {
	for seed := range int64(600) {
		g := newRig(t, seed)
		for range 250 {
			g.run()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add(int64(1), uint16(50))
	f.Fuzz(func(t *testing.T, seed int64, steps uint16) {
		g := newRig(t, seed)
		for range min(int(steps), 2000) {
			g.run()
		}
	})
}

// churner is admission, caching and release at a full pool.
func churner(total int) func() {
	tree := prefix.New()
	var prompts []Seq
	for i := range 64 {
		ids := []uint64{1, 2, 3, uint64(i), uint64(i) + 100, uint64(i) + 200}
		prompts = append(prompts, Seq{Leaf: tree.Insert(ids, nil), Turn: int32(i), Pages: 48})
	}
	c := New(tree, total, 64, 512)
	next := 0
	return func() {
		q := prompts[next%len(prompts)]
		next++
		node, found := c.MatchLock(q, q.Pages-1)
		c.Take(int(52 - found))
		held := c.Insert(node, q, found, q.Pages)
		c.Lock(held)
		c.Unlock(node)
		c.Give(1)
		c.Insert(held, q, q.Pages, 51)
		c.Unlock(held)
	}
}

func TestChurnDoesNotAllocate(t *testing.T) {
	churn := churner(512)
	for range 500 {
		churn()
	}
	if n := testing.AllocsPerRun(1000, churn); n != 0 {
		t.Errorf("%v allocations per request, want 0", n)
	}
}

func BenchmarkChurn(b *testing.B) {
	churn := churner(512)
	b.ReportAllocs()
	for b.Loop() {
		churn()
	}
}
