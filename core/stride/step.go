package stride

import (
	"github.com/dryserve/dryserve/core/branch"
)

// Places of a stamp within a decode step: pages that running requests cache
// come after what admission looks up, in the order of the batch; what completed
// requests leave comes last.
const (
	middle = uint64(1) << 62
	late   = uint64(1) << 63
)

// place is a running request's place among those that cache a page in a step.
func (r *request) place() uint64 { return middle | r.order<<1 | 1 }

// chargePrefill counts the prompt work (engine notes §8.2). A request that
// found everything cached counts in the means (corrections §13).
func (w *Worker) chargePrefill() {
	for _, k := range w.works {
		w.timed.Prompts++
		w.timed.ISL += int(k.prefix + k.computed)
		w.timed.Prefix += int(k.prefix)
	}
}

// endPrefill puts the requests of a prefill pass where they belong: one whose
// prompt is not complete returns to the head of the queue with its pages in
// the cache; the others get their first token and run behind those that ran
// before, which stood still (engine notes §6.1, steps 5 to 7).
func (w *Worker) endPrefill() {
	for _, k := range w.works {
		r := &w.reqs[k.req]
		if r.computed < r.length() {
			w.cachePrefix(r)
			w.wait.pushFront(^k.req)
		} else {
			w.fresh = append(w.fresh, k.req)
		}
	}
	w.firstTokens()
	w.hurdle, w.ordered = unknown, false
}

// firstTokens gives the requests of w.fresh the token that their prefill
// yields (engine notes §6.4). The last token of a request needs no room. If
// the others do not all find room none of them gets its token in this pass.
func (w *Worker) firstTokens() {
	for _, id := range w.fresh {
		if w.reqs[id].remaining() == 0 {
			w.done = append(w.done, id)
		}
	}
	growth, goOn := 0, w.fresh[:0]
	for _, id := range w.fresh {
		r := &w.reqs[id]
		switch r.remaining() {
		case 0:
		case 1:
			w.firstToken(id)
			w.done = append(w.done, id)
		default:
			growth += int(w.pagesFor(r.length()+1) - r.pages)
			goOn = append(goOn, id)
		}
	}
	w.fresh = goOn
	w.cache.Evict(growth - w.cache.Free())
	fits := growth <= w.cache.Free()
	for _, id := range goOn {
		r := &w.reqs[id]
		if fits {
			n := w.pagesFor(r.length()+1) - r.pages
			w.cache.Take(int(n))
			r.pages += n
			r.computed++
			w.firstToken(id)
			w.cachePrefix(r)
		}
		w.enter(id)
	}
}

// firstToken gives a request a token whose time is that of the pass's end.
func (w *Worker) firstToken(id int32) {
	r := &w.reqs[id]
	r.generated++
	r.spans = w.times.single(r.spans)
	w.firsts = append(w.firsts, id)
	if r.generated == 1 && r.limit > 1 {
		w.begins = append(w.begins, begin{r.turn(), int32(len(w.done))})
	}
}

// enter makes a request run from the next decode step on.
func (w *Worker) enter(id int32) {
	r := &w.reqs[id]
	w.orders++
	r.join, r.order = w.steps, w.orders
	r.own = w.caches && w.cache.Own(r.node, r.seq)
	w.run = append(w.run, id)
	at := w.eventOf(r)
	w.due = append(w.due, at)
	w.next = min(w.next, at)
	w.sumLen += int(r.length())
	w.buckets[w.bucket(r)]++
	w.clip.valid = false
}

// bucket is the residue of the steps in which a running request opens a page:
// those before which its pages are full.
func (w *Worker) bucket(r *request) int64 {
	k := (r.join - int64(r.length())) % int64(w.bs)
	if k < 0 {
		k += int64(w.bs)
	}
	return k
}

// eventOf is the step that does more to a running request than give it a
// token: its last, or the one that completes a page while others can still
// reach the node it holds.
func (w *Worker) eventOf(r *request) int64 {
	last := r.join + int64(r.remaining()) - 1
	if r.generated == 0 && w.steps == r.join && w.cache.Changes.On {
		return r.join // somebody wants to know of its first token
	}
	if !w.caches || r.own {
		return last
	}
	wanted := (int64(r.cached) + 1) * int64(w.bs) // tokens
	return min(last, max(r.join+wanted-int64(r.length())-1, w.steps))
}

// leave takes run[i] out of the batch, before the next step.
func (w *Worker) leave(i int) int32 {
	id := w.run[i]
	w.run = append(w.run[:i], w.run[i+1:]...)
	w.due = append(w.due[:i], w.due[i+1:]...)
	w.forget(&w.reqs[id])
	w.next = never
	for _, at := range w.due {
		w.next = min(w.next, at)
	}
	return id
}

// forget takes a request out of the sums and brings it up to date, but for its
// pages in the tree: its tokens are those of the steps since it joined.
func (w *Worker) forget(r *request) {
	w.buckets[w.bucket(r)]--
	n := int32(w.steps - r.join)
	w.sumLen -= int(r.length() + n)
	if n > 0 {
		r.spans = w.times.span(r.join, w.steps-1, r.spans)
	}
	r.generated += n
	r.computed = r.length()
	r.pages = w.pagesFor(r.computed)
	w.clip.valid = false
}

