package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// shortTrace puts the first rows of the shipped trace into dir.
func shortTrace(t *testing.T, dir string, rows int) {
	t.Helper()
	data, err := os.ReadFile("../../examples/conversation-2k.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "t.jsonl", strings.Join(strings.SplitAfter(string(data), "\n")[:rows], ""))
}

// line is a line of a file of results.
type line struct {
	Digest   string
	Settings map[string]any
	GPUs     float64
	Report   json.RawMessage
	Error    string
}

// kept are the sorted lines of a file of results.
func kept(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	slices.Sort(lines)
	return lines[1:] // the first one is empty
}

// A point's report is that of the same replay, for every kind of axis and
// workload; GPUs are those of all workers.
func TestSweepPointsAreReplays(t *testing.T) {
	dir := t.TempDir()
	shortTrace(t, dir, 60)
	put(t, dir, "e.json", "{\"engine\": {\n\"block_size\": 32}, \"dp_size\": 2}")
	put(t, dir, "scaling.yaml", "- {at_ms: 3000, workers: 5}\n")
	put(t, dir, "w.txt", strings.Repeat("1\n", 60))
	for i, c := range []struct {
		file string
		args []string  // of a point, in the order of the points
		gpus []float64 // 0: as many as on average
	}{
		{`trace: t.jsonl
sweep:
  num-workers: [1, 3]
  arrival-speedup-ratio: [1, 7.5]
`, []string{"t.jsonl --num-workers 1", "t.jsonl --num-workers 1 --arrival-speedup-ratio 7.5", "t.jsonl --num-workers 3", "t.jsonl --num-workers 3 --arrival-speedup-ratio 7.5"}, []float64{1, 1, 3, 3}},
		{`trace: t.jsonl
extra-engine-args: e.json
sweep:
  - extra-engine-args.dp_size: [1, 4]
    extra-engine-args.engine.sglang.schedule_policy: [lpm]
    extra-engine-args.engine.backend: sglang
  - extra-engine-args: [~, {tensor_parallel_size: 4}]
`, []string{
			`t.jsonl --extra-engine-args {"engine":{"block_size":32,"backend":"sglang","sglang":{"schedule_policy":"lpm"}},"dp_size":1}`,
			`t.jsonl --extra-engine-args {"engine":{"block_size":32,"backend":"sglang","sglang":{"schedule_policy":"lpm"}},"dp_size":4}`,
			"t.jsonl", `t.jsonl --extra-engine-args {"tensor_parallel_size":4}`,
		}, []float64{1, 4, 1, 4}},
		{`trace: t.jsonl
prefill-engine-args: {engine: {worker_type: prefill}}
decode-engine-args: {engine: {worker_type: decode}}
sweep:
  prefill-decode: ["1+3", 2+1]
  decode-engine-args.dp_size: [2]
`, []string{
			`t.jsonl --prefill-engine-args {"engine":{"worker_type":"prefill"}} --decode-engine-args {"dp_size":2,"engine":{"worker_type":"decode"}} --num-decode-workers 3`,
			`t.jsonl --prefill-engine-args {"engine":{"worker_type":"prefill"}} --decode-engine-args {"dp_size":2,"engine":{"worker_type":"decode"}} --num-prefill-workers 2`,
		}, []float64{7, 4}},
		{`trace: t.jsonl
num-workers: 2
sweep:
  - router-mode: [kv_router]
    router-config.overlap_score_weight: [0, 2.5]
  - router-mode: [direct]
    direct-workers: w.txt
`, []string{
			`t.jsonl --num-workers 2 --router-mode kv_router --router-config {"overlap_score_weight":0}`,
			`t.jsonl --num-workers 2 --router-mode kv_router --router-config {"overlap_score_weight":2.5}`,
			"t.jsonl --num-workers 2 --router-mode direct --direct-workers w.txt",
		}, []float64{2, 2, 2}},
		{`trace: t.jsonl
sweep:
  num-workers: 2
  scaling-script: [scaling.yaml, ~]
`, []string{"t.jsonl --num-workers 2 --scaling-script scaling.yaml", "t.jsonl --num-workers 2"}, []float64{0, 2}},
		{`input-tokens: 900
output-tokens: 20
request-count: 40
sla-ttft-ms: 100
sweep: {request-rate: [3, 30]}
`, []string{
			"--input-tokens 900 --output-tokens 20 --request-count 40 --sla-ttft-ms 100 --request-rate 3",
			"--input-tokens 900 --output-tokens 20 --request-count 40 --sla-ttft-ms 100 --request-rate 30",
		}, []float64{1, 1}},
	} {
		put(t, dir, "s.yaml", c.file)
		out := fmt.Sprintf("out%d", i)
		text := ok(t, invoke(t, dir, "sweep", "s.yaml", "--output", out, "--json"))
		var got struct {
			Points []struct {
				line
				Point int
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Points) != len(c.args) {
			t.Fatalf("%s%d points, want %d", c.file, len(got.Points), len(c.args))
		}
		digests := map[string]bool{}
		for k, p := range got.Points {
			digests[p.Digest] = true
			path := filepath.Join(dir, "r.json")
			ok(t, invoke(t, dir, append(strings.Fields(c.args[k]), "--no-table", "--report-json", path)...))
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want, have map[string]any
			if json.Unmarshal(data, &want) != nil || json.Unmarshal(p.Report, &have) != nil {
				t.Fatalf("%s, %s", data, p.Report)
			}
			wantGPUs := c.gpus[k]
			if wantGPUs == 0 {
				wantGPUs = want["gpu_hours"].(float64) * 3_600_000 / want["duration_ms"].(float64)
				if !(wantGPUs > 2 && wantGPUs < 5) {
					t.Errorf("%v GPUs on average", wantGPUs)
				}
			}
			if p.GPUs != wantGPUs || p.Point != k+1 {
				t.Errorf("%spoint %d has %v GPUs, want %v", c.file, p.Point, p.GPUs, wantGPUs)
			}
			for _, clock := range []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"} {
				delete(want, clock)
			}
			if a, b := fmt.Sprint(want), fmt.Sprint(have); a != b {
				t.Errorf("%s%s:\n%s\nthe sweep has\n%s", c.file, c.args[k], a, b)
			}
		}
		if strings.Contains(c.file, "scaling.yaml") { // another script in the same file is another point
			put(t, dir, "scaling.yaml", "- {at_ms: 4000, workers: 5}\n")
			ok(t, invoke(t, dir, "sweep", "s.yaml", "--output", out))
			if n := len(kept(t, filepath.Join(dir, out, "results.jsonl"))); n != 3 {
				t.Errorf("%d lines after another script", n)
			}
		}
		if len(digests) != len(c.args) {
			t.Errorf("%s%d digests", c.file, len(digests))
		}
	}
}

const slow = `trace: t.jsonl
engine-impl: plain
sweep:
  num-workers: [1, 2, 3, 4]
  arrival-speedup-ratio: [1, 2, 4]
`

// undisturbed runs a sweep undisturbed and gives its results and table.
func undisturbed(t *testing.T, dir string) ([]string, string) {
	t.Helper()
	table := ok(t, invoke(t, dir, "sweep", "s.yaml", "--output", "whole"))
	return kept(t, filepath.Join(dir, "whole", "results.jsonl")), table
}

// after starts a sweep and waits until it has so many results.
func after(t *testing.T, dir string, results int) *exec.Cmd {
	t.Helper()
	cmd := command(dir, "sweep", "s.yaml", "--output", "broken")
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		data, _ := os.ReadFile(filepath.Join(dir, "broken", "results.jsonl"))
		if strings.Count(string(data), "\n") >= results {
			return cmd
		}
		time.Sleep(time.Millisecond)
	}
}

