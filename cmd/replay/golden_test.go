package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dryserve/dryserve/host/native/report"
)

const goldens = "../../testdata/replay"

// recorded is a recorded call of one of the reference's functions.
type recorded struct {
	Files             []string
	Synthetic, Kwargs map[string]json.RawMessage
}

// flagsOf turns a recorded call into flags and files.
func flagsOf(t *testing.T, path string) (args []string, call recorded) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &call); err != nil {
		t.Fatal(err)
	}
	for key, raw := range call.Synthetic {
		args = append(args, "--"+strings.ReplaceAll(key, "_", "-"), string(raw))
	}
	for key, raw := range call.Kwargs {
		value := string(raw)
		switch key {
		case "prefill_engine_args", "decode_engine_args", "num_prefill_workers", "num_decode_workers",
			"max_sim_time_ms", "extra_engine_args", "trace_block_size", "num_workers", "replay_concurrency", "arrival_speedup_ratio", "sla_e2e_ms",
			"request_rate", "arrival_seed", "arrival_interval_ms", "turns_per_session", "inter_turn_delay_ms", "shared_prefix_ratio", "num_prefix_groups",
			"agentic_lanes", "trace_shared_prefix_ratio", "trace_num_prefix_groups":
		case "trace_format", "execution_model", "weka_nested_timestamp_basis", "router_mode":
			value = strings.Trim(value, `"`)
		case "telemetry":
			key = "telemetry_sample_interval_ms"
		default:
			t.Fatalf("%s: no flag for %s", path, key)
		}
		args = append(args, "--"+strings.ReplaceAll(key, "_", "-"), value)
	}
	for _, name := range call.Files {
		trace, err := filepath.Abs(filepath.Join(filepath.Dir(path), "..", name))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, trace)
	}
	return args, call
}

func readJSON(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Every recorded case must come out of the program as the reference has
// answered it, and the same bytes from both engines, native and sandboxed.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob(goldens + "/*/api-1.6.1/case.json")
	if err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	var sandboxed atomic.Int32
	t.Cleanup(func() {
		if n := sandboxed.Load(); n < 50 {
			t.Errorf("only %d cases ran in WebAssembly", n)
		}
	})
	for _, path := range cases {
		golden := filepath.Dir(path)
		if name := filepath.Base(filepath.Dir(golden)); strings.HasPrefix(name, "scale_") || strings.HasPrefix(name, "telemetry_") {
			continue // TestGoldenScaling, TestGoldenTelemetry
		}
		if name := filepath.Base(filepath.Dir(golden)); strings.HasPrefix(name, "kv_") || strings.HasPrefix(name, "pd_") && strings.Contains(name, "_kv_") {
			continue // TestGoldenRouted
		}
		t.Run(filepath.Base(filepath.Dir(golden)), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args, call := flagsOf(t, path)
			if call.Synthetic != nil {
				compare := compareRequests
				switch {
				case call.Kwargs["router_mode"] != nil && call.Kwargs["prefill_engine_args"] != nil:
					compare = compareUnplaced
				case call.Kwargs["router_mode"] != nil:
					compare = func(t *testing.T, got, want string) { compareRouted(t, got, want, false) }
				}
				goldenSynthetic(t, dir, golden, args, compare)
				return
			}
			fast := invoke(t, dir, append(args, "--report-json", "fast.json", "--report-jsonl", "fast.jsonl")...)
			for name, more := range map[string][]string{"plain": {"--engine-impl", "plain"}, "wasm": sandbox} {
				got := invoke(t, dir, append(append(args, "--report-json", name+".json", "--report-jsonl", name+".jsonl"), more...)...)
				if fast.status != 0 || got.status != 0 || fast.stderr != got.stderr {
					t.Fatalf("%+v\n%s: %+v", fast, name, got)
				}
				sameBytes(t, dir, "fast", name)
				if name == "wasm" {
					sandboxed.Add(1)
				}
			}
			compareReport(t, filepath.Join(dir, "fast.json"), filepath.Join(golden, "report.json"))
			compareRequests(t, filepath.Join(dir, "fast.jsonl"), filepath.Join(golden, "requests.jsonl"))
		})
	}
}

