// Package router is the KV router: it sends each request to the rank where it
// costs least, by what the ranks' caches hold and by what they are busy with.
//
// It owns the composition: the picture of the caches (core/kvindex), of the
// load (core/active) and the queue of requests that wait for a rank that is not
// busy (core/queue); the cost of a rank; the lot among equals; the workers that
// are there. It does not own engines, arrivals or the clock: its caller says
// what happened and when, in the order it happened.
//
// A Router is a value that is stepped. Place brings a request; it is placed in
// that call or waits. PrefillDone and Free say how far it is, Apply what caches
// have stored and removed, AddWorker, Drain and RemoveWorker who serves, Settle
// that the workers have changed. What is placed by a call stands in Placed
// until the next one. A router that predicts how long prompts take may stop in
// the middle of such a call: while Asks has a question, Answer is the only call
// that may follow, and goes on.
//
// Invariants:
//   - a request that was brought waits, is being asked about, or is booked at
//     a slot; its handle is valid until Free, or Cancel while it waits.
//   - the candidates are the workers that neither drain nor are gone, in
//     ascending order of their numbers, and the ranks of each.
//   - equal calls give equal answers: lots are drawn from one seeded stream.
//   - a warm router places, completes, and learns of blocks without
//     allocating.
//
// Source: router notes §4, §6, §8.
package router

import (
	"github.com/dryserve/dryserve/core/active"
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/fmath"
	"github.com/dryserve/dryserve/core/kvindex"
	"github.com/dryserve/dryserve/core/queue"
	"github.com/dryserve/dryserve/core/rng"
)

// CanonicalSeed seeds the lots where nothing else is said; it is the seed of
// the reference's canonical mode (router notes §4.4).
const CanonicalSeed = config.CanonicalSeed

// Params is what a router is made of.
type Params struct {
	Config    config.Router // checked, and its Policy as well
	BlockSize int           // tokens
	Seed      uint64        // of lots, CanonicalSeed if nothing is said
	LagMs     float64       // how late events of the caches are believed

	// Predicts: an outside model knows how long prompts take, see Asks. It
	// matters only if the configuration has a load model.
	Predicts bool
	// Decode: a live pool of workers that decode. Where prompt work is not
	// tracked its costs are those of blocks alone (router notes §4.2).
	Decode bool

	// Paths, if not nil, knows what the ranks' caches hold, by paths of the prefix
	// tree; its caller keeps it, and there are no events. Slots are the ranks in
	// the order of AddWorker.
	Paths *coverage.Index

	// Seats are, by tag, where requests went in a run that this one is compared
	// with, whose lots are not known. nil: there is none.
	Seats []Seat
}

// Handle names a request inside a router: small, above 0.
type Handle int32

// Router is the state. Take it from New.
type Router struct {
	Params
	policy config.RouterPolicy
	sorts  bool // it matters for the class, or in the queue, what is cached

	index *kvindex.Index
	tiers *kvindex.Tiers
	load  *active.Tracker
	queue *queue.Queue
	lots  rng.Wyrand
	fed   bool // the caches have said something
	below bool // some of it about lower tiers

	workers []worker // by number
	order   []int32  // those that are candidates, ascending
	ranks   int      // of these
	slots   slots
	serving []bool // by slot: it belongs to a candidate

	requests []request
	free     Handle // linked through item, 0: none
	asking   Handle
	draining bool // Answer goes on with those that wait
	nowMs    float64
	nowNs    uint64

	late    late
	placed  []Placement
	scratch scratch
}

// request is a request from Place to Free.
type request struct {
	tag    uint32
	tokens uint64
	state  state
	class  int32

	sequence  []uint64 // kept while it waits or is asked about
	found     []found  // what ranks have of its prompt, kept likewise
	cameMs    float64
	waited    bool
	item      queue.Item
	booking   active.Booking
	placement Placement // while it is asked about
	load      active.Load
}

type state uint8

const (
	unknown state = iota // a free handle
	waiting
	asked
	booked
	homeless // its worker is gone
)

