package engineargs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// What the reference accepts and this package refuses on purpose.
var stricter = []string{
	"is not built yet",                   // grows shorter as features arrive
	`unknown field "engine.timing_model`, // the reference drops them
	"appears twice",                      // the reference takes the last
	"at most 2147483647 is accepted",     // 32-bit block handles
}

func TestAgainstReference(t *testing.T) {
	f, err := os.Open("testdata/normalize.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	equal, refused, strict := 0, 0, 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ In, Out, Error string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		// The flat form is ours to read, the canonical reader refuses it.
		if c.In == `{"block_size":64}` || c.In == `{"engine_type":"vllm"}` {
			continue
		}
		args, err := Parse("test", []byte(c.In))
		if err != nil && strings.Contains(err.Error(), `"aggregated" is accepted`) { // the engine of a pool
			args, err = Options{Role: config.Prefill}.Parse("test", []byte(c.In))
		}
		switch {
		case c.Error != "" && err == nil:
			t.Errorf("%s\naccepted, the reference says %s", c.In, c.Error)
		case c.Error != "":
			refused++
		case err != nil:
			strict++
			if !containsAny(err.Error(), stricter) {
				t.Errorf("%s\nthe reference accepts, got %v", c.In, err)
			}
		default:
			equal++
			want := strings.ReplaceAll(c.Out, "4611686018427387909", "4611686018427387904") // limits from 2^62 are one limit
			if got := string(args.Marshal()); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", c.In, got, want)
			}
		}
	}
	if equal < 200 || refused < 100 || strict < 4 {
		t.Errorf("%d equal, %d refused by both, %d refused by us: too few cases", equal, refused, strict)
	}
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func TestDefaults(t *testing.T) {
	args, err := Load(" {}")
	if err != nil || args != Default() {
		t.Errorf("%+v, %v", args, err)
	}
	if args.Engine != config.Defaults(config.VLLM) {
		t.Errorf("%+v", args.Engine)
	}
}

