package coretest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const goldens = root + "/testdata/replay"

// recorded is a recorded call of one of the reference's functions.
type recorded struct {
	Files             []string
	Synthetic, Kwargs map[string]any
}

// places are where a recorded argument stands in a scenario.
var places = map[string]string{
	"trace_block_size": "workload.traceBlockSize", "replay_concurrency": "workload.concurrency", "arrival_speedup_ratio": "workload.arrivalSpeedup",
	"trace_format": "workload.format", "num_workers": "numWorkers", "num_prefill_workers": "numPrefillWorkers", "num_decode_workers": "numDecodeWorkers",
	"max_sim_time_ms": "maxSimTimeMs", "sla_ttft_ms": "sla.ttftMs", "sla_itl_ms": "sla.itlMs", "sla_e2e_ms": "sla.e2eMs", "router_mode": "router.mode", "router_config": "router.config",
	"kv_event_lag_ms": "router.kvEventLagMs", "input_tokens": "workload.inputTokens", "output_tokens": "workload.outputTokens", "request_count": "workload.requestCount",
	"request_rate": "workload.requestRate", "arrival_seed": "workload.arrivalSeed", "arrival_interval_ms": "workload.arrivalIntervalMs",
	"turns_per_session": "workload.turnsPerSession", "inter_turn_delay_ms": "workload.interTurnDelayMs", "shared_prefix_ratio": "workload.sharedPrefixRatio",
	"num_prefix_groups": "workload.numPrefixGroups", "agentic_lanes": "workload.agenticLanes", "execution_model": "workload.executionModel",
	"trace_shared_prefix_ratio": "workload.traceSharedPrefixRatio", "trace_num_prefix_groups": "workload.traceNumPrefixGroups",
	"weka_nested_timestamp_basis": "workload.wekaNestedTimestampBasis",
}

// put sets the value at a place of a scenario.
func put(scenario map[string]any, place string, value any) {
	keys := strings.Split(place, ".")
	for _, k := range keys[:len(keys)-1] {
		if scenario[k] == nil {
			scenario[k] = map[string]any{}
		}
		scenario = scenario[k].(map[string]any)
	}
	scenario[keys[len(keys)-1]] = value
}

// engine is canonical engine arguments as a scenario has them.
func engine(args map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range args {
		if k != "engine" {
			out[k] = v
		}
	}
	inner, _ := args["engine"].(map[string]any)
	for k, v := range inner {
		if k == "backend" {
			k = "type"
		}
		out[k] = v
	}
	return out
}

// asked says why a golden is not one for a scenario, "" if it is.
func asked(name string, call recorded) string {
	switch {
	case strings.HasPrefix(name, "scale_"), strings.HasPrefix(name, "telemetry_"), name == "pd_startup_mtp":
		return "workers come and go, or telemetry is taken: scenarios have neither"
	case strings.HasSuffix(name, "_error"):
		return "the reference failed"
	}
	return ""
}

// goldenJobs are the goldens as scenarios, with their names.
func goldenJobs(t *testing.T) (jobs []job) {
	t.Helper()
	cases, err := filepath.Glob(goldens + "/*/api-1.6.1/case.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		name := filepath.Base(filepath.Dir(filepath.Dir(path)))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var call recorded
		if err := json.Unmarshal(text, &call); err != nil {
			t.Fatal(err)
		}
		if asked(name, call) != "" {
			continue
		}
		jobs = append(jobs, goldenJob(t, name, filepath.Dir(filepath.Dir(path)), call))
	}
	return jobs
}

