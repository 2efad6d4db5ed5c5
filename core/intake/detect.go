package intake

import "github.com/dryserve/dryserve/core/trace"

// Detect tells the format by the beginning of a trace: the keys of its first
// object. What has none of the others' keys is taken for Mooncake, whose
// sentences then say what is wrong. Increments cannot be told from whole
// prompts.
func Detect(text []byte) Format {
	text = text[blanks(text):]
	format, scope := Auto, false
	var p trace.Parser
	if len(text) > 0 && text[0] != '{' {
		return detectTable(&p, text)
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

// detectTable tells a table by the names of its columns.
func detectTable(p *trace.Parser, text []byte) Format {
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
	return string(text[:min(len(text), len(with))]) == with
}

// blanks is how many white bytes a text begins with.
func blanks(text []byte) int {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// Single reports whether a file of this name is one object of a Weka trace,
// however many lines it has: its name ends in .json.
func Single(name string) bool {
	const suffix = ".json"
	if len(name) < len(suffix) {
		return false
	}
	for i, c := range []byte(name[len(name)-len(suffix):]) {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != suffix[i] {
			return false
		}
	}
	return true
}

// Tells reports whether text, the beginning of a file, is enough to tell the
// format by: a whole line, or Most bytes of what may be one object.
func Tells(text []byte, name string) bool {
	if len(text) >= Most {
		return true
	}
	if Single(name) {
		return false
	}
	for _, c := range text[blanks(text):] {
		if c == '\n' {
			return true
		}
	}
	return false
}

// Most is how much of a file is looked at to tell its format, in bytes.
const Most = 128 << 10
