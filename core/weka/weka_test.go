package weka

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// traceOf writes a trace of 4-token blocks. Every entry is a text: a request
// as "time hashes+api_time", then what differs from the default (in=8, out=2,
// model=m, type=s); a subagent as "sub time status duration_ms"; a request in
// the subagent before as "> time ...". Hashes are letters, - for none.
func traceOf(entries ...string) string {
	var list []string
	nested := []string{}
	sub := ""
	flush := func() {
		if sub != "" {
			list = append(list, sub+strings.Join(nested, ",")+"]}")
		}
		nested, sub = nested[:0], ""
	}
	for i, text := range entries {
		f := strings.Fields(text)
		switch f[0] {
		case "sub":
			flush()
			sub = fmt.Sprintf(`{"type":"subagent","t":%s,"agent_id":"a%d","subagent_type":"x","status":%q,"duration_ms":%s,"requests":[`, f[1], i, f[2], f[3])
		case ">":
			nested = append(nested, entryOf(f[1:]))
		default:
			flush()
			list = append(list, entryOf(f))
		}
	}
	flush()
	return `{"id":"w","block_size":4,"hash_id_scope":"local","requests":[` + strings.Join(list, ",") + "]}"
}

func entryOf(f []string) string {
	names, api, _ := strings.Cut(f[1], "+")
	ids := []string{}
	for _, c := range strings.Trim(names, "-") {
		ids = append(ids, fmt.Sprint(c-'a'+1))
	}
	if api == "" {
		api = "null"
	}
	field := map[string]string{"in": fmt.Sprint(max(1, 4*len(ids))), "out": "2", "model": "m", "type": "n"}
	for _, set := range f[2:] {
		name, value, _ := strings.Cut(set, "=")
		field[name] = value
	}
	return fmt.Sprintf(`{"type":%q,"t":%s,"model":%q,"in":%s,"out":%s,"hash_ids":[%s],"api_time":%s}`,
		field["type"], f[0], field["model"], field["in"], field["out"], strings.Join(ids, ","), api)
}

// build makes the workload of objects, as lines of the file w.jsonl if there
// are several, else as the file w.json.
func build(t *testing.T, basis Basis, objects ...string) (*workload.Workload, Fault) {
	t.Helper()
	b := NewBuilder()
	var p trace.Parser
	text := strings.Join(objects, "\n")
	name := "w.json"
	if len(objects) > 1 {
		name = "w.jsonl"
	}
	b.File(name, int64(len(text)))
	b.Text([]byte(text))
	for i, o := range objects {
		var r trace.WekaTrace
		if f := p.Weka([]byte(o), &r); f.Code != trace.OK {
			t.Fatalf("%s: code %d, field %s", o, f.Code, f.Field.Name())
		}
		within, line := name, int64(0)
		if len(objects) > 1 {
			within, line = fmt.Sprintf("%s#%06d", name, i), int64(i)+1
		}
		if f := b.Add(&r, within, Place{Line: line}); f.Code != OK {
			return nil, f
		}
	}
	return b.Finish(basis, 1)
}

