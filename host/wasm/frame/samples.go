package frame

import "github.com/dryserve/dryserve/core/replay"

// SampleColumns are samples of a run, a row each.
type SampleColumns struct {
	ordinal                []int64
	kind                   []int32
	fromMs, atMs, traffics []float64
	pools                  [2]struct {
		members
		pending, gauges, worker, rank []int32 // gauges: how many
		interval, gauge               []float64
	}
}

// Fields lists the columns.
func (c *SampleColumns) Fields() []Field {
	fields := []Field{
		{Name: "ordinal", Var: &c.ordinal}, {Name: "kind", Var: &c.kind}, {Name: "from_ms", Var: &c.fromMs}, {Name: "at_ms", Var: &c.atMs}, {Name: "traffic", Var: &c.traffics},
	}
	for i := range c.pools {
		p := &c.pools[i]
		fields = append(fields, below(poolNames[i], append(p.fields(), Field{Name: "pending", Var: &p.pending}, Field{Name: "interval", Var: &p.interval},
			Field{Name: "gauge_count", Var: &p.gauges}, Field{Name: "gauge_worker", Var: &p.worker}, Field{Name: "gauge_rank", Var: &p.rank}, Field{Name: "gauge", Var: &p.gauge}))...)
	}
	return fields
}

// Add appends a row.
func (c *SampleColumns) Add(s *replay.Sample) {
	c.ordinal = append(c.ordinal, s.Ordinal)
	push(&c.kind, int32(s.Kind))
	note(&c.fromMs, s.FromMs)
	note(&c.atMs, s.AtMs)
	c.traffics = append(c.traffics, trafficNumbers(&s.Traffic)...)
	for i, x := range [2]*replay.PoolSample{&s.Prefill, &s.Decode} {
		p := &c.pools[i]
		p.add(x.Active, x.Starting, x.Draining)
		push(&p.pending, int32(x.Pending))
		p.interval = append(p.interval, intervalNumbers(&x.Interval)...)
		push(&p.gauges, int32(len(x.Gauges)))
		for k := range x.Gauges {
			g := &x.Gauges[k]
			push(&p.worker, g.Worker)
			push(&p.rank, g.Rank)
			p.gauge = append(p.gauge, gaugeNumbers(&g.Metrics)...)
		}
	}
}

// Samples is what the columns say; false: they do not belong together.
func (c *SampleColumns) Samples() (all []replay.Sample, ok bool) {
	n := len(c.ordinal)
	if len(c.kind) != n || len(c.fromMs) != n || len(c.atMs) != n || len(c.traffics) != n*trafficSize {
		return nil, false
	}
	var at [2]int // gauges read
	for row := range n {
		s := replay.Sample{Ordinal: c.ordinal[row], Kind: replay.SampleKind(c.kind[row]), FromMs: c.fromMs[row], AtMs: c.atMs[row]}
		setTraffic(&s.Traffic, numbersAt(c.traffics, row, trafficSize))
		for i, x := range [2]*replay.PoolSample{&s.Prefill, &s.Decode} {
			p := &c.pools[i]
			interval := numbersAt(p.interval, row, intervalSize)
			if x.Active, x.Starting, x.Draining, ok = p.next(); !ok || interval == nil || row >= len(p.pending) || row >= len(p.gauges) {
				return nil, false
			}
			setInterval(&x.Interval, interval)
			x.Pending = int(p.pending[row])
			for range p.gauges[row] {
				numbers := numbersAt(p.gauge, at[i], gaugeSize)
				if numbers == nil || at[i] >= len(p.worker) || at[i] >= len(p.rank) {
					return nil, false
				}
				g := replay.Gauge{Worker: p.worker[at[i]], Rank: p.rank[at[i]]}
				setGauge(&g.Metrics, numbers)
				x.Gauges = append(x.Gauges, g)
				at[i]++
			}
		}
		all = append(all, s)
	}
	return all, true
}

// LifecycleColumns are what happened to workers, a row for each operation.
type LifecycleColumns struct {
	atMs                       []float64
	pool, split, cause, origin []int32
	tick                       []int64
	members
	released                  lists
	steps                     []int32 // transitions of each
	worker, from, to, origins []int32 // of the transitions
}

// Fields lists the columns.
func (c *LifecycleColumns) Fields() []Field {
	fields := append(c.fields(), c.released.fields("released")...)
	return append(fields, Field{Name: "at_ms", Var: &c.atMs}, Field{Name: "pool", Var: &c.pool}, Field{Name: "split", Var: &c.split},
		Field{Name: "cause", Var: &c.cause}, Field{Name: "origin", Var: &c.origin}, Field{Name: "tick", Var: &c.tick},
		Field{Name: "step_count", Var: &c.steps}, Field{Name: "step_worker", Var: &c.worker}, Field{Name: "step_from", Var: &c.from},
		Field{Name: "step_to", Var: &c.to}, Field{Name: "step_origin", Var: &c.origins})
}

// Add appends a row.
func (c *LifecycleColumns) Add(o *replay.Operation) {
	note(&c.atMs, o.AtMs)
	push(&c.pool, int32(o.Pool))
	push(&c.split, oneIf(o.Split))
	push(&c.cause, int32(o.Cause))
	push(&c.origin, o.Origin)
	c.tick = append(c.tick, o.Tick)
	c.add(o.Active, o.Starting, o.Draining)
	c.released.add(o.Released)
	push(&c.steps, int32(len(o.Transitions)))
	for _, t := range o.Transitions {
		push(&c.worker, t.Worker)
		push(&c.from, int32(t.From))
		push(&c.to, int32(t.To))
		push(&c.origins, t.Origin)
	}
}

// Rows appends the columns' rows; false: they do not belong together.
func (c *LifecycleColumns) Rows(to []replay.Operation) ([]replay.Operation, bool) {
	n, at := len(c.atMs), 0
	if len(c.pool) != n || len(c.split) != n || len(c.cause) != n || len(c.origin) != n || len(c.tick) != n || len(c.steps) != n ||
		len(c.from) != len(c.worker) || len(c.to) != len(c.worker) || len(c.origins) != len(c.worker) {
		return to, false
	}
	c.active.row, c.active.at, c.starting.row, c.starting.at, c.draining.row, c.draining.at = 0, 0, 0, 0, 0, 0
	c.released.row, c.released.at = 0, 0
	for row := range n {
		o := replay.Operation{
			AtMs: c.atMs[row], Pool: replay.PoolID(c.pool[row]), Split: c.split[row] != 0, Cause: replay.Cause(c.cause[row]), Origin: c.origin[row], Tick: c.tick[row],
		}
		var ok, more bool
		o.Active, o.Starting, o.Draining, ok = c.next()
		if o.Released, more = c.released.next(); !ok || !more || c.steps[row] < 0 || at+int(c.steps[row]) > len(c.worker) {
			return to, false
		}
		for range c.steps[row] {
			if max(c.from[at], c.to[at]) > int32(replay.Draining) || min(c.from[at], c.to[at]) < 0 {
				return to, false
			}
			o.Transitions = append(o.Transitions, replay.Transition{Worker: c.worker[at], From: replay.WorkerState(c.from[at]), To: replay.WorkerState(c.to[at]), Origin: c.origins[at]})
			at++
		}
		to = append(to, o)
	}
	return to, true
}
