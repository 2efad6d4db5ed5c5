package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// scripted is a recorded policy.
type scripted struct {
	Policy struct {
		Initial   float64
		Decisions []struct {
			Prefill *int     `json:"target_prefill"`
			Decode  *int     `json:"target_decode"`
			NextMs  *float64 `json:"next_tick_ms"`
		}
	} `json:"scaling_policy"`
	Jitter struct{ ULP []string }
}

// script is what the policy says as the program takes it.
func (c *scripted) script(pools bool) string {
	number := func(n *int) string {
		if n == nil {
			return "null"
		}
		return fmt.Sprint(*n)
	}
	var b strings.Builder
	atMs := c.Policy.Initial
	for _, d := range c.Policy.Decisions {
		if pools {
			fmt.Fprintf(&b, "- {at_ms: %v, prefill: %s, decode: %s}\n", atMs, number(d.Prefill), number(d.Decode))
		} else {
			fmt.Fprintf(&b, "- {at_ms: %v, workers: %s}\n", atMs, number(d.Decode))
		}
		if d.NextMs == nil {
			break
		}
		atMs = *d.NextMs
	}
	return b.String()
}

func decoded[T any](t *testing.T, path string) (v T) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// compareJittering compares reports of which the reference's has fields that
// differ in the last bits from run to run.
func compareJittering(t *testing.T, gotPath, wantPath string, jitter []string) {
	t.Helper()
	got, want := readJSON(t, gotPath), readJSON(t, wantPath)
	for _, key := range jitter {
		g, w := got[key].(float64), want[key].(float64)
		if math.Abs(g-w) > 1e-9*math.Abs(w) {
			t.Errorf("%s: got %v, want %v", key, g, w)
		}
		want[key] = g
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	level := filepath.Join(t.TempDir(), "want.json")
	if err := os.WriteFile(level, text, 0o644); err != nil {
		t.Fatal(err)
	}
	compareReport(t, gotPath, level)
}

// alike compares what a policy is told. The reference sums the variances of what
// a pass worked on in the order of random identities (engine notes §10.1).
func alike(got, want any) bool {
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, w, alike)
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && maps.EqualFunc(g, w, func(x, y any) bool { return alike(x, y) }) && levelled(g, w)
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(g-w) <= 1e-9*math.Abs(w)
	}
	return got == want
}

// levelled wants the same bits but for those variances.
func levelled(got, want map[string]any) bool {
	for key, w := range want {
		if _, number := w.(float64); number && got[key] != w && key != "var_prefill_length" && key != "var_decode_kv_tokens" {
			return false
		}
	}
	return true
}

// The reference's runs with a policy: report, records, what happened to the
// workers and what the policy was told; by a script alone, with a fast engine,
// the same report and the same workers.
func TestGoldenScaling(t *testing.T) {
	for _, name := range []string{"scale_agg", "scale_agg_startup", "scale_pd"} {
		golden := filepath.Join(goldens, name, "api-1.6.1")
		dir := t.TempDir()
		args, _ := flagsOf(t, filepath.Join(golden, "case.json"))
		c := decoded[scripted](t, filepath.Join(golden, "case.json"))
		pools := name == "scale_pd"
		put(t, dir, "script.yaml", c.script(pools))
		args = append(args, "--scaling-script", "script.yaml")
		ok(t, invoke(t, dir, append(args, "--report-json", "a.json", "--report-jsonl", "a.jsonl", "--lifecycle-json", "life.json", "--ticks-json", "ticks.json")...))
		asked := append(slices.Clone(args), "--report-json", "w.json", "--report-jsonl", "w.jsonl", "--lifecycle-json", "life3.json", "--ticks-json", "ticks3.json")
		ok(t, invoke(t, dir, append(asked, sandbox...)...))
		sameBytes(t, dir, "a", "w")
		for file, other := range map[string]string{"life.json": "life3.json", "ticks.json": "ticks3.json"} {
			if withoutTimes(t, dir, file) != withoutTimes(t, dir, other) {
				t.Errorf("%s: %s is another one in core.wasm", name, file)
			}
		}
		said := invoke(t, dir, append(args, "--report-json", "b.json", "--report-jsonl", "b.jsonl", "--lifecycle-json", "life2.json")...)
		ok(t, said)
		sameBytes(t, dir, "a", "b")
		boxed := invoke(t, dir, append(append(slices.Clone(args), "--report-json", "v.json", "--report-jsonl", "v.jsonl", "--lifecycle-json", "life3.json"), sandbox...)...)
		ok(t, boxed)
		sameBytes(t, dir, "a", "v")
		if withoutTimes(t, dir, "life.json") != withoutTimes(t, dir, "life3.json") {
			t.Errorf("%s: other workers in core.wasm", name)
		}
		compareJittering(t, filepath.Join(dir, "a.json"), filepath.Join(golden, "report.json"), c.Jitter.ULP)
		compareRequests(t, filepath.Join(dir, "a.jsonl"), filepath.Join(golden, "requests.jsonl"))
		for _, file := range []string{"life.json", "life2.json"} {
			got, want := decoded[[]any](t, filepath.Join(dir, file)), decoded[[]any](t, filepath.Join(golden, "lifecycle.json"))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s\ngot  %v\nwant %v", name, file, got, want)
			}
		}
		got, want := decoded[[]any](t, filepath.Join(dir, "ticks.json")), decoded[[]any](t, filepath.Join(golden, "ticks.json"))
		if !alike(got, want) {
			t.Errorf("%s: ticks\ngot  %v\nwant %v", name, got, want)
		}
		first := "\nScaling events:\n  t=0.1s [agg]: "
		if pools {
			first = "\nScaling events:\n  t=0.1s [prefill]: 1 -> 2 workers (scale_up)\n"
		}
		if !strings.HasPrefix(said.stdout, first) {
			t.Errorf("%s: %.200s", name, said.stdout)
		}
	}
}

