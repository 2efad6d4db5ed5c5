package stride

import (
	"cmp"
	"slices"

	"github.com/dryserve/dryserve/core/branch"
	"github.com/dryserve/dryserve/core/config"
)

// budget is what a pass may still take for prompts, in tokens.
type budget struct {
	total float64 // pages less what the running requests will want
	exact bool    // total is the reference's sum, else near it
	input int     // the pass's limit
	chunk int     // the pass's chunk
}

// piece is the part of a prompt that a pass takes, in tokens.
type piece struct {
	start   int32 // computed or cached before
	tokens  int32 // to compute
	charged int   // the same in whole pages
	reserve int   // output to come that is reckoned with; none before the last piece
}

// admit takes prompts from the head of the queue as long as they fit
// (engine notes §6.2). The first that does not fit ends it; why is noted.
func (w *Worker) admit(nowMs float64) {
	w.hurdle = unknown
	b := budget{input: w.opts.MaxPrefillTokens, chunk: w.chunk}
	slots := w.slots - len(w.run)
	for len(w.works) < slots {
		if w.wait.len() == 0 {
			return
		}
		id := w.known(w.wait.front())
		w.wait.setFront(^id)
		c, ok := w.cut(&w.reqs[id], &b)
		if !ok {
			return
		}
		if !w.take(id, c, nowMs) {
			w.hurdle = unknown // looking it up has left its traces
			return
		}
		w.wait.popFront()
		b.total -= float64(c.charged + c.reserve)
		b.input -= c.charged
		b.chunk -= c.charged
		if b.chunk <= 0 {
			return
		}
	}
}

// cut finds the piece of a prompt that fits the budget. A request that wants a
// token computes at least its last one.
func (w *Worker) cut(r *request, b *budget) (c piece, ok bool) {
	c.start = r.computed
	if r.computed == 0 && w.caches {
		n := r.length()
		if r.limit > 0 {
			n = max(n-1, 0)
		}
		c.start = w.cache.Match(r.seq, n/w.bs) * w.bs
	}
	extend := max(r.length()-c.start, 0)
	w.hurdle, w.evicts = always, r.computed == 0 && c.start > 0
	if extend == 0 && r.computed > 0 {
		return c, false
	}
	c.tokens = extend
	if w.wholePages(extend) > b.chunk {
		c.tokens = min(extend, int32(b.chunk/int(w.bs))*w.bs)
		if c.tokens == 0 {
			return c, false
		}
	}
	c.charged = w.wholePages(c.tokens)
	if c.tokens == extend {
		c.reserve = min(int(r.remaining()), w.opts.ClipMaxNewTokens)
	}
	if c.charged > b.input || c.charged > b.chunk {
		return c, false
	}
	w.hurdle, w.need = room, c.charged+c.reserve
	return c, w.fits(w.need, b)
}

// fits compares with the total, which is summed exactly only where it is close.
func (w *Worker) fits(need int, b *budget) bool {
	if !b.exact {
		total := float64(w.cache.Room() * int(w.bs))
		sum := float64(float64(w.clipped().sum) * w.ratio.now)
		if float64(need) >= total-sum+slack(sum) {
			return false
		}
		b.total, b.exact = total-w.reserved(), true
	}
	return float64(need) < b.total
}

func (w *Worker) pagesFor(n int32) int32 { return (n + w.bs - 1) / w.bs }

func (w *Worker) wholePages(n int32) int { return (int(n) + int(w.bs) - 1) / int(w.bs) * int(w.bs) }

// take gives a request the pages for a piece of its prompt and notes the work.
// What it found cached stays stamped and split even if there is no room.
func (w *Worker) take(id int32, c piece, nowMs float64) bool {
	r := &w.reqs[id]
	first := r.computed == 0
	if first {
		if w.caches {
			r.node, r.cached = w.cache.MatchLock(r.seq, c.start/w.bs)
		}
		r.pages = r.cached
		c.start = r.cached * w.bs
	}
	end := c.start + c.tokens
	n := int(w.pagesFor(end) - r.pages)
	if n > w.cache.Room() {
		if first {
			w.drop(r)
		}
		return false
	}
	w.cache.Take(n)
	r.pages += int32(n)
	r.computed = end
	if first {
		w.admitted(r, nowMs, c.start)
	}
	if c.tokens > 0 {
		w.pass.prefilled = true
		w.pass.committed += int(c.tokens)
	}
	w.works = append(w.works, work{req: id, computed: c.tokens, prefix: c.start})
	return true
}

