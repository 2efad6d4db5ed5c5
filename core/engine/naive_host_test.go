package engine_test

import (
	"math"
	"slices"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/seq"
)

// naiveHost is the naive engine's use of host memory.
type naiveHost struct {
	memory *offload.Memory
	bytes  int // of a block
	copies map[int32]*naiveCopy
	made   int32
	fresh  []int32
	fences map[int]float64   // by place
	places []*naivePlace     // of those who wait for copies
	news   bool              // a copy has ended since the last pass, and somebody waits
	texts  map[uint64]string // contents by hash
}

type naiveCopy struct {
	r        *naiveRequest // nil: gone
	store    bool
	first    []int // indices of the blocks
	contents []string
	blocks   []*naiveBlock
	order    uint64
	endMs    float64
	begun    bool
}

type naivePlace struct {
	r    *naiveRequest
	left bool
}

// naiveGuest is what a request is to host memory.
type naiveGuest struct {
	ready, loads bool
	copy         int32 // 0: none
	offered      int
	fromHost     int
	known        int // blocks that were loaded
}

func newNaiveHost(cfg config.Engine) *naiveHost {
	if cfg.HostOffload.Blocks == 0 {
		return nil
	}
	return &naiveHost{
		memory: offload.New(cfg.HostOffload, 1), bytes: cfg.BlockSize * cfg.KVCacheBytesPerToken,
		copies: map[int32]*naiveCopy{}, fences: map[int]float64{}, texts: map[uint64]string{},
	}
}

// guests wait for copies.
func (x *naiveHost) guests() (list []*naiveRequest) {
	if x != nil {
		for _, p := range x.places {
			if !p.left {
				list = append(list, p.r)
			}
		}
	}
	return list
}

func (x *naiveHost) anyReady() bool {
	return slices.ContainsFunc(x.guests(), func(r *naiveRequest) bool { return r.ready })
}

func (x *naiveHost) begin() {
	if x != nil {
		x.news = false
	}
}

func (x *naiveHost) fence(blocks []*naiveBlock) (ms float64) {
	if x != nil {
		for _, b := range blocks {
			ms = max(ms, x.fences[b.place])
		}
	}
	return ms
}

func (x *naiveHost) endOf(r *naiveRequest) float64 {
	if x == nil || r.copy == 0 {
		return 0
	}
	return x.copies[r.copy].endMs
}

func (x *naiveHost) underway() bool {
	if x != nil {
		for _, c := range x.copies {
			if c.begun {
				return true
			}
		}
	}
	return false
}

func (x *naiveHost) hash(content string, size int) uint64 {
	tokens := parseTokens(content)
	var s seq.Sequence
	s.Reset(seq.Format{BlockSize: size, Identify: true}, len(tokens))
	s.AppendAll(tokens)
	h := s.Blocks()[len(s.Blocks())-1].Hash
	x.texts[h] = content
	return h
}

func (n *naive) hash(content string) uint64 { return n.host.hash(content, n.cfg.BlockSize) }

// candidate is who may be admitted next, or nil.
func (n *naive) candidate() *naiveRequest {
	if n.host.anyReady() {
		for n.host.places[0].left {
			n.host.places = n.host.places[1:]
		}
		for _, p := range n.host.places {
			if !p.left && p.r.ready {
				return p.r
			}
		}
	}
	if len(n.waiting) > 0 {
		return n.waiting[0]
	}
	return nil
}

// dequeue takes a request out of where it waits. A guest that is not the first
// leaves its place behind.
func (n *naive) dequeue(r *naiveRequest) {
	n.waiting = slices.DeleteFunc(n.waiting, func(x *naiveRequest) bool { return x == r })
	if n.host == nil {
		return
	}
	r.ready = false
	if len(n.host.places) > 0 && n.host.places[0].r == r {
		n.host.places = n.host.places[1:]
	}
	for _, p := range n.host.places {
		p.left = p.left || p.r == r
	}
}

func (n *naive) forsake(r *naiveRequest) {
	if n.host == nil {
		return
	}
	n.host.places = slices.DeleteFunc(n.host.places, func(p *naivePlace) bool { return p.r == r })
	for _, c := range n.host.copies {
		if c.r == r {
			c.r = nil
		}
	}
}