// found is what a slot has of a prompt.
type found struct {
	slot kvindex.Slot
	hits hits
}

// Request is what Place is told. Locals and Sequence are the local and the
// sequence hashes of the prompt's complete blocks (core/seq); the router copies
// what it keeps. They may be nil where the configuration has no use for them.
type Request struct {
	Tag      uint32   // echoed in the Placement
	Tokens   int      // of the prompt
	Leaf     int32    // with Paths, instead of Locals: the end of its path
	Blocks   int32    // and its complete blocks
	Locals   []uint64 // what the caches are asked for
	Sequence []uint64 // what the load is tracked by
	Class    config.ClassRequest
	Priority float64 // above 0: served earlier (router notes §6.2)
	Strict   uint32  // served before all that have less
}

// Placement says where a request goes.
type Placement struct {
	Request Handle
	Tag     uint32
	Worker  int
	Rank    int

	Waited     bool    // in the queue, since EnteredMs
	EnteredMs  float64 // when it came
	ReleasedMs float64 // when it was placed

	// In blocks on the device or worth as much, rounded: what the rank has of
	// the prompt, and what the best worker had. They are what the router
	// believed when the request came.
	OverlapBlocks int
	BestBlocks    int
}

// scratch is what placing one request needs.
type scratch struct {
	matches    kvindex.Matches
	hits       [3]kvindex.Hits
	found      []found
	shared     active.Shared
	candidates []candidate
	at         []int32 // by slot: the candidate, -1: none
	costs      []float64
	chances    []float64
	blocked    []bool // by class
}

// New returns a router without workers.
func New(p Params) *Router {
	r := &Router{
		Params: p, index: kvindex.New(0), tiers: kvindex.NewTiers(0), load: active.New(0),
		lots: rng.Wyrand(p.Seed), requests: make([]request, 1),
	}
	if p.Config.Policy != nil {
		r.policy = *p.Config.Policy
	} else {
		r.policy = config.OneClass(p.Config)
	}
	r.sorts = len(r.policy.Buckets) > 0 || r.policy.Classes[0].Waits()
	r.queue = queue.New(r.policy.Classes)
	r.scratch.blocked = make([]bool, len(r.policy.Classes))
	return r
}

// Class is what a request's wish for a class of this name comes down to; "" is
// no wish. Ask once for each name.
func (r *Router) Class(name string) config.ClassRequest { return r.policy.Resolve(name) }

// ClassName is the name of a class.
func (r *Router) ClassName(class int32) string { return r.policy.Classes[class].Name }

// Waits reports whether requests may wait at all.
func (r *Router) Waits() bool {
	for i := range r.policy.Classes {
		if r.policy.Classes[i].Waits() {
			return true
		}
	}
	return false
}

// Placed lists what the last call has placed, in order.
func (r *Router) Placed() []Placement { return r.placed }

// Waiting counts the requests that wait.
func (r *Router) Waiting() int { return r.queue.Len() }

// at begins a call at a time.
func (r *Router) at(nowMs float64) Fault {
	r.placed = r.placed[:0]
	r.nowMs = nowMs
	r.nowNs = Nanos(nowMs)
	return r.believe()
}

// Nanos is a time or a span in ms in whole nanoseconds, as the reference rounds
// them; what is negative counts as 0 (router notes §5).
func Nanos(ms float64) uint64 {
	d := fmath.RoundSeconds(max(ms, 0) / 1000)
	return d.Secs*1e9 + uint64(d.Nanos)
}

// newRequest takes a handle, the one freed last if there is one.
func (r *Router) newRequest() Handle {
	h := r.free
	if h != 0 {
		r.free = Handle(r.requests[h].item)
	} else {
		h = Handle(len(r.requests))
		r.requests = append(r.requests, request{})
	}
	q := &r.requests[h]
	*q = request{sequence: q.sequence[:0], found: q.found[:0]}
	return h
}

func (r *Router) forget(h Handle) {
	q := &r.requests[h]
	*q = request{sequence: q.sequence[:0], found: q.found[:0], item: queue.Item(r.free)}
	r.free = h
}
