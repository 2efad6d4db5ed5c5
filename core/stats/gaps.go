package stats

import "math"

// Gaps accumulates inter-token latencies (gaps, in ms) and their per-user
// throughput (rates: 1000/gap tokens/s, over the gaps above zero). The zero
// value is empty and ready. Means and standard deviations run (Welford) in the
// order of Add; everything else is independent of the order.
type Gaps struct {
	gap, rate moments

	// Counts: the octave of a gap is named by the upper 12 bits of its
	// float64; octaves not met yet share blank, whose cells are never used.
	scale    sketchScale
	pages    [1 << 12]*page
	blank    *page
	min, max uint64 // bits of the smallest and largest gap above zero
	zeros    uint64 // gaps of zero

	// recip[i] is just below 1/(recipFrom+1+i), see fillRecip.
	recip     [recipLen]float64
	recipFrom float64
}

// moments is Welford's running mean and sum of squared deviations.
type moments struct{ n, mean, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += float64(d * (x - m.mean))
}

// Add accounts the gaps between consecutive token times (ms) of one request.
// Where times fall, and where they rise by less than 2^-1000, the gap is 0.
// Times must be finite.
func (g *Gaps) Add(times []float64) { g.add(times, speculate) }

func (g *Gaps) add(times []float64, quick bool) {
	if g.blank == nil {
		g.start()
	}
	for len(times) > 1 {
		done := 0
		if quick && g.zeros == 0 {
			done = g.addQuick(times)
		} else {
			done = g.addPlain(times)
		}
		times = times[done:]
		if len(times) > 1 {
			g.addOne(times[1] - times[0])
			times = times[1:]
		}
	}
}

// start turns the zero value into an empty accumulator.
func (g *Gaps) start() {
	g.scale = newSketchScale()
	g.blank = new(page)
	for i := range g.pages {
		g.pages[i] = g.blank
	}
	g.Reset()
}

// Reset empties g but keeps its memory.
func (g *Gaps) Reset() {
	for _, p := range &g.pages {
		if p == g.blank {
			continue
		}
		for i := range p {
			p[i].counts = [3]uint64{}
		}
	}
	g.min, g.max, g.zeros = math.MaxUint64, 0, 0
	g.gap, g.rate = moments{}, moments{}
	g.recipFrom = -recipLen
}

// addOne accounts any gap.
func (g *Gaps) addOne(x float64) {
	b := math.Float64bits(x)
	if b < leastGap || b >= endGap {
		g.zeros++
		g.gap.add(0)
		return
	}
	g.min, g.max = min(g.min, b), max(g.max, b)
	p := &g.pages[b>>52]
	if *p == g.blank {
		*p = new(page)
	}
	c := &(*p)[b>>cellShift&cellMask]
	if c.low == 0 {
		g.scale.open(c, b>>cellShift)
	}
	c.counts[c.part(b)]++
	g.gap.add(x)
	g.rate.add(1000 / x)
}

// addPlain accounts gaps until one needs more than counting: a new minimum, a
// new maximum or a cell not in use. It returns how many it took. The two
// recurrences run side by side and share the latency of their divisions, in
// whose shadow the counting is free.
func (g *Gaps) addPlain(times []float64) int {
	gap, rate, zeros := g.gap, g.rate, g.zeros
	least, span := g.min, g.max-g.min
	next := times[1:]
	times = times[:len(next)]
	i := 0
	for ; i < len(next); i++ {
		x := next[i] - times[i]
		b := math.Float64bits(x)
		if b == 0 {
			zeros++
			gap.n++
			d := 0 - gap.mean
			gap.mean += d / gap.n
			gap.squares += float64(d * (0 - gap.mean))
			continue
		}
		if b-least > span {
			break
		}
		c := &g.pages[b>>52][b>>cellShift&cellMask]
		if c.low == 0 {
			break
		}
		c.counts[c.part(b)]++
		y := 1000 / x
		gap.n++
		rate.n++
		d := x - gap.mean
		e := y - rate.mean
		gap.mean += d / gap.n
		rate.mean += e / rate.n
		gap.squares += float64(d * (x - gap.mean))
		rate.squares += float64(e * (y - rate.mean))
	}
	g.gap, g.rate, g.zeros = gap, rate, zeros
	return i
}

// ITL summarises the gaps in ms.
func (g *Gaps) ITL() Dist {
	d := g.gap.dist()
	if g.gap.n == 0 {
		return d
	}
	if g.zeros == 0 {
		d.Min = math.Float64frombits(g.min)
	}
	d.Max = math.Float64frombits(g.max)
	if g.gap.n == 1 {
		d.setPercentiles([5]float64{d.Max, d.Max, d.Max, d.Max, d.Max})
		return d
	}
	d.setPercentiles(g.gapPercentiles())
	return d
}

// PerUser summarises 1000/gap, in tokens/s, over the gaps above zero.
func (g *Gaps) PerUser() Dist {
	d := g.rate.dist()
	if g.rate.n == 0 {
		return d
	}
	// The rate never grows with the gap.
	d.Min = 1000 / math.Float64frombits(g.max)
	d.Max = 1000 / math.Float64frombits(g.min)
	if g.rate.n == 1 {
		d.setPercentiles([5]float64{d.Max, d.Max, d.Max, d.Max, d.Max})
		return d
	}
	d.setPercentiles(g.ratePercentiles())
	return d
}

// dist is the part of a Dist that the moments give.
func (m *moments) dist() Dist {
	if m.n == 0 {
		return Dist{}
	}
	return Dist{Mean: m.mean, Std: math.Sqrt(m.squares / m.n)}
}

// gapPercentiles walks the counts by rising gap, which is by rising key.
func (g *Gaps) gapPercentiles() (v [5]float64) {
	n, seen := int(g.gap.n), g.zeros
	next := 0 // the percentile looked for
	for next < len(v) && uint64(rank(n, percents[next])) < seen {
		next++ // the value is 0
	}
	for _, p := range &g.pages {
		if p == g.blank {
			continue
		}
		for i := range p {
			for j, k := range p[i].counts {
				seen += k
				for next < len(v) && uint64(rank(n, percents[next])) < seen {
					v[next] = g.scale.value(int64(p[i].gapKeys[j]))
					next++
				}
			}
		}
	}
	return v
}

// ratePercentiles walks the counts by falling gap, which is by rising key of
// the rate.
func (g *Gaps) ratePercentiles() (v [5]float64) {
	n, seen, next := int(g.rate.n), uint64(0), 0
	for i := len(g.pages) - 1; i >= 0; i-- {
		if g.pages[i] == g.blank {
			continue
		}
		for j := cellMask; j >= 0; j-- {
			c := &g.pages[i][j]
			for k := len(c.counts) - 1; k >= 0; k-- {
				seen += c.counts[k]
				for next < len(v) && uint64(rank(n, percents[next])) < seen {
					v[next] = g.scale.value(int64(c.rateKeys[k]))
					next++
				}
			}
		}
	}
	return v
}
