package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/workload"
)

// mooncakeText words what is wrong with a Mooncake row; "": it is not the row
// by itself.
func (l *loader) mooncakeText(row *intake.Finding) string {
	f := row.Row
	n := strconv.FormatInt(f.Found, 10)
	limit := strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case workload.InputOverCapacity:
		return l.overCapacity(row)
	case workload.InputZero:
		if row.InputLength < 0 {
			return `field "hash_ids": found [] and no "input_length", want a prompt of at least one token`
		}
		return `field "input_length": found 0, want a positive integer`
	case workload.InputTooLong:
		if row.InputLength < 0 {
			return `field "hash_ids": found ` + strconv.Itoa(row.IDs) + " ids of " + strconv.Itoa(l.opts.TraceBlockSize) +
				` tokens each and no "input_length", want a prompt of at most ` + limit + " tokens"
		}
		return `field "input_length": found ` + n + ", want at most " + limit
	case workload.OutputTooLong:
		return `field "output_length": found ` + n + ", want at most " + limit
	case workload.OutputIDsMismatch:
		return `field "output_token_ids": found ` + n + " ids, want as many as output_length says, " + limit
	}
	return ""
}

// overCapacity words a prompt that is longer than its hash ids.
func (l *loader) overCapacity(row *intake.Finding) string {
	f, ids := row.Row, int64(row.IDs)
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
