package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ok wants success and nothing on standard error.
func ok(t *testing.T, got outcome) string {
	t.Helper()
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	return got.stdout
}

// masked hides the wall time.
func masked(stdout string) string {
	return regexp.MustCompile(`(?m)^Wall Time \(ms\): [0-9,.]+$`).ReplaceAllString(stdout, "Wall Time (ms): <wall>")
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	want := `NVIDIA AIPerf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━┓
┃ Metric                                             ┃    avg ┃    min ┃    max ┃    p99 ┃    p90 ┃    p75 ┃  std ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━┩
┃ Time to First Token (ms)                           ┃  16.65 ┃  16.65 ┃  16.65 ┃  16.65 ┃  16.65 ┃  16.65 ┃ 0.00 ┃
`
	got := masked(ok(t, invoke(t, dir, "t.jsonl")))
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "┘\nWall Time (ms): <wall>\nPrefix Cache Reused Ratio: 0.00\nFirst Admission Prefix Cache Reused Ratio: 0.00\n") {
		t.Error(got)
	}
	if files := tree(t, dir); files != "/t.jsonl 67\n" {
		t.Errorf("a run that asks for no file wrote %s", files)
	}
	if got := ok(t, invoke(t, dir, "t.jsonl", "--no-table")); got != "" {
		t.Error(got)
	}
	got = ok(t, invoke(t, dir, "t.jsonl", "--no-table", "--report-json", "deep/er/r.json"))
	if got != "Saved full report to: deep/er/r.json\n" {
		t.Error(got)
	}
	got = ok(t, invoke(t, dir, "t.jsonl", "--no-table", "--report-json", "."))
	if !regexp.MustCompile(`^Saved full report to: dynamo_replay_report_\d{8}_\d{6}\.json\n$`).MatchString(got) {
		t.Error(got)
	}
}

// The same trace in every form that is accepted gives the same answer.
func TestAcceptedForms(t *testing.T) {
	dir := t.TempDir()
	text := one + row(`"timestamp":5,"input_length":700,"output_length":4,"hash_ids":[1,2]`)
	put(t, dir, "t.jsonl", text)
	put(t, dir, "crlf.jsonl", "\r\n"+strings.ReplaceAll(text, "\n", "\r\n"))
	put(t, dir, "unended.jsonl", strings.TrimSuffix(text, "\n"))
	put(t, dir, "t.jsonl.gz", gzipped(t, text))
	want := masked(ok(t, invoke(t, dir, "t.jsonl")))
	for _, args := range [][]string{
		{"crlf.jsonl"}, {"unended.jsonl"}, {"t.jsonl.gz"}, {"--", "t.jsonl"}, {"t.jsonl", "--quiet"},
		{"--num-workers=1", "t.jsonl", "--arrival-seed", "42", "--turns-per-session=1", "--shared-prefix-ratio", "0.0", "--capture-planner-details"},
		{"t.jsonl", "--extra-engine-args", `{"engine":{"backend":"vllm"},"dp_size":1}`, "--model-name", "m", "--trace-format", "mooncake", "--num-workers", "2", "--num-workers", "1"},
	} {
		if got := masked(ok(t, invoke(t, dir, args...))); got != want {
			t.Errorf("%v\ngot  %s\nwant %s", args, got, want)
		}
	}
	cmd := command(dir, "-")
	cmd.Stdin = strings.NewReader(text)
	if got := masked(ok(t, finish(t, cmd))); got != want {
		t.Errorf("from standard input: %s", got)
	}
}

// Engine arguments act, from a file and from the flat form, too.
func TestEngineArgs(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	put(t, dir, "e.json", `{"engine": {"timing_model": {"type": "fixed", "prefill_ms": 12.5, "decode_ms": 3}}, "tensor_parallel_size": 4}`)
	ok(t, invoke(t, dir, "t.jsonl", "--extra-engine-args", "e.json", "--report-json", "r.json"))
	m := readJSON(t, filepath.Join(dir, "r.json"))
	if m["mean_ttft_ms"] != 12.5 || m["mean_ttst_ms"] != 3.0 || m["decode_gpus_per_worker"] != 4.0 {
		t.Error(m)
	}
	ok(t, invoke(t, dir, "t.jsonl", "--extra-engine-args", `{"speedup_ratio": 2}`, "--report-json", "r.json"))
	if m := readJSON(t, filepath.Join(dir, "r.json")); m["mean_ttft_ms"] != 8.326648 {
		t.Error(m["mean_ttft_ms"])
	}
}

