package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
)

// control changes the number of workers of a run: at the times its policy
// names it asks it for targets and lets workers come and go. It also samples the
// run at regular times. Nothing of it is there in runs that do neither.
//
// In each round of a timestamp it comes last, after the idle workers were
// driven: workers that have become idle go, a sample is taken, then the policy is
// asked; what it decides leads to another round (replay notes §6.4, §7).
type control struct {
	sim     *Sim
	policy  config.Scaling
	fleets  []*fleet // by pool, that of prompts first
	meters  bool     // passes are metered, for the policy or for samples
	begun   bool     // what happens at 0 has happened
	asked   bool     // the policy has been asked and has not answered
	again   bool     // the present timestamp is not over: the policy has answered, or waits to be asked
	tickMs  float64  // when the policy is asked next, +Inf: never
	ordinal int64    // of that
	step    int      // of its script
	fromMs  float64  // when it was asked last
	tick    Tick
	traffic traffic // since then
	ops     []Operation
	steps   []Transition // of the operation under way
	samples samples
}

// newControl is nil if nothing changes and nobody looks.
func newControl(s *Sim, cfg config.Replay) *control {
	if cfg.Scaling.Policy == config.NoScaling && cfg.Samples.EveryMs == 0 {
		return nil
	}
	c := &control{sim: s, policy: cfg.Scaling, tickMs: math.Inf(1)}
	c.meters = cfg.Scaling.Policy == config.Asked || cfg.Samples.EveryMs > 0
	switch p := cfg.Scaling; {
	case p.Policy == config.Asked:
		c.tickMs = max(p.FirstMs, 0)
	case p.Policy == config.Scripted && len(p.Script) > 0:
		c.tickMs = p.Script[0].AtMs
	}
	c.samples.init(cfg.Samples.EveryMs)
	if c.policy.Policy == config.Asked {
		s.books.into = append(s.books.into, &c.traffic)
	}
	if cfg.Samples.EveryMs > 0 {
		s.books.into = append(s.books.into, &c.samples.traffic)
	}
	return c
}

// enroll adds a pool with the workers it begins with.
func (c *control) enroll(pool PoolID, crew crew, startupMs float64, workers int) *fleet {
	f := &fleet{}
	f.init(pool, crew, startupMs, workers)
	c.fleets = append(c.fleets, f)
	c.recount()
	return f
}

// recount tells the accounts how many workers cost time.
func (c *control) recount() {
	b := &c.sim.books
	for _, f := range c.fleets {
		if f.pool == PrefillPool {
			b.prefillers = float64(f.count())
		} else {
			b.workers = float64(f.count())
		}
	}
}

// over reports whether nothing is left to do: no request is in flight and none
// will come. unsure: that depends on sessions not fed yet.
func (c *control) over() (over, unsure bool) {
	s := c.sim
	if s.books.inFlight() > 0 || !math.IsInf(s.arrivals.next(), 1) || !math.IsInf(s.nextInternalMs(), 1) {
		return false, false
	}
	if s.pools != nil && !s.pools.quiet() {
		return false, false
	}
	return !s.arrivals.streaming, s.arrivals.streaming
}

// nextMs is when something of control's happens that is not a sample, +Inf:
// never.
func (c *control) nextMs() float64 {
	ms := c.tickMs
	for _, f := range c.fleets {
		ms = min(ms, f.nextMs())
	}
	return ms
}

// next is the next timestamp, given that of everything else. A run that is over
// has none; samples do not keep one up, nor are they taken on the way to a
// timestamp that a cap on time does not allow.
func (c *control) next(t float64) float64 {
	if over, unsure := c.over(); over || unsure {
		return math.Inf(1)
	}
	t = min(t, c.nextMs())
	if t > c.sim.capMs || math.IsInf(t, 1) {
		return t
	}
	return min(t, c.samples.nextMs)
}

// ready lets workers serve that have started by now. False: the router asks.
func (c *control) ready() bool {
	for _, f := range c.fleets {
		for len(f.stops) > 0 && f.stops[0] <= c.sim.books.nowMs {
			f.stops = slices.Delete(f.stops, 0, 1)
		}
		for {
			id, at := f.next()
			if id < 0 || at > c.sim.books.nowMs {
				break
			}
			p := take(&f.starting, id)
			c.steps = append(c.steps, Transition{id, Starting, Active, p.op})
			put(&f.active, post{id: id, op: p.op})
			f.crew.join(id)
			c.seal(f, ReadyCause, -1)
			c.sim.received = true
			if c.sim.pools != nil {
				c.sim.pools.moved = true
			}
			if !c.settle(f) {
				return false
			}
		}
	}
	return true
}

// sweep lets idle workers go that drain. It reports whether any did.
func (c *control) sweep() (any bool) {
	for _, f := range c.fleets {
		c.dismiss(f)
		if len(c.steps) > 0 {
			any = true
			c.seal(f, SettleCause, -1)
			c.settle(f)
		}
	}
	return any
}

