package trace

import (
	"fmt"
	"strings"
	"testing"
)

const good = `{"timestamp":0,"input_length":100,"output_length":2,"hash_ids":[1,2]}`

// with is the good row with one thing replaced; and with more fields.
func with(old, now string) string { return strings.Replace(good, old, now, 1) }
func and(fields string) string    { return good[:len(good)-1] + "," + fields + "}" }

func (r *Row) String() string {
	s := fmt.Sprintf("in %d out %d ids %d", r.InputLength, r.OutputLength, r.HashIDs)
	if r.HasTimestamp {
		s += fmt.Sprintf(" ts %v", r.TimestampMs)
	}
	if r.HasDelay {
		s += fmt.Sprintf(" delay %v", r.DelayMs)
	}
	if r.HasOutputIDs {
		s += fmt.Sprintf(" oids %d", r.OutputIDs)
	}
	if r.RequestID != nil {
		s += fmt.Sprintf(" req %q", r.RequestID)
	}
	if r.SessionID != nil {
		s += fmt.Sprintf(" ses %q", r.SessionID)
	}
	if r.PolicyClass != nil {
		s += fmt.Sprintf(" class %q", r.PolicyClass)
	}
	if r.Priority != 0 || r.StrictPriority != 0 {
		s += fmt.Sprintf(" prio %d %d", r.Priority, r.StrictPriority)
	}
	return s
}