// A sweep that is killed in the middle, again and again, goes on where it was:
// no point is lost, none runs twice, and the results are those of an undisturbed
// one.
func TestSweepKilled(t *testing.T) {
	dir := t.TempDir()
	shortTrace(t, dir, 200)
	put(t, dir, "s.yaml", slow)
	want, table := undisturbed(t, dir)
	path := filepath.Join(dir, "broken", "results.jsonl")
	inMiddle := 0
	for _, at := range []int{1, 4, 7} {
		cmd := after(t, dir, at)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if n := len(kept(t, path)); n < len(want) {
			inMiddle++
		}
	}
	if inMiddle == 0 {
		t.Error("no kill was in the middle")
	}
	before := kept(t, path)
	got := invoke(t, dir, "sweep", "s.yaml", "--output", "broken")
	if got.status != 0 || got.stdout != table {
		t.Errorf("%+v, want\n%s", got, table)
	}
	lines := kept(t, path)
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines, undisturbed %d", len(lines), len(want))
	}
	for _, l := range before {
		if !slices.Contains(lines, l) {
			t.Errorf("lost: %s", l)
		}
	}
	info, _ := os.Stat(path)
	if again := ok(t, invoke(t, dir, "sweep", "s.yaml", "--output", "broken")); again != table {
		t.Errorf("once more:\n%s", again)
	}
	if now, _ := os.Stat(path); now.ModTime() != info.ModTime() {
		t.Error("results are written again")
	}
}

