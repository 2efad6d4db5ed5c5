package engine

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/hashtable"
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
)

// host is a rank's use of host memory, its own or shared with other ranks
// (engine notes §11). Prompt blocks are stored as they are computed and loaded
// back when a waiting request needs them and the GPU no longer has them.
//
// While a block of the GPU is read for a store it may be given away if the
// memory is the rank's own; what is written into it waits for the store's end
// (fences). If the memory is shared the block is held until then.
type host struct {
	on         bool
	memory     *offload.Memory
	client     int32
	disk       *offload.Disk // nil: none
	worker     int32         // the rank's number among the clients of disk
	blockBytes int

	copies   []copying // slab
	freeSlot int32     // of the slab; 0: none
	fresh    []int32   // stores decided on in this pass, not submitted yet
	underway int       // copies submitted
	reads    hashtable.Table
	fences   []float64 // by block: when its last store ends
	parking  parking

	computeMs float64  // when the pass may begin to compute
	began     bool     // the pass began to load or restore
	progress  int      // passes that computed anything
	keys      []uint64 // scratch
	keep      []uint64 // scratch
	held      []kv.Block
}

// copying is one store or load.
type copying struct {
	req    Handle // 0: it is gone
	order  uint64
	endMs  float64 // 0 in shared memory
	blocks []hostBlock
	disk   bool  // from or to disk, not the GPU
	next   int32 // free slot
}

func (c *copying) reset() { c.req, c.endMs, c.disk, c.blocks = 0, 0, false, c.blocks[:0] }

// hostBlock is a block being copied: complete block index of the prompt.
type hostBlock struct {
	hash, local, parent uint64
	index               int
	block               kv.Block
	tokens              []uint32
}

func newHost(cfg config.Engine, t offload.Tiers) host {
	if cfg.HostOffload.Blocks == 0 {
		return host{}
	}
	if t.Host == nil {
		t.Host, t.Client = offload.New(cfg.HostOffload, 1), 0
	}
	if t.Disk == nil && cfg.DiskOffload.Blocks > 0 {
		t.Disk, t.Worker = offload.NewDisk(cfg.DiskOffload, 1), 0
	}
	return host{
		on:         true,
		memory:     t.Host,
		client:     t.Client,
		disk:       t.Disk,
		worker:     t.Worker,
		blockBytes: cfg.BlockSize * cfg.KVCacheBytesPerToken,
		copies:     make([]copying, 1),
		reads:      hashtable.New(),
	}
}

// NextInternalMs is when the next copy between the GPU and host memory ends, in
// shared memory also one of another rank; ok is false if there is none. Internal
// must be called then, unless a pass is in flight, before anything else is asked
// of the engine.
func (e *Engine) NextInternalMs() (ms float64, ok bool) {
	if !e.host.on {
		return 0, false
	}
	if e.host.hasNews() {
		return math.Inf(-1), true
	}
	ms = e.host.nextMs()
	return ms, !math.IsInf(ms, 1)
}

// Internal ends the copies that are over at nowMs. What it says is in Effects.
// It reports false, and does nothing, if that does not concern the rank or a pass
// is in flight; the end of a pass does the same by itself.
func (e *Engine) Internal(nowMs float64) bool {
	if e.pass.inFlight || !e.host.on {
		return false
	}
	if e.host.memory.NextMs() <= nowMs {
		e.host.memory.Advance(nowMs)
	}
	if d := e.host.disk; d != nil && d.NextMs() <= nowMs {
		d.Advance(nowMs)
	}
	if !e.host.hasNews() {
		return false
	}
	e.beginCommand()
	e.settle(nowMs)
	return true
}

// hasNews reports whether a copy has ended that the rank has not taken note of.
func (x *host) hasNews() bool {
	return x.attends() && (x.memory.News(x.client) || x.disk != nil && x.disk.News(x.worker))
}

// nextMs is when a copy of anybody's ends next or its first byte comes.
func (x *host) nextMs() float64 {
	if x.disk == nil {
		return x.memory.NextMs()
	}
	return min(x.memory.NextMs(), x.disk.NextMs())
}

// attends reports whether the ends of copies concern the rank, also those of
// others: it copies, or a request waits for a copy.
func (x *host) attends() bool { return x.underway+x.parking.len() > 0 }

// begin prepares for a pass. What has ended while it did not concern the rank is
// no news when it does.
func (x *host) begin(nowMs float64) {
	x.computeMs = nowMs
	x.began = false
	x.parking.stirred = false
	if x.on && !x.attends() {
		x.memory.Take(x.client)
		if x.disk != nil {
			x.disk.Take(x.worker)
		}
	}
}

