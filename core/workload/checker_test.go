package workload

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// randomRows are rows of a few sessions, with mistakes in some.
func randomRows(rng *rand.Rand) []string {
	var rows []string
	wrong := rng.Intn(3) == 0
	for i := range 1 + rng.Intn(12) {
		var fields []string
		switch rng.Intn(5) {
		case 0, 1:
			fields = append(fields, fmt.Sprintf(`"session_id":"%c"`, 'a'+rng.Intn(3)))
		case 2:
			fields = append(fields, fmt.Sprintf(`"session_id":"request_%d"`, i+2+rng.Intn(3)))
		}
		if rng.Intn(4) > 0 {
			fields = append(fields, fmt.Sprintf(`"timestamp":%d`, i*10+rng.Intn(15)))
		}
		if len(fields) > 0 && rng.Intn(4) == 0 {
			fields = append(fields, fmt.Sprintf(`"delay":%d`, rng.Intn(3)))
		}
		input, output := 1+rng.Intn(128), rng.Intn(4)
		if wrong && rng.Intn(4) == 0 {
			switch rng.Intn(3) {
			case 0:
				input = 129 * rng.Intn(2)
			case 1:
				fields = append(fields, `"output_token_ids":[1,2,3,4,5]`)
			default:
				output = 1 << 31
			}
		}
		rows = append(rows, strings.Join(append(fields, fmt.Sprintf(`"input_length":%d,"output_length":%d,"hash_ids":[%d,2]`, input, output, rng.Intn(3))), ","))
	}
	return rows
}

// A checker refuses the row that a builder refuses, with the same fault, and
// says of right ones what becomes of them.
func TestCheckerAgreesWithBuilder(t *testing.T) {
	refused := map[Code]int{}
	for seed := range int64(5000) {
		rng := rand.New(rand.NewSource(seed))
		rows := randomRows(rng)
		delta := rng.Intn(2) == 0
		build, check := NewBuilder(64), NewChecker(64, delta)
		var said []Checked
		fault := Fault{}
		for i, fields := range rows {
			r := row(t, fields)
			c, f := check.Add(r, int64(i+1))
			if fault = build.Add(r, int64(i+1)); fault.Code != f.Code || fault.Line != f.Line || fault.Found != f.Found || fault.Limit != f.Limit || fault.Ms != f.Ms {
				t.Fatalf("seed %d, row %d: builder %+v, checker %+v\n%s", seed, i+1, fault, f, strings.Join(rows, "\n"))
			}
			if fault.Code != OK {
				refused[f.Code]++
				break
			}
			said = append(said, c)
		}
		if fault.Code != OK {
			continue
		}
		w, f := build.Finish(Options{Delta: delta, AsWritten: true})
		if f.Code != OK {
			t.Fatalf("seed %d: %+v", seed, f)
		}
		starts := 0
		for i, c := range said {
			turn := &w.Turns[i]
			s := &w.Sessions[turn.Session]
			first := turn.Index == 0
			if c.Input != int64(turn.Input) || c.Output != int64(turn.Output) || c.Turn != turn.Index || !first && c.DelayMs != turn.DelayMs ||
				first && (c.HasStart != s.HasStart || c.StartMs != s.StartMs) {
				t.Fatalf("seed %d, row %d: %+v, but %+v of %+v\n%s", seed, i+1, c, turn, s, strings.Join(rows, "\n"))
			}
			if first && !s.HasStart {
				starts++
			}
		}
		if check.Unstarted != int64(starts) || check.BlockSizes != w.BlockSizes {
			t.Fatalf("seed %d: %d sessions without a start, want %d; %+v, want %+v", seed, check.Unstarted, starts, check.BlockSizes, w.BlockSizes)
		}
	}
	for _, code := range []Code{InputOverCapacity, InputZero, OutputTooLong, OutputIDsMismatch, FirstTurnDelay, TimestampBackward, NoTimestampBefore} {
		if refused[code] < 5 {
			t.Errorf("code %d came %d times", code, refused[code])
		}
	}
}

// Rows after a wrong one are checked, but for what the wrong one would say.
func TestCheckerGoesOn(t *testing.T) {
	const a = `"session_id":"A",`
	check := NewChecker(64, false)
	var wrong []string
	for i, fields := range []string{
		a + `"timestamp":5,"input_length":0`, a + `"delay":7`, a + `"delay":-1`, `"timestamp":1`, a + `"timestamp":3`,
		`"session_id":"B","delay":3,"timestamp":1`, `"session_id":"B","timestamp":9,"delay":2`, `"timestamp":2,"input_length":900`, `"output_length":3`,
	} {
		if _, f := check.Add(row(t, fields), int64(i+1)); f.Code != OK {
			wrong = append(wrong, fmt.Sprintf("%d:%d", f.Line, f.Code))
		}
	}
	want := []string{fmt.Sprintf("1:%d", InputZero), fmt.Sprintf("3:%d", NegativeDelay), fmt.Sprintf("6:%d", FirstTurnDelay), fmt.Sprintf("8:%d", InputOverCapacity)}
	if !slices.Equal(wrong, want) {
		t.Errorf("got %v, want %v", wrong, want)
	}
	if check.Rows != 5 || check.Unstarted != 1 || string(check.NoStarts[0].Session) != "request_9" {
		t.Errorf("%d rows, %d without a start: %v", check.Rows, check.Unstarted, check.NoStarts)
	}
}

func TestCheckerFinish(t *testing.T) {
	if f := NewChecker(64, false).Finish(); f.Code != Empty {
		t.Errorf("no rows: %+v", f)
	}
	check := NewChecker(64, false)
	check.Add(row(t, `"timestamp":-1e308`), 1)
	check.Add(row(t, `"session_id":"late","timestamp":1.5e308`), 2)
	if f := check.Finish(); f.Code != StartTooLate || f.Line != 2 || string(check.Latest()) != "late" {
		t.Errorf("%+v of %s", f, check.Latest())
	}
	talk := NewChecker(1<<30, true)
	if _, f := talk.Add(row(t, `"session_id":"a","timestamp":0,"input_length":2147483640`), 1); f.Code != OK {
		t.Fatal(f)
	}
	if _, f := talk.Add(row(t, `"session_id":"a","delay":0,"input_length":100`), 2); f.Code != TalkTooLong || f.Found != 2147483742 {
		t.Errorf("%+v", f)
	}
}

func TestCheckerKnowsLineIDs(t *testing.T) {
	check := NewChecker(64, false)
	for i, fields := range []string{`"timestamp":0`, `"session_id":"request_1","timestamp":4`} {
		if _, f := check.Add(row(t, fields), int64(i+1)); f.Code != OK {
			t.Fatal(f)
		}
	}
	if check.Unsure != 2 {
		t.Errorf("unsure about line %d", check.Unsure)
	}
}

// Checking a row costs no allocation, once its session is known.
func TestCheckerAllocatesNothing(t *testing.T) {
	check := NewChecker(64, false)
	r := row(t, `"session_id":"a","timestamp":0`)
	check.Add(r, 1)
	line := int64(1)
	if n := testing.AllocsPerRun(100, func() {
		line++
		if _, f := check.Add(r, line); f.Code != OK {
			t.Fatal(f)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
