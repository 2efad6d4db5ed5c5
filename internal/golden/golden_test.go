package golden

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func values(t *testing.T, text string) []any {
	t.Helper()
	var v []any
	if err := strict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestComparison(t *testing.T) {
	cases := []struct {
		name, got, want string
		differences     []string
	}{
		{"equal", `[{"a":1,"b":[true,null,"x"]}]`, `[{"a":1.0,"b":[true,null,"x"]}]`, nil},
		{"fields the file lacks are not compared", `[{"a":1,"b":2}]`, `[{"a":1}]`, nil},
		{"a field is missing", `[{"a":1}]`, `[{"a":1,"b":null}]`, []string{`event 0.b: got null, want null`}},
		{"one bit of a float", `[{"ms":16.653296}]`, `[{"ms":16.653296000000004}]`, []string{`event 0.ms: got 16.653296, want 16.653296000000004`}},
		{"large integers", `[9143094415614847814]`, `[9143094415614847815]`, []string{`event 0: got 9143094415614847814, want 9143094415614847815`}},
		{"a variance in its last bits", `[{"vp":3.5555555555555554,"vd":0}]`, `[{"vp":3.555555555555556,"vd":0.0}]`, nil},
		{"a variance", `[{"vp":3.5556}]`, `[{"vp":3.5555}]`, []string{`event 0.vp: got 3.5556, want 3.5555`}},
		{"a queued variance in its last bits", `[{"vqp":3.5555555555555554}]`, `[{"vqp":3.555555555555556}]`, []string{`event 0.vqp: got 3.5555555555555554, want 3.555555555555556`}},
		{"list lengths", `[[1]]`, `[[1,2]]`, []string{`event 0: got [1], want [1,2]`}},
		{"kinds", `[0]`, `[null]`, []string{`event 0: got 0, want null`}},
		{"more events", `[1,2]`, `[1]`, []string{`event 1: got 2, want null`}},
		{"fewer events", `[1]`, `[1,2]`, []string{`event 1: got null, want 2`}},
		{"unmentioned KV events", `[{"kv_events":[1]}]`, `[{}]`, []string{`event 0.kv_events: got [1], want []`}},
		{"no KV events", `[{"kv_events":[]}]`, `[{}]`, nil},
	}
	for _, c := range cases {
		got := compareEvents(values(t, c.got), values(t, c.want))
		if fmt.Sprint(got) != fmt.Sprint(c.differences) {
			t.Errorf("%s: %q, want %q", c.name, got, c.differences)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	cases := []struct{ file, message string }{
		{`{"config":{}} {}`, "data after"},
		{`{"config":{"num_blocks":3}}`, "num_blocks"},
		{`{"config":{},"dp":2,"steps":[{"at":0,"rank":2,"op":"submit"}]}`, "rank 2 of 2"},
		{`{"config":{"backend":"sglang","sglang":{"schedule_policy":"random"}}}`, "random"},
		{`{"config":{"preemption_mode":"none"}}`, "none"},
		{`{"config":{"timing_model":{"type":"external"}}}`, "external"},
		{`{"config":{"block_size":1}}`, "core/config"},
		{`{"config":{},"steps":[{"at":0,"op":"submit","uuid":1}]}`, "uuid"},
	}
	for _, c := range cases {
		if _, err := parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: error %v, want one with %q", c.file, err, c.message)
		}
	}
}

func TestPrompt(t *testing.T) {
	if got := (Step{Start: 7, Len: 3}).prompt(); !reflect.DeepEqual(got, []uint32{7, 8, 9}) {
		t.Errorf("start and len: %v", got)
	}
	if got := (Step{Tokens: []uint32{5}, Len: 3}).prompt(); !reflect.DeepEqual(got, []uint32{5}) {
		t.Errorf("tokens: %v", got)
	}
}

func TestUnknownStepIsAnError(t *testing.T) {
	s, err := parse([]byte(`{"config":{},"steps":[{"at":0,"op":"resume","id":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(s); err == nil || !strings.Contains(err.Error(), "resume") {
		t.Errorf("error %v, want one that names the op", err)
	}
}
