package intake

import (
	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/dynamo"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
)

// Code says what is wrong with a trace as a whole, or with the options for it.
type Code uint8

// The codes, with what Found and Limit of a Finding say.
const (
	OK Code = iota

	// The options do not go with the format.
	NestedTimes    // only Weka traces have times in subagents
	NeedsCap       // sessions without start times need a cap
	NoLanes        // there are no plays for lanes
	NoCap          // requests that wait for each other do not wait for room under a cap
	NeedsModel     // somebody has to serve requests that name models of their own
	OtherBlockSize // Found: the trace's, Limit: the one that is asked for

	NeedsFile // the requests of a Weka trace are named after files, whose sizes count

	// The trace is at fault.
	BlockSizeZero     // block_size of the header is 0
	BlockSizeTooLarge // Found: block_size of the header, Limit: most
	FormatBlank       // source.format of the header
	DigestBlank       // source.digest of the header
	OnlyHeader        // there is a header and no request
	OnlyFailed        // there are only requests that have failed
	NoObject          // a file without an object
	ObjectTooLong     // Limit: most bytes of an object that is a file
)

// Kind says which fault of a Finding is set.
type Kind uint8

// The kinds.
const (
	Nothing  Kind = iota
	ByTrace       // Code
	ByLine        // Parse
	ByRow         // Row
	ByGraph       // Graph
	ByRecord      // Record
	ByObject      // Object
)

// Finding is what is wrong with a trace and what it takes to say so.
type Finding struct {
	Kind Kind
	File int32 // in question, from 0
	Line int64 // in question, 0: none

	Code         Code
	Found, Limit int64

	// A line by itself, or an object: Text is what there is of it from its
	// beginning, valid until the next call; Parse counts from there. In a file
	// of one object it begins with the line at fault.
	Parse        trace.Fault
	Text         []byte
	Outer, Inner int32 // of an object: entry at fault, -1: none
	Single       bool  // the file is one object

	Row         workload.Fault
	InputLength int64  // of the row, -1: it has none
	IDs         int    // hash ids of the row
	SessionID   []byte // of Row.Session, where its code names one

	Graph  agentic.Fault
	Record dynamo.Fault
	Object weka.Fault
}

// OK reports whether nothing is wrong; nil stands for that.
func (f *Finding) OK() bool { return f == nil || f.Kind == Nothing }

func byTrace(code Code) *Finding { return &Finding{Kind: ByTrace, Code: code} }

// byLine is a fault of a line by itself.
func byLine(f trace.Fault, line int64, text []byte) *Finding {
	return &Finding{Kind: ByLine, Parse: f, Line: line, Text: text, Outer: -1, Inner: -1}
}

// Names reports whether the code of a row's fault names a session.
func Names(f workload.Fault) bool {
	return f.Code >= workload.FirstTurnDelay && f.Code != workload.Empty
}
