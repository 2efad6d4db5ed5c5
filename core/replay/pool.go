package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
)

// pool is the workers of one role in a disaggregated run. A worker keeps its
// number for good; those that get requests are listed in active.
type pool struct {
	pools   *pools
	id      PoolID
	engine  config.Engine
	members []*member  // by number; nil: it is gone
	active  []int32    // that get requests, ascending
	turn    int        // of the ranks of the active ones, the one that is next
	fleet   *fleet     // nil: workers neither come nor go, and nobody looks
	gone    int64      // preemptions of workers that are gone
	kv      *kvRouting // that says where requests go; nil: they go in turn

	waits bool // the router, for an answer to its question

	due     []int32 // idle ones that may have something to do, ascending
	asking  *member // whose pass waits for its duration
	landing *member // whose pass without duration is being told
	spun    int     // passes without duration in this call of drive

	// Where passes are counted, all idle ones are due, and passing counts those
	// that did nothing as often as the reference passes them (see parked).
	counts  bool
	driving bool
}

// member is a worker of a pool.
type member struct {
	pool      *pool
	id        int32
	g         *group.Group
	heard     heard // how far the pass completed last has been told
	landing   bool  // it is being told
	flying    bool  // a pass is under way
	joined    bool  // it serves, or did: requests could come
	due       bool
	skipped   bool // it had nothing to do in this scan
	startMs   float64
	effect    bool // of the last pass
	stuck     bool // a decode step found no room, which alone is no effect
	retries   int
	fruitless []int      // by rank: passes that preempted since the last output
	outside   []int32    // by rank: sources held or destinations reserved, which others will ask for
	deferred  [][]action // by rank: that wait for the end of the pass
	retracted int64      // requests, SGLang only
	load      int64      // requests it knows
	meter     *meter     // nil: nobody wants to know
}

func (q *pool) init(p *pools, id PoolID, e config.Engine, workers int) {
	e.EmitKVEvents, e.EmitKVTokenIDs = q == &p.prefill && p.sim.cfg.Routing.Mode == config.KVRouter, false
	q.pools, q.id, q.engine, q.counts = p, id, e, counts(e)
	for id := range int32(workers) {
		q.add().joined = true
		q.active = append(q.active, id)
	}
}

// add gives the pool one more worker, which gets no requests yet.
func (q *pool) add() *member {
	id := int32(len(q.members))
	m := &member{
		pool: q, id: id, g: group.New(q.engine, uint64(id)),
		fruitless: make([]int, q.engine.DPSize), outside: make([]int32, q.engine.DPSize), deferred: make([][]action, q.engine.DPSize),
	}
	if c := q.pools.sim.control; c != nil && c.meters {
		m.meter = newMeter(q.pools.sim.books.into, q.engine.DPSize, q.engine.NumGPUBlocks)
		if q.id == PrefillPool {
			m.meter.pool = 0
		}
	}
	q.members = append(q.members, m)
	return m
}

// place is a rank of a worker and a request's name there.
type place struct {
	worker, rank int32
	handle       engine.Handle
}

// pick chooses where a request goes: to the ranks of all active workers in turn
// (replay notes §6.3). The count goes on when workers come or go. One is active.
func (q *pool) pick() place {
	ranks := q.engine.DPSize
	at := q.turn % (len(q.active) * ranks)
	q.turn = at + 1
	return place{worker: q.active[at/ranks], rank: int32(at % ranks)}
}

// scheduler is the number of a rank among those of all workers.
func (q *pool) scheduler(at place) int32 { return at.worker*int32(q.engine.DPSize) + at.rank }

// wake makes an idle worker due.
func (q *pool) wake(m *member) {
	if m.due || m.flying || q.counts {
		return
	}
	m.due = true
	q.due = with(q.due, m.id)
}

// rest takes a worker that has nothing more to do out of the scan.
func (q *pool) rest(m *member) {
	m.skipped = true
	if m.due {
		m.due = false
		q.due = without(q.due, m.id)
	}
}

