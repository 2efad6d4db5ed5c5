package replay

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/stretch"
)

// tell records a step of a request.
func (h *handoffs) tell(r *handoff, pool PoolID, at place, kind EventKind, tokens int32) {
	s := h.pools.sim
	s.tape.step(Event{AtMs: s.books.nowMs, Turn: r.turn, Worker: at.worker, Rank: at.rank, Pool: pool, Kind: kind, Tokens: tokens})
}

func (h *handoffs) turnOf(tag uint32) int32 { return h.slots[tag].turn }

func (h *handoffs) timesOf(_ int, o *engine.Output) []float64 { return h.slots[o.Tag].times }

// admitted notes that a pass that begins now has admitted a request.
func (h *handoffs) admitted(slot int32, bySource bool, reused int) {
	r := &h.slots[slot]
	nowMs := h.pools.sim.books.nowMs
	r.admits = append(r.admits, Admission{nowMs, int32(reused)})
	if bySource {
		if r.prefills++; r.prefills == 1 {
			r.told.PrefillAdmitMs = nowMs
		}
		r.most = max(r.most, int32(reused))
		return
	}
	if r.decoded < 0 {
		r.told.DecodeAdmitMs = nowMs
	}
	r.decoded = max(r.decoded, int32(reused))
}

// generated takes an output of a worker that decodes.
func (h *handoffs) generated(o *engine.Output) {
	r := &h.slots[o.Tag]
	if o.HasToken {
		r.times = append(r.times, h.pools.sim.books.nowMs)
	}
	if o.Rejected {
		r.fate = stretch.Rejected
	}
	if o.Completed {
		h.end(r)
		h.close(r, int32(o.Tag))
	}
}

// end books a request that ends now.
func (h *handoffs) end(r *handoff) {
	s := h.pools.sim
	b := &s.books
	r.ended = true
	h.pools.decode.leave(&r.tickets[1])
	at := place{worker: -1, rank: -1}
	if r.asked {
		at = r.target
	}
	result := stretch.Result{Turn: r.turn, Rank: at.rank, Admits: int32(len(r.admits)), Emitted: int32(len(r.times)), Fate: r.fate}
	var again []Admission
	if len(r.admits) > 0 {
		result.AdmitMs, result.Reused, again = r.admits[0].AtMs, r.admits[0].Reused, r.admits[1:]
	}
	result.Most = max(r.most, r.decoded)
	b.account(at.worker, result, r.times, again, b.nowMs)
	if s.cfg.CaptureRequests {
		r.record = int32(len(b.records)) - 1
		rec := &b.records[r.record]
		rec.ReusedTokens = r.most
		if rec.Worker = -1; r.asked {
			rec.Worker = r.told.DecodeScheduler
		}
		r.told.PrefillAdmits, r.told.DecodeReused = r.prefills, r.decoded
		b.handoffs = append(b.handoffs, r.told)
	}
	if s.talk != nil {
		s.talk.heard(r.turn, result.Emitted)
	}
	s.arrivals.feedback(r.turn, r.fate, b.nowMs)
}

// close forgets a request once nothing of it is left.
func (h *handoffs) close(r *handoff, slot int32) {
	if !r.ended || r.waits {
		return
	}
	if r.record >= 0 {
		h.pools.sim.books.handoffs[r.record].ReleasedMs = r.told.ReleasedMs
	}
	h.pools.sim.arrivals.settled(r.turn)
	h.free = append(h.free, slot)
}