// goldenJob is a golden as a scenario.
func goldenJob(t *testing.T, name, dir string, call recorded) job {
	t.Helper()
	s := map[string]any{"workload": map[string]any{"kind": "synthetic"}}
	if call.Synthetic == nil {
		s["workload"] = map[string]any{"kind": "file", "name": filepath.Base(call.Files[0])}
	}
	for _, args := range []map[string]any{call.Synthetic, call.Kwargs} {
		for key, value := range args {
			switch key {
			case "extra_engine_args", "decode_engine_args":
				s["engine"] = engine(value.(map[string]any))
			case "prefill_engine_args":
				s["prefillEngine"] = engine(value.(map[string]any))
			case "telemetry", "report_dir":
			default:
				place, ok := places[key]
				if !ok {
					t.Fatalf("%s: no place for %s", name, key)
				}
				put(s, place, value)
			}
		}
	}
	j := job{Name: name, Scenario: s}
	for _, file := range call.Files {
		trace, err := filepath.Abs(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		j.Traces = append(j.Traces, trace)
	}
	return j
}

// each so many goldens is run by wazero and by a browser, too: more than twenty
// of every kind, for they are sorted by name.
const each = 3

// The report and the lines of the requests are those of the command line that
// the scenario amounts to, natively and with core.wasm on wazero.
func TestGoldens(t *testing.T) {
	jobs := goldenJobs(t)
	got := bothInNode(t)
	if len(jobs) < 60 {
		t.Errorf("only %d goldens", len(jobs))
	}
	for i, j := range jobs {
		t.Run(j.Name, func(t *testing.T) {
			t.Parallel()
			compare(t, j, got[j.Name], i%each == 0)
		})
	}
}

func compare(t *testing.T, j job, o outcome, wazero bool) {
	t.Helper()
	if o.Error != "" || len(o.Complaints) > 0 {
		t.Fatalf("%s%+v\n%s", o.Error, o.Complaints, o.Shell)
	}
	synthetic := j.Traces == nil
	args := append(o.Command[1:len(o.Command):len(o.Command)], j.Traces...)
	native, requests, warnings := files(t, args, synthetic)
	same(t, "report", timeless(o.Report), timeless(native))
	for i, w := range warnings { // paths are theirs, names ours
		for _, path := range append(j.Traces[:len(j.Traces):len(j.Traces)], j.Paths["timing"]) {
			if path != "" {
				w = strings.ReplaceAll(w, path, filepath.Base(path))
			}
		}
		warnings[i] = w
	}
	for i, w := range o.Warnings {
		for name, path := range j.Files {
			w = strings.ReplaceAll(w, " "+name+" ", " "+filepath.Base(path)+" ")
		}
		o.Warnings[i] = w
	}
	same(t, "warnings", strings.Join(o.Warnings, "\n"), strings.Join(warnings, "\n"))
	if wazero {
		wasm, _, _ := files(t, append(args, "--engine", "wasm"), synthetic)
		same(t, "report of wazero", timeless(wasm), timeless(native))
	}
	if !synthetic {
		same(t, "requests", o.Requests, requests)
	}
}

var inNodeOnce struct {
	sync.Once
	outcomes map[string]outcome
}

// bothInNode are the outcomes in Node of goldens and examples, which several
// tests look at.
func bothInNode(t *testing.T) map[string]outcome {
	t.Helper()
	inNodeOnce.Do(func() { inNodeOnce.outcomes = inNode(t, append(goldenJobs(t), exampleJobs(t)...)) })
	if inNodeOnce.outcomes == nil {
		t.Fatal("another test has failed to run them")
	}
	return inNodeOnce.outcomes
}

// exampleJobs are runs of the examples: with grids, a profile, and a compressed trace.
func exampleJobs(t *testing.T) []job {
	t.Helper()
	example := func(name string) string {
		path, err := filepath.Abs(root + "/examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	conversation, sessions := example("conversation-2k.jsonl"), example("support-sessions.jsonl")
	zipped := filepath.Join(scratch, "sessions.jsonl.gz")
	text, err := os.ReadFile(sessions)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zipped, gzipped(t, text), 0o644); err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(scratch, "profile.npz")
	if err := os.WriteFile(profile, npz(t), 0o644); err != nil {
		t.Fatal(err)
	}
	jobs := []job{
		{Name: "compressed", Traces: []string{zipped}, Scenario: map[string]any{"workload": map[string]any{"kind": "file", "name": "sessions.jsonl.gz"}, "sla": map[string]any{"ttftMs": 400, "itlMs": 25}}},
		{Name: "profile", Traces: []string{sessions}, Files: map[string]string{"profile.npz": profile},
			Scenario: map[string]any{"workload": map[string]any{"kind": "file", "concurrency": 3}, "timing": map[string]any{"kind": "npz", "name": "profile.npz"}, "numWorkers": 2}},
		{Name: "least loaded", Traces: []string{conversation},
			Scenario: map[string]any{"workload": map[string]any{"kind": "sample", "sample": "conversation-2k.jsonl"}, "router": map[string]any{"mode": "least_loaded", "seed": "18446744073709551615"}, "numWorkers": 3}},
		{Name: "predicted load", Traces: []string{conversation}, Files: map[string]string{"grid": example("grid-h200_sxm-vllm-Llama-3.1-8B-tp1.json")},
			Scenario: map[string]any{"workload": map[string]any{"kind": "file"}, "timing": map[string]any{"kind": "grid", "name": "grid"}, "numWorkers": 3,
				"router": map[string]any{"mode": "kv_router", "config": map[string]any{"router_prefill_load_model": "ais", "router_temperature": 0.25, "router_queue_threshold": 0.5}}}},
	}
	for _, name := range []string{"b200_sxm-trtllm-Qwen3-32B-tp4", "h200_sxm-sglang-Qwen3-32B-tp2", "h200_sxm-vllm-Llama-3.1-8B-tp1", "example-gpu"} {
		backend := "vllm"
		for _, b := range []string{"trtllm", "sglang"} {
			if strings.Contains(name, b) {
				backend = b
			}
		}
		jobs = append(jobs, job{Name: name, Traces: []string{conversation}, Files: map[string]string{"grid": example("grid-" + name + ".json")},
			Scenario: map[string]any{"workload": map[string]any{"kind": "file"}, "engine": map[string]any{"type": backend}, "timing": map[string]any{"kind": "grid", "name": "grid"}}})
	}
	for i := range jobs {
		j := &jobs[i]
		j.Paths = map[string]string{}
		for _, path := range j.Files {
			j.Paths["timing"] = path
		}
	}
	return jobs
}

// The examples, too.
func TestExamples(t *testing.T) {
	jobs := exampleJobs(t)
	got := bothInNode(t)
	for _, j := range jobs {
		t.Run(j.Name, func(t *testing.T) {
			t.Parallel()
			compare(t, j, got[j.Name], false)
		})
	}
}
