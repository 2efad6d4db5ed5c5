package coretest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recording is the part of types.d.ts that the command line's pages have, too.
type recording struct {
	StepMs, EndMs float64
	N             int
	Lines         map[string][]*float64
	At            []float64
	Quantiles     map[string][]*float64
	Pools         []struct {
		Name  string
		Lines map[string][]*float64
	}
	Ranks []struct {
		Name                                                                                                   string
		Requests, Busy, Prefilled, Tokens, Hits, KVMean, KVMost, RunningMost, WaitingMost, Preemptions, Passes float64
	}
	Map struct {
		StepMs float64
		N      int
		KV     []*float64
	}
	Passes struct {
		UntilMs *float64
		Of      []map[string][]float64
	}
	Stories map[string][]struct {
		Record, Turn int
		Whole        bool
		Steps        []struct {
			Kind   string
			AtMs   float64
			Rank   int
			Tokens int
		}
	}
}

// drawn is what a page of the command line draws.
type drawn struct {
	Figures []struct {
		ID string
		X  struct {
			StepMs, EndMs float64
			N             int
		}
		At     []float64
		Series []struct {
			Name   string
			Values []*float64
		}
		Rows  []string
		Cells string
		Body  [][]any
	}
}

// recordedJobs are runs of every kind that is recorded.
func recordedJobs(t *testing.T) (jobs []job) {
	t.Helper()
	names := []string{"mc_vllm_rr2", "dp2_single", "preempt_lifo", "reject_max_model_len", "pd_vllm_2p2d_transfer", "pd_sglang_kv_2p2d", "kv_dp2", "retract_sglang", "syn_multiturn_conc", "syn_pd"}
	for _, j := range goldenJobs(t) {
		if slices.Contains(names, j.Name) {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) != len(names) {
		t.Fatalf("%d of %d goldens", len(jobs), len(names))
	}
	for _, j := range exampleJobs(t) {
		if j.Name == "compressed" || j.Name == "h200_sxm-vllm-Llama-3.1-8B-tp1" {
			jobs = append(jobs, j)
		}
	}
	offload := job{Name: "offload", Traces: jobs[len(jobs)-1].Traces, Paths: jobs[len(jobs)-1].Paths, Scenario: map[string]any{
		"workload": map[string]any{"kind": "file"}, "numWorkers": 2, "maxSimTimeMs": 30000,
		"engine": map[string]any{"num_gpu_blocks": 300, "kv_cache_bytes_per_token": 100000, "native_host_offload": map[string]any{"num_host_blocks": 2000}},
	}}
	jobs = append(jobs, offload)
	for i := range jobs {
		jobs[i].Record = true
	}
	return jobs
}

// A recording is reduced to the numbers that the command line's page draws.
func TestRecordings(t *testing.T) {
	jobs := recordedJobs(t)
	got := inNode(t, jobs)
	for _, j := range jobs {
		t.Run(j.Name, func(t *testing.T) {
			t.Parallel()
			o := got[j.Name]
			if o.Error != "" || len(o.Complaints) > 0 || o.Recording == nil {
				t.Fatalf("%s%+v", o.Error, o.Complaints)
			}
			dir := t.TempDir()
			args := append(append(o.Command[1:len(o.Command):len(o.Command)], j.Traces...), "--no-table", "--report-html", "page.html", "--report-json", "report.json")
			if stderr, err := run(dir, args...); err != nil {
				t.Fatalf("%v: %s", err, stderr)
			}
			same(t, "report", timeless(o.Report), timeless(read(t, filepath.Join(dir, "report.json"))))
			compareDrawn(t, o.Recording, documentOf(t, read(t, filepath.Join(dir, "page.html"))))
			checkStories(t, o.Recording)
		})
	}
}

// documentOf is the document of a page.
func documentOf(t *testing.T, html string) drawn {
	t.Helper()
	_, rest, _ := strings.Cut(html, `<script type="application/json" id="document">`)
	text, _, ok := strings.Cut(rest, "</script>")
	var d drawn
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&d); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return d
}

// lineNames are the lines of the recording by figure, in the order of a page.
var lineNames = map[string][]string{
	"ttft-over-time": {"ttft50", "ttft90", "ttftMax"}, "itl-over-time": {"itl50", "itl90", "itl99"}, "output-throughput": {"output"}, "prefill-throughput": {"prefill"},
	"request-rate": {"arrived", "completed", "lost"}, "queue-depth": {"running", "waiting", "waitingMost", "handed|preempted"}, "cache-hits": {"hits", "hitsSoFar", "hitsHost"},
}

