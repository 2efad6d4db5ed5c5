package extent

import "math"

// Prompt names the blocks of a request: Blocks full blocks of the path that
// ends at Leaf, then those of Private, a segment of the request's own that
// exists once it was preempted with generated blocks cached. The path is the
// prompt's; where a later prompt repeats what the request generates it goes on
// through that.
type Prompt struct {
	Leaf    int32
	Private int32 // 0: none
	Blocks  int32
}

// Holder is the list of named blocks a request holds; the zero value holds
// nothing.
type Holder struct {
	last   int32 // newest hold
	Blocks int32 // named blocks held, always a prefix of the request's blocks
}

// Hit is what a lookup found: the leading run of resident blocks.
type Hit struct {
	Blocks int32 // resident
	Active int32 // of them held by some request right now
}

// climb fills p.path with the prompt's segments that own one of the first n
// blocks, leaf first.
func (p *Pool) climb(leaf, n int32) {
	p.path = p.path[:0]
	for s := leaf; s != 0; {
		seg := p.tree.Seg(s)
		if p.block(int64(seg.Depth)) < n {
			p.path = append(p.path, s)
		}
		s = seg.Parent
	}
}

// end is one past the last block that segment s owns.
func (p *Pool) end(s int32) int32 {
	seg := p.tree.Seg(s)
	return p.block(int64(seg.Depth) + int64(seg.Len))
}

// block is the first block that is not full within a path's first ids: block
// j belongs to the id its last token falls into. A path may be longer than its
// prompt, beyond what a block number can say; prompts never are.
func (p *Pool) block(ids int64) int32 {
	if ids > math.MaxInt64/p.tbs {
		return math.MaxInt32
	}
	return int32(min(ids*p.tbs/p.bs, math.MaxInt32))
}

// primary finds the copy of block pos that lookups see: the first in caching
// order. The run it is primary for ends before end: where it ends itself or
// where an extent listed earlier begins.
func (p *Pool) primary(first, pos int32) (e, end int32) {
	end = math.MaxInt32
	for e = first; e != 0; e = p.nodes[e].sib {
		x := &p.nodes[e]
		if x.start <= pos {
			if stop := x.start + x.n; pos < stop {
				return e, min(end, stop)
			}
		} else if x.start < end {
			end = x.start
		}
	}
	return 0, 0
}

// Lookup finds the leading run of resident blocks, at most limit of them. It
// changes nothing (engine notes §4.6, §5: a lookup does not reorder).
func (p *Pool) Lookup(q Prompt, limit int32) Hit {
	var h Hit
	n := min(limit, q.Blocks)
	p.climb(q.Leaf, n)
	for i := len(p.path) - 1; i >= 0; i-- {
		s := p.path[i]
		stop := min(p.end(s), n)
		if !p.count(&h, s, stop) {
			return h
		}
	}
	if q.Private != 0 && h.Blocks == q.Blocks {
		p.count(&h, q.Private, limit)
	}
	return h
}

// count extends h over segment s up to block stop; false: a block is missing.
func (p *Pool) count(h *Hit, s, stop int32) bool {
	if h.Blocks >= stop {
		return true
	}
	first := p.first(s)
	for h.Blocks < stop {
		e, end := p.primary(first, h.Blocks)
		if e == 0 {
			return false
		}
		k := min(end, stop) - h.Blocks
		h.Blocks += k
		if p.nodes[e].refs > 0 {
			h.Active += k
		}
	}
	return true
}

// Pin makes the holder hold the first n blocks of the prompt, which a Lookup
// has just found; the holder held nothing.
func (p *Pool) Pin(q Prompt, h *Holder, n int32) {
	p.climb(q.Leaf, min(n, q.Blocks))
	for i := len(p.path) - 1; i >= 0; i-- {
		s := p.path[i]
		p.pinRun(h, s, min(p.end(s), n, q.Blocks))
	}
	if n > q.Blocks {
		p.pinRun(h, q.Private, n)
	}
}

func (p *Pool) pinRun(h *Holder, s, stop int32) {
	for h.Blocks < stop {
		pos := h.Blocks
		e, end := p.primary(p.first(s), pos)
		if x := p.nodes[e]; x.start < pos {
			e = p.split(e, pos-x.start)
		}
		end = min(end, stop)
		if x := p.nodes[e]; x.start+x.n > end {
			p.split(e, end-x.start)
		}
		p.pin(e)
		p.push(h, e, end-pos)
	}
}