func TestSLA(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one+row(`"timestamp":1000,"input_length":512,"output_length":2,"hash_ids":[2]`))
	for _, c := range []struct {
		flag, bound string
		good        float64
	}{{"--sla-ttft-ms", "20", 1}, {"--sla-ttft-ms", "1000", 2}, {"--sla-itl-ms", "0.001", 0}, {"--sla-e2e-ms", "30", 1}} {
		ok(t, invoke(t, dir, "t.jsonl", c.flag, c.bound, "--report-json", "r.json"))
		if m := readJSON(t, filepath.Join(dir, "r.json")); m["goodput_completed_requests"] != c.good {
			t.Errorf("%s %s: %v", c.flag, c.bound, m["goodput_completed_requests"])
		}
	}
	ok(t, invoke(t, dir, "t.jsonl", "--report-json", "r.json"))
	if m := readJSON(t, filepath.Join(dir, "r.json")); m["goodput_completed_requests"] != nil {
		t.Error("goodput without a goal")
	}
}

// small is an engine with six blocks of four tokens.
const small = `{"engine": {"num_gpu_blocks": 6, "block_size": 4}}`

// outgrows is a request that grows past such an engine.
func outgrows(extra string) string {
	return row(`"timestamp":0,"input_length":4,"output_length":30,"hash_ids":[1]` + extra)
}

func TestUnservable(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", "\n"+outgrows("")+one+outgrows(`,"session_id":"a b"`)+row(`"session_id":"a b","input_length":4,"output_length":1,"hash_ids":[1]`))
	args := []string{"t.jsonl", "--extra-engine-args", small, "--report-json", "r.json", "--report-jsonl", "r.jsonl"}
	got := invoke(t, dir, args...)
	want := "replay: warning: 2 of 4 requests can never be served by this engine and failed: line 2, turn 1 of session \"a b\"\n"
	if got.status != 0 || got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}
	m := readJSON(t, filepath.Join(dir, "r.json"))
	if m["failed_requests"] != 2.0 || m["completed_requests"] != 1.0 || m["num_requests"] != 3.0 {
		t.Error(m)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
	if err != nil || bytes.Count(lines, []byte(`"terminal_status":"failed"`)) != 2 || !bytes.Contains(lines, []byte(`"session_id":"a b","turn_index":0`)) {
		t.Errorf("%s, %v", lines, err)
	}

	put(t, dir, "many.jsonl", strings.Repeat(outgrows(""), 7))
	many := []string{"many.jsonl", "--extra-engine-args", small}
	got = invoke(t, dir, many...)
	if wasm := invoke(t, dir, append(many, sandbox...)...); wasm.stderr != got.stderr {
		t.Errorf("sandboxed %s, native %s", wasm.stderr, got.stderr)
	}
	want = "replay: warning: 7 of 7 requests can never be served by this engine and failed: line 1, line 2, line 3, line 4, line 5, and 2 more\n"
	if got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}

	before := tree(t, dir)
	args = append(args, "--parity", "--report-json", "p.json", "--report-jsonl", "p.jsonl")
	for _, engine := range [][]string{{"--engine-impl", "fast"}, {"--engine-impl", "plain"}, sandbox} {
		expect(t, invoke(t, dir, append(args, engine...)...), 1,
			"replay invariant violated: offline replay detected an effect-free zero-duration pass with 2 in-flight requests remaining")
	}
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}

// Corrections §4: a request of SGLang that outgrows the pool while it runs
// alone keeps the reference busy for ever; a prompt that never fits ends its
// run, with the requests of that worker in flight.
func TestUnservableSGLang(t *testing.T) {
	dir := t.TempDir()
	const engine = `{"engine": {"backend": "sglang", "num_gpu_blocks": 6, "block_size": 4,
		"sglang": {"clip_max_new_tokens": 1}, "timing_model": {"type": "fixed", "prefill_ms": 10, "decode_ms": 2}}}`
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":4,"output_length":20,"hash_ids":[1]`)+
		row(`"timestamp":0,"input_length":4,"output_length":21,"hash_ids":[2]`)+one)
	args := []string{"t.jsonl", "--extra-engine-args", engine, "--num-workers", "2", "--report-json", "r.json"}
	got := invoke(t, dir, args...)
	want := "replay: warning: 1 of 3 requests can never be served by this engine and failed: line 2\n"
	if m := readJSON(t, filepath.Join(dir, "r.json")); got.stderr != want || m["completed_requests"] != 2.0 || m["duration_ms"] != 48.0 {
		t.Errorf("%+v %v", got, m)
	}
	expect(t, invoke(t, dir, append(args, "--parity")...), 1,
		"--parity: the reference repeats a pass at 48 ms for ever: a request of a worker with 1 in flight has outgrown the KV pool; without --parity it fails alone")

	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":4,"output_length":5,"hash_ids":[1]`)+
		row(`"timestamp":0,"input_length":24,"output_length":0,"hash_ids":[2]`)+one)
	got = invoke(t, dir, args...)
	if m := readJSON(t, filepath.Join(dir, "r.json")); got.stderr != want || m["completed_requests"] != 2.0 || m["failed_requests"] != 1.0 {
		t.Errorf("%+v %v", got, m)
	}
	expect(t, invoke(t, dir, append(args, "--parity")...), 1,
		"replay invariant violated: offline replay detected an effect-free zero-duration pass with 1 in-flight requests remaining")
}

