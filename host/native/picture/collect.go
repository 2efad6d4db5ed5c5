package picture

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/fleet"
)

// maxBins bounds the bins of time. Their width begins at firstWidthMs and is
// made 2 and 5 times wider in turn (so it is 1, 2, 10, 20, ... ms) until the run
// fits.
const (
	maxBins      = 500
	maxPoints    = 160 // of a line over time, which joins bins
	firstWidthMs = 1.0
)

// Collector reduces the recording of a run, chunk by chunk, to totals and bins
// of time. Its memory does not grow with the length of the run but for a few
// bytes a request.
type Collector struct {
	load *workload.Workload
	all  fleet.Fleet

	widthMs float64
	widened int // times
	bins    []bin
	endMs   float64 // the last moment seen

	nowMs            float64 // up to which waiting and running are counted
	waiting, running int32
	handed           int32 // between the pools
	turns            []turnState
	ttft, itl, e2e   sketch
	waitMost         int32
	preempted, lost  int64
	ranks            []scheduler // by fleet.Fleet.Rank
	columns          []column    // KV usage of each

	points []bin // once finished: bins joined for lines
	every  int   // of bins in a point
}

// turnState is what is kept of a request under way.
type turnState struct {
	arriveMs float64
	admitted bool
	at       whereabouts
}

// whereabouts say as what a request is counted.
type whereabouts uint8

const (
	waits  whereabouts = iota
	runs               // on a rank
	handed             // its prompt is held or under way to the other pool
)

// bin is what happened in a stretch of time.
type bin struct {
	arrived, completed, lost int64 // requests; lost ones were rejected or failed
	preempted                int64
	tokens, prefilled        int64   // output; prompt tokens computed
	input, reused, host      int64   // prompt tokens of first admissions; found cached; of those in host memory
	waitArea, runArea        float64 // requests times ms
	handArea                 float64
	waitMost                 int32
	ttft, itl                sketch // TTFT by arrival, gaps by their end
}

// scheduler are the totals of a rank.
type scheduler struct {
	passes, requests, tokens, prefilled, preempted int64
	busyMs                                         float64
	input, reused                                  int64 // as in bin
	runMost, waitMost                              int32

	sinceMs        float64 // the pass before the next ended
	active, cached int32   // blocks since then
	activeMost     int32
}

// column is the KV usage of a rank by bin, as blocks times ms.
type column struct {
	active, cached []float64
	most           []int32
}

// NewCollector prepares for a run of cfg on a workload.
func NewCollector(cfg config.Replay, w *workload.Workload) *Collector {
	f := fleet.Of(cfg)
	return &Collector{
		load: w, all: f, widthMs: firstWidthMs, ranks: make([]scheduler, f.Ranks), columns: make([]column, f.Ranks),
		turns: make([]turnState, len(w.Turns)),
	}
}

// Add takes the next chunk of a recording.
func (c *Collector) Add(r *replay.Recording) {
	for i := range r.Events {
		c.event(&r.Events[i])
	}
	for i := range r.Passes {
		c.pass(&r.Passes[i])
	}
	for _, g := range r.Gaps {
		c.itl.add(g.Ms, int64(g.N))
		c.at(g.AtMs).itl.add(g.Ms, int64(g.N))
	}
}

// Finish says that the run is over: what holds now holds until the last moment
// seen.
func (c *Collector) Finish() {
	c.reach(c.endMs)
	for i := range c.ranks {
		c.hold(i, c.endMs)
	}
	c.every = joining(len(c.bins), maxPoints)
	for i := range c.bins {
		if i%c.every == 0 {
			c.points = append(c.points, bin{})
		}
		c.points[i/c.every].join(&c.bins[i])
	}
}

// joining is how many of n are joined so that at most so many are left.
func joining(n, most int) int { return max((n+most-1)/most, 1) }

// at is the bin of a moment.
func (c *Collector) at(ms float64) *bin {
	c.endMs = max(c.endMs, ms)
	for ms >= maxBins*c.widthMs {
		c.widen()
	}
	i := int(ms / c.widthMs)
	for len(c.bins) <= i {
		c.bins = append(c.bins, bin{})
	}
	return &c.bins[i]
}

// widen joins bins.
func (c *Collector) widen() {
	k := 2 + 3*(c.widened%2)
	c.widened++
	c.widthMs *= float64(k)
	for i := range c.bins {
		if i%k == 0 {
			c.bins[i/k] = c.bins[i]
		} else {
			c.bins[i/k].join(&c.bins[i])
		}
	}
	c.bins = c.bins[:(len(c.bins)+k-1)/k]
	for i := range c.columns {
		c.columns[i].widen(k)
	}
}

func (b *bin) join(o *bin) {
	b.arrived, b.completed, b.lost, b.preempted = b.arrived+o.arrived, b.completed+o.completed, b.lost+o.lost, b.preempted+o.preempted
	b.tokens, b.prefilled = b.tokens+o.tokens, b.prefilled+o.prefilled
	b.input, b.reused, b.host = b.input+o.input, b.reused+o.reused, b.host+o.host
	b.waitArea, b.runArea, b.handArea = b.waitArea+o.waitArea, b.runArea+o.runArea, b.handArea+o.handArea
	b.waitMost = max(b.waitMost, o.waitMost)
	b.ttft.merge(&o.ttft)
	b.itl.merge(&o.itl)
}

