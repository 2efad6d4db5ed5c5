package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
)

// graphText words what is wrong with a request or with the graph.
func graphText(f agentic.Fault) string {
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	name, other := found(f.Name), found(f.Other)
	switch f.Code {
	case agentic.TooManyLines:
		return "the trace has more than " + limit + " lines, which is the most"
	case agentic.TooManyRows:
		return "the trace has more than " + limit + " requests, which is the most"
	case agentic.TooManyIDs:
		return "the prompts have more than " + limit + " hash ids, which is the most"
	case agentic.TooManyOutputIDs:
		return "the trace has more than " + limit + " output token ids, which is the most"
	case agentic.TooManyDeps:
		return "the trace has more than " + limit + " dependencies, which is the most"
	case agentic.TooMuchText:
		return "the names have more than " + limit + " bytes together, which is the most"
	case agentic.Blank:
		return `field "` + f.Field.Name() + `" is blank, want a name`
	case agentic.DuplicateRequest:
		return `field "request_id": found ` + name + " again, want every request once"
	case agentic.InputZero:
		return `field "input_length": found 0, want a positive integer`
	case agentic.InputTooLong:
		return `field "input_length": found ` + n + ", want at most " + limit
	case agentic.OutputTooLong:
		return `field "output_length": found ` + n + ", want at most " + limit
	case agentic.OutputIDsMismatch:
		return `field "output_token_ids": found ` + n + " ids, want as many as output_length says, " + limit
	case agentic.HashIDsMismatch:
		return `field "hash_ids": found ` + n + " ids, want exactly those that input_length needs, " + limit
	case agentic.NegativeMs:
		return `field "` + f.Field.Name() + `": found ` + strconv.FormatFloat(f.Ms, 'g', -1, 64) + ", want a number of milliseconds from 0"
	case agentic.BadTrigger:
		return `field "dependencies.trigger": found "dispatch" of ` + name + ` with another relation than "spawn", want "completion"`
	}
	return linkText(f, n, limit, name, other)
}

// linkText words what is wrong with how requests hang together.
func linkText(f agentic.Fault, n, limit, name, other string) string {
	switch f.Code {
	case agentic.UnknownRequest:
		return "request " + name + " waits for " + other + ", which is not in the trace; want a request of the trace"
	case agentic.SelfDependency:
		return "request " + name + " waits for itself; want another request"
	case agentic.OtherPlay:
		return "request " + name + " waits for " + other + ", which is in another play; want a request of the same play"
	case agentic.MixedOrdinals:
		return `field "source_play_ordinal": the requests of play ` + name + " differ; want one number for all of them, or none"
	case agentic.MissingOrdinals:
		return `field "source_play_ordinal": play ` + name + " has none, but others do; want one for every play or for none"
	case agentic.OrdinalGap:
		return `field "source_play_ordinal": found ` + n + " where " + limit + " comes next; want the numbers from 0, each once"
	case agentic.Cycle:
		return n + " requests wait for each other for ever, " + name + " among them; want dependencies without a cycle"
	}
	return "a time of the request is too late to be a number once the trace's first is 0 and the speed-up is applied; want earlier times or a greater speed-up"
}
