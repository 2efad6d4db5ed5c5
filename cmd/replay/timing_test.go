package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// two are the requests whose times with the profile of engine notes §8.5 the
// reference has answered: first and last token at 18 and 45.5625 ms, and at
// 30.15625 and 45.5625 ms.
const two = `{"timestamp":0,"input_length":10,"output_length":4,"hash_ids":[1,2,3]}
{"timestamp":5,"input_length":6,"output_length":3,"hash_ids":[1,9]}
`

const tiny = `"block_size": 4, "num_gpu_blocks": 16`

// timesOf runs t.jsonl and returns tokenTimes.
func timesOf(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ok(t, invoke(t, dir, append([]string{"t.jsonl", "--trace-block-size", "4", "--no-table", "--report-jsonl", "r.jsonl"}, args...)...))
	return tokenTimes(t, dir)
}

// tokenTimes are the first and the last token's times of each request in
// r.jsonl.
func tokenTimes(t *testing.T, dir string) string {
	t.Helper()
	lines, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var times []string
	for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		for _, key := range []string{`"first_token_ms":`, `"last_token_ms":`} {
			_, rest, _ := strings.Cut(line, key)
			value, _, _ := strings.Cut(rest, ",")
			times = append(times, value)
		}
	}
	return strings.Join(times, " ")
}

// A profile may be named in every way there is, relative to the working
// directory, also where the arguments stand in another one.
func TestProfileTiming(t *testing.T) {
	archive, err := os.ReadFile("../../testdata/cli/e18.npz")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, "t.jsonl", two)
	for _, name := range []string{"p.npz", "no suffix"} {
		put(t, dir, name, string(archive))
	}
	if err := os.Mkdir(filepath.Join(dir, "args"), 0o755); err != nil {
		t.Fatal(err)
	}
	external := func(path string) string {
		return `{"engine": {` + tiny + `, "timing_model": {"type": "external", "provider": "dynamo_profile", "config": {"path": "` + path + `"}}}}`
	}
	put(t, dir, "args/e.json", external("p.npz"))
	for _, args := range [][]string{
		{"--extra-engine-args", external("p.npz")},
		{"--extra-engine-args", external("args/../no suffix")},
		{"--extra-engine-args", external(filepath.Join(dir, "p.npz"))},
		{"--extra-engine-args", "args/e.json"},
		{"--extra-engine-args", `{` + tiny + `, "planner_profile_data": "p.npz"}`},
		{"--extra-engine-args", `{"engine": {` + tiny + `}}`, "--planner-profile-data", "p.npz"},
		{"--extra-engine-args", `{"engine": {` + tiny + `, "timing_model": {"type": "polynomial"}}}`, "--planner-profile-data=p.npz"},
	} {
		for _, impl := range []string{"fast", "plain"} {
			if got := timesOf(t, dir, append(args, "--engine-impl", impl)...); got != "18.0 45.5625 30.15625 45.5625" {
				t.Errorf("%v, %s: %s", args, impl, got)
			}
		}
	}
}

// The lines 3 + 0.02 ms per token and 4 + 0.5 per sequence + 0.01 per token of
// docs/timing.md.
const prefillRaw = `{"prefill_isl": [100, 200, 400], "prefill_ttft": [5, 7, 11]}`
const decodeRaw = `{"x_kv_usage": [0.1, 0.2, 0.4, 0.8], "y_context_length": [100, 50, 200, 100], "z_itl": [5.5, 8, 9, 16], "max_kv_tokens": 1000}`

