package tracefile

import "github.com/dryserve/dryserve/core/intake"

// Format is how a trace is written. See docs/traces.md.
type Format = intake.Format

// The formats. Auto looks at the beginning of the trace.
const (
	Auto            = intake.Auto
	Mooncake        = intake.Mooncake
	MooncakeDelta   = intake.MooncakeDelta
	AgenticMooncake = intake.AgenticMooncake
	AppliedCompute  = intake.AppliedCompute
	Dynamo          = intake.Dynamo
	Weka            = intake.Weka
	Azure           = intake.Azure
	BurstGPT        = intake.BurstGPT
)

// spellings are names of formats beside those of core/intake.
var spellings = map[string]Format{"mooncake_delta": MooncakeDelta, "agentic-mooncake": AgenticMooncake}

// Formats are the names of all formats.
func Formats() []string {
	var names []string
	for f := Mooncake; f <= BurstGPT; f++ {
		names = append(names, f.String())
	}
	return names
}

// ParseFormat finds a format by any of its names.
func ParseFormat(name string) (Format, bool) {
	for f := Mooncake; f <= BurstGPT; f++ {
		if f.String() == name {
			return f, true
		}
	}
	f, ok := spellings[name]
	return f, ok
}
