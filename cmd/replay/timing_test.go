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

// tokenTimes are the first and the last token's times of each request.
func tokenTimes(t *testing.T, dir string, args ...string) string {
	t.Helper()
	args = append([]string{"t.jsonl", "--trace-block-size", "4", "--no-table", "--report-jsonl", "r.jsonl"}, args...)
	ok(t, invoke(t, dir, args...))
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
			if got := tokenTimes(t, dir, append(args, "--engine-impl", impl)...); got != "18.0 45.5625 30.15625 45.5625" {
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
		if got := tokenTimes(t, dir, append(args, "--trace-block-size", "16")...); got != "6.0 6.0" {
			t.Errorf("%v: %s", args, got)
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
		{"--extra-engine-args " + external(`"provider":"tables","config":{}`), at + `57: engine.timing_model.provider is the text "tables"; "dynamo_profile" is accepted`},
		{"--extra-engine-args " + external(`"provider":"ais","config":{}`), at + `57: engine.timing_model.provider is the text "ais", but pass timing from AIConfigurator is not built yet; "dynamo_profile" is accepted`},
		{"--extra-engine-args " + external(`"config":{}`), at + `27: engine.timing_model has no provider; "dynamo_profile" is accepted`},
		{"--extra-engine-args " + `{"planner_profile_data":"cut.npz"}`, at + `25: planner_profile_data: cut.npz: is a damaged or truncated ZIP archive; a whole .npz file is accepted`},
		{"--extra-engine-args " + `{"planner_profile_data":5}`, at + `25: planner_profile_data is the number 5; the path of a file or null is accepted`},
	} {
		dir := t.TempDir()
		put(t, dir, "t.jsonl", one)
		put(t, dir, "p.npz", string(archive))
		put(t, dir, "cut.npz", string(archive[:700]))
		if err := os.Mkdir(filepath.Join(dir, "half"), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, dir, "half/prefill_raw_data.json", prefillRaw)
		expect(t, invoke(t, dir, append([]string{"t.jsonl"}, strings.Fields(c.args)...)...), 1, c.want)
	}
}
