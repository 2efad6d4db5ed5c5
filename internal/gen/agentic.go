package gen

import (
	"encoding/json"
	"fmt"
)

// agentic gives the case an agentic Mooncake trace.
func (c *ReplayCase) agentic(r *Rand) {
	k := c.Kwargs
	if !r.Chance(0.02) {
		delete(k, "replay_concurrency")
	}
	if !r.Chance(0.02) {
		k["execution_model"] = pick(r, "m", "another model")
	}
	if r.Chance(0.45) {
		k["agentic_lanes"] = r.Between(1, 4)
	}
	size, _ := k["trace_block_size"].(int)
	if r.Chance(0.5) {
		delete(k, "trace_block_size") // the header says it
	}
	a := &agents{r: r, size: size, most: max(1, min(c.pool()*2/3, 250)), names: newIDs(r)}
	if r.Chance(0.1) {
		a.most = c.pool() + size
	}
	plays := r.Between(1, 4)
	ordinals := r.Chance(0.3)
	order := make([]int, plays)
	for i := range order {
		order[i] = i
	}
	shuffle(r, order)
	for i := range plays {
		a.play(fmt.Sprintf("%s%d", pick(r, "P", "play-", "q\"é"), r.Intn(1000)*plays+i), order[i], ordinals)
	}
	shuffle(r, a.rows)
	header := map[string]any{
		"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": size, "hash_id_scope": "local",
		"source": map[string]any{"format": "gen", "digest": fmt.Sprint(r.Intn(100))},
	}
	if r.Chance(0.07) {
		a.spoil(header)
	}
	c.use("agentic_mooncake", append([]map[string]any{header}, a.rows...))
	if r.Chance(0.1) {
		c.Docs[0].Lines = append([]string{""}, append(c.Docs[0].Lines, " ")...)
	}
}

// agents is an agentic trace being made.
type agents struct {
	r     *Rand
	size  int // tokens per hash id
	most  int // longest prompt
	names *ids
	plans []prompt
	rows  []map[string]any
}

// play adds the requests of one play; each may wait for earlier ones.
func (a *agents) play(id string, ordinal int, ordinals bool) {
	r := a.r
	clock := pick(r, 0, 0, float64(r.Between(0, 500)))
	var names []string
	for i := range r.Between(1, 8) {
		name := fmt.Sprintf("%s%d/%s.%d", pick(r, "", "a", "z"), r.Intn(100), id, i)
		row := map[string]any{
			"request_id": name, "play_id": id, "session_id": fmt.Sprintf("s%d", r.Intn(3)), "model": pick(r, "m", "m", "n"),
			"not_before_ms": pick(r, 0, clock, clock, float64(r.Between(0, 4000))/16),
		}
		clock += pick(r, 0, 5, float64(r.Between(0, 40)))
		if ordinals {
			row["source_play_ordinal"] = ordinal
		}
		a.prompt(row)
		if deps := a.dependencies(names, i); deps != nil || r.Chance(0.5) {
			row["dependencies"] = append([]any{}, deps...)
		}
		a.extras(row)
		names = append(names, name)
		a.rows = append(a.rows, row)
	}
}

// prompt gives a row its prompt and its output.
func (a *agents) prompt(row map[string]any) {
	r := a.r
	p := prompt{tokens: r.Between(1, a.most)}
	if len(a.plans) > 0 && r.Chance(0.7) {
		old := a.plans[r.Intn(len(a.plans))]
		p.ids = append(p.ids, old.ids[:r.Between(0, len(old.ids))]...)
		if r.Chance(0.3) {
			p.tokens = max(1, min(p.tokens, len(p.ids)*a.size))
		}
	}
	need := (p.tokens + a.size - 1) / a.size
	for len(p.ids) < need {
		p.ids = append(p.ids, a.names.fresh())
	}
	p.ids = p.ids[:need]
	a.plans = append(a.plans, p)
	output := pick(r, 0, 1, 2, r.Between(1, 12), r.Between(5, 40))
	row["hash_ids"] = p.ids
	row[pick(r, "input_length", "input_length", "input_tokens")] = p.tokens
	row[pick(r, "output_length", "output_length", "output_tokens")] = output
	if r.Chance(0.05) {
		row["output_token_ids"] = list(output, func() any { return r.Intn(4) })
	}
}

