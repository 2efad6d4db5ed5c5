// Package workload turns trace rows into sessions of turns.
//
// It owns what rows mean together: which rows are turns of one session, when a
// session starts, how long a turn waits for the one before it, the times'
// normalisation, and the checks of a row against the trace block size. It does
// not read bytes (core/trace does) and does not run anything (core/replay
// does). Rules: replay notes §3.1 and corrections §6.
//
// Invariants of a finished Workload:
//   - Turns and Sessions are in file order; a session's turns are linked from
//     First through Next and counted by Index.
//   - every start and delay is finite and not negative.
//   - a turn's leaf covers at least ceil(Input/block size) ids.
package workload

import (
	"strconv"

	"github.com/dryserve/dryserve/core/prefix"
)

// Turn is one request of a session.
type Turn struct {
	Leaf    int32   // prompt: leaf of Prompts covering the row's hash ids
	IDs     int32   // their number, at least ceil(Input/TraceBlockSize) but with Spoken
	Input   int32   // prompt tokens, > 0
	Output  int32   // requested output tokens, >= 0
	Session int32   // index into Sessions
	Index   int32   // ordinal in its session, from 0
	Next    int32   // next turn of the session, -1: last
	Planned int32   // index into PlannedOff, -1: no output ids
	DelayMs float64 // think time after the previous turn's completion
}

// Class is what a router may order a turn by.
type Class struct {
	Priority int32
	Strict   uint32
	Policy   int32 // index into Policies, -1: none
}

var noClass = Class{Policy: -1}

// Session is a chain of turns; only the first has a time of its own.
type Session struct {
	StartMs  float64 // 0 without HasStart
	HasStart bool
	First    int32
	Line     int32 // line of the trace with the first turn, 0: not from a trace
	name     int32 // 1 + index into the ids, 0: named after Line, or its place
}

// Workload is a whole trace, in file order.
type Workload struct {
	Turns          []Turn
	Sessions       []Session
	Prompts        *prefix.Tree
	TraceBlockSize int // tokens per hash id, 0: the run's configuration says it
	BlockSizes     BlockSizes

	// Unlined: Session.Line is no line of the trace but the place in its order.
	Unlined bool

	Graph *Graph // nil: turns follow each other in their sessions only

	// Drawn: every turn is a request by itself without a name, and prompts are
	// not spelt by their hash ids but drawn (AppendDrawn).
	Drawn bool

	// Delta: a turn's input is only what is new; the prompt is all that was said
	// before in its session, then that (replay notes §3.2).
	Delta bool

	// Spoken: ids are engine blocks, IDs of them a turn, and go on through what
	// the turn will generate where a later one repeats it. Package replay makes
	// such a workload of one with Delta while it runs.
	Spoken bool

	Planned    []uint32 // output ids of all turns that have them
	PlannedOff []int32  // turn i's ids are Planned[PlannedOff[i]:PlannedOff[i+1]]
	Classes    []Class  // by turn; nil: all turns have priority 0 and no policy
	Policies   Texts    // names of policy classes
	Targets    []int32  // by turn: the worker that a caller names; nil: none

	ids    Texts  // the given session ids
	prefix string // of the ids of other sessions; "": request_, and such ids are not shown where they say nothing
}

// AppendSessionID appends session i's id: the trace's session_id, or
// request_<line> where the row had none. Formats without ids have a prefix of
// their own; what is not from a trace is counted from 0.
func (w *Workload) AppendSessionID(dst []byte, i int32) []byte {
	s := w.Sessions[i]
	if s.name > 0 {
		return append(dst, w.ids.At(s.name-1)...)
	}
	number := int64(s.Line)
	if number == 0 {
		number = int64(i)
	}
	begin := w.prefix
	if begin == "" {
		begin = linePrefix
	}
	return strconv.AppendInt(append(dst, begin...), number, 10)
}

// SessionID is session i's id; see AppendSessionID. It must not be changed.
func (w *Workload) SessionID(i int32) []byte {
	if s := w.Sessions[i]; s.name > 0 {
		return w.ids.At(s.name - 1)
	}
	return w.AppendSessionID(nil, i)
}

// Named reports whether session i has an id of its own; else it is named after
// its line or place.
func (w *Workload) Named(i int32) bool { return w.Sessions[i].name > 0 }

// NamesSessions reports whether the reference's records name the sessions of
// a run: they do where its driver of sessions runs (replay notes §5).
func (w *Workload) NamesSessions(capped bool) bool {
	return !w.Drawn && (w.Graph != nil || capped || w.prefix != "" || len(w.Sessions) != len(w.Turns))
}

// Class is what a router may order a turn by.
func (w *Workload) Class(turn int32) Class {
	if w.Classes == nil {
		return noClass
	}
	return w.Classes[turn]
}
