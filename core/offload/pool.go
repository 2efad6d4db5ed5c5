// Package offload is the second home of KV blocks: host memory, and the links
// over which blocks are copied from and to GPUs.
//
// It owns which contents are in host memory, on their way into it or being read
// from it, which of them has to go when room is needed, and when a copy ends.
// It does not own the GPU's blocks (core/kv), requests or the clock: its clients,
// the ranks, say when a copy may begin and take note of what has ended.
//
// Contents are named by sequence hashes. One is absent, pending (its copy has
// been decided on but has not ended) or resident. A content is copied to host
// memory once at a time, but several clients may read it at once.
//
// In memory that clients share, what is left of a copy is brought up to date
// whenever the reference does so: when a copy is submitted or ends, when a pass
// ends, when a store is decided on. Its bytes are floats, so the moments at
// which that happens show in the last bits of its end.
//
// Invariants:
//   - pending and resident contents together never exceed the pool.
//   - resident contents stand in one list by the time of their last use, those
//     that arrived together by hash; the first that nobody reads goes first.
//   - of the copies that end at one time, those to host memory end first, and of
//     one direction the one decided on first.
//   - calls on warm memory allocate nothing.
//
// Source: engine notes §11 (scopes dp_rank_local and cluster_shared).
package offload

import (
	"slices"

	"github.com/dryserve/dryserve/core/hashtable"
)

// State is where a content is.
type State uint8

// States of contents.
const (
	Absent State = iota
	Pending
	Resident
)

// entry is one content. Slot 0 is the sentinel of the list of resident ones.
type entry struct {
	hash       uint64
	resident   bool
	readers    int32
	owner      int32 // who stored it, on a disk
	prev, next int32 // neighbours in the list; next also links free slots
}

// Pool is the blocks of host memory.
type Pool struct {
	total   int
	used    int
	there   int // resident
	entries []entry
	free    int32
	table   hashtable.Table
	evicted []uint64
	scratch []uint64
}

// NewPool returns an empty pool of total blocks.
func NewPool(total int) *Pool {
	return &Pool{total: total, entries: make([]entry, 1, 64), table: hashtable.New()}
}

// Total and Used count blocks; pending ones are used.
func (p *Pool) Total() int { return p.total }
func (p *Pool) Used() int  { return p.used }

// Resident counts the blocks with resident contents.
func (p *Pool) Resident() int { return p.there }

// State is where a content is.
func (p *Pool) State(hash uint64) State {
	i := p.table.Get(hash)
	switch {
	case i == 0:
		return Absent
	case !p.entries[i].resident:
		return Pending
	}
	return Resident
}

// Store makes absent contents pending. It makes room by dropping resident
// contents that nobody reads and that keep does not hold, the one longest
// unused first; Evicted tells which. If it cannot make room for all of them it
// changes nothing and reports false.
func (p *Pool) Store(hashes []uint64, keep []uint64) bool {
	p.evicted = p.evicted[:0]
	missing := len(hashes) - (p.total - p.used)
	for i := p.entries[0].next; i != 0 && len(p.evicted) < missing; i = p.entries[i].next {
		if x := &p.entries[i]; x.readers == 0 && !slices.Contains(keep, x.hash) {
			p.evicted = append(p.evicted, x.hash)
		}
	}
	if len(p.evicted) < missing {
		p.evicted = p.evicted[:0]
		return false
	}
	for _, h := range p.evicted {
		i := p.table.Get(h)
		p.unlink(i)
		p.table.Remove(h)
		p.entries[i] = entry{next: p.free}
		p.free = i
		p.used--
		p.there--
	}
	for _, h := range hashes {
		i := p.free
		if i != 0 {
			p.free = p.entries[i].next
		} else {
			i = int32(len(p.entries))
			p.entries = append(p.entries, entry{})
		}
		p.entries[i] = entry{hash: h}
		p.table.Set(h, i)
		p.used++
	}
	return true
}

// Evicted lists what the last Store dropped, in order. It is valid until the
// next Store.
func (p *Pool) Evicted() []uint64 { return p.evicted }

// Arrive makes pending contents resident, the newest of all, in the order of
// their hashes.
func (p *Pool) Arrive(hashes []uint64) {
	for _, h := range p.sorted(hashes) {
		i := p.table.Get(h)
		p.entries[i].resident = true
		p.there++
		p.link(i)
	}
}

func (p *Pool) sorted(hashes []uint64) []uint64 {
	p.scratch = append(p.scratch[:0], hashes...)
	slices.Sort(p.scratch)
	return p.scratch
}

// Renew makes resident contents the newest of all, in the order of their
// hashes.
func (p *Pool) Renew(hashes []uint64) {
	for _, h := range p.sorted(hashes) {
		p.Touch(h)
	}
}

// Touch makes a content the newest if it is resident.
func (p *Pool) Touch(hash uint64) {
	if i := p.table.Get(hash); i != 0 && p.entries[i].resident {
		p.unlink(i)
		p.link(i)
	}
}

// Read and Done surround the copy of a resident content to a GPU.
func (p *Pool) Read(hash uint64) { p.entries[p.table.Get(hash)].readers++ }
func (p *Pool) Done(hash uint64) { p.entries[p.table.Get(hash)].readers-- }

func (p *Pool) link(i int32) {
	last := p.entries[0].prev
	p.entries[i].prev, p.entries[i].next = last, 0
	p.entries[last].next = i
	p.entries[0].prev = i
}

func (p *Pool) unlink(i int32) {
	x := &p.entries[i]
	p.entries[x.prev].next = x.next
	p.entries[x.next].prev = x.prev
}
