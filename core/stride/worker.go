package stride

import (
	"math"

	"github.com/dryserve/dryserve/core/branch"
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

const never = math.MaxInt64

// request is one that has been looked at: its prompt is computed in part or
// whole. Lengths in tokens.
type request struct {
	seq       branch.Seq
	input     int32 // prompt length
	limit     int32 // tokens it will generate: output bounded by the model length
	generated int32 // as of join
	computed  int32 // tokens with KV, not kept up while it runs
	pages     int32 // it has, likewise
	cached    int32 // of them in the tree, likewise
	node      int32 // where they end
	own       bool  // that node is nobody else's as long as this runs
	join      int64 // the first decode step in which it takes part
	order     uint64

	spans   int32 // token times, newest first
	again   int32 // admissions after the first, newest first
	admits  int32
	reused  int32 // tokens, at the first admission
	most    int32 // tokens, maximum over the admissions
	admitMs float64
	fate    stretch.Fate
}

func (r *request) turn() int32   { return r.seq.Turn }
func (r *request) length() int32 { return r.input + r.generated }

// remaining is what is still to be generated, as of join.
func (r *request) remaining() int32 { return r.limit - r.generated }

// work is the prompt work of one request in a pass.
type work struct {
	req      int32
	computed int32 // tokens
	prefix   int32 // tokens that had KV before
}

// pass is what one pass has done so far.
type pass struct {
	deferred   bool // prompts are held back by the interval
	hadDecodes bool
	decoded    bool
	stuck      bool
	effect     bool
	prefilled  bool // prompt tokens were computed
	committed  int
	ratio      float64 // before it
}

// hurdle is why the head of the queue was not admitted.
type hurdle uint8

const (
	unknown hurdle = iota
	always         // it will not be, unless what is cached changes
	room           // it wants need tokens
)

// Worker is one rank.
type Worker struct {
	load   *workload.Workload
	cache  *branch.Cache
	model  timing.Model
	step   timing.DecodeStep
	bs     int32
	maxLen int
	slots  int
	opts   config.SGLangOptions
	chunk  int
	caches bool
	ratio  ratio
	rounds int // passes still without prompts

	reqs    []request
	freeReq int32
	times   times
	wait    queue
	refused []int32 // turns whose prompt is too long
	pass    pass
	timed   timing.Pass // the same, as the timing model sees it
	uses    uint64      // stamps taken so far, see now
	orders  uint64

	run     []int32 // in the order they joined
	due     []int64 // of run: the step of the next event
	next    int64   // earliest of due
	sumLen  int     // tokens of run before the next step
	buckets []int32 // requests that open a page in steps = index mod page size
	steps   int64   // decode steps so far
	passes  int64   // passes so far, whatever they did
	begins  []begin // who got the first token in the last pass, in signal order

	clip    clip
	hurdle  hurdle
	need    int  // of room
	evicts  bool // the head's demand may change when pages are evicted
	ordered bool // LPM: sorting again would change nothing

	works     []work
	fresh     []int32
	firsts    []int32 // requests with a token out of the prefill
	done      []int32
	retracted []int32
	ended     []int32
	ranking   []ranked
	seen      []uint64

	retractions int64
	retries     int
}

// Serves reports whether this engine can stand for e: SGLang ranks that
// serve whole requests, without speculation.
func Serves(e config.Engine) bool {
	return e.Backend == config.SGLang && e.Role == config.Aggregated && e.MTP.Drafts == 0 &&
		e.HostOffload.Blocks == 0 && e.BlockSize <= stretch.MaxBlockSize
}

// New returns an idle worker: a rank of e.DPSize, which share the chunk and
// reserve less each (engine notes §6). e is checked and one that it Serves.
func New(e config.Engine, w *workload.Workload, traceBlockSize int) *Worker {
	model := timing.New(e)
	conservativeness := e.SGLang.Conservativeness
	if e.DPSize > 1 {
		conservativeness = float64(conservativeness * 0.3)
	}
	return &Worker{
		load: w, cache: branch.New(w.Prompts, e.NumGPUBlocks, e.BlockSize, traceBlockSize),
		model: model, step: model.DecodeStep(), bs: int32(e.BlockSize),
		maxLen: e.MaxModelLen, slots: e.MaxNumSeqs, opts: e.SGLang, chunk: e.SGLang.ChunkedPrefillSize / e.DPSize, caches: e.EnablePrefixCaching,
		ratio: newRatio(conservativeness),
		reqs:  make([]request, 1, 8), times: newTimes(), buckets: make([]int32, e.BlockSize), next: never,
	}
}

// Divide follows a split in the prefix tree (branch.Cache.Divide).
func (w *Worker) Divide(s, front int32) { w.cache.Divide(s, front) }

// Push queues a turn. It is seen by the next pass.
func (w *Worker) Push(turn int32) {
	if w.maxLen > 0 && int(w.load.Turns[turn].Input) >= w.maxLen {
		w.refused = append(w.refused, turn)
		return
	}
	if w.wait.len() == 0 {
		w.hurdle = unknown
	}
	w.ordered = false
	w.wait.pushBack(turn)
}

// Ready reports whether a pass could do something.
func (w *Worker) Ready() bool {
	return len(w.run) > 0 || w.wait.len() > 0 || len(w.refused) > 0 || w.rounds > 0
}

// InFlight counts requests.
func (w *Worker) InFlight() int { return len(w.run) + w.wait.len() + len(w.refused) }

// Preemptions counts retracted requests since the start.
func (w *Worker) Preemptions() int64 { return w.retractions }

// Effect reports whether the last pass did anything (corrections §4).
func (w *Worker) Effect() bool { return w.pass.effect }

// CommittedPrefill is the number of prompt tokens the last pass computed
// (replay notes §9.1).
func (w *Worker) CommittedPrefill() int { return w.pass.committed }

// Ended lists the requests the last pass ended, in signal order. Each is to
// be given back with Free before the next pass begins.
func (w *Worker) Ended() []int32 { return w.ended }

// Begin runs the pass that starts at nowMs and returns its end. State is the
// pass's outcome at once; what it ended is for the caller to show at the end
// (engine notes §6.1).
//
// If an outside provider has to say how long the pass takes, the answer is
// timing.Unknown. All but the end is done then; Resume tells it once what Ask
// asks has been answered, and nothing else may be called before.
func (w *Worker) Begin(nowMs float64) float64 {
	w.begin(nowMs)
	p := &w.pass
	w.endRound(p.prefilled, p.prefilled || p.decoded)
	if p.effect {
		w.retries = 0
	}
	return w.Resume()
}

// begin is Begin but for the end of the round and of the pass.
func (w *Worker) begin(nowMs float64) {
	w.works, w.fresh, w.done, w.retracted, w.ended = w.works[:0], w.fresh[:0], w.done[:0], w.retracted[:0], w.ended[:0]
	w.firsts, w.begins, w.timed = w.firsts[:0], w.begins[:0], timing.Pass{StartMs: nowMs}
	w.cache.Changes.Pass = w.passes
	w.passes++
	w.pass = pass{deferred: w.rounds > 0, ratio: w.ratio.now}
	p := &w.pass
	w.cache.Now = branch.Stamp{Step: w.steps, Seq: w.uses}
	w.sortWaiting()
	if !p.deferred {
		w.admit(nowMs)
	}
	if len(w.works) > 0 {
		p.effect = true
		w.chargePrefill()
		w.endPrefill()
		w.uses = w.cache.Now.Seq
	} else {
		w.uses = w.cache.Now.Seq
		w.decode()
	}
	for _, id := range w.done {
		w.settle(id)
	}
	if len(w.done) > 0 {
		w.hurdle, w.ordered = unknown, false
	}
	w.uses = max(w.uses, w.cache.Now.Seq&^late)
	w.finish()
}

// rest is begin for a rank that has nothing to do in a pass of its group.
func (w *Worker) rest() {
	w.pass, w.ended, w.begins = pass{ratio: w.ratio.now}, w.ended[:0], w.begins[:0]
	w.passes++
}

// Resume is Begin's answer for the pass that Begin ran last. It gives the
// pass's tokens their time.
func (w *Worker) Resume() float64 {
	endMs := w.model.End(w.timed)
	w.date(endMs)
	return endMs
}

// date gives the tokens of the last pass their time.
func (w *Worker) date(endMs float64) {
	if w.pass.decoded {
		w.times.log[len(w.times.log)-1] = endMs
	}
	for _, id := range w.firsts {
		w.times.date(w.reqs[id].spans, endMs)
	}
}

// Ask is what has to be known before Resume can tell, if there is anything.
func (w *Worker) Ask() (timing.Query, bool) { return w.model.Ask(w.timed) }

// ShareAnswers lets the worker find an outside provider's answers in c.
func (w *Worker) ShareAnswers(c *timing.Cache) { w.model.Share(c) }

// finish is the end of a pass: who comes back to the queue, and the ratio.
func (w *Worker) finish() {
	p := &w.pass
	w.ended = append(w.ended, w.done...)
	for _, turn := range w.refused {
		id := w.newRequest(turn)
		w.reqs[id].fate = stretch.Rejected
		w.ended = append(w.ended, id)
	}
	p.effect = p.effect || len(w.ended) > 0 || len(w.retracted) > 0
	w.refused = w.refused[:0]
	for _, id := range w.retracted {
		w.wait.pushBack(^id)
	}
	if len(w.retracted) > 0 {
		w.hurdle, w.ordered = unknown, false
	} else if len(w.works) == 0 && (p.hadDecodes || !p.deferred) {
		w.ratio.fall()
	}
}

// endRound tells the worker what the ranks of its group did in the pass.
func (w *Worker) endRound(prefilled, ranModel bool) {
	if prefilled {
		w.rounds = w.opts.PrefillDecodeInterval
	} else {
		w.rounds = max(w.rounds-1, 0)
	}
	if w.pass.deferred && !w.pass.hadDecodes && !ranModel {
		w.ratio.now = w.ratio.initial
	}
}

// Idle is the verdict on a pass without time and effect (engine notes §3).
func (w *Worker) Idle() stretch.Verdict {
	switch p := &w.pass; {
	case p.deferred:
		return stretch.Again
	case p.ratio != w.ratio.now && w.retries < maxRetries:
		w.retries++
		return stretch.Again
	case p.stuck:
		return stretch.Endless
	}
	return stretch.Hopeless
}

// FailHead ends the one that runs if it found no room, else the head of the
// queue: it can never be served.
func (w *Worker) FailHead() {
	w.ended, w.begins = w.ended[:0], w.begins[:0]
	var id int32
	switch {
	case w.pass.stuck && len(w.run) == 1:
		id = w.leave(0)
		w.catchUp(&w.reqs[id], w.reqs[id].length())
		w.drop(&w.reqs[id])
	case w.wait.len() > 0:
		id = w.known(w.wait.front())
		w.wait.popFront()
		w.drop(&w.reqs[id])
	default:
		return
	}
	w.reqs[id].fate = stretch.Failed
	w.ended = append(w.ended, id)
	w.hurdle, w.ordered = unknown, false
}
