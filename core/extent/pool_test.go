package extent

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/dryserve/dryserve/core/prefix"
)

// block is one block of the naive model: one KV block, one copy.
type block struct {
	key  string // "" for a block without a name
	refs int
}

// naive is the pool of engine notes §5, block by block.
type naive struct {
	total  int
	copies map[string][]*block // by name, in caching order
	idle   []*block            // least recently released first
	active int
}

func (m *naive) free() int { return m.total - m.active - len(m.idle) }

func (m *naive) lookup(keys []string) (hits, active int) {
	for _, k := range keys {
		c := m.copies[k]
		if len(c) == 0 {
			break
		}
		hits++
		if c[0].refs > 0 {
			active++
		}
	}
	return hits, active
}

func (m *naive) drop(b *block) {
	list := m.copies[b.key]
	for i, c := range list {
		if c == b {
			m.copies[b.key] = append(list[:i:i], list[i+1:]...)
		}
	}
}

func (m *naive) take(k int) {
	for m.free() < k {
		b := m.idle[0]
		m.idle = m.idle[1:]
		if b.key != "" {
			m.drop(b)
		}
	}
	m.active += k
}

func (m *naive) pin(key string) *block {
	b := m.copies[key][0]
	if b.refs == 0 {
		for i, c := range m.idle {
			if c == b {
				m.idle = append(m.idle[:i:i], m.idle[i+1:]...)
				break
			}
		}
		m.active++
	}
	b.refs++
	return b
}

func (m *naive) release(b *block) {
	b.refs--
	if b.refs == 0 {
		m.active--
		m.idle = append(m.idle, b)
	}
}

// user is a request of the test in both models.
type user struct {
	prompt Prompt
	keys   []string // names of its prompt blocks
	holder Holder
	blocks []*block // named blocks it holds
	held   int
}

type rig struct {
	t     *testing.T
	r     *rand.Rand
	tree  *prefix.Tree
	pool  *Pool
	model *naive
	bs    int
	tbs   int
	users []*user
	rows  [][]uint64
}

func newRig(t *testing.T, seed int64) *rig {
	r := rand.New(rand.NewSource(seed))
	g := &rig{t: t, r: r, tree: prefix.New(), bs: 1 + r.Intn(6), tbs: 1 + r.Intn(12)}
	total := 4 + r.Intn(60)
	g.pool = New(g.tree, total, g.bs, g.tbs)
	g.model = &naive{total: total, copies: map[string][]*block{}}
	return g
}

// prompt makes a prompt that shares a prefix with an earlier one.
func (g *rig) prompt() (Prompt, []string) {
	var ids []uint64
	if len(g.rows) > 0 && g.r.Intn(4) > 0 {
		row := g.rows[g.r.Intn(len(g.rows))]
		ids = append(ids, row[:g.r.Intn(len(row)+1)]...)
	}
	for n := g.r.Intn(6); n > 0 || len(ids) == 0; n-- {
		ids = append(ids, uint64(g.r.Intn(5)))
	}
	g.rows = append(g.rows, ids)
	tokens := len(ids)*g.tbs - g.r.Intn(g.tbs)
	ids = ids[:(tokens+g.tbs-1)/g.tbs]
	leaf := g.tree.Insert(ids, g.pool.Divide)
	n := tokens / g.bs
	keys := make([]string, n)
	for j := range keys {
		keys[j] = fmt.Sprint(ids[:((j+1)*g.bs-1)/g.tbs+1], j)
	}
	return Prompt{Leaf: leaf, Blocks: int32(n)}, keys
}

func (g *rig) check(what string) {
	p, m := g.pool, g.model
	if p.Active() != m.active || p.Inactive() != len(m.idle) || p.Free() != m.free() {
		g.t.Fatalf("%s: pool has active %d inactive %d, model %d and %d", what, p.Active(), p.Inactive(), m.active, len(m.idle))
	}
	q, keys := g.prompt()
	limit := g.r.Intn(len(keys) + 1)
	h := p.Lookup(q, int32(limit))
	hits, active := m.lookup(keys[:limit])
	if int(h.Blocks) != hits || int(h.Active) != active {
		g.t.Fatalf("%s: lookup of %v: got %+v, want %d hits, %d active", what, keys[:limit], h, hits, active)
	}
}

// keysOf are the names of the user's blocks, those after the prompt included.
func (u *user) key(j int) string {
	if j < len(u.keys) {
		return u.keys[j]
	}
	return fmt.Sprint("private", u.prompt.Private, j)
}