func TestSentences(t *testing.T) {
	const at = "args.json:1:"
	cases := []struct{ in, want string }{
		{`{"engine": {"native_host_offload": {"num_host_blocks": 4}}}`, at + `36: engine.native_host_offload is an object; null is accepted without kv_cache_bytes_per_token`},
		{`{"engine": {"native_host_offload": {}}}`, at + `36: engine.native_host_offload has no num_host_blocks; a whole number of at least 1 is accepted`},
		{`{"engine": {"backend": "sglang", "kv_cache_bytes_per_token": 9, "native_host_offload": {"num_host_blocks": 4}}}`, at + `88: engine.native_host_offload is an object; null is accepted for backend sglang`},
		{`{"engine": {"aic_nextn": 1, "kv_cache_bytes_per_token": 9, "native_host_offload": {"num_host_blocks": 4}}}`, at + `83: engine.native_host_offload is an object; null is accepted with aic_nextn`},
		{`{"engine": {"enable_prefix_caching": false, "kv_cache_bytes_per_token": 9, "native_host_offload": {"num_host_blocks": 4}}}`, at + `99: engine.native_host_offload is an object; null is accepted without enable_prefix_caching`},
		{`{"engine": {"kv_cache_bytes_per_token": 9, "native_host_offload": {"num_host_blocks": 4, "scope": "cluster_shared"}}}`, at + `67: engine.native_host_offload has no kv_layout_id; a text that is not blank is accepted with scope cluster_shared`},
		{`{"engine": {"kv_cache_bytes_per_token": 9, "native_host_offload": {"num_host_blocks": 4, "scope": "rack"}}}`, at + `99: engine.native_host_offload.scope is the text "rack"; "dp_rank_local" or "cluster_shared" is accepted`},
		{`{"num_g2_blocks": 4, "block_size": 16}`, at + `19: num_g2_blocks is the number 4; null is accepted without kv_bytes_per_token`},
		{`{"engine": {"num_gpu_block": 5}}`, at + `13: unknown field "engine.num_gpu_block"; did you mean num_gpu_blocks?`},
		{`{"engien": {}}`, at + `2: unknown field "engien"; did you mean engine?`},
		{`{"blocksize": 5}`, at + `2: unknown field "blocksize"; did you mean block_size?`},
		{`{"engine": {}, "block_size": 5}`, at + `16: unknown field "block_size"; it belongs into engine: {"engine": {"block_size": …}}`},
		{`{"dp_size": 1, "zmq_replay_port": 5, "engine": {}}`, at + `16: unknown field "zmq_replay_port"; the canonical form accepts it as {"dynamo": {"zmq_replay_port": …}}`},
		{`{"engine": {}, "engine_type": "vllm"}`, at + `16: unknown field "engine_type"; it is a name of the flat form, which has no engine and no dynamo`},
		{`{"engine_type": "vllm", "backend": "vllm"}`, at + `25: unknown field "backend"; the canonical form accepts it as {"engine": {"backend": …}}`},
		{`{"engine": {"max_num_seqs": 99999999999999999999}}`, "accepted"},
		{`{"engine": {"aic_mtp_seed": 18446744073709551616}}`, at + `29: engine.aic_mtp_seed is the number 18446744073709551616; at most 18446744073709551615 is accepted`},
		{`{"engine": {"num_gpu_blocks": 2147483647, "block_size": 2147483647}}`, at + `31: engine.num_gpu_blocks is the number 2147483647; num_gpu_blocks times block_size of at most 9007199254740991 is accepted`},
		{`{"engine": {"block_size": 2147483647}, "dp_size": 0}`, at + `51: dp_size is the number 0;`},
		{`{"engine": {"block_size": 2147483648}}`, at + `27: engine.block_size is the number 2147483648; at most 2147483647 is accepted`},
		{`{"engine": {"block_size": 2147483647, "num_gpu_blocks": 4194305}}`, at + `57: engine.num_gpu_blocks is the number 4194305; num_gpu_blocks times block_size of at most 9007199254740991 is accepted`},
		{`{"engine": {"speedup_ratio": NaN}}`, at + `30: not JSON: invalid character 'N' looking for beginning of value`},
		{`{"engine": {"speedup_ratio": 1}`, at + `32: not JSON: unexpected end of JSON input`},
		{`{"engine": 5, }`, at + `15: not JSON: invalid character '}' looking for beginning of object key string`},
		{"{\n \"dynamo\": {\"response_replay_trace_path\":\"é\"}, \n\t\"engine\": {\"backend\": 5}}", "args.json:3:24: engine.backend is the number 5; \"vllm\", \"sglang\" or \"trtllm\" is accepted"},
		{"{\"a\xff\": 1}", at + `4: byte 0xff is not UTF-8; JSON in UTF-8 is accepted`},
		{`{"engine": {"timing_model": {"type": "fixed", "type": "fixed"}}}`, at + `47: field "engine.timing_model.type" appears twice; once is accepted`},
		{`{"dynamo": {"reasoning": {"start_thinking_token_id": 1, "thinking_ratio": 0}}}`, at + `26: dynamo.reasoning has no end_thinking_token_id; a whole number from 0 to 4294967295 is accepted`},
	}
	for _, c := range cases {
		_, err := Parse("args.json", []byte(c.in))
		got := "accepted"
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "accepted" && got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.in, got, c.want)
		}
		if strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q is more than one line", got)
		}
	}
}

