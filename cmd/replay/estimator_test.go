package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/timing"
	"github.com/dryserve/dryserve/host/native/profile"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// identityFlags are those of examples/grid-example-gpu.json.
const identityFlags = "--aic-backend vllm --aic-system example_gpu --aic-model-path example/70b --aic-tp-size 4"

const predicting = `--router-mode kv_router --num-workers 3 --router-config {"router_prefill_load_model":"aic","router_queue_threshold":0.1}`

// estimatorDir has a trace, and a grid apart from those that the program
// carries.
func estimatorDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"support-sessions.jsonl": "t.jsonl", "grid-example-gpu.json": "g.json"} {
		data, err := os.ReadFile(filepath.Join("../../examples", from))
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, to, string(data))
	}
	if err := os.Mkdir(filepath.Join(dir, "grids"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "grids/mine.json", strings.Replace(exampleGrid, `"tp": 2, "num_gpu_blocks": 3`, `"tp": 2, "num_gpu_blocks": 3000`, 1))
	put(t, dir, "mine.json", strings.Replace(exampleGrid, `"tp": 2, "num_gpu_blocks": 3`, `"tp": 2, "num_gpu_blocks": 3000`, 1))
	return dir
}

// Engine arguments that name a model and a GPU run as with the grid of both, in
// every way to say so; and so does a router that predicts.
func TestGridOfIdentity(t *testing.T) {
	dir := estimatorDir(t)
	nested := func(identity string) string {
		return `{"engine":{"timing_model":{"type":"external","provider":"ais","config":{` + identity + `}}}}`
	}
	const mine = `"backend":"vllm","system":"my_gpu","model":"my/model","tp":2`
	const flatMine = `{"aic_backend":"vllm","aic_system":"my_gpu","aic_model_path":"my/model","aic_tp_size":2}`
	reports := map[string]bool{}
	for _, c := range []struct{ want, got string }{
		{"--perf-grid g.json", `--extra-engine-args {"aic_backend":"vllm","aic_system":"example_gpu","aic_model_path":"example/70b","aic_tp_size":4}`},
		{"--perf-grid g.json", "--perf-grid shipped:grid-example-gpu.json"},
		{"--perf-grid g.json --num-workers 2", `--num-workers 2 --extra-engine-args ` + nested(`"backend":"vllm","system":"example_gpu","model":"example/70b","tp":4`)},
		{"--perf-grid mine.json", "--grid-dir grids --extra-engine-args " + flatMine},
		{"--perf-grid mine.json", "--grid-dir grids --extra-engine-args " + nested(mine)},
		{"--perf-grid mine.json " + predicting, "--perf-grid mine.json --grid-dir grids " + predicting + " --aic-backend vllm --aic-system my_gpu --aic-model-path my/model --aic-tp-size 2"},
		{"--perf-grid g.json " + predicting, "--perf-grid g.json " + predicting + " " + identityFlags},
		{"--perf-grid g.json " + predicting, "--perf-grid g.json " + predicting + " " + strings.ReplaceAll(identityFlags, "--aic-", "--ais-")},
		{"--perf-grid g.json " + predicting, "--perf-grid g.json " + predicting + ` --ais-perf-config {"backend":"vllm","system":"example_gpu","model":"example/70b","tp":4,"worker_type":"prefill"}`},
		{"--perf-grid g.json " + predicting, predicting + " --aic-gemm-dtype auto " + identityFlags +
			` --extra-engine-args {"aic_backend":"vllm","aic_system":"example_gpu","aic_model_path":"example/70b","aic_tp_size":4}`},
		{`--perf-grid g.json --prefill-engine-args {"worker_type":"prefill"} --decode-engine-args {"worker_type":"decode"} --router-mode kv_router --num-prefill-workers 2 --router-config {"router_prefill_load_model":"ais"}`,
			`--router-mode kv_router --num-prefill-workers 2 --router-config {"router_prefill_load_model":"ais"} ` + identityFlags +
				` --prefill-engine-args {"worker_type":"prefill","aic_backend":"vllm","aic_system":"example_gpu","aic_model_path":"example/70b","aic_tp_size":4}` +
				` --decode-engine-args {"worker_type":"decode","aic_backend":"vllm","aic_system":"example_gpu","aic_model_path":"example/70b","aic_tp_size":4}`},
	} {
		want := reported(t, dir, append([]string{"t.jsonl"}, strings.Fields(c.want)...)...)
		if got := reported(t, dir, append([]string{"t.jsonl"}, strings.Fields(c.got)...)...); got != want {
			t.Errorf("%s: reports differ from %s:\n%s\n%s", c.got, c.want, got, want)
		}
		reports[want] = true
	}
	if len(reports) < 5 {
		t.Errorf("only %d reports differ", len(reports))
	}
	// The flags are the router's alone: engines keep the default formulas, and
	// predictions of another model place requests elsewhere.
	const busy = "--input-tokens 3000 --output-tokens 5 --request-count 60 --request-rate 20 --turns-per-session 2 --shared-prefix-ratio 0.5 --num-prefix-groups 7 "
	none := reported(t, dir, strings.Fields(busy+strings.Replace(predicting, "aic", "none", 1))...)
	slow := reported(t, dir, strings.Fields(busy+predicting+" "+identityFlags)...)
	fast := reported(t, dir, strings.Fields(busy+predicting+" --aic-backend vllm --aic-system h200_sxm --aic-model-path meta-llama/Meta-Llama-3.1-8B")...)
	if slow == reported(t, dir, strings.Fields(busy+predicting+" --perf-grid g.json "+identityFlags)...) {
		t.Error("engines have the grid of the predictions")
	}
	if none == slow || slow == fast {
		t.Error("predictions change nothing")
	}
}

