package sglang

import (
	"slices"

	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/moments"
	"github.com/dryserve/dryserve/core/timing"
)

// pass is the state of the pass that is being made or in flight, and the
// scratch lists passes share.
type pass struct {
	inFlight    bool
	startMs     float64
	ratioBefore float64
	deferred    bool // prompts are held back by the interval
	hadDecodes  bool // somebody was to be decoded
	decoded     bool // tokens were decoded
	stuck       bool
	unchecked   bool // the queue may hold a prompt above the model's limit

	timed timing.Pass // what is computed, as the timing model sees it

	works     []work          // prompt work, in order
	computed  int             // prompt tokens of it
	hits      int             // prompt tokens found cached
	fresh     []engine.Handle // requests that wait for their first token
	retracted []engine.Handle
	done      []engine.Handle // complete, in the order of their signals
	rejected  []engine.Handle

	ranking []ranked // of the queue, for LPM
	seen    []uint64 // beginnings of prompts, for LPM

	outputs    []engine.Output
	lifecycle  []engine.Lifecycle
	acceptance engine.Acceptance
	forward    engine.Forward
}

// work is the prompt work of one request in a pass.
type work struct {
	req      engine.Handle
	computed int // tokens
	prefix   int // tokens that had KV before
}

// Begin runs one pass at nowMs and returns the time at which it ends; ok is
// false, and nothing happens, if the rank is not Ready. Out then holds what is
// seen at the start of the pass. Complete must follow
// (engine notes §3, §6.1).
//
// If an outside provider has to say how long the pass takes, endMs is
// timing.Unknown. All but the end is done then; EndMs tells it once what Ask
// asks has been answered.
func (e *Rank) Begin(nowMs float64) (endMs float64, ok bool) {
	if !e.Ready() {
		return 0, false
	}
	e.start(nowMs)
	p := &e.pass
	p.deferred = e.rounds > 0
	e.rejectTooLong()
	e.promote()
	e.sortWaiting()
	if len(e.prebuilt) == 0 && len(e.pending) == 0 && !p.deferred {
		e.admit()
	}
	prefilled := len(p.works) > 0
	if prefilled {
		e.chargePrefill()
		e.endPrefill()
	} else {
		e.decode()
	}
	for _, h := range p.done {
		e.end(h)
	}
	for _, h := range p.rejected {
		p.outputs = append(p.outputs, engine.Output{Req: h, Tag: e.requests.slab[h].tag, Completed: true, Rejected: true})
	}
	for _, h := range p.retracted {
		e.waiting.pushBack(e.requests.slab, h)
	}
	if len(p.retracted) > 0 {
		e.roomMade()
	} else if !prefilled && (p.hadDecodes || !p.deferred) {
		e.ratio.fall()
	}
	e.describe()
	return e.EndMs(), true
}

// EndMs is when the pass begun last ends, or timing.Unknown.
func (e *Rank) EndMs() float64 { return e.timing.End(e.pass.timed) }

// Ask is what has to be known before EndMs can tell, if there is anything.
func (e *Rank) Ask() (timing.Query, bool) { return e.timing.Ask(e.pass.timed) }

// ShareAnswers lets the rank find an outside provider's answers in c.
func (e *Rank) ShareAnswers(c *timing.Cache) { e.timing.Share(c) }

// Rest is Begin for a rank that has nothing to do in a pass of its group: what
// it says is empty, even of destinations that wait for a command (engine notes
// §3), and Complete must follow. The rank must not be Ready.
func (e *Rank) Rest(nowMs float64) {
	e.start(nowMs)
	e.pass.forward = engine.Forward{}
}

// start resets what a pass says and notes down.
func (e *Rank) start(nowMs float64) {
	e.requests.recycle()
	e.out = engine.Out{
		Committed:  e.out.Committed[:0],
		Admissions: e.out.Admissions[:0],
		Pressure:   e.out.Pressure[:0],
	}
	e.events.begin(passLog)
	p := &e.pass
	*p = pass{
		inFlight: true, startMs: nowMs, ratioBefore: e.ratio.now, unchecked: p.unchecked, timed: timing.Pass{StartMs: nowMs},
		works: p.works[:0], fresh: p.fresh[:0], retracted: p.retracted[:0], done: p.done[:0], rejected: p.rejected[:0],
		ranking: p.ranking[:0], seen: p.seen[:0],
		outputs: p.outputs[:0], lifecycle: p.lifecycle[:0],
	}
}

