package gen

import "fmt"

// dynamo gives the case a Dynamo request trace, in up to three files.
func (c *ReplayCase) dynamo(r *Rand) {
	k := c.Kwargs
	d := &requestTrace{r: r, names: newIDs(r), agents: r.Chance(0.7), tight: r.Chance(0.3)}
	d.size, _ = k["trace_block_size"].(int)
	d.most = max(1, min(c.pool()*2/3, 250))
	if r.Chance(0.7) {
		delete(k, "trace_block_size")
	}
	if d.agents {
		if !r.Chance(0.02) {
			delete(k, "replay_concurrency")
		}
		if !r.Chance(0.02) {
			k["execution_model"] = "m"
		}
		if r.Chance(0.4) {
			k["agentic_lanes"] = r.Between(1, 3)
		}
	} else if r.Chance(0.02) {
		k["agentic_lanes"] = 1
	}
	d.make()
	if r.Chance(0.08) {
		d.spoil()
	}
	shuffle(r, d.records)
	c.Kwargs["trace_format"] = "dynamo"
	c.Rows, c.Docs, c.Files = nil, nil, nil
	shards := pick(r, 1, 1, 2, 3)
	for i := range shards {
		name := fmt.Sprintf("part-%d.jsonl%s", i, pick(r, "", "", ".gz"))
		doc := Doc{Name: name, Lines: []string{}}
		for j, record := range d.records {
			if j%shards == i {
				if r.Chance(0.1) {
					record = map[string]any{"event": record, "x": 1}
				}
				doc.Lines = append(doc.Lines, lines([]map[string]any{record})...)
			}
			if r.Chance(0.04) {
				doc.Lines = append(doc.Lines, pick(r, "", "[1]", "7", "null", `{"event_type":"request_payload","request":{"anything":[]}}`, `{"event":{"event_type":"tool_start"}}`))
			}
		}
		c.Docs, c.Files = append(c.Docs, doc), append(c.Files, name)
	}
}

// requestTrace is a Dynamo trace being made.
type requestTrace struct {
	r       *Rand
	size    int // tokens per hash
	most    int // longest prompt
	names   *ids
	agents  bool
	tight   bool // requests of a session may overlap
	plans   []prompt
	talks   []talk
	records []map[string]any
}

// talk is a session: who called it, and its requests.
type talk struct {
	name, parent string
	at           []span
}

// span is a request: its id and Unix times in ms.
type span struct {
	id         string
	start, end int
}

// make makes sessions that call each other, and requests in them.
func (d *requestTrace) make() {
	r := d.r
	base := pick(r, 0, 1000, 1700000000000)
	for i := range r.Between(1, 5) {
		t := talk{name: fmt.Sprintf("%s%d", pick(r, "S", "s/", "Z"), i)}
		clock := base + r.Between(0, 300)
		if i > 0 && r.Chance(0.7) {
			parent := d.talks[r.Intn(len(d.talks))]
			t.parent = parent.name
			around := parent.at[r.Intn(len(parent.at))]
			clock = max(base, pick(r, around.start, around.end, around.start+r.Between(0, 60), around.end+r.Between(0, 60), around.start-r.Between(0, 30)))
		}
		for range r.Between(1, 5) {
			length := pick(r, 0, 5, r.Between(1, 80))
			t.at = append(t.at, span{fmt.Sprintf("%s%d/%s", pick(r, "r", "a", "z"), r.Intn(1000)*8+len(t.at), t.name), clock, clock + length})
			clock += length + pick(r, 0, 1, r.Between(0, 100))
			if d.tight && r.Chance(0.1) {
				clock -= r.Between(0, length)
			}
		}
		d.talks = append(d.talks, t)
	}
	for i := range d.talks {
		for _, s := range d.talks[i].at {
			d.records = append(d.records, d.request(&d.talks[i], s))
		}
	}
	if d.agents {
		d.dependencies()
		d.tools()
	}
}

// request is the record of a request.
func (d *requestTrace) request(t *talk, s span) map[string]any {
	r := d.r
	p := prompt{tokens: r.Between(1, d.most)}
	if len(d.plans) > 0 && r.Chance(0.7) {
		old := d.plans[r.Intn(len(d.plans))]
		p.ids = append(p.ids, old.ids[:r.Between(0, len(old.ids))]...)
	}
	need := (p.tokens + d.size - 1) / d.size
	if !d.agents && r.Chance(0.05) {
		need++
	}
	for len(p.ids) < need {
		p.ids = append(p.ids, d.names.fresh())
	}
	p.ids = p.ids[:need]
	d.plans = append(d.plans, p)
	request := map[string]any{
		"request_id": s.id, "output_tokens": pick(r, 0, 1, 2, r.Between(1, 12), r.Between(5, 40)), "input_tokens": p.tokens,
		"replay": map[string]any{"trace_block_size": d.size, "input_length": p.tokens, "input_sequence_hashes": p.ids},
	}
	event := s.end + pick(r, 0, 0, 3)
	if !r.Chance(0.1) {
		request["request_received_ms"] = s.start
	} else {
		event = s.end // or the request moves
	}
	if !r.Chance(0.1) {
		request["total_time_ms"] = float64(s.end-s.start) + pick(r, 0, 0, 0.25, 0.5, -0.25)
		if s.end == s.start {
			request["total_time_ms"] = 0.25
		}
	}
	if !r.Chance(0.1) {
		request["model"] = pick[any](r, "m", "m", "n", nil)
	}
	record := map[string]any{
		"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": event, "request": request,
	}
	if d.agents {
		context := map[string]any{"session_id": t.name, "session_type_id": "x"}
		if t.parent != "" && !r.Chance(0.1) {
			context["parent_session_id"] = t.parent
		}
		record["agent_context"] = context
	} else if r.Chance(0.1) {
		record["agent_context"] = nil
	}
	return record
}

