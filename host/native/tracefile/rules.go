package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/intake"
)

// intake are the options as the core has them.
func (l *loader) intake() intake.Options {
	o := &l.opts
	return intake.Options{
		Format: l.format, TraceBlockSize: o.TraceBlockSize, WantBlockSize: o.WantBlockSize, Concurrency: o.Concurrency, ArrivalSpeedup: o.ArrivalSpeedup,
		SharedPrefixRatio: o.SharedPrefixRatio, PrefixGroups: o.PrefixGroups, Lanes: o.Lanes, Model: o.ExecutionModel != "",
		NestedBasis: o.NestedBasis, AsWritten: o.AsWritten, MaxLine: o.MaxLine,
	}
}

// rules says which options do not go with the format.
func (l *loader) rules() error {
	if l.files > 1 && !l.format.Shards() {
		return l.unfit(true, "which is one file, but "+strconv.Itoa(l.files)+" are given; want one")
	}
	o := l.intake()
	if code := o.Check(); code != intake.OK {
		return l.unfitError(code)
	}
	return nil
}

// unfitError words why the options do not go with the format.
func (l *loader) unfitError(code intake.Code) error {
	switch code {
	case intake.NestedTimes:
		return l.unfit(true, "which has no times of its own in subagents (--weka-nested-timestamp-basis); want a trace in the format weka")
	case intake.NeedsCap:
		return l.unfit(true, "which has no start times; want a cap on the sessions under way (--replay-concurrency)")
	case intake.NoLanes:
		return l.unfit(false, "which has no plays for lanes (--agentic-lanes) to take up; want a trace of agents: agentic_mooncake, weka, or dynamo with an agent_context")
	case intake.NoCap:
		return l.unfit(false, "whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither")
	}
	return l.unfit(false, "whose requests name models of their own; want the name of the model that serves them all (--execution-model)")
}

func (l *loader) unfit(usage bool, why string) error {
	return &Error{File: l.names[0], Text: "is a trace in the format " + l.format.String() + ", " + why, Usage: usage}
}