// Peers notes T12: every chunk of a prompt may be found cached, not the first
// alone: of 40 tokens computed 16 at a time the second time only 4 are.
func TestSGLangReusesAllChunks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":40,"output_length":1,"hash_ids":[1]`)+
		row(`"timestamp":1000,"input_length":40,"output_length":1,"hash_ids":[1]`))
	ok(t, invoke(t, dir, "t.jsonl", "--trace-block-size", "40", "--report-json", "r.json", "--extra-engine-args",
		`{"engine": {"backend": "sglang", "block_size": 4, "sglang": {"chunked_prefill_size": 16},
		"timing_model": {"type": "fixed", "prefill_ms": 10, "decode_ms": 2}}}`))
	m := readJSON(t, filepath.Join(dir, "r.json"))
	if m["prefix_cache_reused_ratio"] != 0.45 || m["duration_ms"] != 1010.0 || m["mean_ttft_ms"] != 20.0 || m["max_ttft_ms"] != 30.0 || m["min_ttft_ms"] != 10.0 {
		t.Error(m)
	}
}

// Peers notes T4: passes that take no time are progress: prompts and decode steps
// of 0 ms end, in one worker and in two pools, at the times of their arrivals.
func TestT4PassesWithoutTimeEnd(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":40,"output_length":5,"hash_ids":[1]`)+
		row(`"timestamp":0,"input_length":64,"output_length":1,"hash_ids":[2]`)+row(`"timestamp":30,"input_length":10,"output_length":3,"hash_ids":[1]`))
	engine := func(backend, role string) string {
		return `{"engine": {"backend": "` + backend + `", "block_size": 4, "worker_type": "` + role + `", "max_num_batched_tokens": 16,
		"timing_model": {"type": "fixed", "prefill_ms": 0, "decode_ms": 0}}}`
	}
	for _, backend := range []string{"vllm", "trtllm", "sglang"} {
		for _, parity := range [][]string{nil, {"--parity"}} {
			for name, workers := range map[string][]string{
				"one": {"--extra-engine-args", engine(backend, "aggregated")}, "two": {"--extra-engine-args", engine(backend, "aggregated"), "--num-workers", "2"},
				"pools": {"--prefill-engine-args", engine(backend, "prefill"), "--decode-engine-args", engine(backend, "decode")},
			} {
				ok(t, invoke(t, dir, append(append([]string{"t.jsonl", "--trace-block-size", "64", "--report-json", "r.json"}, parity...), workers...)...))
				m := readJSON(t, filepath.Join(dir, "r.json"))
				if m["completed_requests"] != 3.0 || m["duration_ms"] != 30.0 || m["max_e2e_latency_ms"] != 0.0 || m["total_output_tokens"] != 9.0 {
					t.Errorf("%s, %s, %v: %v", backend, name, parity, m)
				}
			}
		}
	}
}

