package coretest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// badTraces are traces that cannot be read, by format ("": what they look like).
var badTraces = []struct{ format, text string }{
	{"", ""}, {"", "\n\n"}, {"", "hello\n"}, {"", "\xef\xbb\xbf{}\n"}, {"", `{"timestamp": 0, "input_length": 5, "output_length": "3", "hash_ids": [1]}` + "\n"},
	{"", `{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\n" + `{"timestamp": 0, "input_length": 5, "output_length": 3}` + "\n"},
	{"", `{"timestamp": 0, "input_length": 5000, "output_length": 3, "hash_ids": [1]}` + "\n"}, {"", `{"input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\n"},
	{"", `{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]` + "\n"}, {"", `{"timestamp": 0, "input_length": 5, "output_tokens": 3, "output_length": 3, "hash_ids": [1]}` + "\n"},
	{"", `{"session_id": "a", "delay": 5, "timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\n"}, {"", `{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1, 2.5]}` + "\n"},
	{"", `{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]} x` + "\n"}, {"", `{"timestamp": 0, "session_id": "` + "\x01" + `", "input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\n"},
	{"mooncake-delta", `{"session_id": "a", "timestamp": 0, "input_length": 5, "output_length": 3000000000, "hash_ids": [1]}` + "\n"},
	{"", `{"num_turns": 2, "input_prompt_length": 1200, "assistant_response_length": [80], "tool_call_output_length": [300, 20], "tool_call_latency": [0.5, 2], "final_assistant_response_length": 200}` + "\n"},
	{"", `{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64, "hash_id_scope": "local", "source": {"format": "example", "digest": "1"}}` + "\n"},
	{"", `{"schema": "dynamo.agentic_mooncake", "version": 3}` + "\n"}, {"", `{"request_id": "a", "wait_for": []}` + "\n"},
	{"", `{"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": 1}` + "\n"}, {"", `{"event_type": "nothing"}` + "\n"},
	{"", "TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.6805900,374\n"}, {"", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374\n"}, {"", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,374,1\n"},
	{"", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,0,1\n"}, {"", "TIMESTAMP,ContextTokens,GeneratedTokens\n"}, {"", "Timestamp,Request tokens,Response tokens\n1,2,x\n"}, {"burstgpt", "Timestamp,Request tokens\n"},
	{"weka", `{"id": "w", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [{"type": "n", "t": -1, "model": "m", "in": 128, "out": 40, "hash_ids": [1, 2]}]}` + "\n"},
	{"weka", `{"id": "w", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [{"type": "n", "t": 0, "model": "x", "in": 128, "out": 40, "hash_ids": [1, 2]}]}` + "\n"}, {"weka", "\n"}, {"azure", "{}\n"}, {"dynamo", "{}\n"},
}

// What is wrong with a trace is said with its line, in the sentence of the
// command line; where a row is at fault, a compressed trace says the same.
func TestBadTraces(t *testing.T) {
	dir := t.TempDir()
	var jobs []job
	add := func(name string, text []byte, workload map[string]any) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		workload["kind"], workload["name"] = "file", name
		jobs = append(jobs, job{Name: name, Traces: []string{path}, Scenario: map[string]any{"workload": workload}})
	}
	good := []byte(`{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]}` + "\n")
	for i, c := range badTraces {
		w := map[string]any{"executionModel": "m"}
		if strings.Contains(c.text, "num_turns") {
			w["concurrency"] = 2
		}
		if c.format != "" {
			w["format"] = c.format
		}
		add(fmt.Sprintf("%d.jsonl", i), []byte(c.text), w)
	}
	add("cut.jsonl.gz", gzipped(t, good)[:30], map[string]any{})
	add("plain.gz", good, map[string]any{})
	add("bad.jsonl.gz", gzipped(t, append(good, `{"timestamp": 5}`+"\n"...)), map[string]any{})
	add("capped.jsonl", []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n"), map[string]any{"agenticLanes": 2})
	add("uncapped.jsonl", []byte(badTraces[15].text), map[string]any{})
	add("basis.jsonl", good, map[string]any{"wekaNestedTimestampBasis": "relative"})
	add("sizes.jsonl", good, map[string]any{"traceBlockSize": 0})
	got := inNode(t, jobs)
	for _, j := range jobs {
		o := got[j.Name]
		stderr, err := run(dir, append(append(o.Command[1:len(o.Command):len(o.Command)], j.Name), "--no-table")...)
		if err == nil {
			t.Errorf("%s: the command line takes it", j.Name)
			continue
		}
		if len(o.Complaints) != 1 {
			t.Errorf("%s: %+v %s; want %s", j.Name, o.Complaints, o.Error, stderr)
			continue
		}
		c := o.Complaints[0]
		text := c.Sentence
		switch {
		case c.Path != "trace":
		case c.Line > 0:
			text = fmt.Sprintf("%s:%d: %s", j.Name, c.Line, text)
		default:
			text = j.Name + ": " + text
		}
		// Which line was the last before the damage is not known here, nor which way it was noticed.
		want := strings.Replace(strings.Split(said(stderr), "\n")[len(strings.Split(said(stderr), "\n"))-1], "replay: ", "", 1)
		if text != want {
			t.Errorf("%s:\ngot  %s\nwant %s", j.Name, text, want)
		}
	}
}

// changed is the profile's arrays, changed.
func changed(change func(a []array) []array) func(t *testing.T) []byte {
	return func(t *testing.T) []byte { return archive(t, change(profileArrays())) }
}

// badProfiles are archives that are no profile.
var badProfiles = map[string]func(t *testing.T) []byte{
	"empty": func(*testing.T) []byte { return nil }, "json": func(*testing.T) []byte { return []byte(" {}") }, "text": func(*testing.T) []byte { return []byte("no archive \xff at all") },
	"cut": func(t *testing.T) []byte { b := npz(t); return b[:len(b)-30] }, "damaged": func(t *testing.T) []byte {
		b := bytes.Clone(npz(t))
		i := bytes.Index(b, []byte("\x93NUMPY"))
		b[i+150] ^= 1
		return b
	},
	"missing":  changed(func(a []array) []array { return a[1:] }),
	"twice":    changed(func(a []array) []array { return append(a, a[0]) }),
	"raw":      changed(func(a []array) []array { a[1].name = "prefill_ttft"; return a }),
	"type":     changed(func(a []array) []array { a[0].descr = "<i8"; return a }),
	"shape":    changed(func(a []array) []array { a[0].shape = "(3, 1)"; return a }),
	"longer":   changed(func(a []array) []array { a[0].data = append(a[0].data, 99); return a }),
	"shorter":  changed(func(a []array) []array { a[0].data = a[0].data[:2]; return a }),
	"falling":  changed(func(a []array) []array { a[0].data[2] = 1; return a }),
	"one":      changed(func(a []array) []array { a[0].data, a[0].shape = a[0].data[:1], "(1,)"; return a }),
	"uneven":   changed(func(a []array) []array { a[1].data, a[1].shape = a[1].data[:2], "(2,)"; return a }),
	"plane":    changed(func(a []array) []array { a[4].data, a[4].shape = a[4].data[:6], "(2, 3)"; return a }),
	"nan":      changed(func(a []array) []array { a[4].data[4] = nan; return a }),
	"header":   changed(func(a []array) []array { a[0].shape = "(3"; return a }),
	"trailing": func(t *testing.T) []byte { return append(npz(t), 1, 2, 3) },
	"names":    changed(func(a []array) []array { a[0].name = "some thing"; return a }),
	"huge":     changed(func(a []array) []array { a[0].shape = "(99999999999,)"; a[0].method = zip.Store; return a }),
}

var nan = func() float64 { z := 0.0; return z / z }()

const plane = `"prefill": {"batch": [1, 4], "isl": [16, 64], "prefix": [0, 512], "ms": [[[10, 11], [20, 22]], [[16, 18], [60, 66]]]}, "decode": {"batch": [1, 16], "context": [64, 1024], "ms": [[8, 9], [12, 18]]}`

// badGrids are no grids, as they are read.
var badGrids = map[string]string{
	"list": "[]", "text": `"x"`, "archive": "PK\x03\x04", "empty object": "{}", "prefill only": `{"prefill": {"batch": [1, 2]}}`, "no object": `{"prefill": 3}`,
	"backend": `{"backend": "x", ` + plane + `}`, "number": `{"backend": 3, ` + plane + `}`, "tp": `{"tp": 0, ` + plane + `}`, "tp 1.0": `{"tp": 1.0, ` + plane + `}`,
	"blocks": `{"num_gpu_blocks": 5, ` + plane + `}`, "slots": `{"num_gpu_blocks": 2147483647, "block_size": 2147483647, ` + plane + `}`, "unknown": `{"modle": "x", ` + plane + `}`,
	"falling": `{` + strings.Replace(plane, "[1, 4]", "[4, 1]", 1) + `}`, "negative": `{` + strings.Replace(plane, "11", "-11", 1) + `}`, "one": `{` + strings.Replace(plane, "[1, 16]", "[1]", 1) + `}`,
	"rows": `{` + strings.Replace(plane, "[[8, 9], [12, 18]]", "[[8, 9]]", 1) + `}`, "cells": `{` + strings.Replace(plane, "[8, 9]", "[8, null]", 1) + `}`, "before": `{` + strings.Replace(plane, "[0, 512]", "[-1, 512]", 1) + `}`,
	"flat": `{` + strings.Replace(plane, "[[8, 9], [12, 18]]", "[8, 9]", 1) + `}`, "twice": `{"tp": 1, "tp": 2, ` + plane + `}`, "large": `{` + strings.Replace(plane, "66", "1e999", 1) + `}`,
	"small blocks": `{"num_gpu_blocks": 1, "block_size": 4, ` + plane + `}`, "other tp": `{"tp": 3, ` + plane + `}`,
}

// What is wrong with a file of durations is said in the sentence of the command
// line.
func TestBadTimings(t *testing.T) {
	dir := t.TempDir()
	var jobs []job
	add := func(name, kind string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job{Name: name, Files: map[string]string{name: path}, Scenario: map[string]any{
			"workload": map[string]any{"kind": "synthetic", "inputTokens": 10, "outputTokens": 2, "requestCount": 2, "concurrency": 1},
			"timing":   map[string]any{"kind": kind, "name": name}, "engine": map[string]any{"tensor_parallel_size": 2},
		}})
	}
	for name, text := range badProfiles {
		add(name+".npz", "npz", text(t))
	}
	for name, text := range badGrids {
		add(name+".json", "grid", []byte(text))
	}
	got := inNode(t, jobs)
	for _, j := range jobs {
		o := got[j.Name]
		stderr, err := run(dir, append(o.Command[1:len(o.Command):len(o.Command)], "--no-table")...)
		if err == nil {
			if o.Report == "" {
				t.Errorf("%s: %+v %s; the command line takes it", j.Name, o.Complaints, o.Error)
			}
			continue
		}
		if len(o.Complaints) == 0 {
			t.Errorf("%s: %s; want %s", j.Name, o.Error, stderr)
		} else if got, want := o.Complaints[0].Sentence, said(stderr); got != want && !(strings.Contains(want, ": line ") && strings.HasPrefix(got, want[:strings.Index(want, ": line ")+8])) {
			t.Errorf("%s:\ngot  %s\nwant %s", j.Name, got, want)
		}
	}
}
