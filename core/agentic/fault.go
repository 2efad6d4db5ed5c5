package agentic

import "github.com/dryserve/dryserve/core/trace"

// Code says what is wrong with a request or with the graph. The zero Code is
// no fault.
type Code uint8

// The codes, with what the other fields of a Fault say.
const (
	OK Code = iota

	// Add: the row on Line.
	TooManyLines      // Limit: most lines
	TooManyRows       // Limit: most requests
	TooManyIDs        // Limit: most hash ids of all together
	TooManyOutputIDs  // Limit: most output ids of all together
	TooManyDeps       // Limit: most dependencies of all together
	TooMuchText       // Limit: most bytes of all names together
	Blank             // Field: a name of white space only
	DuplicateRequest  // Name: the request id, Other: -
	InputZero         // input_length is 0
	InputTooLong      // Found: input_length, Limit: most
	OutputTooLong     // Found: output_length, Limit: most
	OutputIDsMismatch // Found: output_token_ids given, Limit: output_length
	HashIDsMismatch   // Found: hash_ids given, Limit: as many as input_length needs
	NegativeMs        // Field, Ms: a time below 0
	BadTrigger        // Name: a request waited for at its dispatch other than to spawn

	// Finish: the request on Line.
	Empty           // there are no requests
	UnknownRequest  // Name waits for Other, which is not there
	SelfDependency  // Name waits for itself
	OtherPlay       // Name waits for Other, which is in another play
	MixedOrdinals   // Name: a play whose requests differ in source_play_ordinal
	MissingOrdinals // Name: a play without source_play_ordinal, while others have one
	OrdinalGap      // Found: the ordinal in place Limit, which should be the place
	Cycle           // Found: how many requests wait for ever, Name: the first of them
	TimeTooLate     // a time is infinite once normalised
)

// Fault is the first thing wrong with a graph. Fields that its code does not
// name are 0.
type Fault struct {
	Code  Code
	Line  int64 // 0: no line
	Field trace.Field
	Found int64
	Limit int64
	Ms    float64
	Name  []byte
	Other []byte
}
