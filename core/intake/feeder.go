package intake

import (
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Feeder makes a workload of the text of a trace, chunk by chunk, file by
// file.
type Feeder struct {
	opts    Options
	read    *Reader // nil: the format is not known yet
	split   *trace.Splitter
	name    string // of the file under way
	size    int64  // of it in bytes, -1: unknown
	named   bool   // File was called for it
	ended   bool   // it has ended
	held    []byte // text that was not read yet: the beginning of the trace, or of an object
	lines   int64  // of the files before, and of an object
	reserve int
	told    bool // the format is known
}

// NewFeeder makes a feeder of a trace. The format may be Auto.
func NewFeeder(o Options) *Feeder { return &Feeder{opts: o, size: -1} }

// Format is that of the trace, Auto while it is not known.
func (f *Feeder) Format() Format {
	if !f.told {
		return Auto
	}
	return f.opts.Format
}

// Lines is the number of lines read, blank ones included.
func (f *Feeder) Lines() int64 {
	n := f.lines
	if f.split != nil {
		n += f.split.Line()
	}
	return n
}

// Rows and Failed are those of the Reader.
func (f *Feeder) Rows() int64 {
	if f.read == nil {
		return 0
	}
	return f.read.Rows()
}

func (f *Feeder) Failed() int64 {
	if f.read == nil {
		return 0
	}
	return f.read.Failed()
}

// Fresh reports whether no text has come.
func (f *Feeder) Fresh() bool { return f.read == nil && len(f.held) == 0 && !f.named }

// Ended reports whether the file under way has ended, so that File or Finish is
// next.
func (f *Feeder) Ended() bool { return f.ended }

// Reserve says how many rows more will come, about.
func (f *Feeder) Reserve(rows int) {
	if f.reserve = rows; f.read != nil {
		f.read.Reserve(rows)
	}
}

// File begins the next file: its path below the trace's and its size in bytes,
// -1 for unknown. Without it the trace is one file without a name.
func (f *Feeder) File(path string, size int64) {
	f.name, f.size, f.named, f.ended = path, size, true, false
	if f.read != nil {
		f.begin()
	}
}

// begin tells the reader of the file under way.
func (f *Feeder) begin() {
	f.read.File(f.name, f.size)
	if f.split != nil {
		f.lines += f.split.Line()
	}
	f.split = trace.NewSplitter(f.read.MaxLine())
}

// Feed reads the next chunk of text of the file; end says that it is the last
// one.
func (f *Feeder) Feed(text []byte, end bool) Finding {
	f.ended = end
	if f.read == nil {
		if f.opts.Format == Auto {
			if len(f.held) > 0 || !end && !Tells(text, f.name) {
				f.held = append(f.held, text...)
				text = f.held
			}
			if !end && !Tells(text, f.name) {
				return Finding{}
			}
			f.opts.Format = Detect(text)
		}
		f.told = true
		if code := f.opts.Check(); code != OK {
			return *byTrace(code)
		}
		f.read = NewReader(f.opts)
		f.read.Reserve(f.reserve)
		f.begin()
		f.held = nil
	}
	if f.opts.Format == Weka && f.size < 0 {
		return *byTrace(NeedsFile)
	}
	f.read.Raw(text)
	if f.read.Single() {
		return f.object(text, end)
	}
	if end {
		f.split.Close()
	}
	f.split.Feed(text)
	for {
		line, ok := f.split.Next()
		switch {
		case ok:
			if found := f.read.Line(line, f.split.Line()); found != nil {
				return *found
			}
			continue
		case f.split.Fault().Code != trace.OK:
			found := byLine(f.split.Fault(), f.split.Line(), nil)
			found.File = f.read.file
			return *found
		case end:
			return value(f.read.EndFile())
		}
		return Finding{}
	}
}

// object collects the text of a file that is one object, and reads it.
func (f *Feeder) object(text []byte, end bool) Finding {
	if len(f.held)+len(text) > f.read.MaxLine() {
		return Finding{Kind: ByTrace, Code: ObjectTooLong, File: f.read.file, Limit: int64(f.read.MaxLine())}
	}
	if f.held == nil && f.size > 0 {
		f.held = make([]byte, 0, min(f.size, int64(f.read.MaxLine()))+1)
	}
	f.held = append(f.held, text...)
	if !end {
		return Finding{}
	}
	whole := f.held
	f.held = nil
	for _, c := range whole {
		if c == '\n' {
			f.lines++
		}
	}
	if !trace.Blank(whole) {
		if found := f.read.Line(whole, 0); found != nil {
			return *found
		}
	}
	return value(f.read.EndFile())
}

// value is what a finding says, nil that nothing is wrong.
func value(found *Finding) Finding {
	if found == nil {
		return Finding{}
	}
	return *found
}

// Finish returns the workload, once the last file has ended.
func (f *Feeder) Finish() (*workload.Workload, Finding) {
	w, found := f.read.Finish()
	return w, value(found)
}
