package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/workload"
)

// talkText words what is wrong with a conversation of Applied Compute; "": it is
// not the row by itself.
func talkText(f workload.Fault) string {
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
	return ""
}
