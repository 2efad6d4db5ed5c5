package replay

import (
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/ranks"
	"github.com/dryserve/dryserve/core/stretch"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/core/workload"
)

// plain drives the readable engine as a worker: the ranks of one group, to
// which turns go in turn.
type plain struct {
	speller
	g          *group.Group
	tape       *recorder // nil: nobody asks
	id         int32     // of the worker
	sglang     bool
	copies     bool     // to and from host memory
	speculates bool     // and a request that cannot be served is to fail
	rank       int      // of the next turn
	fruitless  []int    // by rank: passes that preempted since the last output
	notes      [][]note // by rank, then by handle
	ended      []int32  // handle*ranks + rank
	inFlight   int
	nowMs      float64 // start of the pass begun last
	effect     bool
	failing    bool  // Ended lists what FailHead has ended
	stuck      bool  // a decode step found no room, which alone is no effect
	retries    int   // passes in a row repeated for moved estimates
	retracted  int64 // requests, SGLang only
	meter      *meter
	committed  int
	passes     int64
}

// note is what is known of a request inside the engine.
type note struct {
	result stretch.Result
	times  []float64
	admits []Admission
}

func newPlain(cfg config.Replay, w *workload.Workload, n *numbers, id int, tiers offload.Tiers) *plain {
	e := cfg.Engine
	e.EmitKVEvents, e.EmitKVTokenIDs = cfg.Routing.Mode == config.KVRouter, false
	g := group.NewSharing(e, uint64(id), tiers, int32(id))
	return &plain{
		speller: speller{load: w, numbers: n, traceSize: cfg.TraceBlockSize},
		g:       g, id: int32(id), sglang: e.Backend == config.SGLang, copies: e.HostOffload.Blocks > 0,
		speculates: e.MTP.Drafts > 0 && e.Backend != config.SGLang && !cfg.Parity,
		fruitless:  make([]int, g.Ranks()), notes: make([][]note, g.Ranks()),
	}
}

func (p *plain) Push(turn int32) {
	p.PushTo(turn, p.rank)
	p.rank = (p.rank + 1) % p.g.Ranks()
}

// PushTo gives a turn to a rank.
func (p *plain) PushTo(turn int32, rank int) {
	q := engine.Request{UUID: turnID(turn), Tag: uint32(turn), MaxOutput: int(p.load.Turns[turn].Output)}
	q.Tokens, q.OutputIDs = p.spell(turn)
	h, _ := p.g.Submit(rank, q) // the UUID is new and the output is not negative
	for len(p.notes[rank]) <= int(h) {
		p.notes[rank] = append(p.notes[rank], note{})
	}
	if p.meter != nil {
		p.meter.told(rank, p.g.Metrics(rank))
	}
	p.inFlight++
	n := &p.notes[rank][h]
	n.result = stretch.Result{Turn: turn, Rank: int32(rank)}
	n.times, n.admits = n.times[:0], n.admits[:0]
}

// note is the note of an ended request.
func (p *plain) note(id int32) *note {
	ranks := int32(len(p.notes))
	return &p.notes[id%ranks][id/ranks]
}

// AppendSignals appends what the last pass said of requests, rank by rank, then
// the ends of those that failed. Every token is said.
func (p *plain) AppendSignals(dst []stretch.Signal) []stretch.Signal {
	for rank := range p.notes {
		if p.failing {
			break
		}
		for _, o := range p.g.Out(rank).Outputs {
			dst = append(dst, stretch.Signal{Turn: int32(o.Tag), Ended: o.Completed})
		}
	}
	for _, id := range p.ended {
		if r := p.Result(id); r.Fate == stretch.Failed {
			dst = append(dst, stretch.Signal{Turn: r.Turn, Ended: true})
		}
	}
	return dst
}

// Begun is not asked: Glide never runs on.
func (p *plain) Begun() bool { return true }

func (p *plain) Ranks() int                { return p.g.Ranks() }
func (p *plain) Ready() bool               { return p.g.Ready() }
func (p *plain) Effect() bool              { return p.effect }
func (p *plain) CommittedPrefill() int     { return p.committed }
func (p *plain) Ended() []int32            { return p.ended }
func (p *plain) Free(id int32)             { p.inFlight-- }
func (p *plain) InFlight() int             { return p.inFlight }
func (p *plain) Pass() int64               { return p.passes }
func (p *plain) Log(first int64) []float64 { return nil }
func (p *plain) Trim()                     {}

// Glide never runs on: every pass is begun by itself.
func (p *plain) Glide(endMs, untilMs float64, most int) (float64, int) { return endMs, 0 }

func (p *plain) running() int {
	n := 0
	for i := range p.notes {
		n += p.g.Running(i)
	}
	return n
}

// Idle says what becomes of the worker after a pass without time and effect. It
// waits for what it runs and for copies to and from host memory.
func (p *plain) Idle() stretch.Verdict {
	switch p.g.Convergence().Repeat {
	case group.Countdown:
		return stretch.Again
	case group.Retry:
		if p.retries++; p.retries <= group.MaxRetries {
			return stretch.Again
		}
	case group.NotApplicable:
		if _, copies := p.g.NextInternalMs(); copies || p.running() > 0 {
			return stretch.Parked
		}
	}
	if p.stuck {
		return stretch.Endless // it takes the step for progress (corrections §4)
	}
	return stretch.Hopeless
}