// admitted records an admission.
func (w *Worker) admitted(r *request, nowMs float64, reused int32) {
	r.admits++
	if r.admits == 1 {
		r.admitMs, r.reused, r.most = nowMs, reused, reused
		return
	}
	r.most = max(r.most, reused)
	r.again = w.times.readmit(nowMs, reused, r.again)
}

// ---- the order of the queue ----

const (
	// maxSorted is the longest queue that LPM sorts.
	maxSorted = 128
	// beginningTokens is what two prompts must share, page by page, for the
	// later one to be put off; a prompt with a longer cached prefix is not.
	beginningTokens = 32
)

// ranked is a waiting request and where LPM wants it.
type ranked struct {
	entry  int32
	putOff bool
	prefix int32 // cached pages of its sequence
}

// sorts reports whether LPM orders the queue as it is.
func (w *Worker) sorts() bool {
	return w.opts.Policy == config.LPM && w.caches && w.wait.len() > 1 && w.wait.len() <= maxSorted
}

// sortWaiting orders the queue by the policy (engine notes §6.1, step 3): under
// LPM the longest cached prefix first, but last those whose beginning is not
// cached and will be computed for a request before them.
func (w *Worker) sortWaiting() {
	if !w.sorts() || w.ordered {
		return
	}
	w.ranking, w.seen = w.ranking[:0], w.seen[:0]
	pages := w.pagesFor(beginningTokens)
	for i := range w.wait.len() {
		entry := w.wait.at(i)
		q, length := w.sequence(entry)
		x := ranked{entry: entry, prefix: w.cache.Match(q, length/w.bs)}
		if x.prefix*w.bs <= beginningTokens && length/w.bs >= pages {
			beginning := w.cache.Key(q, pages-1)
			x.putOff = slices.Contains(w.seen, beginning)
			if !x.putOff {
				w.seen = append(w.seen, beginning)
			}
		}
		w.ranking = append(w.ranking, x)
	}
	slices.SortStableFunc(w.ranking, func(a, b ranked) int {
		if a.putOff != b.putOff {
			if a.putOff {
				return 1
			}
			return -1
		}
		return cmp.Compare(b.prefix, a.prefix)
	})
	w.ordered = true
	for i, x := range w.ranking {
		if w.wait.at(i) != x.entry {
			w.wait.set(i, x.entry)
			w.ordered = false
		}
	}
}

// sequence is what a waiting entry has to be computed: its pages and tokens.
func (w *Worker) sequence(entry int32) (branch.Seq, int32) {
	if entry < 0 {
		r := &w.reqs[^entry]
		return r.seq, r.length()
	}
	t := &w.load.Turns[entry]
	if w.load.Spoken {
		return branch.Seq{Leaf: t.Leaf, Turn: entry, Pages: t.IDs}, t.Input
	}
	return branch.Seq{Leaf: t.Leaf, Turn: entry, Pages: t.Input / w.bs}, t.Input
}

// known is the request of a waiting entry, made if the entry is a turn.
func (w *Worker) known(entry int32) int32 {
	if entry < 0 {
		return ^entry
	}
	return w.newRequest(entry)
}

func (w *Worker) newRequest(turn int32) int32 {
	id := w.freeReq
	if id != 0 {
		w.freeReq = w.reqs[id].spans
	} else {
		id = int32(len(w.reqs))
		w.reqs = append(w.reqs, request{})
	}
	q, input := w.sequence(turn)
	limit := w.load.Turns[turn].Output
	if w.maxLen > 0 {
		limit = int32(min(int(limit), max(w.maxLen-int(input), 0)))
	}
	w.reqs[id] = request{seq: q, input: input, limit: limit}
	return id
}
