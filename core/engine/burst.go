package engine

import "github.com/dryserve/dryserve/core/config"

// burst is the largest number of tokens the request may get in this pass.
func (e *Engine) burst(r *request) int {
	most := e.bursts.Most()
	if e.cfg.Role == config.Prefill {
		most = 1
	}
	return min(most, e.remaining(r))
}

// reserveBursts takes the blocks that the bursts of the ready requests may
// need, before anything is drawn. While the pool cannot give them it preempts;
// the work that a victim was given in this pass stays counted
// (engine notes §4.7, corrections §13).
func (e *Engine) reserveBursts() {
	p := &e.pass
	for {
		need := 0
		for _, h := range p.ready {
			r := &e.requests.slab[h]
			need += e.blocksFor(r.len()+e.burst(r)) - len(r.blocks)
		}
		blocks, ok := e.pool.Acquire(p.reserve[:0], nil, need)
		if ok {
			p.reserve = blocks
			e.events.removed(e.pool.Evicted())
			return
		}
		e.preempt()
		p.ready = e.stillRunning(p.ready)
	}
}

// emitBurst appends the tokens that a step of speculative decoding yields.
// Each but the newest has KV, and the newest has room for it. What is accepted
// beyond the request's last token is counted but not emitted.
func (e *Engine) emitBurst(h Handle) {
	p := &e.pass
	r := &e.requests.slab[h]
	accepted := 1
	if e.cfg.Role != config.Prefill {
		accepted = e.bursts.Next()
	}
	if r.prompt == 0 {
		p.acceptance.Forwards++
		p.acceptance.AcceptedTokens += accepted
	}
	for range min(accepted, e.remaining(r)) {
		before := r.computed
		r.computed = r.len()
		e.publish(r, before, r.computed)
		if e.blocksFor(r.len()+1) > len(r.blocks) {
			last := len(p.reserve) - 1
			r.blocks = append(r.blocks, p.reserve[last])
			p.reserve = p.reserve[:last]
		}
		e.emitToken(h)
	}
}
