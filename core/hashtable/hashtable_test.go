package hashtable

import (
	"math/rand/v2"
	"testing"
)

// Hashes that share their home slot, removed in every order.
func TestCollidingEntriesAreKept(t *testing.T) {
	x := New()
	var same []uint64
	for h := uint64(1); len(same) < 6; h++ {
		if d := x.home(h); d >= 61 || d == 0 { // wraps around the end of the table
			same = append(same, h)
		}
	}
	for gone := range same {
		x := New()
		for i, h := range same {
			x.Set(h, int32(i+1))
		}
		for k := range same {
			drop := (gone + k) % len(same)
			x.Remove(same[drop])
			for j := range same {
				want := int32(0)
				if (j-gone+len(same))%len(same) > k {
					want = int32(j + 1)
				}
				if got := x.Get(same[j]); got != want {
					t.Fatalf("after removing %d from %d on: entry %d is %d, want %d", k+1, gone, j, got, want)
				}
			}
		}
		if x.Len() != 0 {
			t.Fatalf("%d entries left", x.Len())
		}
	}
}

// A table beside a map, while it grows and shrinks.
func TestAgainstAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, want := New(), map[uint64]int32{}
	for range 20000 {
		h := rng.Uint64N(400) << rng.UintN(3)
		if got := table.Get(h); got != want[h] {
			t.Fatalf("hash %d is %d, want %d", h, got, want[h])
		}
		if want[h] != 0 && rng.IntN(2) == 0 {
			table.Remove(h)
			delete(want, h)
		} else {
			v := rng.Int32N(1000) + 1
			table.Set(h, v)
			want[h] = v
		}
	}
	found := 0
	for i := range table.Slots() {
		if h, v := table.At(i); v != 0 {
			found++
			if want[h] != v {
				t.Errorf("slot %d holds %d for hash %d, want %d", i, v, h, want[h])
			}
		}
	}
	if found != len(want) || table.Len() != len(want) {
		t.Errorf("%d slots in use, length %d, want %d", found, table.Len(), len(want))
	}
}
