package replay

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/stretch"
)

// handoffs takes every request of a disaggregated run from its arrival to its
// end. vLLM and TensorRT-LLM compute the prompt first and then look for a
// worker that decodes; SGLang reserves room there first. One action of a request
// is under way at a time; each waits for its turn in one queue (replay notes
// §6.3, corrections §1, §5 and §7).
type handoffs struct {
	pools     *pools
	slots     []handoff
	free      []int32
	begun     int32
	at        []int32 // by turn: its slot, for routers
	reserves  bool    // before the prompt is computed
	transfer  config.Transfer
	actions   []action
	done      int      // actions that are done
	stalled   []action // in order: for their pools no worker is active
	joined    bool     // one has become active since
	transfers heap     // under way: by end, then by request; turn is the slot
	links     links    // instead, where they share bandwidth
	spell     speller
}

// action is what a handoff does next.
type action struct {
	kind actionKind
	slot int32
}

type actionKind uint8

const (
	submit actionKind = iota
	reserve
	startTransfer
	activate
	release
	giveUp // a request that will not be served
	cancel // what is left of it
)

// handoff is a request under way.
type handoff struct {
	turn     int32
	ordinal  int32 // of the arrival
	source   place // of the prompt
	target   place
	tickets  [2]router.Handle // of the routers, the one of prompts first; 0: none
	held     bool
	asked    bool // a destination is pending or reserved
	reserved bool
	missing  int32 // tokens the destination lacks
	waits    bool  // an action is queued or deferred, or a transfer under way
	ended    bool
	fate     stretch.Fate
	record   int32 // its number, -1: none

	times    []float64 // of its tokens
	admits   []Admission
	prefills int32 // of admits, those by the source
	most     int32 // reused tokens of these
	decoded  int32 // of the others; -1: none
	told     Handoff
}

func (h *handoffs) init(p *pools) {
	s := p.sim
	h.pools, h.reserves, h.transfer = p, s.cfg.Engine.Backend == config.SGLang, s.cfg.Prefill.Engine.Transfer
	h.links = links{sharing: s.cfg.Sharing, perNode: int32(s.cfg.PrefillPerNode)}
	h.spell = speller{load: s.load, numbers: s.numbers, talk: s.talk, traceSize: s.cfg.TraceBlockSize}
}

// begin takes a request that arrives.
func (h *handoffs) begin(turn int32) {
	if len(h.free) == 0 {
		h.free = append(h.free, int32(len(h.slots)))
		h.slots = append(h.slots, handoff{})
	}
	slot := h.free[len(h.free)-1]
	h.free = h.free[:len(h.free)-1]
	r := &h.slots[slot]
	nan := math.NaN()
	*r = handoff{
		turn: turn, ordinal: h.begun, record: -1, decoded: -1, times: r.times[:0], admits: r.admits[:0],
		told: Handoff{
			PrefillScheduler: -1, DecodeScheduler: -1, DecodeReused: -1, DecodeFirst: h.reserves,
			PrefillAdmitMs: nan, HeldMs: nan, ReservedMs: nan, ActivatedMs: nan, DecodeAdmitMs: nan, ReleasedMs: nan,
		},
	}
	h.begun++
	for int(turn) >= len(h.at) {
		h.at = append(h.at, 0)
	}
	h.at[turn] = slot
	if h.reserves {
		h.push(reserve, slot)
	} else {
		h.push(submit, slot)
	}
}

// push queues an action.
func (h *handoffs) push(kind actionKind, slot int32) {
	h.slots[slot].waits = true
	h.actions = append(h.actions, action{kind, slot})
}

// resume queues what waited on a rank for the end of its worker's pass.
func (h *handoffs) resume(m *member, rank int) {
	h.actions = append(h.actions, m.deferred[rank]...)
	m.deferred[rank] = m.deferred[rank][:0]
}