// Ctrl-C keeps what is done and says how to go on.
func TestSweepInterrupted(t *testing.T) {
	dir := t.TempDir()
	shortTrace(t, dir, 200)
	put(t, dir, "s.yaml", slow)
	cmd := after(t, dir, 2)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	some := kept(t, filepath.Join(dir, "broken", "results.jsonl"))
	if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGINT) || len(some) < 2 || len(some) == 12 {
		t.Fatalf("status %d, %d results", status, len(some))
	}
	told := fmt.Sprintf("replay: interrupted: %d of 12 points are in broken/results.jsonl; the same command goes on with the others\n", len(some))
	if got := cmd.Stderr.(*bytes.Buffer).String(); got != told {
		t.Errorf("got  %swant %s", got, told)
	}
	want, table := undisturbed(t, dir)
	if got := ok(t, invoke(t, dir, "sweep", "s.yaml", "--output", "broken", "--jobs", "1")); got != table {
		t.Errorf("got\n%s, want\n%s", got, table)
	}
	if got := kept(t, filepath.Join(dir, "broken", "results.jsonl")); !slices.Equal(got, want) {
		t.Error("results differ")
	}
}

// Points that cannot run are told of and do not stop the others. What has
// changed is run again, what has not is not.
func TestSweepFailures(t *testing.T) {
	dir := t.TempDir()
	shortTrace(t, dir, 40)
	const file = `trace: t.jsonl
sweep:
  num-workers: [1, 0]
  extra-engine-args.engine.num_gpu_blocks: [2048, -5]
  router-mode: [round_robin, direct]
sla:
  p99-ttft-ms: 1e6
`
	put(t, dir, "s.yaml", file)
	got := invoke(t, dir, "sweep", "s.yaml", "--report-html", "p.html")
	if got.status != 1 || !strings.HasSuffix(got.stderr, "replay: 7 of 8 points failed\n") || !strings.Contains(got.stdout, "Best under the SLA (p99_ttft_ms at most 1e+06): point 1 (") {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{
		"Point 2 (num-workers 1, num_gpu_blocks 2048, router-mode direct) failed: s.yaml:5: router-mode direct needs the worker of each request; a file of --direct-workers is accepted\n",
		"Point 5 (num-workers 0, num_gpu_blocks 2048, router-mode round_robin) failed: s.yaml:3: num-workers is 0; a whole number from 1 to ",
		"Point 3 (num-workers 1, num_gpu_blocks -5, router-mode round_robin) failed: s.yaml:4: extra-engine-args: engine.num_gpu_blocks is the number -5; ",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("there is no %q in\n%s", want, got.stdout)
		}
	}
	path := filepath.Join(dir, "s.sweep", "results.jsonl")
	lines := kept(t, path)
	if len(lines) != 8 {
		t.Fatalf("%d lines", len(lines))
	}
	page, err := os.ReadFile(filepath.Join(dir, "p.html"))
	if err != nil || !strings.Contains(string(page), "Points that failed") {
		t.Errorf("the page: %v", err)
	}
	if again := invoke(t, dir, "sweep", "s.yaml"); again.stdout != got.stdout || !slices.Equal(kept(t, path), lines) {
		t.Errorf("once more: %+v", again)
	}
	// Another SLA is no other point; another trace is, for those that run.
	put(t, dir, "s.yaml", strings.Replace(file, "1e6", "1", 1))
	if again := invoke(t, dir, "sweep", "s.yaml"); !strings.Contains(again.stdout, "No point meets the SLA (p99_ttft_ms at most 1).\n") || len(kept(t, path)) != 8 {
		t.Errorf("another SLA: %+v", again)
	}
	shortTrace(t, dir, 41)
	if again := invoke(t, dir, "sweep", "s.yaml"); again.status != 1 || len(kept(t, path)) != 9 {
		t.Errorf("another trace: %+v, %d lines", again, len(kept(t, path)))
	}
	// Requests that are refused leave their mark, and a point that gets stuck its sentence.
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":4,"output_length":5,"hash_ids":[1]`)+row(`"timestamp":0,"input_length":24,"output_length":0,"hash_ids":[2]`))
	put(t, dir, "s.yaml", `trace: t.jsonl
extra-engine-args: {engine: {backend: sglang, num_gpu_blocks: 6, block_size: 4}}
sweep: {parity: [true, false]}
`)
	got = invoke(t, dir, "sweep", "s.yaml", "--json")
	var out struct{ Points []line }
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.status != 1 || len(out.Points) != 2 {
		t.Fatalf("%+v", got)
	}
	if !strings.Contains(out.Points[0].Error, "replay invariant violated") || out.Points[1].Error != "" || !strings.Contains(string(out.Points[1].Report), `"failed_requests": 1`) {
		t.Errorf("%+v", out)
	}
}