// finishCopies ends and begins copies at the end of a pass: what is over, then the
// stores that the pass decided on. It reports whether any has ended.
func (e *Engine) finishCopies(endMs float64) (ended bool) {
	if !e.host.on {
		return false
	}
	ended = e.settle(endMs)
	e.submitStores(endMs)
	return e.settle(endMs) || ended
}

// settle takes note of the copies that have ended by nowMs. Any end makes the
// parked requests worth a look, and there being one that of the rank, even if
// it is still being loaded for.
func (e *Engine) settle(nowMs float64) (ended bool) {
	x := &e.host
	x.memory.Advance(nowMs)
	ended = x.hasNews()
	for _, c := range x.memory.Take(x.client) {
		x.underway--
		if c.Dir == offload.ToHost {
			e.stored(c.ID, nowMs)
		} else {
			e.loaded(c.ID)
		}
	}
	if x.disk != nil {
		ended = e.settleDisk(nowMs) || ended
	}
	if ended {
		x.parking.wake(e.requests.slab)
	}
	return ended
}

// settleDisk takes note of the copies to and from disk that have ended by nowMs.
func (e *Engine) settleDisk(nowMs float64) (ended bool) {
	x := &e.host
	x.disk.Advance(nowMs)
	ended = x.attends() && x.disk.News(x.worker)
	for _, c := range x.disk.Take(x.worker) {
		x.underway--
		if c.Dir == offload.ToHost {
			e.written(c.ID)
		} else {
			e.restored(c.ID)
		}
	}
	return ended
}

// submit begins a copy, not before fromMs.
func (e *Engine) submit(d offload.Direction, id int32, fromMs float64) {
	x := &e.host
	x.copies[id].endMs = x.memory.Submit(d, x.describe(id, x.client), fromMs)
	x.underway++
}

// describe is a copy as the memory or the disk is told of it by a client of
// theirs. It is valid until the next call, and so is contents.
func (x *host) describe(id, client int32) offload.Copy {
	c := &x.copies[id]
	return offload.Copy{Client: client, ID: id, Order: c.order, Bytes: len(c.blocks) * x.blockBytes, Hashes: x.contents(id)}
}

// contents are the hashes of a copy's blocks.
func (x *host) contents(id int32) []uint64 {
	x.keys = x.keys[:0]
	for i := range x.copies[id].blocks {
		x.keys = append(x.keys, x.copies[id].blocks[i].hash)
	}
	return x.keys
}

// newCopy makes a copy of blocks of a request, still none.
func (e *Engine) newCopy(h Handle) int32 {
	id := e.takeCopy()
	c := &e.host.copies[id]
	c.req, c.order = h, e.host.memory.Decide()
	e.requests.slab[h].copy = id
	return id
}

// takeCopy is a free slot for a copy, still of nobody and nothing.
func (e *Engine) takeCopy() int32 {
	x := &e.host
	id := x.freeSlot
	if id != 0 {
		x.freeSlot = x.copies[id].next
	} else {
		id = int32(len(x.copies))
		x.copies = append(x.copies, copying{})
	}
	x.copies[id].reset()
	return id
}

func (e *Engine) freeCopy(id int32) {
	x := &e.host
	c := &x.copies[id]
	if c.req != 0 && e.requests.slab[c.req].copy == id {
		e.requests.slab[c.req].copy = 0
	}
	c.reset()
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
	*b = hostBlock{hash: ids[i].Hash, local: ids[i].Local, index: i, tokens: b.tokens[:0]}
	if i < len(r.blocks) {
		b.block = r.blocks[i]
	}
	if i > 0 {
		b.parent = ids[i-1].Hash
	}
	if e.format.KeepTokens {
		b.tokens = r.tokens.AppendBlockTokens(b.tokens, i)
	}
}

// touch makes the contents of a prompt's complete blocks the newest in host
// memory, the first of all last.
func (e *Engine) touch(r *request) {
	ids := r.tokens.Blocks()
	for i := min(r.promptLen/e.cfg.BlockSize, len(ids)) - 1; i >= 0; i-- {
		e.host.memory.Touch(ids[i].Hash)
	}
}

// forsake makes the copies of a request that ends nobody's.
func (e *Engine) forsake(h Handle) {
	if !e.host.on {
		return
	}
	e.host.parking.forget(e.requests.slab, h)
	for i := range e.host.copies {
		if e.host.copies[i].req == h {
			e.host.copies[i].req = 0
		}
	}
}
