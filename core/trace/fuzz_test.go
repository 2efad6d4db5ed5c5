package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// FuzzLine compares the parser with one made of encoding/json.
//
// Differences on purpose: this parser refuses bytes that are not UTF-8, half a
// surrogate pair in a key of the row or a kept string, repeated fields,
// integers that are not written as digits, "-0" as an integer; it has no limit
// on depth; keys are case-sensitive; floats follow the reference's rounding.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{
		good, and(`"foo":{"a":[1,{"b":null},[],{}]}`), and(`"session_id":"\ud83d\ude00\ud800"`), and(`"foo":"\ud800"`),
		and(`"priority":-12,"strict_priority":4294967295,"policy_class":"x\n","request_id":"é"`),
		and(`"output_token_ids":[5,4294967295]`), and(`"delay_ms":1.5e-3`), and(`"input_tokens":null`),
		with("[1,2]", "[ 12345678 ,1234567, 123456,18446744073709551615,0]"), with("100", "1e2"), with("100", "9223372036854775808"),
		with(`"timestamp":0`, `"created_time":-0.00012345678901234567890E+21`), with(`"timestamp":0`, `"timestamp":17976931348623158e292`),
		`{"output_length":1,"hash_ids":[]}`, "[]", "{", "", " ", "\ufeff{}", good + "x", with("input", `\u0069nput`), with("1,", "01,"),
	} {
		f.Add([]byte(seed))
	}
	var p Parser
	var row Row
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		fault := p.Line(line, &row)
		if !bytes.Equal(line, before) {
			t.Fatalf("%q: the line was changed to %q", before, line)
		}
		if fault.Start < 0 || fault.Start > fault.End || fault.End > len(line) || fault.Key < 0 || fault.Key > fault.Start {
			t.Fatalf("%q: fault out of place: %v", line, fault)
		}
		if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) > 9000 {
			return
		}
		want, err := reference(line)
		const edge = 1.797e308 // from here rounding decides whether a float overflows
		if math.Abs(want.TimestampMs) > edge || math.Abs(want.DelayMs) > edge {
			return
		}
		if (err == nil) != (fault.Code == OK) {
			t.Fatalf("%q: fault %v, reference says %v", line, fault, err)
		}
		if err != nil {
			return
		}
		if !near(row.TimestampMs, want.TimestampMs) || !near(row.DelayMs, want.DelayMs) {
			t.Fatalf("%q: times %v %v, want %v %v", line, row.TimestampMs, row.DelayMs, want.TimestampMs, want.DelayMs)
		}
		row.TimestampMs, row.DelayMs = want.TimestampMs, want.DelayMs
		if row.String() != want.String() {
			t.Fatalf("%q:\ngot  %s\nwant %s", line, row.String(), want.String())
		}
	})
}

// near allows for the reference's rounding: a few units in the last place.
func near(a, b float64) bool {
	return math.Abs(a-b) <= 4*0x1p-52*math.Abs(b) || math.Abs(a-b) <= 4*0x1p-1074
}

// reference reads a row by way of encoding/json.
func reference(line []byte) (row Row, err error) {
	row = Row{InputLength: -1, OutputLength: -1}
	if !utf8.Valid(line) || !json.Valid(line) {
		return row, fmt.Errorf("no JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return row, fmt.Errorf("no object")
	}
	seen := map[string]bool{}
	for dec.More() {
		start := dec.InputOffset()
		t, err := dec.Token()
		if err != nil {
			return row, err
		}
		if lone(line[start:dec.InputOffset()]) {
			return row, fmt.Errorf("lone surrogate in a key")
		}
		key := t.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return row, err
		}
		key, known := names[key]
		if !known {
			continue
		}
		if seen[key] {
			return row, fmt.Errorf("%s twice", key)
		}
		seen[key] = true
		if string(value) == "null" {
			continue
		}
		if err := fill(&row, key, value); err != nil {
			return row, fmt.Errorf("%s: %w", key, err)
		}
	}
	if row.HashIDs == nil || row.OutputLength < 0 {
		return row, fmt.Errorf("a field is missing")
	}
	return row, nil
}

// names maps both names of a field to the first.
var names = func() map[string]string {
	m := map[string]string{}
	for f := RequestID; f <= PolicyClass; f++ {
		m[f.Name()] = f.Name()
		if f.Alias() != "" {
			m[f.Alias()] = f.Name()
		}
	}
	return m
}()

func fill(row *Row, key string, value []byte) (err error) {
	var u uint64
	switch key {
	case "input_length":
		u, err = digitsOnly(value, math.MaxInt64)
		row.InputLength = int64(u)
	case "output_length":
		u, err = digitsOnly(value, math.MaxInt64)
		row.OutputLength = int64(u)
	case "strict_priority":
		u, err = digitsOnly(value, math.MaxUint32)
		row.StrictPriority = uint32(u)
	case "priority":
		var v int64
		v, err = strconv.ParseInt(string(value), 10, 32)
		if string(value) == "-0" {
			err = fmt.Errorf("-0")
		}
		row.Priority = int32(v)
	case "hash_ids":
		row.HashIDs, err = list(value, math.MaxUint64)
	case "output_token_ids":
		row.HasOutputIDs = true
		var ids []uint64
		ids, err = list(value, math.MaxUint32)
		for _, id := range ids {
			row.OutputIDs = append(row.OutputIDs, uint32(id))
		}
	case "timestamp":
		row.HasTimestamp = true
		row.TimestampMs, err = number(value)
	case "delay":
		row.HasDelay = true
		row.DelayMs, err = number(value)
	case "request_id":
		row.RequestID, err = text(value)
	case "session_id":
		row.SessionID, err = text(value)
	case "policy_class":
		row.PolicyClass, err = text(value)
	}
	return err
}

func digitsOnly(value []byte, most uint64) (uint64, error) {
	if !regexp.MustCompile(`^[0-9]+$`).Match(value) {
		return 0, fmt.Errorf("%s is not digits", value)
	}
	v, err := strconv.ParseUint(string(value), 10, 64)
	if err == nil && v > most {
		err = strconv.ErrRange
	}
	return v, err
}

func list(value []byte, most uint64) ([]uint64, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, err
	}
	ids := []uint64{}
	for _, r := range raw {
		id, err := digitsOnly(r, most)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func number(value []byte) (float64, error) {
	var n json.Number
	if value[0] == '"' {
		return 0, fmt.Errorf("a string")
	}
	if err := json.Unmarshal(value, &n); err != nil {
		return 0, err
	}
	return strconv.ParseFloat(n.String(), 64)
}

func text(value []byte) ([]byte, error) {
	var s string
	if lone(value) {
		return nil, fmt.Errorf("lone surrogate")
	}
	err := json.Unmarshal(value, &s)
	return append([]byte{}, s...), err
}

// lone reports whether the text of a JSON string has half a surrogate pair.
func lone(raw []byte) bool {
	var units []uint16
	s := string(raw)
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], `\u`):
			u, _ := strconv.ParseUint(s[i+2:i+6], 16, 16)
			units = append(units, uint16(u))
			i += 6
		case s[i] == '\\':
			units = append(units, '.')
			i += 2
		default:
			units = append(units, '.')
			i++
		}
	}
	for i := 0; i < len(units); i++ {
		if !utf16.IsSurrogate(rune(units[i])) {
			continue
		}
		if i+1 == len(units) || utf16.DecodeRune(rune(units[i]), rune(units[i+1])) == utf8.RuneError {
			return true
		}
		i++
	}
	return false
}
