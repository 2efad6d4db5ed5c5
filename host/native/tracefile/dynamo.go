package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/dynamo"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// recordText words what is wrong with a record or with all of them.
func recordText(f dynamo.Fault) string {
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case dynamo.NoRequest:
		return `field "request" is missing, want the request that has ended`
	case dynamo.Blank:
		return `field "` + f.Field.Name() + `" is blank, want a name`
	case dynamo.NoOutput:
		return `field "request.output_tokens" is missing, want an integer from 0`
	case dynamo.OutputTooLong:
		return `field "request.output_tokens": found ` + n + ", want at most " + limit
	case dynamo.NegativeTotal:
		return `field "request.total_time_ms": found ` + strconv.FormatFloat(f.Ms, 'g', -1, 64) + ", want a number of milliseconds from 0"
	case dynamo.BlockSizeZero:
		return `field "request.replay.trace_block_size": found 0, want a positive integer`
	case dynamo.BlockSizeTooLarge:
		return `field "request.replay.trace_block_size": found ` + n + ", want at most " + limit
	case dynamo.MixedBlockSizes:
		return `field "request.replay.trace_block_size": found ` + n + ", but " + limit + " before; want one block size in all of the trace"
	case dynamo.MixedContexts:
		return `field "agent_context": found requests with and without one; want it on all requests of a trace or on none`
	case dynamo.DuplicateRequest:
		return `field "request.request_id": found ` + found(f.Name) + " again, want every request once"
	case dynamo.TooManyRequests:
		return "the trace has more than " + limit + " requests, which is the most"
	case dynamo.TooManyHashes:
		return "the prompts have more than " + limit + " hashes, which is the most"
	case dynamo.TooManyDeps:
		return "the trace has more than " + limit + " dependencies, which is the most"
	case dynamo.TooMuchText:
		return "the names have more than " + limit + " bytes together, which is the most"
	case dynamo.Plain:
		return plainRowText(f.Row)
	case dynamo.Graph:
		return nodeText(f.Graph)
	}
	return sessionText(f)
}

// sessionText words what is wrong with how sessions hang together.
func sessionText(f dynamo.Fault) string {
	name, other := found(f.Name), found(f.Other)
	switch f.Code {
	case dynamo.NoRequests:
		return "found no request_end record, want at least one"
	case dynamo.ParentConflict:
		return `field "agent_context.parent_session_id": found ` + other + " for session " + name + ", which has another parent; want one parent a session"
	case dynamo.UnknownParent:
		return `field "agent_context.parent_session_id": found ` + other + " for session " + name + ", but no request of it; want a session of the trace"
	case dynamo.UnknownMode:
		return `field "tool.claude.execution_mode": found ` + other + ` for tool call ` + name + `, want "blocking" or "background"`
	case dynamo.UnknownSource:
		return "tool call " + name + " names request " + other + ", which is not in the trace; want a request of the trace"
	case dynamo.UnknownRequest:
		return "request " + name + " waits for " + other + ", which is not in the trace; want a request of the trace"
	case dynamo.LaterRequest:
		return "request " + name + " waits for " + other + ", which began later; want a request that began before"
	case dynamo.WrongSession:
		return "tool call " + name + " names request " + other + " of another session than its own; want one of its session"
	case dynamo.WrongParent:
		return "tool call " + name + " calls session " + other + ", whose parent is another session than the call's; want them to agree"
	case dynamo.SeveralTools:
		return "tool call " + name + " calls session " + other + ", which another call has called; want one call a session"
	}
	return "request " + name + " began " + strconv.FormatFloat(-f.Ms, 'g', -1, 64) + " ms too early to have waited for " + other + "; want requests of a session one after the other"
}

// plainRowText words what is wrong with a request of a trace without sessions.
func plainRowText(f workload.Fault) string {
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case workload.InputOverCapacity:
		return `field "request.replay.input_length": found ` + n + ", want at most " + limit + ", which the input_sequence_hashes cover"
	case workload.InputZero:
		return `field "request.replay.input_length": found 0, want a positive integer`
	case workload.InputTooLong:
		return `field "request.replay.input_length": found ` + n + ", want at most " + limit
	case workload.StartTooLate:
		return "the request begins too late to be a number after the speed-up; want a greater speed-up"
	}
	return "the prompts have more than " + limit + " different hashes, which is the most"
}

// nodeText words what is wrong with a request of a trace with sessions.
func nodeText(f agentic.Fault) string {
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case agentic.Blank:
		if f.Field == trace.SessionID {
			return `field "agent_context.session_id" is blank, want a name`
		}
		return `field "request.model" is blank, want a name, or leave it out`
	case agentic.InputZero:
		return `field "request.replay.input_length": found 0, want a positive integer`
	case agentic.InputTooLong:
		return `field "request.replay.input_length": found ` + n + ", want at most " + limit
	case agentic.HashIDsMismatch:
		return `field "request.replay.input_sequence_hashes": found ` + n + " hashes, want exactly those that input_length needs, " + limit
	case agentic.BadTrigger:
		return `field "request.replay.dependencies.trigger": found "dispatch" of ` + found(f.Name) + ` with another relation than "spawn", want "completion"`
	}
	return graphText(f)
}
