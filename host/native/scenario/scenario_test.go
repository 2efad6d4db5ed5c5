package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

var known = Known{
	Names:  []string{"num-workers", "extra-engine-args", "report-json", "aic-nextn-accept-rates", "model-name", "parity"},
	Silent: []string{"telemetry-options"},
	Kind: func(name string) Kind {
		switch name {
		case "report-json":
			return Path
		case "extra-engine-args":
			return JSON
		}
		return Text
	},
}

func TestRead(t *testing.T) {
	f, err := Parse("dir/run.yaml", []byte(`# all kinds of values
trace: [a.jsonl, /abs/b.jsonl, "-"]
num-workers: 4
model-name: &name "5"
aic-nextn-accept-rates: [0.8, 0.6]
report-json: out/
parity: true
telemetry-options:
extra-engine-args:
  engine: {block_size: 16, timing_model: {path: p.npz}}
  x: [1, -2.5e3, true, ~, "a\"b", *name]
`), known)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"dir/a.jsonl", "/abs/b.jsonl", "-"}; !reflect.DeepEqual(f.Traces, want) {
		t.Errorf("traces %q, want %q", f.Traces, want)
	}
	got := map[string]string{}
	for _, s := range f.Settings {
		got[fmt.Sprintf("%s:%d:%v", s.Name, s.Line, s.JSON)] = s.Text
	}
	args := got["extra-engine-args:9:true"]
	delete(got, "extra-engine-args:9:true")
	want := map[string]string{
		"num-workers:3:false": "4", "model-name:4:false": "5", "aic-nextn-accept-rates:5:false": "0.8,0.6", "report-json:6:false": "dir/out/", "parity:7:false": "true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var a, b any
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		t.Fatalf("%v in %q", err, args)
	}
	json.Unmarshal([]byte(`{"engine":{"block_size":16,"timing_model":{"path":"dir/p.npz"}},"x":[1,-2500,true,null,"a\"b","5"]}`), &b)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%v, want %v", a, b)
	}
	lines := strings.Split(args, "\n")
	if len(lines) != 11 || !strings.HasPrefix(lines[9], `  "engine":`) || !strings.HasPrefix(lines[10], `  "x":`) {
		t.Errorf("keys are not where they stand in the file:\n%s", args)
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"num-worker: 4\n":                       `run.yaml:1: unknown key "num-worker"; did you mean num-workers?`,
		"\nnum_workers: 4\n":                    `run.yaml:2: unknown key "num_workers"; did you mean num-workers?`,
		"--num-workers: 4\n":                    `run.yaml:1: unknown key "--num-workers"; did you mean num-workers?`,
		"zork: 4\n":                             `run.yaml:1: unknown key "zork"; trace, num-workers, extra-engine-args, report-json, aic-nextn-accept-rates, model-name, parity are accepted`,
		"[a]: 4\n":                              `run.yaml:1: a key is a list; the name of a flag is accepted`,
		"parity: true\n\nparity: true\n":        `run.yaml:3: parity stands on line 1, too; once is accepted`,
		"num-workers: {a: 1}\n":                 `run.yaml:1: num-workers is an object; a single value is accepted`,
		"num-workers: [[1]]\n":                  `run.yaml:1: num-workers has a list in its list; single values are accepted`,
		"trace:\n  a: b\n":                      `run.yaml:2: trace is an object; a single value is accepted`,
		"- a\n":                                 `run.yaml:1: found a list; flags by name, as in "num-workers: 4", are accepted`,
		"hello\n":                               `run.yaml:1: found "hello"; flags by name, as in "num-workers: 4", are accepted`,
		"parity: true\n---\nparity: true\n":     `run.yaml:2: a second document begins here; one is accepted`,
		"parity: [\n":                           `run.yaml:1: not YAML: did not find expected node content`,
		"a: b: c\n":                             `run.yaml: not YAML: mapping values are not allowed in this context`,
		"extra-engine-args: {a: 0x10}\n":        `run.yaml:1: found the number 0x10; one spelt as in JSON is accepted`,
		"extra-engine-args:\n  a: .inf\n":       `run.yaml:2: found the number .inf; one spelt as in JSON is accepted`,
		"extra-engine-args:\n  ? [a]\n  : 1\n":  `run.yaml:2: a key is a list; a name is accepted`,
		"extra-engine-args: &a\n  <<: {b: 1}\n": `run.yaml:2: a key is "<<"; a name is accepted`,
	} {
		if _, err := Parse("run.yaml", []byte(text), known); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "~\n", "num-workers:\n"} {
		if f, err := Parse("run.yaml", []byte(text), known); err != nil || len(f.Settings) > 0 {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

// A small file must not become a large value.
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("model-name: &a0 x\nextra-engine-args:\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  k%d: &a%d [*a%d, *a%d, *a%d]\n", i, i+1, i, i, i)
	}
	if _, err := Parse("run.yaml", []byte(b.String()), known); err == nil || !strings.Contains(err.Error(), "aliases counted") {
		t.Error(err)
	}
	if _, err := Parse("run.yaml", []byte("extra-engine-args: &a {b: *a}\n"), known); err == nil {
		t.Error("a value that is in itself was accepted")
	}
}

// What is written is read as it was.
func TestRoundTrip(t *testing.T) {
	args := `{"engine":{"a":1,"b":-0.5e-7,"c":12345678901234567890,"d":"x: y\n","e":null,"f":true,"g":"true","h":"5","i":[1,[2,"z"],{}],"path":"p q.npz","j":"","k":"\u2028é","l":"~"},"":{}}`
	sections := []Section{{"One", []Entry{
		{Name: "num-workers", Given: true, Text: "4", Plain: true},
		{Name: "model-name", Given: true, Text: "no: #1 "},
		{Name: "aic-nextn-accept-rates", Given: true, Text: "0.8"},
	}}, {"Two", []Entry{
		{Name: "report-json", Given: true, Text: "out/", Kind: Path},
		{Name: "parity", Text: "false"},
		{Name: "extra-engine-args", Given: true, Text: args, Kind: JSON, Inline: []byte(args)},
	}}}
	var b bytes.Buffer
	if err := Write(&b, "a scenario", "/w", []string{"t.jsonl", "-"}, sections); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("/elsewhere/run.yaml", b.Bytes(), known)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if !reflect.DeepEqual(f.Traces, []string{"/w/t.jsonl", "-"}) {
		t.Errorf("%q", f.Traces)
	}
	for _, s := range f.Settings {
		want := map[string]string{"num-workers": "4", "model-name": "no: #1 ", "aic-nextn-accept-rates": "0.8", "report-json": "/w/out/"}[s.Name]
		if s.Name != "extra-engine-args" {
			if s.Text != want {
				t.Errorf("%s is %q, want %q", s.Name, s.Text, want)
			}
			continue
		}
		var got, wanted bytes.Buffer
		if err := json.Compact(&got, []byte(s.Text)); err != nil {
			t.Fatalf("%v: %s", err, s.Text)
		}
		json.Compact(&wanted, []byte(strings.NewReplacer("p q.npz", "/w/p q.npz", `\u2028`, "\u2028").Replace(args)))
		if got.String() != wanted.String() {
			t.Errorf("got  %s\nwant %s\n%s", got.String(), wanted.String(), b.String())
		}
	}
	if len(f.Settings) != 5 || !strings.Contains(b.String(), "\n# parity: false\n") {
		t.Errorf("%+v\n%s", f.Settings, b.String())
	}
}
