package engine

import (
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/moments"
)

// destinations are the requests whose prompt is computed elsewhere and handed
// over to this rank: those that wait for room and those that have it and wait
// for their activation (engine notes §13, corrections §1).
type destinations struct {
	pending []Handle        // in the order they came; only the first is tried
	held    []Handle        // in the order they got their blocks
	lengths moments.Moments // prompt lengths of both

	// A first one that did not get its blocks is tried again only when the
	// generation has changed, which it does when capacity was given back.
	generation      uint64
	tried           uint64 // order of the request tried last
	triedGeneration uint64
}

func (d *destinations) len() int { return d.lengths.N() }

// SubmitPrefill queues the prompt of a handed-off request, as Submit does. When
// it completes it keeps its blocks and its UUID until ReleaseSource or
// CancelSource, and a SourceHeld fact tells so.
func (e *Engine) SubmitPrefill(q Request) (Handle, Code) {
	h, code := e.Submit(q)
	if code == Applied {
		e.requests.slab[h].source = true
	}
	return h, code
}

// Reserve asks for the blocks of a prompt that is computed elsewhere. A
// DestinationReserved fact tells when they are there: at once, after another
// command or at the end of a pass. Activate must follow then. The request's
// place in the waiting queue is that of this command.
func (e *Engine) Reserve(q Request) (Handle, Code) {
	switch {
	case e.cfg.MaxModelLen > 0 && len(q.Tokens) >= e.cfg.MaxModelLen:
		return 0, PromptTooLong
	case e.reserveNeeds(q) > e.pool.Total():
		return 0, PromptTooLarge
	}
	h, code := e.add(q)
	if code != Applied {
		return 0, code
	}
	r := &e.requests.slab[h]
	r.status, r.destination = pendingDestination, true
	d := &e.destinations
	d.pending = append(d.pending, h)
	d.lengths.Add(r.promptLen)
	if !e.pass.inFlight {
		e.tryReserve(&e.said.Lifecycle)
	}
	return h, Applied
}

// reserveNeeds is the number of blocks that must exist for a destination:
// those of the prompt, with TensorRT-LLM also those of the output.
func (e *Engine) reserveNeeds(q Request) int {
	if e.cfg.Backend != config.TRTLLM {
		return e.blocksFor(len(q.Tokens))
	}
	out := max(e.clampOutput(len(q.Tokens), q.output()), 0)
	return e.toCompletion(&request{promptLen: len(q.Tokens), maxOutput: out})
}

// tryReserve gives the first pending destination its blocks, if it is due and
// there is room. vLLM uses the whole leading run of resident blocks of the
// prompt, also the last one; TensorRT-LLM takes fresh blocks only, and only if
// the request can be completed (engine notes §13, corrections §1, §2, §14).
func (e *Engine) tryReserve(facts *[]Lifecycle) {
	d := &e.destinations
	if len(d.pending) == 0 {
		return
	}
	h := d.pending[0]
	r := &e.requests.slab[h]
	if d.tried == r.order && d.triedGeneration == d.generation {
		return
	}
	d.tried, d.triedGeneration = r.order, d.generation
	if len(e.running) >= e.cfg.MaxNumSeqs {
		return
	}
	hits := e.pass.hits[:0]
	if e.cfg.Backend == config.TRTLLM {
		if e.toCompletion(r) > e.pool.Total()-e.pool.Active()-e.promised() {
			return
		}
	} else {
		hits = e.resident(r, r.promptLen/e.cfg.BlockSize)
	}
	fresh := e.blocksFor(r.promptLen) - len(hits)
	blocks, ok := e.pool.Acquire(r.blocks, hits, fresh)
	if !ok {
		return
	}
	e.events.removed(e.pool.Evicted())
	r.blocks = blocks
	r.shared = len(hits)
	r.status = heldDestination
	d.pending = slices.Delete(d.pending, 0, 1)
	d.held = append(d.held, h)
	*facts = append(*facts, Lifecycle{
		Kind: DestinationReserved, Req: h, Tag: r.tag, Handoff: r.handoff, Tokens: fresh * e.cfg.BlockSize,
	})
}

// Activate makes a destination whose blocks are reserved a waiting request:
// its prompt has arrived. Its complete blocks enter the prefix cache. It is
// Noop if h holds no reservation.
func (e *Engine) Activate(h Handle) Code {
	if !e.requests.is(h, heldDestination) {
		return Noop
	}
	e.beginCommand()
	r := &e.requests.slab[h]
	e.leaveDestinations(h)
	r.computed = r.promptLen
	e.publish(r, 0, r.computed)
	r.status = activated
	e.waiting.insertByOrder(e.requests.slab, h)
	e.tryReserve(&e.said.Lifecycle)
	return Applied
}

// ReleaseSource ends a request that SubmitPrefill queued and that holds its
// blocks for the transfer, which is over. It is Noop for any other.
func (e *Engine) ReleaseSource(h Handle) Code {
	if !e.requests.is(h, heldSource) {
		return Noop
	}
	return e.Cancel(h)
}

// CancelSource ends a request that SubmitPrefill queued, wherever it is. It is
// Noop for any other.
func (e *Engine) CancelSource(h Handle) Code {
	if !e.requests.known(h) || !e.requests.slab[h].source {
		return Noop
	}
	return e.Cancel(h)
}

// CancelDestination ends a request that Reserve queued and that is not active.
// It is Noop for any other.
func (e *Engine) CancelDestination(h Handle) Code {
	if !e.requests.is(h, pendingDestination) && !e.requests.is(h, heldDestination) {
		return Noop
	}
	return e.Cancel(h)
}

// leaveDestinations takes a request off the destinations' lists.
func (e *Engine) leaveDestinations(h Handle) {
	d := &e.destinations
	r := &e.requests.slab[h]
	list := &d.held
	if r.status == pendingDestination {
		list = &d.pending
	}
	i := slices.Index(*list, h)
	*list = slices.Delete(*list, i, i+1)
	d.lengths.Sub(r.promptLen)
}

// complete ends a running request that has all its output; a source keeps its
// blocks.
func (e *Engine) complete(h Handle) {
	r := &e.requests.slab[h]
	if !r.source {
		e.end(h)
		return
	}
	r.status = heldSource
	e.destinations.generation++
	e.pass.lifecycle = append(e.pass.lifecycle, Lifecycle{
		Kind: SourceHeld, Req: h, Tag: r.tag, Handoff: r.handoff, Tokens: r.promptLen,
	})
}
