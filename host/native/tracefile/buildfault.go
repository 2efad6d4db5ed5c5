package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// buildError words what is wrong with a row among the others; row is nil once
// all rows are read.
func (l *loader) buildError(f workload.Fault, row *trace.Row) error {
	if f.Code == workload.Empty {
		if l.info.Lines == 0 {
			return l.fail(0, "the file is empty, want at least one row")
		}
		return l.fail(0, "found only blank lines, want at least one row")
	}
	return l.fail(f.Line, l.buildText(f, row))
}

func (l *loader) buildText(f workload.Fault, row *trace.Row) string {
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case workload.TooManyLines:
		return "the trace has more than " + limit + " lines, which is the most"
	case workload.TooManyRows:
		return "the trace has more than " + limit + " rows, which is the most"
	case workload.TooMuchText:
		return "the session ids have more than " + limit + " bytes together, which is the most"
	case workload.TooManyIDs:
		return "the prompts have more than " + limit + " different hash ids, which is the most"
	case workload.TooManyOutputIDs:
		return "the trace has more than " + limit + " output token ids, which is the most"
	case workload.InputOverCapacity:
		return l.overCapacity(f, row)
	case workload.InputZero:
		if row.InputLength < 0 {
			return `field "hash_ids": found [] and no "input_length", want a prompt of at least one token`
		}
		return `field "input_length": found 0, want a positive integer`
	case workload.InputTooLong:
		if row.InputLength < 0 {
			return `field "hash_ids": found ` + strconv.Itoa(len(row.HashIDs)) + " ids of " + strconv.Itoa(l.opts.TraceBlockSize) +
				` tokens each and no "input_length", want a prompt of at most ` + limit + " tokens"
		}
		return `field "input_length": found ` + n + ", want at most " + limit
	case workload.OutputTooLong:
		return `field "output_length": found ` + n + ", want at most " + limit
	case workload.OutputIDsMismatch:
		return `field "output_token_ids": found ` + n + " ids, want as many as output_length says, " + limit
	}
	return l.timeText(f)
}

// overCapacity words a prompt that is longer than its hash ids.
func (l *loader) overCapacity(f workload.Fault, row *trace.Row) string {
	ids := int64(len(row.HashIDs))
	text := `field "input_length": found ` + strconv.FormatInt(f.Found, 10) + ", want at most " +
		strconv.FormatInt(f.Limit, 10) + ", which the row's " + strconv.FormatInt(ids, 10) + " hash_ids cover with a trace block size of " +
		strconv.Itoa(l.opts.TraceBlockSize)
	if ids > 0 {
		size := f.Found / ids
		if size*ids < f.Found {
			size++
		}
		text += "; this row was written with at least " + strconv.FormatInt(size, 10)
	}
	return text
}

// timeText words what is wrong with the times of a session.
func (l *loader) timeText(f workload.Fault) string {
	ms := strconv.FormatFloat(f.Ms, 'g', -1, 64)
	session := " of session " + found(l.build.AppendSessionID(nil, f.Session))
	switch f.Code {
	case workload.FirstTurnDelay:
		return `field "delay": found ` + ms + " on the first turn" + session + ", want a delay on later turns only"
	case workload.NegativeDelay:
		return `field "delay": found ` + ms + ", want a number of milliseconds from 0"
	case workload.TimestampBackward:
		return `field "timestamp": found one ` + ms[1:] + " ms before that of the turn before" + session +
			`, want ascending timestamps in a session or a "delay"`
	case workload.TimestampTooFar:
		return `field "timestamp": found one too far from that of the turn before` + session + ", want a finite difference"
	case workload.NoTimestampBefore:
		return `field "timestamp": found one, but none on the turns before` + session + `, want a "delay" instead, or a timestamp there`
	case workload.NoStart:
		return `field "timestamp" is missing on the first turn` + session + ", want one unless a concurrency cap starts the sessions"
	case workload.NegativeStart:
		return `field "timestamp": found ` + ms + " on the first turn" + session + ", want 0 or more under a concurrency cap"
	case workload.StartTooLate:
		return `field "timestamp": found one on the first turn` + session + " too far from the earliest, want a finite start after the speed-up"
	}
	return "the delay of turn " + strconv.Itoa(int(f.Turn)) + session + " is infinite after the speed-up, want a smaller delay or a greater speed-up"
}
