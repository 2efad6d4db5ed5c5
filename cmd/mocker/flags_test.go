package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// referenceFlag is a flag of the reference's own parser.
type referenceFlag struct {
	Options []string
	Kind    string
	Default *string
	Choices []string
	Env     *string
}

// variables that the reference reads without naming them in its help.
var unnamed = map[string]string{
	"discovery-backend": "DYN_DISCOVERY_BACKEND", "request-plane": "DYN_REQUEST_PLANE",
	"response-plane": "DYN_RESPONSE_PLANE", "event-plane": "DYN_EVENT_PLANE",
}

// Every flag of the reference is there, with its spellings, its default, its
// choices and its variable.
func TestReferenceFlags(t *testing.T) {
	file, err := os.Open("testdata/reference-flags.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	values, seen := map[string]*spec{}, map[string]bool{}
	for _, topic := range topics() {
		for _, s := range topic.table {
			values[s.name] = &s
		}
	}
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var want referenceFlag
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		s := find(values, want.Options[0])
		if s == nil {
			t.Errorf("%s is missing", want.Options[0])
			continue
		}
		seen[s.name] = true
		for _, option := range want.Options {
			if !spelt(s, strings.TrimPrefix(option, "--")) {
				t.Errorf("--%s cannot be spelt %s", s.name, option)
			}
		}
		if want.Kind == "off" {
			continue // the other half of a toggle
		}
		def := ""
		if want.Default != nil {
			def = *want.Default
		}
		if def != s.def && !(s.kind == on && def == "false") && !(s.name == "disaggregation-mode" && s.def == "agg") {
			t.Errorf("--%s has the default %q, want %q", s.name, s.def, def)
		}
		if want.Choices != nil && !slices.Equal(want.Choices, s.choices) {
			t.Errorf("--%s has the choices %q, want %q", s.name, s.choices, want.Choices)
		}
		env := unnamed[s.name]
		if want.Env != nil {
			env = *want.Env
		}
		if env != s.env {
			t.Errorf("--%s has the variable %q, want %q", s.name, s.env, env)
		}
	}
	if n != 104 {
		t.Errorf("%d flags, want 104", n)
	}
	ours := []string{"perf-grid", "grid-dir", "http", "default-output-tokens", "seed", "log-level", "log-format", "drain-timeout", "report-json"}
	for name := range values {
		if !seen[name] && !slices.Contains(ours, name) && !strings.HasPrefix(name, "fault-") {
			t.Errorf("--%s is not the reference's", name)
		}
	}
}

func find(values map[string]*spec, option string) *spec {
	name := strings.TrimPrefix(option, "--")
	if s := values[name]; s != nil {
		return s
	}
	return values[strings.TrimPrefix(name, "no-")]
}

func spelt(s *spec, option string) bool {
	names := append(slices.Clone(s.aliases), s.name, s.legacy)
	if s.kind == toggle {
		option = strings.TrimPrefix(option, "no-")
	}
	return slices.Contains(names, option)
}

