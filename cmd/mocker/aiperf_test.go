//go:build live

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// aiperfVersion is the release of AIPerf that is tested.
const aiperfVersion = "0.13.0"

// AIPerf brings a load, and what it measures agrees with the mocker's own report of
// the same run: token counts exactly, although it counts them with a tokenizer of
// its own, and times but for what the client needs itself. Time runs at a fifth, so
// that this is little.
//
// It belongs to `make live`: AIPerf and what it depends on are 1.2 GB, whose
// installation takes minutes.
func TestLiveAIPerf(t *testing.T) {
	python := pinnedPython(t, "aiperf", aiperfVersion)
	model, err := filepath.Abs("../../host/native/live/card/testdata/model")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ours := filepath.Join(dir, "report.json")
	address, stop := launch(t, "--model-path", model, "--model-name", "m1", "--speedup-ratio", "0.2", "--num-workers", "2", "--router-mode", "kv", "--log-level", "warn", "--report-json", ours)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "aiperf"), "profile", "--model", "m1", "--url", "http://"+address, "--endpoint-type", "completions", "--streaming",
		"--tokenizer", model, "--synthetic-input-tokens-mean", "500", "--synthetic-input-tokens-stddev", "100", "--output-tokens-mean", "30", "--output-tokens-stddev", "5",
		"--concurrency", "4", "--request-count", "60", "--random-seed", "1", "--extra-inputs", "ignore_eos:true", "--ui", "none", "--artifact-dir", dir)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	stop()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	theirs := map[string]struct{ Avg, Sum, Count float64 }{}
	var report map[string]any
	read(t, filepath.Join(dir, "profile_export_aiperf.json"), &theirs)
	read(t, ours, &report)
	number := func(key string) float64 {
		x, ok := report[key].(float64)
		if !ok {
			t.Fatalf("the report has no %s", key)
		}
		return x
	}
	for _, x := range []struct {
		name         string
		theirs, ours float64
	}{
		{"requests", theirs["request_count"].Avg, number("completed_requests")}, {"prompt tokens", theirs["input_sequence_length"].Sum, number("total_input_tokens")},
		{"answer tokens", theirs["output_sequence_length"].Sum, number("total_output_tokens")}, {"answers with times", theirs["time_to_first_token"].Count, number("num_ttft_samples")},
	} {
		t.Logf("%-20s %12.0f %12.0f", x.name, x.theirs, x.ours)
		if x.theirs != x.ours || x.ours == 0 {
			t.Errorf("%s: AIPerf has %v, the report %v", x.name, x.theirs, x.ours)
		}
	}
	// What comes to the client comes later than it was sent: by up to 30 ms where the
	// client shares two busy processors with the server.
	for _, x := range []struct {
		name         string
		theirs, ours float64
		share, ms    float64 // that it may differ by
	}{
		{"mean TTFT ms", theirs["time_to_first_token"].Avg, number("mean_ttft_ms"), 0.02, 30},
		{"mean request latency ms", theirs["request_latency"].Avg, number("mean_e2e_latency_ms"), 0.02, 30},
		{"mean ITL of answers ms", theirs["inter_token_latency"].Avg, number("mean_tpot_ms"), 0.02, 0},
		{"requests/s", theirs["request_throughput"].Avg, number("request_throughput_rps"), 0.03, 0},
		{"tokens/s", theirs["output_token_throughput"].Avg, number("output_throughput_tok_s"), 0.03, 0},
	} {
		t.Logf("%-24s %12.3f %12.3f %+.2f%%", x.name, x.theirs, x.ours, 100*(x.theirs/x.ours-1))
		if d := x.theirs - x.ours; !(d <= x.share*x.ours+x.ms && d >= -x.share*x.ours) {
			t.Errorf("%s: AIPerf has %v, the report %v", x.name, x.theirs, x.ours)
		}
	}
}

// read reads JSON; what is not of the type is left out.
func read(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for key, value := range fields {
		one, err := json.Marshal(map[string]json.RawMessage{key: value})
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(one, to) // some are no numbers
	}
}
