package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// policy is a file of classes: requests of class b wait behind any prompt work,
// and not more than one a worker.
const policy = `
default_policy_family: a
uncached_isl_buckets: [{min_tokens: 0, bucket: all}]
policy_classes:
  - {name: a-all, policy_family: a, cache_bucket: all, quantum: 1000}
  - {name: b-all, policy_family: b, cache_bucket: all, quantum: 1000, prefill_busy_threshold: 0, request_queue_limit_per_worker: 1}
models:
  m:
    default_policy_family: b
    uncached_isl_buckets: [{min_tokens: 0, bucket: all}]
    policy_classes:
      - {name: b-all, policy_family: b, cache_bucket: all, quantum: 1000, prefill_busy_threshold: 0}
`

// burst is n requests at once, all different, of a class.
func burst(n int, class string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(row(fmt.Sprintf(`"timestamp":%d,"input_length":100,"output_length":2,"hash_ids":[%d],"policy_class":%q`, i/4, i, class)))
	}
	return b.String()
}

func TestBadRouting(t *testing.T) {
	const modes = "round_robin or kv_router or random or power-of-two or least-loaded or direct is accepted"
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--router-mode kv", 2, `--router-mode is "kv"; ` + modes},
		{"--router-mode kv_router --router-seed -1", 2, `--router-seed is "-1"; a whole number from 0 to 18446744073709551615 is accepted`},
		{"--router-mode random --router-seed 1.5", 2, `--router-seed is "1.5"; a whole number from 0 to 18446744073709551615 is accepted`},
		{"--kv-event-lag-ms 5", 1, "--kv-event-lag-ms is for --router-mode kv_router, and it is round_robin"},
		{"--router-mode kv_router --kv-event-lag-ms -1", 1, "--kv-event-lag-ms is -1; a finite number of at least 0 is accepted"},
		{"--router-mode kv_router --kv-event-lag-ms nan", 1, "--kv-event-lag-ms is NaN; a finite number of at least 0 is accepted"},
		{"--router-mode kv_router --kv-event-lag-ms x", 2, `--kv-event-lag-ms is "x"; a number is accepted`},
		{"--router-mode kv_router --router-config=", 1, "--router-config is empty; JSON or the path of a JSON file is accepted"},
		{"--router-mode kv_router --router-config none.json", 1, "--router-config: cannot open none.json: no such file or directory; JSON or the path of a JSON file is accepted"},
		{"--router-mode kv_router --router-config []", 1, "--router-config: line 1: the router configuration is a list; an object is accepted"},
		{`--router-mode kv_router --router-config {"overlap_score_credit":-1}`, 1, "--router-config: line 1: overlap_score_credit is -1; a finite number of at least 0 is accepted"},
		{`--router-config {"overlap_score_credit":-1}`, 1, "--router-config: line 1: overlap_score_credit is -1; a finite number of at least 0 is accepted"},
		{"--router-mode kv_router --router-config bad.json", 1, "bad.json: line 2: router_queue_policy is \"lifo\"; \"fcfs\", \"lcfs\" or \"wspt\" is accepted"},
		{`--router-mode kv_router --router-config {"router_prefill_load_model":"ais"}`, 1, `router_prefill_load_model predicts how long prompts take, which only a grid tells; "none", --perf-grid, or --aic-backend, --aic-system and --aic-model-path, are accepted`},
		{"--router-mode kv_router --router-policy-config=", 1, "--router-policy-config is empty; a path is accepted"},
		{"--router-mode kv_router --router-policy-config none.yaml", 1, "none.yaml: no such file or directory"},
		{"--router-mode kv_router --router-policy-config plugin.yaml", 1, "plugin.yaml: request_classifier names a plugin; replay has none, leave it out"},
		{"--router-mode kv_router --router-policy-config chosen.yaml", 1, `chosen.yaml: worker_selection names "mine"; replay has only "default"`},
		{`--router-mode kv_router --router-config {"router_tracking_hash":"keyed-xxh3-v1","router_tracking_key_file":"none.key","router_tracking_key_id":"k"}`, 1,
			"router_tracking_key_file: none.key: no such file or directory"},
		{"--router-mode kv_router --router-policy-config p.yaml", 1, `at 0 ms: router policy class "b-all" queue requests limit reached (current=1, limit=1)`},
		{`--router-mode kv_router --extra-engine-args {"engine":{"kv_cache_bytes_per_token":9,"native_host_offload":{"num_host_blocks":4,"scope":"cluster_shared","kv_layout_id":"a"}}}`, 1,
			`--router-mode kv_router is not built yet for host memory that all workers share; "scope": "dp_rank_local" in native_host_offload is accepted`},
		{`--router-mode kv_router --extra-engine-args {"engine":{"kv_cache_bytes_per_token":9,"native_host_offload":{"num_host_blocks":4},"g3_offload":{"scope":"worker_local","num_g3_blocks":4}}}`, 1,
			"g3_offload in the engine arguments is not built yet for --router-mode kv_router, workers that come and go, or telemetry; it is accepted without them"},
		{`--extra-engine-args {"engine":{"kv_cache_bytes_per_token":9,"native_host_offload":{"num_host_blocks":4},"g3_offload":{"scope":"worker_local","num_g3_blocks":4,"read_bandwidth_gbps":0,"latency_to_first_byte_ms":0}}}`, 1,
			"--extra-engine-args:1:98: engine.g3_offload is an object; a latency_to_first_byte_ms or a limit of the bandwidth of reads is accepted; reads from a disk that take no time are not built"},
		{`--extra-engine-args {"engine":{"kv_cache_bytes_per_token":9,"native_host_offload":{"num_host_blocks":4,"scope":"cluster_shared","kv_layout_id":"a"},"g3_offload":{"scope":"worker_local","num_g3_blocks":4}}}`, 1,
			"--extra-engine-args:1:142: engine.g3_offload is an object; null is accepted with native_host_offload of scope cluster_shared; a disk behind shared host memory is not built"},
		{"--router-mode direct", 1, "--router-mode direct needs the worker of each request; a file of --direct-workers is accepted"},
		{"--direct-workers w.txt", 1, "--direct-workers is for --router-mode direct, and it is round_robin"},
		{"--router-mode direct --direct-workers none.txt", 1, "--direct-workers: cannot open none.txt: no such file or directory; a file with a worker for each request is accepted"},
		{"--router-mode direct --direct-workers w.txt", 1, `w.txt:3: found "1", want a worker from 0 to 0`},
		{"--router-mode direct --direct-workers w.txt --num-workers 2", 1, "w.txt: has 4 workers for the 6 requests of the trace; one for each is accepted"},
		{"--router-mode direct --direct-workers word.txt --num-workers 2", 1, `word.txt:1: found "one", want a worker from 0 to 1`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, "t.jsonl", burst(6, "b"))
			put(t, dir, "bad.json", "{\n\"router_queue_policy\": \"lifo\"}")
			put(t, dir, "plugin.yaml", "request_classifier: {name: x}\n")
			put(t, dir, "chosen.yaml", "worker_selection: {replay: mine}\n")
			put(t, dir, "p.yaml", policy)
			put(t, dir, "w.txt", "0\n\n1\n0\n1\n")
			put(t, dir, "word.txt", "one\n")
			args := append([]string{"t.jsonl"}, strings.Fields(c.args)...)
			expect(t, invoke(t, dir, args...), c.status, c.want)
			expect(t, invoke(t, dir, append(slices.Clone(sandbox), args...)...), c.status, c.want)
		})
	}
}

