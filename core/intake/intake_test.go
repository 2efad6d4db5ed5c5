package intake

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/internal/gen"
)

// file is a file of a trace.
type file struct {
	name string
	text []byte
}

// feed reads a trace in chunks of at most so many bytes.
func feed(o Options, files []file, chunk int) (*Feeder, *workload.Workload, Finding) {
	f := NewFeeder(o)
	for _, x := range files {
		f.File(x.name, int64(len(x.text)))
		for rest, end := x.text, false; !end; {
			n := min(chunk, len(rest))
			end = n == len(rest)
			found := f.Feed(bytes.Clone(rest[:n]), end)
			if !found.OK() {
				found.Text = bytes.Clone(found.Text)
				return f, nil, found
			}
			rest = rest[n:]
		}
	}
	w, found := f.Finish()
	return f, w, found
}

// A trace is the same in whatever chunks it comes, right or at fault.
func TestChunks(t *testing.T) {
	formats := map[Format]int{}
	faults := 0
	for seed := range 200 {
		files, capped := generated(t, uint64(seed))
		if len(files) == 0 {
			continue
		}
		if seed%3 == 0 {
			x := &files[seed%len(files)].text
			if len(*x) > 0 {
				(*x)[seed*7919%len(*x)] = "]}0\"x"[seed%5]
			}
		}
		o := Options{TraceBlockSize: 64, Concurrency: capped, ArrivalSpeedup: 1, Model: true, MaxLine: trace.MaxLine}
		whole, want, wrong := feed(o, files, 1<<20)
		if wrong.OK() {
			formats[whole.Format()]++
		} else {
			faults++
		}
		for _, chunk := range []int{1, 7, 4096} {
			parts, got, found := feed(o, files, chunk)
			if parts.Lines() != whole.Lines() || parts.Rows() != whole.Rows() || parts.Failed() != whole.Failed() || parts.Format() != whole.Format() {
				t.Errorf("seed %d, chunks of %d: %d lines, %d rows, %v; want %d, %d, %v", seed, chunk, parts.Lines(), parts.Rows(), parts.Format(), whole.Lines(), whole.Rows(), whole.Format())
			}
			if !reflect.DeepEqual(found, wrong) || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, chunks of %d:\n%+v\n%+v", seed, chunk, found, wrong)
			}
		}
	}
	for _, f := range []Format{Mooncake, AgenticMooncake, AppliedCompute, Dynamo, Weka} {
		if formats[f] < 5 {
			t.Errorf("only %d traces in the format %v", formats[f], f)
		}
	}
	if faults < 20 {
		t.Errorf("only %d traces are at fault", faults)
	}
}

// generated is a trace of several files that are plain text, and whether it
// needs a cap.
func generated(t *testing.T, seed uint64) (files []file, capped bool) {
	t.Helper()
	c, err := gen.FamilyCase(seed, "formats")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := c.WriteInputs(dir); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".json" && ext != ".jsonl" && ext != ".csv" {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, file{filepath.Base(path), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, c.Kwargs["trace_format"] == "applied_compute_agentic"
}

func TestTables(t *testing.T) {
	const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,10,3\n2023-11-16 18:15:47.6805900,20,4\n"
	const head = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	const failed = "1,,1,m,5,0,5,API log\n"
	const burst = head + "0,,1,m,5,2,7,API log\n" + failed
	o := Options{TraceBlockSize: 16, ArrivalSpeedup: 1, MaxLine: trace.MaxLine}
	for text, want := range map[string]Format{azure: Azure, burst: BurstGPT} {
		f, w, found := feed(o, []file{{"t.csv", []byte(text)}}, 5)
		if f.Format() != want || !found.OK() || len(w.Turns) != int(f.Rows()-f.Failed()) || f.Rows() != 2 || f.Lines() != 3 {
			t.Errorf("%v, %+v, %d rows, %d failed", f.Format(), found, f.Rows(), f.Failed())
		}
	}
	for text, want := range map[string]Code{azure[:40]: OnlyHeader, head + failed: OnlyFailed} {
		if _, _, found := feed(o, []file{{"t.csv", []byte(text)}}, 5); found.Kind != ByTrace || found.Code != want {
			t.Errorf("%+v, want %d", found, want)
		}
	}
}

// Options that do not go with a format are refused before anything is read.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want Code
	}{
		{Options{Format: Mooncake, NestedBasis: weka.Relative}, NestedTimes},
		{Options{Format: AppliedCompute}, NeedsCap},
		{Options{Format: AppliedCompute, AsWritten: true}, OK},
		{Options{Format: Mooncake, Lanes: 2}, NoLanes},
		{Options{Format: AgenticMooncake, Concurrency: true, Model: true}, NoCap},
		{Options{Format: AgenticMooncake}, NeedsModel},
		{Options{Format: Weka, Lanes: 2, Model: true, NestedBasis: weka.Absolute}, OK},
		{Options{Format: Dynamo, Lanes: 2}, OK}, // only its records tell
	} {
		if got := c.o.Check(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.o, got, c.want)
		}
	}
	f := NewFeeder(Options{Format: Weka, Model: true, ArrivalSpeedup: 1, MaxLine: trace.MaxLine})
	if found := f.Feed([]byte("{}\n"), true); found.Kind != ByTrace || found.Code != NeedsFile {
		t.Errorf("%+v", found)
	}
	f = NewFeeder(Options{Format: Weka, Model: true, ArrivalSpeedup: 1, MaxLine: 10})
	f.File("a.json", 20)
	if found := f.Feed(make([]byte, 20), false); found.Kind != ByTrace || found.Code != ObjectTooLong || found.Limit != 10 {
		t.Errorf("%+v", found)
	}
}

func TestSingle(t *testing.T) {
	for name, want := range map[string]bool{"a.json": true, "A.JSON": true, ".json": true, "json": false, "a.jsonl": false, "": false, "a/b.Json": true} {
		if Single(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
