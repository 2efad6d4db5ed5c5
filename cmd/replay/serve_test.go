package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/runner"
	"github.com/dryserve/dryserve/internal/stand"
)

// client talks to a serving program.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	ended  chan error

	unheard io.Closer // what out reads from
}

func connect(t *testing.T, dir string) *client {
	t.Helper()
	c := &client{t: t, cmd: command(dir, "serve"), ended: make(chan error, 1)}
	c.cmd.Stderr = &c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out, c.unheard = bufio.NewReader(out), out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill(); c.cmd.Wait() })
	return c
}

// send writes a request.
func (c *client) send(fields ...frame.Field) {
	c.t.Helper()
	b, err := runner.Encode(fields)
	if err != nil {
		c.t.Fatal(err)
	}
	c.sendRaw(b)
}

func (c *client) sendRaw(b []byte) {
	c.t.Helper()
	if _, err := c.in.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) run(id int64, more []frame.Field, args ...string) {
	c.t.Helper()
	c.send(append([]frame.Field{number("id", id), text("op", "run"), text("args", strings.Join(args, "\x00"))}, more...)...)
}

// next is the next answer but for progress.
func (c *client) next() map[string]any {
	c.t.Helper()
	_, m := c.nextRaw()
	return m
}

// nextRaw is next, also as it came.
func (c *client) nextRaw() ([]byte, map[string]any) {
	c.t.Helper()
	for {
		b, err := readFrame(c.out)
		if err != nil {
			c.t.Fatalf("%v, standard error: %s", err, c.stderr.String())
		}
		m, err := runner.Pairs(b)
		if err != nil {
			c.t.Fatal(err)
		}
		if m["event"] != "progress" {
			return b, m
		}
	}
}