// first is the first worker of the scan, nil at its end.
func (q *pool) first() *member {
	for len(q.due) > 0 {
		m := q.members[q.due[0]]
		if m.g.Ready() {
			return m
		}
		q.rest(m)
	}
	if q.counts {
		for _, m := range q.members {
			if m != nil && !m.skipped && m.g.Ready() {
				return m
			}
		}
	}
	return nil
}

// rescan begins the scan anew, because a worker has done something.
func (q *pool) rescan() {
	if q.counts {
		for _, m := range q.members {
			if m != nil {
				m.skipped = false
			}
		}
	}
}

// drive passes the idle workers at the current timestamp until none does
// anything more: the first that can is passed, and after everything it does the
// scan begins anew (corrections §3). False: there may be more, or the run is
// dead, or a duration has to be asked for.
func (q *pool) drive() bool {
	if !q.driving {
		q.driving = true
		q.rescan()
	}
	for q.spun = 0; q.spun < spins; q.spun++ {
		m := q.asking
		if q.landing != nil {
			m = q.landing
		} else if m == nil {
			if m = q.first(); m == nil {
				q.driving = false
				return true
			}
		}
		if !q.pass(m) {
			return false
		}
	}
	return false
}

// pass runs one pass of an idle worker, or goes on with the one that had to
// wait. False: it has to wait, or the run is dead.
func (q *pool) pass(m *member) bool {
	nowMs := q.pools.sim.books.nowMs
	endMs := nowMs
	switch m {
	case q.landing:
	case q.asking:
		endMs = m.g.EndMs()
	default:
		endMs, _ = m.g.Begin(nowMs)
		m.startMs = nowMs
		q.pools.begun++
		q.admit(m)
	}
	q.asking = nil
	if endMs == timing.Unknown {
		q.asking = m
		return false
	}
	if endMs > nowMs {
		m.flying = true
		at := event{atMs: endMs, id: m.id}
		if q == &q.pools.decode {
			at.id |= decodeBit
		}
		q.pools.busy.push(at)
		q.pools.moved = true
		q.rescan()
		q.rest(m)
		return true
	}
	q.landing = m
	if !q.land(m, endMs) {
		return false
	}
	q.landing = nil
	if m.effect {
		q.pools.moved = true
		q.rescan()
		return true
	}
	return q.idle(m)
}

// admit notes who was admitted by the pass that begins.
func (q *pool) admit(m *member) {
	h := &q.pools.handoffs
	q.pools.sim.tape.began(q.id, m.id, m.g, h, m.startMs)
	for rank := range q.engine.DPSize {
		for _, a := range m.g.Out(rank).Admissions {
			h.admitted(int32(a.Tag), q == &q.pools.prefill, a.Reused)
		}
	}
}

// heard is how far a pass was told of: everything before these is done.
type heard struct {
	rank   int
	events bool // of the rank
	output int  // of the rank
}

// land ends a worker's pass and tells what happened in it, rank by rank. False:
// the router has to wait for an answer; it is called again to go on.
func (q *pool) land(m *member, endMs float64) bool {
	if !m.landing {
		m.g.Complete(endMs)
		m.landing, m.heard = true, heard{}
		m.effect, m.stuck = false, false
		q.pools.sim.tape.completed(q.id, m.id, m.g, &q.pools.handoffs, m.startMs, endMs)
		if m.meter != nil {
			m.meter.passed(m.g, m.startMs, endMs)
		}
	}
	for x := &m.heard; x.rank < q.engine.DPSize; x.rank, x.events, x.output = x.rank+1, false, 0 {
		out := m.g.Out(x.rank)
		if !x.events {
			x.events = true
			q.note(m, out)
			q.publish(m, x.rank, out.KVEvents, out.KVBlocks)
		}
		for x.output < len(out.Outputs) {
			x.output++
			if q.hear(m, &out.Outputs[x.output-1]); q.waits {
				return false
			}
		}
		q.pools.handoffs.facts(out.Lifecycle)
		q.pools.handoffs.resume(m, x.rank)
		if q.speculates() {
			q.judge(m, x.rank, out)
		}
	}
	m.landing = false
	if m.effect || endMs > m.startMs {
		m.retries = 0
	}
	return true
}

