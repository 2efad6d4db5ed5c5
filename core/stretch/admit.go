package stretch

// candidate is the queue's head, admitted before or not.
type candidate struct {
	id      int32 // 0: never admitted
	input   int
	emitted int
	limit   int
}

func (w *Worker) head() (int32, candidate) {
	e := w.wait.front()
	if e < 0 {
		r := &w.reqs[^e]
		return e, candidate{id: ^e, input: int(r.input), emitted: int(r.emitted), limit: int(r.limit)}
	}
	t := &w.load.Turns[e]
	input, limit := int(t.Input), int(t.Output)
	if w.maxLen > 0 {
		limit = min(limit, max(w.maxLen-input, 0))
	}
	if pool := w.blocks * w.blockSize; w.noEvict && input < pool {
		limit = min(limit, pool-input)
	}
	return e, candidate{input: input, limit: limit}
}

// demand is how many blocks a candidate must be able to have, and how many
// there are for it, before its prefix hits are counted (§4.3): its known
// sequence, or with noEvict all it will ever need beside what is promised.
func (w *Worker) demand(c candidate, length int) (need, room int) {
	room = w.blocks - w.pool.Active()
	if w.noEvict {
		length, room = c.input+c.limit, max(room-w.promised, 0)
	}
	return (length + w.blockSize - 1) / w.blockSize, room
}

// admit is the waiting loop of engine notes §4.2: it admits from the head of
// the queue until one has to wait.
func (w *Worker) admit(nowMs float64) {
	b := &w.batch
	if b.preempted {
		w.stalled = false
		return
	}
	for len(w.run) < w.maxSeqs && w.wait.len() > 0 {
		entry, c := w.head()
		length := c.input + c.emitted
		need, room := w.demand(c, length)
		tooLong := w.maxLen > 0 && c.input >= w.maxLen
		if tooLong || (c.id == 0 && need > w.blocks) {
			w.refuse(entry, c, Rejected)
			continue
		}
		id := c.id
		hits, active := w.lookup(entry, c, length)
		if need-active > room {
			w.stalled = true
			return
		}
		cached := hits * w.blockSize
		if b.deferred && length-cached > 1 {
			w.stalled = false
			return
		}
		n, ok := w.chunk(c.input, length, cached)
		if !ok {
			// With more budget it may fit: only a pass that spent nothing on
			// prompts shows what every later one will.
			w.stalled = b.count == 0 && w.steady == len(w.run)
			return
		}
		w.wait.popFront()
		if w.spec.on {
			w.makeRoom(w.promptOf(entry), hits, (cached+n+w.blockSize-1)/w.blockSize-hits)
		}
		if id == 0 {
			id = w.newRequest(entry, c)
		}
		r := &w.reqs[id]
		if hits > 0 {
			w.pool.Pin(r.prompt, &r.holder, int32(hits))
			r.held = int32(hits)
		}
		if w.noEvict {
			r.whole = int32(need)
			w.promised += need - hits
		}
		w.commit(r, cached, n, (cached+n+w.blockSize-1)/w.blockSize-hits)
		w.admitted(r, nowMs, int32(cached))
		w.run = append(w.run, id)
		if b.preempted || n == 0 && b.budget == 0 {
			w.stalled = false
			return
		}
	}
	w.stalled = true
}

// lookup is the prefix hit of a waiting request (§4.6): blocks that are
// resident, bounded so that a request that needs a token computes one, and
// those of them that are held right now. The reference counts the held
// ones over the whole match and caps the count at the bounded hit, which is the
// same here: without planned outputs whoever holds a block holds the ones
// before it, so held blocks come first. For the same reason an admitted
// request always gets its blocks.
func (w *Worker) lookup(entry int32, c candidate, length int) (hits, active int) {
	if !w.caching {
		return 0, 0
	}
	limit := length / w.blockSize
	if c.emitted < c.limit && !w.noEvict {
		limit = (length - 1) / w.blockSize
	}
	if w.spec.on {
		return w.lookupDropping(entry, c, length, limit)
	}
	h := w.pool.Lookup(w.promptOf(entry), int32(limit))
	return int(h.Blocks), int(h.Active)
}

// admitted records an admission.
func (w *Worker) admitted(r *request, nowMs float64, reused int32) {
	w.batch.effect = true
	r.admits++
	if r.admits == 1 {
		r.admitMs, r.reused, r.most = nowMs, reused, reused
		return
	}
	r.most = max(r.most, reused)
	i := w.freeMit
	if i != 0 {
		w.freeMit = w.agains[i].prev
	} else {
		i = int32(len(w.agains))
		w.agains = append(w.agains, readmit{})
	}
	w.agains[i] = readmit{atMs: nowMs, reused: reused, prev: r.again}
	r.again = i
}

// refuse ends the queue's head without serving it.
func (w *Worker) refuse(entry int32, c candidate, fate Fate) {
	id := c.id
	if id == 0 {
		id = w.newRequest(entry, c)
	}
	w.reqs[id].fate = fate
	w.wait.popFront()
	w.refused = append(w.refused, id)
	w.batch.effect = true
}

// FailHead ends the head of the queue, which can never be served: a pass with
// nothing running had no effect, so no later one can have any.
func (w *Worker) FailHead() {
	w.ended, w.refused, w.firsts = w.ended[:0], w.refused[:0], w.firsts[:0]
	w.failHead()
	w.ended = append(w.ended, w.refused...)
}

func (w *Worker) failHead() {
	entry, c := w.head()
	w.refuse(entry, c, Failed)
	w.stalled = false
}

// ---- slabs ----

func (w *Worker) newRequest(turn int32, c candidate) int32 {
	id := w.freeReq
	if id != 0 {
		w.freeReq = w.reqs[id].turn
	} else {
		id = int32(len(w.reqs))
		w.reqs = append(w.reqs, request{})
	}
	w.reqs[id] = request{
		prompt: w.promptOf(turn), turn: turn,
		input: int32(c.input), limit: int32(c.limit), sched: -1, from: -1, each: 1, last: -1,
	}
	return id
}