func (k *column) widen(n int) {
	for i := range k.active {
		if i%n == 0 {
			k.active[i/n], k.cached[i/n], k.most[i/n] = k.active[i], k.cached[i], k.most[i]
			continue
		}
		k.active[i/n] += k.active[i]
		k.cached[i/n] += k.cached[i]
		k.most[i/n] = max(k.most[i/n], k.most[i])
	}
	m := (len(k.active) + n - 1) / n
	k.active, k.cached, k.most = k.active[:m], k.cached[:m], k.most[:m]
}

// spread cuts a stretch of time at the limits of bins.
func (c *Collector) spread(fromMs, toMs float64, put func(i int, ms float64)) {
	c.at(toMs)
	for i := int(fromMs / c.widthMs); fromMs < toMs; i++ {
		endMs := min(toMs, float64(i+1)*c.widthMs)
		put(i, endMs-fromMs)
		fromMs = endMs
	}
}

// reach counts those who wait and run up to a moment.
func (c *Collector) reach(ms float64) {
	c.spread(c.nowMs, ms, func(i int, ms float64) {
		b := &c.bins[i]
		b.waitArea += float64(c.waiting) * ms
		b.runArea += float64(c.running) * ms
		b.handArea += float64(c.handed) * ms
		b.waitMost = max(b.waitMost, c.waiting)
		c.waitMost = max(c.waitMost, c.waiting)
	})
	c.nowMs = max(c.nowMs, ms)
}

func (c *Collector) event(e *replay.Event) {
	c.reach(e.AtMs)
	b := c.at(e.AtMs)
	for int(e.Turn) >= len(c.turns) { // fed later
		c.turns = append(c.turns, turnState{})
	}
	t := &c.turns[e.Turn]
	switch e.Kind {
	case replay.Arrived:
		t.arriveMs, t.at = e.AtMs, waits
		b.arrived++
		c.waiting++
	case replay.Admitted:
		c.move(t, runs)
		if !t.admitted {
			t.admitted = true
			input := int64(c.load.Turns[e.Turn].Input)
			b.input, b.reused, b.host = b.input+input, b.reused+int64(e.Tokens), b.host+int64(e.HostTokens)
			s := c.rank(e)
			s.input, s.reused = s.input+input, s.reused+int64(e.Tokens)
		}
	case replay.Preempted:
		c.move(t, waits)
		b.preempted++
		c.preempted++
		c.rank(e).preempted++
	case replay.Held:
		c.move(t, handed)
		c.rank(e).requests++
	case replay.Activated:
		c.move(t, waits)
	case replay.FirstToken:
		ms := e.AtMs - t.arriveMs
		c.ttft.add(ms, 1)
		c.at(t.arriveMs).ttft.add(ms, 1)
	case replay.Ended:
		c.end(e, t, b)
	}
}

// rank is that of an event.
func (c *Collector) rank(e *replay.Event) *scheduler {
	return &c.ranks[c.all.Rank(e.Pool, e.Worker, e.Rank)]
}

// move counts a request elsewhere.
func (c *Collector) move(t *turnState, to whereabouts) {
	*c.count(t.at)--
	t.at = to
	*c.count(to)++
}

func (c *Collector) count(at whereabouts) *int32 {
	return [...]*int32{waits: &c.waiting, runs: &c.running, handed: &c.handed}[at]
}

func (c *Collector) end(e *replay.Event, t *turnState, b *bin) {
	*c.count(t.at)--
	if e.Status != replay.Completed {
		b.lost++
		c.lost++
		return
	}
	b.completed++
	c.rank(e).requests++
	if e.Tokens > 0 {
		c.e2e.add(e.AtMs-t.arriveMs, 1)
	}
}

func (c *Collector) pass(p *replay.Pass) {
	id := c.all.Rank(p.Pool, p.Worker, p.Rank)
	c.hold(id, p.EndMs)
	b, s := c.at(p.EndMs), &c.ranks[id]
	b.tokens += int64(p.Tokens)
	b.prefilled += int64(p.PrefillTokens)
	if p.Prefills+p.Decodes > 0 {
		s.passes++
	}
	s.tokens += int64(p.Tokens)
	s.prefilled += int64(p.PrefillTokens)
	s.busyMs += p.Duration()
	s.runMost, s.waitMost = max(s.runMost, p.Running), max(s.waitMost, p.Waiting)
	s.active, s.cached = p.ActiveBlocks, p.CachedBlocks
	s.activeMost = max(s.activeMost, p.ActiveBlocks)
	k := &c.columns[id]
	i := k.room(int(p.EndMs / c.widthMs))
	k.most[i] = max(k.most[i], p.ActiveBlocks)
}

// hold counts the blocks of a rank from its last pass to a moment.
func (c *Collector) hold(id int, ms float64) {
	s, k := &c.ranks[id], &c.columns[id]
	if s.active+s.cached > 0 {
		c.spread(s.sinceMs, ms, func(i int, ms float64) {
			k.room(i)
			k.active[i] += float64(s.active) * ms
			k.cached[i] += float64(s.cached) * ms
			k.most[i] = max(k.most[i], s.active)
		})
	}
	s.sinceMs = max(s.sinceMs, ms)
}

// room makes bin i be there.
func (k *column) room(i int) int {
	for len(k.active) <= i {
		k.active, k.cached, k.most = append(k.active, 0), append(k.cached, 0), append(k.most, 0)
	}
	return i
}