// goldenSynthetic is TestGolden for a synthetic workload, whose requests the
// command line does not write.
func goldenSynthetic(t *testing.T, dir, golden string, args []string, compare func(t *testing.T, gotPath, wantPath string)) {
	for _, engine := range []string{"fast", "plain"} {
		args := append(args, "--engine-impl", engine)
		out := filepath.Join(dir, engine)
		ok(t, invoke(t, dir, append(args, "--report-json", out+".json")...))
		compareReport(t, out+".json", filepath.Join(golden, "report.json"))

		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		o.capture = true
		done, err := replayAll(context.Background(), o, &surroundings{outputs: &report.Files{}, warnings: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		if err := done.requests().WriteJSONL(&lines); err != nil {
			t.Fatal(err)
		}
		put(t, dir, engine+".jsonl", lines.String())
		compare(t, out+".jsonl", filepath.Join(golden, "requests.jsonl"))
	}
	ok(t, invoke(t, dir, append(append(args, "--report-json", "wasm.json"), sandbox...)...))
	if withoutTimes(t, dir, "fast.json") != withoutTimes(t, dir, "wasm.json") {
		t.Error("the reports of fast and wasm differ")
	}
}

var wallKeys = []string{"wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s"}

// sameBytes compares the files of two runs, but for the wall time.
func sameBytes(t *testing.T, dir, one, other string) {
	t.Helper()
	for _, suffix := range []string{".json", ".jsonl"} {
		if withoutTimes(t, dir, one+suffix) != withoutTimes(t, dir, other+suffix) {
			t.Errorf("%s and %s differ in the %s", one, other, suffix)
		}
	}
}

// withoutTimes is a file without the lines of a report that tell the wall time.
func withoutTimes(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool {
		return slices.ContainsFunc(wallKeys, func(key string) bool { return strings.HasPrefix(line, `  "`+key+`"`) })
	})
	return strings.Join(lines, "\n")
}

// compareReport wants every key of the reference with the same number. The
// reference sums the spread of small samples in an order of its own, and the
// spread of equal samples is the rounding of that sum.
func compareReport(t *testing.T, gotPath, wantPath string) {
	t.Helper()
	got, want := readJSON(t, gotPath), readJSON(t, wantPath)
	for key, w := range want {
		g, ok := got[key]
		delete(got, key)
		x, isNumber := g.(float64)
		y, _ := w.(float64)
		of, spread := strings.CutPrefix(key, "std_")
		mean, _ := want["mean_"+of].(float64)
		granted := max(1e-12*math.Abs(y), want["num_requests"].(float64)*0x1p-53*math.Abs(mean))
		if !ok || !reflect.DeepEqual(g, w) && !(isNumber && spread && math.Abs(x-y) <= granted) {
			t.Errorf("%s: got %v, want %v", key, g, w)
		}
	}
	arrived := int64(want["num_requests"].(float64))
	for _, key := range []string{"rejected_requests", "failed_requests", "cancelled_requests", "unfinished_requests"} {
		arrived -= int64(got[key].(float64))
		delete(got, key)
	}
	if completed := int64(want["completed_requests"].(float64)); arrived != completed {
		t.Errorf("the requests do not add up: %d left, %d completed", arrived, completed)
	}
	for _, key := range wallKeys {
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("keys the reference does not have: %v", got)
	}
}

// compareRequests compares the lines as a multiset: the recorded ones have no
// ids, no nulls, and histories only where there is something to see.
func compareRequests(t *testing.T, gotPath, wantPath string) {
	t.Helper()
	lines := func(path string, strip bool) []string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			if line == "" {
				continue
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			for key, v := range m {
				if v == nil {
					delete(m, key)
				}
			}
			if strip {
				delete(m, "uuid")
				delete(m, "routing_history")
				if m["readmission_count"] == 0.0 {
					delete(m, "admission_history")
				}
			}
			text, err := json.Marshal(m) // sorted keys
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(text))
		}
		slices.Sort(out)
		return out
	}
	got, want := lines(gotPath, true), lines(wantPath, false)
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("got  %s\nwant %s", got[i], want[i])
				break
			}
		}
	}
}
