package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Every command has a help with its usage, its flags by topic and its exit
// statuses; the program's help names every command.
func TestCommandHelp(t *testing.T) {
	all := invoke(t, t.TempDir(), "--help").stdout
	for _, c := range commands() {
		if !strings.Contains(all, "\n  "+c.name) || !strings.Contains(all, c.summary+"\n") {
			t.Errorf("the help does not tell of %s", c.name)
		}
		if c.flags == nil {
			continue
		}
		for _, flag := range []string{"--help", "-h"} {
			got := invoke(t, t.TempDir(), c.name, flag)
			if got.status != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "Usage: replay "+c.name+" ") || !strings.Contains(got.stdout, "\nExit status") ||
				!strings.Contains(got.stdout, "\nThis program:\n") {
				t.Errorf("%s %s: %+v", c.name, flag, got)
			}
			for _, line := range strings.Split(got.stdout, "\n") {
				if len(line) > helpWidth {
					t.Errorf("%s: %q is longer than %d", c.name, line, helpWidth)
				}
			}
		}
	}
}

func TestCommandBadInput(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"validate", 2, "no trace is given; a trace file is accepted"},
		{"validate none.jsonl", 1, "none.jsonl: no such file"},
		{"validate t.jsonl --trace-formt weka", 2, `unknown flag "--trace-formt"; did you mean --trace-format?`},
		{"validate t.jsonl --frobnicate", 2, `unknown flag "--frobnicate"; replay validate --help lists the flags`},
		{"validate t.jsonl --trace-block-size 0", 1, "--trace-block-size is 0; a whole number from 1 to 2147483647 is accepted"},
		{"validate t.jsonl --max-errors -1", 1, "--max-errors is -1; a whole number of at least 0 is accepted"},
		{"validate t.jsonl t.jsonl", 2, "t.jsonl: is a trace in the format mooncake, which is one file, but 2 are given; want one"},
		{"validate t.jsonl t.jsonl --trace-format mooncake", 2, `2 trace files are given ("t.jsonl", "t.jsonl"); --trace-format mooncake takes exactly one`},
		{"validate empty.jsonl", 1, "empty.jsonl: the file is empty, want at least one row"},
		{"convert", 2, "no trace is given; a trace file is accepted"},
		{"convert t.jsonl", 2, "--output is not given; the path of a file, or - for standard output, is accepted"},
		{"convert t.jsonl --output ./t.jsonl", 2, `--output "./t.jsonl" is the trace itself; another path is accepted`},
		{"convert t.jsonl --output .", 1, "--output: cannot write .: is a directory"},
		{"convert bad.jsonl --output out.jsonl", 1, "bad.jsonl:2: found [], want a JSON object"},
		{"convert t.jsonl --output /dev/full", 1, "cannot write /dev/full: no space left on device"},
		{"diff", 2, "no reports are given; two are accepted"},
		{"diff a.json", 2, `one report is given ("a.json"); two are accepted`},
		{"diff a.json b.json c.json", 2, `3 reports are given ("a.json", "b.json", "c.json"); two are accepted`},
		{"diff none.json none.json", 2, "none.json: no such file; a report that replay --report-json has written is accepted"},
		{"diff t.jsonl t.jsonl", 2, `t.jsonl: has no number "num_requests"; a report that replay --report-json has written is accepted`},
		{"diff --what a b", 2, `unknown flag "--what"; replay diff --help lists the flags`},
		{"completion", 2, "no shell is given; bash or zsh or fish is accepted"},
		{"completion csh", 2, `the shell is "csh"; bash or zsh or fish is accepted`},
		{"t.jsonl --config none.yaml", 1, "none.yaml: no such file; a YAML file with flags by name is accepted"},
		{"t.jsonl --config=", 2, "--config is empty; a path is accepted"},
		{"--config bad.yaml", 1, `bad.yaml:3: unknown key "num-worker"; did you mean num-workers?`},
		{"--config bad.yaml --print-config", 1, `bad.yaml:3: unknown key "num-worker"; did you mean num-workers?`},
		{"--config word.yaml", 1, `word.yaml:2: num-workers is "two"; a whole number is accepted`},
		{"--config zero.yaml", 1, "zero.yaml:2: num-workers is 0; a whole number from 1 to 1048576 is accepted"},
		{"--config zero.yaml --print-config", 1, "zero.yaml:2: num-workers is 0; a whole number from 1 to 1048576 is accepted"},
		{"--config engine.yaml", 1, `engine.yaml:4:5: unknown field "engine.num_gpu_block"; did you mean num_gpu_blocks?`},
		{"--config router.yaml", 1, `router.yaml:5: unknown field "overlap_score_weigh"; did you mean overlap_score_weight?`},
		{"--config later.yaml", 2, "later.yaml:2: telemetry-callback is not built yet (telemetry told to a function); leave it out"},
		{"--config only.yaml", 1, `only.yaml:1: unknown key "print-config"; `},
		{"--config both.yaml", 2, `both.yaml:2: request-rate is for synthetic workloads, and "t.jsonl" is a trace, which has times of its own; --arrival-speedup-ratio or --replay-concurrency is accepted`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, "t.jsonl", one)
			put(t, dir, "empty.jsonl", "")
			put(t, dir, "bad.jsonl", one+"[]\n")
			put(t, dir, "bad.yaml", "trace: t.jsonl\n\nnum-worker: 4\n")
			put(t, dir, "word.yaml", "trace: t.jsonl\nnum-workers: two\n")
			put(t, dir, "zero.yaml", "trace: t.jsonl\nnum-workers: 0\n")
			put(t, dir, "engine.yaml", "trace: t.jsonl\nextra-engine-args:\n  engine:\n    num_gpu_block: 4\n")
			put(t, dir, "router.yaml", "trace: t.jsonl\nrouter-mode: kv_router\n\nrouter-config:\n  overlap_score_weigh: 4\n")
			put(t, dir, "later.yaml", "trace: t.jsonl\ntelemetry-callback: x\n")
			put(t, dir, "only.yaml", "print-config: true\n")
			put(t, dir, "both.yaml", "trace: t.jsonl\nrequest-rate: 4\n")
			before := tree(t, dir)
			got := invoke(t, dir, strings.Fields(c.args)...)
			if strings.HasSuffix(c.want, "; ") { // a list of flags follows
				if got.status != c.status || !strings.HasPrefix(got.stderr, "replay: "+c.want) {
					t.Errorf("%+v", got)
				}
			} else {
				expect(t, got, c.status, c.want)
			}
			if after := tree(t, dir); after != before {
				t.Errorf("files changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one+"[]\n"+one+`{"timestamp":9,"input_length":10,"hash_ids":[1]}`+"\n{}\n")
	got := invoke(t, dir, "validate", "t.jsonl")
	const sentences = `replay: t.jsonl:2: found [], want a JSON object
replay: t.jsonl:4: field "output_length" is missing, want an integer from 0
replay: t.jsonl:5: field "hash_ids" is missing, want a list of integers from 0 to 18446744073709551615
replay: "t.jsonl": 3 bad rows; the trace cannot be replayed
`
	if got.status != 1 || got.stderr != sentences || !strings.Contains(got.stdout, "\nBad rows         3, left out of all that follows\n") {
		t.Errorf("%+v", got)
	}
	got = invoke(t, dir, "validate", "t.jsonl", "--max-errors", "1", "--json")
	var d struct {
		Valid    bool
		Requests int
		BadRows  int `json:"bad_rows"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || d.Valid || d.Requests != 2 || d.BadRows != 3 ||
		!strings.Contains(got.stderr, "replay: 2 more bad rows are not named; --max-errors 0 names all\n") || got.status != 1 {
		t.Errorf("%v: %+v", err, got)
	}
	if !strings.Contains(got.stdout, `"sessions": 2,`) || !strings.Contains(got.stdout, `"block_size": 512,`) {
		t.Errorf("%+v", got)
	}
	put(t, dir, "named.jsonl", strings.ReplaceAll(one, "{", `{"session_id":"s",`)+"[]\n")
	if got := invoke(t, dir, "validate", "named.jsonl"); got.status != 1 || !strings.Contains(got.stdout, "\nSessions         1, of one request each\n") {
		t.Errorf("%+v", got)
	}
	put(t, dir, "none.jsonl", "[]\n")
	put(t, dir, "none.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\n2023-11-16 18:17:03,5,1\n")
	for _, name := range []string{"none.jsonl", "none.csv"} {
		if got := invoke(t, dir, "validate", name); got.status != 1 || got.stdout != "" || !strings.HasSuffix(got.stderr, "1 bad rows; the trace cannot be replayed\n") {
			t.Errorf("%+v", got)
		}
	}
	put(t, dir, "good.jsonl", strings.ReplaceAll(one, "10", "900"))
	if got := invoke(t, dir, "validate", "good.jsonl", "--trace-block-size", "1000"); got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "Requests         1\n") {
		t.Errorf("%+v", got)
	}
	if got := invoke(t, dir, "validate", "--json", "good.jsonl"); got.status != 1 || !strings.Contains(got.stdout, `"valid": false`) {
		t.Errorf("%+v", got)
	}
	put(t, dir, "applied.jsonl", conversation)
	if got := invoke(t, dir, "validate", "applied.jsonl"); got.status != 0 || !strings.Contains(got.stdout, "\nTo replay        --replay-concurrency N is needed\n") {
		t.Errorf("%+v", got)
	}
}

// T9: a trace whose first request has no time and whose second has 100 arrives
// at 0 and 100, where the format allows that. Mooncake does not, and the
// reference refuses such a trace (spec: peers §2.2, run on release 1.6.1).
func TestT9FirstTimeMissing(t *testing.T) {
	dir := t.TempDir()
	rows := `{"input_length":10,"output_length":2,"hash_ids":[1]}` + "\n" + `{"timestamp":100,"input_length":10,"output_length":2,"hash_ids":[2]}` + "\n"
	put(t, dir, "none.jsonl", rows)
	put(t, dir, "negative.jsonl", strings.NewReplacer(`{"input`, `{"timestamp":-50,"input`, "100", "50").Replace(rows))
	record := func(id, times string) string {
		return `{"schema":"dynamo.request.trace.v1","event_type":"request_end",` + strings.Replace(times, "}", `,"request_id":"`+id+`","output_tokens":2,"replay":{"trace_block_size":64,"input_length":10,"input_sequence_hashes":[1]}}}`, 1) + "\n"
	}
	put(t, dir, "dynamo.jsonl", record("a", `"event_time_unix_ms":1000,"request":{"total_time_ms":100}`)+
		record("b", `"event_time_unix_ms":1200,"request":{"request_received_ms":1000,"total_time_ms":200}`))
	const sentence = `none.jsonl:1: field "timestamp" is missing on the first turn of session request_1, want one unless a concurrency cap starts the sessions`
	expect(t, invoke(t, dir, "none.jsonl"), 1, sentence)
	if got := invoke(t, dir, "validate", "none.jsonl"); got.status != 1 || !strings.HasPrefix(got.stderr, "replay: "+sentence+"\n") {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		args string
		want []float64
	}{
		{"none.jsonl --replay-concurrency 2", []float64{0, 0}},
		{"negative.jsonl", []float64{0, 100}},
		{"dynamo.jsonl", []float64{0, 100}},
		{"dynamo.jsonl --replay-concurrency 2", []float64{0, 0}},
	} {
		if got := invoke(t, dir, append(strings.Fields(c.args), "--no-table", "--report-jsonl", "r.jsonl")...); got.status != 0 {
			t.Fatalf("%s: %+v", c.args, got)
		}
		text, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var r struct {
				Arrival float64 `json:"arrival_time_ms"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Arrival)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.args, got, c.want)
		}
	}
}

