package stretch

import (
	"slices"

	"github.com/dryserve/dryserve/core/extent"
	"github.com/dryserve/dryserve/core/rng"
)

// speculation is what a worker with speculative decoding has besides. No
// request of its is ever steady: how many tokens a pass gives is drawn for each
// request in turn, so a pass costs a draw and a few additions per request.
type speculation struct {
	on        bool
	judges    bool // a request that keeps all from going on is to fail
	bursts    rng.Bursts
	ready     []int32 // requests that get tokens in this pass
	fruitless int     // passes that preempted since somebody got something
}

// Circling is how many passes with preemptions and without a token or an end
// show that a speculating rank goes in circles. Under the reference such a run
// does not end (corrections §4). There are two kinds:
//   - A pass preempts all that run. The last one had the whole pool and could not
//     go on; it would come back and be preempted again for ever. It fails at once.
//   - Requests that fit take turns in preempting themselves: the first to run is
//     the first victim (FIFO), and while one computes its prompt again, the other
//     finds no room for its tokens. Nothing is drawn before somebody gets a token,
//     so it goes on for ever; that it does is seen from how long it has. Where it
//     does not, a dozen such passes in a row are the most that was met.
const Circling = 1000

// lookupDropping is lookup with speculation, whose hits are one block shorter if
// the request needs a token (corrections §10). It then computes a block that is
// resident, so somebody may hold a second copy of it behind which come blocks that
// nobody else has: held blocks need not come first, and the count over the whole
// match, which the reference caps at the hit, may say more than there are in it.
func (w *Worker) lookupDropping(entry int32, c candidate, length, limit int) (hits, active int) {
	h := w.pool.Lookup(w.promptOf(entry), int32(length/w.blockSize))
	hits = min(int(h.Blocks), limit)
	if c.emitted < c.limit && !w.noEvict && hits > 0 {
		hits--
	}
	return hits, min(int(h.Active), hits)
}

// makeRoom preempts until a request that is admitted can pin its hits, of which
// idle ones count as well, and take fresh blocks. Its admission was decided on a
// count of held blocks that may be too high.
func (w *Worker) makeRoom(q extent.Prompt, hits, fresh int) {
	for len(w.run) > 0 && !w.noEvict {
		idle := hits - int(w.pool.Lookup(q, int32(hits)).Active)
		if fresh+idle <= w.pool.Free()+w.pool.Inactive() {
			return
		}
		w.preempt(w.victim())
	}
}

// emitBursts is emit with speculation (engine notes §4.7): every request that
// has computed all its tokens gets as many more as a draw says, decoding is
// charged for all of them, and the blocks that the longest bursts would need
// must be there before anything is drawn.
func (w *Worker) emitBursts() float64 {
	s := &w.spec
	s.ready = s.ready[:0]
	keep, need, sum := 0, 0, 0
	for _, id := range w.run {
		r := &w.reqs[id]
		switch length := r.length(); {
		case int(r.known) < length:
		case r.emitted >= r.limit:
			w.end(id)
			continue
		default:
			s.ready = append(s.ready, id)
			need += w.reach(r)
			sum += length
		}
		w.run[keep] = id
		keep++
	}
	w.run = w.run[:keep]
	for need > w.pool.Free()+w.pool.Inactive() {
		blocks, length := w.giveWay()
		need -= blocks
		sum -= length
	}
	w.pool.Take(need)
	spare := need
	w.batch.effect = w.batch.effect || len(s.ready) > 0
	w.work.Decodes, w.work.SumLen = len(s.ready), sum
	endMs := w.model.End(w.work)
	for _, id := range s.ready {
		spare -= w.burst(id, s.bursts.Next())
	}
	w.pool.Discard(int32(spare))
	w.dropEnded()
	w.pass++
	if w.slot++; w.slot == len(w.buckets) {
		w.slot = 0
	}
	if s.judges {
		w.judge()
	}
	w.ended = append(w.ended, w.refused...)
	return endMs
}

// giveWay preempts a running request and returns the blocks and the length it
// was reckoned with, if it was to get tokens. The work that it was given in this
// pass stays counted (corrections §13).
func (w *Worker) giveWay() (blocks, length int) {
	victim := w.victim()
	r := &w.reqs[victim]
	if i := slices.Index(w.spec.ready, victim); i >= 0 {
		blocks, length = w.reach(r), r.length()
		w.spec.ready = slices.Delete(w.spec.ready, i, i+1)
	}
	r.sched = -1
	w.stalled = false
	w.preempt(victim)
	return blocks, length
}

// reach is how many blocks the longest burst of a request adds.
func (w *Worker) reach(r *request) int {
	return w.beyond(r, r.length()+min(w.spec.bursts.Most(), int(r.limit-r.emitted)))
}

// beyond is how many blocks a request lacks for a length of n tokens.
func (w *Worker) beyond(r *request, n int) int {
	if n <= int(r.held)*w.blockSize { // spares most a division
		return 0
	}
	return (n+w.blockSize-1)/w.blockSize - int(r.held)
}

// burst gives a request the tokens of an accepted draw, as far as it wants them,
// and returns how many blocks they took. All but the newest have KV; that one has
// room for it.
func (w *Worker) burst(id int32, accepted int) (grown int) {
	r := &w.reqs[id]
	n := int32(min(accepted, int(r.limit-r.emitted)))
	if r.from < 0 || r.last != w.pass-1 || r.each != n {
		w.closeSpan(r)
		r.from, r.each = w.pass, n
	}
	r.last = w.pass
	if r.emitted == 0 && r.limit > 1 { // the first token, whatever comes with it
		w.firsts = append(w.firsts, first{r.turn, int32(len(w.ended))})
	}
	r.emitted += n
	length := r.length()
	r.known = int64(length - 1)
	grown = w.beyond(r, length)
	r.held += int32(grown)
	w.promised -= grown
	if r.emitted == r.limit {
		w.end(id)
	}
	return grown
}

// dropEnded takes the requests that ended off the running list.
func (w *Worker) dropEnded() {
	keep := 0
	for _, id := range w.run {
		if w.reqs[id].fate != ending {
			w.run[keep] = id
			keep++
		}
	}
	w.run = w.run[:keep]
}

// judge fails the head of the queue, which was preempted last, if the worker can
// never give anybody a token. See Circling.
func (w *Worker) judge() {
	s := &w.spec
	if len(s.ready) > 0 || len(w.ended)+len(w.refused) > 0 {
		s.fruitless = 0
		return
	}
	if !w.batch.preempted {
		return
	}
	s.fruitless++
	if len(w.run) == 0 || s.fruitless == Circling {
		s.fruitless = 0
		w.failHead()
	}
}
