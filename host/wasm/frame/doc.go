// Package frame spells what crosses the boundary of core.wasm: one msgpack
// map per call and per answer, both with a version key. It owns the names of
// all keys, the numbers of operations, statuses and errors, and the guest's
// small codec. It does not own what an operation does (host/wasm/guest) nor
// how frames travel (host/wasm/runner).
//
// A frame is flat: its values are numbers, booleans, text or columns, which are
// bin values of little-endian numbers. A list of Fields says which key stands
// for which variable; the guest's codec (Append, Decode) and the hosts', which
// are made with a msgpack library, both work from these lists.
//
// Invariants: what Append writes, Decode reads back to the last bit; Decode
// accepts nothing that is not one whole frame, never reads past it, and
// allocates no more than the frame is long. The frames are documented in
// docs/frames.md.
package frame

// ABI is the version of the exports and of all frames.
const ABI = 1

// VersionKey is the key whose value must be ABI.
const VersionKey = "v"

// Op is what a call asks for.
type Op uint32

// The operations.
const (
	Configure     Op = 1 + iota // describe the run
	Feed                        // text of the trace
	Step                        // simulate some events
	Progress                    // how far the run is
	Summarize                   // the numbers of the report
	Records                     // one row per request that has ended
	Unservable                  // requests that can never be served
	Turns                       // requests of the workload
	Sessions                    // sessions of the workload
	Synthesize                  // make the workload instead of feeding it
	Handoffs                    // besides of each row of Records, of two pools
	Routes                      // what the KV router said of each request
	Direct                      // the workers that requests go to, in mode direct
	TakeRecording               // what happened since it was called last
	Graph                       // what a graph of requests is as a whole
	Nodes                       // besides of each row of Turns, of a graph
	Plays                       // the plays of a graph
	Outcomes                    // what became of them
	Tick                        // what a scaling policy is told that is asked
	TakeSamples                 // samples of the run since it was called last
	Lifecycle                   // what happened to workers
)

// Status is what a simulation waits for.
type Status uint32

// The statuses.
const (
	NoSimulation Status = iota // the handle is not open
	Opened                     // Configure is next
	Idle                       // more text has to be fed before anything can happen
	Running                    // Step goes on
	NeedTiming                 // the next Step has to say how long something takes
	NeedScaling                // the next Step has to say how the fleet changes
	Done                       // nothing is left to happen
	Failed                     // the run has ended early or its trace is at fault
)

// Error says why a call was refused. Its frame has the key "error" and the
// fields named here.
type Error uint8

// The errors.
const (
	OK            Error = iota
	BadFrame            // not one msgpack map of flat values; at: the offset
	WrongVersion        // found: the version, 0 if there is none
	UnknownKey          // name: a key the operation does not have
	WrongType           // name: a key whose value is of another type
	NotInRange          // name: a key whose value is a number out of range
	MissingKey          // name: a key the operation needs
	TwiceKey            // name: a key that stands twice in the frame
	UnknownOp           // found: the operation
	UnknownHandle       // found: the handle
	WrongState          // found: the Status, in which the operation has no place
	BadConfig           // code, field: core/config's Code and Field
	BadLine             // code, field, key, start, end: core/trace's Fault; line, text, outer, inner, single, lines, rows
	BadRow              // code, field, session, turn, found, limit, ms: core/workload's Fault; line, input_length, ids, session_id, lines, rows
	BadRouter           // code, field: core/config's RouterCode and RouterField
	BadPolicy           // code: core/config's PolicyCode; class, bucket: which one; name
	BadTrace            // code, found, limit: core/intake's Code; line, lines, rows
	BadGraph            // code, field, found, limit, ms, name, other: core/agentic's Fault; line, lines, rows
	BadRecord           // code, field, found, limit, ms, name, other, row, graph: core/dynamo's Fault; line, lines, rows
	BadObject           // code, field, found, limit, found64, limit64, name, outer, inner, graph: core/weka's Fault; line, lines, rows
)

// Fault is why a frame cannot be read.
type Fault struct {
	Code  Error
	Name  string // key at fault
	At    int    // BadFrame: offset of the byte that does not fit
	Found int64  // WrongVersion, UnknownOp, UnknownHandle, WrongState
}
