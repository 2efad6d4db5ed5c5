package gen

import (
	"encoding/json"
	"fmt"
	"strings"
)

// weka gives the case a Weka trace: a file of one object, a file of several,
// or a directory of both.
func (c *ReplayCase) weka(r *Rand) {
	k := c.Kwargs
	if !r.Chance(0.02) {
		delete(k, "replay_concurrency")
	}
	if !r.Chance(0.02) {
		k["execution_model"] = "m"
	}
	if r.Chance(0.4) {
		k["agentic_lanes"] = r.Between(1, 3)
	}
	if r.Chance(0.3) {
		k["weka_nested_timestamp_basis"] = pick(r, "auto", "absolute", "relative", "relative")
	}
	w := &wekaTrace{r: r, relative: r.Chance(0.5), fine: r.Chance(0.4), mixed: r.Chance(0.3), hashes: pick(r, 3, 5, 9, 40)}
	w.size, _ = k["trace_block_size"].(int)
	w.most = max(1, min(c.pool()*2/3, 250))
	if r.Chance(0.7) {
		delete(k, "trace_block_size")
	}
	objects := []map[string]any{}
	for i := range pick(r, 1, 1, 1, 2, 3) {
		objects = append(objects, w.object(fmt.Sprintf("%s%d", pick(r, "w", "trace/", "é"), i)))
	}
	if r.Chance(0.07) {
		w.spoil(objects[r.Intn(len(objects))])
	}
	k["trace_format"] = "weka"
	c.Rows, c.Docs = nil, nil
	top := fmt.Sprintf("%s-weka", c.Name)
	switch {
	case len(objects) == 1 && r.Chance(0.7):
		c.Docs = []Doc{{Name: top + pick(r, ".json", ".json", ".JSON"), Lines: wekaText(r, objects[0])}}
		c.Files = []string{c.Docs[0].Name}
	case r.Chance(0.5):
		c.Docs = []Doc{{Name: top + ".jsonl", Lines: lines(objects)}}
		if r.Chance(0.2) {
			c.Docs[0].Lines = append([]string{"", " "}, c.Docs[0].Lines...)
		}
		c.Files = []string{c.Docs[0].Name}
	default:
		for i, o := range objects {
			name := top + "/" + pick(r, "", "a/", "a-b/", "z/") + fmt.Sprintf("%s%d", pick(r, "f", "g", ".h"), i)
			if r.Chance(0.3) {
				c.Docs = append(c.Docs, Doc{Name: name + ".jsonl", Lines: lines([]map[string]any{o})})
			} else {
				c.Docs = append(c.Docs, Doc{Name: name + ".json", Lines: wekaText(r, o)})
			}
		}
		if r.Chance(0.3) {
			c.Docs = append(c.Docs, Doc{Name: top + "/README.txt", Lines: []string{"no trace"}})
		}
		c.Files = []string{top}
	}
}

// wekaText is an object in one line or, indented, in several.
func wekaText(r *Rand, o map[string]any) []string {
	if r.Chance(0.6) {
		return lines([]map[string]any{o})
	}
	text, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		panic(fmt.Sprintf("gen: an object does not marshal: %v", err))
	}
	return strings.Split(string(text), "\n")
}

// wekaTrace is a Weka trace being made.
type wekaTrace struct {
	r        *Rand
	size     int // tokens per hash
	most     int // longest prompt
	hashes   int // different ones
	relative bool
	fine     bool // times that differ by a microsecond
	mixed    bool // requests are not in order
	plans    [][]any
	clock    float64 // seconds
}

func (w *wekaTrace) object(id string) map[string]any {
	r := w.r
	w.clock, w.plans = pick(r, 0, 0, 0, float64(r.Between(0, 4000))/1000), nil
	entries := []any{}
	for i := range r.Between(1, pick(r, 3, 6, 10)) {
		if i > 0 && r.Chance(0.3) {
			entries = append(entries, w.subagent())
		} else {
			entries = append(entries, w.request(w.clock))
		}
		w.clock += w.step()
	}
	if w.mixed {
		shuffle(r, entries[1:])
	}
	o := map[string]any{"id": id, "block_size": w.size, "hash_id_scope": "local", "requests": entries, "tool_tokens": 5}
	if r.Chance(0.7) {
		o["models"] = pick(r, []string{"m", "k"}, []string{}, []string{"k", "m", "other"})
	}
	return o
}

