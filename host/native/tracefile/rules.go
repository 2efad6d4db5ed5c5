package tracefile

import "strconv"

// rules says which options do not go with the format.
func (l *loader) rules() error {
	graph := l.format == AgenticMooncake
	wrong := func(usage bool, text string) error {
		return &Error{File: l.src.name, Text: text, Usage: usage}
	}
	is := "is a trace in the format " + l.format.String()
	switch {
	case l.files > 1 && !l.format.Shards():
		return wrong(true, is+", which is one file, but "+strconv.Itoa(l.files)+" are given; want one")
	case l.format == AppliedCompute && !l.opts.Concurrency:
		return wrong(true, is+", which has no start times; want a cap on the sessions under way (--replay-concurrency)")
	case l.opts.Lanes > 0 && !graph:
		return wrong(false, is+", which has no plays for lanes (--agentic-lanes) to take up; want the format agentic_mooncake")
	case graph && l.opts.Concurrency:
		return wrong(false, is+", whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither")
	case graph && l.opts.ExecutionModel == "":
		return wrong(false, is+", whose requests name models of their own; want the name of the model that serves them all (--execution-model)")
	}
	return nil
}
