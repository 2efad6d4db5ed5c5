package stats

import "math"

// recipLen is how many reciprocals are made at a time; a multiple of four.
const recipLen = 128

// A running mean needs m + fl(d/n), and waiting for the division makes the
// chain from one mean to the next twice as long. addQuick multiplies by bounds
// of the reciprocal instead: with low <= 1/n <= high as real numbers, rounding
// is monotone, so
//
//	fl(m + fl(d*low)) = fl(m + fl(d*high))
//
// proves that fl(m + fl(d/n)) is that same number, whatever the rounding
// errors. The bounds differ by 2^-49 of 1/n, hence the test fails for about
// one gap in n and only then a division decides. Four reciprocals share one
// division: it is the divider's throughput that would bound the loop next.
const (
	recipLow  = 1 - 0x1p-50 // eight units; a reciprocal below has under six
	recipWide = 1 + 0x1p-49
)

// fillRecip sets recip[i] in (1-2^-49, 1] times 1/(n+1+i).
func (g *Gaps) fillRecip(n float64) {
	g.recipFrom = n
	r := &g.recip
	for i := 0; i < recipLen; i += 4 {
		a, b, c, d := n+1, n+2, n+3, n+4
		n = d
		ab := float64(a * b)
		cd := float64(c * d)
		all := recipLow / float64(ab*cd)
		ab *= all // now 1/(c*d)
		cd *= all
		r[i] = float64(cd * b)
		r[i+1] = float64(cd * a)
		r[i+2] = float64(ab * d)
		r[i+3] = float64(ab * c)
	}
}

// addQuick accounts gaps, as long as none has been zero, until one needs more
// than counting and multiplying. It returns how many it took.
func (g *Gaps) addQuick(times []float64) int {
	at := int(g.gap.n - g.recipFrom)
	if at >= recipLen {
		g.fillRecip(g.gap.n)
		at = 0
	}
	next := times[1:]
	recip := g.recip[at:min(at+len(next), recipLen)]
	next = next[:len(recip)]
	times = times[:len(recip)]

	gapMean, gapSquares := g.gap.mean, g.gap.squares
	rateMean, rateSquares := g.rate.mean, g.rate.squares
	least, span := g.min, g.max-g.min
	i := 0
	for ; i < len(recip); i++ {
		x := next[i] - times[i]
		b := math.Float64bits(x)
		if b-least > span {
			break
		}
		c := &g.pages[b>>52][b>>cellShift&cellMask]
		if c.low == 0 {
			break
		}
		y := 1000 / x
		low := recip[i]
		high := float64(low * recipWide)
		d := x - gapMean
		e := y - rateMean
		m := gapMean + float64(d*low)
		q := rateMean + float64(e*low)
		if m != gapMean+float64(d*high) || q != rateMean+float64(e*high) {
			break
		}
		c.counts[c.part(b)]++
		gapSquares += float64(d * (x - m))
		rateSquares += float64(e * (y - q))
		gapMean, rateMean = m, q
	}
	n := g.gap.n + float64(i)
	g.gap = moments{n, gapMean, gapSquares}
	g.rate = moments{n, rateMean, rateSquares}
	return i
}
