package agentic

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// parse reads rows of 4-token blocks; what a row must have and fields lack is
// added.
func parse(t *testing.T, fields string) *trace.AgenticRow {
	t.Helper()
	for _, need := range []string{
		`"play_id":"P"`, `"session_id":"S"`, `"model":"m"`, `"input_length":8`, `"output_length":2`, `"hash_ids":[1,2]`, `"not_before_ms":0`,
	} {
		if !strings.Contains(fields, need[:strings.Index(need, ":")+1]) {
			fields += "," + need
		}
	}
	var p trace.Parser
	r := new(trace.AgenticRow)
	if f := p.AgenticRow([]byte("{"+fields+"}"), r); f.Code != trace.OK {
		t.Fatalf("%s: code %d, field %s", fields, f.Code, f.Field.Name())
	}
	return r
}

func build(t *testing.T, speedup float64, rows ...string) (*workload.Workload, Fault) {
	t.Helper()
	b := NewBuilder(4, "f", "d")
	for i, fields := range rows {
		if f := b.Add(parse(t, fields), int64(i)+2); f.Code != OK {
			return nil, f
		}
	}
	return b.Finish(speedup)
}

func wait(on, trigger, relation string, delay any) string {
	return fmt.Sprintf(`{"request_id":%q,"trigger":%q,"relation":%q,"delay_ms":%v}`, on, trigger, relation, delay)
}

func after(ons ...string) string {
	var deps []string
	for _, on := range ons {
		deps = append(deps, wait(on, "completion", "sequence", 1))
	}
	return `"dependencies":[` + strings.Join(deps, ",") + "]"
}

// show writes nodes as "id@notBefore play<parent: dependencies".
func show(w *workload.Workload) string {
	g := w.Graph
	var b strings.Builder
	for i := range w.Turns {
		n := g.Nodes[i]
		fmt.Fprintf(&b, "%s@%v %d", g.Request(int32(i)), n.NotBeforeMs, n.Play)
		if n.Parent >= 0 {
			fmt.Fprintf(&b, "<%s", g.Request(n.Parent))
		}
		for _, d := range g.Deps[n.Deps:g.Nodes[i+1].Deps] {
			fmt.Fprintf(&b, " %s/%s/%s+%v", g.Request(d.Node), d.Trigger, d.Relation, d.DelayMs)
		}
		b.WriteString("; ")
	}
	for i, p := range g.Plays {
		root := "-"
		if p.Root >= 0 {
			root = string(g.Request(p.Root))
		}
		fmt.Fprintf(&b, "%s:%d@%v %s; ", g.PlayID(int32(i)), p.Nodes, p.FirstMs, root)
	}
	return b.String()
}

