package picture

import (
	"maps"
	"math"
	"slices"
)

// sketchBits mantissa bits name a class of values: classes are 0.2 % wide at
// most, and their middles at most 0.1 % from any value in them.
const sketchBits = 9

// sketch counts values of 0 and more by class. The zero value is empty.
type sketch struct {
	n      int64
	counts map[uint32]int64
}

func (s *sketch) add(x float64, n int64) {
	if s.counts == nil {
		s.counts = map[uint32]int64{}
	}
	s.counts[uint32(math.Float64bits(max(x, 0))>>(52-sketchBits))] += n
	s.n += n
}

func (s *sketch) merge(o *sketch) {
	if s.counts == nil {
		*s = sketch{n: o.n, counts: maps.Clone(o.counts)}
		return
	}
	for k, n := range o.counts {
		s.counts[k] += n
	}
	s.n += o.n
}

// middle is the value that stands for a class.
func middle(class uint32) float64 {
	if class == 0 {
		return 0
	}
	return math.Float64frombits(uint64(class)<<(52-sketchBits) | 1<<(51-sketchBits))
}

// quantiles gives the values at ascending fractions by nearest rank; NaN if
// there are none.
func (s *sketch) quantiles(fractions []float64) []float64 {
	out := make([]float64, len(fractions))
	classes := slices.Sorted(maps.Keys(s.counts))
	seen, at := int64(0), 0
	for i, f := range fractions {
		if s.n == 0 {
			out[i] = math.NaN()
			continue
		}
		rank := max(int64(math.Ceil(f*float64(s.n))), 1)
		for ; at < len(classes) && seen+s.counts[classes[at]] < rank; at++ {
			seen += s.counts[classes[at]]
		}
		out[i] = middle(classes[min(at, len(classes)-1)])
	}
	return out
}
