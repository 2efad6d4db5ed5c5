package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reported runs and gives the report without what the time of day has done.
func reported(t *testing.T, dir string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	got := invoke(t, dir, append(args, "--report-json", path, "--no-table")...)
	if got.status != 0 {
		t.Fatalf("%q: %+v", args, got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return timeless(string(text))
}

// What --print-config prints runs the same, wherever it is put, and prints
// itself.
func TestPrintedConfigRunsTheSame(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile("../../examples/support-sessions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "t.jsonl", string(data))
	archive, err := os.ReadFile("../../testdata/cli/e18.npz")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "e18.npz", string(archive))
	put(t, dir, "engine.json", `{"engine": {"num_gpu_blocks": 4096, "block_size": 32, "decode_speedup_ratio": 1.25e0}, "dp_size": 2}`)
	for _, args := range []string{
		"t.jsonl",
		"t.jsonl --num-workers 3 --arrival-speedup-ratio 1.7 --trace-block-size 512 --sla-ttft-ms 100.5 --parity --engine-impl=plain",
		"t.jsonl --replay-concurrency 7 --extra-engine-args engine.json --max-sim-time-seconds 1e3",
		`t.jsonl --extra-engine-args {"engine":{"backend":"sglang","sglang":{"schedule_policy":"lpm"}},"dp_size":1} --model-name 05`,
		"t.jsonl --planner-profile-data e18.npz --aic-nextn 2 --aic-nextn-accept-rates 0.8,0.5",
		`t.jsonl --extra-engine-args {"planner_profile_data":"e18.npz"}`,
		`t.jsonl --num-workers 2 --router-mode kv_router --router-config {"router_temperature":0,"overlap_score_weight":2.5} --router-seed 9 --kv-event-lag-ms 1.5`,
		`t.jsonl --prefill-engine-args {"engine":{"worker_type":"prefill"}} --decode-engine-args {"engine":{"worker_type":"decode"}} --num-prefill-workers 2 --num-decode-workers 2`,
		"--input-tokens 900 --output-tokens 20 --request-count 40 --turns-per-session 2 --request-rate 3.3 --arrival-seed 18446744073709551615 --shared-prefix-ratio 0.5 --num-prefix-groups 3",
	} {
		fields := strings.Fields(args)
		want := reported(t, dir, fields...)
		printed := ok(t, invoke(t, dir, append(slices.Clone(fields), "--print-config")...))
		other := t.TempDir()
		put(t, other, "run.yaml", printed)
		if got := reported(t, t.TempDir(), "--config", filepath.Join(other, "run.yaml")); got != want {
			t.Errorf("%s: reports differ:\n%s\n%s\n%s", args, printed, got, want)
		}
		if again := ok(t, invoke(t, other, "--config", "run.yaml", "--print-config")); again != printed {
			t.Errorf("%s: printed again:\n%s\nwas\n%s", args, again, printed)
		}
	}
}

// Paths count from the file, flags of the command line go before, and what a
// file says counts as given.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "runs", "in"), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "runs/in/t.jsonl", strings.Repeat(one, 5))
	put(t, dir, "runs/run.yaml", `trace: in/t.jsonl
num-workers: 2
replay-concurrency: 1
no-table: true
report-json: out/r.json
report-jsonl: out/r.jsonl
model-name:
extra-engine-args:
  engine:
    num_gpu_blocks: 64
`)
	want := reported(t, dir, "runs/in/t.jsonl", "--num-workers", "2", "--replay-concurrency", "1", "--extra-engine-args", `{"engine":{"num_gpu_blocks":64}}`)
	if got := invoke(t, dir, "--config", "runs/run.yaml"); got.status != 0 || got.stdout != "Saved full report to: runs/out/r.json\n" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "runs/out/r.json"))
	if err != nil || timeless(string(text)) != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, text, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs/out/r.jsonl")); err != nil {
		t.Error(err)
	}
	put(t, dir, "u.jsonl", one)
	won := reported(t, dir, "u.jsonl", "--config", "runs/run.yaml", "--num-workers", "1", "--report-jsonl", filepath.Join(t.TempDir(), "x"))
	if want := reported(t, dir, "u.jsonl", "--num-workers", "1", "--replay-concurrency", "1", "--extra-engine-args", `{"engine":{"num_gpu_blocks":64}}`); won != want {
		t.Errorf("got\n%s\nwant\n%s", won, want)
	}
	if got := invoke(t, dir, "--config", "runs/run.yaml", "--arrival-speedup-ratio", "2", "--no-table=true"); got.status != 0 ||
		got.stderr != "replay: warning: --arrival-speedup-ratio has no effect with --replay-concurrency\n" {
		t.Errorf("%+v", got)
	}
}