// The reference's graphs for these rows, by its digest: see TestDigest.
func TestGraph(t *testing.T) {
	for _, c := range []struct {
		name    string
		speedup float64
		want    string
		rows    []string
	}{
		{"sorted by id", 1, "a@0 0; b@0 0 a/completion/sequence+1; P:2@0 a; ",
			[]string{`"request_id":"b",` + after("a"), `"request_id":"a"`}},
		{"normalised by every row", 2, "a@5 0; b@0 0 a/completion/sequence+0.5; P:2@5 a; ",
			[]string{`"request_id":"a","not_before_ms":30`, `"request_id":"b","not_before_ms":20,` + after("a")}},
		{"plays by id", 1, "a@0 1; b@3 0; P:1@3 b; Q:1@0 a; ",
			[]string{`"request_id":"a","play_id":"Q"`, `"request_id":"b","not_before_ms":3`}},
		{"plays by ordinal", 1, "a@0 0; b@0 1; Q:1@0 a; P:1@0 b; ",
			[]string{`"request_id":"b","source_play_ordinal":1`, `"request_id":"a","play_id":"Q","source_play_ordinal":0`}},
		{"several roots", 1, "a@4 0; b@0 0; c@0 0 a/completion/sequence+1; P:3@0 -; ",
			[]string{`"request_id":"a","not_before_ms":4`, `"request_id":"b"`, `"request_id":"c",` + after("a")}},
		{"dependencies sorted, the same one kept twice", 1,
			"a@0 0; b@0 0; c@0 0<a a/dispatch/spawn+9 a/completion/sequence+1 b/completion/sequence+1 b/completion/sequence+1 b/completion/join+0; P:3@0 -; ",
			[]string{`"request_id":"a"`, `"request_id":"b"`, `"request_id":"c","dependencies":[` + strings.Join([]string{
				wait("b", "completion", "join", 0), wait("b", "completion", "sequence", 1), wait("a", "completion", "sequence", 1),
				wait("b", "completion", "sequence", 1), wait("a", "dispatch", "spawn", 9),
			}, ",") + "]"}},
		{"spawned at the end", 1, "a@0 0; b@0 0<a a/completion/spawn+1; P:2@0 a; ",
			[]string{`"request_id":"a"`, `"request_id":"b","dependencies":[` + wait("a", "completion", "spawn", 1) + "]"}},
	} {
		w, f := build(t, c.speedup, c.rows...)
		if f.Code != OK {
			t.Errorf("%s: %+v", c.name, f)
		} else if got := show(w); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// What follows is what depends, seen from the other side.
func TestFollows(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 100 {
		n := 1 + r.Intn(12)
		var rows []string
		for i := range n {
			var ons []string
			for range r.Intn(3) {
				if i > 0 {
					ons = append(ons, fmt.Sprint("r", r.Intn(i)))
				}
			}
			rows = append(rows, fmt.Sprintf(`"request_id":"r%d",`, i)+after(ons...))
		}
		r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		w, f := build(t, 1, rows...)
		if f.Code != OK {
			t.Fatal(f)
		}
		g := w.Graph
		var deps, follows []string
		for i := range w.Turns {
			for _, d := range g.Deps[g.Nodes[i].Deps:g.Nodes[i+1].Deps] {
				deps = append(deps, fmt.Sprint(d.Node, i, d.Trigger, d.DelayMs))
			}
			for _, x := range g.Follows[g.Nodes[i].Follows:g.Nodes[i+1].Follows] {
				follows = append(follows, fmt.Sprint(i, x.Node, x.Trigger, x.DelayMs))
			}
		}
		count := map[string]int{}
		for i := range deps {
			count[deps[i]]++
			count[follows[i]]--
		}
		for what, n := range count {
			if n != 0 {
				t.Fatalf("%s: %d more dependencies than follows", what, n)
			}
		}
	}
}

// The reference's digests of these graphs.
func TestDigest(t *testing.T) {
	for _, c := range []struct {
		speedup float64
		want    string
		rows    []string
	}{
		{1, "109541f3784dd00533d8af66e6cace03b3e5da6e503ea91ff02a3638822176b0",
			[]string{`"request_id":"a","not_before_ms":10`, `"request_id":"b","session_id":"T",` + after("a")}},
		{2, "463b3927d0343ae04dcba1abd3d59d0d877c682191c9bd22928b05d0b1216e24",
			[]string{`"request_id":"a","not_before_ms":10`, `"request_id":"b","session_id":"T",` + after("a")}},
		{1, "2777a9ef7a95f43f9d9442ac6c46a2cd0c971ffe90d29a25327c21a37d6d3a63", []string{`"request_id":"a","output_token_ids":[5,6]`}},
		{1, "8343c75d67ad9fd92ea26ede382a6dbdb0eca2f4403920559c7b9cb7a11ff161", []string{`"request_id":"a","output_length":0,"output_token_ids":[]`}},
		{1, "f5b16bc235473ed4c5b31244ec09e8ae9e05ece00303d0fbe88596f4b087a064", []string{`"request_id":"a"`}},
	} {
		w, f := build(t, c.speedup, c.rows...)
		if f.Code != OK {
			t.Fatal(f)
		}
		if got := hex.EncodeToString(w.Graph.Digest[:]); got != c.want {
			t.Errorf("%v: %s, want %s", c.rows, got, c.want)
		}
	}
}

// The reference refuses every one of these.
func TestFaults(t *testing.T) {
	const a = `"request_id":"a"`
	deps := func(d ...string) string { return `,"dependencies":[` + strings.Join(d, ",") + "]" }
	for _, c := range []struct {
		want string
		rows []string
	}{
		{"Blank request_id", []string{`"request_id":" \t\u00a0"`}},
		{"Blank play_id", []string{a + `,"play_id":""`}},
		{"Blank session_id", []string{a + `,"session_id":" "`}},
		{"Blank model", []string{a + `,"model":""`}},
		{"Blank dependencies.request_id", []string{a + deps(wait("", "completion", "join", 0))}},
		{"DuplicateRequest a", []string{a, a}},
		{"InputZero", []string{a + `,"input_length":0,"hash_ids":[]`}},
		{"InputTooLong 3000000000 2147483647", []string{a + `,"input_length":3000000000`}},
		{"HashIDsMismatch 3 2", []string{a + `,"hash_ids":[1,2,3]`}},
		{"HashIDsMismatch 1 2", []string{a + `,"hash_ids":[1]`}},
		{"OutputTooLong 3000000000 2147483647", []string{a + `,"output_length":3000000000`}},
		{"OutputIDsMismatch 1 2", []string{a + `,"output_token_ids":[1]`}},
		{"NegativeMs not_before_ms -1", []string{a + `,"not_before_ms":-1`}},
		{"NegativeMs recorded_api_time_ms -1", []string{a + `,"recorded_api_time_ms":-1`}},
		{"NegativeMs dependencies.delay_ms -1", []string{a + deps(wait("b", "completion", "join", -1))}},
		{"BadTrigger b", []string{a + deps(wait("b", "dispatch", "join", 0))}},
		{"UnknownRequest a z", []string{a + deps(wait("z", "completion", "join", 0))}},
		{"SelfDependency a a", []string{a + deps(wait("a", "completion", "join", 0))}},
		{"OtherPlay a b", []string{a + deps(wait("b", "completion", "join", 0)), `"request_id":"b","play_id":"Q"`}},
		{"MixedOrdinals P", []string{a + `,"source_play_ordinal":0`, `"request_id":"b"`}},
		{"MissingOrdinals Q", []string{a + `,"source_play_ordinal":0`, `"request_id":"b","play_id":"Q"`}},
		{"OrdinalGap 1 0", []string{a + `,"source_play_ordinal":1`}},
		{"Cycle 2 a", []string{`"request_id":"x"`, a + deps(wait("b", "completion", "join", 0)), `"request_id":"b"` + deps(wait("a", "dispatch", "spawn", 0))}},
		{"Empty", nil},
		{"TimeTooLate", []string{a, `"request_id":"b","not_before_ms":1e300`}},
		{"TimeTooLate", []string{a, `"request_id":"b"` + deps(wait("a", "completion", "join", 1e300))}},
	} {
		_, f := build(t, 1e-10, c.rows...)
		if got := f.text(); got != c.want {
			t.Errorf("%v: %s, want %s", c.rows, got, c.want)
		}
		if wantLine := f.Code != Empty && f.Code != MissingOrdinals && f.Code != OrdinalGap; wantLine != (f.Line > 0) {
			t.Errorf("%v: line %d", c.rows, f.Line)
		}
	}
	if f := NewBuilder(4, "f", "d").Add(parse(t, a), math.MaxInt32+1); f.Code != TooManyLines {
		t.Errorf("%+v", f)
	}
}

func (f Fault) text() string {
	names := []string{
		"OK", "TooManyLines", "TooManyRows", "TooManyIDs", "TooManyOutputIDs", "TooManyDeps", "TooMuchText", "Blank", "DuplicateRequest", "InputZero",
		"InputTooLong", "OutputTooLong", "OutputIDsMismatch", "HashIDsMismatch", "NegativeMs", "BadTrigger", "Empty", "UnknownRequest",
		"SelfDependency", "OtherPlay", "MixedOrdinals", "MissingOrdinals", "OrdinalGap", "Cycle", "TimeTooLate",
	}
	s := names[f.Code]
	if f.Field != trace.NoField {
		s += " " + f.Field.Name()
	}
	if f.Ms != 0 {
		s += fmt.Sprint(" ", f.Ms)
	}
	for _, text := range [][]byte{f.Name, f.Other} {
		if text != nil {
			s += " " + string(text)
		}
	}
	if f.Limit != 0 || f.Found != 0 {
		if s += fmt.Sprint(" ", f.Found); f.Code != Cycle {
			s += fmt.Sprint(" ", f.Limit)
		}
	}
	if f.Code == Cycle {
		s = fmt.Sprintf("Cycle %d %s", f.Found, f.Name)
	}
	return s
}
