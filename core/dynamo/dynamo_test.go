package dynamo

import (
	"encoding/hex"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// req is the record of a request: "id session<parent start+length", then
// dependencies as "trigger/relation/id".
func req(text string) string {
	f := strings.Fields(text)
	session, parent, child := strings.Cut(f[1], "<")
	var start, length int
	if _, err := fmt.Sscanf(f[2], "%d+%d", &start, &length); err != nil {
		panic(text)
	}
	context := ""
	if session != "-" {
		context = fmt.Sprintf(`,"agent_context":{"session_id":%q}`, session)
		if child {
			context = fmt.Sprintf(`,"agent_context":{"session_id":%q,"parent_session_id":%q}`, session, parent)
		}
	}
	var deps []string
	for _, d := range f[3:] {
		part := strings.SplitN(d, "/", 3)
		deps = append(deps, fmt.Sprintf(`{"trigger":%q,"relation":%q,"request_id":%q}`, part[0], part[1], part[2]))
	}
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":%d,"request":{"request_id":%q,"output_tokens":2,`+
		`"request_received_ms":%d,"total_time_ms":%d,"model":"m","replay":{"trace_block_size":4,"input_length":8,"input_sequence_hashes":[1,2],"dependencies":[%s]}}%s}`,
		start+length, f[0], start, length, strings.Join(deps, ","), context)
}

// call is the record of a tool: "session source>consumer child mode", with -
// for what is not there.
func call(text string) string {
	f := strings.Fields(text)
	source, consumer, _ := strings.Cut(f[1], ">")
	claude := fmt.Sprintf(`"source_request_id":%q,"execution_mode":%q`, source, f[3])
	if consumer != "-" {
		claude += fmt.Sprintf(`,"consumer_request_id":%q`, consumer)
	}
	if f[2] != "-" {
		claude += fmt.Sprintf(`,"child_session_id":%q`, f[2])
	}
	return fmt.Sprintf(`{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":5,"agent_context":{"session_id":%q},`+
		`"tool":{"tool_call_id":"t","tool_class":"agent","claude":{%s}}}`, f[0], claude)
}

func build(t *testing.T, o workload.Options, records ...string) (*workload.Workload, Fault) {
	t.Helper()
	b := NewBuilder()
	var p trace.Parser
	for i, text := range records {
		var r trace.DynamoRecord
		if f := p.Dynamo([]byte(text), &r); f.Code != trace.OK {
			t.Fatalf("%s: code %d, field %s", text, f.Code, f.Field.Name())
		}
		if f := b.Add(&r, Place{File: int32(i % 2), Line: int64(i) + 1}); f.Code != OK {
			return nil, f
		}
	}
	return b.Finish(o)
}

var byTrace = workload.Options{ArrivalSpeedup: 1}

// show writes nodes as "id@notBefore: dependencies" in order of their ids, then
// the plays.
func show(w *workload.Workload) string {
	g := w.Graph
	var b strings.Builder
	for i := range w.Turns {
		n := g.Nodes[i]
		fmt.Fprintf(&b, "%s@%v", g.Request(int32(i)), n.NotBeforeMs)
		for _, d := range g.Deps[n.Deps:g.Nodes[i+1].Deps] {
			fmt.Fprintf(&b, " %s/%s/%s+%v", g.Request(d.Node), d.Trigger, d.Relation, d.DelayMs)
		}
		b.WriteString("; ")
	}
	for i := range g.Plays {
		b.WriteString(strings.TrimPrefix(string(g.PlayID(int32(i))), "dynamo-play:") + " ")
	}
	return b.String()
}

