package engine

import (
	"slices"

	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/timing"
)

// pass is the state of the pass that is being made or in flight, and the
// scratch lists passes share.
type pass struct {
	inFlight    bool
	number      int // counts the passes
	startMs     float64
	batch       batch
	deferred    bool // prompts are not computed in this pass
	preempted   bool // somebody was, in this pass
	preemptions int  // since the start

	work timing.Pass // what is computed, as the timing model sees it

	hits     []kv.Block // of the request being scheduled
	ready    []Handle   // running requests that get a token
	reserve  []kv.Block // for the tokens of this pass's bursts
	rejected []Handle

	outputs    []Output
	lifecycle  []Lifecycle
	acceptance Acceptance
	forward    Forward
}

// Begin runs one pass at nowMs and returns the time at which it ends; ok is
// false, and nothing happens, if the engine is not Ready. Out then holds what
// is seen at the start of the pass. Complete must follow
// (engine notes §3, §4.2).
//
// If an outside provider has to say how long the pass takes, endMs is
// timing.Unknown. All but the end is done then; EndMs tells it once what Ask
// asks has been answered.
func (e *Engine) Begin(nowMs float64) (endMs float64, ok bool) {
	if !e.Ready() {
		return 0, false
	}
	e.start(nowMs)
	p := &e.pass
	p.batch.reset(e.cfg.MaxNumBatchedTokens)
	p.deferred = e.defersPrefill()
	e.host.begin(nowMs)

	e.scheduleRunning()
	e.admitWaiting()
	if !p.deferred && !p.preempted {
		e.capacityBound = e.waiting.len() > 0
	}

	p.work = timing.Pass{StartMs: nowMs, Prompts: p.batch.prompts, ISL: p.batch.isl, Prefix: p.batch.prefix}
	if e.host.on {
		e.scheduleStores()
		p.work.StartMs = e.host.computeMs
	}
	e.emit()
	e.describe()
	return e.EndMs(), true
}

// EndMs is when the pass begun last ends, or timing.Unknown.
func (e *Engine) EndMs() float64 { return e.timing.End(e.pass.work) }

// Ask is what has to be known before EndMs can tell, if there is anything.
func (e *Engine) Ask() (timing.Query, bool) { return e.timing.Ask(e.pass.work) }

// ShareAnswers lets the engine find an outside provider's answers in c.
func (e *Engine) ShareAnswers(c *timing.Cache) { e.timing.Share(c) }

// Rest takes part in a pass of other ranks without running one: the rank
// computes nothing until Complete, and what commands say of KV events comes
// with it. It reports false, and does nothing, if a pass is in flight.
func (e *Engine) Rest(nowMs float64) bool {
	if e.pass.inFlight {
		return false
	}
	e.start(nowMs)
	e.pass.forward = Forward{}
	return true
}

// start puts a new pass in flight.
func (e *Engine) start(nowMs float64) {
	e.requests.recycle()
	e.out = Out{
		Committed:  e.out.Committed[:0],
		Admissions: e.out.Admissions[:0],
		Pressure:   e.out.Pressure[:0],
	}
	e.events.begin(passLog)
	p := &e.pass
	p.inFlight = true
	p.number++
	p.startMs = nowMs
	p.preempted = false
	p.rejected = p.rejected[:0]
	p.outputs, p.lifecycle = p.outputs[:0], p.lifecycle[:0]
	p.acceptance = Acceptance{}
}

// Complete ends the pass in flight at endMs, which is the time Begin returned
// or, where several ranks share a pass, the latest of theirs. Out then holds
// everything the pass said. It reports false, and does nothing, if no pass is
// in flight.
func (e *Engine) Complete(endMs float64) bool {
	p := &e.pass
	if !p.inFlight {
		return false
	}
	p.inFlight = false
	for _, h := range e.requests.finished {
		e.requests.forget(h)
	}
	o := &e.out
	o.Copied = e.finishCopies(endMs)
	if len(p.batch.works) > 0 {
		e.host.progress++
	}
	e.tryReserve(&p.lifecycle)
	o.Outputs, o.Lifecycle = p.outputs, p.lifecycle
	said := &e.events.logs[passLog]
	o.KVEvents, o.KVBlocks, o.KVTokens = said.list, said.blocks, said.tokens
	o.Metrics = e.Metrics()
	o.Forward = p.forward
	o.Forward.DurationMs = endMs - p.startMs
	o.Acceptance = p.acceptance
	o.Effect = len(o.Admissions) > 0 || len(o.Pressure) > 0 || len(o.Outputs) > 0 ||
		len(o.Lifecycle) > 0 || len(o.KVEvents) > 0 || o.Forward.Prefills > 0 || o.Forward.Decodes > 0
	o.Began = e.host.disk != nil && e.host.began
	e.check()
	return true
}