// act does what is queued, and what comes of it. False: a router has to wait;
// it is called again to go on. What no worker is there for waits until one is,
// and then comes before what is queued.
func (h *handoffs) act() bool {
	if h.joined {
		h.joined = false
		h.actions = slices.Insert(h.actions, h.done, h.stalled...)
		h.stalled = h.stalled[:0]
	}
	for h.done < len(h.actions) {
		a := h.actions[h.done]
		h.done++
		if a.kind == submit && len(h.pools.prefill.active) == 0 || a.kind == reserve && len(h.pools.decode.active) == 0 {
			h.stalled = append(h.stalled, a)
			continue
		}
		h.do(a)
		h.pools.moved = true
		if h.pools.prefill.waits || h.pools.sim.dead {
			return false
		}
	}
	h.actions, h.done = h.actions[:0], 0
	return true
}

// do does an action, or lets it wait for the end of the worker's pass.
func (h *handoffs) do(a action) {
	r := &h.slots[a.slot]
	r.waits = false
	switch a.kind {
	case submit:
		h.submit(r, a.slot)
	case reserve:
		h.reserve(r, a.slot)
	case startTransfer:
		h.start(r, a.slot)
	case activate:
		q := &h.pools.decode
		m := q.members[r.target.worker]
		if h.wait(m, r.target.rank, a) {
			return
		}
		m.g.Activate(int(r.target.rank), r.target.handle)
		m.outside[r.target.rank]--
		r.told.ActivatedMs = h.pools.sim.books.nowMs
		h.tell(r, ServingPool, r.target, Activated, 0)
		h.after(q, m, r.target.rank)
		h.push(release, a.slot)
	case release:
		q := &h.pools.prefill
		m := q.members[r.source.worker]
		if h.wait(m, r.source.rank, a) {
			return
		}
		m.g.ReleaseSource(int(r.source.rank), r.source.handle)
		m.load--
		m.outside[r.source.rank]--
		r.told.ReleasedMs = h.pools.sim.books.nowMs
		h.after(q, m, r.source.rank)
		q.leave(&r.tickets[0])
		h.close(r, a.slot)
	case giveUp:
		h.end(r)
		h.cancel(r, a)
	case cancel:
		h.cancel(r, a)
	}
}

// wait defers an action on a rank of a worker whose pass is under way.
func (h *handoffs) wait(m *member, rank int32, a action) bool {
	if m.flying {
		h.slots[a.slot].waits = true
		m.deferred[rank] = append(m.deferred[rank], a)
	}
	return m.flying
}

// after takes what a command said besides.
func (h *handoffs) after(q *pool, m *member, rank int32) {
	h.facts(m.g.Effects(int(rank)).Lifecycle)
	q.publishCommand(m, int(rank))
	m.gauge(rank)
	q.wake(m)
}

// request spells a request.
func (h *handoffs) request(r *handoff, slot int32) engine.Request {
	q := engine.Request{UUID: turnID(r.turn), Tag: uint32(slot), MaxOutput: int(h.spell.load.Turns[r.turn].Output)}
	q.Tokens, q.OutputIDs = h.spell.spell(r.turn)
	return q
}

// submit sends the prompt to a worker that computes it.
func (h *handoffs) submit(r *handoff, slot int32) {
	q := &h.pools.prefill
	if q.kv != nil {
		r.tickets[0] = q.seek(r.turn, h.request(r, slot).Tokens)
		return
	}
	r.source = q.pick()
	h.compute(r, slot)
}

// reserve sends the prompt to a worker that decodes.
func (h *handoffs) reserve(r *handoff, slot int32) {
	q := &h.pools.decode
	if q.kv != nil {
		r.tickets[1] = q.seek(r.turn, h.request(r, slot).Tokens)
		return
	}
	r.target = q.pick()
	h.makeRoom(r, slot)
}

