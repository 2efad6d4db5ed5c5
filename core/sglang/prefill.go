package sglang

import "github.com/dryserve/dryserve/core/engine"

// budget is what a pass may still take for prompts, in tokens.
type budget struct {
	total float64 // pages less what the running requests will want
	input int     // the pass's limit
	chunk int     // the pass's chunk
}

// piece is the part of a prompt that a pass takes.
type piece struct {
	start   int // tokens computed or cached before
	tokens  int // to compute
	charged int // the same in whole pages
	reserve int // output to come that is reckoned with; none before the last piece
}

// admit takes prompts from the head of the queue as long as they fit
// (engine notes §6.2). The first that does not fit ends it.
func (e *Rank) admit() {
	p := &e.pass
	b := budget{input: e.cfg.SGLang.MaxPrefillTokens, chunk: e.chunk}
	b.total = float64(e.logicalPages()*e.cfg.BlockSize) - e.reservedTokens()
	slots := e.cfg.MaxNumSeqs - len(e.running)
	for len(p.works) < slots {
		h := e.waiting.head(e.requests.slab)
		if h == 0 {
			return
		}
		r := &e.requests.slab[h]
		c, ok := e.cut(r, b)
		if !ok || !e.take(h, c) {
			return
		}
		e.waiting.remove(e.requests.slab, h)
		b.total -= float64(c.charged + c.reserve)
		b.input -= c.charged
		b.chunk -= c.charged
		if b.chunk <= 0 {
			return
		}
	}
}

// reservedTokens is the output that the running requests are reckoned to
// generate still.
func (e *Rank) reservedTokens() float64 {
	sum := 0.0
	for _, h := range e.running {
		n := min(e.requests.slab[h].remaining(), e.cfg.SGLang.ClipMaxNewTokens)
		sum += float64(float64(n) * e.ratio.now)
	}
	return sum
}

// cut finds the piece of a prompt that fits the budget. A request that wants a
// token computes at least its last one.
func (e *Rank) cut(r *request, b budget) (c piece, ok bool) {
	c.start = r.computed
	if r.computed == 0 {
		n := r.len()
		if r.maxOutput > 0 {
			n = max(n-1, 0)
		}
		c.start = e.cache.Match(e.matchable(r, n)) * e.cfg.BlockSize
	}
	extend := max(r.len()-c.start, 0)
	if extend == 0 && r.computed > 0 {
		return c, false
	}
	c.tokens = extend
	if e.ceilPage(extend) > b.chunk {
		c.tokens = min(extend, b.chunk/e.cfg.BlockSize*e.cfg.BlockSize)
		if c.tokens == 0 {
			return c, false
		}
	}
	c.charged = e.ceilPage(c.tokens)
	if c.tokens == extend {
		c.reserve = min(r.remaining(), e.cfg.SGLang.ClipMaxNewTokens)
	}
	if float64(c.charged+c.reserve) >= b.total || c.charged > b.input || c.charged > b.chunk {
		return c, false
	}
	return c, true
}

func (e *Rank) ceilPage(n int) int { return e.pagesFor(n) * e.cfg.BlockSize }

// take gives a request the pages for a piece of its prompt and notes the work.
// What it found cached stays stamped and split even if there is no room.
func (e *Rank) take(h engine.Handle, c piece) bool {
	p := &e.pass
	r := &e.requests.slab[h]
	first := r.computed == 0
	if first {
		e.lock(r, c.start)
		c.start = len(r.pages) * e.cfg.BlockSize
	}
	end := c.start + c.tokens
	if !e.extend(r, e.pagesFor(end)-len(r.pages)) {
		if first {
			e.unlock(r)
		}
		return false
	}
	r.computed = end
	e.publish(r, c.start/e.cfg.BlockSize, end/e.cfg.BlockSize)
	if first {
		e.out.Admissions = append(e.out.Admissions, engine.Admission{Req: h, Tag: r.tag, Reused: c.start})
		p.hits += c.start
	}
	p.computed += c.tokens
	p.works = append(p.works, work{req: h, computed: c.tokens, prefix: c.start})
	return true
}

// chargePrefill counts the prompt work (engine notes §8.2). A request that
// found everything cached counts in the means (corrections §13).
func (e *Rank) chargePrefill() {
	t := &e.pass.timed
	for _, w := range e.pass.works {
		t.Prompts++
		t.ISL += w.prefix + w.computed
		t.Prefix += w.prefix
	}
}

// endPrefill puts the requests of a prefill pass where they belong: one whose
// prompt is not complete returns to the head of the queue with its pages in
// the cache; the others get their first token and run behind those that ran
// before, which stood still (engine notes §6.1, steps 5 to 7).
func (e *Rank) endPrefill() {
	p := &e.pass
	for _, w := range p.works {
		r := &e.requests.slab[w.req]
		if r.computed < r.len() {
			e.cachePrefix(r)
			e.waiting.pushFront(e.requests.slab, w.req)
		} else {
			p.fresh = append(p.fresh, w.req)
		}
	}
	e.firstTokens()
}

// firstTokens gives the requests of p.fresh the token that their prefill
// yields (engine notes §6.4). The last token of a request needs no room. If
// the others do not all find room none of them gets its token in this pass.
func (e *Rank) firstTokens() {
	p := &e.pass
	for _, h := range p.fresh {
		if e.requests.slab[h].remaining() == 0 {
			e.completeSilently(h)
		}
	}
	growth, goOn := 0, p.fresh[:0]
	for _, h := range p.fresh {
		r := &e.requests.slab[h]
		switch r.remaining() {
		case 0:
		case 1:
			e.token(h)
		default:
			growth += max(e.pagesFor(r.len()+1)-len(r.pages), 0)
			goOn = append(goOn, h)
		}
	}
	for _, h := range goOn {
		e.requests.slab[h].status = running
		e.running = append(e.running, h)
	}
	if !e.makeRoom(growth) {
		return
	}
	for _, h := range goOn {
		e.nextToken(h)
	}
}
