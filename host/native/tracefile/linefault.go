package tracefile

import (
	"bytes"
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
)

// lineError words what is wrong with a line by itself.
func (l *loader) lineError(f trace.Fault, line []byte) error {
	return l.fail(l.split.Line(), l.lineText(f, line))
}

func (l *loader) lineText(f trace.Fault, line []byte) string {
	switch f.Code {
	case trace.LineTooLong:
		o := l.intake()
		return "the line is longer than " + strconv.Itoa(o.Longest()) + " bytes; want one JSON object per line"
	case trace.ByteOrderMark:
		return "the line begins with a byte order mark; want UTF-8 without one"
	case trace.NotObject:
		return "found " + found(line[f.Start:]) + ", want a JSON object"
	case trace.Missing:
		return field(f, line) + " is missing, want " + accepted(f.Field)
	case trace.Duplicate:
		return field(f, line) + " is given twice" + otherName(f.Field) + ", want it once"
	case trace.WrongType:
		return field(f, line) + ": found " + found(line[f.Start:f.End]) + ", want " + accepted(f.Field)
	case trace.WrongWord:
		return field(f, line) + ": found " + found(line[f.Start:f.End]) + ", want " + accepted(f.Field)
	case trace.OutOfRange:
		return field(f, line) + ": found " + found(line[f.Start:f.End]) + ", want " + inRange(f.Field)
	}
	column := "column " + strconv.Itoa(f.Start+1) // in bytes
	if f.Field != trace.NoField {
		return field(f, line) + " (" + column + "): " + syntax(f, line)
	}
	return column + ": " + syntax(f, line)
}

// syntax says which rule of JSON the line breaks.
func syntax(f trace.Fault, line []byte) string {
	switch f.Code {
	case trace.CutOff:
		return "the line ends too early, want a complete JSON object"
	case trace.Trailing:
		return "found " + found(line[f.Start:]) + " after the row, want one JSON object per line"
	case trace.WantKey:
		return "found " + token(line, f) + ", want a key in double quotes"
	case trace.WantColon:
		return "found " + token(line, f) + ", want ':' after the key"
	case trace.WantCommaOrBrace:
		return "found " + token(line, f) + ", want ',' or '}'"
	case trace.WantCommaOrClose:
		return "found " + token(line, f) + ", want ',' or ']'"
	case trace.BadEscape:
		return "found the escape " + found(line[f.Start:f.End]) + ", want one that JSON has"
	case trace.LoneSurrogate:
		return "found " + found(line[f.Start:f.End]) + ", half of a surrogate pair, want both halves"
	case trace.ControlByte:
		return "found the control byte " + found(line[f.Start:f.End]) + " in a string, want it escaped"
	case trace.BadUTF8:
		return "found the byte " + found(line[f.Start:f.End]) + ", want UTF-8"
	}
	want := "a JSON value" // WantValue
	if f.Field != trace.NoField {
		want = accepted(f.Field)
	} else if f.Code == trace.BadNumber {
		want = "a JSON number"
	}
	return "found " + token(line, f) + ", want " + want
}

// token is the word at the fault, up to where another could begin.
func token(line []byte, f trace.Fault) string {
	rest := line[f.Start:]
	if n := bytes.IndexAny(rest[1:], " \t,:]}[{\""); n >= 0 {
		rest = rest[:n+1]
	}
	return found(rest)
}

// field names the field as the line does, or by its first name if the line
// does not have it.
func field(f trace.Fault, line []byte) string {
	name := f.Field.Name()
	alias := f.Field.Alias()
	if alias != "" && bytes.HasPrefix(line[f.Key:], []byte(`"`+alias+`"`)) {
		name = alias
	}
	return `field "` + name + `"`
}

// otherName tells of the other name of a field that has two.
func otherName(f trace.Field) string {
	if f.Alias() == "" {
		return ""
	}
	return ` ("` + f.Name() + `" and "` + f.Alias() + `" are one field)`
}