func (p *plain) Preemptions() int64 {
	if p.sglang {
		return p.retracted // its metrics do not count them (corrections §13)
	}
	n := 0
	for i := range p.notes {
		n += p.g.Preemptions(i)
	}
	return int64(n)
}

func (p *plain) Begin(nowMs float64) float64 {
	p.effect, p.stuck, p.committed, p.ended, p.failing = false, false, 0, p.ended[:0], false
	endMs, ok := p.g.Begin(nowMs)
	if !ok {
		return nowMs
	}
	p.nowMs = nowMs
	p.passes++
	p.tape.began(ServingPool, p.id, p.g, p, nowMs)
	return endMs
}

func (p *plain) Resume() float64              { return p.g.EndMs() }
func (p *plain) Ask() (timing.Query, bool)    { return p.g.Ask() }
func (p *plain) ShareAnswers(c *timing.Cache) { p.g.ShareAnswers(c) }

// complete ends the pass of a worker when its time has come.
func complete(w worker, endMs float64) {
	switch w := w.(type) {
	case *ranks.Group:
		w.Complete()
	case *plain:
		w.complete(endMs)
	}
}

// complete ends the pass in the group too. That waits until its time has come,
// because what arrives in between keeps the group from being drained, which the
// interval between prompts depends on (engine notes §3).
func (p *plain) complete(endMs float64) {
	if !p.g.Complete(endMs) {
		return
	}
	p.tape.completed(ServingPool, p.id, p.g, p, p.nowMs, endMs)
	for rank := range p.notes {
		out := p.g.Out(rank)
		p.stuck = p.stuck || out.Stuck
		p.effect = p.effect || out.Effect && (!out.Stuck || len(out.Outputs) > 0 || len(out.Pressure) > 0)
		p.take(rank, out, p.nowMs, endMs)
	}
	if p.effect || endMs > p.nowMs {
		p.retries = 0
	}
	if p.meter != nil {
		p.meter.passed(p.g, p.nowMs, endMs)
	}
}

// NextInternalMs is when a copy between a rank and host memory ends next, +Inf
// if none is under way or a pass is in flight.
func (p *plain) NextInternalMs() float64 {
	if ms, ok := p.g.NextInternalMs(); ok {
		return ms
	}
	return math.Inf(1)
}

func (p *plain) Internal(nowMs float64) bool { return p.g.Internal(nowMs) }
func (p *plain) Copied() bool                { return p.g.Copied() }
func (p *plain) Began() bool                 { return p.g.Began() }

// take notes what one rank said of a pass.
func (p *plain) take(rank int, out *engine.Out, nowMs, endMs float64) {
	p.committed += out.Forward.PrefillTokens
	if p.sglang {
		p.retracted += int64(len(out.Pressure))
	}
	for _, a := range out.Admissions {
		n := &p.notes[rank][a.Req]
		r := &n.result
		if r.Admits == 0 {
			r.AdmitMs, r.Reused, r.Host = nowMs, int32(a.Reused), int32(a.Host)
		}
		r.Admits++
		r.Most = max(r.Most, int32(a.Reused))
		n.admits = append(n.admits, Admission{nowMs, int32(a.Reused)})
	}
	for _, o := range out.Outputs {
		n := &p.notes[rank][o.Req]
		if o.HasToken {
			n.times = append(n.times, endMs)
			n.result.Emitted++
		}
		if o.Rejected {
			n.result.Fate = stretch.Rejected
		}
		if o.Completed {
			p.ended = append(p.ended, int32(o.Req)*int32(len(p.notes))+int32(rank))
		}
	}
	if p.speculates {
		p.judge(rank, out)
	}
}

// judge fails a request that keeps a speculating rank from ever giving anybody a
// token (stretch.Circling).
func (p *plain) judge(rank int, out *engine.Out) {
	if len(out.Outputs) > 0 {
		p.fruitless[rank] = 0
		return
	}
	if len(out.Pressure) == 0 {
		return
	}
	p.fruitless[rank]++
	if p.g.Running(rank) == 0 || p.fruitless[rank] == stretch.Circling {
		p.fruitless[rank] = 0
		p.failHead(rank)
	}
}

// FailHead ends what is hopeless on every rank: the head of the queue or, if
// the pass was a decode step of SGLang that found no room, the one that runs. A
// rank that holds blocks loaded for others gives some back instead.
func (p *plain) FailHead() {
	p.committed, p.ended, p.failing = 0, p.ended[:0], true
	for rank := range p.notes {
		if !p.g.Unload(rank) {
			p.failHead(rank)
		}
	}
}

func (p *plain) failHead(rank int) {
	if h, _, ok := p.g.FailHead(rank); ok {
		p.notes[rank][h].result.Fate = stretch.Failed
		if p.meter != nil {
			p.meter.told(rank, p.g.Metrics(rank))
		}
		p.ended = append(p.ended, int32(h)*int32(len(p.notes))+int32(rank))
	}
}

func (p *plain) turnOf(tag uint32) int32 { return int32(tag) }

func (p *plain) timesOf(rank int, o *engine.Output) []float64 { return p.notes[rank][o.Req].times }

func (p *plain) Result(id int32) stretch.Result { return p.note(id).result }

func (p *plain) Times(id int32, buf []float64) []float64 { return p.note(id).times }

func (p *plain) Readmission(id int32, i int) (atMs float64, reused int32) {
	a := p.note(id).admits[i]
	return a.AtMs, a.Reused
}
