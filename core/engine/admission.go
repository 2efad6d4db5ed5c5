package engine

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kv"
)

// decision is what admission says of the request at the head of the queue.
type decision uint8

const (
	admit  decision = iota
	wait            // until blocks are given back
	reject          // it can never fit
)

// remaining is the number of tokens the request may still generate: its own
// limit and that of the model (engine notes §4.1).
func (e *Engine) remaining(r *request) int {
	n := r.maxOutput - r.generated
	if limit := e.cfg.MaxModelLen; limit > 0 {
		n = min(n, max(limit-r.len(), 0))
	}
	return n
}

// tooLong reports whether the prompt leaves no room below the model's limit.
func (e *Engine) tooLong(h Handle) bool {
	limit := e.cfg.MaxModelLen
	return limit > 0 && e.requests.slab[h].promptLen >= limit
}

// lookup finds the longest run of leading blocks of the request that are in
// the pool. With vLLM a request that still wants a token must compute at least
// one, so the hit ends before the block that holds its last token, and with
// speculation one block earlier still (engine notes §4.6, corrections §10).
// The list is valid until the next lookup.
func (e *Engine) lookup(h Handle) []kv.Block {
	r := &e.requests.slab[h]
	limit := r.len() / e.cfg.BlockSize
	drop := 0
	if e.cfg.Backend != config.TRTLLM && e.remaining(r) > 0 {
		limit = max(r.len()-1, 0) / e.cfg.BlockSize
		drop = min(e.cfg.MTP.Drafts, 1)
	}
	hits := e.resident(r, limit)
	return hits[:max(len(hits)-drop, 0)]
}

// resident is the run of the request's first blocks, at most limit, that are in
// the pool. The list is valid until the next call.
func (e *Engine) resident(r *request, limit int) []kv.Block {
	blocks := r.tokens.Blocks()
	hits := e.pass.hits[:0]
	for _, id := range blocks[:min(limit, len(blocks))] {
		b := e.pool.Lookup(id.Hash)
		if b == 0 {
			break
		}
		hits = append(hits, b)
	}
	e.pass.hits = hits
	return hits
}

// clampOutput is the output limit a request is taken with. TensorRT-LLM cuts
// it to what the model's limit and the whole pool leave beside the prompt; a
// prompt that fills the pool keeps its limit and is rejected when it is
// scheduled (engine notes §4.1).
func (e *Engine) clampOutput(promptLen, maxOutput int) int {
	if e.cfg.Backend != config.TRTLLM {
		return maxOutput
	}
	if limit := e.cfg.MaxModelLen; limit > 0 {
		maxOutput = min(maxOutput, max(limit-promptLen, 0))
	}
	if room := e.cfg.NumGPUBlocks*e.cfg.BlockSize - promptLen; room > 0 {
		maxOutput = min(maxOutput, room)
	}
	return maxOutput
}

// admission decides whether the request at the head of the queue can have the
// blocks its backend asks for. Blocks of the hit that others hold cost
// nothing, idle ones do: holding them makes them unavailable. A preempted
// request is never rejected (engine notes §4.3).
func (e *Engine) admission(h Handle, hits []kv.Block) decision {
	r := &e.requests.slab[h]
	needed, available := e.blocksFor(r.len()), e.pool.Total()-e.pool.Active()
	if e.cfg.Backend == config.TRTLLM {
		needed = e.toCompletion(r)
		available -= e.promised()
	}
	if r.status == waiting && needed > e.pool.Total() {
		return reject
	}
	needed -= len(r.blocks) // loaded for it
	// Blocks that others hold need no room. The reference counts them over the
	// whole match, also where the hit was cut short, and then caps the count.
	held := 0
	blocks := r.tokens.Blocks()
	for _, id := range blocks[:min(len(blocks), max(r.named, r.promptLen/e.cfg.BlockSize))] {
		b := e.pool.Lookup(id.Hash)
		if b == 0 {
			break
		}
		if e.pool.Held(b) {
			held++
		}
	}
	needed -= min(held, len(hits))
	if needed > max(available, 0) {
		return wait
	}
	return admit
}

// fits reports whether the pool, empty, has room for what the request has.
func (e *Engine) fits(h Handle) bool {
	r := &e.requests.slab[h]
	return r.status != waiting || e.blocksFor(r.len()) <= e.pool.Total()
}

// toCompletion is the number of blocks that the request takes with all the
// output it may have, the last token included (engine notes §4.3:
// guaranteed_no_evict). An output that no pool holds stays one that none does.
func (e *Engine) toCompletion(r *request) int {
	return e.blocksFor(r.promptLen + min(r.maxOutput, config.MaxTotalSlots))
}

// promised counts the blocks that the running requests, and the destinations
// that have their prompt's blocks, do not hold yet but may need until they are
// completed.
func (e *Engine) promised() int {
	n := 0
	for _, h := range e.running {
		n += e.missing(h)
	}
	for _, h := range e.destinations.held {
		n += e.missing(h)
	}
	if e.waiting.activated > 0 {
		slab := e.requests.slab
		for h := e.waiting.head(slab); h != 0; h = slab[h].next {
			if slab[h].status == activated {
				n += e.missing(h)
			}
		}
	}
	return n
}

// missing is what a request still needs of the blocks it takes in the end.
func (e *Engine) missing(h Handle) int {
	r := &e.requests.slab[h]
	return max(e.toCompletion(r)-len(r.blocks), 0)
}

// blocksFor is the number of blocks that n tokens take.
func (e *Engine) blocksFor(n int) int { return (n + e.cfg.BlockSize - 1) / e.cfg.BlockSize }