func compareDrawn(t *testing.T, r *recording, d drawn) {
	t.Helper()
	compared := 0
	series := func(what string, got, want []*float64) {
		t.Helper()
		compared += len(want)
		if len(got) != len(want) {
			t.Errorf("%s: %d values, want %d", what, len(got), len(want))
			return
		}
		for i := range want {
			if (got[i] == nil) != (want[i] == nil) || want[i] != nil && round5(*got[i]) != *want[i] {
				t.Errorf("%s, %d: %v, want %v", what, i, spelt(got[i]), spelt(want[i]))
				return
			}
		}
	}
	for _, f := range d.Figures {
		switch {
		case f.ID == "latency-cdf":
			for i, name := range []string{"ttft", "itl", "e2e"} {
				series(name, r.Quantiles[name], f.Series[i].Values)
			}
			if !slices.Equal(r.At, f.At) {
				t.Errorf("fractions %v, want %v", r.At, f.At)
			}
		case lineNames[f.ID] != nil:
			if r.N != f.X.N || r.StepMs != f.X.StepMs || r.EndMs != f.X.EndMs {
				t.Errorf("%s: %d points of %g to %g, want %+v", f.ID, r.N, r.StepMs, r.EndMs, f.X)
			}
			for i, s := range f.Series {
				var got []*float64
				for _, name := range strings.Split(lineNames[f.ID][i], "|") {
					got = append(got, r.Lines[name]...)
				}
				series(f.ID+" "+s.Name, got, s.Values)
			}
		case f.ID == "kv-usage" || strings.HasPrefix(f.ID, "kv-usage-") && f.ID != "kv-usage-by-worker":
			for _, p := range r.Pools {
				if p.Name == strings.TrimPrefix(strings.TrimPrefix(f.ID, "kv-usage"), "-") {
					for i, name := range []string{"used", "cached", "most"} {
						series(f.ID+" "+name, p.Lines[name], f.Series[i].Values)
					}
				}
			}
		case f.ID == "kv-usage-by-worker":
			compareMap(t, r, f.Rows, f.X.StepMs, f.Cells)
		case f.ID == "load-by-worker":
			compareLoads(t, r, f.Body)
		}
	}
	if compared < 500 {
		t.Errorf("only %d numbers are compared", compared)
	}
}

func spelt(x *float64) string {
	if x == nil {
		return "none"
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}

// round5 rounds to five digits, as pages do.
func round5(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 4, 64), 64)
	return y
}

func compareMap(t *testing.T, r *recording, rows []string, stepMs float64, text string) {
	t.Helper()
	cells, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(cells) != len(r.Map.KV) || stepMs != r.Map.StepMs {
		t.Fatalf("%d cells of %g ms, want %d of %g; %v", len(r.Map.KV), r.Map.StepMs, len(cells), stepMs, err)
	}
	for i, want := range cells {
		got := byte(255)
		if x := r.Map.KV[i]; x != nil {
			got = byte(math.Round(min(max(*x, 0), 1) * 254))
		}
		if d := int(got) - int(want); d < -1 || d > 1 || (got == 255) != (want == 255) { // they are 32 bits wide, so halves may round the other way
			t.Errorf("cell %d is %d, want %d", i, got, want)
			return
		}
	}
	for i, name := range rows {
		if r.Ranks[i].Name != name {
			t.Errorf("rank %d is %q, want %q", i, r.Ranks[i].Name, name)
		}
	}
}

func compareLoads(t *testing.T, r *recording, body [][]any) {
	t.Helper()
	if len(body) != len(r.Ranks) {
		t.Fatalf("%d ranks, want %d", len(r.Ranks), len(body))
	}
	for i, want := range body {
		k := r.Ranks[i]
		got := []any{k.Name, k.Requests, round5(100 * k.Busy), k.Prefilled, k.Tokens, round5(100 * k.Hits), round5(100 * k.KVMean), round5(100 * k.KVMost), k.RunningMost, k.WaitingMost, k.Preemptions, k.Passes}
		if !slices.Equal(got, want) {
			t.Errorf("%v\nwant %v", got, want)
		}
		if n := len(r.Passes.Of[i]["startMs"]); r.Passes.UntilMs == nil && float64(n) < k.Passes {
			t.Errorf("%s: %d passes are kept of %g", k.Name, n, k.Passes)
		}
	}
}

// checkStories looks at the stories of the slowest requests.
func checkStories(t *testing.T, r *recording) {
	t.Helper()
	for by, list := range r.Stories {
		if len(list) == 0 {
			t.Errorf("no story by %s", by)
		}
		for _, s := range list {
			last := math.Inf(-1)
			for i, step := range s.Steps {
				if step.AtMs < last || (i == 0) != (step.Kind == "arrived") || (i == len(s.Steps)-1) != (step.Kind == "ended") || step.Rank < 0 && step.Kind != "arrived" {
					t.Errorf("by %s: turn %d: %+v", by, s.Turn, s.Steps)
					break
				}
				last = step.AtMs
			}
			if !s.Whole || len(s.Steps) < 3 {
				t.Errorf("by %s: %+v", by, s)
			}
		}
	}
}
