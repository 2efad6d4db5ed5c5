package stretch

import "github.com/dryserve/dryserve/core/timing"

// Glide runs and logs passes of a rank that is alone, one after the other, as
// long as each is pure decode, starts before untilMs and gives no request its
// last token. endMs is the end of the pass in flight, which must have ended
// nothing. A pass whose duration has to be asked for is not begun. It returns
// the new end and the number of passes begun, at most most. It is Calm, Decode and Advance in one loop, which is faster by a third where
// the passes are few.
func (w *Worker) Glide(endMs, untilMs float64, most int) (float64, int) {
	n := w.steady
	if n == 0 || n != len(w.run) || n > w.maxTokens || !(w.stalled || w.wait.len() == 0) {
		return endMs, 0
	}
	if left := w.next - w.pass; int64(most) > left {
		most = int(left)
	}
	passes := 0
	at := w.slot
	sum := w.sumLen
	room := w.pool.Free() + w.pool.Inactive()
	step, buckets, log := &w.step, w.buckets, w.log.ends
	step.SetBatch(n)
	for passes < most && endMs < untilMs {
		grow := int(buckets[at])
		if grow > room {
			break
		}
		ms := step.Fast(sum)
		if ms < 0 {
			if ms = step.Ms(sum); ms == timing.Unknown {
				break // Begin runs that pass
			}
		}
		if grow > 0 {
			room -= grow
			w.promised -= grow
			w.pool.Changes.Pass = w.pass + int64(passes)
			w.pool.Take(grow)
		}
		if at++; at == len(buckets) {
			at = 0
		}
		endMs += ms
		log = append(log, endMs)
		sum += n
		passes++
	}
	w.log.ends = log
	w.sumLen = sum
	w.pass += int64(passes)
	w.slot = at
	if passes > 0 {
		w.ended, w.firsts = w.ended[:0], w.firsts[:0]
	}
	return endMs, passes
}

// Calm is how many of the next passes, at most most, do nothing on this rank but
// decode one token for each request, none of which ends; a rank with nothing to
// do is calm for ever. 0: the next pass may do more.
func (w *Worker) Calm(most int) int {
	n := w.steady
	if n != len(w.run) || n > w.maxTokens || w.wait.len() > 0 && !w.stalled {
		return 0
	}
	if n == 0 {
		return most
	}
	if left := w.next - w.pass; int64(most) > left {
		most = int(left)
	}
	room := w.blocks - w.pool.Active()
	if n <= room && most <= len(w.buckets) {
		return most // each opens one at most
	}
	at := w.slot
	for k := range most {
		if room -= int(w.buckets[at]); room < 0 {
			return k
		}
		if at++; at == len(w.buckets) {
			at = 0
		}
	}
	return most
}

// Decode raises ms[i] to the duration of the i-th pass from now on if that is
// longer. The rank is Calm for all of them. It returns how many it did: the one
// after them has to be asked for.
func (w *Worker) Decode(ms []float64) int {
	n := w.steady
	if n == 0 {
		return len(ms)
	}
	sum := w.sumLen
	step := &w.step
	step.SetBatch(n)
	for i, longest := range ms {
		d := step.Fast(sum)
		if d < 0 {
			if d = step.Ms(sum); d == timing.Unknown {
				return i
			}
		}
		if d > longest {
			ms[i] = d
		}
		sum += n
	}
	return len(ms)
}

// Advance runs the next passes, for which the rank is Calm; free: one of them is,
// see Begin.
func (w *Worker) Advance(passes int, free bool) {
	w.work, w.ended, w.firsts = timing.Pass{}, w.ended[:0], w.firsts[:0]
	if w.pool.Changes.On {
		for range passes { // each takes its own blocks
			w.pool.Changes.Pass = w.pass
			w.take(1)
		}
	} else {
		w.take(passes)
	}
	w.short = w.short || free && w.wait.len() > 0
}

// take runs the next passes as far as they take blocks.
func (w *Worker) take(passes int) {
	w.pass += int64(passes)
	grow := w.turn(passes)
	if n := w.steady; n > 0 {
		w.promised -= grow
		w.pool.Take(grow)
		w.sumLen += n * passes
	}
}

// turn moves on in the buckets and returns how many blocks the steady requests
// open meanwhile.
func (w *Worker) turn(passes int) int {
	grow := 0
	for passes >= len(w.buckets) {
		passes -= len(w.buckets)
		grow += w.steady
	}
	at := w.slot
	for ; passes > 0; passes-- {
		grow += int(w.buckets[at])
		if at++; at == len(w.buckets) {
			at = 0
		}
	}
	w.slot = at
	return grow
}
