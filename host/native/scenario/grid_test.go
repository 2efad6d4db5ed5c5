package scenario

import (
	"fmt"
	"strings"
	"testing"
)

func sweepKnown() Known {
	k := known
	k.Sweep, k.Axes, k.Bounds = true, []string{"prefill-decode"}, []string{"p99_ttft_ms", "mean_itl_ms"}
	return k
}

func TestSweep(t *testing.T) {
	f, err := Parse("dir/s.yaml", []byte(`num-workers: 4
sweep:
  - num-workers: [1, &two 2, ~]
    extra-engine-args: [e.json, {engine: {path: p.npz}}, '{"a": 1}']
    extra-engine-args.engine.path: q.npz
    extra-engine-args.x: [null, {a: [1, b]}]
  - prefill-decode: ["1+3", *two]
    aic-nextn-accept-rates: [[0.8, 0.6], 0.5]
sla:
  p99-ttft-ms: 1e3
  mean_itl_ms: 20
`), sweepKnown())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, g := range f.Grids {
		for _, a := range g {
			fmt.Fprintf(&b, "%d %s:%d", i, a.Name(), a.Line)
			for _, v := range a.Values {
				if lines := strings.Split(v.Text, "\n"); len(lines) > 1 && len(lines) != v.Line {
					t.Errorf("%q does not stand on line %d", v.Text, v.Line)
				}
				fmt.Fprintf(&b, " %s|%v|%v", strings.Join(strings.Fields(v.Text), " "), v.JSON, v.Null)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintln(&b, f.Bounds, len(f.Settings))
	want := `0 num-workers:3 1|false|false 2|false|false |false|true
0 extra-engine-args:4 dir/e.json|false|false { "engine":{"path":"dir/p.npz"}}|true|false {"a": 1}|false|false
0 extra-engine-args.engine.path:5 "dir/q.npz"|true|false
0 extra-engine-args.x:6 null|true|false {"a":[1,"b"]}|true|false
1 prefill-decode:7 1+3|false|false 2|false|false
1 aic-nextn-accept-rates:8 0.8,0.6|false|false 0.5|false|false
[{p99_ttft_ms 10 1000} {mean_itl_ms 11 20}] 1
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestSweepSentences(t *testing.T) {
	for text, want := range map[string]string{
		"sweep: 4\n":                                   `s.yaml:1: sweep has "4"; lists of values by flag, as in "num-workers: [1, 2]", are accepted`,
		"sweep: [4]\n":                                 `s.yaml:1: sweep has "4"; lists of values by flag, as in "num-workers: [1, 2]", are accepted`,
		"sweep:\n  num-worker: [4]\n":                  `s.yaml:2: unknown key "num-worker"; did you mean num-workers?`,
		"sweep:\n  zork: [4]\n":                        `s.yaml:2: unknown key "zork"; prefill-decode, num-workers, extra-engine-args, report-json, aic-nextn-accept-rates, model-name, parity are accepted`,
		"sweep:\n  num-workers.x: [4]\n":               `s.yaml:2: num-workers has a field "x", but takes no JSON; the flag alone is accepted`,
		"sweep:\n  extra-engine-args..x: [4]\n":        `s.yaml:2: "extra-engine-args..x" has a field without a name; fields separated by dots are accepted`,
		"sweep:\n  num-workers: []\n":                  `s.yaml:2: num-workers has no values; at least one is accepted`,
		"sweep:\n  num-workers: [{a: 1}]\n":            `s.yaml:2: num-workers has an object in its list; single values are accepted`,
		"sweep:\n  num-workers: [[{a: 1}]]\n":          `s.yaml:2: num-workers has an object in a list of its list; single values are accepted`,
		"sweep:\n  num-workers: 1\n  num-workers: 2\n": `s.yaml:3: num-workers stands on line 2, too; once is accepted`,
		"sweep:\n  extra-engine-args.x: [0x10]\n":      `s.yaml:2: found the number 0x10; one spelt as in JSON is accepted`,
		"sla: 5\n":                                   `s.yaml:1: sla is "5"; bounds by name, as in "p99-ttft-ms: 500", are accepted`,
		"sla:\n  p98-ttft-ms: 5\n":                   `s.yaml:2: unknown key "p98-ttft-ms"; did you mean p99-ttft-ms?`,
		"sla:\n  mean-itl-ms: x\n":                   `s.yaml:2: mean-itl-ms is "x"; a finite number above 0 is accepted`,
		"sla:\n  mean-itl-ms: -1\n":                  `s.yaml:2: mean-itl-ms is "-1"; a finite number above 0 is accepted`,
		"sla:\n  mean-itl-ms: [1]\n":                 `s.yaml:2: mean-itl-ms is a list; a finite number above 0 is accepted`,
		"sla:\n  mean-itl-ms: 1\n  mean_itl_ms: 1\n": `s.yaml:3: mean_itl_ms stands on line 2, too; once is accepted`,
		"sweeps: 1\n":                                `s.yaml:1: unknown key "sweeps"; did you mean sweep?`,
	} {
		if _, err := Parse("s.yaml", []byte(text), sweepKnown()); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
	if _, err := Parse("s.yaml", []byte("sweep:\n  num-workers: 1\n"), known); err == nil ||
		err.Error() != "s.yaml:1: sweep is for a sweep of runs, and this is one; the keys of a single run, or replay sweep, are accepted" {
		t.Error(err)
	}
}