// dependencies are what request number i of a play waits for.
func (a *agents) dependencies(names []string, i int) []any {
	r := a.r
	if i == 0 || r.Chance(0.15) {
		return nil
	}
	var deps []any
	for range pick(r, 1, 1, 2, 3) {
		d := map[string]any{"request_id": names[r.Intn(len(names))], "delay_ms": pick(r, 0, 1, 2.5, float64(r.Between(0, 600))/16)}
		switch r.Intn(3) {
		case 0:
			d["trigger"], d["relation"] = "dispatch", "spawn"
		default:
			d["trigger"], d["relation"] = "completion", pick(r, "sequence", "spawn", "join", "replay_barrier")
		}
		deps = append(deps, d)
		if r.Chance(0.1) {
			deps = append(deps, d)
		}
	}
	return deps
}

// extras adds what changes no time.
func (a *agents) extras(row map[string]any) {
	r := a.r
	if r.Chance(0.1) {
		row["recorded_api_time_ms"] = pick[any](r, 0, 12.5, nil)
	}
	if r.Chance(0.1) {
		row["priority"], row["strict_priority"] = r.Between(-3, 3), r.Intn(3)
	}
	if r.Chance(0.1) {
		row["policy_class"] = pick[any](r, "gold", "b", nil)
	}
	if r.Chance(0.05) {
		row["replay_key"] = "k"
	}
	if r.Chance(0.05) {
		row["timestamp"] = 5
	}
}

// spoil breaks one rule.
func (a *agents) spoil(header map[string]any) {
	r := a.r
	row := a.rows[r.Intn(len(a.rows))]
	switch r.Intn(14) {
	case 0:
		header["version"] = pick(r, 1, 3)
	case 1:
		delete(header, pick(r, "schema", "version", "block_size", "hash_id_scope", "source"))
	case 2:
		header["block_size"] = pick(r, 0, a.size+1)
	case 3:
		row["request_id"] = a.rows[r.Intn(len(a.rows))]["request_id"]
		if len(a.rows) == 1 {
			row["request_id"] = " "
		}
	case 4:
		row["dependencies"] = []any{map[string]any{"request_id": row["request_id"], "trigger": "completion", "relation": "join", "delay_ms": 0}}
	case 5:
		row["dependencies"] = []any{map[string]any{"request_id": "nobody", "trigger": "completion", "relation": "join", "delay_ms": 0}}
	case 6:
		row["dependencies"] = []any{map[string]any{"request_id": a.rows[0]["request_id"], "trigger": "dispatch", "relation": "join", "delay_ms": 0}}
	case 7:
		delete(row, pick(r, "request_id", "play_id", "session_id", "model", "hash_ids", "not_before_ms"))
	case 8:
		row["not_before_ms"] = -1
	case 9:
		row["hash_ids"] = append([]uint64{7}, row["hash_ids"].([]uint64)...)
	case 10:
		row["source_play_ordinal"] = 77
	case 11:
		row["session_id"] = pick(r, "", "  ")
	case 12: // everybody waits for everybody
		for i := range a.rows {
			a.rows[i]["play_id"] = "one"
			a.rows[i]["dependencies"] = []any{map[string]any{
				"request_id": a.rows[(i+1)%len(a.rows)]["request_id"], "trigger": "completion", "relation": "sequence", "delay_ms": 0,
			}}
		}
	case 13:
		text, _ := json.Marshal(row)
		row["dependencies"] = string(text)
	}
}