// The reference's samples, as lines and in the report.
func TestGoldenTelemetry(t *testing.T) {
	golden := filepath.Join(goldens, "telemetry_161", "api-1.6.1")
	dir := t.TempDir()
	args, _ := flagsOf(t, filepath.Join(golden, "case.json"))
	ok(t, invoke(t, dir, append(args, "--report-json", "a.json", "--report-jsonl", "a.jsonl", "--telemetry-jsonl-path", "t.jsonl")...))
	ok(t, invoke(t, dir, append(args, "--capture-telemetry", "--report-json", "b.json")...))
	ok(t, invoke(t, dir, append(append(slices.Clone(args), "--report-json", "w.json", "--report-jsonl", "w.jsonl", "--telemetry-jsonl-path", "w.telemetry"), sandbox...)...))
	ok(t, invoke(t, dir, append(append(slices.Clone(args), "--capture-telemetry", "--report-json", "v.json"), sandbox...)...))
	sameBytes(t, dir, "a", "w")
	for file, other := range map[string]string{"t.jsonl": "w.telemetry", "b.json": "v.json"} {
		if withoutTimes(t, dir, file) != withoutTimes(t, dir, other) {
			t.Errorf("%s is another one in core.wasm", file)
		}
	}
	compareReport(t, filepath.Join(dir, "a.json"), filepath.Join(golden, "report.json"))
	compareRequests(t, filepath.Join(dir, "a.jsonl"), filepath.Join(golden, "requests.jsonl"))
	want := decoded[map[string]any](t, filepath.Join(golden, "telemetry.json"))
	if got := readJSON(t, filepath.Join(dir, "b.json"))["telemetry"]; !reflect.DeepEqual(got, any(want)) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	data, err := os.ReadFile(filepath.Join(dir, "t.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		var got any
		if err := json.Unmarshal([]byte(line), &got); err != nil || !reflect.DeepEqual(got, want["samples"].([]any)[i]) {
			t.Errorf("line %d: %s, %v", i+1, line, err)
		}
	}
	const begin = `{"sample_ordinal":0,"kind":"baseline","interval_start_ms":0.0,"sampled_at_ms":0.0,"traffic":{"duration_s":0.0,"arriving_requests":0,`
	if !strings.HasPrefix(string(data), begin) {
		t.Errorf("%.200s\nwant %s", data, begin)
	}
}

// Loads of workers add up to the report, of workers that come and go and of two
// pools; without the flag nothing is told of them.
func TestPerWorker(t *testing.T) {
	dir := t.TempDir()
	var trace strings.Builder
	for i := range 40 {
		trace.WriteString(row(fmt.Sprintf(`"timestamp":%d,"input_length":20,"output_length":4,"hash_ids":[%d,%d]`, i*10, i, i+1)))
	}
	put(t, dir, "t.jsonl", trace.String())
	put(t, dir, "s.json", `[{"at_ms": 100, "workers": 4}, {"at_ms": 250, "workers": 1}]`)
	timing := `"block_size": 4, "timing_model": {"type": "fixed", "prefill_ms": 10, "decode_ms": 2}`
	for name, c := range map[string]struct {
		args  []string
		pools map[string]int
	}{
		"script": {[]string{"--extra-engine-args", `{"engine": {` + timing + `}}`, "--scaling-script", "s.json"}, map[string]int{"agg": 4}},
		"pools": {[]string{"--prefill-engine-args", `{"engine": {"worker_type": "prefill", ` + timing + `}}`, "--decode-engine-args", `{"engine": {"worker_type": "decode", ` + timing + `}}`,
			"--num-prefill-workers", "2", "--num-decode-workers", "3"}, map[string]int{"prefill": 2, "decode": 3}},
	} {
		args := append([]string{"t.jsonl", "--trace-block-size", "16", "--report-json", "r.json"}, c.args...)
		ok(t, invoke(t, dir, args...))
		if _, has := readJSON(t, filepath.Join(dir, "r.json"))["per_worker"]; has {
			t.Errorf("%s: per_worker without the flag", name)
		}
		said := invoke(t, dir, append(args, "--per-worker")...)
		ok(t, said)
		m := readJSON(t, filepath.Join(dir, "r.json"))
		workers, output := map[string]int{}, 0.0
		requests := map[string]float64{}
		for _, x := range m["per_worker"].([]any) {
			w := x.(map[string]any)
			pool := w["pool"].(string)
			workers[pool]++
			requests[pool] += w["requests"].(float64)
			output += w["output_tokens"].(float64)
			if share := w["busy_share"].(float64); share <= 0 || share > 1 || w["mean_waiting_ms"].(float64) < 0 {
				t.Errorf("%s: %v", name, w)
			}
		}
		if !maps.Equal(workers, c.pools) || output != m["total_output_tokens"] {
			t.Errorf("%s: %v, %v tokens", name, workers, output)
		}
		for pool, n := range requests {
			if n != 40 {
				t.Errorf("%s: %v requests in pool %s", name, n, pool)
			}
		}
		if !strings.Contains(said.stdout, "\nLoad per worker\nPool ") {
			t.Errorf("%s: %s", name, said.stdout)
		}
	}
}
