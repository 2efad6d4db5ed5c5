package sglang

import (
	"slices"

	"github.com/dryserve/dryserve/core/engine"
)

// reserveTokens bounds the output for which a command reserves room ahead. A
// request that generates more grows its lists while it runs.
const reserveTokens = 1 << 16

// Submit puts a request at the end of the waiting queue. The handle is valid
// only if the code is Applied; otherwise nothing has changed. A request
// submitted while a pass is in flight is seen by the next pass. The model's
// limit caps the output (engine notes §3, §6).
func (e *Rank) Submit(q engine.Request) (engine.Handle, engine.Code) {
	h, code := e.accept(q)
	if code == engine.Applied {
		e.enqueue(h)
	}
	return h, code
}

// accept makes a request known.
func (e *Rank) accept(q engine.Request) (engine.Handle, engine.Code) {
	maxOutput := q.MaxOutput
	if q.OutputIDs != nil {
		maxOutput = len(q.OutputIDs)
	}
	if maxOutput < 0 {
		return 0, engine.NegativeOutput
	}
	if e.requests.ids.Get(q.UUID) != 0 {
		return 0, engine.AlreadyActive
	}
	e.beginCommand()
	if limit := e.cfg.MaxModelLen; limit > 0 {
		maxOutput = min(maxOutput, max(limit-len(q.Tokens), 0))
	}
	h := e.requests.add(q.UUID)
	r := &e.requests.slab[h]
	r.tag = q.Tag
	r.handoff = q.Handoff
	r.promptLen = len(q.Tokens)
	r.maxOutput = maxOutput
	r.hasPlan = q.OutputIDs != nil
	r.planned = append(r.planned, q.OutputIDs...)

	capacity := len(q.Tokens) + min(maxOutput, reserveTokens)
	r.tokens.Reset(e.format, capacity)
	r.tokens.AppendAll(q.Tokens)
	r.pages = slices.Grow(r.pages, min(capacity/e.cfg.BlockSize+1, e.cfg.NumGPUBlocks))
	return h, engine.Applied
}

func (e *Rank) enqueue(h engine.Handle) {
	r := &e.requests.slab[h]
	r.status = waiting
	e.waiting.pushBack(e.requests.slab, h)
	if e.tooLong(r.promptLen) {
		e.pass.unchecked = true
	}
}

// tooLong reports whether a prompt leaves no room below the model's limit.
func (e *Rank) tooLong(promptLen int) bool {
	return e.cfg.MaxModelLen > 0 && promptLen >= e.cfg.MaxModelLen
}

// Find returns the handle of the request with the given UUID, if the request
// has not reached its end yet.
func (e *Rank) Find(uuid [16]byte) (engine.Handle, bool) {
	h := engine.Handle(e.requests.ids.Get(uuid))
	return h, h != 0
}

// Cancel ends a request, wherever it is, without a terminal output and gives
// up its KV. What it said in a pass in flight is dropped (engine notes §3). It
// is Noop if the request has reached its end.
func (e *Rank) Cancel(h engine.Handle) engine.Code {
	if !e.requests.known(h) {
		return engine.Noop
	}
	e.beginCommand()
	e.withdraw(h)
	e.retire(h)
	return engine.Applied
}

// withdraw takes a request out of where it is and gives up its KV.
func (e *Rank) withdraw(h engine.Handle) {
	r := &e.requests.slab[h]
	switch r.status {
	case finished:
		return
	case waiting, retracted:
		e.waiting.remove(e.requests.slab, h)
	case running:
		e.running = remove(e.running, h)
	case pending:
		e.pending = remove(e.pending, h)
	case prebuilt:
		e.prebuilt = remove(e.prebuilt, h)
	}
	switch r.status {
	case pending, reserved, prebuilt:
		e.destinations.Sub(r.promptLen)
	}
	if r.status == held { // its prompt is computed: the cache keeps it
		e.settle(r)
	} else {
		e.drop(r)
	}
	e.requests.finish(h)
}

func remove(list []engine.Handle, h engine.Handle) []engine.Handle {
	i := slices.Index(list, h)
	return slices.Delete(list, i, i+1)
}

// retire is what follows the end of a request by a command.
func (e *Rank) retire(h engine.Handle) {
	e.requests.forget(h)
	if e.pass.inFlight {
		e.pass.forget(h)
	}
	e.said.Retired = append(e.said.Retired, h)
	e.roomMade()
	e.tryReserve(&e.said.Lifecycle)
}

// FailHead takes a request that can never be served out of the rank; the
// caller reports it as failed. It is the running one if the last pass was
// Stuck, else the head of the waiting queue, for which admission never has
// room. The reference has no such rule: its run ends or never returns. ok is
// false, and nothing happens, if there is no such request or a pass is in
// flight.
func (e *Rank) FailHead() (h engine.Handle, tag uint32, ok bool) {
	h = e.waiting.head(e.requests.slab)
	if e.pass.stuck && len(e.running) == 1 {
		h = e.running[0]
	}
	if h == 0 || e.pass.inFlight {
		return 0, 0, false
	}
	e.beginCommand()
	e.withdraw(h)
	e.retire(h)
	return h, e.requests.slab[h].tag, true
}

// Effects is what the last command that was Applied said.
func (e *Rank) Effects() *engine.Effects {
	l := &e.events.logs[commandLog]
	e.said.KVEvents, e.said.KVBlocks, e.said.KVTokens = l.list, l.blocks, l.tokens
	return &e.said
}

// beginCommand forgets what the command before said.
func (e *Rank) beginCommand() {
	e.said.Retired = e.said.Retired[:0]
	e.said.Lifecycle = e.said.Lifecycle[:0]
	e.events.begin(commandLog)
	if e.pass.inFlight {
		e.events.at = passLog
	}
}