// workersOf runs a trace and returns the worker of each request, by its number.
func workersOf(t *testing.T, dir string, args ...string) (workers []int) {
	t.Helper()
	ok(t, invoke(t, dir, append(args, "--report-jsonl", "r.jsonl")...))
	for _, r := range readLines(t, filepath.Join(dir, "r.jsonl")) {
		workers = append(workers, int(r["decode_worker_idx"].(float64)))
	}
	return workers
}

func TestDirectWorkers(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", burst(6, ""))
	put(t, dir, "w.txt", "2\n0\n 1 \n2\n2\n0")
	for engine, more := range map[string][]string{"fast": nil, "plain": {"--engine-impl", "plain"}, "wasm": sandbox} {
		got := workersOf(t, dir, append(more, "t.jsonl", "--router-mode", "direct", "--direct-workers", "w.txt", "--num-workers", "3")...)
		if fmt.Sprint(got) != "[2 0 1 2 2 0]" {
			t.Errorf("%s: %v", engine, got)
		}
	}
}

// The seed decides who gets what, and nothing else does.
func TestRouterSeed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", burst(40, ""))
	for _, mode := range []string{"random", "power-of-two", "least-loaded", "kv_router"} {
		args := []string{"t.jsonl", "--num-workers", "4", "--router-mode", mode, "--router-seed", "1"}
		if native, wasm := workersOf(t, dir, args...), workersOf(t, dir, append(args, sandbox...)...); fmt.Sprint(native) != fmt.Sprint(wasm) {
			t.Errorf("%s: %v, in core.wasm %v", mode, native, wasm)
		}
		seeded := func(seed string) string {
			return fmt.Sprint(workersOf(t, dir, "t.jsonl", "--num-workers", "4", "--router-mode", mode, "--router-seed", seed))
		}
		one, again, two := seeded("1"), seeded("1"), seeded("2")
		if one != again || one == two {
			t.Errorf("%s: %s and %s with seed 1, %s with seed 2", mode, one, again, two)
		}
		if canonical := fmt.Sprint(workersOf(t, dir, "t.jsonl", "--num-workers", "4", "--router-mode", mode)); canonical != seeded(fmt.Sprint(config.CanonicalSeed)) {
			t.Errorf("%s: the default seed is not the canonical one", mode)
		}
	}
}