func (n *naive) park(r *naiveRequest) {
	n.waiting = slices.DeleteFunc(n.waiting, func(x *naiveRequest) bool { return x == r })
	r.ready = false
	for _, p := range n.host.places {
		if p.r == r {
			p.left = false
			return
		}
	}
	n.host.places = append(n.host.places, &naivePlace{r: r})
}

// contents of the complete blocks of the prompt.
func (n *naive) prompt(r *naiveRequest) (list []string) {
	for end := n.cfg.BlockSize; end <= r.prompt; end += n.cfg.BlockSize {
		list = append(list, r.upTo(end))
	}
	return list
}

// touch makes a prompt's contents the newest, the first of all last.
func (n *naive) touch(r *naiveRequest) {
	for _, c := range slices.Backward(n.prompt(r)) {
		n.host.memory.Touch(n.hash(c))
	}
}

// consult reports whether the request has to wait for a copy, or for room to
// load into.
func (n *naive) consult(r *naiveRequest, now float64) (parks, full bool) {
	contents := n.prompt(r)
	var hit []*naiveBlock
	for _, c := range contents {
		b := n.pool.find(c)
		if b == nil {
			break
		}
		hit = append(hit, b)
	}
	if r.copy != 0 {
		n.park(r)
		return true, false
	}
	run, busy := contents[len(hit):], false
	for i, c := range run {
		state := n.host.memory.State(n.hash(c))
		if state == offload.Absent {
			run = run[:i]
			break
		}
		busy = busy || state == offload.Pending
		for _, x := range n.host.copies {
			busy = busy || !x.store && slices.Contains(x.contents, c)
		}
	}
	n.touch(r)
	if len(run) == 0 || !busy && !r.back && n.ceil(len(r.tokens)) > n.pool.total {
		return false, false
	}
	if busy {
		n.park(r)
		return true, false
	}
	asks := n.ceil(len(r.tokens))
	for _, x := range n.running {
		if x.computed < x.prompt {
			asks += max(n.ceil(x.prompt)-len(x.blocks), 0)
		}
	}
	for _, x := range n.host.guests() {
		if len(x.blocks) > 0 {
			asks += max(n.ceil(len(x.tokens))-len(x.blocks), 0)
		}
	}
	for _, b := range hit {
		if b.refs > 0 {
			asks--
		}
	}
	if asks > n.pool.total-n.pool.active() {
		return false, true
	}
	held, gone, ok := n.pool.take(hit, len(run))
	if !ok {
		return false, true
	}
	if len(gone) > 0 {
		n.p.events = append(n.p.events, naiveEvent{removed: true, ends: gone})
	}
	r.blocks, r.computed = held, len(hit)*n.cfg.BlockSize
	c := n.newCopy(r, false)
	for i, content := range run {
		n.add(c, len(hit)+i, content)
		n.host.memory.Read(n.hash(content))
	}
	n.begin(r.copy, max(now, n.host.fence(held[len(hit):])))
	n.park(r)
	r.loads = true
	return true, false
}

func (n *naive) newCopy(r *naiveRequest, store bool) *naiveCopy {
	n.host.made++
	c := &naiveCopy{r: r, store: store, order: n.host.memory.Decide()}
	n.host.copies[n.host.made] = c
	r.copy = n.host.made
	return c
}

func (n *naive) add(c *naiveCopy, index int, content string) {
	c.first = append(c.first, index)
	c.contents = append(c.contents, content)
	c.blocks = append(c.blocks, c.r.blocks[index])
}

func (n *naive) begin(id int32, atMs float64) {
	c, d := n.host.copies[id], offload.ToGPU
	if c.store {
		d = offload.ToHost
	}
	var hashes []uint64
	for _, content := range c.contents {
		hashes = append(hashes, n.hash(content))
	}
	c.begun = true
	c.endMs = n.host.memory.Submit(d, offload.Copy{ID: id, Order: c.order, Bytes: n.host.bytes * len(hashes), Hashes: hashes}, atMs)
}

// stores decides what the pass stores.
func (n *naive) stores(now float64) {
	if n.host == nil {
		return
	}
	for _, r := range n.running {
		if n.workOf(r).r == r {
			n.storeOf(r, now)
		}
	}
}

