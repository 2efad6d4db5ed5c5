package stretch

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/extent"
	"github.com/dryserve/dryserve/core/rng"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// Fate is how a request left the worker.
type Fate uint8

// The fates: all tokens emitted, refused at admission, or never servable.
const (
	Completed Fate = iota
	Rejected
	Failed
)

// MaxBlockSize is the largest block size the buckets are kept for; the plain
// engine serves larger ones.
const MaxBlockSize = 4096

const never = math.MaxInt64

// request is one admitted request. Lengths in tokens, passes by number.
type request struct {
	prompt  extent.Prompt
	holder  extent.Holder
	turn    int32
	input   int32 // prompt length
	limit   int32 // tokens it will emit: output bounded by the model length
	emitted int32 // as of the last explicit pass; steady requests use base
	held    int32 // blocks, likewise
	whole   int32 // blocks it will have at its end, TensorRT-LLM only
	known   int64 // computed tokens, likewise
	work    int32 // tokens scheduled in pass sched
	fresh   int32 // prompt tokens among them
	before  int32 // prompt tokens computed before pass sched
	spans   int32 // closed token ranges, newest first
	again   int32 // admissions after the first, newest first
	admits  int32
	reused  int32 // tokens, at the first admission
	most    int32 // tokens, maximum over the admissions
	sched   int64 // pass it was last scheduled in, explicit passes only
	base    int64 // steady: emitted before pass p is p-base
	from    int64 // first pass of the open token range, -1: none open
	each    int32 // tokens per pass of the open range
	last    int64 // pass of its newest token, explicit passes only
	admitMs float64
	fate    Fate
	evicted bool // preempted before
}

func (r *request) length() int { return int(r.input) + int(r.emitted) }

// span is a closed range of passes that each gave the request as many tokens.
type span struct {
	from, to int64
	each     int32
	prev     int32
}

// readmit is an admission after a preemption.
type readmit struct {
	atMs   float64
	reused int32
	prev   int32
}

// batch is what one pass has scheduled so far.
type batch struct {
	budget    int
	count     int // prompts with work
	isl       int // their context after the pass, tokens
	prefix    int // and before it
	committed int // tokens scheduled for them
	effect    bool
	preempted bool
	deferred  bool // prompts are not computed
}

// Worker is the scheduler of one rank.
type Worker struct {
	rank      int32
	load      *workload.Workload
	pool      *extent.Pool
	model     timing.Model
	step      timing.DecodeStep
	blockSize int
	blocks    int
	maxLen    int
	maxSeqs   int
	maxTokens int
	caching   bool
	chunked   bool
	fifo      bool
	noEvict   bool // TensorRT-LLM: admit only what can run to its end
	promised  int  // noEvict: blocks that running requests will still open
	spec      speculation

	reqs     []request
	freeReq  int32
	spans    []span
	freeSpan int32
	agains   []readmit
	freeMit  int32
	wait     queue

	run     []int32 // admission order
	done    []int64 // of run[:steady]: the pass of the last token
	steady  int
	sumLen  int     // tokens of run[:steady] before the next pass
	buckets []int32 // requests that open a block in passes = index mod BlockSize
	next    int64   // earliest of done
	stalled bool    // the queue's head stays where it is until a completion
	short   bool    // the last pass free to admit all left somebody waiting

	pass    int64       // number of the next pass, in the worker's log
	slot    int         // pass mod BlockSize
	work    timing.Pass // the last one, as the timing model sees it, if Begin ran it
	log     *Log
	batch   batch
	ended   []int32 // requests the last pass ended, in signal order
	refused []int32
	firsts  []first // requests that got their first token in it, in signal order

	preemptions int64
}

// Serves reports whether this engine can stand for e: ranks of vLLM or
// TensorRT-LLM that serve whole requests.
func Serves(e config.Engine) bool {
	return e.Backend != config.SGLang && e.Role == config.Aggregated && e.HostOffload.Blocks == 0 && e.BlockSize <= MaxBlockSize
}

