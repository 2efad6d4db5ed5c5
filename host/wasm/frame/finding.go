package frame

import (
	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/intake"
)

// TraceFault is what is wrong with a trace, as BadLine, BadRow, BadTrace,
// BadGraph, BadRecord and BadObject say it.
type TraceFault struct {
	intake.Finding
	Lines, Rows, Failed int64         // read until then
	Format              intake.Format // of the trace, Auto while not enough has come to tell
}

// findings are the errors by the kind of a finding.
var findings = [...]Error{
	intake.ByTrace: BadTrace, intake.ByLine: BadLine, intake.ByRow: BadRow, intake.ByGraph: BadGraph, intake.ByRecord: BadRecord, intake.ByObject: BadObject,
}

// KindOf is the kind of finding that an error is, intake.Nothing if it is none.
func KindOf(e Error) intake.Kind {
	for kind, code := range findings {
		if code == e && e != OK {
			return intake.Kind(kind)
		}
	}
	return intake.Nothing
}

// Fields lists what the error has, its code first.
func (t *TraceFault) Fields() []Field {
	code := findings[t.Kind]
	fields := []Field{
		{Name: "error", Var: (*uint8)(&code), Need: true}, {Name: "lines", Var: &t.Lines}, {Name: "rows", Var: &t.Rows}, {Name: "failed", Var: &t.Failed},
		{Name: FileKey, Var: &t.File}, {Name: "line", Var: &t.Line}, {Name: "format", Var: (*uint8)(&t.Format)},
	}
	p, r, d, o := &t.Parse, &t.Row, &t.Record, &t.Object
	switch t.Kind {
	case intake.ByLine:
		return append(fields, Field{Name: "code", Var: (*uint8)(&p.Code)}, Field{Name: "field", Var: (*uint8)(&p.Field)},
			Field{Name: "key", Var: &p.Key}, Field{Name: "start", Var: &p.Start}, Field{Name: "end", Var: &p.End}, Field{Name: "text", Var: &t.Text},
			Field{Name: "outer", Var: &t.Outer}, Field{Name: "inner", Var: &t.Inner}, Field{Name: "single", Var: &t.Single})
	case intake.ByRow:
		return append(fields, Field{Name: "code", Var: (*uint8)(&r.Code)}, Field{Name: "field", Var: (*uint8)(&r.Field)},
			Field{Name: "session", Var: &r.Session}, Field{Name: "turn", Var: &r.Turn},
			Field{Name: "found", Var: &r.Found}, Field{Name: "limit", Var: &r.Limit}, Field{Name: "ms", Var: &r.Ms},
			Field{Name: "input_length", Var: &t.InputLength}, Field{Name: "ids", Var: &t.IDs}, Field{Name: "session_id", Var: &t.SessionID})
	case intake.ByGraph:
		return append(fields, graphFaultFields(&t.Graph)...)
	case intake.ByRecord:
		fields = append(fields, Field{Name: "code", Var: (*uint8)(&d.Code)}, Field{Name: "field", Var: (*uint8)(&d.Field)},
			Field{Name: "found", Var: &d.Found}, Field{Name: "limit", Var: &d.Limit}, Field{Name: "ms", Var: &d.Ms},
			Field{Name: "name", Var: &d.Name}, Field{Name: "other", Var: &d.Other},
			Field{Name: "row.code", Var: (*uint8)(&d.Row.Code)}, Field{Name: "row.found", Var: &d.Row.Found}, Field{Name: "row.limit", Var: &d.Row.Limit})
		return append(fields, below("graph.", graphFaultFields(&d.Graph))...)
	case intake.ByObject:
		fields = append(fields, Field{Name: "code", Var: (*uint8)(&o.Code)}, Field{Name: "field", Var: (*uint8)(&o.Field)},
			Field{Name: "found", Var: &o.Found}, Field{Name: "limit", Var: &o.Limit}, Field{Name: "found64", Var: &o.Found64}, Field{Name: "limit64", Var: &o.Limit64},
			Field{Name: "name", Var: &o.Name}, Field{Name: "outer", Var: &t.Outer}, Field{Name: "inner", Var: &t.Inner})
		return append(fields, below("graph.", graphFaultFields(&o.Graph))...)
	}
	return append(fields, Field{Name: "code", Var: (*uint8)(&t.Code)}, Field{Name: "found", Var: &t.Found}, Field{Name: "limit", Var: &t.Limit})
}

// graphFaultFields are those of what is wrong with a graph.
func graphFaultFields(f *agentic.Fault) []Field {
	return []Field{
		{Name: "code", Var: (*uint8)(&f.Code)}, {Name: "field", Var: (*uint8)(&f.Field)}, {Name: "found", Var: &f.Found}, {Name: "limit", Var: &f.Limit},
		{Name: "ms", Var: &f.Ms}, {Name: "name", Var: &f.Name}, {Name: "other", Var: &f.Other},
	}
}
