package scalescript

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
)

func TestParse(t *testing.T) {
	const keep = config.KeepWorkers
	for text, want := range map[string][]config.Target{
		`[{"at_ms": 0, "workers": 3}, {"at_ms": 1e3, "workers": 0}]`: {{AtMs: 0, Prefill: keep, Decode: 3}, {AtMs: 1000, Prefill: keep, Decode: 0}},
		"- at_ms: 5.5\n- {at_ms: 6, workers: null}\n":                {{AtMs: 5.5, Prefill: keep, Decode: keep}, {AtMs: 6, Prefill: keep, Decode: keep}},
	} {
		got, err := Parse("s", []byte(text), false)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	got, err := Parse("s", []byte("- {at_ms: 1, prefill: 2}\n- {at_ms: 2, decode: 4}"), true)
	if want := []config.Target{{AtMs: 1, Prefill: 2, Decode: keep}, {AtMs: 2, Prefill: keep, Decode: 4}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("pools: %v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "s is empty; a list of targets is accepted",
		"{}":                            "s:1: found an object, want a list of targets",
		"[]":                            "s:1: found an empty list, want a list of targets",
		"- 3":                           `s:1: found "3", want an object with at_ms and workers`,
		"- {workers: 1}":                "s:1: at_ms is missing, want the time of the target in ms",
		"- {at_ms: -1}":                 `s:1: at_ms is "-1", want a finite number of at least 0`,
		"- {at_ms: .inf}":               `s:1: at_ms is ".inf", want a finite number of at least 0`,
		"- at_ms: 1\n  workers: 1.5":    `s:2: workers is "1.5", want a whole number from 0 to 1048576`,
		"- {at_ms: 1, decode: 2}":       `s:1: found the key "decode", want at_ms and workers`,
		"- {at_ms: 1, at_ms: 2}":        `s:1: "at_ms" is given twice`,
		"- {at_ms: 1}\n- {at_ms: 1}":    "s:2: at_ms is 1, want a time after 1, that of the target before",
		"- {at_ms: 1, workers: [1, 2]}": "s:1: workers is a list, want a whole number from 0 to 1048576",
	} {
		if _, err := Parse("s", []byte(text), false); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}