func TestBadIdentityFlags(t *testing.T) {
	const together = "; --aic-backend, --aic-system and --aic-model-path together are accepted"
	const another = "--aic-backend vllm --aic-system s --aic-model-path m"
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--aic-backend vllm", 2, "--aic-backend is given without --aic-system, --aic-model-path" + together},
		{"--ais-system s", 2, "--aic-system is given without --aic-backend, --aic-model-path" + together},
		{"--aic-model-path m --aic-backend vllm", 2, "--aic-backend is given without --aic-system" + together},
		{"--aic-tp-size 2", 2, "--aic-tp-size is given without --aic-backend, --aic-system, --aic-model-path" + together},
		{"--aic-attention-dp-size 2", 2, "--aic-attention-dp-size is given without --aic-backend, --aic-system, --aic-model-path" + together},
		{`--ais-perf-config {"backend":"vllm"} --aic-system s`, 2, "--ais-perf-config and --aic-system are given; one of the two ways is accepted"},
		{`--ais-perf-config {"backend":"vllm","system":"s"}`, 1, "--ais-perf-config:1:1: the object has no model; a text is accepted"},
		{"--aic-perf-config {}", 2, "--aic-perf-config is a parameter of the reference's functions; --ais-perf-config is accepted"},
		{"--performance-model-metadata {}", 2, "--performance-model-metadata is not built yet (scaling by a planner); leave it out"},
		{another + " --aic-tp-size two", 2, `--aic-tp-size is "two"; a whole number is accepted`},
		{another + " --aic-tp-size 0", 1, "--aic-tp-size is 0; a whole number of at least 1 is accepted"},
		{another + " --aic-moe-ep-size=-1", 1, "--aic-moe-ep-size is -1; a whole number of at least 1 is accepted"},
		{"--aic-backend tgi --aic-system s --aic-model-path m", 1, `--aic-backend is "tgi"; vllm or sglang or trtllm is accepted`},
		{"--aic-backend vllm --aic-system= --aic-model-path m", 1, "--aic-system is empty; a name is accepted"},
		{"--aic-fmha-dtype fp8", 1, `--aic-fmha-dtype is "fp8"; "auto", the model's own type, which grids are for, is accepted`},
		{"--grid-dir=", 1, "--grid-dir is empty; a path is accepted"},
		{predicting + " --grid-dir none " + another, 1, "--aic-backend: --grid-dir: cannot open none: no such file or directory; a directory with grids is accepted"},
		{predicting, 1, `router_prefill_load_model predicts how long prompts take, which only a grid tells; "none", --perf-grid, or --aic-backend, --aic-system and --aic-model-path, are accepted`},
	} {
		dir := t.TempDir()
		put(t, dir, "t.jsonl", one)
		expect(t, invoke(t, dir, append([]string{"t.jsonl"}, strings.Fields(c.args)...)...), c.status, c.want)
	}
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	got := invoke(t, dir, strings.Fields("t.jsonl --ais-perf-config {\"backend\":\"vllm\",\"system\":\"s\",\"model\":\"m\",\"tp\":8} "+predicting)...)
	if got.status != 1 || !strings.HasPrefix(got.stderr, "replay: --ais-perf-config: no grid is for m on s with vllm, tp 8; there are shipped:grid-") ||
		!strings.HasSuffix(got.stderr, "; python -m dryserve.export_grid --model m --system s --backend vllm --tp 8 --out grids/grid.json makes one for --grid-dir grids\n") {
		t.Errorf("%+v", got)
	}
}

