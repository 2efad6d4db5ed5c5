package sorting

import (
	"cmp"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/internal/gen"
)

type thing struct{ key, place int }

func byKey(a, b thing) int { return cmp.Compare(a.key, b.key) }

// Stable does what slices.SortStableFunc does.
func TestStable(t *testing.T) {
	rand := gen.NewRand(1)
	for n := range 300 {
		for _, keys := range []int{1, 2, 7, 1 << 20} {
			s := make([]thing, n)
			for i := range s {
				s[i] = thing{rand.Intn(keys), i}
			}
			if n%3 == 0 { // nearly sorted
				slices.SortStableFunc(s, byKey)
				if n > 0 {
					s[rand.Intn(n)].key = rand.Intn(keys)
				}
			}
			want := slices.Clone(s)
			slices.SortStableFunc(want, byKey)
			if Stable(s, byKey); !slices.Equal(s, want) {
				t.Fatalf("%d things with %d keys:\n%v\n%v", n, keys, s, want)
			}
		}
	}
}

// The number of comparisons of sorted things grows with their number, that of
// others a little faster.
func TestComparisons(t *testing.T) {
	const n = 1 << 14
	rand := gen.NewRand(2)
	s := make([]thing, n)
	for i := range s {
		s[i].key = rand.Intn(n)
	}
	count := 0
	counting := func(a, b thing) int { count++; return byKey(a, b) }
	Stable(s, counting)
	if count > 40*n {
		t.Errorf("%d comparisons of %d things", count, n)
	}
	count = 0
	if Stable(s, counting); count > 2*n {
		t.Errorf("%d comparisons of %d things that are sorted", count, n)
	}
}
