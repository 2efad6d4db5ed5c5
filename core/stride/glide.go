package stride

import "github.com/dryserve/dryserve/core/timing"

// Glide runs decode steps, one after the other, as long as each starts before
// untilMs, does nothing but give every running request a token that is not its
// last, admits nobody, and has a duration that need not be asked for. endMs is
// the end of the pass in flight, which must have ended nothing. It returns the
// new end and the number of steps, at most most. Each step's end is in the log.
func (w *Worker) Glide(endMs, untilMs float64, most int) (float64, int) {
	most, watch, stays := w.horizon(most)
	if most <= 0 {
		return endMs, 0
	}
	clipSum, low := 0, 0
	if watch {
		c := w.clipped()
		clipSum, low = c.sum, c.low
		if left := c.until - w.steps; int64(most) > left {
			most = int(left) + 1
		}
	}
	n := len(w.run)
	passes, sum := 0, w.sumLen
	at := int(w.steps % int64(w.bs))
	free, all := w.cache.Free(), w.cache.Room()
	step, buckets, log, ratio := &w.step, w.buckets, w.times.log, w.ratio
	step.SetBatch(n)
	for passes < most && endMs < untilMs {
		grow := int(buckets[at])
		if grow > all || stays && grow > free {
			break
		}
		if watch {
			reserved := float64(float64(clipSum) * ratio.now)
			if float64(w.need) < float64(all*int(w.bs))-reserved+slack(reserved) {
				break
			}
		}
		ms := step.Fast(sum)
		if ms < 0 {
			if ms = step.Ms(sum); ms == timing.Unknown {
				break // Begin runs that step
			}
		}
		all -= grow
		free -= grow
		if w.cache.Changes.On && grow > 0 { // each takes its own pages
			w.cache.Changes.Pass = w.passes + int64(passes)
			w.cache.Take(grow)
		}
		if at++; at == len(buckets) {
			at = 0
		}
		endMs += ms
		log = append(log, endMs)
		sum += n
		clipSum -= low
		ratio.fall()
		passes++
	}
	w.times.log = log
	if passes > 0 {
		w.cache.Take(w.cache.Room() - all)
		w.sumLen, w.ratio = sum, ratio
		w.steps += int64(passes)
		w.passes += int64(passes)
		w.rounds = max(w.rounds-passes, 0)
		w.pass = pass{hadDecodes: true, decoded: true, effect: true}
		w.ended, w.begins = w.ended[:0], w.begins[:0]
		w.retries = 0
	}
	return endMs, passes
}

// horizon is the number of steps, at most most, that may follow without a look
// at the queue, if the head does not fit meanwhile (watch) and, for stays, no
// step evicts: that may shorten a prefix somebody waits for.
func (w *Worker) horizon(most int) (steps int, watch, stays bool) {
	n := len(w.run)
	if n == 0 || len(w.refused) > 0 {
		return 0, false, false
	}
	most = int(min(int64(most), w.next-w.steps))
	sorts := w.sorts()
	if sorts && !w.ordered {
		return 0, false, false
	}
	if w.wait.len() == 0 || n >= w.slots {
		return most, false, sorts
	}
	switch {
	case w.rounds > 0:
		return min(most, w.rounds), false, sorts
	case w.hurdle == unknown:
		return 0, false, false
	}
	return most, w.hurdle == room, sorts || w.evicts
}

// calm is how many of the next passes of a group, at most most, do nothing on
// this rank but decode, as in Glide; a rank with nothing to do is calm for ever.
func (w *Worker) calm(most int) int {
	if len(w.run) == 0 {
		if w.wait.len() > 0 || len(w.refused) > 0 {
			return 0
		}
		return most
	}
	most, watch, stays := w.horizon(most)
	if most <= 0 {
		return 0
	}
	clipSum, low := 0, 0
	if watch {
		c := w.clipped()
		clipSum, low = c.sum, c.low
		if left := c.until - w.steps; int64(most) > left {
			most = int(left) + 1
		}
	}
	at, ratio := int(w.steps%int64(w.bs)), w.ratio
	free, all := w.cache.Free(), w.cache.Room()
	for k := range most {
		grow := int(w.buckets[at])
		if grow > all || stays && grow > free {
			return k
		}
		if watch {
			reserved := float64(float64(clipSum) * ratio.now)
			if float64(w.need) < float64(all*int(w.bs))-reserved+slack(reserved) {
				return k
			}
		}
		all -= grow
		free -= grow
		if at++; at == len(w.buckets) {
			at = 0
		}
		clipSum -= low
		ratio.fall()
	}
	return most
}

// durations raises ms[i] to the duration of the i-th step from now on if that
// is longer. The rank is calm for all of them. It returns how many it did: the
// one after them has to be asked for.
func (w *Worker) durations(ms []float64) int {
	n, sum := len(w.run), w.sumLen
	if n == 0 {
		return len(ms)
	}
	step := &w.step
	step.SetBatch(n)
	for i, longest := range ms {
		d := step.Fast(sum)
		if d < 0 {
			if d = step.Ms(sum); d == timing.Unknown {
				return i
			}
		}
		ms[i] = max(d, longest)
		sum += n
	}
	return len(ms)
}

// advance runs the next passes, for which the rank is calm; they end at ends.
func (w *Worker) advance(ends []float64) {
	w.ended, w.begins, w.rounds = w.ended[:0], w.begins[:0], max(w.rounds-len(ends), 0)
	first := w.passes
	w.passes += int64(len(ends))
	n := len(w.run)
	if n == 0 {
		w.pass = pass{}
		return
	}
	grow, at := 0, int(w.steps%int64(w.bs))
	for i := range ends {
		opened := int(w.buckets[at])
		if w.cache.Changes.On { // each takes its own pages
			w.cache.Changes.Pass = first + int64(i)
			w.cache.Take(opened)
		} else {
			grow += opened
		}
		if at++; at == len(w.buckets) {
			at = 0
		}
		w.ratio.fall()
	}
	w.cache.Take(grow)
	w.times.log = append(w.times.log, ends...)
	w.sumLen += n * len(ends)
	w.steps += int64(len(ends))
	w.pass = pass{hadDecodes: true, decoded: true, effect: true}
}
