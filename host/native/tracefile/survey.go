package tracefile

import (
	"errors"

	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// Survey looks at a trace without a run in mind. Every bad row is told, not
// only the first. Mooncake rows are told one by one and not kept; of other
// formats, whose rows say little by themselves, Load makes the workload, unless
// rows were bad.
type Survey interface {
	// Row is told a row; it is valid during the call.
	Row(row *trace.Row, c workload.Checked)
	// Bad is told what is wrong with a row. False: stop here.
	Bad(e *Error) bool
	// Checked is told what was counted on the way, once all Mooncake rows are read.
	Checked(c *workload.Checker)
}

// headed is a reader whose first line says how to read the others.
type headed interface{ headed() bool }

// goesOn tells the survey of a bad row and reports whether there is more to
// look at. Without a survey there is not.
func (l *loader) goesOn(err error) bool {
	var e *Error
	if l.opts.Survey == nil || !errors.As(err, &e) || e.Line == 0 || e.Usage {
		return false
	}
	if h, ok := l.reader.(headed); ok && !h.headed() {
		return false
	}
	if l.bad == nil {
		l.bad = err
	}
	return l.opts.Survey.Bad(e)
}

// surveyed reads Mooncake rows, whole prompts or increments, for a survey.
type surveyed struct {
	*loader
	parse trace.Parser
	check *workload.Checker
	row   trace.Row
}

func newSurveyed(l *loader) *surveyed {
	return &surveyed{loader: l, check: workload.NewChecker(l.opts.TraceBlockSize, l.format == MooncakeDelta)}
}

func (s *surveyed) line(text []byte) error {
	if f := s.parse.Line(text, &s.row); f.Code != trace.OK {
		return s.lineError(f, text)
	}
	c, f := s.check.Add(&s.row, s.split.Line())
	if f.Code != workload.OK {
		return s.fail(f.Line, s.rowText(&intake.Finding{Row: f, InputLength: s.row.InputLength, IDs: len(s.row.HashIDs)}, s.sessionID))
	}
	s.info.Rows++
	s.opts.Survey.Row(&s.row, c)
	return nil
}

// sessionID appends the id of the row's session.
func (s *surveyed) sessionID(dst []byte, _ int32) []byte {
	if s.row.SessionID != nil {
		return append(dst, s.row.SessionID...)
	}
	return workload.AppendLineID(dst, s.split.Line())
}

// finish looks at the rows together. That no session has a start is no fault
// of the trace; that some have none is.
func (s *surveyed) finish() (*workload.Workload, error) {
	f := s.check.Finish()
	switch {
	case f.Code == workload.Empty && s.bad == nil:
		return nil, s.buildError(f, nil)
	case f.Code == workload.Empty: // all are bad
		f = workload.Fault{}
	}
	s.opts.Survey.Checked(s.check)
	if s.check.Started() {
		for _, n := range s.check.NoStarts {
			none := workload.Fault{Code: workload.NoStart}
			err := s.fail(n.Line, s.buildText(none, func(dst []byte, _ int32) []byte { return append(dst, n.Session...) }))
			if !s.goesOn(err) {
				return nil, err
			}
		}
	}
	if f.Code != workload.OK {
		return nil, s.fail(f.Line, s.buildText(f, func(dst []byte, _ int32) []byte { return append(dst, s.check.Latest()...) }))
	}
	return nil, nil
}
