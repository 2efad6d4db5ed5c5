package engine

import (
	"github.com/dryserve/dryserve/core/kv"
	"github.com/dryserve/dryserve/core/offload"
)

// maxRestores is how often a request reads from disk while its rank computes
// nothing; the reference lets it read no more then (engine notes §11).
const maxRestores = 1024

// spill writes what a store brought to host memory through to disk: the contents
// that are not there, one after the other until there is no room for one. Those
// that were found there are not dropped for the others. Host memory keeps what is
// being written.
func (e *Engine) spill(blocks []hostBlock, nowMs float64) {
	x := &e.host
	if x.disk == nil {
		return
	}
	x.disk.Advance(nowMs)
	id := int32(0)
	x.keep = x.keep[:0]
	for _, b := range blocks {
		if x.disk.State(x.worker, b.hash) != offload.Absent {
			x.keep = append(x.keep, b.hash)
		}
	}
	for _, b := range blocks {
		if x.disk.State(x.worker, b.hash) != offload.Absent {
			continue
		}
		if !x.disk.Write(x.worker, b.hash, x.keep) {
			break
		}
		if id == 0 {
			id = e.newDiskCopy()
		}
		x.memory.Read(b.hash)
		c := &x.copies[id]
		c.blocks = append(c.blocks, hostBlock{hash: b.hash})
	}
	if id != 0 {
		e.submitDisk(offload.ToHost, id, nowMs)
	}
}

// restore looks on disk for the blocks of a prompt that neither the GPU nor host
// memory has, one after the other until one is not there or host memory has no
// room for it, and begins to read them. It reports whether the request has to
// wait: for that, or for one that is on its way to the disk.
func (e *Engine) restore(h Handle, hits []kv.Block, limit int, nowMs float64) (waits bool) {
	x := &e.host
	r := &e.requests.slab[h]
	if x.disk == nil || r.bypasses {
		return false
	}
	ids := r.tokens.Blocks()
	id := int32(0)
scan:
	for i := len(hits); i < limit; i++ {
		hash := ids[i].Hash
		if x.memory.State(hash) != offload.Absent {
			continue
		}
		switch x.disk.Probe(x.worker, hash) {
		case offload.Absent:
			break scan
		case offload.Pending:
			waits = true
			continue
		}
		x.keys = append(x.keys[:0], hash)
		if !x.memory.Store(x.keys, nil) {
			break
		}
		e.events.hostRemoved(x.memory.Evicted())
		if id == 0 {
			id = e.newDiskCopy()
		}
		e.copyBlock(&x.copies[id], r, i)
		x.disk.Read(x.worker, hash)
	}
	if id == 0 {
		return waits
	}
	if r.restored != x.progress {
		r.restores, r.restored = 0, x.progress
	}
	if r.restores++; r.restores == maxRestores {
		r.bypasses = true
		x.disk.Bypass()
	}
	x.began = true
	e.submitDisk(offload.ToGPU, id, nowMs)
	return true
}

func (e *Engine) newDiskCopy() int32 {
	id := e.takeCopy()
	c := &e.host.copies[id]
	c.disk, c.order = true, e.host.disk.Decide()
	return id
}

func (e *Engine) submitDisk(d offload.Direction, id int32, nowMs float64) {
	x := &e.host
	x.disk.Submit(d, x.describe(id, x.worker), nowMs)
	x.underway++
}

// written ends a copy to disk.
func (e *Engine) written(id int32) {
	x := &e.host
	keys := x.contents(id)
	for _, h := range keys {
		x.memory.Done(h)
	}
	x.memory.Renew(keys)
	e.freeCopy(id)
}

// restored ends a copy from disk: its blocks can be loaded from now on.
func (e *Engine) restored(id int32) {
	x := &e.host
	keys := x.contents(id)
	x.memory.Arrive(keys)
	for _, h := range keys { // each by itself, the first of the prompt oldest
		x.memory.Touch(h)
	}
	e.events.hostStored(x.copies[id].blocks)
	e.freeCopy(id)
}
