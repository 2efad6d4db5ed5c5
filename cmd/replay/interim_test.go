package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dryserve/dryserve/host/native/report"
	"github.com/dryserve/dryserve/host/wasm/runner"
	"github.com/dryserve/dryserve/internal/corewasm"
)

// told is a trace that tells when it has been read to its end.
type told struct {
	*bytes.Reader
	ends func()
}

func (r told) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		r.ends()
	}
	return n, err
}

// A run in an interpreter begins again when core.wasm is compiled, and gives the
// same.
func TestInterim(t *testing.T) {
	path, err := corewasm.Build("../..")
	if err != nil {
		t.Fatal(err)
	}
	core, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	trace := []byte(strings.Repeat(row(`"timestamp":0,"input_length":10,"output_length":20000,"hash_ids":[1]`), 20))
	args := []string{"-", "--engine-impl", "plain", "--extra-engine-args", `{"num_gpu_blocks": 100000}`}
	replayed := func(around *surroundings, args ...string) string {
		t.Helper()
		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		around.outputs, around.warnings = &report.Files{}, func(string) {}
		out, err := replayAll(context.Background(), o, around)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := out.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return withoutWall(t, b.String())
	}
	want := replayed(&surroundings{stdin: bytes.NewReader(trace)}, args...)
	var once sync.Once
	compile, ends := make(chan struct{}), 0
	around := &surroundings{
		stdin: told{bytes.NewReader(trace), func() { ends++; once.Do(func() { close(compile) }) }},
		warming: func(o *options, waits bool) (*runner.Warming, error) {
			if waits {
				t.Error("a short run waits")
			}
			return runner.Warm(runner.Options{Core: core}, func() (*runner.Runner, error) {
				<-compile
				return runner.New(context.Background(), runner.Options{Core: core, CacheDir: o.wasmCache})
			}), nil
		},
	}
	if got := replayed(around, append(args, sandbox...)...); got != want {
		t.Errorf("\n%s\nnatively\n%s", got, want)
	}
	if ends != 2 {
		t.Errorf("the trace was read %d times, not by an interpreter and by what is compiled", ends)
	}
}

// What begins again must not have told anybody anything.
func TestShort(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "short.jsonl", row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]`))
	put(t, dir, "long.jsonl", strings.Repeat(row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]`), 2000))
	short, long := filepath.Join(dir, "short.jsonl"), filepath.Join(dir, "long.jsonl")
	synthetic := "--arrival-interval-ms 1 --input-tokens 10 --output-tokens 2 --request-count "
	for args, want := range map[string]bool{
		short: true, long: false, short + " " + long: false, dir: false, filepath.Join(dir, "none"): false, "-": true,
		short + " --report-json x": true, short + " --per-worker": false, short + " --report-html x": false, short + " --timeline x": false,
		short + " --telemetry-jsonl-path x": false, short + " --ticks-json x": false,
		synthetic + "300": true, synthetic + "301": false, synthetic + "100 --turns-per-session 4": false,
	} {
		o, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.short(&surroundings{stdin: strings.NewReader("")}); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	o, err := parse([]string{"-"})
	if err != nil {
		t.Fatal(err)
	}
	if o.short(&surroundings{stdin: io.MultiReader()}) {
		t.Error("what cannot be read again is short")
	}
}

// A server that has nothing more to do stays until core.wasm is kept.
func TestServeKeeps(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]`))
	c := connect(t, dir)
	c.run(1, nil, "t.jsonl", "--engine", "wasm", "--wasm-cache", "cache")
	if m := c.next(); m["event"] != "done" || m["engine"] != "wasm" {
		t.Fatalf("%v", m)
	}
	c.in.Close()
	c.expectEnd(0, "")
	kept := 0
	err := filepath.WalkDir(filepath.Join(dir, "cache"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			kept++
		}
		return err
	})
	if err != nil || kept != 1 {
		t.Errorf("%d files are kept, error %v", kept, err)
	}
}
