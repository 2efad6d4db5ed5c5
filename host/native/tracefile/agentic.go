package tracefile

import (
	"bytes"
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// agents reads agentic Mooncake: a header, then requests.
type agents struct {
	*loader
	parse trace.Parser
	build *agentic.Builder // nil: the header has not come
	row   trace.AgenticRow
}

func (a *agents) line(text []byte) error {
	if a.build == nil {
		return a.header(text)
	}
	if f := a.parse.AgenticRow(text, &a.row); f.Code != trace.OK {
		return a.lineError(f, text)
	}
	if f := a.build.Add(&a.row, a.split.Line()); f.Code != agentic.OK {
		return a.graphError(f)
	}
	return nil
}

func (a *agents) header(text []byte) error {
	var h trace.AgenticHeader
	f := a.parse.AgenticHeader(text, &h)
	switch {
	case f.Code == trace.Missing && f.Field == trace.Schema && bytes.Contains(text, []byte(`"request_id"`)):
		return a.fail(a.split.Line(), `found a request, want the header {"schema":"dynamo.agentic_mooncake","version":2,"block_size":...,`+
			`"hash_id_scope":"local","source":{"format":...,"digest":...}}; without one this is version 1 of the format, `+
			`whose requests wait with "wait_for" and "delay" instead of "dependencies"`)
	case f.Code != trace.OK:
		return a.lineError(f, text)
	case h.BlockSize == 0:
		return a.fail(a.split.Line(), `field "block_size": found 0, want a positive integer`)
	case h.BlockSize > 1<<31-1:
		return a.fail(a.split.Line(), `field "block_size": found `+strconv.FormatInt(h.BlockSize, 10)+", want at most 2147483647")
	case trace.Blank(h.SourceFormat):
		return a.fail(a.split.Line(), `field "source.format" is blank, want a name`)
	case trace.Blank(h.SourceDigest):
		return a.fail(a.split.Line(), `field "source.digest" is blank, want a text`)
	}
	a.build = agentic.NewBuilder(h.BlockSize, string(h.SourceFormat), string(h.SourceDigest))
	a.info.Rows-- // the header is none
	return nil
}

func (a *agents) headed() bool { return a.build != nil }

func (a *agents) finish() (*workload.Workload, error) {
	if a.build == nil {
		return nil, a.buildError(workload.Fault{Code: workload.Empty}, nil)
	}
	w, f := a.build.Finish(a.opts.ArrivalSpeedup)
	if f.Code != agentic.OK {
		return nil, a.graphError(f)
	}
	return w, nil
}

// graphError words what is wrong with a request or with the graph.
func (l *loader) graphError(f agentic.Fault) error {
	if f.Code == agentic.Empty {
		return l.fail(0, "found a header only, want at least one request after it")
	}
	return l.fail(f.Line, graphText(f))
}

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