// The reference takes every one of these rows.
func TestAccepted(t *testing.T) {
	const plain = "in 100 out 2 ids [1 2] ts 0"
	var p Parser
	var row Row
	for _, c := range []struct{ line, want string }{
		{good, plain},
		{" \t\r" + good + " \r\n\t", plain},
		{strings.NewReplacer(":", " :\t", ",", " , ", "[", "[ ", "{", "{ ", "]", " ]", "}", " }").Replace(good), plain},
		{`{"hash_ids":[],"output_length":0}`, "in -1 out 0 ids []"},
		{with("100", "null"), "in -1 out 2 ids [1 2] ts 0"},
		{with(`"timestamp":0`, `"timestamp":null`), "in 100 out 2 ids [1 2]"},
		{with(`"timestamp"`, `"created_time"`), plain},
		{with(`input_length`, `input_tokens`), plain},
		{with(`output_length`, `output_tokens`), plain},
		{with(`input_length`, `input_l\u0065ngth`), plain},
		{with(`input_length`, `Input_Length`), "in -1 out 2 ids [1 2] ts 0"},
		{with("100", "9223372036854775807"), "in 9223372036854775807 out 2 ids [1 2] ts 0"},
		{with("[1,2]", "[0,18446744073709551615]"), "in 100 out 2 ids [0 18446744073709551615] ts 0"},
		{with(`"timestamp":0`, `"timestamp":1.5`), "in 100 out 2 ids [1 2] ts 1.5"},
		{with(`"timestamp":0`, `"timestamp":-5`), "in 100 out 2 ids [1 2] ts -5"},
		{with(`"timestamp":0`, `"timestamp":1E+2`), "in 100 out 2 ids [1 2] ts 100"},
		{with(`"timestamp":0`, `"timestamp":123456789012345678901234567890`), "in 100 out 2 ids [1 2] ts 1.2345678901234568e+29"},
		{and(`"foo":{"a":[1,{"b":null},[],{}],"a":-0.0e-0,"c":true,"d":false}`), plain},
		{and(`"foo":1,"foo":2`), plain},
		{and(`"foo":"\ud800","bar":{"\udc00":1}`), plain},
		{and(`"foo":1e999,"bar":` + strings.Repeat("9", 400)), plain},
		{and(`"x\ud83d\ude00":0`), plain},
		{and(`"foo":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000)), plain},
		{and(`"foo":` + strings.Repeat(`{"a":[`, 50000) + strings.Repeat("]}", 50000)), plain},
		{and(`"session_id":"a\u00e9\n\ud83d\uDE00\"\\\/\b\f\r\t\u0000"`), plain + ` ses "aé\n😀\"\\/\b\f\r\t\x00"`},
		{and(`"session_id":"é😀` + "\x7f" + `"`), plain + ` ses "é😀\x7f"`},
		{and(`"session_id":"","request_id":"","policy_class":""`), plain + ` req "" ses "" class ""`},
		{and(`"session_id":"\u0041","request_id":"\u0042","policy_class":"\u0043x"`), plain + ` req "B" ses "A" class "Cx"`},
		{and(`"session_id":null,"request_id":null,"policy_class":null,"priority":null,"strict_priority":null,"delay":null,"output_token_ids":null`), plain},
		{and(`"priority":2147483647,"strict_priority":4294967295`), plain + " prio 2147483647 4294967295"},
		{and(`"priority":-2147483648`), plain + " prio -2147483648 0"},
		{and(`"priority":-1`), plain + " prio -1 0"},
		{and(`"output_token_ids":[0,4294967295]`), plain + " oids [0 4294967295]"},
		{and(`"output_token_ids":[]`), plain + " oids []"},
		{and(`"delay":5`), plain + " delay 5"},
		{and(`"delay_ms":-1.25`), plain + " delay -1.25"},
	} {
		if f := p.Line([]byte(c.line), &row); f.Code != OK || row.String() != c.want {
			t.Errorf("%.200s\ngot  %s, fault %v\nwant %s", c.line, row.String(), f, c.want)
		}
	}
}

// The reference refuses every one of these lines, but for the last two. at is
// the text between Start and End.
func TestRefused(t *testing.T) {
	var p Parser
	var row Row
	for _, c := range []struct {
		line  string
		code  Code
		field Field
		at    string
	}{
		{with("100", "1e2"), WrongType, InputLength, "1e2"},
		{with("100", "100.0"), WrongType, InputLength, "100.0"},
		{with("100", "-3"), WrongType, InputLength, "-3"},
		{with("100", "-0"), WrongType, InputLength, "-0"},
		{with("100", `"100"`), WrongType, InputLength, `"100"`},
		{with("100", "true"), WrongType, InputLength, "true"},
		{with("100", "[1, {}]"), WrongType, InputLength, "[1, {}]"},
		{with("100", "18446744073709551616"), OutOfRange, InputLength, "18446744073709551616"},
		{with("100", "0100"), BadNumber, InputLength, "0100"},
		{with("100", "+1"), WantValue, InputLength, ""},
		{with("100", ".5"), WantValue, InputLength, ""},
		{with("100", "1."), BadNumber, InputLength, "1.,"},
		{with("100", "1e"), BadNumber, InputLength, "1e,"},
		{with("100", "nil"), WantValue, InputLength, ""},
		{with("100", "100x"), WantCommaOrBrace, NoField, ""},
		{with(":2,", ":null,"), Missing, OutputLength, ""},
		{with(":2,", ":2.0,"), WrongType, OutputLength, "2.0"},
		{with(`"output_length":2,`, ""), Missing, OutputLength, ""},
		{with(`,"hash_ids":[1,2]`, ""), Missing, HashIDs, ""},
		{with("[1,2]", "null"), Missing, HashIDs, ""},
		{with("[1,2]", "3"), WrongType, HashIDs, "3"},
		{with("[1,2]", `{"a":1}`), WrongType, HashIDs, `{"a":1}`},
		{with("[1,2]", "[1,-2]"), WrongType, HashIDs, "-2"},
		{with("[1,2]", "[1,2.0]"), WrongType, HashIDs, "2.0"},
		{with("[1,2]", "[1,-0]"), WrongType, HashIDs, "-0"},
		{with("[1,2]", `[1,"2"]`), WrongType, HashIDs, `"2"`},
		{with("[1,2]", "[1,null]"), WrongType, HashIDs, "null"},
		{with("[1,2]", "[1,18446744073709551616]"), OutOfRange, HashIDs, "18446744073709551616"},
		{with("[1,2]", "[1,02]"), BadNumber, HashIDs, "02"},
		{with("[1,2]", "[00001,2,3]"), BadNumber, HashIDs, "00001"},
		{with("[1,2]", "[1,2,]"), WantValue, HashIDs, ""},
		{with("[1,2]", "[,1]"), WantValue, HashIDs, ""},
		{with("[1,2]", "[1 2]"), WantCommaOrClose, HashIDs, ""},
		{with("[1,2]", "[1,2}"), WantCommaOrClose, HashIDs, ""},
		{with(`"timestamp":0`, `"timestamp":1e400`), OutOfRange, Timestamp, "1e400"},
		{with(`"timestamp":0`, `"timestamp":"0"`), WrongType, Timestamp, `"0"`},
		{with(`"timestamp":0`, `"timestamp":NaN`), WantValue, Timestamp, ""},
		{with(`"timestamp":0`, `"timestamp":Infinity`), WantValue, Timestamp, ""},
		{with(`"timestamp":0`, `"timestamp":-`), BadNumber, Timestamp, "-,"},
		{with(`"timestamp":0`, `"timestamp":-Infinity`), BadNumber, Timestamp, "-I"},
		{and(`"delay":1e400`), OutOfRange, Delay, "1e400"},
		{and(`"input_length":3`), Duplicate, InputLength, `"input_length":`},
		{and(`"input_tokens":null`), Duplicate, InputLength, `"input_tokens":`},
		{and(`"output_tokens":2`), Duplicate, OutputLength, `"output_tokens":`},
		{and(`"created_time":3`), Duplicate, Timestamp, `"created_time":`},
		{and(`"delay":0,"delay_ms":0`), Duplicate, Delay, `"delay_ms":`},
		{and(`"hash_ids":[1,2]`), Duplicate, HashIDs, `"hash_ids":`},
		{and(`"session_id":null,"session_id":"a"`), Duplicate, SessionID, `"session_id":`},
		{and(`"policy_class":null,"policy_class":null`), Duplicate, PolicyClass, `"policy_class":`},
		{and(`"session_id":3`), WrongType, SessionID, "3"},
		{and(`"session_id":"\ud800"`), LoneSurrogate, SessionID, `\ud800`},
		{and(`"session_id":"a\udc00\ud800"`), LoneSurrogate, SessionID, `\udc00`},
		{and(`"session_id":"\udc00\udc00"`), LoneSurrogate, SessionID, `\udc00`},
		{and(`"session_id":"\ud800\u0041"`), LoneSurrogate, SessionID, `\ud800`},
		{and(`"session_id":"a` + "\t" + `b"`), ControlByte, SessionID, "\t"},
		{and(`"session_id":"` + "\xff" + `"`), BadUTF8, SessionID, "\xff"},
		{and(`"request_id":3`), WrongType, RequestID, "3"},
		{and(`"policy_class":[]`), WrongType, PolicyClass, "[]"},
		{and(`"priority":2147483648`), OutOfRange, Priority, "2147483648"},
		{and(`"priority":-2147483649`), OutOfRange, Priority, "-2147483649"},
		{and(`"priority":1.0`), WrongType, Priority, "1.0"},
		{and(`"priority":-1e3`), WrongType, Priority, "-1e3"},
		{and(`"priority":-0`), WrongType, Priority, "-0"},
		{and(`"strict_priority":-1`), WrongType, StrictPriority, "-1"},
		{and(`"strict_priority":4294967296`), OutOfRange, StrictPriority, "4294967296"},
		{and(`"output_token_ids":[5,4294967296]`), OutOfRange, OutputIDs, "4294967296"},
		{and(`"output_token_ids":[5,-1]`), WrongType, OutputIDs, "-1"},
		{and(`"foo":"\x"`), BadEscape, NoField, `\x`},
		{and(`"foo":"\u12g4"`), BadEscape, NoField, `\u12g`},
		{and(`"foo":nul`), WantValue, NoField, ""},
		{and(`"foo":NaN`), WantValue, NoField, ""},
		{and(`"foo":01`), BadNumber, NoField, "01"},
		{and(`"foo":"a` + "\x01" + `b"`), ControlByte, NoField, "\x01"},
		{and(`"foo":"` + "\xed\xa0\x80" + `"`), BadUTF8, NoField, "\xed"},
		{and(`"foo":"` + "\xc0\x80" + `"`), BadUTF8, NoField, "\xc0"},
		{and(`"foo":[1 2]`), WantCommaOrClose, NoField, ""},
		{and(`"foo":{"a":1]`), WantCommaOrBrace, NoField, ""},
		{and(`"foo":{"a" 1}`), WantColon, NoField, ""},
		{and(`"foo":{1:1}`), WantKey, NoField, ""},
		{and(`"foo":[1,]`), WantValue, NoField, ""},
		{and(`"foo":{"a":1,}`), WantKey, NoField, ""},
		{and(`"\ud800":0`), LoneSurrogate, NoField, `\ud800`},
		{and(`3:0`), WantKey, NoField, ""},
		{and(``), WantKey, NoField, ""},
		{"\ufeff" + good, ByteOrderMark, NoField, "\ufeff"},
		{good + " x", Trailing, NoField, "x"},
		{good + good, Trailing, NoField, good},
		{good + "\r" + good, Trailing, NoField, good},
		{"[1,2]", NotObject, NoField, "[1,2]"},
		{"null", NotObject, NoField, "null"},
		{"3", NotObject, NoField, "3"},
		{"\x0c" + good, NotObject, NoField, "\x0c" + good},
		{"\xff", NotObject, NoField, "\xff"},
		{strings.ReplaceAll(good, `"`, "'"), WantKey, NoField, ""},
		{"{}", Missing, HashIDs, ""},
		{`[null,null,100,2,null,[1,2],0,null,0,0,null]`, NotObject, NoField, "[null,null,100,2,null,[1,2],0,null,0,0,null]"},
		{with("100", "9223372036854775808"), OutOfRange, InputLength, "9223372036854775808"},
	} {
		f := p.Line([]byte(c.line), &row)
		if f.Code != c.code || f.Field != c.field || c.line[f.Start:f.End] != c.at {
			t.Errorf("%.200s\ngot  %v %q\nwant code %d field %d %q", c.line, f, c.line[f.Start:f.End], c.code, c.field, c.at)
		}
	}
}

// A row cut off anywhere is cut off, at its end, if it does not become another
// mistake first.
func TestCutOff(t *testing.T) {
	whole := and(`"session_id":"a\u00e9b","priority":-12,"delay":1.5e+3,"output_token_ids":null,"x":[{"a":true,"b":[]},{}],"y":false`)
	var p Parser
	var row Row
	for n := range whole {
		f := p.Line([]byte(whole[:n]), &row)
		if f.Code != CutOff || f.Start != n || f.End != n {
			t.Errorf("%s: %v, want a cut at %d", whole[:n], f, n)
		}
	}
}

// A fault names where the key of its field is.
func TestFaultKey(t *testing.T) {
	var p Parser
	var row Row
	line := with(`"output_length":2`, ` "output_tokens" : "x"`)
	f := p.Line([]byte(line), &row)
	if f.Code != WrongType || !strings.HasPrefix(line[f.Key:], `"output_tokens"`) {
		t.Errorf("%v: key at %q", f, line[f.Key:])
	}
}

// What one row leaves behind does not reach the next.
func TestRowsDoNotLeak(t *testing.T) {
	var p Parser
	var row Row
	full := and(`"session_id":"\u0061","request_id":"r","policy_class":"c","priority":3,"strict_priority":4,"delay":5,"output_token_ids":[6,7],"x":[[[1]]]`)
	if f := p.Line([]byte(full), &row); f.Code != OK {
		t.Fatal(f)
	}
	for _, bad := range []string{full[:40], full[:len(full)-3], and(`"session_id":"\ud800"`)} {
		p.Line([]byte(bad), &row)
		if f := p.Line([]byte(`{"output_length":0,"hash_ids":[]}`), &row); f.Code != OK || row.String() != "in -1 out 0 ids []" {
			t.Errorf("after %s: %s, fault %v", bad, row.String(), f)
		}
	}
}

// Keys that move from row to row are still found.
func TestKeyOrder(t *testing.T) {
	fields := []string{`"timestamp":7`, `"input_length":100`, `"output_length":2`, `"hash_ids":[1]`, `"unknown":[9]`, ` "session_id" : "s"`}
	var p Parser
	var row Row
	for i := range 720 {
		order := append([]string(nil), fields...)
		for k, rest := len(order), i; k > 1; k-- {
			order[k-1], order[rest%k] = order[rest%k], order[k-1]
			rest /= k
		}
		line := "{" + strings.Join(order, ",") + "}"
		if f := p.Line([]byte(line), &row); f.Code != OK || row.String() != `in 100 out 2 ids [1] ts 7 ses "s"` {
			t.Fatalf("%s: %s, fault %v", line, row.String(), f)
		}
	}
}

// Keys spelled like the row before, up to the space before the value.
func TestSpelling(t *testing.T) {
	var p Parser
	var row Row
	for _, gap := range []string{"", " ", "", "\t", " ", "  ", " ", strings.Repeat(" ", 40), " "} {
		line := strings.ReplaceAll(good, ":", ":"+gap)
		if f := p.Line([]byte(line), &row); f.Code != OK || row.String() != "in 100 out 2 ids [1 2] ts 0" {
			t.Fatalf("%s: %s, fault %v", line, row.String(), f)
		}
	}
}

func TestNoAllocationPerRow(t *testing.T) {
	lines := [][]byte{
		[]byte(good),
		[]byte(and(`"session_id":"\u0061\ud83d\ude00","delay":1.5e-300,"output_token_ids":[1,2,3],"x":{"y":[[[]]]}`)),
		[]byte(`{"output_length":1,"input_tokens":"x"}`),
	}
	var p Parser
	var row Row
	if n := testing.AllocsPerRun(100, func() {
		for _, line := range lines {
			p.Line(line, &row)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
