package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run ends with a report of its requests.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "deep", "report.json")
	address, stop := launch(t, "--speedup-ratio", "1e9", "--num-workers", "2", "--data-parallel-size", "2", "--log-level", "warn", "--report-json", path)
	for range 3 {
		resp, err := http.Post("http://"+address+"/v1/completions", "", strings.NewReader(`{"model":"dynamo","prompt":"abc","max_tokens":5}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("status %d, %v", resp.StatusCode, err)
		}
		_ = resp.Body.Close()
	}
	stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{
		"num_requests": 3, "completed_requests": 3, "unfinished_requests": 0, "total_input_tokens": 9, "total_output_tokens": 15, "num_ttft_samples": 3, "decode_gpus_per_worker": 2,
	} {
		if r[key] != want {
			t.Errorf("%s is %v, want %v", key, r[key], want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", entries, err)
	}
}

// A report that cannot be written is known before anything is served, and leaves
// nothing behind.
func TestReportRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args, want string
		status     int
	}{
		{"--report-json " + file + "/r.json", "--report-json: cannot write " + file + "/r.json: not a directory", 1},
		{"--report-json=", `--report-json is ""; a path is accepted`, 2},
	} {
		var errs bytes.Buffer
		code := run(append([]string{"--http", "127.0.0.1:0"}, strings.Fields(x.args)...), io.Discard, &errs)
		if code != x.status || errs.String() != "mocker: "+x.want+"\n" {
			t.Errorf("%s: status %d: %s", x.args, code, errs.String())
		}
	}
	var errs bytes.Buffer
	if code := run([]string{"--http", "256.0.0.1:1", "--report-json", filepath.Join(dir, "r.json")}, io.Discard, &errs); code != 1 {
		t.Errorf("status %d: %s", code, errs.String())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", entries, err)
	}
}