// An identity that nobody asks about is told.
func TestIdentityWarnings(t *testing.T) {
	dir := estimatorDir(t)
	const without = " has no effect without router_prefill_load_model and --router-mode kv_router; how long passes take is said by --perf-grid or engine arguments\n"
	for args, want := range map[string]string{
		identityFlags: "replay: warning: --aic-backend" + without,
		identityFlags + " --router-mode kv_router --num-workers 2":      "replay: warning: --aic-backend" + without,
		`--ais-perf-config {"backend":"vllm","system":"s","model":"m"}`: "replay: warning: --ais-perf-config" + without,
		"--grid-dir grids": "replay: warning: --grid-dir has no effect: nothing asks for a grid by model and GPU\n",
		predicting + " --grid-dir grids " + identityFlags: "",
		"--aic-gemm-dtype auto --aic-comm-dtype none":     "",
	} {
		if got := invoke(t, dir, append([]string{"t.jsonl", "--no-table", "--trace-block-size", "64"}, strings.Fields(args)...)...); got.status != 0 || got.stderr != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// A client that answers as a grid does is asked by a router that predicts, too,
// and gets the grid's report.
func TestServeAsksForTheRouter(t *testing.T) {
	dir := estimatorDir(t)
	g, err := profile.LoadGrid(filepath.Join(dir, "g.json"))
	if err != nil {
		t.Fatal(err)
	}
	e := config.Defaults(config.VLLM)
	e.Timing = config.Timing{Kind: config.Grid, Grid: g.Table}
	model := timing.New(e)
	const busy = "--input-tokens 3000 --output-tokens 5 --request-count 40 --request-rate 9 --turns-per-session 2 --shared-prefix-ratio 0.5 --num-prefix-groups 7 "
	reports := map[string]bool{}
	for _, predict := range []string{"aic", "none"} {
		args := strings.Fields(busy + strings.Replace(predicting, "aic", predict, 1))
		ok(t, invoke(t, dir, append(args, "--perf-grid", "g.json", "--report-json", "r.json")...))
		want, err := os.ReadFile(filepath.Join(dir, "r.json"))
		if err != nil {
			t.Fatal(err)
		}
		c := connect(t, dir)
		c.run(1, asking(), append(args, "--extra-engine-args", `{"engine": {"num_gpu_blocks": 9000}, "num_gpu_blocks_is_explicit": true, "tensor_parallel_size": 4}`)...)
		m := c.next()
		for ; m["event"] == "ask"; m = c.next() {
			batch, isl, prefix := asInt(m["ask_batch"]), asInt(m["ask_isl"]), asInt(m["ask_prefix"])
			ms := model.Decode(batch, batch*isl)
			if asInt(m["ask_kind"]) == 0 {
				ms = model.Prefill(batch, batch*(isl+prefix), batch*prefix)
			}
			c.send(number("id", 1), text("op", "answer"), frame.Field{Name: "answer_ms", Var: ptr(ms)})
		}
		if m["event"] != "done" || withoutWall(t, m["report"]) != withoutWall(t, string(want)) {
			t.Errorf("%s: %v\nwant\n%s", predict, m, want)
		}
		reports[withoutWall(t, string(want))] = true
	}
	if len(reports) != 2 {
		t.Error("predictions change nothing")
	}
}
