package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// cellText words what is wrong with a line of a table by itself.
func (l *loader) cellText(f trace.Fault, line []byte) string {
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
	case trace.LineTooLong:
		text = l.lineText(f, line)
	case trace.ByteOrderMark:
		text = "the line begins with a byte order mark; want UTF-8 without one"
	case trace.OutOfRange:
		text = column + ": found " + cell + ", want a number that fits 64 bits"
	default:
		text = column + ": found " + cell + ", want " + cellAccepted(f.Field)
	}
	return text
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

// requestText words what is wrong with a request of a table; "": it is not the
// request by itself.
func (l *loader) requestText(f workload.Fault) string {
	input, output := trace.AzureInput, trace.AzureOutput
	if l.format == BurstGPT {
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
	return ""
}
