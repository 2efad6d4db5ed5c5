package accuracy

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/host/native/profile"
)

// flatGrid takes 10 ms for any prefill and 2 ms for any decode step.
const flatGrid = `{"backend": "vllm", "backend_version": "1", "system": "a100", "model": "m", "tp": 2, "num_gpu_blocks": 100,
 "prefill": {"batch": [1, 8], "isl": [1, 64], "prefix": [0, 64], "ms": [[[10, 10], [10, 10]], [[10, 10], [10, 10]]]},
 "decode": {"batch": [1, 8], "context": [1, 64], "ms": [[2, 2], [2, 2]]}}`

func grid(t *testing.T, edits ...string) *profile.Grid {
	t.Helper()
	g, err := profile.ParseGrid("grid.json", []byte(strings.NewReplacer(edits...).Replace(flatGrid)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorded writes a run of two requests, 20 ms apart: the first took 12 ms to
// its first token and 2 more for each of two others, the second 11 and none.
func recorded(t *testing.T, root string) string {
	dir := filepath.Join(root, "a100", "m")
	write(t, filepath.Join(dir, "meta.json"), `{"model": "m", "engine_kwargs": {"tensor_parallel_size": 2, "max_num_seqs": 4, "max_num_batched_tokens": 512, "other": null}}`)
	write(t, filepath.Join(dir, "requests.jsonl"), `{"request_id": "b", "input_toks": 9, "output_toks": 1, "queued_ts": 100.02, "first_token_ts": 100.031, "last_token_ts": 100.031}
{"request_id": "a", "input_toks": 8, "output_toks": 3, "queued_ts": 100.0, "first_token_ts": 100.012, "last_token_ts": 100.016}
`)
	return dir
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestRunBesideReplay(t *testing.T) {
	c, err := ReadRun(recorded(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "m" || c.System != "a100" || c.TP != 2 || c.MaxNumSeqs != 4 || c.MaxNumBatchedTokens != 512 || len(c.Requests) != 2 {
		t.Fatalf("%+v", c)
	}
	if first := c.Requests[0]; first.ArrivalMs != 0 || first.Input != 8 || !near(c.Requests[1].ArrivalMs, 20) {
		t.Errorf("arrivals %+v", c.Requests)
	}
	samples, err := Predict(c, grid(t), Engine{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 2 || !near(samples[0].TTFTMs, 10) || !near(samples[0].TPOTMs, 2) || !near(samples[0].E2EMs, 14) ||
		!near(samples[1].TTFTMs, 10) || !math.IsNaN(samples[1].TPOTMs) || !near(samples[1].E2EMs, 10) {
		t.Errorf("%+v", samples)
	}
	lines, err := Compare(c, grid(t), Engine{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[Metric][2]float64{
		TTFTMean: {11.5, 10}, TTFTMedian: {11.5, 10}, TTFTP99: {11.99, 10},
		TPOTMean: {2, 2}, TPOTMedian: {2, 2}, TPOTP99: {2, 2}, E2EMean: {13.5, 12}, E2EP99: {15.95, 13.96},
	}
	if len(lines) != len(want) {
		t.Fatalf("%+v", lines)
	}
	for _, l := range lines {
		if w := want[l.Metric]; !near(l.Measured, w[0]) || !near(l.Predicted, w[1]) || l.Grid != "vllm 1, a100, tp 2" {
			t.Errorf("%+v, want %v", l, w)
		}
	}
	if e := lines[0].ErrorPercent(); !near(e, (10/11.5-1)*100) {
		t.Errorf("error %v %%", e)
	}
}

const benchmarks = `id,backend,backend_version,model_path,system,mode,isl,osl,batch_size,tp_size,pp_size,silicon_ttft_ms,silicon_tpot_ms
1,vllm,0.1,m,a100,agg,8,3,2,2,1,12.5,2.5
2,vllm,0.1,m,a100,disagg,8,3,,,,12.5,2.5
3,vllm,0.1,m,a100,agg,8,3,2,2,2,12.5,2.5
4,vllm,0.1,m,h100,agg,8,3,1,4,1,20,4
5,sglang,0.1,n,a100,agg,8,3,1,2,1,20,4
`

func TestBenchmarksBesideReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.csv")
	write(t, path, benchmarks)
	all, err := ReadSilicon(path, Filter{}, Clients{Waves: 3})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	for filter, want := range map[Filter]int{
		{Model: "m"}: 2, {Model: "m", TP: 4}: 1, {System: "a100"}: 2, {Backend: "sglang"}: 1, {Model: "x"}: 0,
	} {
		if got, err := ReadSilicon(path, filter, Clients{Waves: 1}); err != nil || len(got) != want {
			t.Errorf("%+v: %d cases, %v", filter, len(got), err)
		}
	}
	c := all[0]
	if c.Name != "m, 2 x a100, vllm 0.1, 8 in 3 out, 2 clients" || c.Concurrency != 2 || len(c.Requests) != 6 {
		t.Errorf("%+v", c)
	}
	lines, err := Compare(c, grid(t), Engine{})
	if err != nil || len(lines) != 2 {
		t.Fatalf("%+v, %v", lines, err)
	}
	// Two clients in step: 10 ms for both prompts, then two steps.
	if l := lines[0]; l.Metric != TTFTMean || l.Measured != 12.5 || !near(l.Predicted, 10) || !near(l.ErrorPercent(), -20) {
		t.Errorf("%+v", l)
	}
	if l := lines[1]; l.Metric != TPOTMean || l.Measured != 2.5 || !near(l.Predicted, 2) {
		t.Errorf("%+v", l)
	}
	table := Markdown(append(lines, lines...))
	for _, want := range []string{
		"| m, 2 x a100, vllm 0.1, 8 in 3 out, 2 clients | vllm 1, a100, tp 2 | TTFT mean | 12.50 | 10.00 | -20.0 |\n",
		"\nTTFT mean: mean amount of 2 errors 20.0 %\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

func TestSpread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.csv")
	write(t, path, strings.Replace(benchmarks, "8,3,2,2,1", "8,100,2,2,1", 1))
	cases, err := ReadSilicon(path, Filter{Model: "m", TP: 2}, Clients{Waves: 50, Spread: 0.1})
	if err != nil || len(cases) != 1 {
		t.Fatal(err)
	}
	low, high, sum := 1000, 0, 0
	for _, r := range cases[0].Requests {
		low, high, sum = min(low, r.Output), max(high, r.Output), sum+r.Output
	}
	if low < 90 || low > 93 || high > 110 || high < 107 || sum < 9700 || sum > 10300 {
		t.Errorf("outputs from %d to %d, %d in all", low, high, sum)
	}
}

func TestNearest(t *testing.T) {
	c := Case{Model: "m", Backend: "vllm", System: "a100", TP: 2}
	one := grid(t, `"tp": 2`, `"tp": 1`)
	eight := grid(t, `"tp": 2`, `"tp": 8`)
	elsewhere := grid(t, `"a100"`, `"h100"`)
	other := grid(t, `"model": "m"`, `"model": "n"`)
	sglang := grid(t, `"vllm"`, `"sglang"`)
	for i, test := range []struct {
		grids []*profile.Grid
		want  *profile.Grid
	}{
		{[]*profile.Grid{other, sglang}, nil},
		{[]*profile.Grid{eight, one}, one},
		{[]*profile.Grid{elsewhere, eight}, eight},
		{[]*profile.Grid{other, elsewhere}, elsewhere},
		{nil, nil},
	} {
		if got, ok := Nearest(c, test.grids); got != test.want || ok != (test.want != nil) {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	c := Case{Name: "c", Model: "m", Backend: "vllm", TP: 1, Requests: []Request{{Input: 8, Output: 3}}}
	for want, edit := range map[string]func(*Case, *Engine, *profile.Grid){
		`c: backend is "tgi"; vllm, sglang or trtllm is accepted`: func(c *Case, _ *Engine, _ *profile.Grid) { c.Backend = "tgi" },
		"c: the engine cannot be set up":                          func(_ *Case, _ *Engine, g *profile.Grid) { g.NumGPUBlocks = 0 },
		"c: request 0 was not served to its end":                  func(_ *Case, o *Engine, _ *profile.Grid) { o.BlockSize, o.NumGPUBlocks = 2, 2 },
	} {
		c, o, g := c, Engine{}, grid(t)
		edit(&c, &o, g)
		if _, err := Predict(c, g, o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestBadMeasurements(t *testing.T) {
	dir := t.TempDir()
	run := recorded(t, dir)
	for file, texts := range map[string]map[string]string{
		"meta.json":      {"{": "unexpected end", `{"model": "m"}`: "has no model or no engine_kwargs.tensor_parallel_size"},
		"requests.jsonl": {"": "has no requests", "x\n": "line 1:", `{"input_toks": 1, "output_toks": 1, "queued_ts": 2, "first_token_ts": 1, "last_token_ts": 3}`: "line 1: has no tokens or times in disorder"},
	} {
		for text, want := range texts {
			recorded(t, dir)
			write(t, filepath.Join(run, file), text)
			if _, err := ReadRun(run); err == nil || !strings.Contains(err.Error(), file+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	path := filepath.Join(dir, "b.csv")
	for text, want := range map[string]string{
		"":      "EOF",
		"a,b\n": "has no column backend",
		strings.Replace(benchmarks, "12.5", "fast", 1):             `line 2: silicon_ttft_ms is "fast"; a number above 0 is accepted`,
		strings.Replace(benchmarks, "8,3,1,4", "8,3,0,4", 1):       `line 5: batch_size is "0"; a number above 0 is accepted`,
		strings.Replace(benchmarks, "1,vllm,0.1", "1,vllm", 1):     "wrong number of fields",
		strings.Replace(benchmarks, "2.5\n2", "\"2.5\n2", 1):       "extraneous or missing",
		strings.Replace(benchmarks, "8,3,2,2,1", "8.5,3,2,2,1", 1): `line 2: isl is "8.5"; a number above 0 is accepted`,
	} {
		write(t, path, text)
		if _, err := ReadSilicon(path, Filter{}, Clients{Waves: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 4, 8}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 1: 8, 0.25: 1.75} {
		if got := quantile(v, q); !near(got, want) {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(quantile(nil, 0.5)) || !math.IsNaN(mean(nil)) {
		t.Error("nothing has a mean")
	}
}
