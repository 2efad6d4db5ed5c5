package answer_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/host/native/live/answer"
)

func TestRandom(t *testing.T) {
	var s answer.Style
	a, b, c := s.Append(nil, 5000, 1), s.Append([]uint32{7}, 5000, 1), s.Append(nil, 5000, 2)
	if len(a) != 5000 || !slices.Equal(b, append([]uint32{7}, a...)) || slices.Equal(a, c) {
		t.Error("answers do not follow from their seeds")
	}
	if low, high := slices.Min(a), slices.Max(a); low < 1000 || low > 1010 || high > 1999 || high < 1990 {
		t.Errorf("ids from %d to %d", low, high)
	}
	s.IDs = []uint32{3, 5}
	if d := s.Append(nil, 50, 1); slices.Min(d) != 3 || slices.Max(d) != 5 || slices.Contains(d, 4) {
		t.Errorf("ids %v", d)
	}
}

// The reference's rule; the last case is its own run.
func TestReasoning(t *testing.T) {
	for _, c := range []struct {
		n     int
		ratio float64
		think int
	}{{0, 1, 0}, {1, 1, 0}, {2, 0.4, 0}, {2, 0.5, 2}, {10, 0.1, 2}, {10, 0.09, 0}, {10, 0, 0}, {10, 1, 10}, {10, 0.35, 3}, {10, 0.5, 5}} {
		s := answer.Style{Reasoning: &answer.Reasoning{Start: 60, End: 62, Ratio: c.ratio}}
		ids := s.Append(nil, c.n, 1)
		starts, ends := slices.Index(ids, 60), slices.Index(ids, 62)
		if think := s.Thinking(c.n); think != c.think || len(ids) != c.n ||
			think == 0 && (starts >= 0 || ends >= 0) || think > 0 && (starts != 0 || ends != think-1) {
			t.Errorf("%d tokens, ratio %v: %d are thoughts, want %d: %v", c.n, c.ratio, think, c.think, ids)
		}
	}
	if (&answer.Style{}).Thinking(10) != 0 || (answer.Reasoning{Ratio: math.NaN()}).Thinking(1) != 0 {
		t.Error("thoughts without reasoning")
	}
}

func TestRecorded(t *testing.T) {
	got, err := answer.Parse("t", []byte(`{"request_id":" a ","output_length":2,"output_token_ids":[5,4294967295]}
{"session_id":"s","output_length":9}
{"session_id":"s","request_id":"  ","output_tokens":1,"output_token_ids":[7],"hash_ids":[1]}

{"output_length":0,"output_token_ids":[]}
{"session_id":"s","request_id":null,"output_length":1,"output_tokens":5,"output_token_ids":[8]}`))
	want := answer.Recorded{"a": {5, math.MaxUint32}, "s:1": {7}, "line:4": {}, "s:2": {8}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", err, cmp.Diff(want, got))
	}
}

func TestBadRecords(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                          `t: line 1: it is not a JSON object; one request a line is accepted`,
		"\n{} {}":                     `t: line 2: it has something behind the JSON object; one request a line is accepted`,
		`{"output_token_ids":[1]}`:    `t: line 1: output_length is missing; the number of output_token_ids is accepted`,
		`{"output_token_ids":7}`:      `t: line 1: output_token_ids is "7"; a list of whole numbers is accepted`,
		`{"output_token_ids":[1,-1]}`: `t: line 1: output_token_ids[1] is "-1"; a whole number from 0 to 4294967295 is accepted`,
		`{"output_token_ids":[1],"output_length":2}`: `t: line 1: output_length is "2"; 1, the number of output_token_ids, is accepted`,
		`{"output_token_ids":[1],"output_tokens":2}`: `t: line 1: output_tokens is "2"; 1, the number of output_token_ids, is accepted`,
		`{"request_id":5}`:                           `t: line 1: request_id is "5"; a string is accepted`,
		`{"session_id":5}`:                           `t: line 1: session_id is "5"; a string is accepted`,
		"{\"request_id\":\"a\",\"output_length\":0,\"output_token_ids\":[]}\n{\"request_id\":\"a\",\"output_length\":0,\"output_token_ids\":[]}": `t: line 2: the key "a" has an answer already; each key once is accepted`,
	} {
		if _, err := answer.Parse("t", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := answer.Load("/no/such/file"); err == nil || err.Error() != "/no/such/file: no such file or directory" {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"request_id":"a","output_length":1,"output_token_ids":[5]}` + "\n\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := answer.Parse("t", text)
		if (err == nil) != (table != nil) {
			t.Errorf("%v, %v", table, err)
		}
		for key, ids := range table {
			if key == "" || ids == nil {
				t.Errorf("%q: %v", key, ids)
			}
		}
	})
}
