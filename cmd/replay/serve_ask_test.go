package main

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/runner"
)

var update = flag.Bool("update", false, "write the golden frames instead of comparing")

const goldenServe = "../../testdata/frames/serve.txt"

// asking are the keys of a run whose client says how long passes take.
func asking() []frame.Field { return []frame.Field{{Name: "ask_timing", Var: ptr(true)}} }

// fixed answers as an engine of fixed durations does: 7 ms a prefill, 3 ms a
// decode step.
func fixed(m map[string]any) float64 {
	if asInt(m["ask_kind"]) == 0 {
		return 7
	}
	return 3
}

// A client that answers as an engine of fixed durations would gives its
// report, on either engine; each question comes once.
func TestServeAsks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", strings.Repeat(row(`"timestamp":0,"input_length":10,"output_length":5,"hash_ids":[1,2]`), 3)+row(`"timestamp":9,"input_length":16,"output_length":3,"hash_ids":[1,3]`))
	args := []string{"t.jsonl", "--trace-block-size", "8", "--extra-engine-args"}
	ok(t, invoke(t, dir, append(args, `{"engine": {"block_size": 4, "timing_model": {"type": "fixed", "prefill_ms": 7, "decode_ms": 3}}}`, "--report-json", "r.json")...))
	want, err := os.ReadFile(dir + "/r.json")
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, dir)
	for name, more := range map[string][]string{"native": nil, "wasm": sandbox, "plain": {"--engine-impl", "plain"}} {
		c.run(1, asking(), append(append(args, `{"engine": {"block_size": 4}}`), more...)...)
		asked := map[string]bool{}
		m := c.next()
		for ; m["event"] == "ask"; m = c.next() {
			key := fmt.Sprint(m["ask_kind"], m["ask_batch"], m["ask_isl"], m["ask_prefix"], m["ask_osl"])
			if asked[key] {
				t.Errorf("%s: asked twice: %s", name, key)
			}
			asked[key] = true
			c.send(number("id", 1), text("op", "answer"), frame.Field{Name: "answer_ms", Var: ptr(fixed(m))})
		}
		if m["event"] != "done" || withoutWall(t, m["report"]) != withoutWall(t, string(want)) || len(asked) < 5 {
			t.Errorf("%s, %d questions: %v", name, len(asked), m)
		}
		if engine := map[string]string{"wasm": "wasm"}[name]; m["engine"] != max(engine, "native") {
			t.Errorf("%s ran on %v", name, m["engine"])
		}
	}
}

// What is wrong with an answer is said, and a run that waits for one can be
// failed and cancelled.
func TestServeBadAnswers(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	c := connect(t, dir)
	expect := func(kind, want string) {
		t.Helper()
		if m := c.next(); asInt(m["id"]) != 4 || m["event"] != "error" || m["kind"] != kind || m["text"] != want {
			t.Errorf("got  %v\nwant %s %s", m, kind, want)
		}
	}
	answer := func(fields ...frame.Field) {
		t.Helper()
		c.send(append([]frame.Field{number("id", 4), text("op", "answer")}, fields...)...)
	}
	ms := func(x float64) frame.Field { return frame.Field{Name: "answer_ms", Var: &x} }
	answer(ms(1))
	expect("frame", "no run has the id 4")
	for _, more := range [][]string{nil, sandbox} {
		begin := func() {
			t.Helper()
			c.run(4, asking(), append([]string{"t.jsonl"}, more...)...)
			if m := c.next(); m["event"] != "ask" || asInt(m["ask_kind"]) != 0 || asInt(m["ask_isl"]) != 10 {
				t.Fatalf("%v", m)
			}
		}
		begin()
		for _, wrong := range [][]frame.Field{nil, {ms(math.NaN())}, {ms(math.Inf(1))}, {text("answer_error", "")}} {
			answer(wrong...)
			expect("frame", "an answer needs answer_ms, a finite number, or answer_error, a text")
		}
		answer(text("answer_error", "the table ends at 8"))
		expect("run", "the timing provider failed for a prefill of batch 1, isl 10, prefix 0: the table ends at 8")
		begin()
		c.send(number("id", 4), text("op", "cancel"))
		expect("cancelled", "the run was cancelled")
	}
	c.run(4, asking(), "t.jsonl", "--extra-engine-args", `{"engine": {"timing_model": {"type": "fixed", "prefill_ms": 7, "decode_ms": 3}}}`)
	expect("run", "the engine says how long passes take, and so does whoever started the run (ask_timing); one of them is accepted")
}

// Frames of a dialogue, byte for byte, as docs/serve.md explains them. What
// differs between runs is left out.
func TestGoldenServe(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	var got strings.Builder
	trace := []byte(one)
	ms := func(x float64) frame.Field { return frame.Field{Name: "answer_ms", Var: &x} }
	for _, say := range []struct {
		what   string
		fields []frame.Field
	}{
		{"a trace in the request; nobody is asked", []frame.Field{number("id", 1), text("op", "run"), text("args", "-\x00--num-workers\x002"), {Name: "trace", Var: &trace}}},
		{"the client is asked how long a prefill takes", append([]frame.Field{number("id", 2), text("op", "run"), text("args", "-"), {Name: "trace", Var: &trace}}, asking()...)},
		{"and how long a decode step takes", []frame.Field{number("id", 2), text("op", "answer"), ms(12.5)}},
		{"the last answer ends the run", []frame.Field{number("id", 2), text("op", "answer"), ms(3)}},
		{"an answer that nobody has asked for", []frame.Field{number("id", 2), text("op", "answer"), ms(3)}},
		{"a run that cannot be", []frame.Field{number("id", 3), text("op", "run"), text("args", "--num-workers\x002")}},
		{"an unknown op", []frame.Field{number("id", 4), text("op", "dance")}},
	} {
		b, err := runner.Encode(say.fields)
		if err != nil {
			t.Fatal(err)
		}
		c.sendRaw(b)
		fmt.Fprintf(&got, "-- %s\n> %s\n", say.what, hex.EncodeToString(b))
		answer, m := c.nextRaw()
		if m["event"] == "done" {
			for key, v := range m {
				if s, isText := v.(string); isText && len(s) > 100 {
					m[key] = "..."
				}
			}
		} else {
			fmt.Fprintf(&got, "< %s\n", hex.EncodeToString(answer))
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&got, "<   %s: %v\n", key, m[key])
		}
		got.WriteByte('\n')
	}
	if *update {
		if err := os.WriteFile(goldenServe, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenServe)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal([]byte(got.String()), want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