// New returns an idle rank by its number within a worker, and the worker's in the
// run. cfg is checked and its engine one that it Serves; the log is the worker's.
func New(cfg config.Replay, w *workload.Workload, log *Log, worker, rank int) *Worker {
	e := cfg.Engine
	model := timing.New(e)
	return &Worker{
		rank: int32(rank), load: w, log: log, pool: extent.New(w.Prompts, e.NumGPUBlocks, e.BlockSize, cfg.TraceBlockSize),
		model: model, step: model.DecodeStep(), blockSize: e.BlockSize, blocks: e.NumGPUBlocks,
		maxLen: e.MaxModelLen, maxSeqs: e.MaxNumSeqs, maxTokens: e.MaxNumBatchedTokens,
		caching: e.EnablePrefixCaching, chunked: e.EnableChunkedPrefill, fifo: e.Preemption == config.FIFO, noEvict: e.Backend == config.TRTLLM,
		reqs: make([]request, 1, 8), spans: make([]span, 1, 8), agains: make([]readmit, 1, 2),
		buckets: make([]int32, e.BlockSize), next: never, stalled: true,
		spec: speculation{on: e.MTP.Drafts > 0, judges: !cfg.Parity, bursts: rng.NewBursts(e.RankSeed(uint64(worker), rank), e.MTP.Rates())},
	}
}

// Divide follows a split in the prefix tree (extent.Pool.Divide).
func (w *Worker) Divide(s, front int32) { w.pool.Divide(s, front) }

// Push queues a turn. It is seen by the next pass.
func (w *Worker) Push(turn int32) {
	if w.wait.len() == 0 {
		w.stalled = false
	}
	w.wait.pushBack(turn)
}

// Ready reports whether a pass could do something: a request runs or waits.
func (w *Worker) Ready() bool { return len(w.run) > 0 || w.wait.len() > 0 }

// Running and Waiting count requests.
func (w *Worker) Running() int { return len(w.run) }
func (w *Worker) Waiting() int { return w.wait.len() }

// Preemptions counts preempted requests since the start.
func (w *Worker) Preemptions() int64 { return w.preemptions }

// Effect reports whether the last pass did anything (corrections §4).
func (w *Worker) Effect() bool { return w.batch.effect }

// CommittedPrefill is the number of tokens the last pass scheduled for
// requests that had prompt work (replay notes §9.1).
func (w *Worker) CommittedPrefill() int { return w.batch.committed }

// Ended lists the requests the last pass ended, in signal order. Each is to
// be given back with Free before the next pass begins.
func (w *Worker) Ended() []int32 { return w.ended }

// Begin runs the pass that starts at nowMs and returns its end, were the rank
// alone: the caller logs the worker's. State is the pass's outcome at once; what
// it ended is for the caller to show at the end. A pass that is not free
// computes no prompts, unless somebody waits for room or nobody can decode.
//
// If an outside provider has to say how long the pass takes, the answer is
// timing.Unknown. All but the end is done then; Resume tells it once what Ask
// asks has been answered, and nothing else may be called before.
func (w *Worker) Begin(nowMs float64, free bool) float64 {
	w.batch = batch{budget: w.maxTokens, deferred: !free && !w.short && w.decodes()}
	w.ended, w.refused, w.firsts = w.ended[:0], w.refused[:0], w.firsts[:0]
	w.pool.Changes.Pass = w.pass
	w.scheduleRunning()
	w.admit(nowMs)
	b := &w.batch
	if !b.deferred && !b.preempted {
		w.short = w.wait.len() > 0
	}
	w.work = timing.Pass{StartMs: nowMs, Prompts: b.count, ISL: b.isl, Prefix: b.prefix}
	if w.spec.on {
		return w.emitBursts()
	}
	return w.emit()
}

// decodes reports whether the prompt of a running request is computed.
func (w *Worker) decodes() bool {
	for _, id := range w.run[w.steady:] {
		if r := &w.reqs[id]; r.known >= int64(r.input) {
			return true
		}
	}
	return w.steady > 0
}

// Resume is Begin's answer for the last pass, 0 if the rank had no part in it.
func (w *Worker) Resume() float64 { return w.model.End(w.work) }

// Ask is what has to be known before Resume can tell, if there is anything.
func (w *Worker) Ask() (timing.Query, bool) { return w.model.Ask(w.work) }

// ShareAnswers lets the worker find an outside provider's answers in c.
func (w *Worker) ShareAnswers(c *timing.Cache) { w.model.Share(c) }

