package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
)

// row parses fields into a row; what a row must have and fields lack is added.
func row(t *testing.T, fields string) *trace.Row {
	t.Helper()
	fields = strings.Trim(fields, ",")
	for _, need := range []string{`"input_length":100`, `"output_length":2`, `"hash_ids":[1,2]`} {
		if !strings.Contains(fields, need[:strings.Index(need, ":")]) {
			fields += "," + need
		}
	}
	var p trace.Parser
	var r trace.Row
	if f := p.Line([]byte("{"+strings.Trim(fields, ",")+"}"), &r); f.Code != trace.OK {
		t.Fatalf("%s: %v", fields, f)
	}
	return &r
}

// build builds rows of 64-token blocks on lines 1, 2, ...; an empty row is a
// blank line.
func build(t *testing.T, o Options, rows ...string) (*Workload, Fault) {
	t.Helper()
	b := NewBuilder(64)
	for i, fields := range rows {
		if fields == "" {
			continue
		}
		if f := b.Add(row(t, fields), int64(i+1)); f.Code != OK {
			return nil, f
		}
	}
	return b.Finish(o)
}

// show writes sessions as "id@start: input/output+delay ...".
func show(w *Workload) string {
	var s strings.Builder
	for i, session := range w.Sessions {
		if i > 0 {
			s.WriteString("; ")
		}
		s.Write(w.AppendSessionID(nil, int32(i)))
		if session.HasStart {
			fmt.Fprintf(&s, "@%v", session.StartMs)
		}
		s.WriteString(":")
		for at, index := session.First, int32(0); at >= 0; index++ {
			turn := w.Turns[at]
			if turn.Session != int32(i) || turn.Index != index {
				fmt.Fprintf(&s, " [turn %d says session %d index %d]", at, turn.Session, turn.Index)
			}
			fmt.Fprintf(&s, " %d/%d+%v", turn.Input, turn.Output, turn.DelayMs)
			at = turn.Next
		}
	}
	return s.String()
}

var (
	byTrace = Options{ArrivalSpeedup: 1}
	byCap   = Options{Concurrency: true, ArrivalSpeedup: 1}
)

