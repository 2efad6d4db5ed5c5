package router

import (
	"math"

	"github.com/dryserve/dryserve/core/active"
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/queue"
)

// Place brings a request. Unless it waits, it stands in Placed after the call,
// or Asks has a question about it. The handle is 0 if there is a Fault.
func (r *Router) Place(q Request, nowMs float64) (Handle, Fault) {
	if f := r.at(nowMs); !f.OK() {
		return 0, f
	}
	tokens := uint64(max(q.Tokens, 0))
	found := r.lookUp(&q)
	cached := uint64(0)
	if r.sorts {
		cached = r.bestCached(found)
	}
	class := r.policy.Class(q.Class, tokens-min(cached, tokens))
	waits := r.policy.Classes[class].Waits() && (r.queue.ClassLen(int32(class)) > 0 || r.allBusy(class))
	if !waits && len(r.order) == 0 {
		return 0, Fault{Code: NoWorkers}
	}
	h := r.newRequest()
	x := &r.requests[h]
	x.tag, x.tokens, x.class, x.cameMs = q.Tag, tokens, int32(class), nowMs
	if waits {
		item, full := r.queue.Push(queue.Request{
			Tag: int32(h), Class: int32(class), Tokens: tokens, Cached: cached,
			Jump: q.Priority, Strict: q.Strict, Secs: nowMs / 1000,
		}, r.ranks)
		if full.Limit != queue.Free {
			r.forget(h)
			return 0, Fault{Code: QueueFull, Full: full}
		}
		x.state, x.waited, x.item = waiting, true, item
		r.keep(x, q.Sequence, found)
		return h, Fault{}
	}
	if f := r.admit(h, q.Sequence, found); !f.OK() {
		r.forget(h)
		return 0, f
	}
	return h, Fault{}
}

// keep copies what a request needs later.
func (r *Router) keep(x *request, sequence []uint64, found []found) {
	x.found = append(x.found[:0], found...)
	x.sequence = append(x.sequence[:0], sequence...)
}

// PrefillDone says that the prompt of a request has been computed. Requests
// that wait may be placed.
func (r *Router) PrefillDone(h Handle, nowMs float64) Fault {
	if f := r.at(nowMs); !f.OK() {
		return f
	}
	if r.requests[h].state == booked {
		r.load.PrefillDone(r.requests[h].booking, r.nowNs)
	}
	return r.drain()
}

// Free says that a placed request has ended, however far it came. Requests that
// wait may be placed.
func (r *Router) Free(h Handle, nowMs float64) Fault {
	if f := r.at(nowMs); !f.OK() {
		return f
	}
	if r.requests[h].state == booked {
		r.load.Free(r.requests[h].booking, r.nowNs)
	}
	if s := r.requests[h].state; s == booked || s == homeless {
		r.forget(h)
	}
	return r.drain()
}

// Cancel takes a request out of the queue and reports whether it was there.
func (r *Router) Cancel(h Handle) bool {
	if r.requests[h].state != waiting {
		return false
	}
	r.queue.Remove(r.requests[h].item)
	r.forget(h)
	return true
}

// Query asks how long a prompt takes of which Tokens are computed behind Prefix
// tokens that are cached.
type Query struct {
	Tokens, Prefix int
}

// Asks is the question that must be answered before anything else.
func (r *Router) Asks() (Query, bool) {
	if r.asking == 0 {
		return Query{}, false
	}
	x := &r.requests[r.asking]
	return Query{Tokens: int(x.load.Tokens), Prefix: int(x.tokens - x.load.Tokens)}, true
}

// Answer answers the question with a duration in ns, or, if ok is false, with
// that nothing is known. Placed goes on with what it had.
func (r *Router) Answer(ns uint64, ok bool) Fault {
	h := r.asking
	r.asking = 0
	x := &r.requests[h]
	if x.load.Ns = active.Unknown; ok {
		x.load.Ns = min(ns, active.Unknown-1)
	}
	r.book(h, x.sequence)
	if r.draining {
		return r.drain()
	}
	return Fault{}
}

