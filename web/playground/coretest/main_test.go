package coretest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/corewasm"
)

const root = "../../.."

var (
	program string // the built command
	core    string // core.wasm
	scratch string // a directory for files of several tests
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: these tests need Node and install a browser")
		return
	}
	os.Exit(prepared(m))
}

func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "coretest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	program = filepath.Join(dir, "replay")
	if core, err = corewasm.Build(root); err == nil {
		build := exec.Command("go", "build", "-o", program, "../../../cmd/replay")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// job is a scenario for batch.mjs.
type job struct {
	Name     string            `json:"name"`
	Scenario map[string]any    `json:"scenario"`
	Traces   []string          `json:"traces,omitempty"` // the command line has them behind all flags
	Files    map[string]string `json:"files,omitempty"`
	Paths    map[string]string `json:"paths,omitempty"` // of the command line
	Record   bool              `json:"record,omitempty"`
}

// outcome is what comes out of a job.
type outcome struct {
	Name                  string
	Command               []string
	Shell                 string
	Report, Requests, CSV string
	Warnings              []string
	Recording             *recording
	Complaints            []complaint
	Error                 string
}

type complaint struct {
	Path, Sentence string
	Line           int64
}

// node runs a script of this directory and returns what it prints.
func node(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{"--no-warnings"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("node %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.Bytes()
}

// writeJSON puts v into a file of its own.
func writeJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// inNode runs jobs in Node, by name.
func inNode(t *testing.T, jobs []job) map[string]outcome {
	t.Helper()
	return byName(t, node(t, "batch_node.mjs", core, writeJSON(t, jobs)), len(jobs))
}

func byName(t *testing.T, text []byte, want int) map[string]outcome {
	t.Helper()
	var all []outcome
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	out := map[string]outcome{}
	for _, o := range all {
		out[o.Name] = o
	}
	if len(out) != want {
		t.Fatalf("%d outcomes of %d jobs", len(out), want)
	}
	return out
}

// run runs the command.
func run(dir string, args ...string) (stderr string, err error) {
	var errs strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stderr = dir, &errs
	err = cmd.Run()
	return errs.String(), err
}

// files runs the command and returns the report, unless the workload is
// synthetic the lines of its requests, and the warnings.
func files(t *testing.T, args []string, synthetic bool) (report, requests string, warnings []string) {
	t.Helper()
	dir := t.TempDir()
	args = append(args[:len(args):len(args)], "--no-table", "--report-json", "report.json")
	if !synthetic {
		args = append(args, "--report-jsonl", "requests.jsonl")
	}
	stderr, err := run(dir, args...)
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, stderr)
	}
	for line := range strings.Lines(stderr) {
		warnings = append(warnings, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "replay: "), "warning: "))
	}
	if !synthetic {
		requests = read(t, filepath.Join(dir, "requests.jsonl"))
	}
	return read(t, filepath.Join(dir, "report.json")), requests, warnings
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// clocked matches what comes from the machine's clock.
var clocked = regexp.MustCompile(`"(wall_time_ms|processed_tokens_per_s|processed_output_tokens_per_s)": [^,\n]*`)

// timeless is a report without it.
func timeless(report string) string { return clocked.ReplaceAllString(report, `"$1": 0`) }

// same wants equal texts and shows where they part.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: line %d:\ngot  %s\nwant %s", what, i+1, a[i], b[i])
			return
		}
	}
	t.Errorf("%s: %d lines, want %d", what, len(a), len(b))
}
