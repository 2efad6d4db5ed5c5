package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// routedCase is a recorded run behind the KV router. The reference has a
// canonical mode whose lots are seeded, and ordinary runs whose lots are not;
// of the cases it has recorded from ordinary runs only, each of the two
// recordings is met with some seed.
type routedCase struct {
	name           string
	canonical      bool   // only that one can be compared with: lots are drawn by two routers
	report, record string // --router-seed for api-1.6.1; "": it does not matter, or canonical-1.6.1 is there
}

var routedCases = []routedCase{
	{name: "kv_1w_error"}, {name: "kv_2w"}, {name: "kv_2w_queue_wspt"}, {name: "kv_sglang_2w"},
	{name: "kv_dp2", report: "2", record: "1"},
	{name: "kv_concurrency2", report: "0", record: "1"},
	{name: "kv_event_lag_161", report: "0", record: "7"},
	{name: "pd_vllm_kv_2p2d", canonical: true},
	{name: "pd_sglang_kv_2p2d", canonical: true},
}

func TestGoldenRouted(t *testing.T) {
	one, _ := filepath.Glob(goldens + "/kv_*")
	two, _ := filepath.Glob(goldens + "/pd_*_kv_*")
	if n := len(one) + len(two); n != len(routedCases) {
		t.Errorf("%d recorded cases, %d are tested", n, len(routedCases))
	}
	for _, c := range routedCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			api, canonical := filepath.Join(goldens, c.name, "api-1.6.1"), filepath.Join(goldens, c.name, "canonical-1.6.1")
			run := func(golden, seed string) (report, requests string) {
				args := routedFlags(t, filepath.Join(golden, "case.json"))
				if seed != "" {
					args = append(args, "--router-seed", seed)
				}
				for name, more := range map[string][]string{"r": nil, "wasm": sandbox} {
					ok(t, invoke(t, dir, append(append(args, "--report-json", name+".json", "--report-jsonl", name+".jsonl"), more...)...))
				}
				sameBytes(t, dir, "r", "wasm")
				return filepath.Join(dir, "r.json"), filepath.Join(dir, "r.jsonl")
			}
			if _, err := os.Stat(canonical); err == nil {
				report, requests := run(canonical, "")
				compareCanonical(t, report, requests, filepath.Join(canonical, "report.json"))
				compareRouted(t, requests, filepath.Join(canonical, "requests.jsonl"), true)
			} else if c.report == "" {
				t.Fatal("nothing to compare with")
			}
			if c.canonical {
				return
			}
			report, _ := run(api, c.report)
			compareReport(t, report, filepath.Join(api, "report.json"))
			if c.record != "" {
				_, requests := run(api, c.record)
				compareRouted(t, requests, filepath.Join(api, "requests.jsonl"), false)
			}
		})
	}
}

