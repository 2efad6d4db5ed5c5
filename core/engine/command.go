package engine

import "slices"

// reserveTokens bounds the output for which Submit reserves room ahead. A
// request that generates more grows its lists while it runs.
const reserveTokens = 1 << 16

// Submit puts a request at the end of the waiting queue. The handle is valid
// only if the code is Applied; otherwise nothing has changed. A request
// submitted while a pass is in flight is seen by the next pass
// (engine notes §3, §4.1).
func (e *Engine) Submit(q Request) (Handle, Code) {
	h, code := e.add(q)
	if code == Applied {
		e.requests.slab[h].status = waiting
		e.waiting.pushBack(e.requests.slab, h)
	}
	return h, code
}

// add enters a request into the slab; the caller puts it in a queue.
func (e *Engine) add(q Request) (Handle, Code) {
	maxOutput := q.output()
	if maxOutput < 0 {
		return 0, NegativeOutput
	}
	if e.requests.ids.Get(q.UUID) != 0 {
		return 0, AlreadyActive
	}
	e.beginCommand()
	h := e.requests.add(q.UUID)
	e.order++
	r := &e.requests.slab[h]
	r.tag = q.Tag
	r.handoff = q.Handoff
	r.order = e.order
	r.promptLen = len(q.Tokens)
	r.maxOutput = e.clampOutput(len(q.Tokens), maxOutput)
	r.hasPlan = q.OutputIDs != nil
	r.planned = append(r.planned, q.OutputIDs...)

	capacity := len(q.Tokens) + min(r.maxOutput, reserveTokens)
	blocks := min(capacity/e.cfg.BlockSize+1, e.cfg.NumGPUBlocks)
	r.tokens.Reset(e.format, capacity)
	r.tokens.AppendAll(q.Tokens)
	r.blocks = slices.Grow(r.blocks, blocks)
	e.pass.hits = slices.Grow(e.pass.hits[:0], blocks)
	return h, Applied
}

// Find returns the handle of the request with the given UUID, if the request
// has not reached its end yet.
func (e *Engine) Find(uuid [16]byte) (Handle, bool) {
	h := Handle(e.requests.ids.Get(uuid))
	return h, h != 0
}

// Cancel ends a request without a terminal output, whatever it waits for, and
// gives back its blocks. Outputs and facts of the request that wait for the
// end of a pass in flight are dropped (engine notes §3). It is Noop if the
// request has reached its end.
func (e *Engine) Cancel(h Handle) Code {
	if !e.requests.known(h) {
		return Noop
	}
	e.beginCommand()
	switch r := &e.requests.slab[h]; r.status {
	case waiting, preempted:
		e.dequeue(h)
		if len(r.blocks) > 0 {
			e.end(h)
		} else {
			e.forsake(h)
			e.requests.finish(h)
		}
	case activated:
		e.waiting.remove(e.requests.slab, h)
		e.end(h)
	case running:
		i := slices.Index(e.running, h)
		e.running = slices.Delete(e.running, i, i+1)
		e.end(h)
	case heldSource:
		e.end(h)
	case pendingDestination, heldDestination:
		e.leaveDestinations(h)
		e.end(h)
	}
	e.requests.forget(h)
	if e.pass.inFlight {
		e.pass.drop(h)
	}
	e.said.Retired = append(e.said.Retired, h)
	e.tryReserve(&e.said.Lifecycle)
	return Applied
}

// FailHead takes the request at the head of the waiting queue out of the
// engine; the caller reports it as failed. It is for a head that can never be
// served: it asks for more than the pool or the token budget will ever give,
// and keeps everybody behind it waiting. The reference has no such rule: its
// run ends. ok is false, and nothing happens, if nobody waits or a pass is in
// flight.
func (e *Engine) FailHead() (h Handle, tag uint32, ok bool) {
	if h = e.candidate(); h == 0 {
		h = e.waiting.head(e.requests.slab)
	}
	if h == 0 || e.pass.inFlight {
		return 0, 0, false
	}
	e.beginCommand()
	e.dequeue(h)
	e.end(h)
	e.requests.forget(h)
	e.tryReserve(&e.said.Lifecycle)
	return h, e.requests.slab[h].tag, true
}

// end finishes a request and gives back its blocks.
func (e *Engine) end(h Handle) {
	e.destinations.generation++
	r := &e.requests.slab[h]
	e.forsake(h)
	e.pool.Release(r.blocks)
	r.blocks = r.blocks[:0]
	e.requests.finish(h)
}

// Effects is what the last command that was Applied said.
func (e *Engine) Effects() *Effects {
	l := &e.events.logs[commandLog]
	e.said.KVEvents, e.said.KVBlocks, e.said.KVTokens = l.list, l.blocks, l.tokens
	return &e.said
}

// beginCommand forgets what the command before said.
func (e *Engine) beginCommand() {
	e.said.Lifecycle, e.said.Retired = e.said.Lifecycle[:0], e.said.Retired[:0]
	e.events.begin(commandLog)
	if e.pass.inFlight {
		e.events.at = passLog
	}
}
