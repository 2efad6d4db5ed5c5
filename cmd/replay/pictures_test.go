package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
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
