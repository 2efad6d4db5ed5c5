package timing

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/fmath"
)

// line is the straight line through (x1, y1) and (x2, y2) at x, in the order
// of operations of engine notes §8.5.
func line(x1, y1, x2, y2, x float64) float64 {
	return float64((y2-y1)/(x2-x1)*(x-x1)) + y1
}

// prefillOfProfile interpolates over the tokens that a pass computes. Outside
// the axis the outermost interval goes on as a straight line; the floor is 0
// (engine notes §8.5).
func prefillOfProfile(p *config.ProfileTable, tokens int) float64 {
	x := float64(tokens)
	i := interval(p.PrefillISL, x, 0)
	return atLeast(line(p.PrefillISL[i], p.PrefillTTFTMs[i], p.PrefillISL[i+1], p.PrefillTTFTMs[i+1], x), 0)
}

// decodeOfProfile interpolates over the tokens in the pool first, then over
// the mean context, whole tokens. The pool's size does not matter. Outside the
// axes the outermost intervals go on; the floor is 1 ms (engine notes §8.5).
func decodeOfProfile(p *config.ProfileTable, batch, sumLen int, h *hint) float64 {
	kv, ctx := p.DecodeActiveKVTokens, p.DecodeContextLength
	x, y := float64(sumLen), float64(sumLen/batch)
	i, j := interval(kv, x, h.row), interval(ctx, y, h.col)
	h.row, h.col = int32(i), int32(j)
	low := p.DecodeITLMs[i*len(ctx)+j:]
	high := low[len(ctx):]
	left := line(kv[i], low[0], kv[i+1], high[0], x)
	right := line(kv[i], low[1], kv[i+1], high[1], x)
	return atLeast(line(ctx[j], left, ctx[j+1], right, y), decodeFloor)
}

// leastPrefillOfProfile is a lower bound of prefillOfProfile over 1 and more
// tokens. Between two points of the axis nothing is below both.
func leastPrefillOfProfile(p *config.ProfileTable) float64 {
	n := len(p.PrefillISL)
	if p.PrefillTTFTMs[n-1] < p.PrefillTTFTMs[n-2] {
		return 0 // falls for ever
	}
	least := prefillOfProfile(p, 1)
	for i, x := range p.PrefillISL {
		if x > 1 {
			least = min(least, p.PrefillTTFTMs[i])
		}
	}
	return atLeast(least, 0)
}

// vanishes reports whether a duration of about raw ms rounds to nothing.
func vanishes(raw, ratio float64) bool {
	const roundingError = 1e-9 // of an interpolation, far more than it can be
	return math.IsNaN(raw) || fmath.ModeledMs(raw-float64(raw*roundingError), ratio) == 0
}
