package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
)

// Tick is what a policy is told when it is asked (replay notes §7). Its slices
// are valid until the answer.
type Tick struct {
	Ordinal         int64 // from 0
	NowMs           float64
	Prefill, Decode PoolState // aggregated workers are of Decode
	Traffic         Traffic   // since it was asked last, or since the beginning
}

// PoolState is the workers of a pool, ascending.
type PoolState struct {
	Active, Starting, Draining []int32
	Passes                     []Snapshot // by worker, then by rank
}

// Snapshot is the pass that a rank of an active worker has completed last, if
// it has completed one since the policy was asked. One that has been silent for
// a second or more has a snapshot without work.
type Snapshot struct {
	Worker, Rank int32
	WallS        float64 // how long the worker's pass took, in s
	Work         engine.Forward
}

// Decision is a policy's answer: how many workers there are to be of each pool,
// or config.KeepWorkers, and when to ask again: a time that is not later than
// now, or not finite, stands for never. Without disaggregation Prefill says
// nothing.
type Decision struct {
	Prefill, Decode int
	NextMs          float64
}

// silentMs is after how long a silent rank is heard from, and again and again.
const silentMs = 1000

// Tick is what the policy is told while it is asked, after Step has returned
// NeedScaling.
func (s *Sim) Tick() (t *Tick, asked bool) {
	if s.control == nil || !s.control.asked {
		return nil, false
	}
	return &s.control.tick, true
}

// Scale is the policy's answer; Step then goes on. It reports false, and keeps
// nothing, if nobody is asked or a target is below config.KeepWorkers.
func (s *Sim) Scale(d Decision) bool {
	c := s.control
	if c == nil || !c.asked || d.Prefill < -1 || d.Decode < -1 {
		return false
	}
	c.asked, c.again = false, true
	c.decide(d)
	return true
}

// ask puts the question.
func (c *control) ask() {
	nowMs := c.sim.books.nowMs
	t := &c.tick
	t.Ordinal, t.NowMs = c.ordinal, nowMs
	t.Traffic = c.traffic.averages(nowMs - c.fromMs)
	for _, f := range c.fleets {
		p := &t.Decode
		if f.pool == PrefillPool {
			p = &t.Prefill
		}
		p.Active = appendIDs(p.Active[:0], f.active)
		p.Starting = appendIDs(p.Starting[:0], f.starting)
		p.Draining = appendIDs(p.Draining[:0], f.draining)
		p.Passes = p.Passes[:0]
		for _, id := range p.Active {
			p.Passes = f.crew.meter(id).snapshots(p.Passes, id, nowMs)
		}
	}
	c.asked = true
}

// meter is what the ranks of a worker have said last.
type meter struct {
	pool  int        // prompts 0, others 1
	into  []*traffic // what passes do is added to these
	ranks []rankMeter
}

type rankMeter struct {
	saidMs float64 // when it was heard from last, or has begun to serve
	fresh  bool    // it has completed a pass since the policy was asked
	wallS  float64
	work   engine.Forward
	gauge  engine.Metrics
}

func newMeter(into []*traffic, ranks, blocks int) *meter {
	m := &meter{pool: 1, into: into, ranks: make([]rankMeter, ranks)}
	for i := range m.ranks {
		m.ranks[i].gauge.TotalBlocks = blocks
	}
	return m
}

// begin notes that the worker begins to serve.
func (m *meter) begin(nowMs float64) {
	for rank := range m.ranks {
		m.ranks[rank].saidMs = nowMs
	}
}

// told notes how a rank is.
func (m *meter) told(rank int, g engine.Metrics) {
	r := &m.ranks[rank]
	for _, t := range m.into {
		t.pools[m.pool].Preemptions += int64(g.Preemptions - r.gauge.Preemptions)
	}
	r.gauge = g
}

// reread reads the gauges of all ranks: a worker that shares host memory and
// waits for a copy passes in the reference whenever one ends.
func (p *plain) reread() {
	for rank := range p.meter.ranks {
		p.meter.told(rank, p.g.Metrics(rank))
	}
}

// passed notes a pass of a worker that began and ended at these times. It is
// heard of from all ranks, unless it took no time and nobody was admitted or preempted: then
// from those that did something.
func (m *meter) passed(g *group.Group, startMs, endMs float64) {
	all := endMs > startMs
	for rank := range m.ranks {
		all = all || len(g.Out(rank).Admissions)+len(g.Out(rank).Pressure) > 0
	}
	for rank := range m.ranks {
		out := g.Out(rank)
		if m.told(rank, out.Metrics); all || out.Effect {
			m.heard(rank, out, startMs, endMs)
		}
	}
}

func (m *meter) heard(rank int, out *engine.Out, startMs, endMs float64) {
	r := &m.ranks[rank]
	r.saidMs, r.fresh, r.wallS, r.work = endMs, true, (endMs-startMs)/1000, out.Forward
	for _, t := range m.into {
		if m.pool == 1 {
			t.forwards += int64(out.Acceptance.Forwards)
			t.accepted += int64(out.Acceptance.AcceptedTokens)
		}
		p := &t.pools[m.pool]
		p.CacheHitTokens += int64(out.Metrics.CacheHitTokens)
		p.CacheTotalTokens += int64(out.Metrics.CacheTotalTokens)
	}
}

// snapshots adds what is to be told of a worker's ranks.
func (m *meter) snapshots(to []Snapshot, worker int32, nowMs float64) []Snapshot {
	for i := range m.ranks {
		r := &m.ranks[i]
		if silent := nowMs - r.saidMs; silent >= silentMs {
			r.saidMs += float64(math.Floor(silent/silentMs) * silentMs)
			to = append(to, Snapshot{Worker: worker, Rank: int32(i)})
		} else if r.fresh {
			to = append(to, Snapshot{Worker: worker, Rank: int32(i), WallS: r.wallS, Work: r.work})
		}
		r.fresh = false
	}
	return to
}
