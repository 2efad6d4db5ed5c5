package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// counted reads tables of requests that give times and lengths only.
type counted struct {
	*loader
	parse   trace.Parser
	table   trace.Table
	columns []trace.Field // nil: the header has not come
	build   *workload.Counted
	row     trace.TableRow
}

func newCounted(l *loader, table trace.Table) *counted {
	return &counted{
		loader: l, table: table,
		build: workload.NewCounted(table, l.opts.TraceBlockSize, l.opts.SharedPrefixRatio, l.opts.PrefixGroups, l.opts.Concurrency),
	}
}

func (c *counted) line(text []byte) error {
	if c.columns == nil {
		columns, f := c.parse.TableHeader(text, c.table)
		if f.Code != trace.OK {
			return c.cellError(f, text)
		}
		c.columns = columns
		c.info.Rows-- // the header is none
		return nil
	}
	if f := c.parse.TableRow(text, c.columns, &c.row); f.Code != trace.OK {
		return c.cellError(f, text)
	}
	if c.table == trace.BurstTable && (c.row.Input == 0 || c.row.Output == 0) {
		c.info.Failed++
		return nil
	}
	if f := c.build.Add(&c.row, c.split.Line()); f.Code != workload.OK {
		return c.fail(f.Line, c.requestText(f))
	}
	return nil
}

func (c *counted) headed() bool { return c.columns != nil }

func (c *counted) finish() (*workload.Workload, error) {
	w, f := c.build.Finish(workload.Options{Concurrency: c.opts.Concurrency, ArrivalSpeedup: c.opts.ArrivalSpeedup, AsWritten: c.opts.AsWritten})
	switch {
	case f.Code == workload.Empty && c.columns != nil && c.info.Failed > 0:
		return nil, c.fail(0, "found only requests without tokens, as those that failed have, want at least one with tokens")
	case f.Code == workload.Empty && c.columns != nil:
		return nil, c.fail(0, "found a header only, want at least one request after it")
	case f.Code != workload.OK:
		return nil, c.buildError(f, c.build.AppendSessionID)
	}
	return w, nil
}

// cellError words what is wrong with a line by itself.
func (c *counted) cellError(f trace.Fault, line []byte) error {
	column := `column "` + f.Field.Name() + `"`
	cell := "an empty cell"
	if f.End > f.Start {
		cell = found(line[f.Start:f.End])
	}
	text := ""
	switch f.Code {
	case trace.Missing:
		text = column + " is missing in the header, want it there"
	case trace.Duplicate:
		text = column + " is given twice in the header, want it once"
	case trace.WrongCells:
		text = "found fewer cells than the header has, want as many"
		if f.End > f.Start {
			text = "found " + cell + " after as many cells as the header has, want no more"
		}
	case trace.OpenQuote:
		text = "found " + cell + ", a cell in quotes that does not end with one, want it closed in the same line"
	case trace.ByteOrderMark:
		text = "the line begins with a byte order mark; want UTF-8 without one"
	case trace.OutOfRange:
		text = column + ": found " + cell + ", want a number that fits 64 bits"
	default:
		text = column + ": found " + cell + ", want " + cellAccepted(f.Field)
	}
	return c.fail(c.split.Line(), text)
}

// cellAccepted says which cells a column takes.
func cellAccepted(f trace.Field) string {
	switch f {
	case trace.AzureTime:
		return "a time like 2023-11-16 18:15:46.6805900, or with an offset from UTC like +00:00 behind it"
	case trace.BurstTime, trace.BurstElapsed:
		return "a number of seconds from 0"
	}
	return "an integer from 0"
}

// requestText words what is wrong with a request among the others.
func (c *counted) requestText(f workload.Fault) string {
	input, output := trace.AzureInput, trace.AzureOutput
	if c.table == trace.BurstTable {
		input, output = trace.BurstInput, trace.BurstOutput
	}
	n, limit := strconv.FormatInt(f.Found, 10), strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case workload.InputZero:
		return `column "` + input.Name() + `": found 0, want a positive integer`
	case workload.InputTooLong:
		return `column "` + input.Name() + `": found ` + n + ", want at most " + limit
	case workload.OutputTooLong:
		return `column "` + output.Name() + `": found ` + n + ", want at most " + limit
	case workload.StartTooLate:
		return `column "Timestamp": found a number of seconds that is none as milliseconds, want a smaller one`
	}
	return c.buildText(f, c.build.AppendSessionID)
}
