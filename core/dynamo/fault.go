package dynamo

import (
	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Code says what is wrong with a record or with the trace. The zero Code is no
// fault.
type Code uint8

// The codes, with what the other fields of a Fault say.
const (
	OK Code = iota

	// Add: the record.
	NoRequest         // a request_end without a request
	Blank             // Field: a name of white space only
	NoOutput          // output_tokens is absent
	OutputTooLong     // Found: output_tokens, Limit: most
	NegativeTotal     // Ms: total_time_ms
	BlockSizeZero     // trace_block_size is 0
	BlockSizeTooLarge // Found: trace_block_size, Limit: most
	MixedBlockSizes   // Found: trace_block_size, Limit: that of the requests before
	MixedContexts     // a request has an agent_context and another one none
	DuplicateRequest  // Name: the request id
	TooManyRequests   // Limit: most requests
	TooManyHashes     // Limit: most hashes of all together
	TooManyDeps       // Limit: most dependencies of all together
	TooMuchText       // Limit: most bytes of all names together

	// Finish.
	NoRequests     // the trace has none
	ParentConflict // Name: a session, Other: a second parent of it
	UnknownParent  // Name: a session, Other: its parent, which has no requests
	UnknownMode    // Name: a tool call, Other: its execution_mode
	UnknownSource  // Name: a tool call, Other: the request it names
	UnknownRequest // Name: a request, Other: the one it waits for
	LaterRequest   // the same, which began later than the request
	WrongSession   // Name: a tool call, Other: a request it names that is in another session than it
	WrongParent    // Name: a tool call, Other: the session it called, whose parent is not the call's session
	SeveralTools   // Name: a tool call, Other: a session that another one called, too
	NegativeDelay  // Name: a request, Other: the one it would wait for, Ms: how long
	Plain          // Row: of a trace without sessions
	Graph          // Graph: of one with sessions
)

// Fault is the first thing wrong with a trace. Fields that its code does not
// name are 0.
type Fault struct {
	Code  Code
	At    Place // Line 0: nowhere
	Field trace.Field
	Found int64
	Limit int64
	Ms    float64
	Name  []byte
	Other []byte

	Row   workload.Fault
	Graph agentic.Fault
}
