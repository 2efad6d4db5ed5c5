// Package stats reduces token times and latencies to the numbers of a report.
//
// It owns the two ways of summarising: Of, which sees all samples at once, and
// Gaps, which sees inter-token latencies one by one and keeps only counts. It
// does not own what is measured or when a request counts as complete.
//
// Invariants: results depend on the samples and their order only, to the last
// bit and on every target. Sums are naive and in the given order, because the
// reference's are. Of and Gaps.Add allocate nothing, except that Gaps makes
// room for lengths it has not met before.
//
// Source of behaviour: replay notes §9.1.
package stats

import (
	"math"
	"math/bits"
	"slices"
)

// Dist is the summary of a distribution. All fields are 0 when empty.
type Dist struct {
	Mean, Min, Max, Median, P75, P90, P95, P99, Std float64
}

// percents are the percentiles of a Dist, ascending.
var percents = [5]int{50, 75, 90, 95, 99}

// rank is the index of a percentile among n > 0 sorted samples:
// (n-1)*percent/100 rounded half away from zero.
func rank(n, percent int) int { return ((n-1)*percent + 50) / 100 }

// setPercentiles stores values in the order of percents.
func (d *Dist) setPercentiles(v [5]float64) {
	d.Median, d.P75, d.P90, d.P95, d.P99 = v[0], v[1], v[2], v[3], v[4]
}

// Of summarises samples given in completion order. It may reorder them. No
// sample may be NaN.
//
// The mean is the sum over the count, Std the population's, percentiles are
// samples (see rank). Up to 4096 samples the reference sums the squares in an
// order that depends on how it selects percentiles, so that its Std differs in
// the last bits (relative 1e-12); above that they are equal to the last bit.
func Of(samples []float64) Dist {
	if len(samples) == 0 {
		return Dist{}
	}
	n := float64(len(samples))
	d := Dist{Min: samples[0], Max: samples[0]}
	sum := 0.0
	for _, x := range samples {
		sum += x
		if x < d.Min {
			d.Min = x
		}
		if x > d.Max {
			d.Max = x
		}
	}
	d.Mean = sum / n
	squares := 0.0
	for _, x := range samples {
		e := x - d.Mean
		squares += float64(e * e)
	}
	d.Std = math.Sqrt(squares / n)

	var values [5]float64
	from := 0 // everything before it is at most everything from it on
	for i, p := range percents {
		k := rank(len(samples), p)
		selectNth(samples[from:], k-from)
		values[i] = samples[k]
		from = k
	}
	d.setPercentiles(values)
	return d
}

// selectNth reorders s so that s[k] is the one sorting would put there,
// nothing before it is larger and nothing behind it smaller (quickselect).
func selectNth(s []float64, k int) {
	// Unlucky pivots: sort after more rounds than halving would take twice over.
	for rounds := 2 * bits.Len(uint(len(s))); len(s) > 32 && rounds > 0; rounds-- {
		pivot := median(s[0], s[len(s)/2], s[len(s)-1])
		i, j := 0, len(s)-1
		for i <= j {
			for s[i] < pivot {
				i++
			}
			for s[j] > pivot {
				j--
			}
			if i <= j {
				s[i], s[j] = s[j], s[i]
				i++
				j--
			}
		}
		// s[:j+1] <= pivot <= s[i:], and what lies between equals it.
		switch {
		case k <= j:
			s = s[:j+1]
		case k >= i:
			s, k = s[i:], k-i
		default:
			return
		}
	}
	slices.Sort(s)
}

// median is the middle one of three.
func median(a, b, c float64) float64 {
	if a > b {
		a, b = b, a
	}
	if b > c {
		b = c
	}
	if a > b {
		return a
	}
	return b
}