// drain places requests that wait, while there is a class of which not all
// workers are busy.
func (r *Router) drain() Fault {
	r.draining = true
	for r.queue.Len() > 0 {
		for class := range r.scratch.blocked {
			r.scratch.blocked[class] = r.queue.ClassLen(int32(class)) > 0 && r.allBusy(class)
		}
		item, ok := r.queue.Pop(r.scratch.blocked)
		if !ok {
			break
		}
		h := Handle(item.Tag)
		x := &r.requests[h]
		if f := r.admit(h, x.sequence, x.found); !f.OK() {
			r.forget(h)
			r.draining = false
			return f
		}
		if r.asking != 0 {
			return Fault{} // Answer goes on
		}
	}
	r.draining = false
	return Fault{}
}

// allBusy reports whether every rank that serves has more prompt work than a
// class allows.
func (r *Router) allBusy(class int) bool {
	c := &r.policy.Classes[class]
	for _, id := range r.order {
		w := &r.workers[id]
		for slot := w.first; slot < w.first+w.ranks; slot++ {
			if !busy(c, r.load.Tokens(active.Slot(slot), r.nowNs), w.budget) {
				return false
			}
		}
	}
	return true
}

// busy reports whether a rank with so much prompt work is busy for a class.
func busy(c *config.PolicyClass, tokens, budget uint64) bool {
	return c.BusyTokens != config.NoLimit && tokens > uint64(c.BusyTokens) ||
		c.BusyFraction >= 0 && float64(tokens) > float64(c.BusyFraction*float64(budget))
}

// admit chooses a rank for a request and books it there, or asks first.
func (r *Router) admit(h Handle, sequence []uint64, found []found) Fault {
	x := &r.requests[h]
	r.project(sequence, x.tokens, found)
	p := newPricing(&r.Config, r.BlockSize, x.tokens, r.scratch.candidates)
	p.decode = r.Decode
	costs := r.scratch.costs[:0]
	best := 0.0
	for i := range r.scratch.candidates {
		c := &r.scratch.candidates[i]
		costs = append(costs, p.price(c))
		best = max(best, math.Round(c.hits.effective(&r.Config)))
	}
	r.scratch.costs = costs
	k, f := r.choose(x.tag, costs)
	if !f.OK() {
		return f
	}
	c := &r.scratch.candidates[k]
	x.placement = Placement{
		Request: h, Tag: x.tag, Worker: int(c.worker), Rank: int(c.rank),
		Waited: x.waited, EnteredMs: x.cameMs, ReleasedMs: r.nowMs,
		OverlapBlocks: int(math.Round(c.hits.effective(&r.Config))), BestBlocks: int(best),
	}
	x.load = active.Load{Ns: active.Unknown}
	if r.Config.TrackPrefillTokens {
		x.load.Tokens = x.tokens - min(c.hits.cached(&r.Config, r.BlockSize), x.tokens)
	}
	if r.Predicts && r.Config.LoadModel != config.NoLoadModel && x.load.Tokens > 0 {
		x.state = asked
		x.sequence = append(x.sequence[:0], sequence...)
		r.asking = h
		return Fault{}
	}
	r.book(h, sequence)
	return Fault{}
}

// book lets a request count on the rank that was chosen.
func (r *Router) book(h Handle, sequence []uint64) {
	x := &r.requests[h]
	slot, _ := r.slot(x.placement.Worker, x.placement.Rank)
	alone := 0
	if !r.Config.TrackActiveBlocks {
		sequence = nil
	} else if !r.Config.AssumeKVReuse {
		sequence, alone = nil, int(x.tokens)/r.BlockSize
	}
	x.booking = r.load.Add(active.Slot(slot), sequence, alone, x.load, r.nowNs)
	x.state = booked
	r.placed = append(r.placed, x.placement)
}
