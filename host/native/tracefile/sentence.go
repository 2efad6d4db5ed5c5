package tracefile

import (
	"bytes"
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Sentence words what another reader has found wrong with a trace of the format
// that o names, out of the files with these names; lines is how many it has read.
func Sentence(f *intake.Finding, o Options, lines int64, names ...string) error {
	l := &loader{opts: o, format: o.Format, names: names, info: Info{Lines: lines}}
	l.src = &source{name: names[min(int(f.File), len(names)-1)]}
	return l.sentence(f)
}

// sentence words what is wrong with the trace.
func (l *loader) sentence(f *intake.Finding) error {
	file := l.names[min(int(f.File), len(l.names)-1)]
	id := func(dst []byte, _ int32) []byte { return append(dst, f.SessionID...) }
	text := ""
	switch f.Kind {
	case intake.ByTrace:
		return l.traceError(f, file)
	case intake.ByLine:
		text = l.findingText(f)
	case intake.ByRow:
		if f.Row.Code == workload.Empty {
			return l.buildError(f.Row, id)
		}
		text = l.rowText(f, id)
	case intake.ByGraph:
		text = "found a header only, want at least one request after it"
		if f.Graph.Code != agentic.Empty {
			text = graphText(f.Graph)
		}
	case intake.ByRecord:
		text = recordText(f.Record)
	default:
		text = entry(f.Outer, f.Inner) + objectText(f.Object)
	}
	return &Error{File: file, Line: f.Line, Text: text}
}

// traceError words what is wrong with the trace as a whole, or with the
// options for it.
func (l *loader) traceError(f *intake.Finding, file string) error {
	n, limit := strconv.FormatInt(f.Found, 10), strconv.FormatInt(f.Limit, 10)
	text := ""
	switch f.Code {
	case intake.OtherBlockSize:
		text = "the requests were traced with a block size of " + n + " tokens, but " + limit +
			" is asked for (--trace-block-size); want the same, or leave it out"
	case intake.BlockSizeZero:
		text = `field "block_size": found 0, want a positive integer`
	case intake.BlockSizeTooLarge:
		text = `field "block_size": found ` + n + ", want at most " + limit
	case intake.FormatBlank:
		text = `field "source.format" is blank, want a name`
	case intake.DigestBlank:
		text = `field "source.digest" is blank, want a text`
	case intake.OnlyHeader:
		text = "found a header only, want at least one request after it"
	case intake.OnlyFailed:
		text = "found only requests without tokens, as those that failed have, want at least one with tokens"
	case intake.NoObject:
		text = "found no object, want at least one"
	case intake.ObjectTooLong:
		text = "the object is longer than " + limit + " bytes; want smaller ones, as lines of a .jsonl file or as files of a directory"
	default:
		return l.unfitError(f.Code)
	}
	return &Error{File: file, Line: f.Line, Text: text}
}

// findingText words what is wrong with a line, or an object, by itself.
func (l *loader) findingText(f *intake.Finding) string {
	p := f.Parse
	switch l.format {
	case Azure, BurstGPT:
		return l.cellText(p, f.Text)
	case AgenticMooncake:
		if p.Code == trace.Missing && p.Field == trace.Schema && bytes.Contains(f.Text, []byte(`"request_id"`)) {
			return `found a request, want the header {"schema":"dynamo.agentic_mooncake","version":2,"block_size":...,` +
				`"hash_id_scope":"local","source":{"format":...,"digest":...}}; without one this is version 1 of the format, ` +
				`whose requests wait with "wait_for" and "delay" instead of "dependencies"`
		}
	}
	where := entry(f.Outer, f.Inner)
	if p.Code == trace.NotObject || p.Code == trace.ByteOrderMark || p.Code == trace.Trailing {
		where = ""
	}
	switch {
	case f.Single && p.Code == trace.Trailing:
		return "found " + found(f.Text[p.Start:]) + " after the object, want one object in a file whose name ends in .json; a file of several, a line for each, ends in .jsonl"
	case f.Single && p.Code == trace.CutOff:
		return where + "the file ends too early, want a complete JSON object"
	}
	return where + l.lineText(p, f.Text)
}

// rowText words what is wrong with a row among the others.
func (l *loader) rowText(f *intake.Finding, id sessionID) string {
	text := ""
	switch l.format {
	case AppliedCompute:
		text = talkText(f.Row)
	case Azure, BurstGPT:
		text = l.requestText(f.Row)
	default:
		text = l.mooncakeText(f)
	}
	if text == "" {
		text = l.buildText(f.Row, id)
	}
	return text
}
