package tracefile

import (
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/workload"
)

// Into takes the text of a trace in the place of this process, which then only
// reads, and words what is wrong.
type Into interface {
	// File begins the next file: its path below the trace's and its size in
	// bytes, -1 for unknown.
	File(path string, size int64)
	// Feed takes the next chunk of the file, the last one with end; more says
	// that another file comes then. It returns what was read so far, and what is
	// wrong with it; an error is one that the trace has nothing to do with.
	Feed(text []byte, end, more bool) (Counts, intake.Finding, error)
	// Reserve says how many rows more will come, about.
	Reserve(rows int)
}

// Counts is what was read so far, see Info.
type Counts struct{ Lines, Rows, Failed int64 }

// elsewhere is the reader of a trace that another one takes.
type elsewhere struct{}

func (elsewhere) line([]byte) error                   { return nil }
func (elsewhere) finish() (*workload.Workload, error) { return nil, nil }

// hand gives a chunk to the other reader and words what is wrong with it.
func (l *loader) hand(text []byte, end bool) error {
	n, f, err := l.opts.Into.Feed(text, end, end && len(l.names) < l.all)
	l.info.Lines, l.info.Rows, l.info.Failed = n.Lines, n.Rows, n.Failed
	if err != nil || f.OK() {
		return err
	}
	return l.sentence(&f)
}

// local reads the lines of a trace in this process.
type local struct {
	*loader
	read *intake.Reader
}

func (r *local) line(text []byte) error {
	f := r.read.Line(text, r.split.Line())
	r.info.Rows, r.info.Failed = r.read.Rows(), r.read.Failed()
	return r.told(f)
}

func (r *local) headed() bool { return r.read.Headed() }

func (r *local) finish() (*workload.Workload, error) {
	w, f := r.read.Finish()
	return w, r.told(f)
}

func (r *local) told(f *intake.Finding) error {
	if f == nil {
		return nil
	}
	return r.sentence(f)
}
