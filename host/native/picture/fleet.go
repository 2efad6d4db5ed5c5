package picture

import (
	"fmt"

	"github.com/dryserve/dryserve/core/config"
)

// heatStep is how many bins a column of the map of KV usage joins.
func (c *Collector) heatStep(rows int) int {
	return joining(len(c.bins), max(mostCells/max(rows, 1), 50))
}

// use is what the blocks of a rank were used for in some bins.
type use struct {
	active, cached float64 // blocks times ms: held by running requests, cached
	most           int32   // active ones
	ms             float64 // that the run covers
}

// useOf is the use in so many bins from i on.
func (c *Collector) useOf(id, i, bins int) (u use) {
	k := &c.columns[id]
	for j := i; j < min(i+bins, len(c.bins)); j++ {
		u.ms += min(c.widthMs, c.endMs-float64(j)*c.widthMs)
		if j < len(k.active) {
			u.active, u.cached, u.most = u.active+k.active[j], u.cached+k.cached[j], max(u.most, k.most[j])
		}
	}
	return u
}

// usageTotals is the mean share of all blocks in use over the run, and the
// highest of any rank at any time.
func (c *Collector) usageTotals(cfg config.Replay) (mean, most float64) {
	blocks := float64(cfg.Engine.NumGPUBlocks)
	for i := range c.fleet {
		for _, a := range c.columns[i].active {
			mean += a
		}
		most = max(most, float64(c.fleet[i].activeMost)/blocks)
	}
	if c.endMs > 0 {
		mean /= c.endMs * blocks * float64(len(c.fleet))
	}
	return mean, most
}

// usage is KV usage of the fleet over time and, of several ranks, by rank.
func (c *Collector) usage(cfg config.Replay) []Figure {
	blocks := float64(cfg.Engine.NumGPUBlocks)
	all := blocks * float64(len(c.fleet))
	used := c.line("in use", func(i int, _ *bin) (sum float64) {
		for id := range c.fleet {
			sum += c.useOf(id, i*c.every, c.every).active
		}
		return c.mean(i, sum) / all
	})
	used.Area = true
	cached := c.line("in use or cached", func(i int, _ *bin) (sum float64) {
		for id := range c.fleet {
			u := c.useOf(id, i*c.every, c.every)
			sum += u.active + u.cached
		}
		return c.mean(i, sum) / all
	})
	peak := c.line("in use, peak of any "+rankNoun(cfg), func(i int, _ *bin) (most float64) {
		for id := range c.fleet {
			most = max(most, float64(c.useOf(id, i*c.every, c.every).most)/blocks)
		}
		return most
	})
	figures := []Figure{{
		Kind: "lines", ID: "kv-usage", Title: "KV cache usage", Whole: true, X: c.axis(c.every), Series: []Series{used, cached, peak},
		About: "Share of " + whole(int64(cfg.Engine.NumGPUBlocks)) + " blocks: held by running requests, and these with what is cached for reuse. The mean of all " + rankNoun(cfg) + "s.",
	}}
	if len(c.fleet) < 2 {
		return figures
	}
	step := c.heatStep(len(c.fleet))
	heat := Figure{
		Kind: "heat", ID: "kv-usage-by-worker", Title: "KV cache usage by " + rankNoun(cfg), X: c.axis(step),
		About: "Share of blocks held by running requests, mean of a bin of time.",
	}
	for id := range c.fleet {
		heat.Rows = append(heat.Rows, rankName(cfg, id))
		for i := 0; i < len(c.bins); i += step {
			u := c.useOf(id, i, step)
			heat.Cells = append(heat.Cells, cell(u.active/(u.ms*blocks)))
		}
	}
	return append(figures, heat)
}

func rankNoun(cfg config.Replay) string {
	if cfg.Engine.DPSize > 1 {
		return "rank"
	}
	return "worker"
}

func rankName(cfg config.Replay, id int) string {
	if n := cfg.Engine.DPSize; n > 1 {
		return fmt.Sprintf("worker %d, rank %d", id/n, id%n)
	}
	return fmt.Sprintf("worker %d", id)
}

// loads is the table of the ranks.
func (c *Collector) loads(cfg config.Replay) Figure {
	f := Figure{
		Kind: "table", ID: "load-by-worker", Title: "Load by " + rankNoun(cfg),
		About: "Busy is the time in passes of its own, as a share of the run. Prefix hits are of prompt tokens at first admission.",
		Columns: []Column{
			{Name: rankNoun(cfg), Text: true}, {Name: "requests", Bar: true}, {Name: "busy", Unit: "%", Bar: true}, {Name: "prompt tokens computed", Bar: true},
			{Name: "output tokens", Bar: true}, {Name: "prefix hits", Unit: "%", Bar: true}, {Name: "KV in use, mean", Unit: "%", Bar: true}, {Name: "KV in use, peak", Unit: "%", Bar: true},
			{Name: "running, peak"}, {Name: "waiting, peak"}, {Name: "preemptions"}, {Name: "passes"},
		},
	}
	blocks := float64(cfg.Engine.NumGPUBlocks)
	share := func(x, of float64) float64 {
		if of == 0 {
			return 0
		}
		return round5(100 * x / of)
	}
	for id := range c.fleet {
		s := &c.fleet[id]
		area := 0.0
		for _, a := range c.columns[id].active {
			area += a
		}
		f.Body = append(f.Body, []any{
			rankName(cfg, id), s.requests, share(s.busyMs, c.endMs), s.prefilled, s.tokens, share(float64(s.reused), float64(s.input)),
			share(area, c.endMs*blocks), share(float64(s.activeMost), blocks), s.runMost, s.waitMost, s.preempted, s.passes,
		})
	}
	return f
}
