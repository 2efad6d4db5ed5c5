// Package agentic makes graphs of requests that wait for each other out of the
// rows of an agentic Mooncake trace, and gives them the reference's digest.
//
// It owns what rows mean together: names, dependencies and plays, their order
// and checks, and the times' normalisation. Other formats that know which
// request waits for which are turned into such rows first. It does not read
// bytes (core/trace) and does not run anything (core/replay). Source: replay
// notes §3.4.
//
// Invariants of a finished graph: no request waits for itself, however
// indirectly; dependencies stay within a play; every time is finite and not
// negative.
package agentic

import (
	"math"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// maxCount bounds everything an index names.
const maxCount = math.MaxInt32

// row is one request as it came.
type row struct {
	request, play, session, model int32 // indices into texts
	policy                        int32 // likewise, -1: none
	line                          int32
	input, output                 int32
	ids, numIDs                   int32 // into the ids
	out, numOut                   int32 // into the output ids; numOut -1: none
	deps, numDeps                 int32
	priority                      int32
	strict                        uint32
	ordinal                       int64 // -1: none
	notBeforeMs, apiMs            float64
	hasAPI                        bool
}

// waits is a dependency as it came, on a request by its name.
type waits struct {
	request  int32 // index into texts
	trigger  trace.Trigger
	relation trace.Relation
	delayMs  float64
}

// Builder makes a graph from rows. After a fault it must not be used any more.
type Builder struct {
	blockSize int64
	source    [2]string // format, digest
	texts     workload.Texts
	node      []int32 // by text: row of the request of that name, -1: none
	rows      []row
	ids       []uint64
	out       []uint32
	deps      []waits
}

// NewBuilder makes a builder for rows whose hash ids cover blockSize > 0
// tokens each. Format and digest say where the graph comes from.
func NewBuilder(blockSize int64, format, digest string) *Builder {
	return &Builder{blockSize: blockSize, source: [2]string{format, digest}}
}

// Add adds the row of a line; lines ascend.
func (b *Builder) Add(r *trace.AgenticRow, line int64) Fault {
	f := b.check(r, line)
	if f.Code == OK {
		f = b.keep(r, line)
	}
	if f.Code != OK {
		f.Line = line
	}
	return f
}

// check checks what a row says by itself.
func (b *Builder) check(r *trace.AgenticRow, line int64) Fault {
	for _, name := range []struct {
		text  []byte
		field trace.Field
	}{{r.RequestID, trace.RequestID}, {r.PlayID, trace.PlayID}, {r.SessionID, trace.SessionID}, {r.Model, trace.Model}} {
		if trace.Blank(name.text) {
			return Fault{Code: Blank, Field: name.field}
		}
	}
	need := r.InputLength / b.blockSize
	if need*b.blockSize < r.InputLength {
		need++
	}
	switch n := int64(len(r.HashIDs)); {
	case line > maxCount:
		return Fault{Code: TooManyLines, Limit: maxCount}
	case len(b.rows) == maxCount:
		return Fault{Code: TooManyRows, Limit: maxCount}
	case r.InputLength == 0:
		return Fault{Code: InputZero}
	case r.InputLength > maxCount:
		return Fault{Code: InputTooLong, Found: r.InputLength, Limit: maxCount}
	case n != need:
		return Fault{Code: HashIDsMismatch, Found: n, Limit: need}
	case len(b.ids)+len(r.HashIDs) > workload.MaxIDs:
		return Fault{Code: TooManyIDs, Limit: workload.MaxIDs}
	case r.OutputLength > maxCount:
		return Fault{Code: OutputTooLong, Found: r.OutputLength, Limit: maxCount}
	case r.HasOutputIDs && int64(len(r.OutputIDs)) != r.OutputLength:
		return Fault{Code: OutputIDsMismatch, Found: int64(len(r.OutputIDs)), Limit: r.OutputLength}
	case len(b.out)+len(r.OutputIDs) > maxCount:
		return Fault{Code: TooManyOutputIDs, Limit: maxCount}
	case len(b.deps)+len(r.Dependencies) > maxCount:
		return Fault{Code: TooManyDeps, Limit: maxCount}
	case r.NotBeforeMs < 0:
		return Fault{Code: NegativeMs, Field: trace.NotBefore, Ms: r.NotBeforeMs}
	case r.HasAPITime && r.APITimeMs < 0:
		return Fault{Code: NegativeMs, Field: trace.APITime, Ms: r.APITimeMs}
	}
	for _, d := range r.Dependencies {
		switch {
		case trace.Blank(d.RequestID):
			return Fault{Code: Blank, Field: trace.DependsOn}
		case d.DelayMs < 0:
			return Fault{Code: NegativeMs, Field: trace.DependsDelay, Ms: d.DelayMs}
		case d.Trigger == trace.Dispatch && d.Relation != trace.Spawn:
			return Fault{Code: BadTrigger, Name: d.RequestID}
		}
	}
	return Fault{}
}

// keep stores a checked row.
func (b *Builder) keep(r *trace.AgenticRow, line int64) Fault {
	k := row{
		policy: -1, line: int32(line), input: int32(r.InputLength), output: int32(r.OutputLength), ordinal: r.PlayOrdinal,
		ids: int32(len(b.ids)), numIDs: int32(len(r.HashIDs)), out: int32(len(b.out)), numOut: -1,
		deps: int32(len(b.deps)), numDeps: int32(len(r.Dependencies)), priority: r.Priority, strict: r.StrictPriority,
		notBeforeMs: r.NotBeforeMs, apiMs: r.APITimeMs, hasAPI: r.HasAPITime,
	}
	for _, name := range []struct {
		text []byte
		to   *int32
	}{{r.RequestID, &k.request}, {r.PlayID, &k.play}, {r.SessionID, &k.session}, {r.Model, &k.model}, {r.PolicyClass, &k.policy}} {
		if name.text == nil {
			continue
		}
		if *name.to = b.name(name.text); *name.to < 0 {
			return Fault{Code: TooMuchText, Limit: math.MaxUint32}
		}
	}
	if b.node[k.request] >= 0 {
		return Fault{Code: DuplicateRequest, Name: r.RequestID}
	}
	b.node[k.request] = int32(len(b.rows))
	if r.HasOutputIDs {
		k.numOut = int32(len(r.OutputIDs))
		b.out = append(b.out, r.OutputIDs...)
	}
	b.ids = append(b.ids, r.HashIDs...)
	for _, d := range r.Dependencies {
		request := b.name(d.RequestID)
		if request < 0 {
			return Fault{Code: TooMuchText, Limit: math.MaxUint32}
		}
		b.deps = append(b.deps, waits{request, d.Trigger, d.Relation, d.DelayMs})
	}
	b.rows = append(b.rows, k)
	return Fault{}
}

// name is the number of a text, -1 if there is no room for it.
func (b *Builder) name(text []byte) int32 {
	i := b.texts.Add(text)
	if int(i) == len(b.node) {
		b.node = append(b.node, -1)
	}
	return i
}