// Own names the holder's blocks up to block end of the prompt: they are full
// now and can be hit. They were taken before; the holder's blocks are a prefix.
func (p *Pool) Own(q Prompt, h *Holder, end int32) {
	if h.Blocks >= end {
		return
	}
	if p.Changes.On {
		p.Changes.Stored(q.Leaf, end)
	}
	p.climb(q.Leaf, end)
	for i := len(p.path) - 1; i >= 0; i-- {
		s := p.path[i]
		stop := min(p.end(s), end)
		if stop <= h.Blocks {
			continue
		}
		n := stop - h.Blocks
		if !p.lengthen(h, s, n) {
			e := p.newExtent(s, h.Blocks, n, 1)
			p.list(e)
			p.push(h, e, n)
		}
	}
}

// lengthen appends n blocks to the holder's last extent if nobody can tell:
// it is the holder's alone, it ends where the new blocks begin, and no other
// extent of the segment has any of them, so caching order stays as it is.
func (p *Pool) lengthen(h *Holder, s, n int32) bool {
	if h.last == 0 {
		return false
	}
	hd := &p.holds[h.last]
	e, left := hd.ext, hd.n
	for left > p.nodes[e].n {
		left -= p.nodes[e].n
		e = p.nodes[e].cont
	}
	x := &p.nodes[e]
	if x.seg != s || x.refs != 1 || x.start+x.n != h.Blocks {
		return false
	}
	for o := p.first(s); o != 0; o = p.nodes[o].sib {
		if y := &p.nodes[o]; y.start+y.n > h.Blocks {
			return false
		}
	}
	x.n += n
	hd.n += n
	h.Blocks += n
	return true
}

func (p *Pool) push(h *Holder, e, n int32) {
	i := p.freeHold
	if i != 0 {
		p.freeHold = p.holds[i].prev
	} else {
		i = int32(len(p.holds))
		p.holds = append(p.holds, hold{})
	}
	p.holds[i] = hold{ext: e, n: n, prev: h.last}
	h.last = i
	h.Blocks += n
}

// Release gives back the holder's blocks, the last first: full generated
// blocks (named by the path as far as it goes, then nameless, or named by the
// private segment if there is one) become idle, tail blocks not yet full
// become free, prompt blocks nobody else holds become idle. held counts all
// the blocks the request has, full those of them that are full.
func (p *Pool) Release(q Prompt, h *Holder, held, full int32) {
	p.active -= int(held - full)
	named := min(full, q.Blocks)
	if from := max(h.Blocks, named); full > from {
		p.idle(q.Private, from, full-from)
	}
	if named > h.Blocks {
		p.climb(q.Leaf, named)
		for _, s := range p.path { // the last segment first
			stop := min(p.end(s), named)
			start := max(p.block(int64(p.tree.Seg(s).Depth)), h.Blocks)
			if start < stop {
				p.idle(s, start, stop-start)
			}
		}
	}
	for h.last != 0 {
		hd := p.holds[h.last]
		p.chain = p.chain[:0]
		for e, left := hd.ext, hd.n; left > 0; e = p.nodes[e].cont {
			p.chain = append(p.chain, e)
			left -= p.nodes[e].n
		}
		for i := len(p.chain) - 1; i >= 0; i-- {
			p.unpin(p.chain[i])
		}
		p.holds[h.last].prev = p.freeHold
		p.freeHold = h.last
		h.last = hd.prev
	}
	h.Blocks = 0
}

// idle makes n blocks from start on idle, as one extent of a segment (0: none)
// that nobody holds.
func (p *Pool) idle(seg, start, n int32) {
	e := p.newExtent(seg, start, n, 0)
	p.active -= int(n)
	p.inactive += int(n)
	p.link(e, 0)
	if seg != 0 {
		p.list(e)
	}
}

// Discard gives back held blocks that are in no cache (prefix caching off).
func (p *Pool) Discard(held int32) { p.active -= int(held) }

// Private returns a new private segment number.
func (p *Pool) Private() int32 {
	p.private--
	return p.private
}

// Divide follows a split in the prefix tree: the front part of segment s is
// now segment front.
func (p *Pool) Divide(s, front int32) {
	e := p.first(s)
	if e == 0 {
		return
	}
	cut := p.end(front)
	for ; e != 0; e = p.nodes[e].sib {
		if x := p.nodes[e]; x.start < cut && x.start+x.n > cut {
			p.split(e, cut-x.start)
		}
	}
	for e = p.first(s); e != 0; {
		next := p.nodes[e].sib
		if p.nodes[e].start < cut {
			p.forget(e)
			p.nodes[e].sib = 0
			p.nodes[e].seg = front
			p.list(e)
		}
		e = next
	}
}
