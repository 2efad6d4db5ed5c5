package sglang

import "github.com/dryserve/dryserve/core/engine"

// SubmitPrefill queues the prompt of a handed-off request, as Submit does. When
// it completes it keeps its pages and its UUID until ReleaseSource or
// CancelSource, and a SourceHeld fact tells so (engine notes §13).
func (e *Rank) SubmitPrefill(q engine.Request) (engine.Handle, engine.Code) {
	h, code := e.Submit(q)
	if code == engine.Applied {
		e.requests.slab[h].source = true
	}
	return h, code
}

// Reserve asks for the pages of a prompt that is computed elsewhere. A
// DestinationReserved fact tells when they are there: at once, after another
// command or at the end of a pass. Activate must follow then. While one waits
// for its pages no prompt is admitted (engine notes §6.1, corrections §1).
func (e *Rank) Reserve(q engine.Request) (engine.Handle, engine.Code) {
	switch {
	case e.tooLong(len(q.Tokens)):
		return 0, engine.PromptTooLong
	case e.pagesFor(len(q.Tokens)) > e.cache.Total():
		return 0, engine.PromptTooLarge
	}
	h, code := e.accept(q)
	if code != engine.Applied {
		return 0, code
	}
	r := &e.requests.slab[h]
	r.status = pending
	e.destinations.Add(r.promptLen)
	e.pending = append(e.pending, h)
	if !e.pass.inFlight {
		e.tryReserve(&e.said.Lifecycle)
	}
	return h, engine.Applied
}

// tryReserve gives the first pending destination its pages, if there is room
// and it has not been tried since some was made: it holds all of its prompt
// that is cached, the last page too, and gets pages for the rest. A maximum of
// running requests does not matter (corrections §1, §2).
func (e *Rank) tryReserve(facts *[]engine.Lifecycle) {
	if len(e.pending) == 0 {
		return
	}
	h := e.pending[0]
	r := &e.requests.slab[h]
	if r.tried {
		return
	}
	e.lock(r, r.promptLen)
	fresh := e.pagesFor(r.promptLen) - len(r.pages)
	if !e.extend(r, fresh) {
		e.unlock(r)
		r.tried = true
		return
	}
	e.pending = remove(e.pending, h)
	r.status = reserved
	*facts = append(*facts, engine.Lifecycle{
		Kind: engine.DestinationReserved, Req: h, Tag: r.tag, Handoff: r.handoff, Tokens: fresh * e.cfg.BlockSize,
	})
}

// roomMade makes the first pending destination due again.
func (e *Rank) roomMade() {
	if len(e.pending) > 0 {
		e.requests.slab[e.pending[0]].tried = false
	}
}

// Activate says that the KV of a destination whose pages are reserved has
// arrived: its prompt enters the cache and it the line for a slot. It is Noop
// if h holds no reservation.
func (e *Rank) Activate(h engine.Handle) engine.Code {
	if !e.requests.is(h, reserved) {
		return engine.Noop
	}
	e.beginCommand()
	r := &e.requests.slab[h]
	available := e.cache.Available()
	r.computed = r.promptLen
	e.cachePrefix(r)
	if e.cache.Available() > available { // it was cached meanwhile
		e.roomMade()
	}
	r.status = prebuilt
	e.prebuilt = append(e.prebuilt, h)
	e.tryReserve(&e.said.Lifecycle)
	return engine.Applied
}

// ReleaseSource ends a request that SubmitPrefill queued and that holds its
// pages for the transfer, which is over. It is Noop for any other.
func (e *Rank) ReleaseSource(h engine.Handle) engine.Code {
	if !e.requests.is(h, held) {
		return engine.Noop
	}
	return e.Cancel(h)
}

// CancelSource ends a request that SubmitPrefill queued, wherever it is. It is
// Noop for any other.
func (e *Rank) CancelSource(h engine.Handle) engine.Code {
	if !e.requests.known(h) || !e.requests.slab[h].source {
		return engine.Noop
	}
	return e.Cancel(h)
}

// CancelDestination ends a request that Reserve queued and that is not active.
// It is Noop for any other.
func (e *Rank) CancelDestination(h engine.Handle) engine.Code {
	if !e.requests.is(h, pending) && !e.requests.is(h, reserved) {
		return engine.Noop
	}
	return e.Cancel(h)
}