// Sentences about engine arguments name the place that has the fault: a value
// below sweep, another one of the scenario, or one of the file it names.
func TestSweepPlaces(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	put(t, dir, "e.json", "{\"engine\": {\n\"block_size\": \"r\"}, \"dp_size\": 2}")
	for file, want := range map[string]string{
		"trace: t.jsonl\nextra-engine-args: e.json\nsweep:\n  extra-engine-args.dp_size: [3]\n":                              "e.json:2:15: engine.block_size is the text \"r\"; ",
		"trace: t.jsonl\nextra-engine-args: e.json\nsweep:\n  extra-engine-args.engine.block_size:\n  - x\n":                 "s.yaml:5: extra-engine-args: engine.block_size is the text \"x\"; ",
		"trace: t.jsonl\nextra-engine-args:\n  engine: {}\n  dp_size: x\nsweep:\n  extra-engine-args.engine.block_size: 4\n": "s.yaml:4:13: dp_size is the text \"x\"; ",
		"trace: t.jsonl\nsweep:\n  extra-engine-args:\n  - dp_size: y\n":                                                     "s.yaml:4:15: dp_size is the text \"y\"; ",
		"trace: t.jsonl\nextra-engine-args: e.json\nsweep:\n  num-workers: [1, 2]\n":                                         "e.json:2:15: engine.block_size is the text \"r\"; ",
	} {
		put(t, dir, "s.yaml", file)
		if got := invoke(t, dir, "sweep", "s.yaml"); got.status != 1 || !strings.HasPrefix(got.stderr, "replay: "+want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s%+v, want %s", file, got, want)
		}
	}
}