// expectEnd waits for the program's end.
func (c *client) expectEnd(status int, stderr string) {
	c.t.Helper()
	go func() { io.Copy(io.Discard, c.out); c.ended <- c.cmd.Wait() }()
	select {
	case err := <-c.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			c.t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		c.t.Fatal("the program goes on")
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status || c.stderr.String() != stderr {
		c.t.Errorf("status %d, standard error %q", got, c.stderr.String())
	}
}

// withoutWall drops what differs between runs.
func withoutWall(t *testing.T, report any) string {
	t.Helper()
	var m map[string]any
	s, _ := report.(string)
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatalf("%v in %v", err, report)
	}
	for _, key := range wallKeys {
		delete(m, key)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Several runs at once, on both engines, give what the command line gives.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	trace, err := filepath.Abs("../../examples/support-sessions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{trace, "--trace-block-size", "64", "--num-workers", "2"}
	ok(t, invoke(t, dir, append(args, "--no-table", "--report-json", "r.json", "--report-jsonl", "r.jsonl")...))
	wantReport, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil {
		t.Fatal(err)
	}
	wantLines, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, dir)
	c.send(number("id", 7), text("op", "hello"))
	if m := c.next(); m["event"] != "hello" || m["reference"] != reference {
		t.Errorf("%v", m)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	capture := []frame.Field{{Name: "requests", Var: ptr(true)}}
	c.run(1, capture, args...)
	c.run(2, capture, append(args, sandbox...)...)
	c.run(3, append(capture, frame.Field{Name: "trace", Var: &data}), append(append([]string{"-"}, args[1:]...), sandbox...)...)
	c.run(4, nil, append(args, "--report-json", "served.json")...)
	reports, written := map[string]string{}, map[string]string{}
	for len(reports) < 4 {
		m := c.next()
		id := string(rune('0' + asInt(m["id"])))
		switch m["event"] {
		case "lines":
			b, _ := m["lines"].([]byte)
			written[id] += string(b)
		case "done":
			reports[id] = withoutWall(t, m["report"])
			if id == "4" && m["path"] != "served.json" || !strings.HasPrefix(m["table"].(string), "NVIDIA AIPerf") {
				t.Errorf("%v", m)
			}
		default:
			t.Fatalf("%v", m)
		}
	}
	for id, got := range reports {
		if got != withoutWall(t, string(wantReport)) {
			t.Errorf("run %s: %s", id, got)
		}
		if id != "4" && written[id] != string(wantLines) {
			t.Errorf("run %s wrote the lines\n%s", id, written[id])
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "served.json")); err != nil {
		t.Error(err)
	}
	c.in.Close()
	c.expectEnd(0, "")
}

func ptr[T any](v T) *T { return &v }

// asInt is any integer the codec decodes to.
func asInt(v any) int {
	switch n := v.(type) {
	case int8:
		return int(n)
	case uint8:
		return int(n)
	case uint16:
		return int(n)
	case uint32:
		return int(n)
	case int64:
		return int(n)
	}
	return -1
}

// What cannot be done is answered, and the server goes on.
func TestServeBadFrames(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	put(t, dir, "bad.jsonl", "[1]\n")
	c := connect(t, dir)
	expect := func(id int, kind, want string) {
		t.Helper()
		if m := c.next(); asInt(m["id"]) != id || m["event"] != "error" || m["kind"] != kind || m["text"] != want {
			t.Errorf("got  %v\nwant %d %s %s", m, id, kind, want)
		}
	}
	c.sendRaw([]byte("no msgpack"))
	expect(0, "frame", "the frame is no msgpack map of flat values at byte 0")
	c.sendRaw(nil)
	expect(0, "frame", "the frame is no msgpack map of flat values at byte 0")
	c.sendRaw([]byte{0x81, 0xA1, 'v', 9})
	expect(0, "frame", "the frame is of version 9; 1 is accepted")
	c.send(number("id", 3))
	expect(3, "frame", `the key "op" is missing`)
	c.send(number("id", 3), text("op", "dance"))
	expect(3, "frame", `the op is "dance"; hello, run, answer or cancel is accepted`)
	c.send(number("id", 3), text("op", "run"), text("arg", "x"))
	expect(3, "frame", `the key "arg" is not known; v, id, op, args, trace, requests, tell_samples, ask_timing, ask_scaling, first_tick_ms and those of answers are accepted`)
	c.send(number("id", 3), number("op", 4))
	expect(3, "frame", `the value of "op" is of another type`)
	c.send(number("id", -1), text("op", "hello"))
	expect(0, "frame", `the value of "id" is out of range`)
	c.send(number("id", 5), text("op", "cancel"))
	expect(5, "frame", "no run has the id 5")
	c.run(6, nil, "t.jsonl", "--num-wroker", "4")
	expect(6, "usage", `unknown flag "--num-wroker"; did you mean --num-workers?`)
	c.run(6, nil)
	expect(6, "usage", "no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted")
	c.run(6, nil, "--help")
	expect(6, "usage", "--help, --version and --print-config print; arguments of a replay are accepted")
	c.run(6, nil, append([]string{"bad.jsonl"}, sandbox...)...)
	expect(6, "run", "bad.jsonl:1: found [1], want a JSON object")
	c.run(6, nil, "-")
	expect(6, "run", "standard input: the file is empty, want at least one row")
	c.run(6, nil, "t.jsonl")
	if m := c.next(); m["event"] != "done" {
		t.Errorf("%v", m)
	}
	if _, err := c.in.Write([]byte{100, 0, 0, 0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	c.expectEnd(1, "replay: standard input ends within a frame: unexpected EOF\n")
}

// endless is a trace and arguments of a run that takes very long.
func endless(t *testing.T, dir string) []string {
	put(t, dir, "long.jsonl", strings.Repeat(row(`"timestamp":0,"input_length":10,"output_length":2000000,"hash_ids":[1]`), 200))
	return []string{"long.jsonl", "--engine-impl", "plain", "--report-json", "long.json",
		"--extra-engine-args", `{"num_gpu_blocks": 100000000}`}
}

// A run can be cancelled, and ends with its client.
func TestServeStops(t *testing.T) {
	dir := t.TempDir()
	args := endless(t, dir)
	before := tree(t, dir)
	c := connect(t, dir)
	c.run(1, nil, append(args, sandbox...)...)
	c.run(2, nil, args...)
	c.run(1, nil, args...)
	if m := c.next(); asInt(m["id"]) != 1 || m["text"] != "a run with the id 1 is under way; another id is accepted" {
		t.Errorf("%v", m)
	}
	c.send(number("id", 1), text("op", "cancel"))
	if m := c.next(); asInt(m["id"]) != 1 || m["kind"] != "cancelled" {
		t.Errorf("%v", m)
	}
	c.in.Close()
	c.expectEnd(0, "")
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}

// A client that reads no more ends the server, which leaves nothing behind.
func TestServeUnheard(t *testing.T) {
	dir := t.TempDir()
	args := endless(t, dir)
	before := tree(t, dir)
	c := connect(t, dir)
	c.run(1, nil, args...)
	stand.Until(t, "the beginning of the report", func() bool { return tree(t, dir) != before })
	if err := c.unheard.Close(); err != nil {
		t.Fatal(err)
	}
	c.send(number("id", 2), text("op", "hello"))
	c.expectEnd(1, "replay: cannot write standard output: broken pipe\n")
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}

func TestServeArguments(t *testing.T) {
	expect(t, invoke(t, t.TempDir(), "serve", "t.jsonl"), 2, `serve takes no arguments, found "t.jsonl"; requests come as frames (a trace of this name: ./serve)`)
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A frame that claims too much is skipped; one that claims more than comes
// costs no memory.
func TestReadFrameBounds(t *testing.T) {
	head := func(n uint32) io.Reader { return bytes.NewReader(binary.LittleEndian.AppendUint32(nil, n)) }
	r := io.MultiReader(head(maxRequest+1), io.LimitReader(zeros{}, maxRequest+1), head(0))
	var large frameTooLarge
	if _, err := readFrame(r); !errors.As(err, &large) || large != maxRequest+1 {
		t.Errorf("%v", err)
	}
	if b, err := readFrame(r); err != nil || len(b) != 0 {
		t.Errorf("%x, %v", b, err)
	}
	if _, err := readFrame(r); err != io.EOF {
		t.Errorf("%v", err)
	}
	if _, err := readFrame(io.MultiReader(head(maxRequest), strings.NewReader("few"))); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
	if _, err := readFrame(strings.NewReader("\x01\x00")); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
}
