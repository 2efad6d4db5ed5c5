package tracestat

import (
	"math"
	"math/bits"
)

// Lengths describes lengths in tokens. Percentiles are those of the reports:
// the value at place round((n-1)p), counted from 0, of the sorted ones.
type Lengths struct {
	Total                        int64
	Mean                         float64
	Min, P50, P75, P90, P95, P99 int64
	Max                          int64
}

// counts counts lengths: each by itself below 2^17, above that by their first
// 17 bits, so that a percentile is at most 2^-16 too low. The lists grow with
// the lengths that come, to 9 MB at most.
type counts struct {
	rows       [16][]int64 // [0]: lengths below 2^17, [e]: those of 17+e bits
	n, total   int64
	least, top int64
}

const exactBits = 17

// place is where a length is counted.
func place(v int64) (row int, at int64) {
	n := bits.Len64(uint64(v))
	if n <= exactBits {
		return 0, v
	}
	return n - exactBits, v >> (n - exactBits)
}

func (c *counts) add(v int64) {
	if c.n == 0 || v < c.least {
		c.least = v
	}
	c.top = max(c.top, v)
	c.n++
	c.total += v
	row, at := place(min(v, 1<<32-1))
	list := c.rows[row]
	if at >= int64(len(list)) {
		bigger := make([]int64, min(2*at+1024, 1<<exactBits))
		copy(bigger, list)
		list = bigger
		c.rows[row] = list
	}
	list[at]++
}

// at is the value at a place of the sorted lengths.
func (c *counts) at(place int64) int64 {
	for row, list := range c.rows {
		for v, n := range list {
			if place -= n; place < 0 {
				return int64(v) << row
			}
		}
	}
	return c.top
}

func (c *counts) lengths() Lengths {
	if c.n == 0 {
		return Lengths{}
	}
	p := func(share float64) int64 { return c.at(int64(math.Round(float64(c.n-1) * share))) }
	return Lengths{
		Total: c.total, Mean: float64(c.total) / float64(c.n), Min: c.least,
		P50: p(0.5), P75: p(0.75), P90: p(0.9), P95: p(0.95), P99: p(0.99), Max: c.top,
	}
}
