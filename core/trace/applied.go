package trace

// AppliedRow is one conversation of an Applied Compute trace (replay notes
// §3.5). Slices alias the parser's buffers and are valid until the next row.
type AppliedRow struct {
	Turns          int64     // with a tool call each; one more follows
	Prompt         int64     // tokens
	Responses      []uint64  // tokens, by turn
	ToolOutputs    []uint64  // tokens, by turn
	ToolLatenciesS []float64 // by turn
	Final          int64     // tokens
}

// AppliedRow reads a line.
func (p *Parser) AppliedRow(line []byte, r *AppliedRow) Fault {
	*r = AppliedRow{Turns: -1, Prompt: -1, Final: -1}
	const most = 1<<63 - 1
	ok := p.whole0(line, appliedField, func(i int, f Field) int {
		switch f {
		case NumTurns:
			return p.whole(line, i, f, most, &r.Turns)
		case PromptLength:
			return p.whole(line, i, f, most, &r.Prompt)
		case FinalResponse:
			return p.whole(line, i, f, most, &r.Final)
		case Responses:
			p.hash, i = p.list(line, i, f, most, p.hash[:0])
			r.Responses = present(p.hash)
			return i
		case ToolOutputs:
			p.wide, i = p.list(line, i, f, most, p.wide[:0])
			r.ToolOutputs = present(p.wide)
			return i
		}
		p.floats = p.floats[:0]
		i = p.items(line, i, f, func(i int) int {
			var v float64
			end := p.float(line, i, f, &v)
			p.floats = append(p.floats, v)
			return end
		})
		if r.ToolLatenciesS = p.floats; r.ToolLatenciesS == nil {
			r.ToolLatenciesS = []float64{}
		}
		return i
	})
	if !ok {
		return p.fault
	}
	for _, need := range []struct {
		field  Field
		absent bool
	}{
		{NumTurns, r.Turns < 0}, {PromptLength, r.Prompt < 0}, {Responses, r.Responses == nil}, {ToolOutputs, r.ToolOutputs == nil},
		{ToolLatencies, r.ToolLatenciesS == nil}, {FinalResponse, r.Final < 0},
	} {
		if need.absent {
			return Fault{Code: Missing, Field: need.field}
		}
	}
	return Fault{}
}

func appliedField(key []byte) Field {
	switch string(key) {
	case "num_turns":
		return NumTurns
	case "input_prompt_length":
		return PromptLength
	case "assistant_response_length":
		return Responses
	case "tool_call_output_length":
		return ToolOutputs
	case "tool_call_latency":
		return ToolLatencies
	case "final_assistant_response_length":
		return FinalResponse
	}
	return NoField
}
