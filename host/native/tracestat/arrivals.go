package tracestat

import "math"

// Arrivals describes when sessions, or plays of agents, start.
type Arrivals struct {
	N          int64
	DurationMs float64 // from the first start to the last
	RatePerS   float64 // N-1 over the duration; 0 without one
	WindowMs   float64 // the windows that starts are counted in
	PeakPerS   float64 // most starts in a window, over its width
	Dispersion float64 // variance of the starts in a window over their mean: 1 at random, 0 even

	// Burstiness is the standard deviation of the gaps between starts over
	// their mean: 1 at random, 0 even. It is known if starts come in order.
	Burstiness float64
	Late       int64 // starts before one that came earlier; 0: they come in order
}

// arrivals counts starts as they come: in windows of a second, which are
// joined in pairs when there are more than maxWindows.
type arrivals struct {
	n                int64
	first, last, min float64 // ms; first: that came, last: latest
	late             int64
	gaps             Mean
	squares          float64
	width            float64 // ms
	low              int64   // index of windows[0]; a start's is floor((start-first)/width)
	windows          []int64
}

const maxWindows = 1 << 16

func (a *arrivals) add(ms float64) {
	if a.n == 0 {
		a.first, a.last, a.min, a.width = ms, ms, ms, 1000
		a.windows = append(a.windows, 0)
	} else if gap := ms - a.last; gap < 0 {
		a.late++
	} else {
		before := a.gaps.Mean
		a.gaps.add(gap)
		a.squares += (gap - before) * (gap - a.gaps.Mean)
		a.last = ms
	}
	a.n++
	a.min = min(a.min, ms)
	if math.IsInf(a.last-a.min, 0) {
		return // the trace is refused
	}
	at := math.Floor((ms - a.first) / a.width)
	for math.Max(at, float64(a.low)+float64(len(a.windows)-1))-math.Min(at, float64(a.low)) >= maxWindows {
		a.join()
		at = math.Floor((ms - a.first) / a.width)
	}
	i := int64(at)
	if i < a.low {
		a.windows = append(make([]int64, a.low-i), a.windows...)
		a.low = i
	}
	for i >= a.low+int64(len(a.windows)) {
		a.windows = append(a.windows, 0)
	}
	a.windows[i-a.low]++
}

// join makes windows twice as wide.
func (a *arrivals) join() {
	a.width *= 2
	low := a.low >> 1
	high := (a.low + int64(len(a.windows)) - 1) >> 1
	joined := make([]int64, high-low+1)
	for i, n := range a.windows {
		joined[(a.low+int64(i))>>1-low] += n
	}
	a.low, a.windows = low, joined
}

func (a *arrivals) finish() Arrivals {
	r := Arrivals{N: a.n, WindowMs: a.width, Late: a.late, DurationMs: a.last - a.min}
	if a.n == 0 {
		return r
	}
	if r.DurationMs > 0 {
		r.RatePerS = float64(a.n-1) / r.DurationMs * 1000
	}
	if a.late == 0 && a.gaps.Mean > 0 {
		r.Burstiness = math.Sqrt(a.squares/float64(a.gaps.N)) / a.gaps.Mean
	}
	mean, squares := float64(a.n)/float64(len(a.windows)), 0.0
	for _, n := range a.windows {
		r.PeakPerS = max(r.PeakPerS, float64(n)/a.width*1000)
		squares += (float64(n) - mean) * (float64(n) - mean)
	}
	r.Dispersion = squares / float64(len(a.windows)) / mean
	return r
}
