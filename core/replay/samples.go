package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/engine"
)

// SampleKind is why a sample was taken.
type SampleKind uint8

// Baseline samples are taken at the beginning, Periodic ones at regular times,
// the Final one at the end if there is something that the last one does not tell.
const (
	Baseline SampleKind = iota
	Periodic
	Final
)

// Sample is the state of a run at a time and what has happened since the sample
// before it (replay notes §9.3).
type Sample struct {
	Ordinal         int64
	Kind            SampleKind
	FromMs, AtMs    float64
	Traffic         Traffic
	Prefill, Decode PoolSample // aggregated workers are of Decode
}

// PoolSample is what a sample says of a pool. Lists ascend, gauges by worker,
// then by rank.
type PoolSample struct {
	Active, Starting, Draining []int32
	Gauges                     []Gauge
	Interval                   PoolInterval
	Pending                    int // requests that wait at the router
}

// Gauge is the state of a rank as it was told last: with a request that came,
// or with the end of a pass.
type Gauge struct {
	Worker, Rank int32
	engine.Metrics
}

// samples takes samples. What they hold lies in slabs.
type samples struct {
	everyMs float64
	nextMs  float64 // +Inf: none is due
	taken   int64
	fromMs  float64
	traffic traffic // since then
	list    []Sample
	ids     []int32
	gauges  []Gauge
}

func (s *samples) init(everyMs float64) {
	if s.everyMs = everyMs; everyMs == 0 {
		s.nextMs = math.Inf(1)
	}
}

// Samples are those taken since ForgetSamples was called.
func (s *Sim) Samples() []Sample {
	if s.control == nil {
		return nil
	}
	return s.control.samples.list
}

// ForgetSamples ends the life of the Samples.
func (s *Sim) ForgetSamples() {
	if s.control != nil {
		x := &s.control.samples
		x.list, x.ids, x.gauges = x.list[:0], x.ids[:0], x.gauges[:0]
	}
}

// sampleDue takes the sample that is due at the present time, if one is.
func (c *control) sampleDue() {
	if x := &c.samples; x.nextMs == c.sim.books.nowMs {
		kind := Periodic
		if x.taken == 0 {
			kind = Baseline
		}
		c.sample(kind)
	}
}

// sample takes one.
func (c *control) sample(kind SampleKind) {
	x, nowMs := &c.samples, c.sim.books.nowMs
	s := Sample{Ordinal: x.taken, Kind: kind, FromMs: x.fromMs, AtMs: nowMs}
	if kind != Baseline {
		s.Traffic = x.traffic.averages(nowMs - x.fromMs)
		s.Prefill.Interval, s.Decode.Interval = x.traffic.pools[0], x.traffic.pools[1]
		x.traffic = traffic{}
	}
	for _, f := range c.fleets {
		p := &s.Decode
		if f.pool == PrefillPool {
			p = &s.Prefill
		}
		p.Active, p.Starting, p.Draining = x.list32(f.active), x.list32(f.starting), x.list32(f.draining)
		p.Gauges = c.gaugesOf(f)
		p.Pending = f.crew.waiting()
	}
	x.list = append(x.list, s)
	x.taken++
	x.fromMs = nowMs
	x.nextMs = float64(x.taken) * x.everyMs
}

// list32 is the numbers of posts.
func (s *samples) list32(list []post) []int32 {
	from := len(s.ids)
	s.ids = appendIDs(s.ids, list)
	return s.ids[from:len(s.ids):len(s.ids)]
}

// gaugesOf reads the gauges of all workers that are there, by number.
func (c *control) gaugesOf(f *fleet) []Gauge {
	x := &c.samples
	from := len(x.gauges)
	lists := [3][]post{f.active, f.starting, f.draining}
	for {
		least := -1
		for i, l := range lists {
			if len(l) > 0 && (least < 0 || l[0].id < lists[least][0].id) {
				least = i
			}
		}
		if least < 0 {
			return x.gauges[from:len(x.gauges):len(x.gauges)]
		}
		id := lists[least][0].id
		lists[least] = lists[least][1:]
		m := f.crew.meter(id)
		for rank := range m.ranks {
			x.gauges = append(x.gauges, Gauge{Worker: id, Rank: int32(rank), Metrics: m.ranks[rank].gauge})
		}
	}
}

// last takes the final sample.
func (c *control) last() {
	if x := &c.samples; x.everyMs > 0 && (c.sim.books.nowMs > x.fromMs || x.traffic != traffic{}) {
		c.sample(Final)
	}
}