// built is what a command line comes to, "" if it can be served.
func built(t *testing.T, args ...string) string {
	t.Helper()
	o, err := parse(args)
	switch {
	case err != nil || o.help:
	case !o.given("http"):
		_, err = o.behind(io.Discard)
	default:
		if _, err = o.address(); err == nil {
			_, err = o.build(io.Discard)
		}
	}
	if err == nil {
		return ""
	}
	if _, ok := err.(usageError); !ok {
		t.Errorf("%q: %v is no usage error", args, err)
	}
	return err.Error()
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := write("bad.jsonl", `{"output_token_ids":[1]}`)
	engine := write("engine.json", `{"engine":{"block_size":0}}`)
	bootstrap := write("bootstrap.json", `{"dynamo":{"bootstrap_port":7}}`)
	policy := write("policy.yaml", "a: 1\n")
	prompts := write("prompts.json", `{"engine":{"worker_type":"prefill"}}`)
	for _, c := range []struct {
		args string
		want string
	}{
		{"--num-wrokers 2", `unknown flag "--num-wrokers"; did you mean --num-workers?`},
		{"-x", `unknown flag "-x"; mocker --help lists the flags`},
		{"trace", `"trace" stands without a flag; mocker --help lists the flags`},
		{"--num-workers x", `--num-workers is "x"; a whole number is accepted`},
		{"--num-workers", `--num-workers has no value; a whole number is accepted`},
		{"--num-workers 0", `--num-workers is 0; a whole number from 1 to 1048576 is accepted`},
		{"--speedup-ratio nan", `--speedup-ratio is "nan"; a finite number is accepted`},
		{"--speedup-ratio=-1", `--speedup-ratio is -1; a finite number of at least 0 is accepted`},
		{"--stagger-delay=-3", `--stagger-delay is -3; -1, 0 or a positive number is accepted`},
		{"--startup-time=-1", `--startup-time is -1; a finite number of at least 0 is accepted`},
		{"--engine-type foo", `--engine-type is "foo"; vllm or sglang or trtllm is accepted`},
		{"--block-size 0", `--block-size is 0; a whole number of at least 1 is accepted`},
		{"--block-size 1", `--block-size is 1; a whole number of at least 2 is accepted for backend vllm`},
		{"--max-num-seqs 0", `--max-num-seqs is 0; a whole number of at least 1 (no limit) is accepted`},
		{"--data-parallel-size 0", `--data-parallel-size is 0; a whole number of at least 1 is accepted`},
		{"--preemption-mode x", `--preemption-mode is "x"; lifo or fifo is accepted`},
		{"--engine-type sglang --no-enable-chunked-prefill", `--no-enable-chunked-prefill is false; true is accepted for backend sglang`},
		{"--engine-type sglang --block-size 3", `--block-size is 3; a divisor of chunked_prefill_size 8192 is accepted`},
		{"--engine-type sglang --block-size 8 --sglang-page-size 4", `--sglang-page-size is 4 and --block-size is 8; one of them, or the same, is accepted`},
		{"--engine-type sglang --sglang-schedule-policy x", `--sglang-schedule-policy is "x"; fifo or lpm or fcfs is accepted`},
		{"--ais-nextn 9", `--ais-nextn is 9; a whole number from 1 to 5 is accepted`},
		{"--aic-nextn 9", `--aic-nextn is 9; a whole number from 1 to 5 is accepted`},
		{"--aic-nextn 1 --ais-nextn 2", `--ais-nextn is also given as --aic-nextn; one of the two spellings is accepted`},
		{"--ais-system x --aic-system y", `--ais-system is also given as --aic-system; one of the two spellings is accepted`},
		{"--ais-nextn-accept-rates 0.5", `--ais-nextn-accept-rates is "0.5"; null is accepted without aic_nextn`},
		{"--num-host-blocks 4", `--num-host-blocks needs the bytes of KV cache per token; --kv-bytes-per-token, or --model-path with a config.json, is accepted`},
		{"--host-offload-d2h-bandwidth-gbps 3", `--host-offload-d2h-bandwidth-gbps is given without --num-host-blocks; both or neither are accepted`},
		{"--kv-bytes-per-token 0 --num-host-blocks 4", `--kv-bytes-per-token is 0; a whole number of at least 1 is accepted`},
		{"--planner-profile-data a --perf-grid b", `--perf-grid says how long passes take, and so does --planner-profile-data; one is accepted`},
		{"--extra-engine-args " + engine, engine + `:1:25: engine.block_size is the number 0; a whole number of at least 1 or null is accepted`},
		{"--extra-engine-args " + bootstrap, `--extra-engine-args: dynamo.bootstrap_port is set, which is for workers behind a Dynamo frontend; with --http, null is accepted`},
		{`--reasoning {"a":1}`, `--reasoning is "{\"a\":1}"; an object such as {"start_thinking_token_id": 123, "end_thinking_token_id": 456, "thinking_ratio": 0.6} is accepted`},
		{`--reasoning {"start_thinking_token_id":1,"end_thinking_token_id":2}`, `--reasoning: thinking_ratio is missing; an object such as {"start_thinking_token_id": 123, "end_thinking_token_id": 456, "thinking_ratio": 0.6} is accepted`},
		{`--reasoning {"start_thinking_token_id":1,"end_thinking_token_id":2,"thinking_ratio":2}`, `--reasoning: thinking_ratio is 2; a number from 0 to 1 is accepted`},
		{"--response-replay-trace-path " + bad, `--response-replay-trace-path: ` + bad + `: line 1: output_length is missing; the number of output_token_ids is accepted`},
		{"--model-path /no/such", `--model-path: /no/such: no such file or directory; a directory of a model on this machine is accepted`},
		{"--default-output-tokens 0", `--default-output-tokens is 0; a whole number of at least 1 is accepted`},
		{"--drain-timeout=-1", `--drain-timeout is -1; a number from 0 to 1e9 is accepted`},
		{"--fault-error-rate 2", `--fault-error-rate is 2; a number from 0 to 1 is accepted`},
		{"--fault-error-status 200", `--fault-error-status is 200; a status from 400 to 599 is accepted`},
		{"--fault-stall-ms=-1", `--fault-stall-ms is -1; a number from 0 to 1e9 is accepted`},
		{"--http 1.2.3.4:", `--http is "1.2.3.4:"; an address such as 127.0.0.1:8000 is accepted`},
		{"--router-temperature 1", `--router-temperature is for --router-mode kv; with another mode, leave it out`},
		{"--router-mode kv --router-temperature=-1", `--router-temperature is -1; a finite number of at least 0 is accepted`},
		{"--router-mode direct", `--router-mode direct is not built yet (the caller names a worker, or workers differ); round-robin or random or power-of-two or least-loaded or kv is accepted`},
		{"--router-mode kv --router-policy-config " + policy, `--router-policy-config: ` + policy + `: line 1: unknown field "a"; known fields here are `},
		{"--router-mode kv --router-prefill-load-model ais", `--router-prefill-load-model predicts how long prompts take, which only a grid tells; none, or --perf-grid, --ais-perf-model or --ais-perf-config with it, is accepted`},
		{"--router-prefill-load-model ais", `--router-prefill-load-model is for --router-mode kv; with another mode, leave it out`},
		{"--ais-perf-model", `--ais-perf-model needs the model; --model-path is accepted with it`},
		{"--ais-perf-model --perf-grid g.json", `--ais-perf-model says how long passes take, and so does --perf-grid; one is accepted`},
		{"--ais-perf-config {} --ais-tp-size 2", `--ais-perf-config and --ais-tp-size are given; one of the two ways is accepted`},
		{"--ais-perf-config {} --aic-perf-model", `--ais-perf-config and --aic-perf-model are given; one of the two ways is accepted`},
		{"--ais-perf-config {", `--ais-perf-config is "{"; a JSON object with backend, system and model, or the path of such a file, is accepted`},
		{"--ais-perf-config none.json", `--ais-perf-config: none.json: no such file or directory; a JSON object with backend, system and model, or the path of such a file, is accepted`},
		{`--ais-perf-config {"backend":"vllm"}`, `--ais-perf-config has no system; a text is accepted`},
		{"--ais-perf-model --model-path /m --ais-tp-size 0", `--ais-tp-size is 0; a whole number of at least 1 is accepted`},
		{"--ais-perf-model --model-path /m --data-parallel-size 2", `--data-parallel-size is 2; 1 is accepted, as --ais-attention-dp-size says`},
		{"--grid-dir=", `--grid-dir is ""; a path is accepted`},
		{"--ais-perf-model --model-path m --grid-dir none", `--ais-perf-model: --grid-dir: cannot open none: no such file or directory; a directory with grids is accepted`},
		{"--gpu-memory-utilization 0.5", `--gpu-memory-utilization is not built yet (KV capacity by a share of memory; --num-gpu-blocks-override says it); leave it out`},
		{"--disaggregation-mode prefill", `--disaggregation-mode is for workers behind a Dynamo frontend; with --http, leave it out`},
		{"--is-decode-worker", `--is-decode-worker is for workers behind a Dynamo frontend; with --http, leave it out`},
		{"--zmq-kv-events-ports 5,x", `--zmq-kv-events-ports is "5,x"; whole numbers from 1 to 65535 separated by commas is accepted`},
		{"--zmq-kv-events-ports 5,6", `--zmq-kv-events-ports is for workers behind a Dynamo frontend; with --http, leave it out`},
		{"--discovery-backend file", `--discovery-backend is for workers behind a Dynamo frontend; with --http, leave it out`},
		{"--no-kv-events", `--no-kv-events is not built yet (routing without KV events); true is accepted`},
	} {
		got := built(t, append([]string{"--http", ":0"}, strings.Fields(c.args)...)...)
		if got != c.want && !(strings.HasPrefix(got, c.want) && strings.Contains(c.args, "policy.yaml")) {
			t.Errorf("%s\ngot  %s\nwant %s", c.args, got, c.want)
		}
	}
	for args, want := range map[string]string{
		"--discovery-backend kubernetes":                                                              `--discovery-backend kubernetes is not built yet; --discovery-backend etcd or file or mem is accepted; or --http 127.0.0.1:8000 serves OpenAI's API without any frontend`,
		"--discovery-backend file --response-plane quic":                                              `--response-plane quic is not built yet; --response-plane tcp is accepted`,
		"--request-plane http":                                                                        `--request-plane is "http"; nats or tcp is accepted`,
		"--request-plane nats --endpoint a.*.c":                                                       `the workers' name "*" cannot be a subject of NATS; a name without *, > and spaces is accepted`,
		"--discovery-backend file --fault-seed 1":                                                     `--fault-seed is for --http; without it, leave it out`,
		"--discovery-backend file --router-temperature 1":                                             `--router-temperature is given without --router-mode, which tells the frontend of a router; both or neither are accepted`,
		"--discovery-backend file --router-mode kv --router-conditional-disagg":                       `--router-conditional-disagg is not built yet (disaggregated serving without a frontend); false is accepted`,
		"--discovery-backend file --endpoint a.b":                                                     `--endpoint is "a.b"; a text such as dyn://dynamo.backend.generate is accepted`,
		"--discovery-backend file --model-path /no/such":                                              `--model-path: /no/such/config.json: no such file or directory`,
		"--discovery-backend file --num-workers 0":                                                    `--num-workers is 0; a whole number from 1 to 1048576 is accepted`,
		"--discovery-backend file --is-prefill-worker --is-decode-worker":                             `--is-prefill-worker and --is-decode-worker are given; one of the two is accepted`,
		"--discovery-backend file --is-prefill-worker --disaggregation-mode agg":                      `--is-prefill-worker and --disaggregation-mode are given; the latter alone is accepted`,
		"--discovery-backend file --disaggregation-mode prefill --bootstrap-ports 1,2":                `--bootstrap-ports names 2 ports and --num-workers is 1; a port for each worker is accepted`,
		"--discovery-backend file --zmq-replay-ports 5":                                               `--zmq-replay-ports is given without --zmq-kv-events-ports; both, or the latter alone, are accepted`,
		"--discovery-backend file --num-workers 2 --zmq-kv-events-ports 5":                            `--zmq-kv-events-ports names 1 ports and --num-workers is 2; a port for each worker is accepted`,
		"--discovery-backend file --data-parallel-size 3 --zmq-kv-events-ports 65534":                 `--zmq-kv-events-ports names 65534, and each of the 3 ranks needs a port from there on; 65533 at most is accepted`,
		"--discovery-backend file --data-parallel-size 2 --num-workers 2 --zmq-kv-events-ports 70,71": `--zmq-kv-events-ports and --zmq-replay-ports need port 71 twice, as each of the 2 ranks of a worker has one of its own; ports that far from each other are accepted`,
		"--discovery-backend file --bootstrap-ports 0":                                                `--bootstrap-ports is "0"; whole numbers from 1 to 65535 separated by commas is accepted`,
		"--discovery-backend file --disaggregation-mode prefill --kv-transfer-bandwidth=-1":           `--kv-transfer-bandwidth is -1; a finite number of at least 0 is accepted`,
		"--discovery-backend file --extra-engine-args " + prompts:                                     prompts + `:1:26: engine.worker_type is the text "prefill"; "aggregated" is accepted in --extra-engine-args; --disaggregation-mode says what the workers do`,
	} {
		if got := built(t, strings.Fields(args)...); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", args, got, want)
		}
	}
}

