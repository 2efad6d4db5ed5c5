// Package workload turns trace rows into sessions of turns.
package workload

import "github.com/dryserve/dryserve/core/prefix"

// Turn is one request of a session.
type Turn struct {
	Leaf    int32   // prompt: leaf of Prompts covering ceil(Input/TraceBlockSize) ids
	Input   int32   // prompt tokens, > 0
	Output  int32   // requested output tokens, >= 0
	Session int32   // index into Sessions
	Index   int32   // ordinal in its session, from 0
	Next    int32   // next turn of the session, -1: last
	Planned int32   // index into PlannedOff, -1: no output ids
	DelayMs float64 // think time after the previous turn's completion
}

// Session is a chain of turns; only the first has a time of its own.
type Session struct {
	StartMs  float64
	HasStart bool
	First    int32
}

// Workload is a whole trace, in file order.
type Workload struct {
	Turns      []Turn
	Sessions   []Session
	Prompts    *prefix.Tree
	Planned    []uint32 // output ids of all turns that have them
	PlannedOff []int32  // turn i's ids are Planned[PlannedOff[i]:PlannedOff[i+1]]
}
