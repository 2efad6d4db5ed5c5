package extent

import (
	"github.com/dryserve/dryserve/core/coverage"
	"github.com/dryserve/dryserve/core/prefix"
)

// node is one extent: blocks Start..Start+N-1 of a segment. Slot 0 is the
// sentinel of the LRU list.
type node struct {
	seg   int32 // prefix segment (> 0), private segment (< 0), 0: nameless
	start int32 // block index on the path
	n     int32 // blocks
	refs  int32 // holders
	prev  int32 // LRU neighbours while refs is 0; next also links free slots
	next  int32
	sib   int32 // next extent of the segment in caching order
	cont  int32 // the back part, where this extent was split
}

// hold is one entry of a request's list of prompt blocks it holds, linked
// from the last to the first.
type hold struct {
	ext  int32
	n    int32 // blocks
	prev int32
}

// Pool is the KV pool of one worker.
type Pool struct {
	tree     *prefix.Tree
	bs, tbs  int64 // tokens per engine block, per trace hash id
	total    int
	active   int // blocks held by requests or not yet filled
	inactive int // blocks on the LRU list

	nodes    []node
	freeNode int32
	holds    []hold
	freeHold int32
	table    []entry // open addressing: segment -> first extent
	used     int
	path     []int32 // scratch: segments of a prompt, leaf first
	chain    []int32 // scratch: extents of one hold
	private  int32   // last private segment number given out

	// Changes notes what becomes of the named blocks, if it is on.
	Changes coverage.Log
}

type entry struct {
	seg   int32 // 0: empty
	first int32
}

// New returns an empty pool of total blocks of blockSize tokens, for prompts
// that are paths of tree with traceBlockSize tokens per id.
func New(tree *prefix.Tree, total, blockSize, traceBlockSize int) *Pool {
	return &Pool{
		tree: tree, bs: int64(blockSize), tbs: int64(traceBlockSize), total: total,
		nodes: make([]node, 1, 64), holds: make([]hold, 1, 64), table: make([]entry, 64),
	}
}

// Active, Inactive and Free count blocks; together they are the pool.
func (p *Pool) Active() int   { return p.active }
func (p *Pool) Inactive() int { return p.inactive }
func (p *Pool) Free() int     { return p.total - p.active - p.inactive }

// Take makes k blocks active, evicting idle ones where free blocks run out.
// The caller has checked that Free()+Inactive() is enough.
func (p *Pool) Take(k int) {
	if short := k - p.Free(); short > 0 {
		p.evict(short)
	}
	p.active += k
}

// evict drops the k least recently released blocks.
func (p *Pool) evict(k int) {
	p.inactive -= k
	for k > 0 {
		e := p.nodes[0].next
		x := p.nodes[e]
		n := min(int32(k), x.n)
		k -= int(n)
		if n < x.n {
			p.nodes[e].n -= n
		} else {
			p.unlink(e)
			if x.seg != 0 {
				p.forget(e)
			}
			p.freeExtent(e)
		}
		if p.Changes.On && x.seg > 0 {
			p.lost(x.seg, x.start+x.n-n, x.start+x.n)
		}
	}
}

// lost notes that a copy of blocks from to end-1 of a segment has been evicted:
// unless there is another, they are gone.
func (p *Pool) lost(seg, from, end int32) {
	gone := from
	for e := p.first(seg); e != 0; e = p.nodes[e].sib {
		gone = max(gone, p.nodes[e].start+p.nodes[e].n)
	}
	if gone < end {
		p.Changes.Removed(seg, gone)
	}
}

// ---- extents ----

func (p *Pool) newExtent(seg, start, n, refs int32) int32 {
	e := p.freeNode
	if e != 0 {
		p.freeNode = p.nodes[e].next
	} else {
		e = int32(len(p.nodes))
		p.nodes = append(p.nodes, node{})
	}
	p.nodes[e] = node{seg: seg, start: start, n: n, refs: refs}
	return e
}

func (p *Pool) freeExtent(e int32) {
	p.nodes[e] = node{next: p.freeNode}
	p.freeNode = e
}

// link puts an idle extent before the extent at (0: at the tail of the list).
func (p *Pool) link(e, at int32) {
	prev := p.nodes[at].prev
	p.nodes[e].prev, p.nodes[e].next = prev, at
	p.nodes[prev].next = e
	p.nodes[at].prev = e
}

func (p *Pool) unlink(e int32) {
	x := p.nodes[e]
	p.nodes[x.prev].next = x.next
	p.nodes[x.next].prev = x.prev
}

// split cuts e after its first k blocks. The back part is evicted earlier, so
// it stands directly before the front part in the LRU list; holders reach it
// through cont.
func (p *Pool) split(e, k int32) int32 {
	x := p.nodes[e]
	b := p.newExtent(x.seg, x.start+k, x.n-k, x.refs)
	nb, ne := &p.nodes[b], &p.nodes[e]
	nb.cont, nb.sib = x.cont, x.sib
	ne.n, ne.cont, ne.sib = k, b, b
	if x.refs == 0 {
		p.link(b, e)
	}
	return b
}

func (p *Pool) pin(e int32) {
	x := &p.nodes[e]
	if x.refs == 0 {
		p.unlink(e)
		p.inactive -= int(x.n)
		p.active += int(x.n)
	}
	x.refs++
}

func (p *Pool) unpin(e int32) {
	x := &p.nodes[e]
	x.refs--
	if x.refs == 0 {
		p.active -= int(x.n)
		p.inactive += int(x.n)
		p.link(e, 0)
	}
}

// ---- the segment table ----

func (p *Pool) slot(seg int32) int {
	mask := len(p.table) - 1
	i := int(uint32(seg)*0x9E3779B1>>7) & mask
	for p.table[i].seg != 0 && p.table[i].seg != seg {
		i = (i + 1) & mask
	}
	return i
}

// first is the segment's first extent in caching order, 0 if it has none.
func (p *Pool) first(seg int32) int32 { return p.table[p.slot(seg)].first }

// list appends e to its segment's extents.
func (p *Pool) list(e int32) {
	seg := p.nodes[e].seg
	i := p.slot(seg)
	if p.table[i].seg == 0 {
		if p.used*4 >= len(p.table)*3 {
			p.growTable()
			i = p.slot(seg)
		}
		p.table[i] = entry{seg: seg, first: e}
		p.used++
		return
	}
	at := p.table[i].first
	for p.nodes[at].sib != 0 {
		at = p.nodes[at].sib
	}
	p.nodes[at].sib = e
}

// forget takes e off its segment's list.
func (p *Pool) forget(e int32) {
	i := p.slot(p.nodes[e].seg)
	at := p.table[i].first
	if at == e {
		if next := p.nodes[e].sib; next != 0 {
			p.table[i].first = next
		} else {
			p.drop(i)
		}
		return
	}
	for p.nodes[at].sib != e {
		at = p.nodes[at].sib
	}
	p.nodes[at].sib = p.nodes[e].sib
}

// drop empties table slot i, moving later entries of its run back.
func (p *Pool) drop(i int) {
	mask := len(p.table) - 1
	p.used--
	p.table[i] = entry{}
	for j := (i + 1) & mask; p.table[j].seg != 0; j = (j + 1) & mask {
		e := p.table[j]
		p.table[j] = entry{}
		p.table[p.slot(e.seg)] = e
	}
}

func (p *Pool) growTable() {
	old := p.table
	p.table = make([]entry, 2*len(old))
	for _, e := range old {
		if e.seg != 0 {
			p.table[p.slot(e.seg)] = e
		}
	}
}