// What the reference makes of these traces: it was asked for every one.
func TestGraph(t *testing.T) {
	p0, p1 := req("p0 P 1000+10"), req("p1 P 1050+10")
	c0, c1 := req("c0 C<P 1015+5"), req("c1 C<P 1030+5")
	const guessed = "c0@0 p0/dispatch/spawn+15; c1@0 c0/completion/sequence+10; p0@0; p1@0 c1/completion/join+15 p0/completion/sequence+40; p0 "
	for _, c := range []struct {
		name, want string
		records    []string
	}{
		{"a session", "p0@0; p1@0 p0/completion/sequence+40; p0 ", []string{p0, p1}},
		{"sessions apart", "p0@0; q@5; p0 q ", []string{p0, req("q Q 1005+3")}},
		{"a child", guessed, []string{p0, c0, c1, p1}},
		{"a parent named once", guessed, []string{p0, c0, req("c1 C 1030+5"), p1}},
		{"a child while its parent runs", "c0@0 p0/dispatch/spawn+5; p0@0; p0 ", []string{p0, req("c0 C<P 1005+5")}},
		{"a child before its parent", "c0@0; p0@0 c0/completion/join+5; c0 ", []string{p0, req("c0 C<P 990+5")}},
		{"the parent goes on as the child ends", "c0@0 p0/dispatch/spawn+15; p0@0; p1@0 c0/completion/join+0 p0/completion/sequence+10; p0 ",
			[]string{p0, c0, req("p1 P 1020+10")}},
		{"the parent does not wait", "c0@0 p0/dispatch/spawn+15; p0@0; p1@0 p0/completion/sequence+8; p2@0 c0/completion/join+10 p1/completion/sequence+11; p0 ",
			[]string{p0, c0, req("p1 P 1018+1"), req("p2 P 1030+1")}},
		{"parents of each other", "a@0; b@0 a/dispatch/spawn+10 a/completion/join+5; a ", []string{req("a A<B 1000+5"), req("b B<A 1010+5")}},

		{"a tool call", guessed, []string{p0, c0, c1, p1, call("P p0>p1 C blocking")}},
		{"a tool call in the background", guessed, []string{call("P p0>p1 C background"), p0, c0, c1, p1}},
		{"a tool call without a consumer", "c0@0 p0/dispatch/spawn+15; c1@0 c0/completion/sequence+10; p0@0; p1@0 p0/completion/sequence+40; p0 ",
			[]string{p0, c0, c1, p1, call("P p0>- C blocking")}},
		{"a tool call without a child", guessed, []string{p0, c0, c1, p1, call("P p0>p1 - blocking")}},
		{"a tool call of an unknown child", guessed, []string{p0, c0, c1, p1, call("P p0>p1 Z blocking")}},
		{"a consumer later than the guess", "c0@0 p0/dispatch/spawn+15; c1@0 c0/completion/sequence+10; p0@0; p1@0 p0/completion/sequence+40; " +
			"p2@0 c1/completion/join+35 p1/completion/sequence+10; p0 ", []string{p0, c0, c1, p1, req("p2 P 1070+5"), call("P p0>p2 C blocking")}},
		{"a consumer before the child's end", "c0@0 p0/dispatch/spawn+15; c1@0 c0/completion/sequence+35; p0@0; p1@0 c0/completion/join+30 p0/completion/sequence+40; p0 ",
			[]string{p0, c0, req("c1 C<P 1055+5"), p1, call("P p0>p1 C blocking")}},
		{"a consumer before the child", "c0@0 p0/dispatch/spawn+55; p0@0; p1@0 p0/completion/sequence+40; p0 ",
			[]string{p0, req("c0 C<P 1055+5"), p1, call("P p0>p1 C blocking")}},
		{"a tool call of a session without a parent", "c0@15; p0@0; c0 p0 ", []string{p0, req("c0 C 1015+5"), call("P p0>- C blocking")}},

		{"a named dependency", "p0@0; p1@0 p0/completion/sequence+40 q/completion/join+15; q@30; p0 ",
			[]string{p0, req("q Q 1030+5"), req("p1 P 1050+10 completion/join/q")}},
		{"a named dependency that had not ended", "p0@0; p1@0 p0/completion/sequence+40 q/completion/join+0; q@48; p0 ",
			[]string{p0, req("q Q 1048+5"), req("p1 P 1050+10 completion/join/q")}},
		{"a named dependency known anyway", "p0@0; p1@0 p0/completion/sequence+40; p0 ", []string{p0, req("p1 P 1050+10 completion/join/p0")}},
		{"a named dependency instead of a guess", "c0@15; c1@0 c0/completion/sequence+10; p0@0; p1@0 c0/completion/join+30 p0/completion/sequence+40; p0 ",
			[]string{p0, c0, c1, req("p1 P 1050+10 completion/join/c0")}},
		{"a named dependency beside a tool call", "c0@0 p0/dispatch/spawn+15; c1@0 c0/completion/sequence+10 p0/completion/join+20; p0@0; " +
			"p1@0 c1/completion/join+15 p0/completion/sequence+40; p0 ", []string{p0, c0, req("c1 C<P 1030+5 completion/join/p0"), p1, call("P p0>p1 C blocking")}},
		{"a named request of the same start", "a@0 b/completion/join+0; b@0; b ", []string{req("a A 1000+5 completion/join/b"), req("b B 1000+5")}},
		{"a name of the earliest that waits for none", "a@0; b@0; c@0 a/completion/join+91 b/completion/join+95; a ",
			[]string{req("b B 1000+5"), req("a A 1000+9"), req("c C 1100+1 completion/join/a completion/join/b")}},
	} {
		w, f := build(t, byTrace, c.records...)
		if f.Code != OK {
			t.Errorf("%s: %+v", c.name, f)
			continue
		}
		if got := show(w); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		// The order of records says nothing.
		r := rand.New(rand.NewSource(1))
		for range 5 {
			list := slices.Clone(c.records)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if w, f := build(t, byTrace, list...); f.Code != OK || show(w) != c.want {
				t.Errorf("%s, in another order: %+v", c.name, f)
			}
		}
	}
}

