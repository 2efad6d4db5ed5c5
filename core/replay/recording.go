package replay

import (
	"github.com/dryserve/dryserve/core/engine"
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

// Pass is one rank's part in a pass of its worker that took time or did
// something. The ranks of a worker stand one after the other, also those that
// had nothing to do. Times in ms.
type Pass struct {
	StartMs, EndMs float64 // of the worker's pass
	OwnEndMs       float64 // when this rank was done; then it waited for the others
	Worker, Rank   int32

	Prefills, PrefillTokens int32 // requests with prompt work, tokens computed for them
	Decodes                 int32 // requests with other work
	Tokens                  int32 // output

	// The rank after the pass, as its own metrics have it (engine notes §10.2).
	Running, Waiting           int32 // requests
	ActiveBlocks, CachedBlocks int32 // held by requests; cached and free to be evicted
}

// Duration is how long the rank computed, in ms.
func (p *Pass) Duration() float64 { return p.OwnEndMs - p.StartMs }

// EventKind tells what happened to a request.
type EventKind uint8

// A request arrives once and ends once. In between it is admitted, again after
// every preemption, and has a first token unless it asks for none.
const (
	Arrived    EventKind = iota
	Admitted             // at the start of a pass
	Preempted            // at the start of a pass; it waits again
	FirstToken           // at the end of a pass
	Ended
)

// Event is a step in the life of a request.
type Event struct {
	AtMs         float64
	Turn         int32 // index into the workload's Turns
	Worker, Rank int32 // -1: on none yet
	Kind         EventKind
	Status       TerminalStatus // Ended
	Tokens       int32          // Admitted: of the prompt, found in the cache; Ended: output
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

func (r *recorder) arrived(turn int32, atMs float64) {
	if r != nil {
		r.Events = append(r.Events, Event{AtMs: atMs, Turn: turn, Worker: -1, Rank: -1, Kind: Arrived})
	}
}

func (r *recorder) ended(worker int32, res stretch.Result, atMs float64) {
	if r != nil {
		r.Events = append(r.Events, Event{
			AtMs: atMs, Turn: res.Turn, Worker: worker, Rank: res.Rank, Kind: Ended, Status: status(res.Fate), Tokens: res.Emitted,
		})
	}
}

// began notes who was admitted and who was preempted by a pass that begins.
func (r *recorder) began(p *plain, nowMs float64) {
	if r == nil {
		return
	}
	for rank := range p.notes {
		out := p.g.Out(rank)
		for _, x := range out.Pressure {
			r.Events = append(r.Events, Event{AtMs: nowMs, Turn: int32(x.Tag), Worker: p.id, Rank: int32(rank), Kind: Preempted})
		}
		for _, a := range out.Admissions {
			r.Events = append(r.Events, Event{
				AtMs: nowMs, Turn: int32(a.Tag), Worker: p.id, Rank: int32(rank), Kind: Admitted, Tokens: int32(a.Reused), HostTokens: int32(a.Host),
			})
		}
	}
}

// completed notes a pass that ends, before its tokens are noted elsewhere.
func (r *recorder) completed(p *plain, endMs float64) {
	if r == nil || !p.g.Effect() && endMs == p.nowMs {
		return
	}
	for rank := range p.notes {
		out := p.g.Out(rank)
		m, f := &out.Metrics, &out.Forward
		r.Passes = append(r.Passes, Pass{
			StartMs: p.nowMs, EndMs: endMs, OwnEndMs: p.g.RankEndMs(rank), Worker: p.id, Rank: int32(rank),
			Prefills: int32(f.Prefills), PrefillTokens: int32(f.PrefillTokens), Decodes: int32(f.Decodes), Tokens: r.tokens(p, rank, out, endMs),
			Running: int32(m.RunningRequests), Waiting: int32(m.WaitingRequests),
			ActiveBlocks: int32(m.ActiveBlocks), CachedBlocks: int32(m.InactiveBlocks),
		})
	}
}

// tokens notes what the output tokens of a rank's pass tell and counts them.
func (r *recorder) tokens(p *plain, rank int, out *engine.Out, endMs float64) (n int32) {
	first := len(r.Gaps)
	for i, o := range out.Outputs {
		if !o.HasToken {
			continue
		}
		n++
		times := p.notes[rank][o.Req].times
		lastMs := endMs // of a burst: all at once
		switch {
		case i > 0 && out.Outputs[i-1].HasToken && out.Outputs[i-1].Req == o.Req:
		case len(times) == 0:
			r.Events = append(r.Events, Event{AtMs: endMs, Turn: int32(o.Tag), Worker: p.id, Rank: int32(rank), Kind: FirstToken})
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