// scheduleRunning gives the running requests, in order, their share of the
// budget (engine notes §4.2, step 2). In FIFO mode a preemption may remove a
// request before place i; the list then moves up by one and the request that
// comes to stand at i is passed over in this pass (§15, E14).
func (e *Engine) scheduleRunning() {
	for i := 0; i < len(e.running) && e.pass.batch.budget > 0; {
		h := e.running[i]
		if e.pass.deferred && !e.prebuilt(h) {
			i++
			continue
		}
		hits := e.pass.hits[:0]
		if e.requests.slab[h].computed == 0 { // admitted with an empty prompt
			hits = e.lookup(h)
		}
		switch e.schedule(h, hits) {
		case scheduled:
			i++
		case blocked:
			return
		case currentPreempted:
		}
	}
}

// admitWaiting moves requests from the head of the waiting queue into the
// running batch (engine notes §4.2, step 3). It goes on when the budget is
// used up: a request that needs no computation can still join.
func (e *Engine) admitWaiting() {
	p := &e.pass
	for !p.preempted && len(e.running) < e.cfg.MaxNumSeqs && (!e.host.on || p.batch.budget > 0) {
		h := e.candidate()
		if h == 0 {
			return
		}
		if e.tooLong(h) {
			e.reject(h)
			continue
		}
		hits := p.hits[:0]
		if e.requests.slab[h].status != activated {
			if len(e.requests.slab[h].blocks) == 0 {
				hits = e.lookup(h)
			}
			if e.host.on {
				switch e.consult(h, p.startMs) {
				case parked:
					continue
				case noRoom:
					return
				}
				hits = hits[:0]
				if len(e.requests.slab[h].blocks) == 0 {
					hits = e.lookup(h)
				}
			}
			switch e.admission(h, hits) {
			case reject:
				e.reject(h)
				continue
			case wait:
				return
			}
			if p.deferred && e.requests.slab[h].len()-e.cached(h, hits) > 1 {
				return
			}
		}
		cached, budget := e.cached(h, hits), p.batch.budget
		if e.schedule(h, hits) != scheduled {
			return
		}
		e.join(h, cached)
		if budget == 0 {
			return // it needed no tokens; only one such request may join
		}
	}
}

// cached counts the tokens a request to be admitted has KV of: those of the hit
// or those loaded for it.
func (e *Engine) cached(h Handle, hits []kv.Block) int {
	n := len(hits) * e.cfg.BlockSize
	if r := &e.requests.slab[h]; r.parked {
		n += r.computed
	}
	return n
}

// candidate is the request to be admitted next, or 0. While a destination waits
// for blocks no prompt is computed, so only requests that have theirs count.
func (e *Engine) candidate() Handle {
	if len(e.destinations.pending) > 0 {
		return e.waiting.firstActivated(e.requests.slab)
	}
	if h := e.host.parking.first(e.requests.slab); h != 0 {
		if g := e.host.parking.loaded(e.requests.slab); g != 0 && e.host.disk != nil {
			return g
		}
		return h
	}
	return e.waiting.head(e.requests.slab)
}

// join moves a scheduled request from the waiting queue to the end of the
// running batch. reused counts the tokens it found cached.
func (e *Engine) join(h Handle, reused int) {
	r := &e.requests.slab[h]
	e.dequeue(h)
	if !r.admitted {
		r.admitted = true
		r.cachedPrefix = reused
	}
	r.status = running
	e.running = append(e.running, h)
	e.out.Admissions = append(e.out.Admissions, Admission{Req: h, Tag: r.tag, Reused: reused, Host: r.fromHost})
	r.fromHost = 0
}

// reject takes a request that the engine will not serve out of the queue; its
// terminal output comes last in the pass.
func (e *Engine) reject(h Handle) {
	e.dequeue(h)
	e.forsake(h)
	e.requests.finish(h)
	e.pass.rejected = append(e.pass.rejected, h)
}

// describe fills in who was committed and the forward metrics.
func (e *Engine) describe() {
	p := &e.pass
	for _, w := range p.batch.works {
		if w.prompt > 0 || e.requests.slab[w.req].emitted {
			e.out.Committed = append(e.out.Committed, w.req)
		}
	}
	fresh := e.waiting.fresh.Plus(e.host.parking.lengths.fresh)
	back := e.waiting.back.Plus(e.host.parking.lengths.back).Plus(e.destinations.lengths)
	p.forward = Forward{
		QueuedPrefills:   fresh.N(),
		QueuedPrefillLen: fresh.Sum(),
		QueuedPrefillVar: fresh.Variance(),
		QueuedDecodes:    back.N(),
		QueuedDecodeLen:  back.Sum(),
		QueuedDecodeVar:  back.Variance(),
	}
	p.batch.describe(&p.forward)
}

// drop takes what the pass in flight says of one request out of it.
func (p *pass) drop(h Handle) {
	p.outputs = slices.DeleteFunc(p.outputs, func(o Output) bool { return o.Req == h })
	p.lifecycle = slices.DeleteFunc(p.lifecycle, func(l Lifecycle) bool { return l.Req == h })
}