// scheduleRunning is the running loop of engine notes §4.2.
func (w *Worker) scheduleRunning() {
	b := &w.batch
	if n := w.steady; n > 0 {
		b.effect = true
		if n > b.budget || !w.fits() {
			w.unsettle()
		} else {
			if grow := w.buckets[w.slot]; grow > 0 {
				w.pool.Take(int(grow))
				w.promised -= int(grow)
			}
			b.budget -= n
		}
	}
	for i := w.steady; i < len(w.run) && b.budget > 0; {
		if r := &w.reqs[w.run[i]]; b.deferred && r.known < int64(r.input) {
			i++
			continue
		}
		switch w.schedule(w.run[i]) {
		case scheduled:
			// A victim at a smaller index (fifo) has shifted the list: the
			// request now at i is passed over, as in the reference (E14).
			i++
		case blocked:
			return
		case preempted:
		}
	}
}

// fits reports whether no running request can miss a block in this pass.
func (w *Worker) fits() bool {
	room := w.pool.Free() + w.pool.Inactive() - int(w.buckets[w.slot])
	budget := w.batch.budget - w.steady
	for _, id := range w.run[w.steady:] {
		r := &w.reqs[id]
		to := min(r.length(), int(r.known)+budget)
		room -= (to+w.blockSize-1)/w.blockSize - int(r.held)
	}
	return room >= 0
}

type outcome uint8

const (
	scheduled outcome = iota
	blocked
	preempted
)

// chunk is how many tokens a pass may compute for a request of length tokens,
// input of them prompt, before of them computed; false: none may (§4.4).
func (w *Worker) chunk(input, length, before int) (int, bool) {
	b := &w.batch
	if left := input - before; left > 0 && !w.chunked && left > b.budget {
		return 0, false
	}
	n := min(length-before, b.budget)
	return n, n > 0 || length == before
}

// schedule gives a running request its work of this pass (§4.4).
func (w *Worker) schedule(id int32) outcome {
	r := &w.reqs[id]
	before := int(r.known)
	n, ok := w.chunk(int(r.input), r.length(), before)
	if !ok {
		return blocked
	}
	need := (before+n+w.blockSize-1)/w.blockSize - int(r.held)
	for need > w.pool.Free()+w.pool.Inactive() {
		if w.noEvict {
			return blocked
		}
		victim := w.victim()
		w.preempt(victim)
		if victim == id {
			return preempted
		}
	}
	w.commit(r, before, n, need)
	return scheduled
}

// commit books n tokens of work and the blocks for them.
func (w *Worker) commit(r *request, before, n, need int) {
	b := &w.batch
	if need > 0 {
		w.pool.Take(need)
		r.held += int32(need)
		w.promised -= need
	}
	target := before + n
	input := int(r.input)
	if w.caching && before < input {
		w.pool.Own(r.prompt, &r.holder, int32(min(target, input)/w.blockSize))
	}
	was := min(before, input)
	r.known = int64(target)
	r.sched, r.work, r.before, r.fresh = w.pass, int32(n), int32(was), int32(min(target, input)-was)
	if r.fresh > 0 {
		b.count++
		b.isl += was + int(r.fresh)
		b.prefix += was
		b.committed += n
	}
	b.budget -= n
	b.effect = b.effect || n > 0
}

// victim is the running request to be preempted next.
func (w *Worker) victim() int32 {
	if w.fifo {
		return w.run[0]
	}
	return w.run[len(w.run)-1]
}

// preempt takes a running request back to the front of the queue (§4.4).
func (w *Worker) preempt(id int32) {
	b := &w.batch
	r := &w.reqs[id]
	for i, other := range w.run {
		if other == id {
			w.run = append(w.run[:i], w.run[i+1:]...)
			break
		}
	}
	if r.sched == w.pass {
		b.budget += int(r.work)
		if r.fresh > 0 {
			b.count--
			b.isl -= int(r.before + r.fresh)
			b.prefix -= int(r.before)
			b.committed -= int(r.work)
		}
		r.sched = -1
	}
	w.release(r, true)
	w.closeSpan(r)
	r.known, r.held, r.evicted = 0, 0, true
	w.wait.pushFront(^id)
	w.preemptions++
	b.preempted, b.effect = true, true
}

// release gives a request's blocks back; resume: it will come back for them.
func (w *Worker) release(r *request, resume bool) {
	w.promised -= int(r.whole - r.held)
	if !w.caching {
		w.pool.Discard(r.held)
		return
	}
	full := int32(r.known / int64(w.blockSize))
	if resume && full > max(r.holder.Blocks, r.prompt.Blocks) && r.prompt.Private == 0 {
		r.prompt.Private = w.pool.Private()
	}
	w.pool.Release(r.prompt, &r.holder, r.held, full)
}
