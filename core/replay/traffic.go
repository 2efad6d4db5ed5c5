package replay

// traffic adds up what happens to requests in an interval of time.
type traffic struct {
	arrived, completed int64
	input, output      int64 // tokens of the completed ones
	ttftMs, itlMs      float64
	ttfts, itls        int64
	hits               float64
	routed             int64
	forwards, accepted int64
	pools              [2]PoolInterval // of prompts, of the others
}

// Traffic is what happened to requests in an interval (replay notes §7, §9.3).
type Traffic struct {
	DurationS          float64
	Arrived, Completed int64
	MeanISL, MeanOSL   float64 // tokens, of the completed ones
	MeanTTFTMs         float64 // of those of them with one above 0, which TTFTs counts
	MeanITLMs          float64 // mean gap of those of them with several tokens, which ITLs counts
	TTFTs, ITLs        int64

	// Of requests that a KV router has placed, which Routed counts: the share of
	// prompt blocks that it believed to be where they go.
	MeanHitRate float64
	Routed      int64

	MeanAccepted float64 // tokens by decode step, if Forwards, which counts these, is above 0
	Forwards     int64
}

// PoolInterval is what caches and schedulers of a pool did in an interval.
// SGLang alone counts tokens, and does not count preemptions.
type PoolInterval struct {
	CacheHitTokens, CacheTotalTokens, Preemptions int64
}

func (t *traffic) averages(ms float64) Traffic {
	a := Traffic{
		DurationS: ms / 1000, Arrived: t.arrived, Completed: t.completed,
		TTFTs: t.ttfts, ITLs: t.itls, Routed: t.routed, Forwards: t.forwards,
	}
	mean := func(sum float64, n int64) float64 {
		if n == 0 {
			return 0
		}
		return sum / float64(n)
	}
	a.MeanISL, a.MeanOSL = mean(float64(t.input), t.completed), mean(float64(t.output), t.completed)
	a.MeanTTFTMs, a.MeanITLMs = mean(t.ttftMs, t.ttfts), mean(t.itlMs, t.itls)
	a.MeanHitRate, a.MeanAccepted = mean(t.hits, t.routed), mean(float64(t.accepted), t.forwards)
	return a
}

// end adds a request that has come to its end: of its prompt and output the
// tokens, and the times of the latter.
func (t *traffic) end(input int32, times []float64, arrivalMs float64) {
	n := len(times)
	t.completed++
	t.input += int64(input)
	t.output += int64(n)
	if n == 0 {
		return
	}
	if ttft := times[0] - arrivalMs; ttft > 0 {
		t.ttftMs += ttft
		t.ttfts++
	}
	if n > 1 {
		t.itlMs += (times[n-1] - times[0]) / float64(n-1)
		t.itls++
	}
}