func (g *rig) admit(u *user, limit int) {
	h := g.pool.Lookup(u.prompt, int32(limit))
	all := make([]string, limit)
	for j := range all {
		all[j] = u.key(j)
	}
	hits, active := g.model.lookup(all)
	if int(h.Blocks) != hits || int(h.Active) != active {
		g.t.Fatalf("admit: lookup of %v: got %+v, want %d hits, %d active", all, h, hits, active)
	}
	// The path may go on through what the user generates: then only its
	// first blocks are named before they are released.
	prompt := len(u.keys)
	if g.r.Intn(3) == 0 {
		prompt = g.r.Intn(len(u.keys) + 1)
	}
	want := prompt + g.r.Intn(2)
	want = max(want, hits)
	if want-active > g.pool.Free()+g.pool.Inactive() {
		return
	}
	g.pool.Pin(u.prompt, &u.holder, h.Blocks)
	for j := range hits {
		u.blocks = append(u.blocks, g.model.pin(all[j]))
	}
	g.pool.Take(want - hits)
	g.model.take(want - hits)
	u.held = want
	for end := hits; end < prompt; {
		end = min(prompt, end+1+g.r.Intn(4))
		g.own(u, end)
	}
	g.users = append(g.users, u)
}

func (g *rig) own(u *user, end int) {
	g.pool.Own(u.prompt, &u.holder, int32(end))
	for j := len(u.blocks); j < end; j++ {
		b := &block{key: u.key(j), refs: 1}
		g.model.copies[b.key] = append(g.model.copies[b.key], b)
		u.blocks = append(u.blocks, b)
	}
}

// release ends or preempts a user that has full of its held blocks full.
func (g *rig) release(u *user, full int, resume bool) {
	if resume && full > max(int(u.holder.Blocks), len(u.keys)) && u.prompt.Private == 0 {
		u.prompt.Private = g.pool.Private()
	}
	g.pool.Release(u.prompt, &u.holder, int32(u.held), int32(full))
	g.model.active -= u.held - full
	for j := full - 1; j >= len(u.blocks); j-- {
		b := &block{refs: 1}
		if u.prompt.Private != 0 || j < len(u.keys) {
			b.key = u.key(j)
			g.model.copies[b.key] = append(g.model.copies[b.key], b)
		}
		g.model.release(b)
	}
	for j := len(u.blocks) - 1; j >= 0; j-- {
		g.model.release(u.blocks[j])
	}
	u.blocks, u.held = nil, 0
}

func (g *rig) step() {
	switch k := g.r.Intn(10); {
	case k < 4:
		q, keys := g.prompt()
		if len(keys) > 0 {
			g.admit(&user{prompt: q, keys: keys}, g.r.Intn(len(keys)+1))
		}
		g.check("admit")
	case len(g.users) == 0:
	case k < 6: // decode: one more block
		u := g.users[g.r.Intn(len(g.users))]
		if g.pool.Free()+g.pool.Inactive() > 0 {
			g.pool.Take(1)
			g.model.take(1)
			u.held++
		}
		g.check("decode")
	default:
		i := g.r.Intn(len(g.users))
		u := g.users[i]
		g.users = append(g.users[:i], g.users[i+1:]...)
		full := u.held
		if full > len(u.blocks) && g.r.Intn(2) == 0 {
			full--
		}
		resume := g.r.Intn(2) == 0
		g.release(u, full, resume)
		g.check("release")
		if resume {
			limit := full
			if u.prompt.Private == 0 {
				limit = min(limit, len(u.keys))
			}
			g.admit(u, limit)
			g.check("resume")
		}
	}
}

func TestPoolAgainstBlocks(t *testing.T) {
	for seed := range int64(400) {
		g := newRig(t, seed)
		for range 300 {
			g.step()
		}
	}
}

func FuzzPool(f *testing.F) {
	f.Add(int64(1), uint16(50))
	f.Fuzz(func(t *testing.T, seed int64, steps uint16) {
		g := newRig(t, seed)
		for range min(int(steps), 2000) {
			g.step()
		}
	})
}

// BenchmarkChurn is admission and release at a full pool.
func BenchmarkChurn(b *testing.B) {
	tree := prefix.New()
	var prompts []Prompt
	for i := range 64 {
		ids := []uint64{1, 2, 3, uint64(i), uint64(i) + 100, uint64(i) + 200}
		prompts = append(prompts, Prompt{Leaf: tree.Insert(ids, nil), Blocks: 48})
	}
	p := New(tree, 512, 64, 512)
	churn := churner(p, prompts)
	churn()
	b.ReportAllocs()
	for b.Loop() {
		churn()
	}
}

func churner(p *Pool, prompts []Prompt) func() {
	next := 0
	return func() {
		q := prompts[next%len(prompts)]
		next++
		var h Holder
		hit := p.Lookup(q, q.Blocks-1)
		p.Pin(q, &h, hit.Blocks)
		p.Take(int(52 - hit.Blocks))
		p.Own(q, &h, q.Blocks)
		p.Release(q, &h, 52, 51)
	}
}

func TestChurnDoesNotAllocate(t *testing.T) {
	tree := prefix.New()
	var prompts []Prompt
	for i := range 64 {
		ids := []uint64{1, 2, 3, uint64(i), uint64(i) + 100, uint64(i) + 200}
		prompts = append(prompts, Prompt{Leaf: tree.Insert(ids, nil), Blocks: 48})
	}
	churn := churner(New(tree, 512, 64, 512), prompts)
	for range 200 {
		churn()
	}
	if n := testing.AllocsPerRun(1000, churn); n != 0 {
		t.Errorf("cache churn at a full pool: %v allocations per request, want 0", n)
	}
}