// step is the time to what comes next, in seconds.
func (w *wekaTrace) step() float64 {
	if w.fine && w.r.Chance(0.5) {
		return pick(w.r, 0, 5e-7, 1e-6, 2e-6)
	}
	if w.r.Chance(0.05) {
		return pick(w.r, 3600, 3599.9, 4000)
	}
	return pick(w.r, 0, 0.01, 0.05, 0.1, 0.3, float64(w.r.Between(0, 500))/1000)
}

func (w *wekaTrace) request(at float64) map[string]any {
	r := w.r
	ids := []any{}
	if len(w.plans) > 0 && r.Chance(0.75) {
		old := w.plans[r.Intn(len(w.plans))]
		ids = append(ids, old[:r.Between(0, len(old))]...)
	}
	for range pick(r, 0, 1, 1, 2, 3) {
		ids = append(ids, r.Between(1, w.hashes))
	}
	w.plans = append(w.plans, ids)
	in := len(ids) * w.size
	switch r.Intn(6) {
	case 0:
		in += r.Between(1, w.size)
	case 1:
		in -= r.Between(1, w.size)
	}
	q := map[string]any{
		"type": pick(r, "n", "s"), "t": round7(at), "model": pick(r, "m", "m", "m", "m", "k"),
		"in": max(1, min(in, w.most)), "out": pick(r, 1, 2, r.Between(1, 20), r.Between(1, 20), 0, 64, 65), "hash_ids": ids,
	}
	if len(ids) == 0 && r.Chance(0.5) {
		delete(q, "hash_ids")
	}
	switch r.Intn(8) {
	case 0:
	case 1:
		q["api_time"] = nil
	case 2:
		q["api_time"] = pick(r, 0, 1e-7, 1e-6)
	default:
		q["api_time"] = pick(r, 0.01, 0.05, 0.1, 0.2, 0.5, float64(r.Between(0, 300))/1000)
	}
	return q
}

func (w *wekaTrace) subagent() map[string]any {
	r := w.r
	requests := []any{}
	at := w.clock
	if w.relative {
		at = 0
	}
	if r.Chance(0.05) {
		at = max(0, at-pick(r, 5e-7, 1e-6, 2e-6, 0.01))
	}
	for range pick(r, 0, 1, 1, 2, 2, 3, 4) {
		requests = append(requests, w.request(at))
		at += w.step()
	}
	s := map[string]any{
		"type": "subagent", "t": round7(w.clock), "agent_id": pick(r, "sa", "sb", "a:b"), "subagent_type": pick(r, "", "explore"),
		"status": pick(r, "completed", "async_launched"), "requests": requests,
	}
	if len(requests) == 0 && !r.Chance(0.02) {
		s["status"] = "async_launched"
	}
	if r.Chance(0.7) {
		s["duration_ms"] = pick[any](r, nil, 0, 10, 60, 200, 500, r.Between(0, 1000))
	}
	return s
}

// round7 is seconds without what adding floats leaves behind.
func round7(s float64) json.Number { return json.Number(fmt.Sprintf("%.7f", s)) }

// spoil breaks one rule.
func (w *wekaTrace) spoil(o map[string]any) {
	r := w.r
	entries := o["requests"].([]any)
	e := entries[r.Intn(len(entries))].(map[string]any)
	switch r.Intn(8) {
	case 0:
		delete(o, pick(r, "id", "block_size", "hash_id_scope", "requests"))
	case 1:
		o[pick(r, "id", "hash_id_scope")] = pick(r, "", " ", "global")
	case 2:
		o["models"] = []string{"other"}
	case 3:
		o["block_size"] = pick[any](r, 0, w.size+1, 2.5)
	case 4:
		delete(e, pick(r, "type", "t", "model", "in", "out", "agent_id", "status", "subagent_type"))
	case 5:
		e[pick(r, "t", "in", "api_time", "duration_ms")] = pick[any](r, -1, "x", 1.5, nil)
	case 6:
		entries[0] = w.subagent()
	default:
		e["requests"] = []any{w.subagent()}
	}
}
