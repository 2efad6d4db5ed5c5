package engine

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
)

// host is a rank's use of host memory (engine notes §11, dp_rank_local).
// Prompt blocks are stored as they are computed and loaded back when a waiting
// request needs them and the GPU no longer has them.
type host struct {
	on         bool
	pool       *offload.Pool
	store      offload.Lane
	load       offload.Lane
	shared     *offload.Shared // instead of the lanes
	client     int32
	blockBytes int

	copies   []copying // slab
	freeSlot int32     // of the slab; 0: none
	fresh    []int32   // stores decided on in this pass, not submitted yet
	storing  []int32   // submitted, in the order of their ends
	loading  []int32   // the same of loads
	fences   []float64 // by block: when its last store ends

	// Requests that wait for a copy, or were waiting for one and are to be
	// looked at before the queue, in the order they came here.
	parked    []Handle
	lengths   queue // moments of the parked ones; its links are not used
	computeMs float64
	keys      []uint64 // scratch
	keep      []uint64 // scratch
	held      []kv.Block
}

// copying is one store or load.
type copying struct {
	req    Handle // 0: it is gone
	endMs  float64
	order  uint64 // in a shared pool
	blocks []hostBlock
	next   int32 // free slot
}

// hostBlock is a block being copied: complete block index of the prompt.
type hostBlock struct {
	hash, local, parent uint64
	index               int
	block               kv.Block
	tokens              []uint32
}

func newHost(cfg config.Engine, shared *offload.Shared, client int32) host {
	o := cfg.HostOffload
	if o.Blocks == 0 {
		return host{}
	}
	pool := (*offload.Pool)(nil)
	if shared != nil {
		pool = shared.Pool
	} else {
		pool = offload.New(o.Blocks)
	}
	return host{
		on:         true,
		shared:     shared,
		client:     client,
		pool:       pool,
		store:      offload.NewLane(o.D2HGBs, o.FirstByteLatencyMs),
		load:       offload.NewLane(o.H2DGBs, o.FirstByteLatencyMs),
		blockBytes: cfg.BlockSize * cfg.KVCacheBytesPerToken,
		copies:     make([]copying, 1),
	}
}

// NextInternalMs is when the next copy between the GPU and host memory ends;
// ok is false if there is none. Internal must be called then, unless a pass is
// in flight, before anything else is asked of the engine.
func (e *Engine) NextInternalMs() (ms float64, ok bool) {
	if s := e.host.shared; s != nil {
		if ms = s.NextMs(); e.attends() && s.News(e.host.client) {
			return math.Inf(-1), true
		}
		return ms, !math.IsInf(ms, 1)
	}
	ms = math.Inf(1)
	for _, list := range [2][]int32{e.host.storing, e.host.loading} {
		if len(list) > 0 {
			ms = min(ms, e.host.copies[list[0]].endMs)
		}
	}
	return ms, !math.IsInf(ms, 1)
}

// Internal ends the copies that are over at nowMs. What it says is in Effects.
// It reports false, and does nothing, if none is or a pass is in flight; the
// end of a pass does the same by itself.
func (e *Engine) Internal(nowMs float64) bool {
	if e.pass.inFlight {
		return false
	}
	if s := e.host.shared; s != nil {
		if s.NextMs() <= nowMs {
			s.Advance(nowMs)
		}
		if !s.News(e.host.client) || !e.attends() {
			return false
		}
	} else if at, ok := e.NextInternalMs(); !ok || at > nowMs {
		return false
	}
	e.beginCommand()
	e.settle(nowMs)
	return true
}

// attends reports whether the rank follows what happens in the shared pool.
func (e *Engine) attends() bool {
	return len(e.host.storing)+len(e.host.loading)+e.host.lengths.len() > 0
}

// settle ends copies in the order of their ends and reports whether any ended.
func (e *Engine) settle(nowMs float64) (done bool) {
	x := &e.host
	if x.shared != nil {
		x.shared.Advance(nowMs)
		done = x.shared.News(x.client) && e.attends()
		for _, c := range x.shared.Take(x.client) {
			if c.Dir == offload.ToHost {
				e.stored(c.Copy)
				x.storing = without(x.storing, c.Copy)
			} else {
				e.loaded(c.Copy)
				x.loading = without(x.loading, c.Copy)
			}
		}
	}
	for x.shared == nil {
		at, ok := e.NextInternalMs()
		if !ok || at > nowMs {
			break
		}
		done = true
		if len(x.storing) > 0 && x.copies[x.storing[0]].endMs == at {
			e.stored(x.storing[0])
			x.storing = slices.Delete(x.storing, 0, 1)
		} else {
			e.loaded(x.loading[0])
			x.loading = slices.Delete(x.loading, 0, 1)
		}
	}
	if !done {
		return false
	}
	for _, h := range x.parked {
		if r := &e.requests.slab[h]; r.parked && !r.loads {
			r.ready = true
		}
	}
	return true
}

