package stride

// Glide runs decode steps, one after the other, as long as each starts before
// untilMs, does nothing but give every running request a token that is not its
// last, and admits nobody. endMs is the end of the pass in flight, which must
// have ended nothing. It returns the new end and the number of steps, at most
// most. Each step's end is in the log.
func (w *Worker) Glide(endMs, untilMs float64, most int) (float64, int) {
	n := len(w.run)
	if n == 0 || len(w.refused) > 0 {
		return endMs, 0
	}
	if left := w.next - w.steps; int64(most) > left {
		most = int(left)
	}
	watch, waits := false, w.wait.len() > 0 && n < w.slots
	if waits {
		switch {
		case w.rounds > 0:
			most = min(most, w.rounds)
		case w.hurdle == room:
			watch = true
		case w.hurdle != always:
			return endMs, 0
		}
	}
	sorts := w.sorts()
	if sorts && !w.ordered {
		return endMs, 0
	}
	// A step that evicts may shorten a prefix somebody waits for.
	stays := sorts || waits && w.rounds == 0 && w.evicts
	clipSum, low := 0, 0
	if watch {
		c := w.clipped()
		clipSum, low = c.sum, c.low
		if left := c.until - w.steps; int64(most) > left {
			most = int(left) + 1
		}
	}
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
		all -= grow
		free -= grow
		if at++; at == len(buckets) {
			at = 0
		}
		ms := step.Fast(sum)
		if ms < 0 {
			ms = step.Ms(sum)
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
		w.rounds = max(w.rounds-passes, 0)
		w.pass = pass{hadDecodes: true, decoded: true, effect: true}
		w.ended = w.ended[:0]
		w.retries = 0
	}
	return endMs, passes
}
