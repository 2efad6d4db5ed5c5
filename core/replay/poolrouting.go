package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/timing"
)

// derived is the routing of one of two pools: with the router that the reference
// derives for it.
func derived(r config.Routing, x config.Router) config.Routing {
	r.Router = &x
	r.AskLoad = r.AskLoad && x.LoadModel != config.NoLoadModel
	return r
}

// route puts a pool behind a KV router.
func (q *pool) route(r config.Routing, seats []router.Seat, answers *timing.Cache) {
	q.kv = newRouting(r, q.engine, q.pools.sim.load, len(q.members), seats, nil)
	if answers != nil {
		q.kv.predict.Share(answers)
	}
}

// seek asks the router where a request goes. handoffs.send takes it there, now or
// when the router has placed it.
func (q *pool) seek(turn int32, tokens []uint32) router.Handle {
	h, fault := q.kv.router.Place(q.kv.request(turn, uint32(turn), tokens), q.pools.sim.books.nowMs)
	q.told(fault)
	return h
}

// told takes what the router made of a call: the requests that it has placed. If
// it asks how long a prompt takes and nobody has answered yet, that waits, and so
// does everything else: told is called again then.
func (q *pool) told(fault router.Fault) {
	s := q.pools.sim
	q.waits = false
	for fault.OK() {
		x, asks := q.kv.router.Asks()
		if !asks {
			break
		}
		ms := q.kv.predict.Prefill(1, x.Tokens+x.Prefix, x.Prefix)
		if ms == timing.Unknown {
			q.waits = true
			return
		}
		fault = q.kv.router.Answer(router.Nanos(ms), true)
	}
	if !fault.OK() {
		s.dead = true
		s.fault = Fault{InFlight: s.books.inFlight(), NowMs: s.books.nowMs, Router: fault}
		return
	}
	for _, p := range q.kv.router.Placed() {
		if q.fleet != nil {
			s.control.routed(q.fleet, int32(p.Tag), p.OverlapBlocks)
		}
		q.pools.handoffs.send(q, int32(p.Tag), place{worker: int32(p.Worker), rank: int32(p.Rank)},
			Route{p.Waited, p.EnteredMs, p.ReleasedMs, int32(p.OverlapBlocks), int32(p.BestBlocks)})
	}
	if q.fleet != nil {
		q.fleet.freed = -1
	}
}

// goOn is told once more if the router had to wait. False: it still has to.
func (q *pool) goOn() bool {
	if q.waits {
		q.told(router.Fault{})
	}
	return !q.waits
}

// publish tells the router what the caches of a rank have stored and removed.
// Those of workers that decode are no matter.
func (q *pool) publish(m *member, rank int, events []engine.KVEvent, blocks []engine.KVBlock) {
	if q.kv == nil || q != &q.pools.prefill {
		return
	}
	for i := range events {
		q.told(q.kv.apply(m.id, rank, &events[i], blocks, q.pools.sim.books.nowMs))
	}
}

// publishCommand is publish for what the last command of a rank has said. During
// a pass that is said at its end.
func (q *pool) publishCommand(m *member, rank int) {
	if !m.flying {
		x := m.g.Effects(rank)
		q.publish(m, rank, x.KVEvents, x.KVBlocks)
	}
}

// computed tells the router that a prompt has been computed.
func (q *pool) computed(ticket router.Handle) {
	if q.kv != nil {
		q.told(q.kv.router.PrefillDone(ticket, q.pools.sim.books.nowMs))
	}
}

// leave tells the router that a request is gone.
func (q *pool) leave(ticket *router.Handle) {
	if q.kv != nil && *ticket != 0 {
		h := *ticket
		*ticket = 0
		q.told(q.kv.router.Free(h, q.pools.sim.books.nowMs))
	}
}