// Whatever flag a replay gets that writes or prints, a sweep refuses it.
func TestSweepRefusesOutputs(t *testing.T) {
	for _, g := range flagGroups(&options{}) {
		if g.title != "Output" && g.title != "This program" {
			continue
		}
		g.flags.VisitAll(func(f *pflag.Flag) {
			if taken := f.Name == "parity" || f.Name == "engine-impl"; singleRun[f.Name] == "" && !commandLineOnly[f.Name] && !taken {
				t.Errorf("--%s: is it for a sweep?", f.Name)
			}
		})
	}
}

func TestTells(t *testing.T) {
	for sentence, want := range map[string]bool{
		"a.b is 5": true, `unknown field "a.b"`: true, "a.bc is a.b": true, "a.bc is 5": false, "x.a.b": false, "": false, "a.b": true, "a.b_c, a.b.c, aa.b": false,
	} {
		if tells(sentence, "a.b") != want {
			t.Errorf("%q: %v", sentence, !want)
		}
	}
}

// Equal points run once, wherever they stand.
func TestSweepEqualPoints(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", strings.Repeat(one, 5))
	put(t, dir, "s.yaml", "trace: t.jsonl\nsweep:\n  - num-workers: [1, 2, ~]\n  - num-workers: [\"2\", 1]\n    model-name: x\n")
	got := ok(t, invoke(t, dir, "sweep", "s.yaml"))
	if n := len(kept(t, filepath.Join(dir, "s.sweep", "results.jsonl"))); n != 2 || strings.Count(got, "\n") != 8 {
		t.Errorf("%d lines\n%s", n, got)
	}
}

