package gen

import (
	"encoding/json"
	"fmt"
)

// formatsCase is a case of the mixture of engines with a trace in another
// format than Mooncake. One in about fifteen breaks a rule of its format.
func formatsCase(seed uint64) (*ReplayCase, error) {
	r := NewRand(seed ^ 0xF0837A75)
	kind := r.Intn(7)
	// Increments need sessions, which not every case has.
	base := seed
	if kind == 0 {
		for base = seed << 5; !hasSessions(Case(base)); base++ {
		}
	}
	c, err := FamilyCase(base, "any")
	if err != nil {
		return nil, err
	}
	c.Name = fmt.Sprintf("formats-%d", seed)
	if c.Kwargs["arrival_speedup_ratio"] == 0 { // a spoilt Mooncake trace
		delete(c.Kwargs, "arrival_speedup_ratio")
	}
	if r.Chance(0.7) { // conversations grow
		c.Engine()["num_gpu_blocks"] = c.Engine()["num_gpu_blocks"].(int) * r.Between(2, 6)
	}
	switch kind {
	case 0:
		c.Kwargs["trace_format"] = pick(r, "mooncake-delta", "mooncake_delta")
	case 1:
		c.applied(r)
	case 2:
		c.agentic(r)
	case 3, 4:
		c.dynamo(r)
	default:
		c.weka(r)
	}
	return c, nil
}

func hasSessions(c *ReplayCase) bool {
	seen := map[string]bool{}
	for _, row := range c.Rows {
		if row.SessionID != nil {
			if seen[*row.SessionID] {
				return true
			}
			seen[*row.SessionID] = true
		}
	}
	return false
}

// pool is the tokens the engine's KV pool holds.
func (c *ReplayCase) pool() int {
	size, _ := c.Engine()["block_size"].(int)
	blocks, _ := c.Engine()["num_gpu_blocks"].(int)
	return size * blocks
}

// use replaces the trace by lines in one file.
func (c *ReplayCase) use(format string, rows []map[string]any) {
	c.Kwargs["trace_format"] = format
	c.Rows = nil
	c.Docs = []Doc{{Name: "lines.jsonl", Lines: lines(rows)}}
	c.Files = []string{"lines.jsonl"}
}

func lines(rows []map[string]any) []string {
	var list []string
	for _, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			panic(fmt.Sprintf("gen: a row does not marshal: %v", err))
		}
		list = append(list, string(text))
	}
	return list
}

// applied gives the case Applied Compute conversations.
func (c *ReplayCase) applied(r *Rand) {
	k := c.Kwargs
	if k["replay_concurrency"] == nil && !r.Chance(0.03) {
		k["replay_concurrency"] = pick(r, 1, 2, 3, r.Between(4, 10))
	}
	if r.Chance(0.5) {
		k["trace_shared_prefix_ratio"] = pick(r, 0, 0.5, 1, 0.3, r.Float64())
	}
	if r.Chance(0.6) {
		k["trace_num_prefix_groups"] = pick(r, 0, 1, 2, 3)
	}
	most := max(1, min(c.pool()/3, 150))
	var rows []map[string]any
	for range r.Between(1, 8) {
		turns := pick(r, 0, 1, 1, 2, 3, r.Between(2, 6))
		row := map[string]any{
			"num_turns": turns, "input_prompt_length": r.Between(1, most), "final_assistant_response_length": pick(r, 0, 1, r.Between(1, 20)),
			"assistant_response_length": list(turns, func() any { return pick(r, 0, 1, 2, r.Between(1, 25)) }),
			"tool_call_output_length":   list(turns, func() any { return pick(r, 0, 1, r.Between(1, most)) }),
			"tool_call_latency":         list(turns, func() any { return pick[any](r, 0, 0.01, 0.0125, 0.1, float64(r.Between(0, 640))/4096) }),
		}
		if r.Chance(0.05) {
			row["note"] = "ignored"
		}
		rows = append(rows, row)
	}
	if r.Chance(0.07) {
		row := rows[r.Intn(len(rows))]
		switch r.Intn(6) {
		case 0:
			row["num_turns"] = row["num_turns"].(int) + 1
		case 1:
			row["input_prompt_length"] = 0
		case 2:
			delete(row, pick(r, "num_turns", "input_prompt_length", "final_assistant_response_length", "assistant_response_length", "tool_call_latency"))
		case 3:
			row["tool_call_latency"] = list(row["num_turns"].(int), func() any { return -1 })
		case 4:
			k["trace_shared_prefix_ratio"] = 1.5
		case 5:
			row["input_prompt_length"] = 2.5
		}
	}
	c.use("applied_compute_agentic", rows)
}

// list is n items, never nil.
func list(n int, item func() any) []any {
	items := []any{}
	for range n {
		items = append(items, item())
	}
	return items
}
