package tracefile

import (
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Into takes the text of a Mooncake trace in the place of this process, which
// then only reads, and words what is wrong.
type Into interface {
	// Feed takes the next chunk, the last one with end. It returns how many
	// lines and rows there were so far, and what is wrong with them; an error
	// is one that the trace has nothing to do with.
	Feed(text []byte, end bool) (lines, rows int64, f workload.Finding, err error)
	// Reserve says how many rows more will come, about.
	Reserve(rows int)
}

// elsewhere is the reader of a trace that another one takes.
type elsewhere struct{}

func (elsewhere) line([]byte) error                   { return nil }
func (elsewhere) finish() (*workload.Workload, error) { return nil, nil }

// hand gives a chunk to the other reader and words what is wrong with it.
func (l *loader) hand(text []byte, end bool) error {
	var f workload.Finding
	var err error
	l.info.Lines, l.info.Rows, f, err = l.opts.Into.Feed(text, end)
	id := func(dst []byte, _ int32) []byte { return append(dst, f.SessionID...) }
	switch {
	case err != nil:
		return err
	case f.Parse.Code != trace.OK:
		return l.fail(f.Line, l.lineText(f.Parse, f.Text))
	case f.Row.Code == workload.Empty:
		return l.buildError(f.Row, id)
	case f.Row.Code != workload.OK:
		return l.fail(f.Line, l.rowText(&f, id))
	}
	return nil
}