// Peers notes T7: pages of one token, all alike, are told apart by their place.
func TestPagesOfOneToken(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[7,7,7,7,7]`)+
		row(`"timestamp":100,"input_length":5,"output_length":1,"hash_ids":[7,7,7,7,7]`)+
		row(`"timestamp":200,"input_length":3,"output_length":1,"hash_ids":[7,7,7]`))
	ok(t, invoke(t, dir, "t.jsonl", "--trace-block-size", "1", "--report-jsonl", "r.jsonl", "--extra-engine-args",
		`{"engine": {"backend": "sglang", "num_gpu_blocks": 100, "timing_model": {"type": "fixed", "prefill_ms": 10, "decode_ms": 2}}}`))
	lines, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	// The last token is always computed: 0 of 5, 4 of 5, 2 of 3.
	for i, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["reused_input_tokens"] != []float64{0, 4, 2}[i] {
			t.Errorf("%s, %v", line, err)
		}
	}
}

func TestOtherWarnings(t *testing.T) {
	dir := t.TempDir()
	var trace strings.Builder
	for i := range 3 {
		fmt.Fprintf(&trace, `{"timestamp":%d,"input_length":40,"output_length":2,"hash_ids":[1,2,3]}`+"\n", i)
	}
	put(t, dir, "t.jsonl", one+trace.String())
	got := invoke(t, dir, "t.jsonl")
	want := "replay: warning: 3 of 4 rows have more hash_ids than their input_length needs with --trace-block-size 512, first on line 2; 16 fits every row\n"
	if got.status != 0 || got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}
	ok(t, invoke(t, dir, "t.jsonl", "--trace-block-size", "16"))
	got = invoke(t, dir, "t.jsonl", "--trace-block-size", "16", "--replay-concurrency", "2", "--arrival-speedup-ratio", "3")
	want = "replay: warning: --arrival-speedup-ratio has no effect with --replay-concurrency\n"
	if got.status != 0 || got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}
}

func TestRejectedWarning(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one+`{"timestamp":9,"input_length":500,"output_length":10,"hash_ids":[3]}`+"\n")
	got := invoke(t, dir, "t.jsonl", "--extra-engine-args", `{"block_size":16,"num_gpu_blocks":16}`)
	want := "replay: warning: 1 of 2 requests were rejected: their prompts reach max_model_len or need more blocks than num_gpu_blocks\n"
	if got.status != 0 || got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}
}

// A failed run leaves an older report as it was.
func TestOlderReportSurvives(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one+"{\n")
	put(t, dir, "r.json", "older")
	got := invoke(t, dir, "t.jsonl", "--report-json", "r.json")
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if got.status != 1 || err != nil || string(data) != "older" {
		t.Errorf("%+v %q %v", got, data, err)
	}
}

func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	ok(t, invoke(t, dir, "t.jsonl", "--cpu-profile", "cpu", "--mem-profile", "mem"))
	for _, name := range []string{"cpu", "mem"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			t.Errorf("%s is no profile: %.10q, %v", name, data, err)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	dir := t.TempDir()
	help := ok(t, invoke(t, dir, "--help"))
	if short := ok(t, invoke(t, dir, "-h", "x", "y")); short != help {
		t.Error("-h and --help differ")
	}
	o := &options{}
	for _, g := range flagGroups(o) {
		if !strings.Contains(help, "\n"+g.title+":\n") {
			t.Errorf("no topic %s", g.title)
		}
	}
	all := newFlagSet()
	for _, g := range flagGroups(o) {
		all.AddFlagSet(g.flags)
	}
	declareLater(all)
	for _, name := range referenceFlags {
		if all.Lookup(name) == nil {
			t.Errorf("--%s of the reference is unknown", name)
		}
		if _, elsewhere := renamed[name]; !elsewhere && !regexp.MustCompile(`--`+name+`\b`).MatchString(help) {
			t.Errorf("--%s is not in the help", name)
		}
	}
	for _, line := range strings.Split(help, "\n") {
		if len(line) > 100 {
			t.Errorf("longer than 100 columns: %s", line)
		}
	}
	if v := ok(t, invoke(t, dir, "--version")); !strings.HasPrefix(v, "replay (Dryserve) ") || strings.Count(v, "\n") != 1 {
		t.Error(v)
	}
}

// Peers' notes §2.2, T1: the flags of speculation say what the engine arguments
// say, and those go before them.
func TestSpeculationFlags(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":700,"output_length":90,"hash_ids":[1,2]`)+row(`"timestamp":5,"input_length":100,"output_length":50,"hash_ids":[1]`))
	run := func(args ...string) string {
		t.Helper()
		return masked(ok(t, invoke(t, dir, append([]string{"t.jsonl"}, args...)...)))
	}
	engine := func(fields string) []string { return []string{"--extra-engine-args", `{"engine":{` + fields + `}}`} }
	none := run()
	for _, c := range []struct{ args, flags []string }{
		{engine(`"aic_nextn":2`), []string{"--aic-nextn", "2"}},
		{engine(`"aic_nextn":2,"aic_nextn_accept_rates":"0.9,0.8"`), []string{"--aic-nextn", "2", "--aic-nextn-accept-rates", "0.9, 0.8, 0.7"}},
		{engine(`"aic_nextn":3,"aic_mtp_seed":7`), append(engine(`"aic_mtp_seed":7`), "--aic-nextn", "3")},
	} {
		want := run(c.args...)
		if got := run(c.flags...); got != want {
			t.Errorf("%v\ngot  %s\nwant %s", c.flags, got, want)
		}
		if want == none {
			t.Errorf("%v changes nothing", c.args)
		}
	}
	fields := engine(`"aic_nextn":2`)
	got := invoke(t, dir, append(fields, "t.jsonl", "--aic-nextn", "4", "--aic-nextn-accept-rates", "0.1")...)
	const warning = "replay: warning: --aic-nextn and --aic-nextn-accept-rates have no effect: the engine arguments have aic_nextn\n"
	if got.status != 0 || got.stderr != warning || masked(got.stdout) != run(fields...) {
		t.Errorf("%+v", got)
	}
}

