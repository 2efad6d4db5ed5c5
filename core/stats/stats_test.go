package stats

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

func naiveOf(samples []float64) Dist {
	if len(samples) == 0 {
		return Dist{}
	}
	sum, squares := 0.0, 0.0
	for _, x := range samples {
		sum += x
	}
	mean := sum / float64(len(samples))
	for _, x := range samples {
		squares += float64((x - mean) * (x - mean))
	}
	s := slices.Sorted(slices.Values(samples))
	at := func(percent float64) float64 { return s[int(math.Round(float64(len(s)-1)*percent/100))] }
	return Dist{mean, s[0], s[len(s)-1], at(50), at(75), at(90), at(95), at(99), math.Sqrt(squares / float64(len(s)))}
}

// TestOfEqualsNaive draws sizes around the small ones and shapes that are hard
// on a selection: sorted, reversed, few values, sawteeth.
func TestOfEqualsNaive(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	shapes := []func(i, n int) float64{
		func(i, n int) float64 { return rng.ExpFloat64() * 1000 },
		func(i, n int) float64 { return float64(i) },
		func(i, n int) float64 { return float64(n - i) },
		func(i, n int) float64 { return float64(rng.Intn(3)) },
		func(i, n int) float64 { return 7 },
		func(i, n int) float64 { return float64(i % 50) },
		func(i, n int) float64 { return float64(min(i, n-i)) },
		func(i, n int) float64 { return float64(i ^ 0x55) },
	}
	for round := range 4000 {
		n := rng.Intn(300)
		if round%20 == 0 {
			n = rng.Intn(12000)
		}
		shape := shapes[round%len(shapes)]
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = shape(i, n)
		}
		want := naiveOf(samples)
		if got := Of(samples); got != want {
			t.Fatalf("round %d, %d samples:\n%+v, want\n%+v", round, n, got, want)
		}
	}
}

// TestOfKnown holds cases small enough to check by hand.
func TestOfKnown(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    Dist
	}{
		{nil, Dist{}},
		{[]float64{4}, Dist{4, 4, 4, 4, 4, 4, 4, 4, 0}},
		{[]float64{3, 1}, Dist{2, 1, 3, 3, 3, 3, 3, 3, 1}}, // rank 0.5 rounds up
		{[]float64{5, 1, 4, 2, 3}, Dist{3, 1, 5, 3, 4, 5, 5, 5, math.Sqrt2}},
	} {
		if got := Of(slices.Clone(c.samples)); got != c.want {
			t.Errorf("Of(%v) = %+v, want %+v", c.samples, got, c.want)
		}
	}
}

// TestSelectUnlucky forces the way out of unlucky pivots.
func TestSelectUnlucky(t *testing.T) {
	// Each round of median-of-three takes off the two largest of what is left.
	const n = 2000
	s := make([]float64, n)
	for i := range s {
		s[i] = -1
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	// Play the selection with values assigned as late as possible.
	value := float64(n)
	for len(order) > 40 {
		m := len(order) / 2
		for _, i := range []int{len(order) - 1, m} {
			s[order[i]] = value
			value--
		}
		order = append(append([]int{}, order[:m]...), order[m+1:len(order)-1]...)
	}
	for _, i := range order {
		s[i] = value
		value--
	}
	want := slices.Sorted(slices.Values(s))
	for _, k := range []int{0, 10, n / 2, n - 1} {
		got := slices.Clone(s)
		selectNth(got, k)
		if got[k] != want[k] {
			t.Errorf("element %d is %v, want %v", k, got[k], want[k])
		}
	}
}

func BenchmarkOf(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	samples, scratch := make([]float64, 12000), make([]float64, 12000)
	for i := range samples {
		samples[i] = rng.ExpFloat64() * 1000
	}
	for range b.N {
		copy(scratch, samples)
		Of(scratch)
	}
}
