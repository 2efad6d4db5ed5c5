package tracefile

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/weka"
)

const played = `{"id":"w","models":["m"],"block_size":4,"hash_id_scope":"local","requests":[{"type":"n","t":0.5,"model":"m","in":8,"out":2,"hash_ids":[1,2]},` +
	`{"type":"subagent","t":1,"agent_id":"a","subagent_type":"x","status":"completed","requests":[{"type":"s","t":0,"model":"m","in":4,"out":0}]}]}`

var objectsOf = Options{Format: Weka, TraceBlockSize: 4, ArrivalSpeedup: 1, ExecutionModel: "m"}

// indented is an object in many lines.
func indented(t *testing.T, text string) string {
	t.Helper()
	b, err := json.MarshalIndent(json.RawMessage(text), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A trace is a file of one object, a file of several, or a directory of both.
func TestWeka(t *testing.T) {
	second := edit(played, `"w"`, `"v"`)
	dir := t.TempDir()
	writeAll(t, map[string][]byte{
		filepath.Join(dir, "one.json"): []byte(played + "\n"), filepath.Join(dir, "deep.JSON"): []byte("\n" + indented(t, played)),
		filepath.Join(dir, "many.jsonl"): []byte("\n" + played + "\r\n\n" + second),
	})
	set := filepath.Join(dir, "set")
	for _, sub := range []string{"a", "a-b"} {
		if err := os.MkdirAll(filepath.Join(set, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeAll(t, map[string][]byte{
		filepath.Join(set, "a", "x.json"): []byte(played), filepath.Join(set, "a-b", "x.jsonl"): []byte(second), filepath.Join(set, "notes.txt"): []byte("no trace"),
	})
	for name, want := range map[string]string{
		"one.json": "w", "deep.JSON": "w", "many.jsonl": "w v", "set": "v w", // - comes before /
	} {
		for _, format := range []Format{Auto, Weka} {
			o := objectsOf
			o.Format = format
			loaded, err := Load(context.Background(), []string{filepath.Join(dir, name)}, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var got []string
			g := loaded.Workload.Graph
			for i := range g.Plays {
				id := string(g.PlayID(int32(i)))
				got = append(got, id[strings.LastIndex(id, ":")+1:])
			}
			rows := 2 * len(got)
			if text := strings.Join(got, " "); text != want || loaded.Format != Weka || loaded.Info.Rows != int64(rows) || len(loaded.Workload.Turns) != rows {
				t.Errorf("%s: %s %+v, want %s", name, text, loaded.Info, want)
			}
			if g.NestedBasis != "relative" {
				t.Errorf("%s: %s", name, g.NestedBasis)
			}
		}
	}
	// What is above the trace is not part of it, how it is spelt is.
	here, err := Load(context.Background(), []string{filepath.Join(dir, "one.json")}, objectsOf)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	writeAll(t, map[string][]byte{filepath.Join(other, "one.json"): []byte(played + "\n"), filepath.Join(other, "two.json"): []byte(played)})
	for name, same := range map[string]bool{"one.json": true, "two.json": false} {
		there, err := Load(context.Background(), []string{filepath.Join(other, name)}, objectsOf)
		if err != nil || (there.Workload.Graph.SourceDigest == here.Workload.Graph.SourceDigest) != same || (there.Workload.Graph.Digest == here.Workload.Graph.Digest) != same {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWekaSentences(t *testing.T) {
	with := func(change func(*Options)) Options { o := objectsOf; change(&o); return o }
	deep := indented(t, played)
	for _, c := range []struct {
		o                Options
		name, text, want string
	}{
		{objectsOf, "t.json", "", " found no object, want at least one"},
		{objectsOf, "t.jsonl", "\n", " found no object, want at least one"},
		{objectsOf, "t.txt", played, " is a trace in the format weka, whose requests are named after their file; want a name that ends in .json (one object) or .jsonl (a line for each), or a directory of such files"},
		{objectsOf, "t.json", string(gz(t, played)), " is compressed with gzip, want a trace in the format weka as plain text"},
		{objectsOf, "t.json", played + "\n" + played, "2: found {\"id\":\"w\",\"models\":[\"m\"],\"block_size\":4,... after the object, want one object in a file whose name ends in .json; a file of several, a line for each, ends in .jsonl"},
		{objectsOf, "t.json", "[1]", "1: found [1], want a JSON object"},
		{objectsOf, "t.json", deep[:len(deep)-2], "36: the file ends too early, want a complete JSON object"},
		{objectsOf, "t.json", edit(deep, "0.5", "oops"), `11: requests[0]: field "requests.t" (column 12): found oops, want a number of seconds from 0`},
		{objectsOf, "t.json", edit(deep, `"in": 4`, `"in": 4.5`), `31: requests[1].requests[0]: field "requests.in": found 4.5, want a positive integer`},
		{objectsOf, "t.json", edit(deep, `"in": 4`, `"in": 4 }`), `27: requests[1].requests[0]: field "requests.out" is missing, want an integer from 0`},
		{objectsOf, "t.jsonl", "\n" + edit(played, `"n"`, `"z"`), `2: requests[0]: field "requests.type": found "z", want "n" or "s", or "subagent" where it is not in one`},
		{objectsOf, "t.jsonl", edit(played, `completed`, `failed`), `1: requests[1]: field "requests.status": found "failed", want "completed" or "async_launched"`},
		{objectsOf, "t.jsonl", edit(played, `"id":"w",`, ``), `1: field "id" is missing, want a string`},
		{objectsOf, "t.jsonl", edit(played, `"in":8,`, ``), `1: requests[0]: field "requests.in" is missing, want a positive integer`},
		{objectsOf, "t.jsonl", edit(played, `"local"`, `"global"`), `1: field "hash_id_scope": found "global", want "local"`},
		{objectsOf, "t.jsonl", edit(played, `"w"`, `""`), `1: field "id" is blank, want a name`},
		{objectsOf, "t.jsonl", edit(played, `size":4`, `size":0`), `1: field "block_size": found 0, want a positive integer`},
		{objectsOf, "t.jsonl", edit(played, `size":4`, `size":4294967296`), `1: field "block_size": found 4294967296, want at most 2147483647`},
		{objectsOf, "t.jsonl", played + "\n" + edit(played, `size":4`, `size":8`), `2: field "block_size": found 8, but 4 before; want one block size in all of the trace`},
		{objectsOf, "t.jsonl", edit(played, `0.5`, `-0.5`), `1: requests[0]: field "requests.t": found -0.5, want a number of seconds from 0`},
		{objectsOf, "t.jsonl", edit(played, `["m"]`, `["k"]`), `1: requests[0]: field "requests.model": found m, want one of those that models lists`},
		{objectsOf, "t.jsonl", edit(played, `:8,`, `:0,`), `1: requests[0]: field "requests.in": found 0, want a positive integer`},
		{objectsOf, "t.jsonl", edit(played, `:8,`, `:2147483648,`), `1: requests[0]: field "requests.in": found 2147483648, want at most 2147483647`},
		{objectsOf, "t.jsonl", edit(played, `"completed"`, `"completed","duration_ms":-4`), `1: requests[1]: field "requests.duration_ms": found -4, want a whole number of milliseconds from 0`},
		{objectsOf, "t.jsonl", edit(played, `[{"type":"s","t":0,"model":"m","in":4,"out":0}]`, `[]`), `1: requests[1]: subagent a was waited for, but has no requests; want at least one, or the status async_launched`},
		{objectsOf, "t.jsonl", edit(played, `{"type":"n","t":0.5,"model":"m","in":8,"out":2,"hash_ids":[1,2]},`, ``), `1: found no request but those of subagents, want at least one`},
		{objectsOf, "t.jsonl", edit(edit(played, `{"type":"n","t":0.5,"model":"m","in":8,"out":2,"hash_ids":[1,2]},`, ``), `"out":0}]}`, `"out":0}]},{"type":"n","t":0.5,"model":"m","in":8,"out":2}`),
			`1: requests[0]: subagent a comes before the first request that could have called it; want that request before it`},
		{with(func(o *Options) { o.NestedBasis = weka.Absolute }), "t.json", played, " requests[1].requests[0]: the request begins at 0 s, before its subagent at 1 s; want times that count from the subagent (--weka-nested-timestamp-basis relative), or later ones"},
		{with(func(o *Options) { o.WantBlockSize = 8 }), "t.json", played, " the requests were traced with a block size of 4 tokens, but 8 is asked for (--trace-block-size); want the same, or leave it out"},
		{with(func(o *Options) { o.Concurrency = true }), "t.json", played, " is a trace in the format weka, whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither"},
		{with(func(o *Options) { o.ExecutionModel = "" }), "t.json", played, " is a trace in the format weka, whose requests name models of their own; want the name of the model that serves them all (--execution-model)"},
		{with(func(o *Options) { o.MaxLine = 100 }), "t.json", played, " the object is longer than 100 bytes; want smaller ones, as lines of a .jsonl file or as files of a directory"},
		{with(func(o *Options) { o.MaxLine = 100 }), "t.jsonl", played, "1: the line is longer than 100 bytes; want one JSON object per line"},
		{with(func(o *Options) { o.Format, o.NestedBasis = Mooncake, weka.Absolute }), "t.json", good, " is a trace in the format mooncake, which has no times of its own in subagents (--weka-nested-timestamp-basis); want a trace in the format weka"},
		{objectsOf, "t.jsonl", edit(edit(played, `0.5`, `5`), `"out":0}]}]`, `"out":0}]},{"type":"n","t":1.1,"model":"m","in":4,"out":1}]`),
			"1: the times let 3 requests wait for each other for ever, among them weka:eef83f69ad986d80:request:outer:0; want a subagent to begin after the request before it"},
	} {
		path := write(t, c.name, []byte(c.text))
		want := path + ":" + c.want
		if loaded, err := Load(context.Background(), []string{path}, c.o); err == nil || err.Error() != want || loaded.Workload != nil {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, want)
		}
	}
	if _, err := Load(context.Background(), []string{Stdin}, Options{Format: Weka, ArrivalSpeedup: 1, ExecutionModel: "m", Stdin: strings.NewReader(played)}); err == nil ||
		!strings.HasPrefix(err.Error(), "standard input: is a trace in the format weka, whose requests are named after their file;") {
		t.Error(err)
	}
}

func TestWekaDirectorySentences(t *testing.T) {
	dir := t.TempDir()
	check := func(o Options, file, want string) {
		t.Helper()
		if _, err := Load(context.Background(), []string{dir}, o); err == nil || err.Error() != file+": "+want {
			t.Errorf("got  %v\nwant %s: %s", err, file, want)
		}
	}
	check(objectsOf, dir, "is a directory without a file that ends in .json or .jsonl, want a trace file, or a directory of such files in the format weka")
	check(Options{Format: Mooncake}, dir, "is a directory, want a trace file")
	bad := filepath.Join(dir, "b.json")
	writeAll(t, map[string][]byte{filepath.Join(dir, "a.json"): []byte(played), bad: []byte("{}")})
	check(objectsOf, bad+":1", `field "id" is missing, want a string`)
	writeAll(t, map[string][]byte{bad: []byte(" \n")})
	check(objectsOf, bad, "found no object, want at least one")
	writeAll(t, map[string][]byte{filepath.Join(dir, "a.json"): []byte(good)})
	o := objectsOf
	o.Format = Auto
	check(o, dir, "is a directory, and a.json in it looks like mooncake; want a trace file, or a directory of files in the format weka")
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a.json"), bad); err != nil {
		t.Skip("no links")
	}
	check(objectsOf, bad, "is a symbolic link, want none in the directory of a trace")
}
