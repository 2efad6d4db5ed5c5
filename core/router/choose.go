package router

import (
	"math"

	"github.com/dryserve/dryserve/core/fmath"
	"github.com/dryserve/dryserve/core/rng"
)

// choose returns the index of the candidate that a request goes to, given the
// costs of all; -1 if one is not finite. At temperature 0 that is the cheapest,
// by lot among equals; above it the cheaper is the likelier. Numbers are drawn
// only where something is decided by lot (router notes §4.3).
func choose(costs []float64, temperature float64, random *rng.Wyrand, scratch *[]float64) int {
	for _, c := range costs {
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return -1
		}
	}
	if temperature > 0 {
		return chooseSoftly(costs, temperature, random, scratch)
	}
	best, ties := 0, uint64(1)
	for i, c := range costs[1:] {
		switch {
		case c < costs[best]:
			best, ties = i+1, 1
		case c == costs[best]:
			if ties++; random.Below(ties) == 0 {
				best = i + 1
			}
		}
	}
	return best
}

// chooseSoftly draws by the softmax of the costs, scaled to the span between
// the least and the greatest of them.
func chooseSoftly(costs []float64, temperature float64, random *rng.Wyrand, scratch *[]float64) int {
	chances := (*scratch)[:0]
	least, most := costs[0], costs[0]
	for _, c := range costs {
		least, most = min(least, c), max(most, c)
	}
	unit := 1.0
	if math.IsInf(most-least, 0) {
		unit = max(math.Abs(least), math.Abs(most))
		least, most = least/unit, most/unit
	}
	sum := 0.0
	if least == most {
		for range costs {
			chances = append(chances, 1/float64(len(costs)))
		}
		sum = 1
	} else {
		scale := -1 / float64((most-least)*temperature)
		for _, c := range costs {
			p := fmath.Exp(float64(c/unit*scale) - float64(least*scale))
			chances = append(chances, p)
			sum += p
		}
	}
	*scratch = chances
	draw, reached := random.Float64(), 0.0
	for i, p := range chances {
		if reached += p / sum; draw <= reached {
			return i
		}
	}
	return len(costs) - 1
}