func (n *naive) storeOf(r *naiveRequest, now float64) {
	eligible := min(r.computed, r.prompt) / n.cfg.BlockSize
	if eligible <= r.offered {
		return
	}
	contents := n.prompt(r)
	var missing, keep []uint64
	for i := r.offered; i < eligible; i++ {
		h := n.hash(contents[i])
		keep = append(keep, h)
		if n.host.memory.State(h) == offload.Absent {
			if n.host.fence(r.blocks[i:i+1]) > now {
				return
			}
			missing = append(missing, h)
		}
	}
	if n.host.memory.Shared() && len(missing) > 0 {
		n.host.memory.Advance(now)
	}
	if !n.host.memory.Store(missing, keep) {
		return
	}
	if gone := n.host.memory.Evicted(); len(gone) > 0 {
		e := naiveEvent{removed: true, host: true}
		for _, h := range gone {
			e.ends = append(e.ends, n.host.texts[h])
		}
		n.p.events = append(n.p.events, e)
	}
	first := r.offered
	r.offered = eligible
	if len(missing) == 0 {
		return
	}
	c := n.newCopy(r, true)
	for i := first; i < eligible; i++ {
		if slices.Contains(missing, n.hash(contents[i])) {
			n.add(c, i, contents[i])
			if n.host.memory.Shared() {
				r.blocks[i].refs++
			}
		}
	}
	n.host.fresh = append(n.host.fresh, r.copy)
	n.touch(r)
}

// complete ends and begins copies at the end of a pass.
func (n *naive) complete(p *naivePass, endMs float64) {
	if n.host == nil {
		return
	}
	n.p = p
	n.settle(endMs)
	for _, id := range n.host.fresh {
		n.begin(id, endMs)
		if c := n.host.copies[id]; !n.host.memory.Shared() {
			for _, b := range c.blocks {
				n.host.fences[b.place] = c.endMs
			}
		}
	}
	n.host.fresh = nil
	n.settle(endMs)
}

// internal does what is due between passes; its events are in the pass it
// returns.
func (n *naive) internal(now float64) *naivePass {
	n.p = &naivePass{}
	n.settle(now)
	return n.p
}

// nextMs is when a copy ends next, +Inf if none is under way.
func (n *naive) nextMs() float64 {
	if n.host == nil {
		return math.Inf(1)
	}
	return n.host.memory.NextMs()
}

func (n *naive) settle(now float64) {
	x := n.host
	x.memory.Advance(now)
	ended := x.memory.Take(0)
	for _, e := range ended {
		c := x.copies[e.ID]
		delete(x.copies, e.ID)
		if c.r != nil && c.r.copy == e.ID {
			c.r.copy = 0
		}
		if c.store {
			n.stored(c)
		} else if c.r != nil {
			n.loaded(c)
		}
	}
	if len(ended) > 0 {
		x.news = len(x.guests()) > 0
		for _, r := range x.guests() {
			r.ready = r.ready || !r.loads
		}
	}
}

func (n *naive) stored(c *naiveCopy) {
	if n.host.memory.Shared() {
		n.pool.give(c.blocks)
	}
	for i, content := range c.contents {
		if i == 0 || c.first[i-1]+1 != c.first[i] {
			n.p.events = append(n.p.events, naiveEvent{host: true, first: c.first[i]})
		}
		e := &n.p.events[len(n.p.events)-1]
		e.ends = append(e.ends, content)
	}
}

func (n *naive) loaded(c *naiveCopy) {
	r, size := c.r, n.cfg.BlockSize
	before := r.computed
	r.computed += len(c.contents) * size
	n.cache(r, before)
	r.known = len(r.blocks)
	if n.remaining(r) > 0 {
		r.computed = min(r.computed, (len(r.tokens)-1)/size*size)
	}
	r.fromHost = max(r.computed-before, 0)
	r.offered = r.computed / size
	r.loads, r.ready = false, true
}

// unload takes back what was loaded for the last guest that is not next.
func (n *naive) unload() bool {
	next := n.candidate()
	for _, r := range slices.Backward(n.host.guests()) {
		if r.ready && r != next && len(r.blocks) > 0 {
			n.pool.give(r.blocks)
			r.blocks, r.computed, r.known, r.fromHost = nil, 0, 0, 0
			return true
		}
	}
	return false
}
