package workload

import "github.com/dryserve/dryserve/core/trace"

// Code says what is wrong with a row or with the trace. The zero Code is no
// fault.
type Code uint8

// The codes, with what Found, Limit and Ms say.
const (
	OK Code = iota

	// Add: the row on Line.
	TooManyLines      // Limit: most lines
	TooManyRows       // Limit: most rows
	TooMuchText       // session ids; Limit: most bytes of all together
	TooManyIDs        // hash ids kept; Limit: most of all together
	TooManyOutputIDs  // output ids kept; Limit: most of all together
	InputOverCapacity // Found: input_length, Limit: tokens the hash_ids cover
	InputZero         // no prompt: input_length 0, or no length and no hash_ids
	InputTooLong      // Found: input tokens, Limit: most
	OutputTooLong     // Found: output_length, Limit: most
	ListMismatch      // Found: items in Field's list, Limit: what another field says
	OutputIDsMismatch // Found: output_token_ids given, Limit: output_length
	FirstTurnDelay    // Ms: the delay of a session's first row
	NegativeDelay     // Ms: the delay
	TimestampBackward // Ms: timestamp minus the session's timestamp before
	TimestampTooFar   // the same is infinite
	NoTimestampBefore // a timestamp but no delay, and no timestamp before

	// Finish: the session whose first row is on Line, or the turn Turn of it.
	Empty         // the trace has no rows
	NoStart       // arrivals by trace need a timestamp on the first row
	NegativeStart // with a concurrency cap; Ms: the start
	StartTooLate  // the start is infinite once normalised
	DelayTooLong  // the delay is infinite once divided by the speed-up
	TalkTooLong   // Found: tokens of the prompt with what was said before, Limit: most
)

// Fault is the first thing wrong with a trace. Fields that its code does not
// name are 0.
type Fault struct {
	Code    Code
	Field   trace.Field // of formats other than Mooncake
	Line    int64       // 0: no line
	Session int32       // index into Sessions; for AppendSessionID
	Turn    int32       // ordinal in the session
	Found   int64
	Limit   int64
	Ms      float64
}