// What can be served.
func TestAccepted(t *testing.T) {
	for _, args := range []string{
		"", "--engine-type sglang --sglang-page-size 16 --sglang-schedule-policy fcfs", "--engine-type trtllm --trtllm-capacity-scheduler-policy guaranteed_no_evict",
		"--num-host-blocks 10 --kv-bytes-per-token 1000 --host-offload-h2d-bandwidth-gbps .5", "--aic-nextn 2 --aic-nextn-accept-rates 0.8,0.5 --aic-mtp-seed +7",
		"--no-enable-prefix-caching --max-model-len 4096 --stagger-delay -1 --num-workers 3 --startup-time 2", "--disaggregation-mode agg --discovery-backend etcd --kv-events",
		"--router-mode kv --router-queue-threshold 0.5 --router-queue-policy wspt --no-track-active-blocks --router-event-threads 2", "--router-mode kv --load-aware",
		"--extra-engine-args ../../examples/engine-small-gpu.json", "--perf-grid ../../examples/grid-example-gpu.json --block-size 16", "--is-prefill-worker=false --request-plane tcp",
		"--router-mode kv --router-prefill-load-model ais --perf-grid ../../examples/grid-example-gpu.json --block-size 16",
	} {
		if got := built(t, append([]string{"--http", "8000"}, strings.Fields(args)...)...); got != "" {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// Variables stand in for flags, which win.
func TestEnvironment(t *testing.T) {
	t.Setenv("DYN_ROUTER_MODE", "kv")
	t.Setenv("DYN_ROUTER_TEMPERATURE", "0.5")
	t.Setenv("DYN_ROUTER_TRACK_ACTIVE_BLOCKS", "off")
	t.Setenv("DYN_ROUTER_EVENT_THREADS", "")
	t.Setenv("DYN_DISCOVERY_BACKEND", "file") // means nothing here, and nobody asked on the command line
	t.Setenv("DYN_LOG", "debug,dynamo_runtime=warn")
	o, err := parse([]string{"--http", ":0", "--router-temperature", "2"})
	if err != nil {
		t.Fatal(err)
	}
	_, rc, _, err := o.router("m", config.Engine{BlockSize: 16})
	if err != nil || rc.Temperature != 2 || rc.TrackActiveBlocks || rc.EventThreads != 4 || o.text("log-level") != "debug" {
		t.Errorf("%v, %+v, log %s", err, rc, o.text("log-level"))
	}
	t.Setenv("DYN_ROUTER_TEMPERATURE", "warm")
	if got := built(t, "--http", ":0"); got != `DYN_ROUTER_TEMPERATURE is "warm"; a finite number is accepted` {
		t.Error(got)
	}
	t.Setenv("DYN_ROUTER_TEMPERATURE", "")
	t.Setenv("DYN_MOCKER_KV_CACHE_TRACE", "1")
	if got := built(t, "--http", ":0"); got != `DYN_MOCKER_KV_CACHE_TRACE is "1"; traces of the KV cache are not built yet, leave it out` {
		t.Error(got)
	}
}

// The router that a card tells of, as the reference's cards have it.
func TestAdvertised(t *testing.T) {
	text, err := os.ReadFile("testdata/router-cards.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]string
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) != 10 {
		t.Fatalf("%v, %d cases", err, len(cases))
	}
	for args, want := range cases {
		o, err := parse(append([]string{"--discovery-backend", "file"}, strings.Fields(args)...))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		got, err := o.advertised("m")
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", args, err, got, want)
		}
	}
}

// Where workers are found.
func TestEndpoint(t *testing.T) {
	t.Setenv("DYN_DISCOVERY_BACKEND", "file")
	t.Setenv("DYN_NAMESPACE", "space")
	t.Setenv("DYN_NAMESPACE_WORKER_SUFFIX", "x")
	t.Setenv("DYN_TCP_RPC_PORT", "7")
	for args, want := range map[string][3]string{
		"": {"space-x", "backend", "generate"}, "--endpoint dyn://a.b.c": {"a", "b", "c"}, "--endpoint a.b.c": {"a", "b", "c"},
	} {
		o, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		d, err := o.behind(io.Discard)
		if got := [3]string{d.Namespace, d.Component, d.Endpoint}; err != nil || got != want || o.at.bind != "127.0.0.1" || o.at.port != "7" || o.at.eventHost != "127.0.0.1" {
			t.Errorf("%s: %v, %v, %s:%s", args, err, got, o.at.bind, o.at.port)
		}
	}
}

// Addresses are on the loopback interface unless another is asked for.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"8000": "127.0.0.1:8000", ":8000": "127.0.0.1:8000", "0.0.0.0:1": "0.0.0.0:1", "[::]:1": "[::]:1", "localhost:http": "localhost:http",
	} {
		o, err := parse([]string{"--http", text})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.address(); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{":99999", "8000x", "127.0.0.1:", "a:b:c"} {
		var errs bytes.Buffer
		if code := run([]string{"--http", text}, io.Discard, &errs); code != 2 || !strings.HasSuffix(errs.String(), "an address such as 127.0.0.1:8000 is accepted\n") {
			t.Errorf("%s: status %d, %s", text, code, errs.String())
		}
	}
}

// Every variable that is read is in the help.
func TestVariables(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--help"}, &out, &errs); code != 0 {
		t.Fatalf("status %d, %s", code, errs.String())
	}
	n := 0
	for _, pattern := range []string{"*.go", "../../host/native/live/*/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, name := range regexp.MustCompile(`"((DYN|ETCD|NATS)_[A-Z0-9_]+)"`).FindAllSubmatch(text, -1) {
				n++
				if !regexp.MustCompile(`\b`+string(name[1])+`\b`).Match(out.Bytes()) && !hidden(string(name[1])) {
					t.Errorf("%s reads %s, which is not in the help", path, name[1])
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d variables", n)
	}
}

// hidden reports whether a variable stands in for a flag that is not built yet.
func hidden(name string) bool {
	for _, topic := range topics() {
		for _, s := range topic.table {
			if s.env == name && s.later != "" {
				return true
			}
		}
	}
	return false
}

func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--help"}, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("status %d, %s", code, errs.String())
	}
	for _, topic := range topics() {
		for _, s := range topic.table {
			if !strings.Contains(out.String(), s.name) {
				t.Errorf("the help lacks --%s", s.name)
			}
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > wrapAt+1 {
			t.Errorf("a long line: %s", line)
		}
	}
	out.Reset()
	if code := run([]string{"--version"}, &out, &errs); code != 0 || !strings.HasPrefix(out.String(), "mocker (Dryserve) dev, go") {
		t.Errorf("status %d, %s", code, out.String())
	}
	// etcd is the default; without it the way out is named.
	t.Setenv("ETCD_ENDPOINTS", "http://127.0.0.1:1")
	t.Setenv("ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS", "0")
	if code := run(nil, &out, &errs); code != 1 || errs.String() != "mocker: etcd cannot be used at http://127.0.0.1:1 (dial tcp 127.0.0.1:1: connect: connection refused); start it, or name it by ETCD_ENDPOINTS; "+
		"or else --discovery-backend file finds workers by files, and --http 127.0.0.1:8000 serves OpenAI's API without any frontend\n" {
		t.Errorf("status %d, %s", code, errs.String())
	}
	errs.Reset()
	t.Setenv("NATS_SERVER", "nats://127.0.0.1:1")
	t.Setenv("NATS_STARTUP_CONNECT_TIMEOUT_SECONDS", "0")
	if code := run([]string{"--event-plane", "nats"}, &out, &errs); code != 1 || errs.String() != "mocker: NATS cannot be used at nats://127.0.0.1:1 (dial tcp 127.0.0.1:1: connect: connection refused); start it, or name it by NATS_SERVER; "+
		"or else --request-plane tcp and --event-plane zmq need none\n" {
		t.Errorf("status %d, %s", code, errs.String())
	}
}