// The reference's arrivals for these traces follow from these sessions.
func TestSessions(t *testing.T) {
	const a = `"session_id":"A",`
	for _, c := range []struct {
		name string
		o    Options
		want string
		rows []string
	}{
		{"plain rows", byTrace, "request_1@0: 100/2+0; request_3@5: 64/3+0",
			[]string{`"timestamp":10`, "", `"timestamp":15,"input_length":64,"output_length":3`}},
		{"no length", byTrace, "request_1@0: 192/2+0", []string{`"timestamp":1,"input_length":null,"hash_ids":[1,2,3]`}},
		{"more ids than needed", byTrace, "request_1@0: 100/2+0", []string{`"timestamp":1,"hash_ids":[1,2,3,4]`}},
		{"explicit delay", byTrace, "A@0: 100/2+0 100/2+5", []string{a + `"timestamp":0`, a + `"delay":5`}},
		{"delay from timestamps", byTrace, "A@0: 100/2+0 100/2+15", []string{a + `"timestamp":10`, a + `"timestamp":25`}},
		{"delay wins, timestamp counts", byTrace, "A@0: 100/2+0 100/2+3 100/2+75",
			[]string{a + `"timestamp":10`, a + `"timestamp":25,"delay":3`, a + `"timestamp":100`}},
		{"timestamp skips a turn", byTrace, "A@0: 100/2+0 100/2+3 100/2+90",
			[]string{a + `"timestamp":10`, a + `"delay":3`, a + `"timestamp":100`}},
		{"no delay, no timestamp", byTrace, "A@0: 100/2+0 100/2+0 100/2+40",
			[]string{a + `"timestamp":10`, a, a + `"timestamp":50`}},
		{"first delay of nothing", byTrace, "A@0: 100/2+0 100/2+0", []string{a + `"timestamp":1,"delay":-0.0`, a + `"delay":0`}},
		{"interleaved", byTrace, "A@0: 100/2+0 102/2+3; B@1: 101/2+0 103/2+4",
			[]string{a + `"timestamp":0`, `"session_id":"B","timestamp":1,"input_length":101`,
				a + `"delay":3,"input_length":102`, `"session_id":"B","delay":4,"input_length":103`}},
		{"negative times", byTrace, "A@10: 100/2+0 100/2+5; request_3@0: 100/2+0",
			[]string{a + `"timestamp":-10`, a + `"timestamp":-5`, `"timestamp":-20`}},
		{"speed-up", Options{ArrivalSpeedup: 2}, "A@0: 100/2+0 100/2+10; request_3@5: 100/2+0",
			[]string{a + `"timestamp":10`, a + `"timestamp":30`, `"timestamp":20`}},
		{"cap", Options{Concurrency: true, ArrivalSpeedup: 2}, "A@10: 100/2+0 100/2+20; request_3@50: 100/2+0",
			[]string{a + `"timestamp":10`, a + `"timestamp":30`, `"timestamp":50`}},
		{"cap without times", byCap, "A: 100/2+0 100/2+1 100/2+4", []string{a, a + `"delay":1,"timestamp":5`, a + `"timestamp":9`}},
		{"empty id", byTrace, "@0: 100/2+0 100/2+5", []string{`"session_id":"","timestamp":0`, `"session_id":"","timestamp":5`}},
		{"named after a line to come", byTrace, "request_3@0: 100/2+0 101/2+7",
			[]string{"", `"session_id":"request_3","timestamp":0`, `"timestamp":7,"input_length":101`}},
		{"named after a line before", byTrace, "request_2@0: 100/2+0 101/2+7; request_02@7: 102/2+0",
			[]string{"", `"timestamp":0`, `"session_id":"request_2","timestamp":7,"input_length":101`,
				`"session_id":"request_02","timestamp":7,"input_length":102`}},
		{"named after a blank line", byTrace, "request_1@1: 100/2+0; request_2@0: 100/2+0",
			[]string{`"timestamp":1`, "", `"session_id":"request_2","timestamp":0`}},
		{"named after itself", byTrace, "request_1@0: 100/2+0 101/2+0",
			[]string{`"session_id":"request_1","timestamp":1`, `"session_id":"request_1","input_length":101`}},
	} {
		w, f := build(t, c.o, c.rows...)
		if f.Code != OK {
			t.Errorf("%s: %+v", c.name, f)
		} else if got := show(w); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The reference refuses every one of these traces.
func TestFaults(t *testing.T) {
	const a = `"session_id":"A",`
	for _, c := range []struct {
		o    Options
		want Fault
		rows []string
	}{
		{byTrace, Fault{Code: InputOverCapacity, Line: 2, Found: 129, Limit: 128}, []string{`"timestamp":0`, `"input_length":129`}},
		{byTrace, Fault{Code: InputOverCapacity, Line: 1, Found: math.MaxInt64, Limit: 128}, []string{`"input_length":9223372036854775807`}},
		{byTrace, Fault{Code: InputOverCapacity, Line: 1, Found: 1, Limit: 0}, []string{`"input_length":1,"hash_ids":[]`}},
		{byTrace, Fault{Code: InputZero, Line: 1}, []string{`"input_length":0`}},
		{byTrace, Fault{Code: InputZero, Line: 1}, []string{`"input_length":null,"hash_ids":[]`}},
		{byTrace, Fault{Code: OutputIDsMismatch, Line: 1, Found: 1, Limit: 2}, []string{`"output_token_ids":[5]`}},
		{byTrace, Fault{Code: OutputIDsMismatch, Line: 1, Found: 0, Limit: 2}, []string{`"output_token_ids":[]`}},
		{byTrace, Fault{Code: FirstTurnDelay, Line: 2, Session: 1, Ms: 5}, []string{`"timestamp":0`, a + `"delay":5`}},
		{byTrace, Fault{Code: FirstTurnDelay, Line: 1, Ms: -1}, []string{`"delay":-1`}},
		{byTrace, Fault{Code: NegativeDelay, Line: 2, Turn: 1, Ms: -1}, []string{a + `"timestamp":10`, a + `"delay":-1`}},
		{byTrace, Fault{Code: TimestampBackward, Line: 2, Turn: 1, Ms: -5}, []string{a + `"timestamp":10`, a + `"timestamp":5`}},
		{byTrace, Fault{Code: TimestampTooFar, Line: 2, Turn: 1}, []string{a + `"timestamp":-1e308`, a + `"timestamp":1.5e308`}},
		{byTrace, Fault{Code: NoTimestampBefore, Line: 2, Turn: 1}, []string{a, a + `"timestamp":5`}},
		{byCap, Fault{Code: NoTimestampBefore, Line: 2, Turn: 1}, []string{a, a + `"timestamp":5`}},
		{byTrace, Fault{Code: NoStart, Line: 3, Session: 1}, []string{`"timestamp":5`, "", a, a}},
		{byTrace, Fault{Code: StartTooLate, Line: 2, Session: 1}, []string{`"timestamp":-1e308`, `"timestamp":1.5e308`}},
		{Options{ArrivalSpeedup: 1e-300}, Fault{Code: StartTooLate, Line: 2, Session: 1}, []string{`"timestamp":0`, `"timestamp":1e10`}},
		{Options{ArrivalSpeedup: 1e-300}, Fault{Code: DelayTooLong, Line: 1, Turn: 1}, []string{a + `"timestamp":0`, a + `"delay":1e10`}},
		{byCap, Fault{Code: NegativeStart, Line: 1, Ms: -50}, []string{`"timestamp":-50`}},
		{byTrace, Fault{Code: Empty}, nil},
		// Limits of ours.
		{byTrace, Fault{Code: OutputTooLong, Line: 1, Found: 1 << 31, Limit: math.MaxInt32}, []string{`"output_length":2147483648`}},
	} {
		if _, f := build(t, c.o, c.rows...); f != c.want {
			t.Errorf("%v\ngot  %+v\nwant %+v", c.rows, f, c.want)
		}
	}
}

// Blocks may be so large that lengths do not fit.
func TestLargeBlocks(t *testing.T) {
	for _, c := range []struct {
		blockSize int
		fields    string
		want      Fault
	}{
		{1 << 40, `"timestamp":0`, Fault{}},
		{math.MaxInt64, `"timestamp":0`, Fault{}},
		{1 << 31, `"timestamp":0,"input_length":null`, Fault{Code: InputTooLong, Line: 1, Found: 1 << 32, Limit: math.MaxInt32}},
		{1 << 62, `"timestamp":0,"input_length":null`, Fault{Code: InputTooLong, Line: 1, Found: math.MaxInt64, Limit: math.MaxInt32}},
		{1 << 62, `"timestamp":0,"input_length":2147483648`, Fault{Code: InputTooLong, Line: 1, Found: 1 << 31, Limit: math.MaxInt32}},
		{1 << 30, `"timestamp":0,"input_length":null,"hash_ids":[1]`, Fault{}},
	} {
		if f := NewBuilder(c.blockSize).Add(row(t, c.fields), 1); f != c.want {
			t.Errorf("blocks of %d: %+v, want %+v", c.blockSize, f, c.want)
		}
	}
	if f := NewBuilder(64).Add(row(t, `"timestamp":0`), 1<<31); f.Code != TooManyLines {
		t.Errorf("line 2^31: %+v", f)
	}
}

// A leaf covers the ids of its turn's input, however the tree was split since.
func TestPrompts(t *testing.T) {
	w, f := build(t, byTrace,
		`"timestamp":0,"input_length":256,"hash_ids":[1,2,3,4]`,
		`"timestamp":0,"input_length":100,"hash_ids":[1,2,9,9]`,
		`"timestamp":0,"input_length":193,"hash_ids":[1,2,7,8]`,
		`"timestamp":0,"input_length":1,"hash_ids":[18446744073709551615]`,
		`"timestamp":0,"hash_ids":[5,1]`)
	if f.Code != OK {
		t.Fatal(f)
	}
	var got []string
	for _, turn := range w.Turns {
		got = append(got, fmt.Sprint(w.Prompts.AppendIDs(nil, turn.Leaf, int(turn.Input+63)/64)))
	}
	const want = "[[1 2 3 4] [1 2] [1 2 7 8] [18446744073709551615] [5 1]]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// The builder counts the ids the tree keeps, not those it is given.
func TestIDsAreCounted(t *testing.T) {
	b := NewBuilder(64)
	for i, ids := range []string{"[1,2,3,4]", "[1,2,3,4]", "[1,2]", "[1,2,7,8,9]", "[5]", "[1,2,3,4,6]"} {
		if f := b.Add(row(t, `"timestamp":0,"input_length":null,"hash_ids":`+ids), int64(i+1)); f.Code != OK {
			t.Fatal(f)
		}
	}
	if b.ids != 4+3+1+1 {
		t.Errorf("counted %d ids, want 9", b.ids)
	}
	b.ids = MaxIDs - 1
	if f := b.Add(row(t, `"hash_ids":[20,21]`), 7); f.Code != TooManyIDs {
		t.Errorf("over the limit: %+v", f)
	}
}

func TestPlannedOutput(t *testing.T) {
	w, f := build(t, byTrace,
		`"timestamp":0,"output_token_ids":[5,4294967295]`, `"timestamp":0`,
		`"timestamp":0,"output_length":0,"output_token_ids":[]`, `"timestamp":0,"output_length":1,"output_token_ids":[7]`)
	if f.Code != OK {
		t.Fatal(f)
	}
	var got []string
	for _, turn := range w.Turns {
		if turn.Planned < 0 {
			got = append(got, "none")
		} else {
			got = append(got, fmt.Sprint(w.Planned[w.PlannedOff[turn.Planned]:w.PlannedOff[turn.Planned+1]]))
		}
	}
	if fmt.Sprint(got) != "[[5 4294967295] none [] [7]]" {
		t.Errorf("got %v", got)
	}
}

func TestBlockSizes(t *testing.T) {
	for _, c := range []struct {
		rows []string
		want BlockSizes
		fit  int64
		ok   bool
	}{
		{[]string{`"timestamp":0`}, BlockSizes{0, 0, 50, 99}, 64, true},
		{[]string{`"timestamp":0,"input_length":null`}, BlockSizes{0, 0, 1, math.MaxInt64}, 1, true},
		{[]string{`"timestamp":0,"input_length":60,"hash_ids":[1]`}, BlockSizes{0, 0, 60, math.MaxInt64}, 64, true},
		{[]string{`"timestamp":0`, "", `"timestamp":0,"input_length":5`, `"timestamp":0,"input_length":6`}, BlockSizes{2, 3, 50, 4}, 0, false},
		{[]string{`"timestamp":0,"input_length":47,"hash_ids":[1,2,3]`, `"timestamp":0,"input_length":32,"hash_ids":[1,2]`},
			BlockSizes{2, 1, 16, 23}, 16, true},
		{[]string{`"timestamp":0,"input_length":50,"hash_ids":[1,2]`}, BlockSizes{1, 1, 25, 49}, 32, true},
		{[]string{`"timestamp":0,"input_length":60,"hash_ids":[1,2,3]`, `"timestamp":0,"input_length":40,"hash_ids":[1,2]`},
			BlockSizes{2, 1, 20, 29}, 20, true},
	} {
		w, f := build(t, byTrace, c.rows...)
		if f.Code != OK {
			t.Fatal(f)
		}
		fit, ok := w.BlockSizes.Fit()
		if w.BlockSizes != c.want || fit != c.fit || ok != c.ok {
			t.Errorf("%v: got %+v, fit %d %v, want %+v, %d %v", c.rows, w.BlockSizes, fit, ok, c.want, c.fit, c.ok)
		}
	}
}

// The interval is exactly the block sizes that explain every row.
func TestBlockSizesAgainstTrial(t *testing.T) {
	for length := int64(1); length < 60; length++ {
		for n := int64(1); n <= length; n++ {
			s := all()
			s.note(length, n, n, 1)
			for b := int64(1); b < 70; b++ {
				fits := (length+b-1)/b == n
				if fits != (s.Min <= b && b <= s.Max) {
					t.Fatalf("%d tokens in %d blocks: %+v, but blocks of %d: %v", length, n, s, b, fits)
				}
			}
		}
	}
}

// Steady adding allocates nothing once there is room.
func TestReserve(t *testing.T) {
	b := NewBuilder(64)
	b.Reserve(1000)
	r := row(t, `"timestamp":3`)
	b.Add(r, 1)
	line := int64(1)
	if n := testing.AllocsPerRun(900, func() {
		line++
		b.Add(r, line)
	}); n != 0 {
		t.Errorf("%v allocations per row", n)
	}
}

// What a router may order turns by is kept, from the first row that has any.
func TestClasses(t *testing.T) {
	rows := []string{`"timestamp":0`, `"timestamp":0`, `"timestamp":0,"priority":-3,"policy_class":"a"`, `"timestamp":0`,
		`"timestamp":0,"strict_priority":2,"policy_class":"b"`, `"timestamp":0,"policy_class":"a"`}
	w, f := build(t, byTrace, rows...)
	if f.Code != OK {
		t.Fatal(f)
	}
	for i, want := range []Class{{Policy: -1}, {Policy: -1}, {Priority: -3, Policy: 0}, {Policy: -1}, {Strict: 2, Policy: 1}, {Policy: 0}} {
		if got := w.Class(int32(i)); got != want {
			t.Errorf("row %d: %+v, want %+v", i, got, want)
		}
	}
	if w.Policies.Len() != 2 || string(w.Policies.At(1)) != "b" {
		t.Errorf("%d policies", w.Policies.Len())
	}
	if w, _ := build(t, byTrace, rows[:2]...); w.Classes != nil || w.Class(1) != (Class{Policy: -1}) {
		t.Error("classes without need")
	}
}

func TestTexts(t *testing.T) {
	var texts Texts
	if texts.Len() != 0 || texts.Find([]byte("x")) != -1 {
		t.Error("the zero value is not empty")
	}
	known := map[string]int32{}
	for i := range 3000 {
		text := fmt.Sprint(i * 7919 % 1000)
		want, old := known[text]
		if !old {
			want = int32(len(known))
			known[text] = want
		}
		if found := texts.Find([]byte(text)); old && found != want || !old && found != -1 {
			t.Fatalf("%s is %d, want %d", text, found, want)
		}
		if got := texts.Add([]byte(text)); got != want {
			t.Fatalf("%s becomes %d, want %d", text, got, want)
		}
	}
	if i := texts.Add(nil); texts.Add([]byte("")) != i || len(texts.At(i)) != 0 {
		t.Error("the empty text is not one text")
	}
}
