// Package intake makes a workload of the text of a trace, whatever its format.
//
// It owns which format a text looks like, which reader and builder a format
// takes, which options do not go with it, and one shape for all that can be
// wrong. It does not own what a line says (core/trace), what rows mean together
// (core/workload, core/agentic, core/dynamo, core/weka), files, or sentences
// (the hosts).
//
// Invariants: the workload and the finding depend on the text of each file and
// on nothing else, whatever chunks it comes in; after a finding nothing else is
// asked of a Reader or a Feeder, but for a Reader whose caller goes on after bad
// rows and then takes no workload.
//
// Sources: replay notes §3.
package intake

// Format is how a trace is written.
type Format uint8

// The formats. Auto looks at the beginning of the trace.
const (
	Auto Format = iota
	Mooncake
	MooncakeDelta
	AgenticMooncake
	AppliedCompute
	Dynamo
	Weka
	Azure
	BurstGPT
)

// String is the format's name.
func (f Format) String() string {
	return [...]string{
		Auto: "auto", Mooncake: "mooncake", MooncakeDelta: "mooncake-delta", AgenticMooncake: "agentic_mooncake",
		AppliedCompute: "applied_compute_agentic", Dynamo: "dynamo", Weka: "weka", Azure: "azure", BurstGPT: "burstgpt",
	}[f]
}

// Shards reports whether a trace of the format may be several files.
func (f Format) Shards() bool { return f == Dynamo }