func TestSweepBadInput(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	put(t, dir, "none.yaml", "trace: t.jsonl\n")
	put(t, dir, "ok.yaml", "trace: t.jsonl\nsweep: {num-workers: [1]}\n")
	put(t, dir, "json.yaml", "trace: t.jsonl\nreport-json: x\nsweep: {num-workers: [1]}\n")
	put(t, dir, "watch.yaml", "trace: t.jsonl\ncapture-telemetry: true\nsweep: {num-workers: [1]}\n")
	put(t, dir, "wasm.yaml", "trace: t.jsonl\nsweep:\n  engine: [wasm]\n")
	put(t, dir, "split.yaml", "trace: t.jsonl\nsweep:\n  prefill-decode: [1+1, 2]\n")
	put(t, dir, "stdin.yaml", "trace: \"-\"\nsweep: {num-workers: [1]}\n")
	put(t, dir, "dir.yaml", "trace: .\nexecution-model: m\nsweep: {num-workers: [1]}\n")
	put(t, dir, "gone.yaml", "trace: gone.jsonl\nsweep: {num-workers: [1]}\n")
	put(t, dir, "empty.yaml", "sweep: {num-workers: [1, 2]}\n")
	put(t, dir, "word.yaml", "trace: t.jsonl\nsweep: {num-workers: [x]}\n")
	put(t, dir, "bad.yaml", "trace: bad.jsonl\nsweep: {num-workers: [1, 2]}\n")
	put(t, dir, "bad.jsonl", "[]\n")
	put(t, dir, "args.yaml", "trace: t.jsonl\nextra-engine-args: gone.json\nsweep:\n  extra-engine-args.dp_size: [1, 2]\n")
	put(t, dir, "object.yaml", "trace: t.jsonl\nextra-engine-args: {engine: 5}\nsweep:\n  extra-engine-args.engine.dp_size: [1]\n")
	if err := os.Mkdir(filepath.Join(dir, "kept"), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "kept/results.jsonl", "hello\n")
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"", 2, "no scenario is given; a YAML file with the key sweep is accepted"},
		{"ok.yaml none.yaml", 2, `2 scenarios are given ("ok.yaml", "none.yaml"); one is accepted`},
		{"ok.yaml --jobs 0", 1, "--jobs is 0; a whole number from 1 to 1024 is accepted"},
		{"ok.yaml --jobs x", 2, `--jobs is "x"; a whole number is accepted`},
		{"ok.yaml --output=", 1, "--output is empty; a path is accepted"},
		{"ok.yaml --output t.jsonl", 1, "cannot write to t.jsonl: not a directory"},
		{"ok.yaml --output kept", 1, `kept/results.jsonl:1: found "hello"; an outcome of a sweep, or another directory of --output, is accepted`},
		{"ok.yaml --report-html .", 1, "--report-html: cannot write .: is a directory"},
		{"ok.yaml --report-html ./ok.yaml", 2, `--report-html "./ok.yaml" is what the sweep reads; another path is accepted`},
		{"ok.yaml --report-html t.jsonl", 2, `--report-html "t.jsonl" is what the sweep reads; another path is accepted`},
		{"dir.yaml", 2, `the results would be in the directory ".", which is the trace; --output with another one is accepted`},
		{"ok.yaml --sort size", 2, `--sort is "size"; point or gpus or throughput or ttft or itl or e2e is accepted`},
		{"ok.yaml --num-workers 3", 2, `unknown flag "--num-workers"; replay sweep --help lists the flags`},
		{"gone", 1, "gone: no such file; a YAML file with flags by name is accepted"},
		{"none.yaml", 2, "none.yaml: has no sweep; values by flag below that key are accepted (docs/sweep.md)"},
		{"json.yaml", 2, "json.yaml:2: report-json is for a single run; a sweep keeps the reports of its points in results.jsonl"},
		{"watch.yaml", 2, "watch.yaml:2: capture-telemetry is for a single run; a sweep keeps no samples"},
		{"wasm.yaml", 2, "wasm.yaml:3: engine is for a single run; a sweep runs native code"},
		{"split.yaml", 2, `split.yaml:3: prefill-decode is "2"; workers as in "1+3", those that compute prompts first, are accepted`},
		{"stdin.yaml", 2, "stdin.yaml: the trace is standard input, which can be read once; a file is accepted"},
		{"gone.yaml", 1, "gone.jsonl: cannot be read: no such file or directory"},
		{"empty.yaml", 2, "no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted"},
		{"word.yaml", 1, `word.yaml:2: num-workers is "x"; a whole number is accepted`},
		{"args.yaml", 1, "args.yaml:2: extra-engine-args: cannot read gone.json: no such file or directory"},
		{"object.yaml", 1, `object.yaml:4: extra-engine-args: engine is "5"; an object is accepted, as engine.dp_size is set in it`},
		{"bad.yaml", 1, "2 of 2 points failed"},
	} {
		got := invoke(t, dir, append([]string{"sweep"}, strings.Fields(c.args)...)...)
		if got.status != c.status || got.stderr != "replay: "+c.want+"\n" {
			t.Errorf("%s: %+v, want status %d: %s", c.args, got, c.status, c.want)
		}
	}
	if got := invoke(t, dir, "--config", "ok.yaml"); got.status != 1 ||
		got.stderr != "replay: ok.yaml:2: sweep is for a sweep of runs, and this is one; the keys of a single run, or replay sweep, are accepted\n" {
		t.Errorf("%+v", got)
	}
}

// The examples are valid, and each of their points has a digest of its own.
func TestSweepExamples(t *testing.T) {
	for name, n := range map[string]int{"sweep.yaml": 100, "sweep-pools.yaml": 24} {
		p, err := readPlan(t.Context(), "../../examples/"+name)
		if err != nil {
			t.Fatal(err)
		}
		digests := map[string]bool{}
		for _, x := range p.points {
			digests[x.digest] = true
			if x.refused != nil {
				t.Error(x.refused)
			}
		}
		if len(p.points) != n || len(digests) != n {
			t.Errorf("%s: %d points, %d digests, want %d", name, len(p.points), len(digests), n)
		}
	}
}
