package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/workload"
)

// sessionID appends the id of the session of a fault.
type sessionID func(dst []byte, session int32) []byte

// buildError words what is wrong with the rows together, once all are read.
func (l *loader) buildError(f workload.Fault, id sessionID) error {
	if f.Code == workload.Empty {
		if l.info.Lines == 0 {
			return l.fail(0, "the file is empty, want at least one row")
		}
		return l.fail(0, "found only blank lines, want at least one row")
	}
	return l.fail(f.Line, l.buildText(f, id))
}

// buildText words what is wrong with a row among the others.
func (l *loader) buildText(f workload.Fault, id sessionID) string {
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
	}
	ms := strconv.FormatFloat(f.Ms, 'g', -1, 64)
	session := " of session " + found(id(nil, f.Session))
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
	case workload.TalkTooLong:
		return "the prompt of turn " + strconv.Itoa(int(f.Turn)) + session + " has " + strconv.FormatInt(f.Found, 10) +
			" tokens with all that was said before, want at most " + limit
	}
	return "the delay of turn " + strconv.Itoa(int(f.Turn)) + session + " is infinite after the speed-up, want a smaller delay or a greater speed-up"
}
