package idtable

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func id(n uint64) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], n)
	return u
}

// A table beside a map, with ids that collide and tables that grow.
func TestAgainstAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, want := New(), map[[16]byte]int32{}
	check := func(u [16]byte) {
		t.Helper()
		if got := table.Get(u); got != want[u] {
			t.Fatalf("id %x is handle %d, want %d", u, got, want[u])
		}
	}
	for step := range int32(20000) {
		u := id(rng.Uint64N(500))
		if step > 10000 { // ids that differ in their first half only
			u = [16]byte{}
			binary.LittleEndian.PutUint64(u[:8], rng.Uint64N(500)<<40)
		}
		check(u)
		if want[u] == 0 {
			table.Add(u, step+1)
			want[u] = step + 1
		} else {
			table.Remove(u)
			delete(want, u)
		}
		check(u)
		if table.Len() != len(want) {
			t.Fatalf("%d ids, want %d", table.Len(), len(want))
		}
	}
	for u := range want {
		check(u)
	}
}

func TestChurnAllocatesNothing(t *testing.T) {
	table := New()
	next := uint64(0)
	run := func() {
		for range 40 {
			next++
			table.Add(id(next), 1)
		}
		for i := range uint64(40) {
			table.Remove(id(next - i))
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
