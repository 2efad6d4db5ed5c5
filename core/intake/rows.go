package intake

import (
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// namer names the session of a fault.
type namer interface {
	AppendSessionID(dst []byte, session int32) []byte
}

// byRow is a fault of a row among the others; n is nil if it has no session yet.
func byRow(f workload.Fault, n namer) *Finding {
	found := &Finding{Kind: ByRow, Row: f, Line: f.Line, InputLength: -1}
	if n != nil && Names(f) {
		found.SessionID = n.AppendSessionID(nil, f.Session)
	}
	return found
}

// finished is what a builder's Finish says.
func finished(w *workload.Workload, f workload.Fault, n namer) (*workload.Workload, *Finding) {
	if f.Code != workload.OK {
		return nil, byRow(f, n)
	}
	return w, nil
}

// rows takes Mooncake rows, whole prompts or increments.
type rows struct {
	build *workload.Builder
	row   trace.Row
}

func (t *rows) take(r *Reader, text []byte, line int64) *Finding {
	if f := r.parse.Line(text, &t.row); f.Code != trace.OK {
		return byLine(f, line, text)
	}
	if f := t.build.Add(&t.row, line); f.Code != workload.OK {
		found := byRow(f, t.build)
		found.InputLength, found.IDs = t.row.InputLength, len(t.row.HashIDs)
		return found
	}
	r.rows++
	return nil
}

func (t *rows) finish(r *Reader) (*workload.Workload, *Finding) {
	w, f := t.build.Finish(r.opts.timed())
	return finished(w, f, t.build)
}

// applied takes Applied Compute conversations.
type applied struct {
	build *workload.Applied
	row   trace.AppliedRow
}

func newApplied(o *Options) *applied {
	return &applied{build: workload.NewApplied(o.TraceBlockSize, o.SharedPrefixRatio, o.PrefixGroups)}
}

func (t *applied) take(r *Reader, text []byte, line int64) *Finding {
	if f := r.parse.AppliedRow(text, &t.row); f.Code != trace.OK {
		return byLine(f, line, text)
	}
	if f := t.build.Add(&t.row, line); f.Code != workload.OK {
		return byRow(f, nil)
	}
	r.rows++
	return nil
}

func (t *applied) finish(*Reader) (*workload.Workload, *Finding) {
	w, f := t.build.Finish()
	return finished(w, f, t.build)
}

// counted takes tables of requests that give times and lengths only.
type counted struct {
	table   trace.Table
	columns []trace.Field // nil: the header has not come
	build   *workload.Counted
	row     trace.TableRow
}

func newCounted(o *Options, table trace.Table) *counted {
	return &counted{table: table, build: workload.NewCounted(table, o.TraceBlockSize, o.SharedPrefixRatio, o.PrefixGroups, o.Concurrency)}
}

func (t *counted) take(r *Reader, text []byte, line int64) *Finding {
	if t.columns == nil {
		columns, f := r.parse.TableHeader(text, t.table)
		if f.Code != trace.OK {
			return byLine(f, line, text)
		}
		t.columns = columns
		return nil
	}
	if f := r.parse.TableRow(text, t.columns, &t.row); f.Code != trace.OK {
		return byLine(f, line, text)
	}
	if t.table == trace.BurstTable && (t.row.Input == 0 || t.row.Output == 0) {
		r.rows++
		r.failed++
		return nil
	}
	if f := t.build.Add(&t.row, line); f.Code == workload.StartTooLate {
		return byRow(f, nil)
	} else if f.Code != workload.OK {
		return byRow(f, t.build)
	}
	r.rows++
	return nil
}

func (t *counted) finish(r *Reader) (*workload.Workload, *Finding) {
	w, f := t.build.Finish(r.opts.timed())
	switch {
	case f.Code == workload.Empty && t.columns != nil && r.failed > 0:
		return nil, byTrace(OnlyFailed)
	case f.Code == workload.Empty && t.columns != nil:
		return nil, byTrace(OnlyHeader)
	}
	return finished(w, f, t.build)
}
