package workload

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
)

// Applied makes a workload of Applied Compute conversations (replay notes
// §3.5): each is a session of turns that grow by what was said and what tools
// answered. There are no hash ids in such a trace, so blocks are numbered, and
// a share of a conversation's first blocks may be its group's.
type Applied struct {
	b         *Builder
	blockSize int64
	ratio     float64
	groups    uint32
	rows      uint64
	fresh     uint64   // blocks numbered so far
	ids       []uint64 // of the conversation
}

// NewApplied makes a builder. ratio, from 0 to 1, is the share of the blocks of
// a first prompt that all conversations of a group begin with; conversation i
// belongs to group i mod groups. With 0 groups nothing is shared.
func NewApplied(traceBlockSize int, ratio float64, groups uint32) *Applied {
	b := NewBuilder(traceBlockSize)
	b.NameSessions("applied_compute_agentic_session_")
	return &Applied{b: b, blockSize: int64(traceBlockSize), ratio: ratio, groups: groups}
}

// AppendSessionID appends the id of the session of a Fault.
func (a *Applied) AppendSessionID(dst []byte, i int32) []byte { return a.b.AppendSessionID(dst, i) }

// Add adds the conversation of a line; lines ascend.
func (a *Applied) Add(row *trace.AppliedRow, line int64) Fault {
	if f := checkApplied(row); f.Code != OK {
		f.Line = line
		return f
	}
	if f := a.b.Open(line, 0, false); f.Code != OK {
		return f
	}
	group := uint64(0)
	if a.groups > 0 {
		group = a.rows % uint64(a.groups)
	}
	a.rows++
	a.ids = a.ids[:0]
	length, delayMs := row.Prompt, 0.0
	if length > maxCount {
		return Fault{Code: InputTooLong, Field: trace.PromptLength, Line: line, Found: length, Limit: maxCount}
	}
	common := 0
	if a.ratio > 0 && a.groups > 0 {
		common = int(math.Round(float64(ceilDiv(length, a.blockSize)) * a.ratio))
	}
	for i := range row.Responses {
		if f := a.turn(length, int64(row.Responses[i]), delayMs, group, common); f.Code != OK {
			f.Line, f.Field = line, trace.Responses
			return f
		}
		if length += min(int64(row.Responses[i])+int64(row.ToolOutputs[i]), maxCount+1); length > maxCount {
			return Fault{Code: InputTooLong, Field: trace.ToolOutputs, Line: line, Found: length, Limit: maxCount}
		}
		delayMs = row.ToolLatenciesS[i] * 1000
	}
	f := a.turn(length, row.Final, delayMs, group, common)
	f.Line, f.Field = line, trace.FinalResponse
	if f.Code == OK {
		f = Fault{}
	}
	return f
}

// checkApplied checks what a row says by itself.
func checkApplied(row *trace.AppliedRow) Fault {
	if row.Prompt == 0 {
		return Fault{Code: InputZero, Field: trace.PromptLength}
	}
	for _, list := range []struct {
		field trace.Field
		n     int
	}{{trace.Responses, len(row.Responses)}, {trace.ToolOutputs, len(row.ToolOutputs)}, {trace.ToolLatencies, len(row.ToolLatenciesS)}} {
		if int64(list.n) != row.Turns {
			return Fault{Code: ListMismatch, Field: list.field, Found: int64(list.n), Limit: row.Turns}
		}
	}
	for _, s := range row.ToolLatenciesS {
		if s < 0 {
			return Fault{Code: NegativeDelay, Field: trace.ToolLatencies, Ms: s}
		}
		if math.IsInf(s*1000, 1) {
			return Fault{Code: DelayTooLong, Field: trace.ToolLatencies, Ms: s}
		}
	}
	for _, n := range row.ToolOutputs {
		if n > maxCount {
			return Fault{Code: InputTooLong, Field: trace.ToolOutputs, Found: int64(n), Limit: maxCount}
		}
	}
	return Fault{}
}

// turn adds a turn, with names for the blocks that are new.
func (a *Applied) turn(input, output int64, delayMs float64, group uint64, common int) Fault {
	if blocks := ceilDiv(input, a.blockSize); blocks > MaxIDs {
		return Fault{Code: TooManyIDs, Limit: MaxIDs}
	}
	for int64(len(a.ids))*a.blockSize < input {
		const shared = 0xA63E << 48 // the namespace of groups
		if i := len(a.ids); i < common {
			a.ids = append(a.ids, shared|group<<32|uint64(i))
		} else {
			a.fresh++
			a.ids = append(a.ids, a.fresh)
		}
	}
	return a.b.Turn(a.ids, input, output, delayMs)
}

// Finish returns the workload; it can only be run under a cap.
func (a *Applied) Finish() (*Workload, Fault) {
	return a.b.Finish(Options{Concurrency: true})
}
