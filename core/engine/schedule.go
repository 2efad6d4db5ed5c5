package engine

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kv"
)

// verdict is what became of a request that asked for work.
type verdict uint8

const (
	scheduled verdict = iota
	blocked
	currentPreempted // it was the victim of its own need for blocks
)

// schedule gives a request its share of the budget and the blocks for it,
// preempting others where the pool is full (engine notes §4.4). hits are the
// cached blocks it begins with; they count as computed. The share is fixed
// before anybody is preempted.
func (e *Engine) schedule(h Handle, hits []kv.Block) verdict {
	p := &e.pass
	r := &e.requests.slab[h]
	before := r.computed + len(hits)*e.cfg.BlockSize
	promptBefore := min(before, r.promptLen)
	remaining := max(r.len()-before, 0)
	if !e.cfg.EnableChunkedPrefill && r.promptLen-promptBefore > p.batch.budget {
		return blocked
	}
	n := min(remaining, p.batch.budget)
	if n == 0 && remaining > 0 {
		return blocked
	}
	target := before + n
	if v := e.grow(h, hits, target); v != scheduled {
		return v
	}
	r.computed = target
	r.named = max(r.named, target/e.cfg.BlockSize)
	r.pass = p.number
	e.publish(r, before, target)

	r.prompt = min(target, r.promptLen) - promptBefore
	r.emitted = false
	p.batch.add(work{
		req:       h,
		total:     n,
		prompt:    r.prompt,
		prefix:    promptBefore,
		promptLen: r.promptLen,
		seqLen:    r.len(),
		terminal:  e.remaining(r) == 0,
	})
	return scheduled
}

// grow gives the request the blocks for target tokens, the hits first. While
// the pool cannot, it preempts; TensorRT-LLM never does, since it admits only
// what can be completed.
func (e *Engine) grow(h Handle, hits []kv.Block, target int) verdict {
	p := &e.pass
	r := &e.requests.slab[h]
	fresh := max(e.blocksFor(target)-len(r.blocks)-len(hits), 0)
	if fresh == 0 && len(hits) == 0 {
		return scheduled
	}
	for {
		held, ok := e.pool.Acquire(r.blocks, hits, fresh)
		if ok {
			if e.host.on {
				first := len(r.blocks) + len(hits)
				r.blocks = held
				e.host.computeMs = max(e.host.computeMs, e.fence(r, first))
			}
			r.blocks = held
			e.events.removed(e.pool.Evicted())
			return scheduled
		}
		if len(e.running) == 0 || e.cfg.Backend == config.TRTLLM {
			return blocked
		}
		victim := e.preempt()
		p.batch.undo(victim)
		if victim == h {
			return currentPreempted
		}
	}
}

// preempt takes the last (LIFO) or first (FIFO) running request out of the
// batch: it gives back its blocks, keeps what it has generated and waits at
// the head of the queue.
func (e *Engine) preempt() (victim Handle) {
	p := &e.pass
	i := 0
	if e.cfg.Preemption == config.LIFO {
		i = len(e.running) - 1
	}
	victim = e.running[i]
	r := &e.requests.slab[victim]
	event := Pressure{Req: victim, Tag: r.tag, Before: e.load(), OwnBlocks: len(r.blocks)}

	if r.copy != 0 {
		e.host.computeMs = max(e.host.computeMs, e.host.copies[r.copy].endMs)
	}
	e.running = append(e.running[:i], e.running[i+1:]...)
	e.pool.Release(r.blocks)
	r.blocks = r.blocks[:0]
	r.shared = 0
	r.computed = 0
	r.status = preempted
	e.waiting.pushFront(e.requests.slab, victim)
	e.destinations.generation++
	p.preempted = true
	p.preemptions++

	event.After = e.load()
	e.out.Pressure = append(e.out.Pressure, event)
	return victim
}

func (e *Engine) load() Load {
	return Load{Running: len(e.running), Waiting: e.WaitingLen(), ActiveBlocks: e.pool.Active()}
}

// publish names the blocks that became complete between before and after
// computed tokens. Those whose content nobody else has cached are news:
// neighbours share one event (engine notes §5.5).
func (e *Engine) publish(r *request, before, after int) {
	if !e.format.Identify {
		return
	}
	ids := r.tokens.Blocks()
	extend := false
	for i := max(before/e.cfg.BlockSize, r.shared); i < after/e.cfg.BlockSize; i++ {
		visible := e.pool.Cache(r.blocks[i], ids[i].Hash)
		if visible {
			e.events.stored(&r.tokens, i, extend)
		}
		extend = visible
	}
}