// Every field of a feature that does not exist yet must be refused by name
// unless its value is neutral.
func TestNotBuilt(t *testing.T) {
	for _, c := range []struct{ key, asks, neutral string }{
		{"engine.state_cache", `{}`, `null`},
		{"engine.kv_eviction_policy", `"belady"`, `"lru"`},
		{"engine.prefix_match_unit", `16`, `null`},
		{"engine.kv_cache_groups", `[{}]`, `[]`},
		{"engine.kv_cache_capacity_bytes", `5`, `null`},
		{"g1_backend", `"kvbm"`, `"native"`},
		{"enable_g4_storage", `true`, `false`},
		{"aic_backend", `"vllm"`, `null`},
		{"aic_system", `"h200_sxm"`, `null`},
		{"aic_backend_version", `"1"`, `null`},
		{"aic_model_path", `"m"`, `null`},
		{"aic_tp_size", `1`, `null`},
		{"aic_moe_tp_size", `1`, `null`},
		{"aic_moe_ep_size", `1`, `null`},
		{"aic_attention_dp_size", `1`, `null`},
		{"aic_gemm_dtype", `"fp8"`, `null`},
		{"aic_moe_dtype", `"fp8"`, `null`},
		{"aic_fmha_dtype", `"fp8"`, `null`},
		{"aic_kv_cache_dtype", `"fp8"`, `null`},
		{"aic_comm_dtype", `"fp8"`, `null`},
	} {
		text := func(v string) string {
			if name, ok := strings.CutPrefix(c.key, "engine."); ok {
				return `{"engine": {"` + name + `": ` + v + `}}`
			}
			return `{"` + c.key + `": ` + v + `}`
		}
		_, err := Parse("x", []byte(text(c.asks)))
		if err == nil || !strings.Contains(err.Error(), " "+c.key+" is ") || !strings.Contains(err.Error(), "is not built yet; ") {
			t.Errorf("%s: got %v", text(c.asks), err)
		}
		args, err := Parse("x", []byte(text(c.neutral)))
		if err != nil || args.Engine != config.Defaults(config.VLLM) {
			t.Errorf("%s: got %+v, %v", text(c.neutral), args, err)
		}
	}
}

func TestIntervalBetweenRanks(t *testing.T) {
	args, err := Parse("x", []byte(`{"dp_size": 2, "engine": {"prefill_schedule_interval": 4}}`))
	if err != nil || args.Engine.DPSize != 2 || args.Engine.PrefillScheduleInterval != 4 {
		t.Errorf("%+v, %v", args.Engine, err)
	}
}

