package replay

import (
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/core/group"
	"github.com/dryserve/dryserve/core/stretch"
)

// Recording is what happened between two calls of TakeRecording, in the order
// of the clock. A run is recorded if Options.Record asks for it; what it does
// and every number of its report stay the same.
type Recording struct {
	Passes []Pass
	Events []Event
	Gaps   []Gap
}

// PoolID names a pool of workers. A worker's number is that within its pool.
type PoolID uint8

// ServingPool has the workers that give out tokens, alone or after others have
// computed the prompts. PrefillPool has these others.
const (
	ServingPool PoolID = iota
	PrefillPool
)

// Pass is one rank's part in a pass of its worker that took time or did
// something. The ranks of a worker stand one after the other, also those that
// had nothing to do. Times in ms.
type Pass struct {
	StartMs, EndMs float64 // of the worker's pass
	OwnEndMs       float64 // when this rank was done; then it waited for the others
	Worker, Rank   int32
	Pool           PoolID

	Prefills, PrefillTokens int32 // requests with prompt work, tokens computed for them
	Decodes                 int32 // requests with other work
	Tokens                  int32 // output; none from a PrefillPool, whose first tokens nobody sees

	// The rank after the pass, as its own metrics have it (engine notes §10.2).
	Running, Waiting           int32 // requests
	ActiveBlocks, CachedBlocks int32 // held by requests; cached and free to be evicted
}

// Duration is how long the rank computed, in ms.
func (p *Pass) Duration() float64 { return p.OwnEndMs - p.StartMs }

// EventKind tells what happened to a request.
type EventKind uint8

// A request arrives once and ends once. In between it is admitted, again after
// every preemption, and has a first token unless it asks for none. With two
// pools it is admitted in the PrefillPool first, held there once its prompt is
// computed, transferred, and activated where it will be decoded.
const (
	Arrived      EventKind = iota
	Admitted               // at the start of a pass
	Preempted              // at the start of a pass; it waits again
	Held                   // its prompt is computed and kept for the other pool
	Transferring           // the prompt is under way; left out where that takes no time
	Activated              // it can be decoded: it waits to be admitted there
	FirstToken             // at the end of a pass
	Ended
)

// Event is a step in the life of a request.
type Event struct {
	AtMs         float64
	Turn         int32 // index into the workload's Turns
	Worker, Rank int32 // -1: on none yet
	Pool         PoolID
	Kind         EventKind
	Status       TerminalStatus // Ended
	Tokens       int32          // Admitted: of the prompt, found in the cache; Transferring: under way; Ended: output
	HostTokens   int32          // Admitted: of Tokens, loaded from host memory
}

// Gap says that N tokens of a pass came Ms after the token before them, each
// of a request of its own or of one burst.
type Gap struct {
	AtMs, Ms float64
	N        int32
}

// TakeRecording moves what was recorded since the last call into r, whose
// memory is used for what comes. A host calls it after every Step, so that
// memory is bounded by the steps it takes. What r had before is lost.
func (s *Sim) TakeRecording(r *Recording) {
	if s.tape == nil {
		*r = Recording{Passes: r.Passes[:0], Events: r.Events[:0], Gaps: r.Gaps[:0]}
		return
	}
	mine := s.tape
	mine.Recording, *r = Recording{Passes: r.Passes[:0], Events: r.Events[:0], Gaps: r.Gaps[:0]}, mine.Recording
}

// recorder collects a Recording. Its methods do nothing on nil, which is what a
// run has that is not recorded.
type recorder struct{ Recording }

func newRecorder(o Options) *recorder {
	if !o.Record {
		return nil
	}
	return &recorder{}
}

// teller knows the requests that the ranks of a group speak of.
type teller interface {
	turnOf(tag uint32) int32
	// timesOf is when a request's tokens came, in ms, before those of o.
	timesOf(rank int, o *engine.Output) []float64
}

func (r *recorder) arrived(turn int32, atMs float64) {
	r.step(Event{AtMs: atMs, Turn: turn, Worker: -1, Rank: -1, Kind: Arrived})
}

func (r *recorder) ended(worker int32, res stretch.Result, atMs float64) {
	r.step(Event{AtMs: atMs, Turn: res.Turn, Worker: worker, Rank: res.Rank, Kind: Ended, Status: status(res.Fate), Tokens: res.Emitted})
}

// step notes a step of a request.
func (r *recorder) step(e Event) {
	if r != nil {
		r.Events = append(r.Events, e)
	}
}

// began notes who was admitted and who was preempted by a pass of a worker that
// begins.
func (r *recorder) began(pool PoolID, worker int32, g *group.Group, t teller, nowMs float64) {
	if r == nil {
		return
	}
	for rank := range g.Ranks() {
		out := g.Out(rank)
		e := Event{AtMs: nowMs, Worker: worker, Rank: int32(rank), Pool: pool, Kind: Preempted}
		for i := range out.Pressure {
			e.Turn = t.turnOf(out.Pressure[i].Tag)
			r.step(e)
		}
		e.Kind = Admitted
		for _, a := range out.Admissions {
			e.Turn, e.Tokens, e.HostTokens = t.turnOf(a.Tag), int32(a.Reused), int32(a.Host)
			r.step(e)
		}
	}
}

// completed notes a pass that ends, before anybody else takes its tokens.
func (r *recorder) completed(pool PoolID, worker int32, g *group.Group, t teller, startMs, endMs float64) {
	if r == nil || !g.Effect() && endMs == startMs {
		return
	}
	for rank := range g.Ranks() {
		out := g.Out(rank)
		m, f := &out.Metrics, &out.Forward
		p := Pass{
			StartMs: startMs, EndMs: endMs, OwnEndMs: g.RankEndMs(rank), Worker: worker, Rank: int32(rank), Pool: pool,
			Prefills: int32(f.Prefills), PrefillTokens: int32(f.PrefillTokens), Decodes: int32(f.Decodes),
			Running: int32(m.RunningRequests), Waiting: int32(m.WaitingRequests),
			ActiveBlocks: int32(m.ActiveBlocks), CachedBlocks: int32(m.InactiveBlocks),
		}
		if pool == ServingPool {
			p.Tokens = r.tokens(worker, rank, out, t, endMs)
		}
		r.Passes = append(r.Passes, p)
	}
}

// tokens notes what the output tokens of a rank's pass tell and counts them.
func (r *recorder) tokens(worker int32, rank int, out *engine.Out, t teller, endMs float64) (n int32) {
	first := len(r.Gaps)
	for i := range out.Outputs {
		o := &out.Outputs[i]
		if !o.HasToken {
			continue
		}
		n++
		times := t.timesOf(rank, o)
		lastMs := endMs // of a burst: all at once
		switch {
		case i > 0 && out.Outputs[i-1].HasToken && out.Outputs[i-1].Req == o.Req:
		case len(times) == 0:
			r.step(Event{AtMs: endMs, Turn: t.turnOf(o.Tag), Worker: worker, Rank: int32(rank), Kind: FirstToken})
			continue
		default:
			lastMs = times[len(times)-1]
		}
		ms := endMs - lastMs
		if k := len(r.Gaps); k > first && r.Gaps[k-1].Ms == ms {
			r.Gaps[k-1].N++
			continue
		}
		r.Gaps = append(r.Gaps, Gap{AtMs: endMs, Ms: ms, N: 1})
	}
	return n
}