// The policy file by flag, in the configuration and in the environment; the
// model's profile of it; and a class that is not there.
func TestPolicyClasses(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", burst(6, "b"))
	put(t, dir, "p.yaml", policy)
	const full = `at 0 ms: router policy class "b-all" queue requests limit reached (current=1, limit=1)`
	kv := []string{"t.jsonl", "--router-mode", "kv_router"}
	expect(t, invoke(t, dir, append(kv, "--router-config", `{"router_policy_config":"p.yaml"}`)...), 1, full)
	cmd := command(dir, kv...)
	cmd.Env = append(cmd.Env, policyVariable+"=p.yaml")
	expect(t, finish(t, cmd), 1, full)
	waited := func(args ...string) (n int) {
		ok(t, invoke(t, dir, append(args, "--report-jsonl", "r.jsonl")...))
		for _, r := range readLines(t, filepath.Join(dir, "r.jsonl")) {
			text, _ := json.Marshal(r["routing_history"])
			if strings.Contains(string(text), `"outcome":"queued"`) {
				n++
			}
		}
		return n
	}
	if n := waited(append(kv, "--router-policy-config", "p.yaml", "--model-name", "m")...); n != 5 {
		t.Errorf("%d requests waited in the model's profile, want 5", n)
	}
	put(t, dir, "t.jsonl", burst(6, "none"))
	if n := waited(append(kv, "--router-policy-config", "p.yaml")...); n != 0 {
		t.Errorf("%d requests of the default family waited, want 0", n)
	}
}

// An engine's queue policy wins over the router's.
func TestEngineQueuePolicy(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 8 {
		b.WriteString(row(fmt.Sprintf(`"timestamp":0,"input_length":%d,"output_length":2,"hash_ids":[%d]`, 500-50*i, i)))
	}
	put(t, dir, "t.jsonl", b.String())
	report := func(args ...string) string {
		ok(t, invoke(t, dir, append([]string{"t.jsonl", "--router-mode", "kv_router", "--report-json", "r.json"}, args...)...))
		return fmt.Sprint(readJSON(t, filepath.Join(dir, "r.json"))["mean_ttft_ms"])
	}
	waits := report("--router-config", `{"router_queue_threshold":0}`)
	wspt := report("--router-config", `{"router_queue_threshold":0,"router_queue_policy":"wspt"}`)
	engine := report("--router-config", `{"router_queue_threshold":0}`, "--extra-engine-args", `{"dynamo":{"router_queue_policy":"wspt"}}`)
	if engine != wspt || waits == wspt {
		t.Errorf("fcfs %s, wspt %s, by the engine %s", waits, wspt, engine)
	}
}

func TestRoutingWarnings(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	put(t, dir, "p.yaml", policy)
	got := invoke(t, dir, "t.jsonl", "--router-config", "{}", "--router-policy-config", "p.yaml", "--router-seed", "5")
	want := ""
	for _, flag := range []string{"config", "policy-config", "seed"} {
		want += "replay: warning: --router-" + flag + " has no effect with --router-mode round_robin\n"
	}
	if got.status != 0 || got.stderr != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := invoke(t, dir, "t.jsonl", "--router-mode", "random", "--router-seed", "5"); got.stderr != "" {
		t.Errorf("%+v", got)
	}
}
