package picture

import "github.com/dryserve/dryserve/host/native/fleet"

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
func (c *Collector) usageTotals() (mean, most float64) {
	all := 0.0
	for i := range c.ranks {
		blocks := float64(c.all.Pool(i).Engine.NumGPUBlocks)
		all += blocks
		for _, a := range c.columns[i].active {
			mean += a
		}
		most = max(most, float64(c.ranks[i].activeMost)/blocks)
	}
	if c.endMs > 0 {
		mean /= c.endMs * all
	}
	return mean, most
}

// usage is KV usage of each pool over time and, of several ranks, by rank.
func (c *Collector) usage() (figures []Figure) {
	for i := range c.all.Pools {
		figures = append(figures, c.poolUsage(&c.all.Pools[i]))
	}
	if c.all.Ranks < 2 {
		return figures
	}
	step := c.heatStep(c.all.Ranks)
	heat := Figure{
		Kind: "heat", ID: "kv-usage-by-worker", Title: "KV cache usage by " + c.all.Noun(), X: c.axis(step),
		About: "Share of blocks held by requests, mean of a bin of time.",
	}
	for id := range c.ranks {
		heat.Rows = append(heat.Rows, c.all.Name(id))
		for i := 0; i < len(c.bins); i += step {
			u := c.useOf(id, i, step)
			heat.Cells = append(heat.Cells, cell(u.active/(u.ms*float64(c.all.Pool(id).Engine.NumGPUBlocks))))
		}
	}
	return append(figures, heat)
}

// poolUsage is KV usage of a pool over time.
func (c *Collector) poolUsage(p *fleet.Pool) Figure {
	n := p.Workers * p.Engine.DPSize
	blocks := float64(p.Engine.NumGPUBlocks)
	all := blocks * float64(n)
	sum := func(f func(u use) float64) func(int, *bin) float64 {
		return func(i int, _ *bin) (sum float64) {
			for id := p.First; id < p.First+n; id++ {
				sum += f(c.useOf(id, i*c.every, c.every))
			}
			return c.mean(i, sum) / all
		}
	}
	used := c.line("in use", sum(func(u use) float64 { return u.active }))
	used.Area = true
	cached := c.line("in use or cached", sum(func(u use) float64 { return u.active + u.cached }))
	peak := c.line("in use, peak of any "+c.all.Noun(), func(i int, _ *bin) (most float64) {
		for id := p.First; id < p.First+n; id++ {
			most = max(most, float64(c.useOf(id, i*c.every, c.every).most)/blocks)
		}
		return most
	})
	f := Figure{
		Kind: "lines", ID: "kv-usage", Title: "KV cache usage", Whole: true, X: c.axis(c.every), Series: []Series{used, cached, peak},
		About: "Share of " + whole(int64(p.Engine.NumGPUBlocks)) + " blocks: held by requests, and these with what is cached for reuse. The mean of all " + c.all.Noun() + "s.",
	}
	if name := p.Name(); name != "" {
		f.ID, f.Title = "kv-usage-"+name, "KV cache usage, "+name+" workers"
	}
	return f
}

// loads is the table of the ranks.
func (c *Collector) loads() Figure {
	f := Figure{
		Kind: "table", ID: "load-by-worker", Title: "Load by " + c.all.Noun(),
		About: "Busy is the time in passes of its own, as a share of the run. Prefix hits are of prompt tokens at first admission.",
		Columns: []Column{
			{Name: c.all.Noun(), Text: true}, {Name: "requests", Bar: true}, {Name: "busy", Unit: "%", Bar: true}, {Name: "prompt tokens computed", Bar: true},
			{Name: "output tokens", Bar: true}, {Name: "prefix hits", Unit: "%", Bar: true}, {Name: "KV in use, mean", Unit: "%", Bar: true}, {Name: "KV in use, peak", Unit: "%", Bar: true},
			{Name: "running, peak"}, {Name: "waiting, peak"}, {Name: "preemptions"}, {Name: "passes"},
		},
	}
	if len(c.all.Pools) > 1 {
		f.About += " Requests of a prefill worker are prompts it has computed."
	}
	share := func(x, of float64) float64 {
		if of == 0 {
			return 0
		}
		return round5(100 * x / of)
	}
	for id := range c.ranks {
		s := &c.ranks[id]
		blocks := float64(c.all.Pool(id).Engine.NumGPUBlocks)
		area := 0.0
		for _, a := range c.columns[id].active {
			area += a
		}
		f.Body = append(f.Body, []any{
			c.all.Name(id), s.requests, share(s.busyMs, c.endMs), s.prefilled, s.tokens, share(float64(s.reused), float64(s.input)),
			share(area, c.endMs*blocks), share(float64(s.activeMost), blocks), s.runMost, s.waitMost, s.preempted, s.passes,
		})
	}
	return f
}
