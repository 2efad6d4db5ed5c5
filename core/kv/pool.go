package kv

import "github.com/dryserve/dryserve/core/hashtable"

// Block is a handle of one block of a Pool; 0 is none.
type Block int32

// block is the state of one block. Slot 0 of the slab is the sentinel of the
// inactive list.
type block struct {
	hash   uint64
	refs   int32 // holders
	cached bool
	prev   Block // inactive neighbours; next also links free slots
	next   Block
	older  Block // ring of the blocks with the same hash, in caching order
	newer  Block
}

// Pool is the KV pool of one worker.
type Pool struct {
	total    int
	active   int
	inactive int
	blocks   []block
	freeSlot Block
	index    hashtable.Table
	evicted  []uint64 // hashes that the last Acquire made disappear
}

// New returns an empty pool of total blocks.
func New(total int) *Pool {
	return &Pool{total: total, blocks: make([]block, 1, 64), index: hashtable.New()}
}

// Total, Active, Inactive and Free count blocks; Total is the sum of the
// others.
func (p *Pool) Total() int    { return p.total }
func (p *Pool) Active() int   { return p.active }
func (p *Pool) Inactive() int { return p.inactive }
func (p *Pool) Free() int     { return p.total - p.active - p.inactive }

// Lookup finds the block a hash is known by: the primary copy, or 0.
func (p *Pool) Lookup(hash uint64) Block { return Block(p.index.Get(hash)) }

// Held reports whether any request holds b.
func (p *Pool) Held(b Block) bool { return p.blocks[b].refs > 0 }

// Acquire appends to held, a request's list of blocks, first hits, cached
// blocks that a lookup has just found, and then fresh private ones, and
// returns the longer list. It takes fresh blocks from the free ones and evicts
// inactive ones where those run out, never a hit. If the pool cannot give that
// many it changes nothing and reports false. The hits must differ from each
// other. Evicted tells what disappeared. Of the free blocks the one freed last
// is taken first.
func (p *Pool) Acquire(held, hits []Block, fresh int) ([]Block, bool) {
	p.evicted = p.evicted[:0]
	evictable := p.inactive
	for _, b := range hits {
		if p.blocks[b].refs == 0 {
			evictable--
		}
	}
	if fresh-p.Free() > evictable {
		return held, false
	}
	for _, b := range hits {
		p.pin(b)
		held = append(held, b)
	}
	for p.Free() < fresh {
		p.evict()
	}
	for range fresh {
		held = append(held, p.newPrivate())
	}
	return held, true
}

// Evicted lists the hashes that the last Acquire made disappear, those whose
// last copy it evicted, in eviction order. It is valid until the next Acquire.
func (p *Pool) Evicted() []uint64 { return p.evicted }

// Cache names a private block: its content is complete and is known by hash
// from now on. It reports whether the hash became visible by that, i.e. no
// other block carries it.
func (p *Pool) Cache(b Block, hash uint64) (visible bool) {
	x := &p.blocks[b]
	x.hash, x.cached = hash, true
	primary := Block(p.index.Get(hash))
	if primary == 0 {
		x.older, x.newer = b, b
		p.index.Set(hash, int32(b))
		return true
	}
	newest := p.blocks[primary].older
	x.older, x.newer = newest, primary
	p.blocks[newest].newer = b
	p.blocks[primary].older = b
	return false
}

// Release gives back a request's blocks, the last first, so that the end of a
// sequence is evicted before its beginning. A private block becomes free, a
// cached one inactive once nobody holds it.
func (p *Pool) Release(held []Block) {
	for i := len(held) - 1; i >= 0; i-- {
		b := held[i]
		x := &p.blocks[b]
		x.refs--
		if x.refs > 0 {
			continue
		}
		p.active--
		if x.cached {
			p.inactive++
			p.link(b)
		} else {
			p.freeBlock(b)
		}
	}
}

// Hold adds a holder to a block that is held or cached.
func (p *Pool) Hold(b Block) { p.pin(b) }

func (p *Pool) pin(b Block) {
	x := &p.blocks[b]
	if x.refs == 0 {
		p.unlink(b)
		p.inactive--
		p.active++
	}
	x.refs++
}

// evict frees the block released longest ago.
func (p *Pool) evict() {
	b := p.blocks[0].next
	x := p.blocks[b]
	p.unlink(b)
	p.inactive--
	switch {
	case x.newer == b:
		p.index.Remove(x.hash)
		p.evicted = append(p.evicted, x.hash)
	default:
		p.blocks[x.older].newer = x.newer
		p.blocks[x.newer].older = x.older
		if Block(p.index.Get(x.hash)) == b {
			p.index.Set(x.hash, int32(x.newer))
		}
	}
	p.freeBlock(b)
}

func (p *Pool) newPrivate() Block {
	b := p.freeSlot
	if b != 0 {
		p.freeSlot = p.blocks[b].next
	} else {
		b = Block(len(p.blocks))
		p.blocks = append(p.blocks, block{})
	}
	p.blocks[b] = block{refs: 1}
	p.active++
	return b
}

func (p *Pool) freeBlock(b Block) {
	p.blocks[b] = block{next: p.freeSlot}
	p.freeSlot = b
}

// link appends b to the inactive list.
func (p *Pool) link(b Block) {
	last := p.blocks[0].prev
	p.blocks[b].prev, p.blocks[b].next = last, 0
	p.blocks[last].next = b
	p.blocks[0].prev = b
}

func (p *Pool) unlink(b Block) {
	x := &p.blocks[b]
	p.blocks[x.prev].next = x.next
	p.blocks[x.next].prev = x.prev
}