// A replay of what was converted gives the report of a replay of the trace.
func TestConvertedTraceGivesTheReport(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, "applied.jsonl", strings.Repeat(conversation, 5))
	put(t, dir, "delta.jsonl", `{"session_id": "a", "timestamp": 3, "input_length": 600, "output_length": 50, "hash_ids": [1, 2]}
{"timestamp": 7.25, "input_length": 600, "output_length": 50, "hash_ids": [1, 2]}
{"session_id": "a", "delay": 1000, "input_length": 90, "output_length": 50, "hash_ids": [3]}
`)
	put(t, dir, "plain.jsonl", `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":90,"request":{"request_id":"b","output_tokens":9,"request_received_ms":40,"replay":{"trace_block_size":32,"input_length":60,"input_sequence_hashes":[7,8]}}}
{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":80,"request":{"request_id":"a","output_tokens":9,"request_received_ms":20,"replay":{"trace_block_size":32,"input_length":64,"input_sequence_hashes":[7,9]}}}
`)
	for _, c := range []struct{ trace, before, after, said string }{
		{filepath.Join(examples, "conversation-2k.jsonl"), "", "", ""},
		{filepath.Join(examples, "conversation-2k.jsonl"), "--replay-concurrency 20", "--replay-concurrency 20", ""},
		{filepath.Join(examples, "table.csv"), "", "", `table.csv" is read as burstgpt`},
		{"applied.jsonl", "--replay-concurrency 2", "--replay-concurrency 2", "replay the rows with --replay-concurrency N, which they do not say"},
		{"delta.jsonl", "--trace-format mooncake-delta", "--trace-format mooncake-delta", "replay the rows with --trace-format mooncake-delta, which they do not say"},
		{"plain.jsonl", "", "--trace-block-size 32", "replay the rows with --trace-block-size 32, which they do not say"},
	} {
		for _, name := range []string{"rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst"} {
			format := []string{}
			if strings.Contains(c.before, "--trace-format") {
				format = strings.Fields(c.before)
			}
			got := invoke(t, dir, append([]string{"convert", c.trace, "--output", name}, format...)...)
			if got.status != 0 || got.stdout != "" || !strings.Contains(got.stderr, c.said) || c.said == "" && got.stderr != "" {
				t.Fatalf("%s: %+v", c.trace, got)
			}
			reports := []string{}
			for _, run := range []struct{ trace, flags string }{{c.trace, c.before}, {name, c.after}} {
				args := append([]string{run.trace, "--num-workers", "3", "--no-table", "--report-json", "r.json"}, strings.Fields(run.flags)...)
				if got := invoke(t, dir, args...); got.status != 0 {
					t.Fatalf("%+v", got)
				}
				text, err := os.ReadFile(filepath.Join(dir, "r.json"))
				if err != nil {
					t.Fatal(err)
				}
				reports = append(reports, timeless(string(text)))
			}
			if reports[0] != reports[1] {
				t.Errorf("%s as %s: reports differ:\n%s\n%s", c.trace, name, reports[0], reports[1])
			}
		}
	}
	got := invoke(t, dir, "convert", "plain.jsonl", "--output", "-")
	if want, err := os.ReadFile(filepath.Join(dir, "rows.jsonl")); err != nil || got.stdout != string(want) {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	for _, run := range [][]string{{"a.json"}, {"b.json", "--num-workers", "2"}, {"c.json", "--sla-e2e-ms", "5"}, {"d.json"}} {
		if got := invoke(t, dir, append([]string{"t.jsonl", "--no-table", "--report-json"}, run...)...); got.status != 0 {
			t.Fatalf("%+v", got)
		}
	}
	if got := invoke(t, dir, "diff", "a.json", "d.json"); got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, " values are equal\n") {
		t.Errorf("%+v", got)
	}
	got := invoke(t, dir, "diff", "a.json", "b.json")
	if got.status != 1 || got.stderr != "" || !strings.Contains(got.stdout, "decode_worker_seconds") || !strings.Contains(got.stdout, "+100.00 %") || strings.Contains(got.stdout, "mean_ttft_ms") {
		t.Errorf("%+v", got)
	}
	if got := invoke(t, dir, "diff", "a.json", "b.json", "--all"); got.status != 1 || !strings.Contains(got.stdout, "mean_ttft_ms") {
		t.Errorf("%+v", got)
	}
	got = invoke(t, dir, "diff", "a.json", "c.json")
	const only = `replay: only c.json has "goodput_completed_requests", "goodput_output_throughput_tok_s", "goodput_request_throughput_rps"` + "\n"
	if got.status != 1 || got.stderr != only {
		t.Errorf("%+v", got)
	}
	got = invoke(t, dir, "diff", "--json", "a.json", "b.json")
	var doc struct{ Equal bool }
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.status != 1 || doc.Equal {
		t.Errorf("%v: %+v", err, got)
	}
}

