package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// applied reads Applied Compute conversations.
type applied struct {
	*loader
	parse trace.Parser
	build *workload.Applied
	row   trace.AppliedRow
}

func newApplied(l *loader) *applied {
	return &applied{loader: l, build: workload.NewApplied(l.opts.TraceBlockSize, l.opts.SharedPrefixRatio, l.opts.PrefixGroups)}
}

func (a *applied) line(text []byte) error {
	if f := a.parse.AppliedRow(text, &a.row); f.Code != trace.OK {
		return a.lineError(f, text)
	}
	if f := a.build.Add(&a.row, a.split.Line()); f.Code != workload.OK {
		return a.fail(f.Line, a.rowText(f))
	}
	return nil
}

func (a *applied) finish() (*workload.Workload, error) {
	w, f := a.build.Finish()
	if f.Code != workload.OK {
		return nil, a.buildError(f, a.build.AppendSessionID)
	}
	return w, nil
}

// rowText words what is wrong with the row.
func (a *applied) rowText(f workload.Fault) string {
	name := `field "` + f.Field.Name() + `": `
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case workload.ListMismatch:
		return name + "found " + n + " items, want as many as num_turns says, " + limit
	case workload.InputZero:
		return name + "found 0, want a positive integer"
	case workload.NegativeDelay:
		return name + "found " + strconv.FormatFloat(f.Ms, 'g', -1, 64) + ", want numbers of seconds from 0"
	case workload.DelayTooLong:
		return name + "found " + strconv.FormatFloat(f.Ms, 'g', -1, 64) + ", want seconds that are finite as milliseconds"
	case workload.InputTooLong:
		return name + "the conversation grows to " + n + " tokens, want at most " + limit
	case workload.OutputTooLong:
		return name + "found " + n + ", want at most " + limit
	}
	return a.buildText(f, a.build.AppendSessionID)
}
