package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// kvRouting is the KV router of a run and what it is told: prompts by the
// hashes of their blocks, what the engines' caches say, and the signals of
// requests (router notes §8). Its workers are readable engines, which alone know
// hashes and events.
//
// A router that predicts may ask in the middle of anything it is told. dispatch
// then reports false until there is an answer; whoever called it is called again
// and goes on after what it has told: plain.heard, Sim.landing and Sim.halfway
// say where.
type kvRouting struct {
	router  *router.Router
	workers []*plain // by number; nil: it is not there
	speller plain    // spells prompts, no worker
	load    *workload.Workload
	predict timing.Model // of prompts, as fast as they are without a speed-up

	names    seq.Hashing // of blocks, as engines name them
	tracking seq.Hashing // of blocks of live prompts
	keyed    bool        // the two differ
	tracks   bool        // blocks of live prompts are known at all

	classes []config.ClassRequest // by policy of the workload
	handles []router.Handle       // by turn
	states  []turnState           // by turn
	routes  []Route               // by turn
	owes    bool                  // the router was told something dispatch has not seen

	event  router.Event // scratch
	locals []uint64     // scratch
	keys   []uint64     // scratch: locals of tracking
	chain  []uint64     // scratch
}

// turnState is how far a turn has come.
type turnState uint8

// A turn that is placed has begun with its first sign of life.
const (
	unplaced turnState = iota
	placed
	begun
)

// Route is what the KV router said of a turn that it has placed. Times in ms.
type Route struct {
	Waited     bool // it was in the router's queue
	EnteredMs  float64
	ReleasedMs float64

	// Prompt blocks on the device, or worth as much, as the router believed when
	// the turn came: of the rank it went to, and of the best worker.
	OverlapBlocks, BestBlocks int32
}

// heard is how far the router was told of a pass: everything before these is
// done.
type heard struct {
	rank   int
	events bool // of the rank
	output int  // of the rank
	ended  int  // of those that failed
}

func newKVRouting(cfg config.Replay, w *workload.Workload, workers []worker, seats []router.Seat) *kvRouting {
	k := newRouting(cfg.Routing, cfg.Engine, w, len(workers), seats)
	n := len(w.Turns)
	k.handles, k.states, k.routes = make([]router.Handle, n), make([]turnState, n), make([]Route, n)
	for _, x := range workers {
		k.workers = append(k.workers, x.(*plain))
	}
	p := k.workers[0]
	k.speller = plain{load: w, numbers: p.numbers, talk: p.talk, traceSize: p.traceSize}
	return k
}

// newRouting is a router before so many workers with engine e.
func newRouting(r config.Routing, e config.Engine, w *workload.Workload, workers int, seats []router.Seat) *kvRouting {
	k := &kvRouting{
		load: w, names: seq.Plain(e.BlockSize), tracking: seq.Plain(e.BlockSize),
		keyed:  r.Router.TrackingHash == config.KeyedXXH3,
		tracks: r.Router.TrackActiveBlocks && r.Router.AssumeKVReuse,
	}
	if k.keyed {
		k.tracking.BlockSeed, k.tracking.ChainSeed = r.Tracking.Block, r.Tracking.Chain
	}
	k.router = router.New(router.Params{
		Config: *r.Router, BlockSize: e.BlockSize, Seed: r.Seed, LagMs: r.EventLagMs, Seats: seats,
		Predicts: r.AskLoad || e.Timing.Kind == config.Grid || e.Timing.Kind == config.External,
	})
	for id := range workers {
		k.enter(int32(id), e)
	}
	if r.AskLoad {
		e.Timing = config.Timing{Kind: config.External}
	}
	e.SpeedupRatio = 0 // the router's model knows nothing of it
	k.predict = timing.New(e)
	return k
}

// route brings an arriving turn to the router.
func (s *Sim) route(turn int32) {
	k := s.kv
	for int(turn) >= len(k.handles) { // turns that were fed
		k.handles, k.states, k.routes = append(k.handles, 0), append(k.states, unplaced), append(k.routes, Route{})
	}
	tokens, _ := k.speller.spell(turn)
	h, fault := k.router.Place(k.request(turn, uint32(turn), tokens), s.books.nowMs)
	k.handles[turn] = h
	s.told(fault)
}

// request is what the router is told of a turn with the given prompt. It is valid
// until the next call.
func (k *kvRouting) request(turn int32, tag uint32, tokens []uint32) router.Request {
	k.locals = k.names.AppendLocals(k.locals[:0], tokens, nil)
	k.chain = k.chain[:0]
	switch {
	case !k.tracks:
	case k.keyed:
		k.keys = k.tracking.AppendLocals(k.keys[:0], tokens, nil)
		k.chain = k.tracking.AppendChain(k.chain, k.keys)
	default:
		k.chain = k.tracking.AppendChain(k.chain, k.locals)
	}
	c := k.load.Class(turn)
	return router.Request{
		Tag: tag, Tokens: len(tokens), Locals: k.locals, Sequence: k.chain,
		Class: k.class(c.Policy), Priority: max(float64(c.Priority), 0), Strict: c.Strict,
	}
}

// class is what the router makes of a policy of the workload.
func (k *kvRouting) class(policy int32) config.ClassRequest {
	for n := len(k.classes); n < k.load.Policies.Len(); n++ {
		k.classes = append(k.classes, k.router.Class(string(k.load.Policies.At(int32(n)))))
	}
	if policy < 0 {
		return k.router.Class("")
	}
	return k.classes[policy]
}