// dependencies names some of what requests waited for.
func (d *requestTrace) dependencies() {
	r := d.r
	if !r.Chance(0.4) {
		return
	}
	var all []span
	for _, t := range d.talks {
		all = append(all, t.at...)
	}
	for i := range d.records {
		if !r.Chance(0.3) {
			continue
		}
		var deps []any
		for range r.Between(0, 2) {
			on := all[r.Intn(len(all))]
			if on.start >= all[i].start && !r.Chance(0.1) {
				continue // mostly no cycles
			}
			dep := map[string]any{"request_id": on.id, "trigger": "completion", "relation": pick(r, "sequence", "spawn", "join", "replay_barrier")}
			if r.Chance(0.3) {
				dep["trigger"], dep["relation"] = "dispatch", "spawn"
			}
			deps = append(deps, dep)
		}
		d.records[i]["request"].(map[string]any)["replay"].(map[string]any)["dependencies"] = append([]any{}, deps...)
	}
}

// tools records some of the calls.
func (d *requestTrace) tools() {
	r := d.r
	if !r.Chance(0.6) {
		return
	}
	for _, child := range d.talks {
		for _, parent := range d.talks {
			if parent.name != child.parent && !r.Chance(0.03) || !r.Chance(0.6) {
				continue
			}
			from := r.Intn(len(parent.at))
			for from > 0 && parent.at[from].start > child.at[0].start && !r.Chance(0.05) {
				from--
			}
			claude := map[string]any{"source_request_id": parent.at[from].id, "execution_mode": pick(r, "blocking", "background")}
			if !r.Chance(0.1) {
				claude["child_session_id"] = child.name
			}
			if r.Chance(0.7) {
				claude["consumer_request_id"] = parent.at[r.Between(from, len(parent.at)-1)].id
			}
			tool := map[string]any{"tool_call_id": fmt.Sprint("t", r.Intn(50)), "tool_class": "agent", "claude": claude}
			if r.Chance(0.7) {
				tool["started_at_unix_ms"], tool["ended_at_unix_ms"] = 5, pick[any](r, 6, nil)
			}
			record := map[string]any{
				"schema": "dynamo.request.trace.v1", "event_type": pick(r, "tool_end", "tool_end", "tool_error"), "event_time_unix_ms": 5, "tool": tool,
				"agent_context": map[string]any{"session_id": parent.name},
			}
			switch r.Intn(20) {
			case 0:
				delete(record, "agent_context")
			case 1:
				delete(record, "tool")
			case 2:
				tool["claude"] = nil
			}
			d.records = append(d.records, record)
		}
	}
}

// spoil breaks one rule.
func (d *requestTrace) spoil() {
	r := d.r
	record := d.records[r.Intn(len(d.records))]
	request, _ := record["request"].(map[string]any)
	if request == nil {
		record["event_type"] = "request_end"
		return
	}
	replay := request["replay"].(map[string]any)
	switch r.Intn(14) {
	case 0:
		delete(record, pick(r, "schema", "event_type", "event_time_unix_ms", "request"))
	case 1:
		delete(request, pick(r, "request_id", "output_tokens", "replay"))
	case 2:
		delete(replay, pick(r, "trace_block_size", "input_length", "input_sequence_hashes"))
	case 3:
		replay["trace_block_size"] = d.size + 1
	case 4:
		request["request_id"] = d.talks[0].at[0].id
	case 5:
		if d.agents {
			delete(record, "agent_context")
		} else {
			record["agent_context"] = map[string]any{"session_id": "x"}
		}
	case 6:
		record["schema"] = "other"
	case 7:
		record["event_type"] = "other"
	case 8:
		replay["input_sequence_hashes"] = []int{}
	case 9:
		replay["input_length"] = pick[any](r, 0, -1, 1.5)
	case 10:
		request["total_time_ms"] = -3
	case 11:
		if context, ok := record["agent_context"].(map[string]any); ok {
			context["parent_session_id"] = pick(r, "nobody", "", d.talks[0].name)
		}
	case 12:
		replay["dependencies"] = []any{map[string]any{"request_id": "nobody", "trigger": "completion", "relation": "join"}}
	case 13:
		request["request_id"] = " "
	}
}
