package ranks

// chunk is how many passes are computed ahead at most.
const chunk = 256

// Glide runs passes that are pure decode on every rank, one after the other, as
// long as each starts before untilMs (or at it, when whatever arrives would
// only wait: that is the caller's choice of untilMs) and gives no request its
// last token. endMs is the end of the pass in flight, which must have ended
// nothing. A pass whose duration has to be asked for is not begun. It returns
// the new end and the number of passes begun, at most most. Each pass's end is in
// the log.
func (g *Group) Glide(endMs, untilMs float64, most int) (float64, int) {
	passes := 0
	if len(g.ranks) == 1 {
		endMs, passes = g.ranks[0].Glide(endMs, untilMs, most)
		most = passes
	}
	for passes < most && endMs < untilMs {
		n := g.calm(min(most-passes, g.guess(endMs, untilMs)))
		if n > 0 {
			endMs, n = g.decode(endMs, untilMs, n)
		}
		if n == 0 {
			break
		}
		passes += n
	}
	if passes > 0 {
		g.ended, g.committed, g.effect = g.ended[:0], 0, true
	}
	return endMs, passes
}

// decode is Glide for at most most passes that every rank is calm for. The
// ranks share nothing but the clock, so each gives the durations of all those
// passes at once; the longest of each pass are then added up.
func (g *Group) decode(endMs, untilMs float64, most int) (float64, int) {
	ends := g.log.Extend(most)
	known := most
	for _, r := range g.ranks {
		known = r.Decode(ends[:known])
	}
	n := 0
	for ; n < known && endMs < untilMs; n++ {
		g.startMs = endMs
		endMs += ends[n]
		ends[n] = endMs
	}
	g.log.Shorten(most - n)
	if n == 0 {
		return endMs, 0
	}
	free := g.step/g.interval != (g.step+n)/g.interval
	for _, r := range g.ranks {
		r.Advance(n, free)
	}
	g.step += n
	return endMs, n
}

// calm is how many passes, at most most, are pure decode on every rank; 0 if
// no rank decodes.
func (g *Group) calm(most int) int {
	decodes := false
	for _, r := range g.ranks {
		if most = r.Calm(most); most == 0 {
			return 0
		}
		decodes = decodes || r.Running() > 0
	}
	if !decodes {
		return 0
	}
	return most
}

// guess is about how many passes begin before untilMs, if they take as long as
// the one that ends at endMs.
func (g *Group) guess(endMs, untilMs float64) int {
	step, span := endMs-g.startMs, untilMs-endMs
	if span <= step {
		return 1
	}
	if n := span / step; n < chunk-1 {
		return int(n) + 1
	}
	return chunk
}
