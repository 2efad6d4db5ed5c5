package stats

import (
	"math"

	"github.com/dryserve/dryserve/core/fmath"
)

// The sketch is a DDSketch with relative accuracy 0.001: a value v > 0 counts
// under the key ceil(ln(v) / ln(gamma)), and a percentile is the middle of its
// key's interval. Two sketches are kept, of gaps and of rates (1000/gap), and
// counted together: the keys are found by table from the upper bits of a gap.
// The reference keeps 32768 keys; it takes a span of 10^28 to exceed them, and
// then this sketch stays accurate where the reference's would collapse.
const (
	sketchAlpha = 0.001

	// cellBits mantissa bits name a cell. An interval of the sketch is 0.2 %
	// wide and a cell at most 2^-9, so a cell meets at most one limit between
	// keys of the gap and at most one between keys of the rate.
	cellBits  = 9
	cellShift = 52 - cellBits
	cellMask  = 1<<cellBits - 1

	// leastGap is the smallest gap told apart from 0, in bits: 2^-1000 ms. No
	// clock of whole nanoseconds makes a smaller one.
	leastGap = (1023 - 1000) << 52
	// endGap is one past the largest float64, in bits.
	endGap = 2047 << 52
)

// cell counts the gaps of one 512th of an octave, split by two limits into
// three parts. It fills a cache line.
type cell struct {
	low, high uint64 // bits of the last gap of the first and the second part; low 0: not in use
	counts    [3]uint64
	gapKeys   [3]int32
	rateKeys  [3]int32
}

// part is the index of the part that a gap, given as bits, belongs to. All
// three numbers are below 2^63.
func (c *cell) part(gap uint64) uint64 { return (c.low-gap)>>63 + (c.high-gap)>>63 }

// page holds the cells of one octave.
type page [1 << cellBits]cell

// sketchScale holds the constants of the keys. They are float64 results, not
// exact ones: the last bits matter.
type sketchScale struct {
	perLn  float64 // 1/ln(gamma)
	middle float64 // 2/(1+gamma)
}

func newSketchScale() sketchScale {
	// Variables, so that the compiler does not compute exactly.
	alpha, one := float64(sketchAlpha), 1.0
	gamma := (one + alpha) / (one - alpha)
	return sketchScale{
		perLn:  1 / fmath.Log1p(2*alpha/(one-alpha)),
		middle: 2 / (one + gamma),
	}
}

// key is the sketch key of v > 0. It never falls as v grows.
func (s sketchScale) key(v float64) int64 { return fmath.Int64(math.Ceil(fmath.Log(v) * s.perLn)) }

// value is the representative of a key.
func (s sketchScale) value(key int64) float64 {
	return libmExp(key, fmath.Exp(float64(key)*(1/s.perLn))) * s.middle
}

// libmExp is what the C library's exp gives for a key whose correctly rounded
// value is e. The reference calls that exp, which is one unit in the last place
// off for these keys of all those from -20000 to 20000 (values from 4e-18 to
// 2e17); measured with glibc 2.36 on amd64.
func libmExp(key int64, e float64) float64 {
	bits := math.Float64bits(e)
	switch key {
	case -19453, -17747, -16667, -16275, -15029, -3626, -2892, -2094, 12922:
		bits++
	case -17436, -9960, -4244, -2828, 608, 1916, 4139, 6378, 8076, 11117, 11424, 13071, 14585, 14996, 15345:
		bits--
	}
	return math.Float64frombits(bits)
}

// last is the largest v whose key is at most k.
func (s sketchScale) last(k int64) float64 {
	// The largest logarithm that leads to such a key, and half the way to the
	// next float64: the border lies at e^(log+half).
	limit := float64(k)
	log := limit / s.perLn
	for float64(log*s.perLn) > limit {
		log = math.Nextafter(log, math.Inf(-1))
	}
	next := math.Nextafter(log, math.Inf(1))
	for float64(next*s.perLn) <= limit {
		log, next = next, math.Nextafter(next, math.Inf(1))
	}
	if math.Abs(log) < 600 {
		hi, lo := fmath.ExpSum(log)
		lo += float64(hi * ((next - log) / 2))
		v := hi + lo
		rest := lo - (v - hi)
		if math.Abs(rest) > float64(v*0x1p-62) {
			if rest < 0 {
				v = math.Nextafter(v, 0)
			}
			return v
		}
	}
	return s.search(fmath.Exp(log), k)
}

// search is last from a close start.
func (s sketchScale) search(v float64, k int64) float64 {
	for s.key(v) > k {
		v = math.Nextafter(v, 0)
	}
	for {
		next := math.Nextafter(v, math.Inf(1))
		if s.key(next) > k {
			return v
		}
		v = next
	}
}

// open prepares the cell of the gaps whose upper bits are index.
func (s sketchScale) open(c *cell, index uint64) {
	from := math.Float64frombits(index << cellShift)
	end := (index + 1) << cellShift

	gapKey := s.key(from)
	gapLimit := min(math.Float64bits(s.last(gapKey)), end)
	// Rates fall as gaps grow: find the last gap whose rate is still above the
	// last rate of the next lower key.
	rateKey := s.key(1000 / from)
	below := s.last(rateKey - 1)
	gap := 1000 / below
	for 1000/gap <= below {
		gap = math.Nextafter(gap, 0)
	}
	for next := gap; 1000/next > below; next = math.Nextafter(next, math.Inf(1)) {
		gap = next
	}
	rateLimit := min(math.Float64bits(gap), end)

	// Between the limits one of the keys has changed.
	gapAfter, rateAfter := gapKey+1, rateKey
	c.low, c.high = gapLimit, rateLimit
	if rateLimit < gapLimit {
		gapAfter, rateAfter = gapKey, rateKey-1
		c.low, c.high = rateLimit, gapLimit
	}
	c.gapKeys = [3]int32{int32(gapKey), int32(gapAfter), int32(gapKey + 1)}
	c.rateKeys = [3]int32{int32(rateKey), int32(rateAfter), int32(rateKey - 1)}
}
