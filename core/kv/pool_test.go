package kv

import (
	"slices"
	"testing"
)

// hold acquires and names blocks as a request does that computes hashes.
func hold(t *testing.T, p *Pool, hashes ...uint64) []Block {
	t.Helper()
	var hits []Block
	for len(hits) < len(hashes) {
		b := p.Lookup(hashes[len(hits)])
		if b == 0 {
			break
		}
		hits = append(hits, b)
	}
	held, ok := p.Acquire(nil, hits, len(hashes)-len(hits))
	if !ok {
		t.Fatalf("no room for %v", hashes)
	}
	for i := len(hits); i < len(held); i++ {
		p.Cache(held[i], hashes[i])
	}
	return held
}

func resident(p *Pool, hashes ...uint64) []bool {
	var in []bool
	for _, h := range hashes {
		in = append(in, p.Lookup(h) != 0)
	}
	return in
}

func counts(p *Pool) [3]int { return [3]int{p.Active(), p.Inactive(), p.Free()} }

// The pool of engine notes §15, E6: a released sequence loses its end first.
func TestEvictsTheEndOfTheOldestRelease(t *testing.T) {
	p := New(6)
	p.Release(hold(t, p, 1, 2))
	p.Release(hold(t, p, 11, 12))
	p.Release(hold(t, p, 21, 22, 23))
	if got := p.Evicted(); !slices.Equal(got, []uint64{2}) {
		t.Fatalf("evicted %v, want [2]", got)
	}
	p.Release(hold(t, p, 1, 2))
	if got := p.Evicted(); !slices.Equal(got, []uint64{12}) {
		t.Fatalf("evicted %v, want [12]: the hit on 1 must not be evicted", got)
	}
	if got, want := resident(p, 1, 2, 11, 12, 21, 22, 23), []bool{true, true, true, false, true, true, true}; !slices.Equal(got, want) {
		t.Fatalf("resident %v, want %v", got, want)
	}
	if got, want := counts(p), [3]int{0, 6, 0}; got != want {
		t.Fatalf("active, inactive, free %v, want %v", got, want)
	}
}

func TestAcquireIsAllOrNothing(t *testing.T) {
	p := New(4)
	first := hold(t, p, 1, 2)
	p.Release(first)
	second := hold(t, p, 5)
	hits := []Block{p.Lookup(1), p.Lookup(2)}
	before := counts(p)
	if held, ok := p.Acquire([]Block{9}, hits, 2); ok || len(held) != 1 {
		t.Fatalf("acquired %v with one free block and two wanted", held)
	}
	if got := counts(p); got != before {
		t.Fatalf("a refused Acquire changed the counts from %v to %v", before, got)
	}
	held, ok := p.Acquire(nil, hits, 1)
	if !ok || len(held) != 3 || len(p.Evicted()) != 0 {
		t.Fatalf("hits and the free block: %v %v, evicted %v", held, ok, p.Evicted())
	}
	p.Release(held)
	p.Release(second)
}

func TestPrivateBlocksBecomeFree(t *testing.T) {
	p := New(4)
	held, _ := p.Acquire(nil, nil, 3)
	p.Cache(held[0], 7)
	p.Release(held)
	if got, want := counts(p), [3]int{0, 1, 3}; got != want {
		t.Fatalf("active, inactive, free %v, want %v", got, want)
	}
}

// The oldest copy answers lookups; only the last one's end is news. The copies
// are evicted in every order.
func TestDuplicates(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		p := New(3)
		var copies []Block
		for i := range 3 {
			held, _ := p.Acquire(nil, nil, 1)
			copies = append(copies, held[0])
			if visible := p.Cache(held[0], 7); visible != (i == 0) {
				t.Fatalf("copy %d: visible %v", i, visible)
			}
		}
		oldest := copies[0]
		for _, i := range order {
			p.Release(copies[i : i+1])
			if got := p.Lookup(7); got != oldest {
				t.Fatalf("order %v: a release changed the primary from %d to %d", order, oldest, got)
			}
		}
		for n, gone := range order {
			if _, ok := p.Acquire(nil, nil, 1); !ok {
				t.Fatalf("order %v: no room", order)
			}
			primary, evicted := Block(0), []uint64{7}
			for i, b := range copies {
				if left := order[n+1:]; slices.Contains(left, i) {
					primary, evicted = b, nil
					break
				}
			}
			if p.Lookup(7) != primary || !slices.Equal(p.Evicted(), evicted) {
				t.Fatalf("order %v, copy %d evicted: lookup finds %d, want %d; evicted %v, want %v",
					order, gone, p.Lookup(7), primary, p.Evicted(), evicted)
			}
		}
	}
}

func TestSharedBlocksStayUntilTheLastHolder(t *testing.T) {
	p := New(4)
	a := hold(t, p, 1, 2)
	b := hold(t, p, 1, 2)
	if got, want := counts(p), [3]int{2, 0, 2}; got != want {
		t.Fatalf("shared: %v, want %v", got, want)
	}
	p.Release(a)
	if got, want := counts(p), [3]int{2, 0, 2}; got != want {
		t.Fatalf("one holder left: %v, want %v", got, want)
	}
	if !p.Held(b[0]) {
		t.Fatal("the other holder is not seen")
	}
	p.Release(b)
	if got, want := counts(p), [3]int{0, 2, 2}; got != want {
		t.Fatalf("no holder: %v, want %v", got, want)
	}
}

// Churn at a full pool: every call hits, evicts and names blocks.
func TestChurnAllocatesNothing(t *testing.T) {
	p := New(256)
	var held, hits []Block
	next := uint64(0)
	run := func() {
		held, hits = held[:0], hits[:0]
		base := next % 8
		for i := range uint64(16) {
			b := p.Lookup(base*1000 + i)
			if b == 0 {
				break
			}
			hits = append(hits, b)
		}
		var ok bool
		held, ok = p.Acquire(held, hits, 64-len(hits))
		if !ok {
			t.Fatal("no room")
		}
		for i := len(hits); i < 16; i++ {
			p.Cache(held[i], base*1000+uint64(i))
		}
		for i := 16; i < 64; i++ {
			next++
			p.Cache(held[i], 1<<40+next)
		}
		p.Release(held)
	}
	for range 100 {
		run()
	}
	if p.Free() != 0 {
		t.Fatalf("%d blocks free: the pool is not full", p.Free())
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Fatalf("%v allocations per run", n)
	}
}
