package replay

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/relay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// follower is what the KV router needs besides of a worker.
type follower interface {
	Ranks() int
	PushTo(turn int32, rank int)
	AppendSignals(dst []stretch.Signal) []stretch.Signal
	Begun() bool
}

// holder is what it needs of one that does not tell hashes.
type holder interface {
	follower
	Watch()
	Changes(rank int, before int64) []coverage.Change
	Passes() int64
}

// kvRouting is the KV router of a run and what it is told: prompts by the
// hashes of their blocks, what the engines' caches say, and the signals of
// requests (router notes §8). Readable engines say hashes and events; of fast
// ones it knows places in the prefix tree (paths).
//
// A router that predicts may ask in the middle of anything it is told. dispatch
// then reports false until there is an answer; whoever called it is called again
// and goes on after what it has told: heard, Sim.landing and Sim.halfway say
// where.
type kvRouting struct {
	router  *router.Router
	workers []follower // by number; nil: it is not there
	plains  []*plain   // the workers, if they are these,
	paths   *paths     // or others: it knows what they hold
	speller speller    // of prompts for readable ones
	load    *workload.Workload
	predict timing.Model // of prompts, as fast as they are without a speed-up

	names    seq.Hashing // of blocks, as engines name them
	tracking seq.Hashing // of blocks of live prompts
	keyed    bool        // the two differ
	tracks   bool        // blocks of live prompts are known at all

	classes []config.ClassRequest // by policy of the workload
	handles []router.Handle       // by turn
	states  []turnState           // by turn
	routes  []route               // by turn
	waits   []wait                // of the turns that waited, in the order of their placement
	owes    bool                  // the router was told something dispatch has not seen

	hearing int32            // worker whose pass it is being told of; -1: none
	signals []stretch.Signal // of that pass
	heard   int              // of these: those told

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

// route is a Route as it is kept: wait is the number of its wait, 0 if it has
// none.
type route struct{ overlap, best, wait int32 }

type wait struct{ enteredMs, releasedMs float64 }

// Route is what the KV router said of a turn that it has placed.
type Route struct {
	Waited     bool    // it was in the router's queue
	EnteredMs  float64 // 0 if it did not wait, like ReleasedMs
	ReleasedMs float64

	// Prompt blocks on the device, or worth as much, as the router believed when
	// the turn came: of the rank it went to, and of the best worker.
	OverlapBlocks, BestBlocks int32
}

func newKVRouting(cfg config.Replay, w *workload.Workload, workers []worker, seats []router.Seat) *kvRouting {
	var followers []follower
	var plains []*plain
	var holders []holder
	for _, x := range workers {
		followers = append(followers, x.(follower))
		switch x := x.(type) {
		case *plain:
			plains = append(plains, x)
		case holder:
			holders = append(holders, x)
		}
	}
	var known *paths
	var index *coverage.Index
	if holders != nil {
		known = newPaths(cfg, w, holders)
		index = known.index
	}
	k := newRouting(cfg.Routing, cfg.Engine, w, len(workers), seats, index)
	n := len(w.Turns)
	k.handles, k.states, k.routes = make([]router.Handle, n), make([]turnState, n), make([]route, n)
	k.workers, k.plains, k.paths, k.hearing = followers, plains, known, -1
	if len(plains) > 0 {
		p := plains[0]
		k.speller = speller{load: w, numbers: p.numbers, talk: p.talk, traceSize: p.traceSize}
	}
	return k
}

// newRouting is a router before so many workers with engine e. index knows what
// their caches hold, nil: their events tell.
func newRouting(r config.Routing, e config.Engine, w *workload.Workload, workers int, seats []router.Seat, index *coverage.Index) *kvRouting {
	k := &kvRouting{
		load: w, names: seq.Plain(e.BlockSize), tracking: seq.Plain(e.BlockSize),
		keyed:  r.Router.TrackingHash == config.KeyedXXH3,
		tracks: r.Router.TrackActiveBlocks && r.Router.AssumeKVReuse,
	}
	if k.keyed {
		k.tracking.BlockSeed, k.tracking.ChainSeed = r.Tracking.Block, r.Tracking.Chain
	}
	switch {
	case r.AskLoad:
		e.Timing = config.Timing{Kind: config.External}
	case r.LoadGrid != nil:
		e.Timing = config.Timing{Kind: config.Grid, Grid: r.LoadGrid}
	}
	k.router = router.New(router.Params{
		Config: *r.Router, BlockSize: e.BlockSize, Seed: r.Seed, LagMs: r.EventLagMs, Seats: seats, Paths: index,
		Predicts: e.Timing.Kind == config.Grid || e.Timing.Kind == config.External,
	})
	for id := range workers {
		k.enter(int32(id), e)
	}
	e.SpeedupRatio = 0 // the router's model knows nothing of it
	k.predict = timing.New(e)
	return k
}

// place brings an arriving turn to the router.
func (k *kvRouting) place(turn int32, nowMs float64) router.Fault {
	for int(turn) >= len(k.handles) { // turns that were fed
		k.handles, k.states, k.routes = append(k.handles, 0), append(k.states, unplaced), append(k.routes, route{})
	}
	var q router.Request
	if k.paths != nil {
		q = k.locate(turn, nowMs)
	} else {
		tokens, _ := k.speller.spell(turn)
		q = k.request(turn, uint32(turn), tokens)
	}
	h, fault := k.router.Place(q, nowMs)
	k.handles[turn] = h
	return fault
}

// locate is what the router is told of a turn whose blocks are named by their
// places in the prefix tree. It is valid until the next call.
func (k *kvRouting) locate(turn int32, nowMs float64) router.Request {
	k.paths.believe(nowMs)
	t := &k.load.Turns[turn]
	blocks := t.Input / int32(k.names.BlockSize)
	k.chain = k.chain[:0]
	if k.tracks {
		k.chain = k.paths.appendNames(k.chain, t.Leaf, blocks)
	}
	q := router.Request{Tokens: int(t.Input), Leaf: t.Leaf, Blocks: blocks, Sequence: k.chain}
	k.rank(&q, turn, uint32(turn))
	return q
}

// request is what the router is told of a turn with the given prompt, whose blocks
// are named by their hashes. It is valid until the next call.
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
	q := router.Request{Tokens: len(tokens), Locals: k.locals, Sequence: k.chain}
	k.rank(&q, turn, tag)
	return q
}