// dismiss lets those of a fleet go.
func (c *control) dismiss(f *fleet) {
	kept := f.draining[:0]
	for _, p := range f.draining {
		if !f.crew.idle(p.id) {
			kept = append(kept, p)
			continue
		}
		c.steps = append(c.steps, Transition{p.id, Draining, Absent, p.op})
		f.crew.dismiss(p.id)
	}
	f.draining = kept
	c.recount()
}

// settle lets the router of a fleet look at those that wait, because workers have
// come or gone. False: it asks, and goes on later.
func (c *control) settle(f *fleet) bool {
	c.recount()
	f.freed = len(c.ops) - 1
	return f.crew.settle()
}

// routed notes that the router of a fleet has placed a turn where it believes so
// many of its prompt's blocks to be. That of workers that decode, whose caches are
// no matter, is no share of hits.
func (c *control) routed(f *fleet, turn int32, overlap int) {
	size := c.sim.cfg.Engine.BlockSize
	blocks := (int(c.sim.load.Turns[turn].Input) + size - 1) / size
	for _, t := range c.sim.books.into {
		if c.sim.pools != nil && f.pool == ServingPool {
			break
		}
		if t.routed++; blocks > 0 {
			t.hits += float64(overlap) / float64(blocks)
		}
	}
	if f.freed >= 0 {
		op := &c.ops[f.freed]
		op.Released = append(op.Released, turn)
	}
}

// attend ends a round: idle workers that drain go; a sample is taken, and the
// policy asked, if it is time to. At the beginning these two wait for a round in
// which nothing happens. It reports whether another round is called for; while
// the policy is asked that is for Scale to say.
func (c *control) attend(quiet bool) (more bool) {
	c.again = false
	more = c.sweep()
	nowMs := c.sim.books.nowMs
	if nowMs == 0 && !c.begun && !quiet {
		return more
	}
	c.begun = true
	c.sampleDue()
	if c.tickMs != nowMs {
		return more
	}
	over, unsure := c.over()
	if over || unsure {
		c.again = unsure
		return more
	}
	c.tickMs = math.Inf(1)
	if c.policy.Policy == config.Asked {
		c.ask()
		return true
	}
	t := c.policy.Script[c.step]
	d := Decision{Prefill: t.Prefill, Decode: t.Decode, NextMs: math.NaN()}
	if c.step++; c.step < len(c.policy.Script) {
		d.NextMs = c.policy.Script[c.step].AtMs
	}
	c.decide(d)
	return true
}

// decide does what the policy has decided.
func (c *control) decide(d Decision) {
	ordinal := c.ordinal
	c.ordinal++
	c.fromMs = c.sim.books.nowMs
	c.traffic = traffic{}
	if d.NextMs > c.sim.books.nowMs && !math.IsInf(d.NextMs, 1) {
		c.tickMs = d.NextMs
	}
	for _, f := range c.fleets {
		target := d.Decode
		if f.pool == PrefillPool {
			target = d.Prefill
		}
		if target != config.KeepWorkers {
			c.scale(f, target, ordinal)
		}
	}
}

// scale brings a fleet to a target, those that start counted and those that
// drain not: workers with new numbers come; or, from the highest number down,
// workers go that have not started yet, then those that serve.
func (c *control) scale(f *fleet, target int, ordinal int64) {
	own := int32(len(c.ops))
	nowMs := c.sim.books.nowMs
	for range target - len(f.active) - len(f.starting) {
		id := f.ids
		f.ids++
		f.crew.hire(id)
		if f.startupMs > 0 {
			f.starting = append(f.starting, post{id: id, op: own, readyMs: nowMs + f.startupMs})
			c.steps = append(c.steps, Transition{id, Absent, Starting, own})
			continue
		}
		f.active = append(f.active, post{id: id, op: own})
		f.crew.join(id)
		c.steps = append(c.steps, Transition{id, Absent, Active, own})
	}
	excess := len(f.active) + len(f.starting) - target
	cancelled := min(max(excess, 0), len(f.starting))
	for range excess - cancelled {
		p := take(&f.active, f.active[len(f.active)-1].id)
		put(&f.draining, post{id: p.id, op: own})
		f.crew.retire(p.id)
		c.steps = append(c.steps, Transition{p.id, Active, Draining, own})
	}
	for range cancelled {
		p := take(&f.starting, f.starting[len(f.starting)-1].id)
		f.crew.dismiss(p.id)
		i, _ := slices.BinarySearch(f.stops, p.readyMs)
		f.stops = slices.Insert(f.stops, i, p.readyMs)
		c.steps = append(c.steps, Transition{p.id, Starting, Absent, p.op})
	}
	if len(c.steps) == 0 {
		return
	}
	c.dismiss(f)
	c.seal(f, ScaleCause, ordinal)
	c.settle(f)
}