// note counts what one rank said of a pass.
func (q *pool) note(m *member, out *engine.Out) {
	m.stuck = m.stuck || out.Stuck
	m.effect = m.effect || out.Effect && (!out.Stuck || len(out.Outputs) > 0 || len(out.Pressure) > 0)
	q.pools.sim.books.committed += int64(out.Forward.PrefillTokens)
	if q.engine.Backend == config.SGLang {
		m.retracted += int64(len(out.Pressure))
	}
}

// hear takes an output of one of the ranks.
func (q *pool) hear(m *member, o *engine.Output) {
	h := &q.pools.handoffs
	if o.Rejected || o.Completed && q == &q.pools.decode {
		m.load--
	}
	switch {
	case q == &q.pools.decode:
		h.generated(o)
	case o.Rejected:
		h.refused(int32(o.Tag), stretch.Rejected)
	case o.Completed:
		q.computed(h.slots[o.Tag].tickets[0])
	}
}

// speculates reports whether a request that cannot be served may keep a rank
// from giving tokens and is to fail.
func (q *pool) speculates() bool {
	return q.engine.MTP.Drafts > 0 && q.engine.Backend != config.SGLang && !q.pools.sim.cfg.Parity
}

// idle says what becomes of a worker whose pass took no time and had no effect:
// it is passed again, left until a command comes for it or, if none will, loses
// the request that blocks it. The reference repeats a step that found no room
// for ever (corrections §4), and ends its run after too many passes that moved
// nothing but estimates. False: the run is dead.
func (q *pool) idle(m *member) bool {
	s := q.pools.sim
	repeat := m.g.Convergence().Repeat
	switch repeat {
	case group.Countdown:
		return true
	case group.Retry:
		if m.retries++; m.retries <= group.MaxRetries {
			return true
		}
	}
	if s.cfg.Parity {
		if m.stuck || repeat == group.Retry {
			s.dead, s.fault = true, Fault{InFlight: m.load, NowMs: s.books.nowMs, Endless: m.stuck}
			return false
		}
	} else if q.failHeads(m) {
		q.pools.moved = true
		return true
	}
	m.retries = 0
	q.rest(m)
	return true
}

// failHeads fails what blocks the ranks of a worker on which nothing will
// happen any more: none of them has something that waits for a transfer, and
// none runs anything, but for a request of SGLang that found no room.
func (q *pool) failHeads(m *member) (any bool) {
	for rank := range q.engine.DPSize {
		if m.outside[rank] > 0 || m.g.Running(rank) > 0 && !m.g.Out(rank).Stuck {
			return false
		}
	}
	for rank := range q.engine.DPSize {
		any = q.failHead(m, rank) || any
	}
	return any
}

func (q *pool) failHead(m *member, rank int) bool {
	_, tag, ok := m.g.FailHead(rank)
	if ok {
		m.load--
		h := &q.pools.handoffs
		h.facts(m.g.Effects(rank).Lifecycle)
		h.refused(int32(tag), stretch.Failed)
	}
	return ok
}

// judge fails a request that keeps a speculating rank from ever giving anybody a
// token (stretch.Circling).
func (q *pool) judge(m *member, rank int, out *engine.Out) {
	if len(out.Outputs) > 0 {
		m.fruitless[rank] = 0
		return
	}
	if len(out.Pressure) == 0 {
		return
	}
	m.fruitless[rank]++
	if m.g.Running(rank) == 0 && m.outside[rank] == 0 || m.fruitless[rank] >= stretch.Circling {
		m.fruitless[rank] = 0
		q.failHead(m, rank)
	}
}

func (q *pool) shareAnswers(c *timing.Cache) {
	if !external(q.engine) {
		return
	}
	for _, m := range q.members {
		m.g.ShareAnswers(c)
	}
}

func (q *pool) preemptions() int64 {
	n := q.gone
	for _, m := range q.members {
		if m != nil {
			n += m.preemptions()
		}
	}
	return n
}

func (m *member) preemptions() int64 {
	if m.pool.engine.Backend == config.SGLang {
		return m.retracted // its metrics do not count them (corrections §13)
	}
	n := 0
	for rank := range m.pool.engine.DPSize {
		n += m.g.Preemptions(rank)
	}
	return int64(n)
}