// rank adds what requests are put in order by, and how the router names this one.
func (k *kvRouting) rank(q *router.Request, turn int32, tag uint32) {
	c := k.load.Class(turn)
	q.Tag, q.Class, q.Priority, q.Strict = tag, k.class(c.Policy), max(float64(c.Priority), 0), c.Strict
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
	for !s.dead {
		ms, asks := k.prediction()
		if !asks {
			break
		}
		if ms == timing.Unknown {
			return false
		}
		s.told(k.router.Answer(router.Nanos(ms), true))
	}
	k.owes = false
	if s.dead {
		return false
	}
	for i := range k.router.Placed() {
		p := &k.router.Placed()[i]
		if s.control != nil {
			s.control.routed(s.control.fleets[0], int32(p.Tag), p.OverlapBlocks)
		}
		w := k.hand(p)
		s.placing.loads[w]++
		if !s.flying[w] {
			s.wake(w)
		}
	}
	if s.control != nil {
		s.control.fleets[0].freed = -1
	}
	return true
}

// prediction is how long the prompt takes that the router asks about, if it asks.
func (k *kvRouting) prediction() (ms float64, asks bool) {
	q, asks := k.router.Asks()
	if !asks {
		return 0, false
	}
	return k.predict.Prefill(1, q.Tokens+q.Prefix, q.Prefix), true
}

// hand gives a turn to the worker that it was placed at.
func (k *kvRouting) hand(p *router.Placement) (worker int32) {
	turn := p.Tag
	r := &k.routes[turn]
	r.overlap, r.best = int32(p.OverlapBlocks), int32(p.BestBlocks)
	if p.Waited {
		k.waits = append(k.waits, wait{p.EnteredMs, p.ReleasedMs})
		r.wait = int32(len(k.waits))
	}
	k.states[turn] = placed
	k.workers[p.Worker].PushTo(int32(turn), p.Rank)
	return int32(p.Worker)
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

// hear tells the router of the pass of a worker that ends now: what its caches
// have stored and removed, then the signals of its requests, each of which may
// bring requests that wait to workers; requests that have failed come last.
// False: dispatch was.
func (s *Sim) hear(id int32) bool {
	k := s.kv
	if k == nil {
		return true
	}
	w := k.workers[id]
	if k.hearing != id {
		k.hearing, k.heard = id, 0
		k.signals = w.AppendSignals(k.signals[:0])
		s.learn(id)
	}
	for {
		if !s.dispatch() {
			return false
		}
		if k.heard == len(k.signals) {
			k.hearing = -1
			return true
		}
		k.heard++
		if fault, called := k.tell(k.signals[k.heard-1], s.books.nowMs); called {
			s.told(fault)
		}
	}
}

// learn tells the router what the caches of a worker have stored and removed in
// the pass that ends now.
func (s *Sim) learn(id int32) {
	k := s.kv
	if k.paths != nil {
		k.paths.learn(id, passEnds{lastMs: s.books.nowMs})
		return
	}
	p := k.plains[id]
	for rank := range p.Ranks() {
		if p.failing || s.dead {
			return
		}
		out := p.g.Out(rank)
		s.publish(id, rank, out.KVEvents, out.KVBlocks)
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
	relay.Event(&k.event, int(id), rank, e, blocks)
	return k.router.Apply(&k.event, nowMs)
}

// publishCopies tells the router of the copies of an idle worker that have just
// ended.
func (s *Sim) publishCopies(id int32) {
	if s.kv == nil {
		return
	}
	g := s.kv.plains[id].g
	for rank := range g.Ranks() {
		if g.Stirred(rank) {
			e := g.Rank(rank).Effects()
			s.publish(id, rank, e.KVEvents, e.KVBlocks)
		}
	}
}

// tell tells the router of a request's token or end: its first sign of life,
// unless that is also its last, says that the prompt has been computed. It
// reports whether that is of any interest to the router.
func (k *kvRouting) tell(x stretch.Signal, nowMs float64) (f router.Fault, called bool) {
	h := k.handles[x.Turn]
	switch {
	case x.Ended:
		return k.router.Free(h, nowMs), true
	case k.states[x.Turn] == placed:
		k.states[x.Turn] = begun
		return k.router.PrefillDone(h, nowMs), true
	}
	return f, false
}

// Route is what the KV router said of a turn; false if it has not placed it, or
// there is no such router.
func (s *Sim) Route(turn int32) (r Route, ok bool) {
	if s.kv == nil || int(turn) >= len(s.kv.states) || s.kv.states[turn] == unplaced {
		return r, false
	}
	x := s.kv.routes[turn]
	r.OverlapBlocks, r.BestBlocks = x.overlap, x.best
	if r.Waited = x.wait > 0; r.Waited {
		r.EnteredMs, r.ReleasedMs = s.kv.waits[x.wait-1].enteredMs, s.kv.waits[x.wait-1].releasedMs
	}
	return r, true
}

// RouterClass is the name of a class of the KV router.
func (s *Sim) RouterClass(class int32) string {
	k := s.kv
	if s.pools != nil {
		k = s.pools.prefill.kv
	}
	return k.router.ClassName(class)
}
