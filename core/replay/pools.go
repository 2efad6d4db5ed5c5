package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
)

// pools is the event loop of a disaggregated run: the workers of one pool
// compute prompts and hand them over to those of another, which generate. It
// shares the clock, the arrivals and the accounts of its Sim.
//
// Events of one timestamp happen in rounds, until one changes nothing: passes
// end, those of prompts first, by worker; transfers end; what handoffs have to
// do is done in the order in which it came up; requests arrive; idle workers
// are passed, those of prompts first (replay notes §6.4, corrections §3 and
// §7). So the first action of a request comes a round after its arrival.
type pools struct {
	sim      *Sim
	prefill  pool
	decode   pool
	handoffs handoffs
	busy     heap    // passes under way: by end, then by pool and worker
	landing  *member // whose pass has ended and is being told; nil: none
	stage    stage   // of the round at the present timestamp
	moved    bool    // something happened in it
	begun    int64   // passes
}

// stage is a part of a round.
type stage uint8

const (
	settled stage = iota // nothing is left to do at this timestamp
	receiving
	acting
	arriving
	prefilling
	decoding
	attending // to workers that come and go, and to samples
)

// decodeBit stands before the number of a worker that decodes, in the heap of
// passes: passes that end together end by pool, then by worker.
const decodeBit = 1 << 30

func newPools(s *Sim, o Options, streaming bool) *pools {
	s.arrivals.init(s.cfg, s.load, streaming)
	s.books.init(s.cfg, s.load, true)
	p := &pools{sim: s}
	p.prefill.init(p, PrefillPool, s.cfg.Prefill.Engine, s.cfg.Prefill.Workers)
	p.decode.init(p, ServingPool, s.cfg.Engine, s.cfg.NumWorkers)
	p.handoffs.init(p)
	s.books.prefillers = float64(s.cfg.Prefill.Workers)
	if external(s.cfg.Prefill.Engine) || external(s.cfg.Engine) || s.cfg.Routing.AskLoad {
		s.answers = timing.NewCache()
		p.prefill.shareAnswers(s.answers)
		p.decode.shareAnswers(s.answers)
	}
	if s.cfg.Routing.Mode == config.KVRouter {
		r := s.cfg.Routing
		p.prefill.route(derived(r, r.Router.ForPrefill()), o.Seats, s.answers)
		p.decode.route(derived(r, r.Router.ForDecode()), o.DecodeSeats, nil)
	}
	if c := s.control; c != nil {
		p.prefill.fleet = c.enroll(PrefillPool, squad{&p.prefill}, s.cfg.Scaling.PrefillStartupMs, s.cfg.Prefill.Workers)
		p.decode.fleet = c.enroll(ServingPool, squad{&p.decode}, s.cfg.Scaling.StartupMs, s.cfg.NumWorkers)
	}
	return p
}

// step is Sim.Step.
func (p *pools) step(budget int) Status {
	s := p.sim
	for budget > 0 {
		if s.dead {
			return Stuck
		}
		if s.unanswered() {
			return NeedTiming
		}
		if s.arrivals.owed > 0 {
			return Idle
		}
		if s.undecided() {
			return s.waits()
		}
		if p.stage != settled {
			budget -= p.settle() // goes on where it stopped
			continue
		}
		t := p.next()
		if s.arrivals.streaming && t >= s.arrivals.horizonMs {
			return Idle
		}
		if math.IsInf(t, 1) {
			return s.finish()
		}
		if t > s.capMs {
			return s.end(Done)
		}
		s.books.tick(t)
		p.stage, p.moved = receiving, false
		budget -= p.settle()
	}
	return s.paused()
}

// next is the time of the next event in ms, +Inf if there is none.
func (p *pools) next() float64 {
	t := min(p.sim.arrivals.next(), p.nextEnd())
	if p.sim.control != nil {
		t = p.sim.control.next(t)
	}
	return t
}

// nextEnd is when the next pass or transfer ends, +Inf if none is under way.
func (p *pools) nextEnd() float64 {
	t := p.handoffs.nextMs()
	if len(p.busy) > 0 {
		t = min(t, p.busy[0].atMs)
	}
	return t
}

// quiet reports whether no pass and no transfer is under way and no action waits.
func (p *pools) quiet() bool {
	return math.IsInf(p.nextEnd(), 1) && len(p.handoffs.actions) == 0
}

// settle does everything that happens at the current timestamp, or as much as
// it can before a duration is asked for, a session is fed or a worker spins too
// long. It returns how many events that were: the timestamp and the passes.
func (p *pools) settle() int {
	before := p.begun
	for p.stage != settled && p.round() {
	}
	return 1 + int(p.begun-before)
}

// round does the present stage of the round. False: it is not at its end yet.
func (p *pools) round() bool {
	s := p.sim
	if s.dead || !p.prefill.goOn() {
		return false
	}
	switch p.stage {
	case receiving:
		if !p.receive() {
			return false
		}
	case acting:
		if !p.handoffs.act() {
			return false
		}
	case arriving:
		if a := s.arrivals.agents; a != nil {
			a.flush(s.books.nowMs)
		}
		if s.arrivals.owed > 0 {
			return false
		}
		p.arrive()
	case prefilling:
		if !p.prefill.drive() {
			return false
		}
	case decoding:
		if !p.decode.drive() {
			return false
		}
		if s.control == nil {
			p.again(false)
			return true
		}
	case attending:
		more := s.control.attend(!p.moved)
		p.again(more || s.control.again)
		return !s.control.asked && !s.control.again
	}
	p.stage++
	return true
}

// again begins another round at this timestamp if it is called for, or if
// something happened in this one.
func (p *pools) again(more bool) {
	p.stage = receiving
	if !p.moved && !more {
		p.stage = settled
	}
	p.moved = false
}

// receive ends the passes and the transfers that end now. False: it is called
// again to go on.
func (p *pools) receive() bool {
	nowMs := p.sim.books.nowMs
	for p.landing != nil || len(p.busy) > 0 && p.busy[0].atMs == nowMs {
		if p.landing == nil {
			id := p.busy.pop().id
			q := &p.prefill
			if id >= decodeBit {
				q, id = &p.decode, id-decodeBit
			}
			p.landing = q.members[id]
			p.landing.flying = false
		}
		m := p.landing
		if !m.pool.land(m, nowMs) {
			return false
		}
		p.landing = nil
		m.pool.wake(m)
		p.moved = true
	}
	if p.sim.control != nil && !p.sim.control.ready() {
		return false
	}
	if p.handoffs.arrived() {
		p.moved = true
	}
	return true
}

// arrive takes the requests that are due.
func (p *pools) arrive() {
	s := p.sim
	for {
		turn, atMs, ok := s.arrivals.pop(s.books.nowMs)
		if !ok {
			return
		}
		s.books.arrive(turn, atMs)
		p.handoffs.begin(turn)
		p.moved = true
	}
}

// question is what a pass or a router waits for.
func (p *pools) question() (q timing.Query, ask bool) {
	if p.prefill.waits {
		return p.prefill.kv.question()
	}
	for _, pool := range [2]*pool{&p.prefill, &p.decode} {
		if pool.asking != nil {
			return pool.asking.g.Ask()
		}
	}
	return q, false
}

func (p *pools) preemptions() int64 { return p.prefill.preemptions() + p.decode.preemptions() }

// external reports whether an outside provider says how long passes take.
func external(e config.Engine) bool { return e.Timing.Kind == config.External }