// catchUp tells the cache of the pages that a request which held a leaf of its
// own has cached of its first n tokens. One that joined without a token and has
// not decoded has cached nothing yet.
func (w *Worker) catchUp(r *request, n int32) {
	to := n / w.bs
	if !r.own || to <= r.cached || w.steps == r.join {
		return
	}
	// Its length before step s was n0 + s - join.
	n0 := int64(r.length()) - (w.steps - r.join)
	step := max(r.join+int64(to)*int64(w.bs)-n0-1, r.join)
	w.cache.Advance(r.node, to, branch.Stamp{Step: step, Seq: r.place()})
	r.cached = to
}

// decode is a step of the running requests: each gets its next token
// (engine notes §6.3).
func (w *Worker) decode() {
	p := &w.pass
	p.hadDecodes = len(w.run) > 0
	if !p.hadDecodes {
		return
	}
	growth := w.retract()
	w.evict(growth - w.cache.Free())
	if growth > w.cache.Free() {
		p.stuck = true
		return
	}
	p.decoded, p.effect = true, true
	w.cache.Take(growth)
	n := len(w.run)
	w.timed.Decodes, w.timed.SumLen = n, w.sumLen
	w.times.log = append(w.times.log, 0) // until Resume
	step := w.steps
	w.sumLen += n
	w.steps++
	if w.next == step {
		w.events(step)
	}
	w.cache.Now = branch.Stamp{Step: step, Seq: late | w.uses}
}

// evict makes n pages free, or as many as can be had.
func (w *Worker) evict(n int) {
	if n > 0 {
		w.cache.Evict(n)
		w.hurdle, w.ordered = unknown, false
	}
}

// growth is the number of pages that the running requests need for the step.
func (w *Worker) growth() int { return int(w.buckets[w.steps%int64(w.bs)]) }

// retract takes requests out of the running batch until the others have room,
// or one is left: each time the one that has generated least. It gives up its
// KV, keeps what it has generated, and waits at the end of the queue.
func (w *Worker) retract() (growth int) {
	growth = w.growth()
	for growth > w.cache.Room() && len(w.run) > 1 {
		least, fewest := 0, w.emitted(w.run[0])
		for i, id := range w.run {
			if n := w.emitted(id); n < fewest {
				least, fewest = i, n
			}
		}
		id := w.leave(least)
		r := &w.reqs[id]
		w.catchUp(r, r.length())
		w.drop(r)
		w.retracted = append(w.retracted, id)
		w.retractions++
		growth = w.growth()
	}
	if len(w.retracted) > 0 {
		generated, limit := 0, 0
		for _, id := range w.run {
			generated += w.emitted(id)
			limit += int(w.reqs[id].limit)
		}
		w.ratio.now = min(1, float64(generated+retractedSteps*len(w.run))/float64(limit+1))
	}
	return growth
}

// emitted is what a running request has generated.
func (w *Worker) emitted(id int32) int {
	r := &w.reqs[id]
	return int(r.generated) + int(w.steps-r.join)
}

// events is what a step that has just been made did beyond tokens: first pages
// enter the cache in the order of the batch, and who got the last token leaves.
func (w *Worker) events(step int64) {
	keep := 0
	w.next = never
	for i, at := range w.due {
		id := w.run[i]
		r := &w.reqs[id]
		if at == step {
			if r.join+int64(r.remaining())-1 == step {
				w.forget(r)
				w.catchUp(r, r.length()-1)
				w.done = append(w.done, id)
				continue
			}
			if r.generated == 0 && r.join == step {
				w.begins = append(w.begins, begin{r.turn(), int32(len(w.done))})
			}
			if w.caches && !r.own {
				at = w.firstPage(r, step)
			} else {
				at = w.eventOf(r)
			}
		}
		w.run[keep], w.due[keep] = id, at
		w.next = min(w.next, at)
		keep++
	}
	w.run, w.due = w.run[:keep], w.due[:keep]
}

// firstPage caches what a running request has completed and returns the step of
// its next event.
func (w *Worker) firstPage(r *request, step int64) int64 {
	w.cache.Now = branch.Stamp{Step: step, Seq: r.place() - 1}
	w.cacheUpTo(r, (r.length()+int32(w.steps-r.join))/w.bs)
	w.hurdle, w.ordered = unknown, false // what is cached now may be another's prompt
	r.own = w.cache.Own(r.node, r.seq)
	return w.eventOf(r)
}

// cachePrefix puts the pages of a request that are complete into the cache and
// holds them there.
func (w *Worker) cachePrefix(r *request) { w.cacheUpTo(r, r.computed/w.bs) }

func (w *Worker) cacheUpTo(r *request, to int32) {
	if !w.caches || to <= r.cached {
		return
	}
	node := w.cache.Insert(r.node, r.seq, r.cached, to)
	w.cache.Lock(node)
	w.cache.Unlock(r.node)
	r.node, r.cached = node, to
}

// settle is the end of a request's pages: those whose tokens all have KV stay
// in the cache, the others are freed. The last token has none if it came out of
// a prefill (engine notes §6.4, §6.5).
func (w *Worker) settle(id int32) {
	r := &w.reqs[id]
	if !w.caches {
		w.drop(r)
		return
	}
	to := r.computed / w.bs
	w.cache.Give(int(r.pages - to))
	w.cache.Insert(r.node, r.seq, r.cached, to)
	w.cache.Unlock(r.node)
}

// drop gives up a request's pages: the private ones are freed.
func (w *Worker) drop(r *request) {
	w.cache.Give(int(r.pages - r.cached))
	w.cache.Unlock(r.node)
	r.node, r.cached, r.pages, r.computed = 0, 0, 0, 0
}
