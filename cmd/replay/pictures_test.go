package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manyRows is a trace of a few requests that share prefixes.
func manyRows() string {
	return strings.Repeat(one, 30)
}

// TestPicturesChangeNothing: a run that is drawn has the report of one that is
// not, and a timeline that is compressed holds the one that is not.
func TestPicturesChangeNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", manyRows())
	args := []string{"t.jsonl", "--num-workers", "2", "--no-table", "--sla-ttft-ms", "100", "--extra-engine-args", `{"dp_size": 2}`}
	ok(t, invoke(t, dir, append(args, "--report-jsonl", "a.jsonl")...))
	got := invoke(t, dir, append(args, "--report-jsonl", "b.jsonl", "--report-html", "out/p.html", "--timeline", "t.pftrace")...)
	ok(t, got)
	ok(t, invoke(t, dir, append(args, "--timeline", "t.pftrace.gz")...))
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(read("a.jsonl"), read("b.jsonl")) {
		t.Error("the requests of the drawn run differ")
	}
	page := string(read("out/p.html"))
	for _, want := range []string{
		"<title>Replay of t.jsonl</title>", `"2 vLLM workers of 2 ranks, round robin; 30 requests in`, `["--sla-ttft-ms","100"]`, `["TRACE","t.jsonl"]`, `"TTFT goal"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(page, "--report-html") {
		t.Error("the page tells where it was written")
	}
	z, err := gzip.NewReader(bytes.NewReader(read("t.pftrace.gz")))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(plain, read("t.pftrace")) {
		t.Errorf("the compressed timeline holds another one: %v", err)
	}
}

// Both engines draw the same, byte for byte.
func TestPicturesFromTheSandbox(t *testing.T) {
	const tight = `{"engine": {"num_gpu_blocks": 40, "block_size": 16, "kv_cache_bytes_per_token": 100, "native_host_offload": {"num_host_blocks": 60}}}`
	const prefill = `{"worker_type": "prefill", "kv_transfer_bandwidth": 0.01, "kv_bytes_per_token": 1000}`
	for name, args := range map[string][]string{
		"sessions": {"--num-workers", "2", "--sla-ttft-ms", "100", "--extra-engine-args", `{"dp_size": 2}`},
		"offload":  {"--replay-concurrency", "4", "--extra-engine-args", tight},
		"routed":   {"--router-mode", "kv_router", "--num-workers", "3"},
		"sglang":   {"--extra-engine-args", `{"engine": {"backend": "sglang", "num_gpu_blocks": 3000}}`},
		"drafts":   {"--aic-nextn", "3"},
		"pools":    {"--prefill-engine-args", prefill, "--decode-engine-args", `{"worker_type": "decode"}`, "--num-prefill-workers", "2", "--router-mode", "kv_router"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, "t.jsonl", burst(30, "")+manyRows())
			args = append([]string{"t.jsonl"}, args...)
			tables := map[string]string{}
			for _, engine := range []string{"native", "wasm"} {
				more := []string{"--per-worker", "--report-json", engine + ".json", "--report-jsonl", engine + ".jsonl", "--report-html", engine + ".html", "--timeline", engine + ".pftrace"}
				if engine == "wasm" {
					more = append(more, sandbox...)
				}
				got := invoke(t, dir, append(slices.Clone(args), more...)...)
				if got.status != 0 {
					t.Fatalf("%s: %s", engine, got.stderr)
				}
				_, tables[engine], _ = strings.Cut(got.stdout, "worker") // what comes before tells the wall time
			}
			sameBytes(t, dir, "native", "wasm")
			for _, suffix := range []string{".html", ".pftrace"} {
				one, err := os.ReadFile(filepath.Join(dir, "native"+suffix))
				if err != nil || len(one) < 1000 {
					t.Fatal(len(one), err)
				}
				if other, err := os.ReadFile(filepath.Join(dir, "wasm"+suffix)); err != nil || !bytes.Equal(one, other) {
					t.Errorf("the %s differ, %v", suffix, err)
				}
			}
			if len(tables["native"]) < 100 || strings.ReplaceAll(tables["native"], "native.json", "wasm.json") != tables["wasm"] {
				t.Errorf("%s\n%s", tables["native"], tables["wasm"])
			}
		})
	}
}

// TestPicturesOfFailedRuns leave no file.
func TestPicturesOfFailedRuns(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", manyRows())
	before := tree(t, dir)
	for _, device := range []string{"--report-html", "--timeline"} {
		other := map[string]string{"--report-html": "--timeline", "--timeline": "--report-html"}[device]
		got := invoke(t, dir, "t.jsonl", device, "/dev/full", other, "x")
		if got.status != exitFailed || got.stderr != "replay: cannot write /dev/full: no space left on device\n" {
			t.Errorf("%s: status %d, %s", device, got.status, got.stderr)
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%s: files are left:\n%s", device, after)
		}
	}
}
