package intake

import (
	"strconv"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/dynamo"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
)

// agents takes agentic Mooncake: a header, then requests.
type agents struct {
	build *agentic.Builder // nil: the header has not come
	row   trace.AgenticRow
}

func (t *agents) take(r *Reader, text []byte, line int64) *Finding {
	if t.build == nil {
		f := t.header(r, text, line)
		if f != nil {
			f.Line = line
		}
		return f
	}
	if f := r.parse.AgenticRow(text, &t.row); f.Code != trace.OK {
		return byLine(f, line, text)
	}
	if f := t.build.Add(&t.row, line); f.Code != agentic.OK {
		return &Finding{Kind: ByGraph, Graph: f, Line: f.Line}
	}
	r.rows++
	return nil
}

func (t *agents) header(r *Reader, text []byte, line int64) *Finding {
	const most = 1<<31 - 1
	var h trace.AgenticHeader
	f := r.parse.AgenticHeader(text, &h)
	switch {
	case f.Code != trace.OK:
		return byLine(f, line, text)
	case h.BlockSize == 0:
		return byTrace(BlockSizeZero)
	case h.BlockSize > most:
		return &Finding{Kind: ByTrace, Code: BlockSizeTooLarge, Found: h.BlockSize, Limit: most}
	case trace.Blank(h.SourceFormat):
		return byTrace(FormatBlank)
	case trace.Blank(h.SourceDigest):
		return byTrace(DigestBlank)
	}
	t.build = agentic.NewBuilder(h.BlockSize, string(h.SourceFormat), string(h.SourceDigest))
	return nil
}

func (t *agents) finish(r *Reader) (*workload.Workload, *Finding) {
	if t.build == nil {
		return nil, &Finding{Kind: ByRow, Row: workload.Fault{Code: workload.Empty}, InputLength: -1}
	}
	w, f := t.build.Finish(r.opts.ArrivalSpeedup)
	if f.Code != agentic.OK {
		return nil, &Finding{Kind: ByGraph, Graph: f, Line: f.Line}
	}
	return w, nil
}

// records takes Dynamo request traces, in any number of files.
type records struct {
	build  *dynamo.Builder
	record trace.DynamoRecord
}

func newRecords() *records { return &records{build: dynamo.NewBuilder()} }

func byRecord(f dynamo.Fault) *Finding {
	return &Finding{Kind: ByRecord, Record: f, File: f.At.File, Line: f.At.Line}
}

func (t *records) take(r *Reader, text []byte, line int64) *Finding {
	if f := r.parse.Dynamo(text, &t.record); f.Code != trace.OK {
		return byLine(f, line, text)
	}
	if f := t.build.Add(&t.record, dynamo.Place{File: r.file, Line: line}); f.Code != dynamo.OK {
		return byRecord(f)
	}
	if t.record.Event == trace.RequestEnd {
		r.rows++
	}
	return nil
}

func (t *records) finish(r *Reader) (*workload.Workload, *Finding) {
	if size := t.build.BlockSize(); r.opts.otherBlockSize(size) {
		return nil, &Finding{Kind: ByTrace, Code: OtherBlockSize, Found: size, Limit: int64(r.opts.WantBlockSize)}
	}
	if code := r.opts.checkGraph(t.build.Agentic()); code != OK {
		return nil, byTrace(code)
	}
	w, f := t.build.Finish(workload.Options{Concurrency: r.opts.Concurrency, ArrivalSpeedup: r.opts.ArrivalSpeedup})
	if f.Code != dynamo.OK {
		return nil, byRecord(f)
	}
	return w, nil
}

// objects takes Weka traces: files of one object, or of a line for each.
type objects struct {
	build  *weka.Builder
	object trace.WekaTrace
	within string // path of the file below the trace's
	single bool   // it is one object
	count  int    // objects of the file so far
}

func newObjects() *objects { return &objects{build: weka.NewBuilder()} }

func (t *objects) begin(path string, size int64) {
	t.within, t.single, t.count = path, Single(path), 0
	t.build.File(path, size)
}

// name says where the next object stands.
func (t *objects) name() string {
	if t.single {
		return t.within
	}
	digits := strconv.Itoa(t.count)
	for len(digits) < 6 {
		digits = "0" + digits
	}
	return t.within + "#" + digits
}

func (t *objects) take(r *Reader, text []byte, line int64) *Finding {
	if t.single {
		line = 0
	}
	name := t.name()
	t.count++
	if f := r.parse.Weka(text, &t.object); f.Code != trace.OK {
		return t.fault(f, text, line)
	}
	if f := t.build.Add(&t.object, name, weka.Place{File: r.file, Line: line}); f.Code != weka.OK {
		return byObject(f)
	}
	for i := range t.object.Entries {
		if !t.object.Entries[i].Subagent {
			r.rows++
		}
	}
	return nil
}

// fault is what is wrong with an object by itself. In a file of one object
// lines are counted up to the fault, and the text is that around it.
func (t *objects) fault(f trace.Fault, text []byte, line int64) *Finding {
	const around = 256 // bytes of a value that is at fault, and behind it
	cut := 0
	if t.single {
		line = 1
		for i, c := range text[:f.Start] {
			if c == '\n' {
				line++
				cut = i + 1
			}
		}
		f.Start, f.End, f.Key = f.Start-cut, max(f.End-cut, 0), 0
		f.End = min(f.End, f.Start+around)
	}
	text = text[cut:]
	found := byLine(f, line, text[:min(len(text), max(f.Start, f.End, f.Key)+around)])
	found.Outer, found.Inner, found.Single = t.object.Outer, t.object.Inner, t.single
	return found
}

func byObject(f weka.Fault) *Finding {
	return &Finding{Kind: ByObject, Object: f, File: f.At.File, Line: f.At.Line, Outer: f.Outer, Inner: f.Inner}
}

func (t *objects) finish(r *Reader) (*workload.Workload, *Finding) {
	if size := t.build.BlockSize(); r.opts.otherBlockSize(size) {
		return nil, &Finding{Kind: ByTrace, Code: OtherBlockSize, Found: size, Limit: int64(r.opts.WantBlockSize)}
	}
	w, f := t.build.Finish(r.opts.NestedBasis, r.opts.ArrivalSpeedup)
	if f.Code != weka.OK {
		return nil, byObject(f)
	}
	return w, nil
}
