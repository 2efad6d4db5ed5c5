// Package sorting sorts where speed does not matter and code does: every use of
// package slices for another type is another 16 kB of core.wasm.
//
// It owns one stable sort. Hot paths keep package slices.
//
// Invariant: equal elements keep their order, so the outcome depends on the
// comparison only.
package sorting

// Stable sorts s so that compare is nowhere above 0 for neighbours.
func Stable[T any](s []T, compare func(a, b T) int) {
	sort(len(s), func(i, j int) bool { return compare(s[i], s[j]) < 0 }, func(i, j int) { s[i], s[j] = s[j], s[i] })
}

// block is what insertion sorts.
const block = 20

// sort sorts n things by insertion in blocks, which it then merges in place.
func sort(n int, less func(i, j int) bool, swap func(i, j int)) {
	for from := 0; from < n; from += block {
		for i := from + 1; i < min(from+block, n); i++ {
			for j := i; j > from && less(j, j-1); j-- {
				swap(j, j-1)
			}
		}
	}
	m := merger{less, swap}
	for size := block; size < n; size *= 2 {
		for from := 0; from+size < n; from += 2 * size {
			m.merge(from, from+size, min(from+2*size, n))
		}
	}
}

type merger struct {
	less func(i, j int) bool
	swap func(i, j int)
}

// merge merges the sorted runs from a to m and from m to b, excluded, by
// exchanging the end of the first for the beginning of the second.
func (x *merger) merge(a, m, b int) {
	for a < m && m < b && x.less(m, m-1) {
		// Of the halves of the longer run, the left ends where the other run is cut.
		var cut, in int
		if m-a >= b-m {
			cut = a + (m-a)/2
			in = x.search(m, b, func(i int) bool { return !x.less(i, cut) })
		} else {
			in = m + (b-m)/2
			cut = x.search(a, m, func(i int) bool { return x.less(in, i) })
		}
		x.rotate(cut, m, in)
		middle := cut + in - m
		x.merge(a, cut, middle)
		a, m = middle, in
	}
}

// search is the first index from a on, b at the latest, at which is holds; from
// there on it always does.
func (x *merger) search(a, b int, is func(i int) bool) int {
	for a < b {
		if i := a + (b-a)/2; is(i) {
			b = i
		} else {
			a = i + 1
		}
	}
	return a
}

// rotate exchanges the neighbours from a to m and from m to b, excluded.
func (x *merger) rotate(a, m, b int) {
	x.reverse(a, m)
	x.reverse(m, b)
	x.reverse(a, b)
}

func (x *merger) reverse(a, b int) {
	for b--; a < b; a, b = a+1, b-1 {
		x.swap(a, b)
	}
}