// told takes what the router made of a call.
func (s *Sim) told(fault router.Fault) {
	s.kv.owes = true
	if !fault.OK() {
		s.dead = true
		s.fault = Fault{InFlight: s.books.inFlight(), NowMs: s.books.nowMs, Router: fault}
	}
}

// dispatch gives what the router has placed to the workers. False: it asks how
// long a prompt takes, which nobody has answered yet, or is at fault.
func (s *Sim) dispatch() bool {
	k := s.kv
	if k == nil || !k.owes {
		return !s.dead
	}
	for {
		q, asks := k.router.Asks()
		if !asks || s.dead {
			break
		}
		ms := k.predict.Prefill(1, q.Tokens+q.Prefix, q.Prefix)
		if ms == timing.Unknown {
			return false
		}
		s.told(k.router.Answer(router.Nanos(ms), true))
	}
	k.owes = false
	if s.dead {
		return false
	}
	for _, p := range k.router.Placed() {
		turn, w := int32(p.Tag), int32(p.Worker)
		if s.control != nil {
			s.control.routed(turn, p.OverlapBlocks)
		}
		k.routes[turn] = Route{p.Waited, p.EnteredMs, p.ReleasedMs, int32(p.OverlapBlocks), int32(p.BestBlocks)}
		k.states[turn] = placed
		s.placing.loads[w]++
		k.workers[w].push(turn, p.Rank)
		if !s.flying[w] {
			s.wake(w)
		}
	}
	if s.control != nil {
		s.control.freed = -1
	}
	return true
}

// question is what the router asks an outside provider.
func (k *kvRouting) question() (timing.Query, bool) {
	if k == nil {
		return timing.Query{}, false
	}
	q, asks := k.router.Asks()
	if !asks {
		return timing.Query{}, false
	}
	return k.predict.Ask(timing.Pass{Prompts: 1, ISL: q.Tokens + q.Prefix, Prefix: q.Prefix})
}

// hear tells the router of the pass of a worker that ends now: of each rank the
// events of its caches, then the signals of its requests, each of which may
// bring requests that wait to workers; and of requests that have failed. False:
// dispatch was.
func (s *Sim) hear(id int32) bool {
	if s.kv == nil {
		return true
	}
	p := s.kv.workers[id]
	for h := &p.heard; h.rank < p.g.Ranks(); h.rank, h.events, h.output = h.rank+1, false, 0 {
		out := p.g.Out(h.rank)
		if !h.events {
			h.events = true
			s.publish(id, h.rank, out.KVEvents, out.KVBlocks)
		}
		for {
			if !s.dispatch() {
				return false
			}
			if h.output == len(out.Outputs) {
				break
			}
			h.output++
			s.signal(&out.Outputs[h.output-1])
		}
	}
	for {
		if !s.dispatch() {
			return false
		}
		if p.heard.ended == len(p.ended) {
			return true
		}
		p.heard.ended++
		if r := p.Result(p.ended[p.heard.ended-1]); r.Fate == stretch.Failed {
			s.told(s.kv.router.Free(s.kv.handles[r.Turn], s.books.nowMs))
		}
	}
}

// publish tells the router what the caches of a rank have stored and removed.
func (s *Sim) publish(id int32, rank int, events []engine.KVEvent, blocks []engine.KVBlock) {
	for i := range events {
		s.told(s.kv.apply(id, rank, &events[i], blocks, s.books.nowMs))
		if s.dead {
			return
		}
	}
}

// apply tells the router of one event of the caches of a rank.
func (k *kvRouting) apply(id int32, rank int, e *engine.KVEvent, blocks []engine.KVBlock, nowMs float64) router.Fault {
	x := &k.event
	*x = router.Event{
		Worker: int(id), Rank: rank, ID: e.ID, HasParent: e.HasParent, Parent: e.Parent,
		Locals: x.Locals[:0], Exts: x.Exts[:0],
	}
	if e.Host {
		x.Tier = router.HostPinned
	}
	if e.Kind == engine.Removed {
		x.Kind = router.Removed
	}
	for _, b := range blocks[e.First : e.First+e.Count] {
		x.Exts = append(x.Exts, b.Hash)
		if x.Kind == router.Stored {
			x.Locals = append(x.Locals, b.Local)
		}
	}
	return k.router.Apply(x, nowMs)
}

// publishCopies tells the router of the copies of an idle worker that have just
// ended.
func (s *Sim) publishCopies(id int32) {
	if s.kv == nil {
		return
	}
	g := s.kv.workers[id].g
	for rank := range g.Ranks() {
		if g.Stirred(rank) {
			e := g.Rank(rank).Effects()
			s.publish(id, rank, e.KVEvents, e.KVBlocks)
		}
	}
}

// signal tells the router of a request's token or end: its first sign of life,
// unless that is also its last, says that the prompt has been computed.
func (s *Sim) signal(o *engine.Output) {
	k := s.kv
	h := k.handles[o.Tag]
	switch {
	case o.Completed:
		s.told(k.router.Free(h, s.books.nowMs))
	case k.states[o.Tag] == placed:
		k.states[o.Tag] = begun
		s.told(k.router.PrefillDone(h, s.books.nowMs))
	}
}

// Route is what the KV router said of a turn; false if it has not placed it, or
// there is no such router.
func (s *Sim) Route(turn int32) (r Route, ok bool) {
	if s.kv == nil || int(turn) >= len(s.kv.states) || s.kv.states[turn] == unplaced {
		return r, false
	}
	return s.kv.routes[turn], true
}

// RouterClass is the name of a class of the KV router.
func (s *Sim) RouterClass(class int32) string {
	k := s.kv
	if s.pools != nil {
		k = s.pools.prefill.kv
	}
	return k.router.ClassName(class)
}