// The system server is there if it has a port.
func TestSystemServer(t *testing.T) {
	if address, h, err := systemServer(false); address != "" || err != nil || h.Ready || h.HealthPath != "/health" {
		t.Errorf("%q, %+v, %v", address, h, err)
	}
	t.Setenv("DYN_SYSTEM_PORT", "8081")
	t.Setenv("DYN_SYSTEM_STARTING_HEALTH_STATUS", "ready")
	if address, h, err := systemServer(false); address != "127.0.0.1:8081" || err != nil || !h.Ready {
		t.Errorf("%q, %+v, %v", address, h, err)
	}
	if address, _, err := systemServer(true); address != "0.0.0.0:8081" || err != nil {
		t.Errorf("%q, %v", address, err)
	}
	t.Setenv("DYN_SYSTEM_LIVE_PATH", "/health")
	if _, _, err := systemServer(false); err == nil || !strings.HasPrefix(err.Error(), `DYN_SYSTEM_HEALTH_PATH is "/health" and DYN_SYSTEM_LIVE_PATH is "/health"; `) {
		t.Error(err)
	}
	t.Setenv("DYN_SYSTEM_PORT", "x")
	if _, _, err := systemServer(false); err == nil || err.Error() != `DYN_SYSTEM_PORT is "x"; a port, or -1 for none, is accepted` {
		t.Error(err)
	}
}