// Every flag of the reference's last command line, and every parameter of its
// functions, is a flag, or is refused as one that is not built yet.
func TestEveryFlagOfTheReference(t *testing.T) {
	known := map[string]bool{}
	for _, g := range flagGroups(&options{}) {
		for _, name := range names(g.flags) {
			known[name] = true
		}
	}
	all := newFlagSet()
	declareLater(all)
	for _, name := range names(all) {
		known[name] = true
	}
	for _, list := range []string{commandLine142, functions161} {
		for _, name := range strings.Fields(list) {
			if name = strings.ReplaceAll(name, "_", "-"); !known[name] {
				t.Errorf("--%s is not known", name)
			}
		}
	}
}

// Replay notes §1.1 and §2.
const (
	commandLine142 = `extra-engine-args prefill-engine-args decode-engine-args router-config router-policy-config model-name
		aic-backend aic-system aic-backend-version aic-model-path aic-gemm-dtype aic-moe-dtype aic-fmha-dtype aic-kv-cache-dtype aic-comm-dtype
		aic-nextn-accept-rates report-json report-jsonl planner-config aic-tp-size aic-moe-tp-size aic-moe-ep-size aic-attention-dp-size aic-nextn
		input-tokens output-tokens request-count replay-concurrency trace-block-size arrival-seed turns-per-session num-prefix-groups num-workers
		num-prefill-workers num-decode-workers trace-num-prefix-groups benchmark-granularity request-rate arrival-interval-ms max-sim-time-seconds
		sla-ttft-ms sla-itl-ms sla-e2e-ms shared-prefix-ratio inter-turn-delay-ms arrival-speedup-ratio trace-shared-prefix-ratio
		replay-mode router-mode trace-format`
	functions161 = `trace_files extra_engine_args prefill_engine_args decode_engine_args router_config ais_perf_config num_workers num_prefill_workers
		num_decode_workers replay_concurrency agentic_lanes replay_mode router_mode arrival_speedup_ratio trace_block_size trace_format
		trace_shared_prefix_ratio trace_num_prefix_groups report_jsonl_path max_sim_time_ms model_name sla_ttft_ms sla_itl_ms sla_e2e_ms planner_config
		performance_model_metadata benchmark_granularity capture_per_request capture_planner_details execution_model weka_nested_timestamp_basis
		telemetry_options kv_event_lag_ms input_tokens output_tokens request_count request_rate arrival_interval_ms arrival_seed turns_per_session
		shared_prefix_ratio num_prefix_groups inter_turn_delay_ms scaling_policy capture_telemetry telemetry_sample_interval_ms telemetry_callback
		telemetry_jsonl_path aic_perf_config`
)

// The scenario of the examples is that of a command line.
func TestExampleScenario(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	want := reported(t, examples, "conversation-2k.jsonl", "--num-workers", "4", "--extra-engine-args", `{"engine":{"num_gpu_blocks":8192,"max_num_seqs":128}}`,
		"--sla-ttft-ms", "200", "--sla-itl-ms", "25")
	if got := reported(t, t.TempDir(), "--config", filepath.Join(examples, "scenario.yaml")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