// complete asks bash what it would complete words with.
func complete(t *testing.T, dir string, words ...string) []string {
	t.Helper()
	script := invoke(t, dir, "completion", "bash")
	if script.status != 0 || script.stderr != "" {
		t.Fatalf("%+v", script)
	}
	put(t, dir, "completion.bash", script.stdout)
	cmd := exec.Command("bash", "--norc", "-c", `source completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _replay; printf '%s\n' "${COMPREPLY[@]}"`, "bash")
	cmd.Args = append(cmd.Args, append([]string{"replay"}, words...)...)
	cmd.Dir = dir
	got := finish(t, cmd)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("%q: %+v", words, got)
	}
	return strings.Fields(got.stdout)
}

func TestBashCompletion(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	put(t, dir, "trace.jsonl", one)
	put(t, dir, "tiny.csv", one)
	for _, c := range []struct {
		words []string
		want  string // all of it, or with "... " what is in it
	}{
		{[]string{"--trace-f"}, "--trace-format"},
		{[]string{"--trace-format", ""}, "mooncake mooncake-delta agentic_mooncake applied_compute_agentic dynamo weka azure burstgpt"},
		{[]string{"--trace-format", "a"}, "agentic_mooncake applied_compute_agentic azure"},
		{[]string{"--trace-format", "=", "w"}, "weka"},
		{[]string{"--engine-impl", "="}, "fast plain"},
		{[]string{"--engine-impl", ""}, "fast plain"},
		{[]string{"--num-workers", ""}, ""},
		{[]string{"--report-json", "t"}, "trace.jsonl tiny.csv"},
		{[]string{"t"}, "trace.jsonl tiny.csv"},
		{[]string{"trace.jsonl", "--sla-t"}, "--sla-ttft-ms"},
		{[]string{"--parity", "t"}, "trace.jsonl tiny.csv"},
		{[]string{"va"}, "validate"},
		{[]string{"validate", "--ma"}, "--max-errors"},
		{[]string{"validate", "--num"}, ""},
		{[]string{"validate", "--trace-format", "b"}, "burstgpt"},
		{[]string{"validate", "ti"}, "tiny.csv"},
		{[]string{"convert", "tiny.csv", "--output", "tr"}, "trace.jsonl"},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"diff", "--a"}, "--all"},
		{[]string{"serve", "t"}, ""},
	} {
		got := complete(t, dir, c.words...)
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", c.words, got, want)
		}
	}
	first := complete(t, dir, "")
	for _, word := range []string{"diff", "validate", "convert", "completion", "serve", "trace.jsonl"} {
		if !slices.Contains(first, word) {
			t.Errorf("%s is not among %q", word, first)
		}
	}
}

func names(f *pflag.FlagSet) []string {
	var list []string
	f.VisitAll(func(flag *pflag.Flag) { list = append(list, flag.Name) })
	return list
}

// The other scripts name every flag, and their shells read them, where they are
// there.
func TestOtherCompletions(t *testing.T) {
	dir := t.TempDir()
	for shell, flag := range map[string]string{"bash": "--%", "zsh": "--%", "fish": "-l % "} {
		got := invoke(t, dir, "completion", shell)
		if got.status != 0 {
			t.Fatalf("%+v", got)
		}
		for _, g := range flagGroups(&options{}) {
			for _, name := range names(g.flags) {
				if !strings.Contains(got.stdout, strings.ReplaceAll(flag, "%", name)) {
					t.Errorf("%s: no --%s", shell, name)
				}
			}
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		put(t, dir, "script", got.stdout)
		cmd := exec.Command(shell, "-n", "script")
		cmd.Dir = dir
		if read := finish(t, cmd); read.status != 0 || read.stderr != "" {
			t.Errorf("%s: %+v", shell, read)
		}
	}
}