// What workers do, and how they hand prompts over.
func TestRoles(t *testing.T) {
	t.Setenv("DYN_DISCOVERY_BACKEND", "file")
	file := filepath.Join(t.TempDir(), "engine.json")
	if err := os.WriteFile(file, []byte(`{"engine":{"worker_type":"prefill","kv_transfer_bytes_per_token":7},"dynamo":{"bootstrap_port":8,"handoff_session_timeout_ms":9}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const model = "../../host/native/live/card/testdata/model"
	for _, c := range []struct {
		args      string
		role      config.Role
		component string
		ports     []int
		timeoutMs float64
		bytes     uint64  // 0: nobody says
		bandwidth float64 // the same
		missing   bool
	}{
		{args: "", component: "backend", timeoutMs: 300_000},
		{args: "--disaggregation-mode decode --bootstrap-ports 5", role: config.Decode, component: "backend", timeoutMs: 300_000},
		{args: "--is-decode-worker", role: config.Decode, component: "backend", timeoutMs: 300_000},
		{args: "--is-prefill-worker --endpoint dyn://a.b.c", role: config.Prefill, component: "b", timeoutMs: 300_000},
		{args: "--disaggregation-mode prefill --num-workers 2 --bootstrap-ports 5,6 --kv-transfer-bandwidth 2.5 --kv-transfer-timing-mode destination_missing --model-path " + model,
			role: config.Prefill, component: "prefill", ports: []int{5, 6}, timeoutMs: 300_000, bytes: 57344, bandwidth: 2.5, missing: true},
		{args: "--disaggregation-mode prefill --kv-bytes-per-token 3", role: config.Prefill, component: "prefill", timeoutMs: 300_000, bytes: 3},
		{args: "--disaggregation-mode prefill --extra-engine-args " + file, role: config.Prefill, component: "prefill", ports: []int{8}, timeoutMs: 9, bytes: 7},
		{args: "--disaggregation-mode prefill --model-path " + model + " --extra-engine-args " + file, role: config.Prefill, component: "prefill", ports: []int{8}, timeoutMs: 9, bytes: 57344},
	} {
		o, err := parse(strings.Fields(c.args))
		if err != nil {
			t.Fatal(err)
		}
		d, err := o.behind(io.Discard)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		h, timing := d.Handoff, d.Handoff.Timing
		if d.Engine.Role != c.role || d.Component != c.component || !slices.Equal(h.Ports, c.ports) || h.TimeoutMs != c.timeoutMs || timing.Missing != c.missing || h.Host != "127.0.0.1" || h.Bind != "127.0.0.1" {
			t.Errorf("%s: role %d, component %s, %+v", c.args, d.Engine.Role, d.Component, h)
		}
		if got := timing.BytesPerToken; (got == nil) != (c.bytes == 0) || got != nil && *got != c.bytes {
			t.Errorf("%s: a token has %v bytes", c.args, got)
		}
		if got := timing.BandwidthGBs; (got == nil) != (c.bandwidth == 0) || got != nil && *got != c.bandwidth {
			t.Errorf("%s: the bandwidth is %v", c.args, got)
		}
	}
	for host, bind := range map[string]string{"127.0.0.2": "127.0.0.2", "localhost": "localhost", "10.1.2.3": "", "worker.example": ""} {
		t.Setenv("DYN_HTTP_RPC_HOST", host)
		o, err := parse([]string{"--disaggregation-mode", "prefill"})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := o.behind(io.Discard); err != nil || d.Handoff.Host != host || d.Handoff.Bind != bind {
			t.Errorf("%s: %v, %+v", host, err, d.Handoff)
		}
	}
}

// A flag's beginning stands for it if it is that of no other, as with the
// reference's parser; flags of ours do not make the reference's ambiguous.
func TestAbbreviations(t *testing.T) {
	o, err := parse(strings.Fields("--discovery file --num-work 4 --speed=3 --no-enable-pre --aic-perf --de 2"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"discovery-backend": "file", "num-workers": "4", "speedup-ratio": "3", "enable-prefix-caching": "false", "ais-perf-model": "true", "decode-speedup-ratio": "2",
	} {
		if got := o.text(name); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	for args, want := range map[string]string{
		"--num 4":             `--num begins several flags: --num-gpu-blocks-override, --num-host-blocks, --num-workers; more of its name is accepted`,
		"--ais-s x --aic-s y": `--ais-system is also given as --aic-system; one of the two spellings is accepted`,
		"--num-work":          `--num-workers has no value; a whole number is accepted`,
		"--rout kv":           `--rout begins several flags: --router-approximate-cache-policy, --router-assume-kv-reuse, --router-conditional-disagg, --router-conditional-disagg-config and 28 more; more of its name is accepted`,
	} {
		if _, err := parse(strings.Fields(args)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", args, err, want)
		}
	}
}
