package tracefile

import (
	"strconv"

	"github.com/dryserve/dryserve/core/weka"
)

// rules says which options do not go with the format.
func (l *loader) rules() error {
	switch {
	case l.files > 1 && !l.format.Shards():
		return l.unfit(true, "which is one file, but "+strconv.Itoa(l.files)+" are given; want one")
	case l.opts.Into != nil && !l.elsewhere():
		return l.unfit(true, "which core.wasm does not read yet; want mooncake or mooncake-delta, or --engine native")
	case l.opts.NestedBasis != weka.Auto && l.format != Weka:
		return l.unfit(true, "which has no times of its own in subagents (--weka-nested-timestamp-basis); want a trace in the format weka")
	case l.opts.AsWritten:
		return nil
	case l.format == AppliedCompute && !l.opts.Concurrency:
		return l.unfit(true, "which has no start times; want a cap on the sessions under way (--replay-concurrency)")
	case l.format == Dynamo: // only its records tell
		return nil
	}
	return l.graphRules(l.format == AgenticMooncake || l.format == Weka)
}

// graphRules says which options do not go with a trace whose requests wait for
// each other, or do not.
func (l *loader) graphRules(graph bool) error {
	switch {
	case l.opts.AsWritten:
		return nil
	case l.opts.Lanes > 0 && !graph:
		return l.unfit(false, "which has no plays for lanes (--agentic-lanes) to take up; want a trace of agents: agentic_mooncake, weka, or dynamo with an agent_context")
	case graph && l.opts.Concurrency:
		return l.unfit(false, "whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither")
	case graph && l.opts.ExecutionModel == "":
		return l.unfit(false, "whose requests name models of their own; want the name of the model that serves them all (--execution-model)")
	}
	return nil
}

// elsewhere reports whether another reader can take the format.
func (l *loader) elsewhere() bool { return l.format == Mooncake || l.format == MooncakeDelta }

func (l *loader) unfit(usage bool, why string) error {
	return &Error{File: l.names[0], Text: "is a trace in the format " + l.format.String() + ", " + why, Usage: usage}
}