// referenceFlags are the flags of the reference's command line and the
// parameters of its functions (replay notes §1.1 and §2).
var referenceFlags = strings.Fields(`
	extra-engine-args prefill-engine-args decode-engine-args router-config router-policy-config model-name aic-backend aic-system
	aic-backend-version aic-model-path aic-gemm-dtype aic-moe-dtype aic-fmha-dtype aic-kv-cache-dtype aic-comm-dtype
	aic-nextn-accept-rates report-json report-jsonl planner-config aic-tp-size aic-moe-tp-size aic-moe-ep-size
	aic-attention-dp-size aic-nextn input-tokens output-tokens request-count replay-concurrency trace-block-size arrival-seed
	turns-per-session num-prefix-groups num-workers num-prefill-workers num-decode-workers trace-num-prefix-groups
	benchmark-granularity request-rate arrival-interval-ms max-sim-time-seconds sla-ttft-ms sla-itl-ms sla-e2e-ms
	shared-prefix-ratio inter-turn-delay-ms arrival-speedup-ratio trace-shared-prefix-ratio replay-mode router-mode trace-format

	trace-files ais-perf-config agentic-lanes report-jsonl-path max-sim-time-ms performance-model-metadata capture-per-request
	capture-planner-details execution-model weka-nested-timestamp-basis telemetry-options kv-event-lag-ms scaling-policy
	capture-telemetry telemetry-sample-interval-ms telemetry-callback telemetry-jsonl-path aic-perf-config`)

// An interrupted run ends at once, with no file of any stage left.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no mkfifo")
	}
	before := tree(t, dir)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"reading", []string{"pipe", "--report-json", "r.json"}},
		{"writing", []string{"t.jsonl", "--report-json", "r.json", "--report-jsonl", "pipe"}},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			cmd := command(dir, c.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond) // into the pipe that nobody opens
			start := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s: ended after %v", c.name, took)
			}
			if status := cmd.ProcessState.ExitCode(); status != 128+int(sig) {
				t.Errorf("%s: status %d after %v", c.name, status, sig)
			}
			if got := stderr.String(); got != "replay: interrupted\n" {
				t.Errorf("%s: %q", c.name, got)
			}
		}
	}
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}

func TestReportsAreJSON(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	ok(t, invoke(t, dir, "t.jsonl", "--report-json", "r.json", "--report-jsonl", "r.jsonl"))
	for _, name := range []string{"r.json", "r.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !json.Valid(data) || data[len(data)-1] != '\n' {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
}

// A reader that has enough ends a program without a word, and files are whole.
func TestUnheard(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	ok(t, invoke(t, dir, "t.jsonl", "--report-json", "a.json"))
	before := tree(t, dir)
	for _, args := range []string{
		"t.jsonl --report-json r.json --telemetry-sample-interval-ms 5", "--help", "--version", "t.jsonl --print-config",
		"validate t.jsonl", "validate --help", "convert t.jsonl --output -", "diff a.json a.json", "completion bash",
	} {
		for _, deaf := range []bool{false, true} { // standard error, too
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cmd := command(dir, strings.Fields(args)...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			if deaf {
				cmd.Stderr = w
			}
			_ = cmd.Run() // the status says it
			w.Close()
			if got := cmd.ProcessState.ExitCode(); got != exitUnheard || strings.Contains(stderr.String(), "standard output") {
				t.Errorf("%s, standard error too %v: status %d: %s", args, deaf, got, stderr.String())
			}
		}
	}
	if report, err := os.ReadFile(filepath.Join(dir, "r.json")); err != nil || !json.Valid(report) {
		t.Errorf("the report is %q, error %v", report, err)
	}
	if err := os.Remove(filepath.Join(dir, "r.json")); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}