func without(list []int32, id int32) []int32 {
	i := slices.Index(list, id)
	return slices.Delete(list, i, i+1)
}

// reading reports whether this rank is loading a content.
func (x *host) reading(hash uint64) bool {
	if x.shared == nil {
		return x.pool.Reading(hash)
	}
	for _, id := range x.loading {
		for _, b := range x.copies[id].blocks {
			if b.hash == hash {
				return true
			}
		}
	}
	return false
}

// stored ends a store: its blocks can be loaded from now on.
func (e *Engine) stored(id int32) {
	x := &e.host
	c := &x.copies[id]
	if x.shared == nil {
		x.keys = x.keys[:0]
		for _, b := range c.blocks {
			x.keys = append(x.keys, b.hash)
		}
		x.pool.Arrive(x.keys)
	} else {
		x.held = x.held[:0]
		for _, b := range c.blocks {
			x.held = append(x.held, b.block)
		}
		e.pool.Release(x.held)
	}
	e.events.hostStored(c.blocks)
	e.freeCopy(id)
}

// loaded ends a load: its blocks are in the GPU's prefix cache.
func (e *Engine) loaded(id int32) {
	x := &e.host
	c := &x.copies[id]
	if x.shared == nil {
		x.keys = x.keys[:0]
		for _, b := range c.blocks {
			x.pool.Done(b.hash)
			x.keys = append(x.keys, b.hash)
		}
		x.pool.Renew(x.keys)
	}
	if c.req != 0 {
		r := &e.requests.slab[c.req]
		before := r.computed
		r.computed += len(c.blocks) * e.cfg.BlockSize
		e.publish(r, before, r.computed)
		r.shared = len(r.blocks)
		if e.remaining(r) > 0 { // it computes its last token, whose block it keeps
			r.computed = min(r.computed, max(r.len()-1, 0)/e.cfg.BlockSize*e.cfg.BlockSize)
		}
		r.fromHost = max(r.computed-before, 0)
		r.offered = r.computed / e.cfg.BlockSize
		r.ready, r.loads = true, false
	}
	e.freeCopy(id)
}

func (e *Engine) newCopy(h Handle) int32 {
	x := &e.host
	id := x.freeSlot
	if id != 0 {
		x.freeSlot = x.copies[id].next
	} else {
		id = int32(len(x.copies))
		x.copies = append(x.copies, copying{})
	}
	c := &x.copies[id]
	c.req, c.blocks = h, c.blocks[:0]
	if x.shared != nil {
		c.order = x.shared.Decide()
	}
	e.requests.slab[h].copy = id
	return id
}

func (e *Engine) freeCopy(id int32) {
	x := &e.host
	c := &x.copies[id]
	if c.req != 0 && e.requests.slab[c.req].copy == id {
		e.requests.slab[c.req].copy = 0
	}
	c.req = 0
	c.next = x.freeSlot
	x.freeSlot = id
}

// copyBlock describes complete block i of a request for a copy.
func (e *Engine) copyBlock(c *copying, r *request, i int) {
	n := len(c.blocks)
	if n < cap(c.blocks) {
		c.blocks = c.blocks[:n+1]
	} else {
		c.blocks = append(c.blocks, hostBlock{})
	}
	b := &c.blocks[n]
	ids := r.tokens.Blocks()
	*b = hostBlock{hash: ids[i].Hash, local: ids[i].Local, index: i, block: r.blocks[i], tokens: b.tokens[:0]}
	if i > 0 {
		b.parent = ids[i-1].Hash
	}
	if e.format.KeepTokens {
		b.tokens = r.tokens.AppendBlockTokens(b.tokens, i)
	}
}

// forsake makes the copies of a request that ends nobody's.
func (e *Engine) forsake(h Handle) {
	if !e.host.on {
		return
	}
	if r := &e.requests.slab[h]; r.ghost {
		i := slices.Index(e.host.parked, h)
		e.host.parked = slices.Delete(e.host.parked, i, i+1)
		r.ghost = false
	}
	for i := range e.host.copies {
		if e.host.copies[i].req == h {
			e.host.copies[i].req = 0
		}
	}
}