// The reference's digests.
func TestDigest(t *testing.T) {
	p1 := strings.Replace(strings.Replace(req("p1 P 1050+10"), "[1,2]", "[1,2,3]", 1), `"input_length":8`, `"input_length":12`, 1)
	for want, records := range map[string][]string{
		"2aee3d3a5513f31d0c6e0e5c55df1b623e9ba9249374213528f156c9e995aefb": {strings.Replace(req("a S 1000+10"), "[1,2]", "[501,502]", 1)},
		"2ebe98d1463992967e8719a2716e93f54f2ff2197b8f3b0d45ba59f085f87126": {req("p0 P 1000+10"), p1},
	} {
		w, f := build(t, byTrace, records...)
		if f.Code != OK {
			t.Fatalf("%+v", f)
		}
		if got := hex.EncodeToString(w.Graph.Digest[:]); got != want {
			t.Errorf("%v: %s, want %s", records, got, want)
		}
	}
	w, _ := build(t, byTrace, req("p0 P 1000+10"), call("P p0>- - blocking"))
	if w.Graph.SourceFormat != "dynamo.request.trace.v1" || w.Graph.SourceDigest != "requests:1;tools:1" {
		t.Errorf("source %s %s", w.Graph.SourceFormat, w.Graph.SourceDigest)
	}
}

func TestTimes(t *testing.T) {
	rec := func(eventMs, receivedMs int64, totalMs float64) *trace.DynamoRecord {
		return &trace.DynamoRecord{EventTimeMs: eventMs, ReceivedMs: receivedMs, TotalMs: totalMs, HasTotal: totalMs >= 0}
	}
	for _, c := range []struct {
		r          *trace.DynamoRecord
		start, end int64
	}{
		{rec(1010, 1000, 8.5), 1000, 1009}, {rec(1010, 1000, 8.4), 1000, 1008}, {rec(1010, 1000, -1), 1000, 1010},
		{rec(1010, -1, 9.5), 1000, 1010}, {rec(1010, -1, -1), 1010, 1010}, {rec(1010, -1, 1e6), 0, 1010}, {rec(1010, -1, 1e300), 0, 1010},
		{rec(1010, 1000, 1e300), 1000, 1<<63 - 1},
	} {
		if start, end := times(c.r); start != c.start || end != c.end {
			t.Errorf("%+v: %d to %d, want %d to %d", c.r, start, end, c.start, c.end)
		}
	}
}

