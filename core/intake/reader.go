package intake

import (
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
)

// Options say how a trace is read and what its times mean.
type Options struct {
	Format         Format
	TraceBlockSize int // tokens per hash id, > 0, where the trace does not say it
	WantBlockSize  int // what a trace that says it must say; 0: anything
	Concurrency    bool
	ArrivalSpeedup float64 // > 0, finite; used unless Concurrency or AsWritten

	// Of traces without hash ids: the share of a first prompt's blocks, from 0
	// to 1, that the conversations of a group have in common, and the groups.
	SharedPrefixRatio float64
	PrefixGroups      uint32

	// Of traces whose requests wait for each other: the plays under way at
	// once (0: all, at their own times), and whether a model is named to run them on.
	Lanes int
	Model bool

	NestedBasis weka.Basis // of Weka traces: what times in subagents count from

	AsWritten bool // times stay as they are, and what a run would need may be missing: the workload is not for one
	MaxLine   int  // longest line in bytes
}

// Check says which options do not go with the format.
func (o *Options) Check() Code {
	switch {
	case o.NestedBasis != weka.Auto && o.Format != Weka:
		return NestedTimes
	case o.AsWritten:
		return OK
	case o.Format == AppliedCompute && !o.Concurrency:
		return NeedsCap
	case o.Format == Dynamo: // only its records tell
		return OK
	}
	return o.checkGraph(o.Format == AgenticMooncake || o.Format == Weka)
}

// checkGraph says which options do not go with a trace whose requests wait for
// each other, or do not.
func (o *Options) checkGraph(graph bool) Code {
	switch {
	case o.AsWritten:
		return OK
	case o.Lanes > 0 && !graph:
		return NoLanes
	case graph && o.Concurrency:
		return NoCap
	case graph && !o.Model:
		return NeedsModel
	}
	return OK
}

// maxObject is the longest Weka object in bytes, where the caller has no limit
// of his own for lines.
const maxObject = 1 << 30

// Longest is the most bytes of a line of the format.
func (o *Options) Longest() int {
	if o.Format == Weka && o.MaxLine == trace.MaxLine {
		return maxObject
	}
	return o.MaxLine
}

// Reader makes a workload of the lines of a trace.
type Reader struct {
	opts   Options
	parse  trace.Parser
	taker  taker
	file   int32
	rows   int64
	failed int64
}

// taker makes a workload of the lines of one format. A line is given with its
// number.
type taker interface {
	take(r *Reader, text []byte, line int64) *Finding
	finish(r *Reader) (*workload.Workload, *Finding)
}

// NewReader makes a reader. The options have passed Check, and their format is
// not Auto.
func NewReader(o Options) *Reader {
	r := &Reader{opts: o, file: -1}
	switch o.Format {
	case AgenticMooncake:
		r.taker = &agents{}
	case AppliedCompute:
		r.taker = newApplied(&o)
	case Dynamo:
		r.taker = newRecords()
	case Weka:
		r.taker = newObjects()
	case Azure:
		r.taker = newCounted(&o, trace.AzureTable)
	case BurstGPT:
		r.taker = newCounted(&o, trace.BurstTable)
	default:
		r.taker = &rows{build: workload.NewBuilder(o.TraceBlockSize)}
	}
	return r
}

// Rows is the number of requests, or rows of the trace, and Failed that of the
// rows left out of the workload because their requests failed.
func (r *Reader) Rows() int64   { return r.rows }
func (r *Reader) Failed() int64 { return r.failed }

// MaxLine is the most bytes of a line.
func (r *Reader) MaxLine() int { return r.opts.Longest() }

// Reserve says how many rows more will come, about.
func (r *Reader) Reserve(n int) {
	if t, ok := r.taker.(*rows); ok {
		t.build.Reserve(n)
	}
}

// Headed reports whether it is known how to read the lines to come; that is
// not so while the header of a format that has one is missing.
func (r *Reader) Headed() bool {
	switch t := r.taker.(type) {
	case *agents:
		return t.build != nil
	case *counted:
		return t.columns != nil
	}
	return true
}

// File begins a file: its path below the trace's and its size in bytes, which
// have a meaning for Weka traces. Raw has to be told the text of it.
func (r *Reader) File(path string, size int64) {
	r.file++
	if t, ok := r.taker.(*objects); ok {
		t.begin(path, size)
	}
}

// Raw is told text of the file before it is read.
func (r *Reader) Raw(text []byte) {
	if t, ok := r.taker.(*objects); ok {
		t.build.Text(text)
	}
}

// Single reports whether the file under way is one object, whose text is given
// to Line as a whole.
func (r *Reader) Single() bool {
	t, ok := r.taker.(*objects)
	return ok && t.single
}

// Line reads the next line that is not blank. Nothing is wrong if it returns
// nil, like EndFile and Finish.
func (r *Reader) Line(text []byte, line int64) *Finding {
	f := r.taker.take(r, text, line)
	if f != nil && f.Kind != ByRecord && f.Kind != ByObject {
		f.File = r.file
	}
	return f
}

// EndFile ends a file.
func (r *Reader) EndFile() *Finding {
	if t, ok := r.taker.(*objects); ok && t.count == 0 {
		f := byTrace(NoObject)
		f.File = r.file
		return f
	}
	return nil
}

// Finish returns the workload.
func (r *Reader) Finish() (*workload.Workload, *Finding) {
	w, f := r.taker.finish(r)
	if f != nil && f.Kind != ByRecord && f.Kind != ByObject && f.Kind != ByTrace {
		f.File = r.file
	}
	return w, f
}

// timed are the options of a workload with times.
func (o *Options) timed() workload.Options {
	return workload.Options{Concurrency: o.Concurrency, ArrivalSpeedup: o.ArrivalSpeedup, Delta: o.Format == MooncakeDelta, AsWritten: o.AsWritten}
}

// otherBlockSize is a trace of another block size than the one asked for.
func (o *Options) otherBlockSize(size int64) bool {
	return o.WantBlockSize > 0 && size > 0 && int64(o.WantBlockSize) != size
}
