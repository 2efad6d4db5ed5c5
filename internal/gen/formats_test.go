package gen

import (
	"strings"
	"testing"
)

// The formats and what they can say must all occur.
func TestFormatsCoverTheInputSpace(t *testing.T) {
	const cases = 1500
	count := map[string]int{}
	for seed := range uint64(cases) {
		c, err := FamilyCase(seed, "formats")
		if err != nil {
			t.Fatal(err)
		}
		format := strings.ReplaceAll(c.Kwargs["trace_format"].(string), "_", "-")
		var all strings.Builder
		for _, d := range c.Docs {
			all.Write(d.text())
		}
		text := all.String()
		has := func(parts ...string) bool {
			for _, part := range parts {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return true
		}
		lanes := c.Kwargs["agentic_lanes"] != nil
		seen := map[string]bool{format: true}
		switch format {
		case "applied-compute-agentic":
			seen["groups with a shared prefix"] = c.Kwargs["trace_num_prefix_groups"] != nil && c.Kwargs["trace_shared_prefix_ratio"] != nil
		case "agentic-mooncake":
			seen["lanes"], seen["ordinals"], seen["planned ids"] = lanes, has("source_play_ordinal"), has("output_token_ids")
			seen["spawned"], seen["joined"], seen["policies"] = has(`"spawn"`), has(`"join"`), has("policy_class")
		case "dynamo":
			agents := has(`"session_id"`)
			seen["requests alone"], seen["agents"], seen["agents in lanes"] = !agents, agents, agents && lanes
			seen["several shards"], seen["compressed"], seen["wrapped"] = len(c.Docs) > 1, strings.Contains(strings.Join(c.Files, " "), ".gz"), has(`"event":{`)
			seen["children"], seen["named dependencies"] = has("parent_session_id"), has(`"dependencies":[{`)
			seen["tools"], seen["background tools"], seen["consumers"] = has("tool_call_id"), has(`"background"`), has("consumer_request_id")
		case "weka":
			name := c.Docs[0].Name
			seen["directory"], seen["object"], seen["objects"] = strings.Contains(name, "/"), strings.HasSuffix(c.Files[0], ".json"), strings.HasSuffix(c.Files[0], ".jsonl")
			seen["subagents"], seen["subagents in the background"], seen["bases"] = has(`"completed"`), has(`"async_launched"`), c.Kwargs["weka_nested_timestamp_basis"] != nil
			seen["several models"], seen["microseconds"], seen["hours"] = has(`:"m"`, `:"k"`) || has(`: "k"`), has("0000005") || has("000001"), has("3600.") || has("4000.")
		}
		for name, yes := range seen {
			if yes {
				count[format+": "+name]++
			} else {
				count[format+": "+name] += 0
			}
		}
	}
	if len(count) < 32 {
		t.Errorf("only %d features, want all formats", len(count))
	}
	for name, n := range count {
		if n < cases/100 {
			t.Errorf("%q occurs in %d of %d cases, want at least one in a hundred", name, n, cases)
		}
	}
}