// accepted says which values a field takes.
func accepted(f trace.Field) string {
	switch f {
	case trace.InputLength, trace.PromptLength, trace.BlockSize:
		return "a positive integer"
	case trace.OutputLength, trace.NumTurns, trace.FinalResponse, trace.PlayOrdinal:
		return "an integer from 0"
	case trace.Responses, trace.ToolOutputs:
		return "a list of integers from 0"
	case trace.ToolLatencies:
		return "a list of numbers of seconds from 0"
	case trace.RecordSchema:
		return `"dynamo.request.trace.v1"`
	case trace.EventType:
		return `"request_end", "tool_end", "tool_error", "request_payload" or "tool_start"`
	case trace.EventTime, trace.ReceivedTime, trace.ToolStarted, trace.ToolEnded:
		return "a whole number of milliseconds from 0"
	case trace.Wrapper, trace.AgentContext, trace.Request, trace.Replay, trace.Tool, trace.ToolClaude:
		return "an object"
	case trace.OutputTokens:
		return "an integer from 0"
	case trace.TotalTime:
		return "a number of milliseconds from 0"
	case trace.ReplayBlockSize, trace.ReplayInput:
		return "a positive integer"
	case trace.ReplayHashes:
		return "a list of integers from 0 to 18446744073709551615"
	case trace.ReplayDeps:
		return "a list of objects, each a dependency"
	case trace.Schema:
		return `"dynamo.agentic_mooncake"`
	case trace.Version:
		return "2"
	case trace.HashScope:
		return `"local"`
	case trace.Source:
		return "an object with a format and a digest"
	case trace.Dependencies:
		return "a list of objects, each a dependency"
	case trace.DependsTrigger, trace.ReplayDepTrigger:
		return `"dispatch" or "completion"`
	case trace.DependsRelation, trace.ReplayDepRelation:
		return `"sequence", "spawn", "join" or "replay_barrier"`
	case trace.NotBefore, trace.APITime, trace.DependsDelay:
		return "a number of milliseconds from 0"
	case trace.HashIDs:
		return "a list of integers from 0 to 18446744073709551615"
	case trace.OutputIDs:
		return "a list of integers from 0 to 4294967295"
	case trace.Timestamp:
		return "a number of milliseconds"
	case trace.Delay:
		return "a number of milliseconds from 0"
	case trace.Priority:
		return "an integer from -2147483648 to 2147483647"
	case trace.StrictPriority:
		return "an integer from 0 to 4294967295"
	}
	return acceptedEntry(f)
}

// acceptedEntry is accepted for the fields of Weka traces.
func acceptedEntry(f trace.Field) string {
	switch f {
	case trace.WekaModels:
		return "a list of strings"
	case trace.WekaRequests, trace.EntryRequests:
		return "a list of objects, each a request"
	case trace.EntryType:
		return `"n" or "s", or "subagent" where it is not in one`
	case trace.EntryStatus:
		return `"completed" or "async_launched"`
	case trace.EntryTime, trace.EntryAPITime:
		return "a number of seconds from 0"
	case trace.EntryInput:
		return "a positive integer"
	case trace.EntryOutput:
		return "an integer from 0"
	case trace.EntryHashes:
		return "a list of integers from 0 to 18446744073709551615"
	case trace.EntryDuration:
		return "a whole number of milliseconds from 0"
	}
	return "a string"
}

// inRange says which numbers a field takes, where one is out of range.
func inRange(f trace.Field) string {
	switch f {
	case trace.InputLength:
		return "a positive integer of at most 2147483647"
	case trace.OutputLength:
		return "an integer from 0 to 2147483647"
	case trace.Timestamp, trace.Delay, trace.NotBefore, trace.APITime, trace.DependsDelay, trace.ToolLatencies, trace.TotalTime,
		trace.EntryTime, trace.EntryAPITime:
		return "a number that fits a 64-bit float"
	}
	return accepted(f)
}
