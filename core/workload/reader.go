package workload

import "github.com/dryserve/dryserve/core/trace"

// Reader makes a workload of the text of a Mooncake trace, chunk by chunk.
type Reader struct {
	split *trace.Splitter
	parse trace.Parser
	build *Builder
	row   trace.Row
	rows  int64
}

// Finding is what is wrong with a trace and what it takes to say so.
type Finding struct {
	Parse       trace.Fault // of a line by itself
	Row         Fault       // of a row among the others, or of the trace; if Parse is OK
	Line        int64       // the line in question, 0: none
	Text        []byte      // of the line, with Parse; valid until the next call
	InputLength int64       // of the row, -1: it has none
	IDs         int         // hash ids of the row
	SessionID   []byte      // of Row.Session, where its code names one
}

// OK reports whether nothing is wrong.
func (f *Finding) OK() bool { return f.Parse.Code == trace.OK && f.Row.Code == OK }

// NewReader makes a reader of rows whose hash ids cover traceBlockSize > 0
// tokens each, in lines of at most maxLine bytes.
func NewReader(traceBlockSize, maxLine int) *Reader {
	return &Reader{split: trace.NewSplitter(maxLine), build: NewBuilder(traceBlockSize)}
}

// Lines is the number of lines read, blank ones included.
func (r *Reader) Lines() int64 { return r.split.Line() }

// Rows is the number of rows read.
func (r *Reader) Rows() int64 { return r.rows }

// Reserve is Builder.Reserve.
func (r *Reader) Reserve(rows int) { r.build.Reserve(rows) }

// Feed reads the next chunk of text; end says that it is the last one. After a
// finding the reader is of no use any more.
func (r *Reader) Feed(text []byte, end bool) Finding {
	if end {
		r.split.Close()
	}
	r.split.Feed(text)
	for {
		line, ok := r.split.Next()
		if !ok {
			return Finding{Parse: r.split.Fault(), Line: r.split.Line()}
		}
		if f := r.parse.Line(line, &r.row); f.Code != trace.OK {
			return Finding{Parse: f, Line: r.split.Line(), Text: line}
		}
		if f := r.build.Add(&r.row, r.split.Line()); f.Code != OK {
			return r.finding(f)
		}
		r.rows++
	}
}

// Finish is Builder.Finish.
func (r *Reader) Finish(o Options) (*Workload, Finding) {
	w, f := r.build.Finish(o)
	if f.Code == OK {
		return w, Finding{}
	}
	r.row = trace.Row{InputLength: -1}
	return nil, r.finding(f)
}

func (r *Reader) finding(f Fault) Finding {
	found := Finding{Row: f, Line: f.Line, InputLength: r.row.InputLength, IDs: len(r.row.HashIDs)}
	if f.Code >= FirstTurnDelay && f.Code != Empty {
		found.SessionID = r.build.AppendSessionID(nil, f.Session)
	}
	return found
}
