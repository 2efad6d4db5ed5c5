package picture

import (
	"fmt"
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
)

// axis is time in points of so many bins.
func (c *Collector) axis(every int) *Axis {
	return &Axis{StepMs: c.widthMs * float64(every), N: (len(c.bins) + every - 1) / every, EndMs: c.endMs}
}

// line is a value of every point.
func (c *Collector) line(name string, f func(i int, p *bin) float64) Series {
	s := Series{Name: name, Values: make(Numbers, len(c.points))}
	for i := range c.points {
		s.Values[i] = f(i, &c.points[i])
	}
	return s
}

// pointMs is the time of a point.
func (c *Collector) pointMs() float64 { return c.widthMs * float64(c.every) }

// mean is what an area over a point is on average, as far as the run covers it;
// NaN if the run ends as the point begins.
func (c *Collector) mean(i int, area float64) float64 {
	if ms := min(c.pointMs(), c.endMs-float64(i)*c.pointMs()); ms > 0 {
		return area / ms
	}
	return math.NaN()
}

// rate is a count per second.
func (c *Collector) rate(name string, f func(b *bin) int64) Series {
	return c.line(name, func(_ int, b *bin) float64 { return float64(f(b)) / c.pointMs() * 1000 })
}

// fractions of the curves of distributions.
func fractions() []float64 {
	var f []float64
	for i := range 199 {
		f = append(f, float64(i)/200)
	}
	for i := range 11 {
		f = append(f, float64(990+i)/1000)
	}
	return f
}

func (c *Collector) cdf(sla config.SLA) Figure {
	at := fractions()
	f := Figure{
		Kind: "cdf", ID: "latency-cdf", Title: "Latency distributions", Unit: "ms", At: at,
		About: "Share of tokens or requests with at most this latency: time to first token (TTFT), inter-token latency (ITL) of every token, request latency (E2E).",
		Series: []Series{
			{Name: "TTFT", Values: c.ttft.quantiles(at)}, {Name: "ITL", Values: c.itl.quantiles(at)}, {Name: "E2E", Values: c.e2e.quantiles(at)},
		},
	}
	for _, m := range []Mark{{"TTFT goal", sla.TTFTMs}, {"ITL goal", sla.ITLMs}, {"E2E goal", sla.E2EMs}} {
		f.mark(m)
	}
	return f
}

// mark adds a limit that is set.
func (f *Figure) mark(m Mark) {
	if m.Value >= 0 {
		f.Marks = append(f.Marks, m)
	}
}

func (c *Collector) latencies(sla config.SLA) []Figure {
	ttft := Figure{
		Kind: "lines", ID: "ttft-over-time", Title: "Time to first token over time", Unit: "ms",
		About: "By the time a request arrived: half, nine in ten, and all of them had their first token within this time.",
	}
	ttft.mark(Mark{"goal", sla.TTFTMs})
	itl := Figure{
		Kind: "lines", ID: "itl-over-time", Title: "Inter-token latency over time", Unit: "ms",
		About: "By the time a token was given out: its distance from the one before it. A goal bounds the mean of a request, not each token.",
	}
	itl.mark(Mark{"goal", sla.ITLMs})
	return []Figure{
		c.quantilesOverTime(ttft, []string{"p50", "p90", "max"}, []float64{0.5, 0.9, 1}, func(b *bin) *sketch { return &b.ttft }),
		c.quantilesOverTime(itl, []string{"p50", "p90", "p99"}, []float64{0.5, 0.9, 0.99}, func(b *bin) *sketch { return &b.itl }),
	}
}

func (c *Collector) quantilesOverTime(f Figure, names []string, at []float64, of func(*bin) *sketch) Figure {
	f.X = c.axis(c.every)
	for _, name := range names {
		f.Series = append(f.Series, Series{Name: name})
	}
	for i := range c.points {
		for k, v := range of(&c.points[i]).quantiles(at) {
			f.Series[k].Values = append(f.Series[k].Values, v)
		}
	}
	return f
}

func (c *Collector) throughput() []Figure {
	output := c.rate("output", func(b *bin) int64 { return b.tokens })
	output.Area = true
	prefill := c.rate("prompt tokens computed", func(b *bin) int64 { return b.prefilled })
	prefill.Area = true
	requests := []Series{
		c.rate("arrived", func(b *bin) int64 { return b.arrived }), c.rate("completed", func(b *bin) int64 { return b.completed }),
	}
	if c.lost > 0 {
		requests = append(requests, c.rate("rejected or failed", func(b *bin) int64 { return b.lost }))
	}
	return []Figure{
		{
			Kind: "lines", ID: "output-throughput", Title: "Output tokens per second", Unit: "tokens/s", X: c.axis(c.every),
			About: "Tokens given out by all workers.", Series: []Series{output},
		},
		{
			Kind: "lines", ID: "prefill-throughput", Title: "Prompt tokens per second", Unit: "tokens/s", X: c.axis(c.every),
			About: "Tokens that were computed, counted when their pass ended; those found in the cache are not among them.", Series: []Series{prefill},
		},
		{
			Kind: "lines", ID: "request-rate", Title: "Requests per second", Unit: "/s", X: c.axis(c.every),
			About:  "Where arrivals stay above completions, the queue grows.",
			Series: requests,
		},
	}
}

func (c *Collector) queue() Figure {
	f := Figure{
		Kind: "lines", ID: "queue-depth", Title: "Requests in the system", Unit: "requests", X: c.axis(c.every),
		About: "Waiting to be admitted (new or preempted) and running, on all workers: the mean of a point, and its peak of those who wait.",
		Series: []Series{
			c.line("running", func(i int, b *bin) float64 { return c.mean(i, b.runArea) }),
			c.line("waiting", func(i int, b *bin) float64 { return c.mean(i, b.waitArea) }),
			c.line("waiting, peak", func(_ int, b *bin) float64 { return float64(b.waitMost) }),
		},
	}
	if len(c.all.Pools) > 1 {
		f.Series = append(f.Series, c.line("handed over", func(i int, b *bin) float64 { return c.mean(i, b.handArea) }))
		f.About += " Those handed over are held where their prompt was computed, or under way."
	} else if c.preempted > 0 {
		f.Series = append(f.Series, c.line("preemptions", func(_ int, b *bin) float64 { return float64(b.preempted) }))
		f.About += " Preemptions are counted by point."
	}
	return f
}

func (c *Collector) hits(s *replay.Summary, cfg config.Replay) Figure {
	share := func(part, all int64) float64 {
		if all == 0 {
			return math.NaN()
		}
		return float64(part) / float64(all)
	}
	var reused, input int64
	f := Figure{
		Kind: "lines", ID: "cache-hits", Title: "Prefix hits over time", Whole: true, X: c.axis(c.every),
		About: fmt.Sprintf("Share of prompt tokens found in the cache when a request was first admitted. In total %s of the prompt tokens of completed requests; %s counting the best of every admission.",
			percent(s.FirstAdmissionReused), percent(s.PrefixReusedRatio)),
		Series: []Series{
			c.line("at this time", func(_ int, b *bin) float64 { return share(b.reused, b.input) }),
			c.line("so far", func(_ int, b *bin) float64 {
				reused, input = reused+b.reused, input+b.input
				return share(reused, input)
			}),
		},
	}
	if cfg.Engine.HostOffload.Blocks > 0 {
		f.Series = append(f.Series, c.line("from host memory", func(_ int, b *bin) float64 { return share(b.host, b.input) }))
	}
	return f
}