// Complete ends the pass in flight at endMs, which is the time Begin returned
// or, where several ranks share a pass, the latest of theirs. Out then holds
// everything the pass said. A pending destination may find room. It reports
// false, and does nothing, if no pass is in flight.
func (e *Rank) Complete(endMs float64) bool {
	p := &e.pass
	if !p.inFlight {
		return false
	}
	p.inFlight = false
	for _, h := range e.requests.finished {
		e.requests.forget(h)
	}
	e.events.at = passLog
	e.tryReserve(&p.lifecycle)

	o := &e.out
	o.Outputs = p.outputs
	log := &e.events.logs[passLog]
	o.KVEvents, o.KVBlocks, o.KVTokens = log.list, log.blocks, log.tokens
	o.Metrics = e.Metrics()
	o.Metrics.CacheHitTokens, o.Metrics.CacheTotalTokens = p.hits, p.hits+p.computed
	o.Forward = p.forward
	o.Forward.DurationMs = endMs - p.startMs
	o.Acceptance = p.acceptance
	o.Lifecycle = p.lifecycle
	o.Stuck = p.stuck
	o.Effect = len(o.Admissions) > 0 || len(o.Pressure) > 0 || len(o.Outputs) > 0 || len(o.Lifecycle) > 0 ||
		len(o.KVEvents) > 0 || o.Forward.Prefills > 0 || o.Forward.Decodes > 0
	if e.cfg.DPSize == 1 {
		r := e.Round()
		e.EndRound(r.Prefilled, r.RanModel)
	}
	e.check()
	return true
}

// rejectTooLong takes the prompts above the model's limit out of the queue,
// whatever their place; their terminal outputs come last in the pass.
func (e *Rank) rejectTooLong() {
	p := &e.pass
	if !p.unchecked {
		return
	}
	p.unchecked = false
	for h := e.waiting.head(e.requests.slab); h != 0; {
		r := &e.requests.slab[h]
		next := r.next
		if e.tooLong(r.promptLen) {
			e.waiting.remove(e.requests.slab, h)
			e.requests.finish(h)
			p.rejected = append(p.rejected, h)
		}
		h = next
	}
}

// promote gives activated destinations their slots, in order.
func (e *Rank) promote() {
	n := 0
	for n < len(e.prebuilt) && len(e.running) < e.cfg.MaxNumSeqs {
		h := e.prebuilt[n]
		r := &e.requests.slab[h]
		r.status = running
		e.destinations.Sub(r.promptLen)
		e.running = append(e.running, h)
		e.out.Admissions = append(e.out.Admissions, engine.Admission{Req: h, Tag: r.tag})
		n++
	}
	e.prebuilt = slices.Delete(e.prebuilt, 0, n)
}

// end finishes a complete request, or holds it if it is a source.
func (e *Rank) end(h engine.Handle) {
	r := &e.requests.slab[h]
	if r.source {
		r.status = held
		e.pass.lifecycle = append(e.pass.lifecycle, engine.Lifecycle{
			Kind: engine.SourceHeld, Req: h, Tag: r.tag, Handoff: r.handoff, Tokens: r.promptLen,
		})
		return
	}
	e.settle(r)
	e.requests.finish(h)
	e.roomMade()
}

// describe fills in who was committed and the forward metrics.
func (e *Rank) describe() {
	p := &e.pass
	f := &p.forward
	var prompts moments.Moments
	for _, w := range p.works {
		if w.computed == 0 {
			continue
		}
		r := &e.requests.slab[w.req]
		e.out.Committed = append(e.out.Committed, w.req)
		prompts.Add(r.promptLen)
		f.PrefillTokens += w.computed
		f.PrefillKVTokens += w.prefix // of a retracted request also what it had generated
	}
	f.Prefills, f.PrefillVariance = prompts.N(), prompts.Variance()
	queued := e.waiting.retracted.Plus(e.destinations)
	f.QueuedPrefills, f.QueuedPrefillLen, f.QueuedPrefillVar = e.waiting.fresh.N(), e.waiting.fresh.Sum(), e.waiting.fresh.Variance()
	f.QueuedDecodes, f.QueuedDecodeLen, f.QueuedDecodeVar = queued.N(), queued.Sum(), queued.Variance()
}

// forget takes what a request said out of the pass in flight.
func (p *pass) forget(h engine.Handle) {
	p.outputs = slices.DeleteFunc(p.outputs, func(o engine.Output) bool { return o.Req == h })
	p.lifecycle = slices.DeleteFunc(p.lifecycle, func(l engine.Lifecycle) bool { return l.Req == h })
}
