package kv

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// modelBlock is one block that is not free, in a model without any structure:
// every question is answered by looking at all blocks.
type modelBlock struct {
	hash     uint64
	cached   bool
	refs     int
	cachedAt int // when it was named
	freedAt  int // when its last holder left
}

type model struct {
	total   int
	clock   int
	blocks  []*modelBlock
	evicted []uint64
}

func (m *model) tick() int {
	m.clock++
	return m.clock
}

func (m *model) primary(hash uint64) *modelBlock {
	var found *modelBlock
	for _, b := range m.blocks {
		if b.cached && b.hash == hash && (found == nil || b.cachedAt < found.cachedAt) {
			found = b
		}
	}
	return found
}

// idle lists the inactive blocks in eviction order.
func (m *model) idle() []*modelBlock {
	var idle []*modelBlock
	for _, b := range m.blocks {
		if b.refs == 0 {
			idle = append(idle, b)
		}
	}
	slices.SortFunc(idle, func(a, b *modelBlock) int { return cmp.Compare(a.freedAt, b.freedAt) })
	return idle
}

func (m *model) remove(b *modelBlock) {
	m.blocks = slices.DeleteFunc(m.blocks, func(x *modelBlock) bool { return x == b })
}

func (m *model) acquire(hits []*modelBlock, fresh int) ([]*modelBlock, bool) {
	m.evicted = nil
	idle := m.idle()
	spare := slices.DeleteFunc(slices.Clone(idle), func(b *modelBlock) bool { return slices.Contains(hits, b) })
	if fresh > m.total-len(m.blocks)+len(spare) {
		return nil, false
	}
	held := slices.Clone(hits)
	for _, b := range hits {
		b.refs++
	}
	for range fresh {
		if len(m.blocks) == m.total {
			victim := spare[0]
			spare = spare[1:]
			m.remove(victim)
			if m.primary(victim.hash) == nil {
				m.evicted = append(m.evicted, victim.hash)
			}
		}
		b := &modelBlock{refs: 1}
		m.blocks = append(m.blocks, b)
		held = append(held, b)
	}
	return held, true
}

func (m *model) cache(b *modelBlock, hash uint64) bool {
	visible := m.primary(hash) == nil
	b.hash, b.cached, b.cachedAt = hash, true, m.tick()
	return visible
}

func (m *model) release(held []*modelBlock) {
	for _, b := range slices.Backward(held) {
		b.refs--
		if b.refs == 0 && b.cached {
			b.freedAt = m.tick()
		} else if b.refs == 0 {
			m.remove(b)
		}
	}
}

// pair runs both pools side by side. names tells which model block a handle
// stands for.
type pair struct {
	t     *testing.T
	pool  *Pool
	model *model
	names map[Block]*modelBlock
	held  [4][]Block
	want  [4][]*modelBlock
}

const hashKinds = 8 // few hashes, so that copies and hits are common

func (x *pair) acquire(who int, first uint64, run, fresh int) {
	var hits []Block
	var wantHits []*modelBlock
	for i := range run {
		hash := (first + uint64(i)) % hashKinds
		b, w := x.pool.Lookup(hash), x.model.primary(hash)
		if b == 0 {
			break
		}
		hits, wantHits = append(hits, b), append(wantHits, w)
	}
	held, ok := x.pool.Acquire(x.held[who], hits, fresh)
	more, wantOK := x.model.acquire(wantHits, fresh)
	if ok != wantOK {
		x.t.Fatalf("acquire %d hits, %d fresh: %v, want %v", len(hits), fresh, ok, wantOK)
	}
	if !slices.Equal(x.pool.Evicted(), x.model.evicted) {
		x.t.Fatalf("evicted %v, want %v", x.pool.Evicted(), x.model.evicted)
	}
	x.want[who] = append(x.want[who], more...)
	if len(held) != len(x.want[who]) {
		x.t.Fatalf("holds %d blocks, want %d", len(held), len(x.want[who]))
	}
	for i := len(x.held[who]) + len(hits); i < len(held); i++ {
		x.names[held[i]] = x.want[who][i]
	}
	x.held[who] = held
}

func (x *pair) cache(who, at int, hash uint64) {
	if len(x.held[who]) == 0 {
		return
	}
	at %= len(x.held[who])
	w := x.want[who][at]
	if w.cached {
		return
	}
	got, want := x.pool.Cache(x.held[who][at], hash), x.model.cache(w, hash)
	if got != want {
		x.t.Fatalf("naming a block %d: visible %v, want %v", hash, got, want)
	}
}

func (x *pair) release(who int) {
	x.pool.Release(x.held[who])
	x.model.release(x.want[who])
	x.held[who], x.want[who] = nil, nil
}

// check compares everything that can be asked, and the eviction order.
func (x *pair) check() {
	x.pool.Check()
	idle := x.model.idle()
	got := fmt.Sprint(x.pool.Active(), x.pool.Inactive(), x.pool.Free(), x.pool.Total())
	n := len(x.model.blocks)
	if want := fmt.Sprint(n-len(idle), len(idle), x.model.total-n, x.model.total); got != want {
		x.t.Fatalf("active, inactive, free, total %s, want %s", got, want)
	}
	for hash := range uint64(hashKinds) {
		b, w := x.pool.Lookup(hash), x.model.primary(hash)
		if (b == 0) != (w == nil) || b != 0 && (x.names[b] != w || x.pool.Held(b) != (w.refs > 0)) {
			x.t.Fatalf("hash %d is block %d, which does not match the model", hash, b)
		}
	}
	b := x.pool.blocks[0].next
	for i, w := range idle {
		if b == 0 || x.names[b] != w {
			x.t.Fatalf("place %d of the eviction order differs", i)
		}
		b = x.pool.blocks[b].next
	}
	if b != 0 {
		x.t.Fatalf("more idle blocks than the model has")
	}
}

// FuzzPool reads a pool size and a list of four-byte operations.
func FuzzPool(f *testing.F) {
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 1+4*100)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		total := 1 + int(data[0])%16
		x := &pair{t: t, pool: New(total), model: &model{total: total}, names: map[Block]*modelBlock{}}
		for ops := data[1:]; len(ops) >= 4; ops = ops[4:] {
			who := int(ops[1]) % len(x.held)
			switch ops[0] % 4 {
			case 0:
				x.acquire(who, uint64(ops[2]), int(ops[3]>>4)%(hashKinds+1), int(ops[3]&15))
			case 1, 2:
				x.cache(who, int(ops[2]), uint64(ops[3])%hashKinds)
			case 3:
				x.release(who)
			}
			x.check()
		}
	})
}
