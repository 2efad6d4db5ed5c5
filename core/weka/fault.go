package weka

import (
	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/trace"
)

// Code says what is wrong with an object or with the trace. The zero Code is
// no fault.
type Code uint8

// The codes, with what the other fields of a Fault say.
const (
	OK Code = iota

	// Add: the object, or one of its entries.
	Blank             // Field: a name of white space only
	BlockSizeZero     // block_size is 0
	BlockSizeTooLarge // Found: block_size, Limit: most
	MixedBlockSizes   // Found: block_size, Limit: that of the objects before
	BadTime           // Field, Found64: a time in seconds that is negative or above Limit64
	UndeclaredModel   // Name: a request's model, which models does not have
	InputZero         // in is 0
	TooLong           // Field, Found: in or out, Limit: most
	NegativeDuration  // Found: duration_ms
	IdleSubagent      // Name: a subagent that was waited for but has no requests
	Orphan            // Name: a subagent before the first request that could have called it
	NoParents         // there are no requests but those of subagents
	TooManyRequests   // Limit: most requests
	TooManyHashes     // Limit: most hashes of all together
	TooMuchText       // Limit: most bytes of all names together

	// Finish.
	NoObjects      // there are none
	BeforeSubagent // Found64: when a nested request begins, in seconds, Limit64: when its subagent does, which is later
	TooLate        // Found64: a nested request's time in seconds that is too great
	Graph          // Graph: of all requests
)

// Fault is the first thing wrong with a trace. Fields that its code does not
// name are 0.
type Fault struct {
	Code         Code
	At           Place // of the object; Line 0: its file is one object, or nowhere
	Outer, Inner int32 // indices of the entry, -1: none
	Field        trace.Field
	Found        int64
	Limit        int64
	Found64      float64
	Limit64      float64
	Name         []byte

	Graph agentic.Fault
}