// routedFlags turns a recorded call, of either kind, into flags and the trace.
func routedFlags(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Engine, Prefill, Decode json.RawMessage
		Options, Kwargs         map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	trace, err := filepath.Abs(filepath.Join(filepath.Dir(path), "..", "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{trace}
	switch {
	case c.Options == nil:
		c.Options = c.Kwargs
	case c.Prefill != nil && string(c.Prefill) != "null":
		args = append(args, "--prefill-engine-args", string(c.Prefill), "--decode-engine-args", string(c.Decode))
	default:
		args = append(args, "--extra-engine-args", string(c.Engine))
	}
	for key, raw := range c.Options {
		args = append(args, "--"+strings.ReplaceAll(key, "_", "-"), strings.Trim(string(raw), `"`))
	}
	return args
}

// compareCanonical compares a report with one of the canonical mode, which
// keeps requests and so sums the samples in the order of their ids.
func compareCanonical(t *testing.T, gotPath, requestsPath, wantPath string) {
	t.Helper()
	got := readJSON(t, gotPath)
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, r := range readLines(t, requestsPath) { // in order of arrival, here that of the ids
		for key, field := range map[string]string{"ttft": "ttft_ms", "ttst": "ttst_ms", "tpot": "itl_ms", "e2e_latency": "e2e_latency_ms"} {
			if x, is := r[field].(float64); is {
				sums[key] += x
				counts[key]++
			}
		}
	}
	for key, sum := range sums {
		name := "mean_" + key + "_ms"
		ours, _ := got[name].(float64)
		mean := sum / counts[key]
		if math.Abs(ours-mean) > 1e-13*mean {
			t.Errorf("%s: %v, the mean of the requests is %v", name, ours, mean)
		}
		got[name] = mean
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	summed := gotPath + ".summed"
	if err := os.WriteFile(summed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	compareReport(t, summed, wantPath)
}

func readLines(t *testing.T, path string) (lines []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, m)
	}
	return lines
}

// spelled are the lines of requests in order, edited, without nulls, and with
// histories of admission only where there is something to see.
func spelled(t *testing.T, path string, edit func(m map[string]any)) (out []string) {
	t.Helper()
	for _, m := range readLines(t, path) {
		if m["readmission_count"] == 0.0 {
			delete(m, "admission_history")
		}
		edit(m)
		withoutNulls(m)
		text, err := json.Marshal(m) // sorted keys
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// compareRouted compares the lines of requests, routing and all. The recorded
// ones have no nulls and histories of admission only where there is something to
// see; those of ordinary runs count workers by their first request and do not tell
// ranks apart.
func compareRouted(t *testing.T, gotPath, wantPath string, canonical bool) {
	t.Helper()
	spell := func(path string) []string {
		number, count := map[[2]any]float64{}, map[any]float64{} // by pool
		return spelled(t, path, func(m map[string]any) {
			if id, is := m["uuid"].(string); is { // as the canonical mode writes ids
				low := strings.ReplaceAll(id[19:], "-", "")
				n := 0.0
				for _, c := range low {
					n = n*16 + float64(strings.IndexRune("0123456789abcdef", c))
				}
				m["uuid"] = n
			}
			if !canonical {
				delete(m, "uuid")
			}
			for _, h := range m["routing_history"].([]any) {
				h := h.(map[string]any)
				withoutNulls(h)
				if !canonical {
					delete(h, "dp_rank")
					delete(h, "logical_worker_id")
					pool, field := h["pool"], "decode_worker_idx"
					if pool == "prefill" {
						field = "prefill_worker_idx"
					}
					if _, old := number[[2]any{pool, h["scheduler_id"]}]; !old {
						number[[2]any{pool, h["scheduler_id"]}] = count[pool]
						count[pool]++
					}
					h["scheduler_id"] = number[[2]any{pool, h["scheduler_id"]}]
					m[field] = number[[2]any{pool, m[field]}]
				}
			}
		})
	}
	got, want := spell(gotPath), spell(wantPath)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("got  %s\nwant %s", got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// compareUnplaced compares the lines of requests but for where they went, which
// the lots of two routers have decided in the recorded run.
func compareUnplaced(t *testing.T, gotPath, wantPath string) {
	t.Helper()
	spell := func(path string) []string {
		return spelled(t, path, func(m map[string]any) {
			for _, key := range []string{"uuid", "prefill_worker_idx", "decode_worker_idx", "routing_history"} {
				delete(m, key)
			}
		})
	}
	if got, want := spell(gotPath), spell(wantPath); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func withoutNulls(m map[string]any) {
	for key, v := range m {
		if v == nil {
			delete(m, key)
		}
	}
}

// Before one worker the KV router is as good as none, whatever the prompts are
// made of.
func TestOneRoutedWorker(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"delta_*", "agentic_*", "applied_*", "dynamo_*", "syn_*", "session_*", "mc_output_token_ids"} {
		cases, err := filepath.Glob(filepath.Join(goldens, pattern, "api-1.6.1", "case.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range cases {
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "num_decode_workers") {
				continue // two of them, in a pool
			}
			seen++
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(path))), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				args, _ := flagsOf(t, path)
				args = append(args, "--num-workers", "1", "--router-mode")
				ok(t, invoke(t, dir, append(args, "round_robin", "--report-json", "turn.json")...))
				ok(t, invoke(t, dir, append(args, "kv_router", "--report-json", "routed.json")...))
				turn, routed := readJSON(t, filepath.Join(dir, "turn.json")), readJSON(t, filepath.Join(dir, "routed.json"))
				for _, key := range wallKeys {
					delete(turn, key)
					delete(routed, key)
				}
				if !reflect.DeepEqual(turn, routed) {
					t.Errorf("in turn %v\nrouted %v", turn, routed)
				}
			})
		}
	}
	if seen < 20 {
		t.Errorf("only %d cases", seen)
	}
}