func TestFlatForm(t *testing.T) {
	same := []struct{ flat, canonical string }{
		{`{"block_size": 0}`, `{}`},
		{`{"block_size": 16, "num_gpu_blocks": 512}`, `{"engine": {"block_size": 16, "num_gpu_blocks": 512}}`},
		{`{"num_gpu_blocks": null, "max_num_seqs": null, "max_num_batched_tokens": null, "block_size": null}`, `{"engine": {"max_num_seqs": null, "max_num_batched_tokens": null}}`},
		{`{"engine_type": "VLLM", "max_model_len": 9, "speedup_ratio": 2, "decode_speedup_ratio": 0.5, "preemption_mode": "fifo", "enable_prefix_caching": false, "enable_chunked_prefill": false, "aic_mtp_seed": 7}`,
			`{"engine": {"max_model_len": 9, "speedup_ratio": 2, "decode_speedup_ratio": 0.5, "preemption_mode": "fifo", "enable_prefix_caching": false, "enable_chunked_prefill": false, "aic_mtp_seed": 7}}`},
		{`{"kv_bytes_per_token": 5, "kv_transfer_bandwidth": 2, "kv_transfer_timing_mode": "destination_missing", "g1_backend": "native"}`,
			`{"engine": {"kv_transfer_bytes_per_token": 5, "kv_transfer_bandwidth": 2, "kv_transfer_timing_mode": "destination_missing"}}`},
		{`{"block_size": 8, "dp_size": 1, "startup_time": 3, "gpu_memory_utilization": 0.5, "mem_fraction_static": 0.25, "free_gpu_memory_fraction": 0.125}`,
			`{"engine": {"block_size": 8}, "startup_time": 3, "gpu_memory_utilization": 0.5, "mem_fraction_static": 0.25, "free_gpu_memory_fraction": 0.125}`},
		{`{"enable_local_indexer": true, "bootstrap_port": 5, "handoff_session_timeout_ms": 9, "reasoning": {"start_thinking_token_id": 1, "end_thinking_token_id": 2, "thinking_ratio": 1}, "response_replay_trace_path": "p", "zmq_kv_events_port": 6, "zmq_replay_port": 7, "router_queue_policy": "wspt"}`,
			`{"dynamo": {"enable_local_indexer": true, "bootstrap_port": 5, "handoff_session_timeout_ms": 9, "reasoning": {"start_thinking_token_id": 1, "end_thinking_token_id": 2, "thinking_ratio": 1}, "response_replay_trace_path": "p", "zmq_kv_events_port": 6, "zmq_replay_port": 7, "router_queue_policy": "wspt"}}`},
		{`{"sglang": {"page_size": 4, "schedule_policy": "lpm", "max_prefill_tokens": 5, "chunked_prefill_size": 6, "clip_max_new_tokens": 7, "schedule_conservativeness": 0.5}, "trtllm": null, "is_decode": false, "has_perf_model": true, "offload_batch_size": 4, "bandwidth_g1_to_g2_gbps": 3.5}`,
			`{"engine": {"sglang": {"schedule_policy": "lpm", "max_prefill_tokens": 5, "chunked_prefill_size": 6, "clip_max_new_tokens": 7, "schedule_conservativeness": 0.5}}}`},
	}
	for _, c := range same {
		flat, err := Parse("flat", []byte(c.flat))
		if err != nil {
			t.Errorf("%s: %v", c.flat, err)
			continue
		}
		canonical, err := Parse("canonical", []byte(c.canonical))
		if err != nil {
			t.Fatal(err)
		}
		if flat != canonical {
			t.Errorf("%s\ngot  %s\nwant %s", c.flat, flat.Marshal(), canonical.Marshal())
		}
	}
	for in, want := range map[string]string{
		`{"is_prefill": true, "is_decode": true}`:                                "is_prefill and is_decode are both true",
		`{"worker_type": "prefill", "is_prefill": true}`:                         "is_prefill cannot be combined with worker_type",
		`{"engine_type": "trtllm", "max_model_len": 5}`:                          "max_model_len is the number 5; null is accepted for engine_type trtllm",
		`{"engine_type": "sglang", "block_size": 4, "sglang": {"page_size": 8}}`: "sglang.page_size is the number 8 and block_size is the number 4; equal sizes are accepted",
		`{"engine_type": "sglang", "sglang": {"page_size": 3}}`:                  "sglang.page_size is the number 3; a divisor of chunked_prefill_size 8192 is accepted",
		`{"sglang": {"schedule_conservativeness": 1.5}, "engine_type": "vllm"}`:  "sglang.schedule_conservativeness is the number 1.5; a number from 0 to 1 or null is accepted",
		`{"g1_backend": "x"}`: `g1_backend is the text "x"; "native" is accepted`,
		`{"block_size": 1}`:   "block_size is the number 1; a whole number of at least 2 is accepted for backend vllm",
		`{"block_size": -1}`:  "block_size is the number -1; a whole number of at least 0 or null is accepted",
	} {
		if _, err := Parse("flat", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", in, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "engine.json")
	if err := os.WriteFile(path, []byte("\n{\"engine\": {\"block_size\": 16}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args, err := Load(path)
	if err != nil || args.Engine.BlockSize != 16 {
		t.Errorf("%+v, %v", args, err)
	}
	bad := filepath.Join(dir, "bad.json")
	os.WriteFile(bad, []byte("{\n  \"engine\": 5\n}\n"), 0o600)
	big := filepath.Join(dir, "big.json")
	os.WriteFile(big, bytes.Repeat([]byte(" "), maxFileBytes+1), 0o600)
	for in, want := range map[string]string{
		"":                              "--extra-engine-args is empty; JSON or the path of a JSON file is accepted",
		" \n":                           "--extra-engine-args is empty; JSON or the path of a JSON file is accepted",
		filepath.Join(dir, "none.json"): "--extra-engine-args: cannot open " + dir + "/none.json: no such file or directory; JSON or the path of a JSON file is accepted",
		dir:                             "--extra-engine-args: cannot read " + dir + ": is a directory",
		bad:                             bad + ":2:13: engine is the number 5; an object is accepted",
		big:                             "--extra-engine-args: " + big + " is larger than 16 MiB; a JSON object of engine arguments is accepted",
	} {
		if _, err := Load(in); err == nil || err.Error() != want {
			t.Errorf("Load(%q)\ngot  %v\nwant %s", in, err, want)
		}
	}
}

func FuzzEngineArgs(f *testing.F) {
	data, err := os.ReadFile("testdata/normalize.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range bytes.Split(data, []byte{'\n'}) {
		var c struct{ In string }
		if json.Unmarshal(line, &c) == nil {
			f.Add([]byte(c.In))
		}
	}
	f.Add([]byte(`{"block_size": 16, "engine_type": "vllm", "sglang": {"page_size": 4}, "is_prefill": false}`))
	f.Add([]byte(external("dynamo_profile", "p")))
	f.Add([]byte(external("grid", "g")))
	f.Add([]byte(`{"planner_profile_data": "p", "block_size": 16}`))
	o := files()
	f.Fuzz(func(t *testing.T, in []byte) {
		args, err := o.Parse("fuzz", in)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz:") || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Fatalf("not one clear sentence: %q", err)
			}
			return
		}
		if fault := args.Engine.Check(); !fault.OK() {
			t.Fatalf("accepted %q with fault %+v", in, fault)
		}
		text := args.Marshal()
		again, err := o.Parse("again", text)
		if err != nil || again != args {
			t.Fatalf("%q\nbecame %s\nthen %s, %v", in, text, again.Marshal(), err)
		}
	})
}

// The workers of a pool have its role.
func TestRoles(t *testing.T) {
	for _, c := range []struct {
		role config.Role
		text string
		want string // "": accepted
	}{
		{config.Prefill, `{"engine":{"worker_type":"prefill"}}`, ""},
		{config.Prefill, `{"is_prefill":true}`, ""},
		{config.Decode, `{"worker_type":"decode"}`, ""},
		{config.Decode, `{"engine":{}}`, `--x: worker_type is not given; "decode" is accepted`},
		{config.Decode, `{"engine":{"worker_type":"aggregated"}}`, `--x:1:26: engine.worker_type is the text "aggregated"; "decode" is accepted in --x`},
		{config.Aggregated, `{"is_prefill":true}`, `--x:1:15: is_prefill is the boolean true; false is accepted in --x`},
		{config.Decode, `{"is_prefill":true}`, `--x:1:15: is_prefill is the boolean true; worker_type "decode" is accepted in --x`},
	} {
		args, err := Options{Flag: "--x", Role: c.role}.Load(c.text)
		switch {
		case c.want == "" && (err != nil || args.Engine.Role != c.role):
			t.Errorf("%s: %v, role %d", c.text, err, args.Engine.Role)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What a transfer depends on reaches the simulation.
func TestTransfer(t *testing.T) {
	args, err := Parse("test", []byte(`{"engine":{"kv_transfer_bytes_per_token":100000,"kv_transfer_bandwidth":2.5,"kv_transfer_timing_mode":"destination_missing"}}`))
	want := config.Transfer{BytesPerToken: 100000, BandwidthGBs: 2.5, Timing: config.DestinationMissing}
	if err != nil || args.Engine.Transfer != want {
		t.Errorf("%v %+v", err, args.Engine.Transfer)
	}
}