func TestPlain(t *testing.T) {
	records := []string{req("b - 1030+5"), req("a - 1000+10"), req("z - 1030+4"), req("a2 - 1030+5")}
	w, f := build(t, workload.Options{ArrivalSpeedup: 2}, records...)
	if f.Code != OK || w.Graph != nil || !w.Unlined || w.TraceBlockSize != 4 {
		t.Fatalf("%+v", f)
	}
	var got []string
	for i, s := range w.Sessions {
		got = append(got, fmt.Sprintf("%s@%v", w.SessionID(int32(i)), s.StartMs))
	}
	if want := "[request_1@0 request_2@15 request_3@15 request_4@15]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// The reference refuses every one of these.
func TestFaults(t *testing.T) {
	p0, p1 := req("p0 P 1000+10"), req("p1 P 1050+10")
	edit := func(text, old, now string) string {
		if !strings.Contains(text, old) {
			t.Fatal(old)
		}
		return strings.Replace(text, old, now, 1)
	}
	for _, c := range []struct {
		want    Fault
		name    string
		other   string
		records []string
	}{
		{Fault{Code: NoRequests}, "", "", nil},
		{Fault{Code: NoRequests}, "", "", []string{call("P p0>- - blocking")}},
		{Fault{Code: NoRequest, At: Place{0, 1}}, "", "", []string{edit(p0, `"request"`, `"x"`)}},
		{Fault{Code: Blank, Field: trace.RequestName, At: Place{1, 2}}, "", "", []string{p1, edit(p0, `"p0"`, `" "`)}},
		{Fault{Code: Blank, Field: trace.ContextSession, At: Place{0, 1}}, "", "", []string{edit(p0, `"P"`, `" "`)}},
		{Fault{Code: NoOutput, At: Place{0, 1}}, "", "", []string{edit(p0, `"output_tokens":2,`, ``)}},
		{Fault{Code: OutputTooLong, Found: 1 << 31, Limit: maxCount, At: Place{0, 1}}, "", "", []string{edit(p0, `tokens":2`, `tokens":2147483648`)}},
		{Fault{Code: NegativeTotal, Ms: -1, At: Place{0, 1}}, "", "", []string{edit(p0, `ms":10,`, `ms":-1,`)}},
		{Fault{Code: BlockSizeZero, At: Place{0, 1}}, "", "", []string{edit(p0, `size":4`, `size":0`)}},
		{Fault{Code: BlockSizeTooLarge, Found: 1 << 31, Limit: maxCount, At: Place{0, 1}}, "", "", []string{edit(p0, `size":4`, `size":2147483648`)}},
		{Fault{Code: MixedBlockSizes, Found: 5, Limit: 4, At: Place{1, 2}}, "", "", []string{p0, edit(p1, `size":4`, `size":5`)}},
		{Fault{Code: MixedContexts, At: Place{1, 2}}, "", "", []string{p0, req("a - 1+1")}},
		{Fault{Code: MixedContexts, At: Place{1, 2}}, "", "", []string{req("a - 1+1"), p0}},
		{Fault{Code: DuplicateRequest, At: Place{0, 3}}, "p0", "", []string{p0, p1, p0}},
		{Fault{Code: ParentConflict, At: Place{1, 4}}, "C", "Q", []string{p0, req("q Q 1+1"), req("c0 C<P 1015+5"), req("c1 C<Q 1030+5")}},
		{Fault{Code: UnknownParent, At: Place{0, 1}}, "C", "Z", []string{req("c0 C<Z 1015+5")}},
		{Fault{Code: UnknownMode, At: Place{1, 2}}, "t", "x", []string{p0, call("P p0>- - x")}},
		{Fault{Code: UnknownSource, At: Place{1, 2}}, "t", "z", []string{p0, call("P z>- - blocking")}},
		{Fault{Code: UnknownSource, At: Place{1, 2}}, "t", "z", []string{p0, call("P p0>z - blocking")}},
		{Fault{Code: WrongSession, At: Place{0, 3}}, "t", "q", []string{p0, req("q Q 1+1"), call("P q>- - blocking")}},
		{Fault{Code: WrongSession, At: Place{0, 3}}, "t", "q", []string{p0, req("q Q 1+1"), call("P p0>q - blocking")}},
		{Fault{Code: WrongParent, At: Place{1, 4}}, "t", "C", []string{p0, req("q Q 1+1"), req("c0 C<P 1015+5"), call("Q q>- C blocking")}},
		{Fault{Code: SeveralTools, At: Place{1, 4}}, "t", "C", []string{p0, req("c0 C<P 1015+5"), call("P p0>- C blocking"), call("P p0>- C blocking")}},
		{Fault{Code: UnknownRequest, At: Place{0, 1}}, "p0", "z", []string{req("p0 P 1000+10 completion/join/z")}},
		{Fault{Code: LaterRequest, At: Place{0, 1}}, "p0", "p1", []string{req("p0 P 1000+10 completion/join/p1"), p1}},
		{Fault{Code: NegativeDelay, Ms: -5, At: Place{1, 2}}, "p1", "p0", []string{p0, req("p1 P 1005+10")}},
		{Fault{Code: NegativeDelay, Ms: -35, At: Place{0, 3}}, "c0", "p1", []string{p0, p1, req("c0 C<P 1015+5"), call("P p1>- C blocking")}},
		{Fault{Code: Graph, At: Place{0, 1}, Graph: agentic.Fault{Code: agentic.SelfDependency, Line: 1}}, "", "", []string{req("p0 P 1000+10 completion/join/p0")}},
		{Fault{Code: Graph, At: Place{0, 1}, Graph: agentic.Fault{Code: agentic.HashIDsMismatch, Line: 1, Found: 2, Limit: 3}}, "", "",
			[]string{edit(p0, `length":8`, `length":9`)}},
		{Fault{Code: Plain, At: Place{0, 1}, Row: workload.Fault{Code: workload.InputOverCapacity, Line: 1, Found: 9, Limit: 8}}, "", "",
			[]string{edit(req("a - 1+1"), `length":8`, `length":9`)}},
	} {
		_, f := build(t, byTrace, c.records...)
		name, other := string(f.Name), string(f.Other)
		f.Name, f.Other, f.Graph.Name, f.Graph.Other = nil, nil, nil, nil
		if fmt.Sprint(f) != fmt.Sprint(c.want) || name != c.name || other != c.other {
			t.Errorf("%v\ngot  %+v %s %s\nwant %+v %s %s", c.records, f, name, other, c.want, c.name, c.other)
		}
	}
}