// A profiler's results are given by their directory.
func TestResultsTiming(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", `{"timestamp":0,"input_length":150,"output_length":1,"hash_ids":[1,2,3,4,5,6,7,8,9,10]}`+"\n")
	if err := os.Mkdir(filepath.Join(dir, "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "results/prefill_raw_data.json", prefillRaw)
	put(t, dir, "results/decode_raw_data.json", decodeRaw)
	for _, args := range [][]string{
		{"--planner-profile-data", "results"},
		{"--planner-profile-data", "results/"},
		{"--extra-engine-args", `{"planner_profile_data": "results"}`},
	} {
		if got := timesOf(t, dir, append(args, "--trace-block-size", "16")...); got != "6.0 6.0" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// exampleGrid is the one of docs/timing.md, with few blocks.
const exampleGrid = `{"backend": "vllm", "system": "my_gpu", "model": "my/model", "tp": 2, "num_gpu_blocks": 3,
 "prefill": {"batch": [1, 4], "isl": [16, 64], "prefix": [0, 512],
             "ms": [[[10, 11], [20, 22]], [[16, 18], [60, 66]]]},
 "decode": {"batch": [1, 16], "context": [64, 1024], "ms": [[8, 9], [12, 18]]}}
`

// A grid may be named in every way there is. It says how large the pool is and
// for how many GPUs it stands, where the engine arguments do not.
func TestGridTiming(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", `{"timestamp":0,"input_length":40,"output_length":2,"hash_ids":[1]}
{"timestamp":100,"input_length":190,"output_length":1,"hash_ids":[2,3,4]}
`)
	put(t, dir, "g.json", exampleGrid)
	model := `"timing_model": {"type": "external", "provider": "grid", "config": {"path": "g.json"}}`
	const served, rejected = "15.0 23.0 146.25 146.25", "15.0 23.0 null null"
	for _, c := range []struct {
		name, args, want string // of all tokens
		gpus             float64
	}{
		{"by flag", "", served, 2},
		{"by engine arguments", `{"engine": {` + model + `}}`, served, 2},
		{"of 3 blocks of 64 tokens", `{"engine": {` + model + `, "block_size": 16}}`, served, 2},
		{"of 3 blocks of 64 tokens, one cut off", `{"engine": {` + model + `, "block_size": 96}}`, served, 2},
		{"of 1 block of 100", `{"engine": {` + model + `, "block_size": 100}}`, rejected, 2},
		{"blocks given", `{"engine": {` + model + `, "num_gpu_blocks": 2}}`, rejected, 2},
		{"blocks given beside a flag", `{"num_gpu_blocks": 2}`, rejected, 2},
		{"blocks given but not meant", `{"engine": {` + model + `, "num_gpu_blocks": 2}, "num_gpu_blocks_is_explicit": false}`, served, 2},
		{"GPUs given", `{"engine": {` + model + `}, "tensor_parallel_size": 2, "dp_size": 2}`, served, 4},
		{"TensorRT-LLM", `{"engine": {` + model + `, "backend": "trtllm"}}`, served, 2},
	} {
		args := []string{"--trace-block-size", "64", "--report-json", "r.json"}
		if !strings.Contains(c.args, "external") {
			args = append(args, "--perf-grid", "g.json")
		}
		if c.args != "" {
			args = append(args, "--extra-engine-args", c.args)
		}
		got := invoke(t, dir, append([]string{"t.jsonl", "--no-table", "--report-jsonl", "r.jsonl"}, args...)...)
		warning := ""
		switch {
		case c.name == "TensorRT-LLM":
			warning = "replay: warning: the durations in g.json are those of backend vllm, the simulated engine is trtllm\n"
		case c.want == rejected:
			warning = "replay: warning: 1 of 2 requests were rejected: their prompts reach max_model_len or need more blocks than num_gpu_blocks\n"
		}
		if got.status != 0 || got.stderr != warning {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		if times := tokenTimes(t, dir); times != c.want {
			t.Errorf("%s: %s, want %s", c.name, times, c.want)
		}
		if m := readJSON(t, filepath.Join(dir, "r.json")); m["decode_gpus_per_worker"] != c.gpus {
			t.Errorf("%s: %v GPUs, want %v", c.name, m["decode_gpus_per_worker"], c.gpus)
		}
	}
}

func TestBadTiming(t *testing.T) {
	archive, err := os.ReadFile("../../testdata/cli/e18.npz")
	if err != nil {
		t.Fatal(err)
	}
	external := func(rest string) string {
		return `{"engine":{"timing_model":{"type":"external",` + rest + `}}}`
	}
	const at = "--extra-engine-args:1:"
	for _, c := range []struct{ args, want string }{
		{"--planner-profile-data=", "--planner-profile-data is empty; a path is accepted"},
		{"--planner-profile-data none.npz", "--planner-profile-data: none.npz: no such file or directory; a .npz profile or a profiler's results directory is accepted"},
		{"--planner-profile-data cut.npz", "--planner-profile-data: cut.npz: is a damaged or truncated ZIP archive; a whole .npz file is accepted"},
		{"--planner-profile-data t.jsonl", "--planner-profile-data: t.jsonl: is a JSON object, as grids are; a .npz profile or a profiler's results directory is accepted"},
		{"--planner-profile-data half", "--planner-profile-data: half: has no decode results; a directory with selected_decode_interpolation/raw_data.npz or decode_raw_data.json is accepted"},
		{"--planner-profile-data p.npz --extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":"p.npz"}`), at + `91: engine.timing_model.config.path says how long passes take, and so does --planner-profile-data; one is accepted`},
		{"--planner-profile-data p.npz --extra-engine-args " + `{"engine":{"timing_model":{"type":"fixed","prefill_ms":1,"decode_ms":1}}}`, at + `27: engine.timing_model says how long passes take, and so does --planner-profile-data; one is accepted`},
		{"--planner-profile-data p.npz --extra-engine-args " + `{"planner_profile_data":"p.npz"}`, at + `25: planner_profile_data says how long passes take, and so does --planner-profile-data; one is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":"none"}`), at + `91: engine.timing_model.config.path: none: no such file or directory; a .npz profile or a profiler's results directory is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":""}`), at + `91: engine.timing_model.config.path is the text ""; the path of a file is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":null}`), at + `91: engine.timing_model.config.path is null; the path of a file is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":"p.npz","x":1}`), at + `99: unknown field "engine.timing_model.config.x"; known fields here are path`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{}`), at + `83: engine.timing_model.config has no path; the path of a file is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":"p.npz"`), at + `83: engine.timing_model.config is the text "p.npz"; an object such as {"path": "profile.npz"} is accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile"`), at + `27: engine.timing_model has no config; an object such as {"path": "profile.npz"} is accepted`},
		{"--extra-engine-args " + external(`"provider":"tables","config":{}`), at + `57: engine.timing_model.provider is the text "tables"; "dynamo_profile", "grid", "ais" or "aic" is accepted`},
		{"--extra-engine-args " + external(`"provider":"ais","config":{}`), at + `72: engine.timing_model.config has no backend; "vllm", "sglang" or "trtllm" is accepted`},
		{"--perf-grid=", "--perf-grid is empty; a path is accepted"},
		{"--perf-grid g.json --planner-profile-data p.npz", "--perf-grid says how long passes take, and so does --planner-profile-data; one is accepted"},
		{"--perf-grid none.json", "--perf-grid: none.json: no such file; a JSON file is accepted"},
		{"--perf-grid p.npz", "--perf-grid: p.npz: is a ZIP archive, as profiles are; a grid in JSON is accepted"},
		{"--perf-grid bad.json", `--perf-grid: bad.json: array decode.ms is -9 at index [0, 1]; numbers of at least 0 are accepted`},
		{`--perf-grid g.json --extra-engine-args {"block_size":1000}`, "--perf-grid: g.json: num_gpu_blocks is 3 blocks of 64 tokens, less than one block of 1000; a smaller block_size or a num_gpu_blocks of the engine's own is accepted"},
		{`--perf-grid g.json --extra-engine-args {"engine":{},"tensor_parallel_size":4}`, at + `37: tensor_parallel_size is the number 4, but g.json is for 2; 2 is accepted`},
		{"--extra-engine-args " + external(`"provider":"grid","config":{"path":"bad.json"}`), at + `81: engine.timing_model.config.path: bad.json: array decode.ms is -9 at index [0, 1]; numbers of at least 0 are accepted`},
		{"--extra-engine-args " + external(`"provider":"dynamo_profile","config":{"path":"g.json"}`), at + `91: engine.timing_model.config.path: g.json: is a JSON object, as grids are; a .npz profile or a profiler's results directory is accepted`},
		{"--extra-engine-args " + external(`"config":{}`), at + `27: engine.timing_model has no provider; "dynamo_profile", "grid", "ais" or "aic" is accepted`},
		{"--extra-engine-args " + `{"planner_profile_data":"cut.npz"}`, at + `25: planner_profile_data: cut.npz: is a damaged or truncated ZIP archive; a whole .npz file is accepted`},
		{"--extra-engine-args " + `{"planner_profile_data":5}`, at + `25: planner_profile_data is the number 5; the path of a file or null is accepted`},
	} {
		dir := t.TempDir()
		put(t, dir, "t.jsonl", one)
		put(t, dir, "p.npz", string(archive))
		put(t, dir, "cut.npz", string(archive[:700]))
		put(t, dir, "g.json", exampleGrid)
		put(t, dir, "bad.json", strings.Replace(exampleGrid, "[8, 9]", "[8, -9]", 1))
		if err := os.Mkdir(filepath.Join(dir, "half"), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "half/prefill_raw_data.json", prefillRaw)
		expect(t, invoke(t, dir, append([]string{"t.jsonl"}, strings.Fields(c.args)...)...), 1, c.want)
	}
}

// The files that the examples name are what they say.
func TestExampleDurations(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	ok(t, invoke(t, dir, "t.jsonl", "--planner-profile-data", filepath.Join(examples, "profiler-results")))
	ok(t, invoke(t, dir, "t.jsonl", "--perf-grid", filepath.Join(examples, "grid-example-gpu.json"), "--report-json", "r.json"))
	if m := readJSON(t, filepath.Join(dir, "r.json")); m["decode_gpus_per_worker"] != 4.0 {
		t.Error(m)
	}
}
