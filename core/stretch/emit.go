package stretch

import "github.com/dryserve/dryserve/core/extent"

// emit is engine notes §4.5: it charges decode time, gives every request that
// has computed all its tokens one more, ends those that are done, and settles
// those that are steady now. It returns the end of the pass.
func (w *Worker) emit() float64 {
	tail := w.run[w.steady:]
	count, sum := w.steady, w.sumLen
	for _, id := range tail {
		r := &w.reqs[id]
		length := r.length()
		if int(r.known) < length {
			continue
		}
		if r.emitted >= r.limit {
			w.end(id) // nothing left to emit: ends without a token, before the others
			continue
		}
		if r.emitted > 0 || r.fresh == 0 || r.sched != w.pass {
			count++
			sum += length
		}
	}
	w.work.Decodes, w.work.SumLen = count, sum
	endMs := w.model.End(w.work)
	w.sumLen += w.steady
	w.emitSteady()
	w.emitTail()
	w.pass++
	if w.slot++; w.slot == len(w.buckets) {
		w.slot = 0
	}
	w.settle()
	w.ended = append(w.ended, w.refused...)
	return endMs
}

// emitSteady ends the steady requests whose last token this pass gave.
func (w *Worker) emitSteady() {
	if w.next != w.pass {
		return
	}
	keep := 0
	next := int64(never)
	for i, at := range w.done {
		id := w.run[i]
		if at != w.pass {
			w.run[keep], w.done[keep] = id, at
			keep++
			next = min(next, at)
			continue
		}
		r := &w.reqs[id]
		w.thaw(r, w.pass+1)
		w.end(id)
	}
	w.next = next
	w.done = w.done[:keep]
	w.run = append(w.run[:keep], w.run[w.steady:]...)
	w.steady = keep
}

// emitTail gives the other ready requests their token and drops those that
// ended from the running list.
func (w *Worker) emitTail() {
	keep := w.steady
	for _, id := range w.run[w.steady:] {
		r := &w.reqs[id]
		if r.fate == ending {
			continue
		}
		if int(r.known) == r.length() {
			if r.from < 0 {
				r.from = w.pass
			} else if r.last != w.pass-1 {
				w.closeSpan(r)
				r.from = w.pass
			}
			r.last = w.pass
			r.emitted++
			w.batch.effect = true
			if r.emitted == r.limit {
				w.end(id)
				continue
			}
			if r.emitted == 1 {
				w.firsts = append(w.firsts, first{r.turn, int32(len(w.ended))})
			}
		}
		w.run[keep] = id
		keep++
	}
	w.run = w.run[:keep]
}

// ending marks a request that has ended but is still in the running list.
const ending Fate = 255

// end releases a completed request's blocks and lists it.
func (w *Worker) end(id int32) {
	r := &w.reqs[id]
	w.release(r, false)
	w.closeSpan(r)
	r.fate = ending
	w.ended = append(w.ended, id)
	w.batch.effect = true
	w.stalled = false
}

// settle extends the steady prefix over requests that got a token in the pass
// just done and have computed everything before it.
func (w *Worker) settle() {
	bs := int64(w.blockSize)
	for w.steady < len(w.run) {
		r := &w.reqs[w.run[w.steady]]
		if r.last != w.pass-1 || int(r.known) != r.length()-1 {
			return
		}
		r.base = w.pass - int64(r.emitted)
		done := r.base + int64(r.limit) - 1
		w.done = append(w.done, done)
		w.next = min(w.next, done)
		w.sumLen += r.length()
		w.buckets[bucket(r, bs)]++
		w.steady++
	}
}

// bucket is the residue of the passes in which a steady request opens a block:
// those before which it has a whole number of blocks computed.
func bucket(r *request, bs int64) int64 {
	k := (r.base + 1 - int64(r.input)) % bs
	if k < 0 {
		k += bs
	}
	return k
}

// thaw makes a steady request explicit again, as of the start of pass now,
// and takes it out of the sums (the caller takes it off the prefix).
func (w *Worker) thaw(r *request, now int64) {
	r.emitted = int32(now - r.base)
	length := r.length()
	r.known = int64(length - 1)
	r.held = int32((length - 1 + w.blockSize - 1) / w.blockSize)
	r.last = now - 1
	w.sumLen -= length
	w.buckets[bucket(r, int64(w.blockSize))]--
}

// unsettle makes every steady request explicit before the pass begins.
func (w *Worker) unsettle() {
	for _, id := range w.run[:w.steady] {
		w.thaw(&w.reqs[id], w.pass)
	}
	w.steady, w.done, w.next = 0, w.done[:0], never
}

// closeSpan ends the open token range.
func (w *Worker) closeSpan(r *request) {
	if r.from < 0 {
		return
	}
	i := w.freeSpan
	if i != 0 {
		w.freeSpan = w.spans[i].prev
	} else {
		i = int32(len(w.spans))
		w.spans = append(w.spans, span{})
	}
	w.spans[i] = span{from: r.from, to: r.last, each: r.each, prev: r.spans}
	r.spans, r.from = i, -1
}

func (w *Worker) promptOf(entry int32) extent.Prompt {
	if entry < 0 {
		return w.reqs[^entry].prompt
	}
	t := &w.load.Turns[entry]
	if w.load.Spoken {
		return extent.Prompt{Leaf: t.Leaf, Blocks: t.IDs}
	}
	return extent.Prompt{Leaf: t.Leaf, Blocks: t.Input / int32(w.blockSize)}
}