// show writes nodes as "id(stream)@notBefore dependencies".
func show(w *workload.Workload) string {
	g := w.Graph
	short := func(i int32) string {
		_, name, _ := strings.Cut(string(g.Request(i)), "outer:")
		return strings.ReplaceAll(name, ":inner:", ".")
	}
	var b strings.Builder
	for i := range w.Turns {
		stream := string(w.SessionID(w.Turns[i].Session))
		_, stream, _ = strings.Cut(stream, ":session:")
		stream = strings.NewReplacer("root", "", "subagent", "", ":worker:", "'", ":", "").Replace(stream)
		fmt.Fprintf(&b, "%s(%s)@%v", short(int32(i)), stream, g.Nodes[i].NotBeforeMs)
		for _, d := range g.Deps[g.Nodes[i].Deps:g.Nodes[i+1].Deps] {
			fmt.Fprintf(&b, " %s/%s/%s+%v", short(d.Node), d.Trigger.String()[:4], d.Relation.String()[:4], d.DelayMs)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// What the reference makes of these traces: the digests are its own.
var cases = []struct {
	name         string
	basis        Basis
	entries      []string
	want, digest string
}{
	{"one after the other", Auto, []string{"0.5 ab+0.02", "0.6 abc in=11 type=s"},
		"0()@0; 1()@100 0/comp/sequ+80", "f8b0d495f555f5d1"},
	{"two at once", Auto, []string{"0 ab+0.5", "0.1 abc+0.1", "0.9 abcd"},
		"0()@0; 1('0)@100 0/disp/spaw+100; 2('0)@900 0/comp/repl+0 1/comp/sequ+700", "052f84686c0e9a63"},
	{"a branch of two", Auto, []string{"0 abc+0.5", "0.1 abd+0.1", "0.3 abe", "0.7 abcf"},
		"0()@0; 1('0)@100 0/disp/spaw+100; 2('1)@300 0/disp/spaw+300 1/comp/repl+0; 3()@700 0/comp/sequ+200 2/comp/repl+0", "d703b1a3ce508127"},
	{"another model", Auto, []string{"0 ab+0.01", "0.1 abc model=k", "0.2 abcd"},
		"0()@0; 1('0)@100 0/comp/spaw+90 0/comp/repl+0; 2()@200 0/comp/sequ+190 1/comp/repl+0", "73c9fe3ca4e41231"},
	{"edited prompts go on", Auto, []string{"0 abc+0.01", "0.1 abd+0.01", "0.2 abe"},
		"0()@0; 1()@100 0/comp/sequ+90; 2()@200 1/comp/sequ+90", "cf8e9233fc06d187"},
	{"not after an hour", Auto, []string{"0 abcd+0.01", "3700 ab", "3701 abcde"},
		"0()@0; 1('0)@3.7e+06 0/comp/spaw+3.69999e+06 0/comp/repl+0; 2()@3.701e+06 0/comp/sequ+3.70099e+06 1/comp/repl+0", "d1c57b2934140487"},
	{"unless half is the same", Auto, []string{"0 abc+0.01", "3700 abd"},
		"0()@0; 1()@3.7e+06 0/comp/sequ+3.69999e+06", "e07510e1ec0a8b0c"},
	{"branches move on with what they branch off from", Auto, []string{"0 bc+0.01", "0.6 b+0.5", "0.7 bcb model=k", "1.3 c model=k"},
		"0()@0; 1()@600 0/comp/sequ+590; 2('0)@700 0/comp/repl+0 1/disp/spaw+100; 3('1)@1300 1/comp/repl+0 2/comp/repl+0", "0bf184b0dd8236a0"},
	{"a preamble", Auto, []string{"0 z+0.01", "0.1 ab+0.01", "0.2 abc"},
		"0()@0; 1()@100 0/comp/sequ+90; 2()@200 1/comp/sequ+90", "e70a19abf66cdb9c"},
	{"a preamble that says much", Auto, []string{"0 z+0.01 out=70", "0.1 ab+0.01", "0.2 abc"},
		"0()@0; 1()@100 0/comp/sequ+90; 2()@200 1/comp/sequ+90", "80ee3a11ab4f6e26"},
	{"no preamble, for it shares a block", Auto, []string{"0 z+0.01 out=70", "0.1 az+0.01", "0.2 azc"},
		"0()@0; 1('0)@100 0/comp/repl+0; 2('0)@200 0/comp/repl+0 1/comp/sequ+90", "10b78ae2e5601689"},
	{"no hashes", Auto, []string{"0 -", "0.1 ab+0.3", "0.2 -", "0.25 abc"},
		"0()@0; 1()@100 0/comp/sequ+100; 2()@200 1/comp/sequ+0; 3('0)@250 1/disp/spaw+150 2/comp/repl+0", "08ed6fdcfb7a4385"},
	{"a missing hash", Auto, []string{"0 ab in=15", "0.1 abc in=5"},
		"0()@0; 1()@100 0/comp/sequ+100", "00720d5e8db5645e"},
	{"waits for the last that ended", Auto, []string{"0 a+1", "0.1 b+0.1", "0.3 bc+0.1", "0.5 d", "1.1 ae"},
		"0()@0; 1('0)@100 0/disp/spaw+100; 2('0)@300 1/comp/sequ+100; 3('1)@500 2/comp/repl+0; 4()@1100 0/comp/sequ+100 3/comp/repl+0", "3d0244816118fe82"},
	{"out of order", Auto, []string{"0 ab+0.01", "0.5 abcd", "0.2 abc"},
		"0()@0; 1()@500 2/comp/sequ+300; 2()@200 0/comp/sequ+190", "e8654e27e2f3d78d"},
	{"a subagent", Auto, []string{"0 ab+0.02", "sub 0.03 completed 40", "> 0.031 x+0.01", "> 0.05 xy", "0.1 abc"},
		"0()@0; 1.0(1a1)@31 0/comp/spaw+11; 1.1(1a1)@50 1.0/comp/sequ+9; 2()@100 0/comp/sequ+80 1.1/comp/join+50", "a86ca9ddecf64024"},
	{"a subagent in the background", Auto, []string{"0 ab+0.02", "sub 0.03 async_launched 40", "> 0.031 x+0.01", "0.1 abc"},
		"0()@0; 1.0(1a1)@31 0/comp/spaw+11; 2()@100 0/comp/sequ+80", "bca3e65249cc56d8"},
	{"a subagent with streams", Auto, []string{"0 ab+0.02", "sub 0.03 completed null", "> 0.03 xy+0.05", "> 0.04 xz", "0.1 abc"},
		"0()@0; 1.0(1a1)@30 0/comp/spaw+10; 1.1(1a1'0)@40 1.0/disp/spaw+10; 2()@100 0/comp/sequ+80 1.0/comp/join+20 1.1/comp/join+60", "9675af279e94910c"},
	{"nobody waits yet", Auto, []string{"0 ab+0.02", "sub 0.03 completed 90", "> 0.031 x", "0.1 abc", "0.2 abcd"},
		"0()@0; 1.0(1a1)@31 0/comp/spaw+11; 2()@100 0/comp/sequ+80; 3()@200 1.0/comp/join+169 2/comp/sequ+100", "90f172e2c5e6d0b1"},
	{"a subagent without requests", Auto, []string{"0 ab+0.02", "sub 0.03 async_launched null", "0.1 abc"},
		"0()@0; 2()@100 0/comp/sequ+80", "6a5dbcb8d991016e"},
	{"times of its own", Auto, []string{"0 ab+0.02", "sub 0.5 completed null", "> 0 x", "0.9 abc"},
		"0()@0; 1.0(1a1)@500 0/comp/spaw+480; 2()@900 0/comp/sequ+880 1.0/comp/join+400", "3074c2d11d94f0e6"},
	{"times of its own, when told", Relative, []string{"0 ab+0.02", "sub 0.5 completed null", "> 0.6 x", "1.5 abc"},
		"0()@0; 1.0(1a1)@1100 0/comp/spaw+1080; 2()@1500 0/comp/sequ+1480 1.0/comp/join+400", "fa5658347da1cff1"},
	{"times of all, when told", Absolute, []string{"0 ab+0.02", "sub 0.5 completed null", "> 0.4999999 x", "0.9 abc"},
		"0()@0; 1.0(1a1)@500 0/comp/spaw+480; 2()@900 0/comp/sequ+880 1.0/comp/join+400", "3074c2d11d94f0e6"},
	{"told without need", Relative, []string{"0 ab"},
		"0()@0", "f411799665bc315f"},
}

func TestGraph(t *testing.T) {
	for _, c := range cases {
		w, f := build(t, c.basis, traceOf(c.entries...))
		if f.Code != OK {
			t.Errorf("%s: %+v", c.name, f)
			continue
		}
		if got := show(w); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if got := hex.EncodeToString(w.Graph.Digest[:8]); got != c.digest {
			t.Errorf("%s: digest %s, want %s\nJSON %s", c.name, got, c.digest, traceOf(c.entries...))
		}
	}
}

// Objects are plays in their order, each with times of its own.
func TestObjects(t *testing.T) {
	a, b := traceOf("0 ab+0.01 in=7", "0.1 abc"), strings.Replace(traceOf("0.5 ax"), `"w"`, `"v"`, 1)
	w, f := build(t, Auto, a, b)
	if f.Code != OK {
		t.Fatalf("%+v", f)
	}
	g := w.Graph
	if len(g.Plays) != 2 || !strings.HasSuffix(string(g.PlayID(0)), ":play:w") || !strings.HasSuffix(string(g.PlayID(1)), ":play:v") {
		t.Errorf("%+v", g.Plays)
	}
	const digest = "548c0c0960def8a62b2f3c2e02795feae14bdc416cbc54d4f25b616a0555649d"
	const source = "22606d377138d47c3bf01ae2f2ceb52bc4812f042084d4f71c3969799442c72e"
	if got := hex.EncodeToString(g.Digest[:]); got != digest {
		t.Errorf("digest %s, want %s", got, digest)
	}
	if g.SourceDigest != source || g.SourceFormat != "weka" || g.NestedBasis != "not_applicable" {
		t.Errorf("source %s %s %s, want %s", g.SourceFormat, g.SourceDigest, g.NestedBasis, source)
	}
	if w.TraceBlockSize != 4 || !w.Unlined {
		t.Errorf("%+v", w)
	}
}

// The reference refuses every one of these.
func TestFaults(t *testing.T) {
	plain := traceOf("0 ab+0.01")
	edit := func(old, now string) []string {
		if !strings.Contains(plain, old) {
			t.Fatal(old)
		}
		return []string{strings.Replace(plain, old, now, 1)}
	}
	one := func(entries ...string) []string { return []string{traceOf(entries...)} }
	for _, c := range []struct {
		want    Fault
		objects []string
	}{
		{Fault{Code: Blank, Field: trace.WekaID, Outer: -1}, edit(`"w"`, `" "`)},
		{Fault{Code: Blank, Field: trace.WekaModels, Outer: -1}, edit(`"id"`, `"models":["m",""],"id"`)},
		{Fault{Code: UndeclaredModel, Name: []byte("m"), Inner: -1}, edit(`"id"`, `"models":["k"],"id"`)},
		{Fault{Code: BlockSizeZero, Outer: -1}, edit(`size":4`, `size":0`)},
		{Fault{Code: BlockSizeTooLarge, Found: 1 << 31, Limit: maxCount, Outer: -1}, edit(`size":4`, `size":2147483648`)},
		{Fault{Code: MixedBlockSizes, Found: 8, Limit: 4, Outer: -1, At: Place{Line: 2}}, append([]string{plain}, edit(`size":4`, `size":8`)...)},
		{Fault{Code: Blank, Field: trace.EntryModel, Inner: -1}, edit(`"m"`, `""`)},
		{Fault{Code: InputZero, Inner: -1}, edit(`in":8`, `in":0`)},
		{Fault{Code: TooLong, Field: trace.EntryInput, Found: 1 << 31, Limit: maxCount, Inner: -1}, edit(`in":8`, `in":2147483648`)},
		{Fault{Code: TooLong, Field: trace.EntryOutput, Found: 1 << 31, Limit: maxCount, Inner: -1}, edit(`out":2`, `out":2147483648`)},
		{Fault{Code: BadTime, Field: trace.EntryTime, Found64: -0.5, Limit64: maxS, Inner: -1}, one("-0.5 ab")},
		{Fault{Code: BadTime, Field: trace.EntryTime, Found64: 1e300, Limit64: maxS, Inner: -1}, one("1e300 ab")},
		{Fault{Code: BadTime, Field: trace.EntryAPITime, Found64: -1, Limit64: maxS, Inner: -1}, one("0 ab+-1")},
		{Fault{Code: BadTime, Field: trace.EntryTime, Found64: -1, Limit64: maxS, Outer: 1, Inner: 0}, one("0 ab", "sub 0 completed 1", "> -1 a")},
		{Fault{Code: NegativeDuration, Found: -1, Outer: 1, Inner: -1}, one("0 ab", "sub 0 completed -1", "> 0 a")},
		{Fault{Code: Blank, Field: trace.EntryAgent, Outer: 1, Inner: -1}, []string{strings.Replace(traceOf("0 ab", "sub 0 completed 1", "> 0 a"), "a1", " ", 1)}},
		{Fault{Code: IdleSubagent, Name: []byte("a1"), Outer: 1, Inner: -1}, one("0 ab", "sub 0 completed 1")},
		{Fault{Code: Orphan, Name: []byte("a0"), Outer: 0, Inner: -1}, one("sub 0 completed 1", "> 0 a", "0 ab")},
		{Fault{Code: NoParents, Outer: -1}, one("sub 0 completed 1", "> 0 a")},
		{Fault{Code: NoParents, Outer: -1}, one()},
		{Fault{Code: NoObjects, Outer: -1, Inner: -1}, nil},
		{Fault{Code: TooLate, Found64: 1.99e299, Outer: 1, Inner: 0}, one("0 ab", "sub 1e299 completed 1", "> 9.9e298 a")},
	} {
		b := NewBuilder()
		var f Fault
		var p trace.Parser
		for i, o := range c.objects {
			var r trace.WekaTrace
			if f := p.Weka([]byte(o), &r); f.Code != trace.OK {
				t.Fatalf("%s: code %d, field %s", o, f.Code, f.Field.Name())
			}
			if f = b.Add(&r, "w", Place{Line: int64(i) + 1}); f.Code != OK {
				break
			}
		}
		if f.Code == OK {
			_, f = b.Finish(Auto, 1)
		}
		if c.want.At.Line == 0 && len(c.objects) == 1 {
			c.want.At.Line = 1
		}
		if fmt.Sprint(f) != fmt.Sprint(c.want) {
			t.Errorf("%v:\ngot  %+v\nwant %+v", c.objects, f, c.want)
		}
	}
	if _, f := build(t, Absolute, traceOf("0 ab", "sub 1 completed 1", "> 0.5 a")); f.Code != BeforeSubagent || f.Outer != 1 || f.Inner != 0 || f.Found64 != 0.5 || f.Limit64 != 1 {
		t.Errorf("%+v", f)
	}
	if _, f := build(t, Auto, traceOf("5 ab", "sub 0.03 completed 1", "> 0.031 a", "0.1 abc")); f.Code != Graph {
		t.Errorf("a cycle: %+v", f)
	}
}