// send takes a turn to where a router has placed it.
func (h *handoffs) send(q *pool, turn int32, to place, route Route) {
	slot := h.at[turn]
	r := &h.slots[slot]
	r.told.Routed = true
	if q == &h.pools.prefill {
		r.source, r.told.PrefillRoute = to, route
		h.compute(r, slot)
	} else {
		r.target, r.told.DecodeRoute = to, route
		h.makeRoom(r, slot)
	}
}

// compute gives the prompt to the worker that computes it: one token of output
// at most, which nobody sees (engine notes §13).
func (h *handoffs) compute(r *handoff, slot int32) {
	q := &h.pools.prefill
	request := h.request(r, slot)
	request.MaxOutput = min(request.MaxOutput, 1)
	request.OutputIDs = request.OutputIDs[:min(len(request.OutputIDs), 1)]
	m := q.members[r.source.worker]
	r.source.handle, _ = m.g.SubmitPrefill(int(r.source.rank), request) // the UUID is new and the output is not negative
	r.told.PrefillScheduler = q.scheduler(r.source)
	m.load++
	m.gauge(r.source.rank)
	q.wake(m)
}

// makeRoom asks the worker that decodes for room for the prompt.
func (h *handoffs) makeRoom(r *handoff, slot int32) {
	q := &h.pools.decode
	r.told.DecodeScheduler = q.scheduler(r.target)
	m := q.members[r.target.worker]
	handle, code := m.g.Reserve(int(r.target.rank), h.request(r, slot))
	if code != engine.Applied {
		h.refused(slot, stretch.Failed)
		return
	}
	r.target.handle, r.asked = handle, true
	m.load++
	h.after(q, m, r.target.rank)
}

// facts takes what ranks say of handoffs.
func (h *handoffs) facts(list []engine.Lifecycle) {
	for i := range list {
		f := &list[i]
		slot := int32(f.Tag)
		r := &h.slots[slot]
		if f.Kind == engine.SourceHeld {
			r.held, r.told.HeldMs = true, h.pools.sim.books.nowMs
			h.tell(r, PrefillPool, r.source, Held, 0)
			h.pools.prefill.members[r.source.worker].outside[r.source.rank]++
		} else {
			r.reserved, r.told.ReservedMs, r.missing = true, h.pools.sim.books.nowMs, int32(f.Tokens)
			h.pools.decode.members[r.target.worker].outside[r.target.rank]++
		}
		switch {
		case r.held && r.reserved:
			h.push(startTransfer, slot)
		case r.held:
			h.push(reserve, slot)
		default:
			h.push(submit, slot)
		}
	}
}

// refused takes a request that will not be served: no worker takes its prompt,
// or it was given up.
func (h *handoffs) refused(slot int32, fate stretch.Fate) {
	r := &h.slots[slot]
	r.fate = fate
	if !math.IsNaN(r.told.ActivatedMs) { // only its source is left
		h.end(r)
		h.close(r, slot)
		return
	}
	h.push(giveUp, slot)
}

// cancel gives up what a request still has of a worker, at the end of its pass if
// one is under way. The request has ended by then.
func (h *handoffs) cancel(r *handoff, a action) {
	a.kind = cancel
	switch {
	case r.held:
		q := &h.pools.prefill
		m := q.members[r.source.worker]
		if h.wait(m, r.source.rank, a) {
			return
		}
		m.g.CancelSource(int(r.source.rank), r.source.handle)
		m.load--
		m.outside[r.source.rank]--
		h.after(q, m, r.source.rank)
	case r.asked:
		q := &h.pools.decode
		m := q.members[r.target.worker]
		if h.wait(m, r.target.rank, a) {
			return
		}
		m.g.CancelDestination(int(r.target.rank), r.target.handle)
		m.load--
		if r.reserved {
			m.outside[r.target.rank]--
		}
		h.after(q, m, r.target.rank)
	}
	h.pools.prefill.leave(&r.tickets[0])
	h.close(r, a.slot)
}
