package tracefile

import (
	"bytes"
	"strings"

	"github.com/dryserve/dryserve/core/trace"
)

// Format is how a trace is written. See docs/traces.md.
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

// formats are the names, the reference's spelling first.
var formats = map[Format][]string{
	Mooncake:        {"mooncake"},
	MooncakeDelta:   {"mooncake-delta", "mooncake_delta"},
	AgenticMooncake: {"agentic_mooncake", "agentic-mooncake"},
	AppliedCompute:  {"applied_compute_agentic"},
	Dynamo:          {"dynamo"},
	Weka:            {"weka"},
	Azure:           {"azure"},
	BurstGPT:        {"burstgpt"},
}

// String is the format's name.
func (f Format) String() string {
	if f == Auto {
		return "auto"
	}
	return formats[f][0]
}

// Formats are the names of all formats.
func Formats() []string {
	var names []string
	for f := Mooncake; f <= BurstGPT; f++ {
		names = append(names, f.String())
	}
	return names
}

// Shards reports whether a trace of the format may be several files.
func (f Format) Shards() bool { return f == Dynamo }

// ParseFormat finds a format by any of its names.
func ParseFormat(name string) (Format, bool) {
	for f, names := range formats {
		for _, n := range names {
			if n == name {
				return f, true
			}
		}
	}
	return Auto, false
}

// detect tells the format by the beginning of a trace: the keys of its first
// object. What has none of the others' keys is taken for Mooncake, whose
// sentences then say what is wrong. Increments cannot be told from whole
// prompts.
func detect(text []byte) Format {
	text = bytes.TrimLeft(text, " \t\r\n")
	format, scope := Auto, false
	var p trace.Parser
	if len(text) > 0 && text[0] != '{' {
		return table(&p, text)
	}
	p.Keys(text, func(key, value []byte) bool {
		switch string(key) {
		case "schema":
			switch {
			case begins(value, `"dynamo.agentic_mooncake"`):
				format = AgenticMooncake
			case begins(value, `"dynamo.request.trace`):
				format = Dynamo
			}
		case "event_type", "event":
			format = Dynamo
		case "hash_id_scope": // of a header or of a Weka object
			scope = true
		case "models", "requests":
			format = Weka
		case "wait_for", "tool_wait_ms", "play_id":
			format = AgenticMooncake
		case "num_turns", "input_prompt_length", "tool_call_latency":
			format = AppliedCompute
		}
		return format == Auto
	})
	switch {
	case format == Auto && scope:
		return AgenticMooncake
	case format == Auto:
		return Mooncake
	}
	return format
}

// table tells a table by the names of its columns.
func table(p *trace.Parser, text []byte) Format {
	format := Mooncake
	p.Columns(text, func(name []byte) bool {
		switch string(name) {
		case "ContextTokens", "GeneratedTokens":
			format = Azure
		case "Request tokens", "Response tokens":
			format = BurstGPT
		}
		return format == Mooncake
	})
	return format
}

func begins(text []byte, with string) bool {
	return strings.HasPrefix(string(text[:min(len(text), len(with))]), with)
}
