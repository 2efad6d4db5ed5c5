package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/trace"
)

func applied(t *testing.T, line string) *trace.AppliedRow {
	t.Helper()
	var p trace.Parser
	r := new(trace.AppliedRow)
	if f := p.AppliedRow([]byte(line), r); f.Code != trace.OK {
		t.Fatalf("%s: %v", line, f.Code)
	}
	return r
}

const (
	two  = `{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.25],"final_assistant_response_length":4}`
	lone = `{"num_turns":0,"input_prompt_length":5,"assistant_response_length":[],"tool_call_output_length":[],"tool_call_latency":[],"final_assistant_response_length":0}`
)

// showIDs writes the hash ids of every turn, shared ones as group.block.
func showIDs(w *Workload) string {
	var b strings.Builder
	for i := range w.Turns {
		turn := w.Turns[i]
		for _, id := range w.Prompts.AppendIDs(nil, turn.Leaf, int(turn.IDs)) {
			if id>>48 == 0xA63E {
				fmt.Fprintf(&b, "%d.%d ", id>>32&0xFFFF, id&0xFFFFFFFF)
			} else {
				fmt.Fprintf(&b, "%d ", id)
			}
		}
		b.WriteString("; ")
	}
	return b.String()
}

func TestApplied(t *testing.T) {
	for _, c := range []struct {
		ratio  float64
		groups uint32
		ids    string
	}{
		{0, 0, "1 2 3 ; 1 2 3 4 ; 5 6 ; 7 8 9 ; 7 8 9 10 ; "},
		{0.5, 0, "1 2 3 ; 1 2 3 4 ; 5 6 ; 7 8 9 ; 7 8 9 10 ; "},
		{0, 2, "1 2 3 ; 1 2 3 4 ; 5 6 ; 7 8 9 ; 7 8 9 10 ; "},
		// Half of three blocks is two, half of two is one.
		{0.5, 2, "0.0 0.1 1 ; 0.0 0.1 1 2 ; 1.0 3 ; 0.0 0.1 4 ; 0.0 0.1 4 5 ; "},
		{1, 1, "0.0 0.1 0.2 ; 0.0 0.1 0.2 1 ; 0.0 0.1 ; 0.0 0.1 0.2 ; 0.0 0.1 0.2 2 ; "},
	} {
		a := NewApplied(4, c.ratio, c.groups)
		for i, line := range []string{two, lone, two} {
			if f := a.Add(applied(t, line), int64(i*2+1)); f.Code != OK {
				t.Fatal(f)
			}
		}
		w, f := a.Finish()
		if f.Code != OK {
			t.Fatal(f)
		}
		const want = "applied_compute_agentic_session_1: 9/2+0 14/4+250; applied_compute_agentic_session_3: 5/0+0; applied_compute_agentic_session_5: 9/2+0 14/4+250"
		if got := show(w); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := showIDs(w); got != c.ids {
			t.Errorf("%v of %d groups: got %s, want %s", c.ratio, c.groups, got, c.ids)
		}
		if !w.NamesSessions(true) || w.TraceBlockSize != 4 {
			t.Error("unnamed, or of other blocks")
		}
	}
}

func TestAppliedFaults(t *testing.T) {
	edit := func(old, now string) string { return strings.Replace(two, old, now, 1) }
	for _, c := range []struct {
		line string
		want Fault
	}{
		{edit(":9", ":0"), Fault{Code: InputZero, Field: trace.PromptLength}},
		{edit("[2]", "[2,2]"), Fault{Code: ListMismatch, Field: trace.Responses, Found: 2, Limit: 1}},
		{edit("[3]", "[]"), Fault{Code: ListMismatch, Field: trace.ToolOutputs, Found: 0, Limit: 1}},
		{edit("[0.25]", "[1,2,3]"), Fault{Code: ListMismatch, Field: trace.ToolLatencies, Found: 3, Limit: 1}},
		{edit("0.25", "-0.5"), Fault{Code: NegativeDelay, Field: trace.ToolLatencies, Ms: -0.5}},
		{edit("0.25", "1e306"), Fault{Code: DelayTooLong, Field: trace.ToolLatencies, Ms: 1e306}},
		{edit(":9", ":9999999999"), Fault{Code: InputTooLong, Field: trace.PromptLength, Found: 9999999999, Limit: math.MaxInt32}},
		{edit("[3]", "[9999999999]"), Fault{Code: InputTooLong, Field: trace.ToolOutputs, Found: 9999999999, Limit: math.MaxInt32}},
		{edit("[3]", "[2147483647]"), Fault{Code: InputTooLong, Field: trace.ToolOutputs, Found: 2147483657, Limit: math.MaxInt32}},
		{edit("[2]", "[9999999999]"), Fault{Code: OutputTooLong, Field: trace.Responses, Found: 9999999999, Limit: math.MaxInt32}},
		{edit(":4", ":9999999999"), Fault{Code: OutputTooLong, Field: trace.FinalResponse, Found: 9999999999, Limit: math.MaxInt32}},
	} {
		c.want.Line = 7
		if f := NewApplied(4, 0, 0).Add(applied(t, c.line), 7); f != c.want {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.line, f, c.want)
		}
	}
	if _, f := NewApplied(4, 0, 0).Finish(); f.Code != Empty {
		t.Error(f)
	}
}

// A session of increments may not grow past what a prompt can be.
func TestTalkTooLong(t *testing.T) {
	row := func(input, output int64) *trace.Row {
		return &trace.Row{SessionID: []byte("s"), HasTimestamp: true, InputLength: input, OutputLength: output, HashIDs: []uint64{1}}
	}
	for _, c := range []struct {
		rows []*trace.Row
		want Fault
	}{
		{[]*trace.Row{row(1000, 1<<31-1), row(1, 1)}, Fault{Code: TalkTooLong, Line: 1, Turn: 1, Found: 1<<31 + 1000, Limit: math.MaxInt32}},
		{[]*trace.Row{row(1<<31-2, 0), row(1, 1<<31-1)}, Fault{}},
		{[]*trace.Row{row(1<<31-1, 1<<31-1)}, Fault{}}, // a single turn is a whole prompt
	} {
		b := NewBuilder(1 << 31)
		for i, r := range c.rows {
			if f := b.Add(r, int64(i)+1); f.Code != OK {
				t.Fatal(f)
			}
		}
		w, f := b.Finish(Options{Delta: true, ArrivalSpeedup: 1})
		if f != c.want || f.Code == OK && w.Delta != (len(c.rows) > 1) {
			t.Errorf("%+v, want %+v", f, c.want)
		}
	}
}
