package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/internal/corewasm"
)

// badInput is one way to misuse the program: files, arguments, and the one
// sentence that must come.
type badInput struct {
	name   string
	trace  string // text of t.jsonl
	args   string // fields; t.jsonl is in front unless they begin with "!"
	status int
	want   string // after "replay: "
}

// conversation and agent are small traces of other formats.
const (
	conversation = `{"num_turns":1,"input_prompt_length":9,"assistant_response_length":[2],"tool_call_output_length":[3],"tool_call_latency":[0.01],"final_assistant_response_length":4}` + "\n"
	agent        = `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}` + "\n" +
		`{"request_id":"a","play_id":"P","session_id":"S","model":"m","input_length":100,"output_length":2,"hash_ids":[1,2],"not_before_ms":0}` + "\n"
)

// syn is the sizes of a small synthetic workload, without a trace.
const syn = "! --input-tokens 8 --output-tokens 2 --request-count 3 "

func row(fields string) string { return "{" + fields + "}\n" }

// pools are engines of two pools, that nothing is wrong with.
const pools = `--prefill-engine-args {"worker_type":"prefill"} --decode-engine-args {"worker_type":"decode"} `

var badInputs = []badInput{
	{"missing file", "", "! none.jsonl", 1, "none.jsonl: no such file"},
	{"directory", "", "! .", 1, ".: is a directory, and cut.json in it looks like mooncake; want a trace file, or a directory of files in the format weka"},
	{"empty file", "", "", 1, "t.jsonl: the file is empty, want at least one row"},
	{"blank lines", "\n \n\r\n", "", 1, "t.jsonl: found only blank lines, want at least one row"},
	{"cut-off JSON", one + one[:30], "", 1, "t.jsonl:2: column 31: the line ends too early, want a complete JSON object"},
	{"not an object", "[1]\n", "", 1, "t.jsonl:1: found [1], want a JSON object"},
	{"two rows on a line", strings.TrimSpace(one) + one, "", 1, `t.jsonl:1: column 67: found {"timestamp":0,"input_length":10,"output... after the row, want one JSON object per line`},
	{"text for a number", row(`"timestamp":0,"input_length":"10","output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "input_length": found "10", want a positive integer`},
	{"float for a whole number", row(`"timestamp":0,"input_length":10.5,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "input_length": found 10.5, want a positive integer`},
	{"null for hash_ids", row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":null`), "", 1, `t.jsonl:1: field "hash_ids" is missing, want a list of integers from 0 to 18446744073709551615`},
	{"negative output", row(`"timestamp":0,"input_length":10,"output_length":-2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "output_length": found -2, want an integer from 0`},
	{"negative hash id", row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[3,-1]`), "", 1, `t.jsonl:1: field "hash_ids": found -1, want a list of integers from 0 to 18446744073709551615`},
	{"huge output", row(`"timestamp":0,"input_length":10,"output_length":3000000000,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "output_length": found 3000000000, want at most 2147483647`},
	{"hash id above 64 bits", row(`"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[18446744073709551616]`), "", 1, `t.jsonl:1: field "hash_ids": found 18446744073709551616, want a list of integers from 0 to 18446744073709551615`},
	{"NaN", row(`"timestamp":NaN,"input_length":10,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "timestamp" (column 14): found NaN, want a number of milliseconds`},
	{"timestamp out of range", row(`"timestamp":1e999,"input_length":10,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "timestamp": found 1e999, want a number that fits a 64-bit float`},
	{"duplicate field", row(`"timestamp":0,"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "timestamp" is given twice ("timestamp" and "created_time" are one field), want it once`},
	{"one field by both names", row(`"timestamp":0,"input_length":10,"input_tokens":10,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "input_tokens" is given twice ("input_length" and "input_tokens" are one field), want it once`},
	{"too few hash ids", one + row(`"timestamp":0,"input_length":1025,"output_length":2,"hash_ids":[1,2]`), "", 1, `t.jsonl:2: field "input_length": found 1025, want at most 1024, which the row's 2 hash_ids cover with a trace block size of 512; this row was written with at least 513`},
	{"not UTF-8", row(`"session_id":"a` + "\xff" + `","timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]`), "", 1, `t.jsonl:1: field "session_id" (column 17): found the byte \xff, want UTF-8`},
	{"byte order mark", "\ufeff" + one, "", 1, "t.jsonl:1: the line begins with a byte order mark; want UTF-8 without one"},
	{"negative delay", row(`"session_id":"s","timestamp":0,"input_length":1,"output_length":1,"hash_ids":[1]`) + row(`"session_id":"s","delay":-1,"input_length":1,"output_length":1,"hash_ids":[1]`), "", 1, `t.jsonl:2: field "delay": found -1, want a number of milliseconds from 0`},
	{"gzip by name only", "", "! t.jsonl.gz", 1, `t.jsonl.gz: the name ends in .gz, but found {" at the start of the file; want gzip data`},
	{"gzip cut off", "", "! cut.gz", 1, "cut.gz: the gzip data end too early; want the complete file"},

	{"no trace", "", "!", 2, "no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted"},
	{"half a synthetic workload", "", "! --request-count 5 --replay-concurrency 1", 2, "a synthetic workload needs --input-tokens and --output-tokens as well"},
	{"sessions without sizes", "", "! --turns-per-session 2 --replay-concurrency 1", 2, "a synthetic workload needs --input-tokens and --output-tokens and --request-count as well"},
	{"trace and synthetic sessions", one, "--inter-turn-delay-ms 5", 2, `a trace file ("t.jsonl") and --inter-turn-delay-ms are given; a trace, or --input-tokens, --output-tokens and --request-count, are accepted`},
	{"trace and an interval", one, "--arrival-interval-ms 5", 2, `--arrival-interval-ms is for synthetic workloads, and "t.jsonl" is a trace, which has times of its own; --arrival-speedup-ratio or --replay-concurrency is accepted`},
	{"three controllers", "", syn + "--request-rate 1 --arrival-interval-ms 1 --replay-concurrency 1", 2, "--replay-concurrency and --request-rate and --arrival-interval-ms are given; exactly one of --replay-concurrency, --request-rate and --arrival-interval-ms is accepted"},
	{"seed with a sign", "", syn + "--request-rate 1 --arrival-seed -1", 2, `--arrival-seed is "-1"; a whole number from 0 to 18446744073709551615 is accepted`},
	{"too many tokens", "", "! --input-tokens 9999999999 --output-tokens 1 --request-count 1 --replay-concurrency 1", 1, "--input-tokens is 9999999999; a whole number from 1 to 2147483647 is accepted"},
	{"no turns", "", syn + "--turns-per-session 0 --num-prefix-groups 2 --replay-concurrency 1", 1, "--turns-per-session is 0; a whole number from 1 to 2147483647 is accepted"},
	{"negative turns", "", syn + "--turns-per-session -3 --replay-concurrency 1", 1, "--turns-per-session is -3; a whole number from 1 to 2147483647 is accepted"},
	{"negative groups", "", syn + "--num-prefix-groups -3 --replay-concurrency 1", 1, "--num-prefix-groups is -3; a whole number from 0 to 4294967295 is accepted"},
	{"negative share", "", syn + "--shared-prefix-ratio -0.5 --replay-concurrency 1", 1, "--shared-prefix-ratio is -0.5; a number from 0 to 1 is accepted"},
	{"share that is no number", "", syn + "--shared-prefix-ratio nan --replay-concurrency 1", 1, "--shared-prefix-ratio is NaN; a number from 0 to 1 is accepted"},
	{"negative think time", "", syn + "--inter-turn-delay-ms -1 --replay-concurrency 1", 1, "--inter-turn-delay-ms is -1; a finite number of at least 0 is accepted"},
	{"infinite rate", "", syn + "--request-rate inf", 1, "--request-rate is +Inf; a finite number above 0 is accepted"},
	{"interval without a rate", "", syn + "--arrival-interval-ms 1e-310", 1, "--arrival-interval-ms is 1e-310; 0 or a finite number of at least 1e-305 is accepted"},
	{"arrivals beyond all time", "", syn + "--arrival-interval-ms 1e308", 1, "the synthetic workload has times that are no numbers any more; a shorter interval or delay, a higher rate or a greater --arrival-speedup-ratio is accepted"},
	{"more blocks than there are names for", "", "! --input-tokens 2147483647 --output-tokens 1 --request-count 41 --turns-per-session 2 --replay-concurrency 1", 1, "the prompts of the synthetic workload have more than 1073741823 different blocks, which is the most; fewer or shorter requests are accepted"},
	{"more requests than there are names for", "", "! --input-tokens 1 --output-tokens 1 --request-count 2147483647 --turns-per-session 2 --replay-concurrency 1", 1, "the synthetic workload has more than 2147483647 requests, which is the most"},
	{"two traces", one, "t.jsonl", 2, "t.jsonl: is a trace in the format mooncake, which is one file, but 2 are given; want one"},
	{"two traces of a format", one, "t.jsonl --trace-format mooncake", 2, `2 trace files are given ("t.jsonl", "t.jsonl"); --trace-format mooncake takes exactly one`},
	{"misspelt flag", one, "--num-wroker 2", 2, `unknown flag "--num-wroker"; did you mean --num-workers?`},
	{"unknown flag", one, "--frobnicate", 2, `unknown flag "--frobnicate"; replay --help lists the flags`},
	{"unknown short flag", one, "-x", 2, `unknown flag "-x"; replay --help lists the flags`},
	{"flag without value", one, "--num-workers", 2, "--num-workers has no value; a whole number is accepted"},
	{"flag without path", one, "--report-json", 2, "--report-json has no value; a path is accepted"},
	{"bad flag syntax", one, "--=5", 2, "bad flag syntax: --=5; replay --help lists the flags"},
	{"word for a number", one, "--num-workers two", 2, `--num-workers is "two"; a whole number is accepted`},
	{"octal look", one, "--num-workers 0x10", 2, `--num-workers is "0x10"; a whole number is accepted`},
	{"hex float", one, "--sla-ttft-ms 0x1p3", 2, `--sla-ttft-ms is "0x1p3"; a number is accepted`},
	{"bad switch", one, "--parity=maybe", 2, `--parity is "maybe"; true or false is accepted`},
	{"bad choice", one, "--engine-impl slow", 2, `--engine-impl is "slow"; fast or plain is accepted`},
	{"unknown format", one, "--trace-format orca", 2, `--trace-format is "orca"; mooncake or mooncake-delta or agentic_mooncake or applied_compute_agentic or dynamo or weka or azure or burstgpt is accepted`},
	{"lanes and a cap", one, "--agentic-lanes 2 --replay-concurrency 2", 1, "--agentic-lanes is given with --replay-concurrency; one of them is accepted"},
	{"no lanes", one, "--agentic-lanes 0", 1, "--agentic-lanes is 0; a whole number of at least 1 is accepted"},
	{"lanes without plays", one, "--agentic-lanes 2", 1, "t.jsonl: is a trace in the format mooncake, which has no plays for lanes (--agentic-lanes) to take up; want a trace of agents: agentic_mooncake, weka, or dynamo with an agent_context"},
	{"basis of what has none", one, "--weka-nested-timestamp-basis relative", 2, "t.jsonl: is a trace in the format mooncake, which has no times of its own in subagents (--weka-nested-timestamp-basis); want a trace in the format weka"},
	{"unknown basis", one, "--weka-nested-timestamp-basis now", 2, `--weka-nested-timestamp-basis is "now"; auto or absolute or relative is accepted`},
	{"a cell that is no number", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,many,1\n", "--trace-format azure", 1, `t.jsonl:2: column "ContextTokens": found many, want an integer from 0`},
	{"blank model", one, "--execution-model= ", 1, "--execution-model is blank; a name is accepted"},
	{"share above 1", one, "--trace-shared-prefix-ratio 1.5", 1, "--trace-shared-prefix-ratio is 1.5; a number from 0 to 1 is accepted"},
	{"groups below 0", one, "--trace-num-prefix-groups -1", 1, "--trace-num-prefix-groups is -1; a whole number from 0 to 4294967295 is accepted"},
	{"conversations without a cap", conversation, "--trace-format applied_compute_agentic", 2, "t.jsonl: is a trace in the format applied_compute_agentic, which has no start times; want a cap on the sessions under way (--replay-concurrency)"},
	{"agents without a model", agent, "--trace-format agentic_mooncake", 1, "t.jsonl: is a trace in the format agentic_mooncake, whose requests name models of their own; want the name of the model that serves them all (--execution-model)"},
	{"agents under a cap", agent, "--trace-format agentic_mooncake --replay-concurrency 2", 1, "t.jsonl: is a trace in the format agentic_mooncake, whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither"},
	{"agents of version 1", row(`"request_id":"a","wait_for":[],"output_length":1,"hash_ids":[1]`), "--trace-format agentic_mooncake --execution-model m", 1,
		`t.jsonl:1: found a request, want the header {"schema":"dynamo.agentic_mooncake","version":2,"block_size":...,"hash_id_scope":"local","source":{"format":...,"digest":...}}; ` +
			`without one this is version 1 of the format, whose requests wait with "wait_for" and "delay" instead of "dependencies"`},
	{"not built flag", one, "--benchmark-granularity 2", 2, "--benchmark-granularity is not built yet (scaling by a planner); 8 is accepted"},
	{"not built switch", one, "--capture-per-request", 2, "--capture-per-request is not built yet (returning requests (--report-jsonl writes them)); false is accepted"},
	{"parameter of a function", one, "--report-jsonl-path r", 2, "--report-jsonl-path is a parameter of the reference's functions; --report-jsonl is accepted"},
	{"negative limit", one, "--max-sim-time-ms -5", 1, "--max-sim-time-ms is -5; a finite number of at least 0 is accepted"},
	{"two limits", one, "--max-sim-time-ms 5 --max-sim-time-seconds 5", 1, "--max-sim-time-seconds and --max-sim-time-ms are given; one is accepted"},
	{"report over the trace", one, "--report-json ./t.jsonl", 2, `--report-json "./t.jsonl" is the trace itself; another path is accepted`},
	{"empty path of a picture", one, "--report-html=", 1, "--report-html is empty; a path is accepted"},
	{"empty path of a timeline", one, "--timeline=", 1, "--timeline is empty; a path is accepted"},
	{"timeline into a directory", one, "--timeline .", 1, "--timeline: cannot write .: is a directory"},
	{"picture and report in one file", one, "--report-html r --report-json r", 2, `--report-html "r" is the path of another output, too; different paths are accepted`},
	{"two reports in one file", one, "--report-json r --report-jsonl ./r", 2, `--report-jsonl "./r" is the path of another output, too; different paths are accepted`},

	{"no workers", one, "--num-workers 0", 1, "--num-workers is 0; a whole number from 1 to 1048576 is accepted"},
	{"negative workers", one, "--num-workers -1", 1, "--num-workers is -1; a whole number from 1 to 1048576 is accepted"},
	{"huge workers", one, "--num-workers 99999999999999999999", 1, "--num-workers is 9223372036854775807; a whole number from 1 to 1048576 is accepted"},
	{"workers of a pool without one", one, "--num-prefill-workers 2", 1, "--num-prefill-workers is 2, but there is no pool for it; --num-workers, or --prefill-engine-args and --decode-engine-args, are accepted"},
	{"one engine and two", one, `--extra-engine-args {} --prefill-engine-args {"worker_type":"prefill"}`, 1, "--extra-engine-args and --prefill-engine-args are given; one engine, or two of pools, are accepted"},
	{"one pool", one, `--prefill-engine-args {"worker_type":"prefill"}`, 1, "--prefill-engine-args is given without --decode-engine-args; both or neither are accepted"},
	{"the other pool", one, `--decode-engine-args {"worker_type":"decode"}`, 1, "--decode-engine-args is given without --prefill-engine-args; both or neither are accepted"},
	{"workers beside pools", one, pools + "--num-workers 2", 1, "--num-workers is 2, but the workers are in two pools; --num-prefill-workers and --num-decode-workers are accepted"},
	{"nobody to compute prompts", one, pools + "--num-prefill-workers 0", 1, "--num-prefill-workers is 0; a whole number from 1 to 1048576 is accepted"},
	{"nobody to decode", one, pools + "--num-decode-workers -1", 1, "--num-decode-workers is -1; a whole number from 1 to 1048576 is accepted"},
	{"too many to compute prompts", one, pools + "--num-prefill-workers 1048577", 1, "--num-prefill-workers is 1048577; a whole number from 1 to 1048576 is accepted"},
	{"too many to decode", one, pools + "--num-decode-workers 1048577", 1, "--num-decode-workers is 1048577; a whole number from 1 to 1048576 is accepted"},
	{"a pool's worker alone", one, `--extra-engine-args {"worker_type":"prefill"}`, 1, `--extra-engine-args:1:16: worker_type is the text "prefill"; "aggregated" is accepted in --extra-engine-args`},
	{"a pool's worker alone, older", one, `--extra-engine-args {"is_decode":true}`, 1, `--extra-engine-args:1:14: is_decode is the boolean true; false is accepted in --extra-engine-args`},
	{"a pool without a role", one, `--prefill-engine-args {} --decode-engine-args {"worker_type":"decode"}`, 1, `--prefill-engine-args: worker_type is not given; "prefill" is accepted`},
	{"a pool with the other's role", one, `--prefill-engine-args {"engine":{"worker_type":"prefill"}} --decode-engine-args {"engine":{"worker_type":"prefill"}}`, 1, `--decode-engine-args:1:26: engine.worker_type is the text "prefill"; "decode" is accepted in --decode-engine-args`},
	{"a pool with the other's role, older", one, `--prefill-engine-args {"is_decode":true} --decode-engine-args {"worker_type":"decode"}`, 1, `--prefill-engine-args:1:14: is_decode is the boolean true; worker_type "prefill" is accepted in --prefill-engine-args`},
	{"pools of two kinds", one, `--prefill-engine-args {"worker_type":"prefill"} --decode-engine-args {"worker_type":"decode","engine_type":"trtllm","block_size":64}`, 1, "--prefill-engine-args have the backend vllm and --decode-engine-args trtllm; the same backend is accepted"},
	{"pools of two block sizes", one, `--prefill-engine-args {"worker_type":"prefill","block_size":16} --decode-engine-args {"worker_type":"decode","block_size":32}`, 1, "--prefill-engine-args have the block size 16 and --decode-engine-args 32; the same size is accepted"},
	{"a pool's file missing", one, `--prefill-engine-args none.json --decode-engine-args {"worker_type":"decode"}`, 1, "--prefill-engine-args: cannot open none.json: no such file or directory; JSON or the path of a JSON file is accepted"},
	{"a pool without text", one, `--prefill-engine-args {"worker_type":"prefill"} --decode-engine-args=`, 1, "--decode-engine-args is empty; JSON or the path of a JSON file is accepted"},
	{"host memory in a pool", one, `--prefill-engine-args {"engine":{"worker_type":"prefill","native_host_offload":{"num_host_blocks":4},"kv_cache_bytes_per_token":1}} --decode-engine-args {"worker_type":"decode"}`, 1,
		"the engine arguments of a pool have native_host_offload; it is accepted with workers that serve whole requests (--extra-engine-args)"},
	{"links without pools", one, "--transfer-sharing pair", 1, "--transfer-sharing and --prefill-workers-per-node are for workers in two pools; --prefill-engine-args and --decode-engine-args are accepted with them"},
	{"nodes without links", one, pools + "--prefill-workers-per-node 2", 1, "--prefill-workers-per-node is for --transfer-sharing node, and it is none"},
	{"empty nodes", one, pools + "--transfer-sharing node --prefill-workers-per-node 0", 1, "--prefill-workers-per-node is 0; a whole number from 1 to 1048576 is accepted"},
	{"unknown links", one, pools + "--transfer-sharing all", 2, `--transfer-sharing is "all"; none or pair or node is accepted`},
	{"pools by lot", one, pools + "--router-mode random", 2, "--router-mode random is for workers that serve whole requests; round_robin or kv_router is accepted with two pools (--prefill-engine-args)"},
	{"no concurrency", one, "--replay-concurrency 0", 1, "--replay-concurrency is 0; a whole number of at least 1 is accepted"},
	{"negative block size", one, "--trace-block-size -5", 1, "--trace-block-size is -5; a whole number from 1 to 2147483647 is accepted"},
	{"NaN speed-up", one, "--arrival-speedup-ratio nan", 1, "--arrival-speedup-ratio is NaN; a finite number above 0 is accepted"},
	{"infinite time", one, "--max-sim-time-seconds 1e306", 1, "--max-sim-time-seconds is 1e+306; a finite number of at least 0 is accepted"},
	{"infinite SLA", one, "--sla-itl-ms inf", 1, "--sla-itl-ms is +Inf; a finite number above 0 is accepted"},
	{"zero SLA", one, "--sla-ttft-ms 0", 1, "--sla-ttft-ms is 0; a finite number above 0 is accepted"},
	{"SLAs that exclude each other", one, "--sla-e2e-ms 5 --sla-itl-ms 5", 1, "--sla-e2e-ms is given with --sla-ttft-ms or --sla-itl-ms; either kind is accepted alone"},
	{"empty model name", one, "--model-name=", 1, "--model-name is empty; a name is accepted"},
	{"empty report path", one, "--report-json=", 1, "--report-json is empty; a path is accepted"},

	{"too many drafts", one, "--aic-nextn 6", 1, "--aic-nextn is 6; a whole number from 1 to 5 is accepted"},
	{"no drafts", one, "--aic-nextn 0", 1, "--aic-nextn is 0; a whole number from 1 to 5 is accepted"},
	{"word for drafts", one, "--aic-nextn two", 2, `--aic-nextn is "two"; a whole number is accepted`},
	{"chances above 1", one, "--aic-nextn 2 --aic-nextn-accept-rates 0.5,1.5", 1, `--aic-nextn-accept-rates is "0.5,1.5"; a list of chances from 0 to 1 separated by commas, such as "0.85,0.3", is accepted`},
	{"no chances", one, "--aic-nextn 2 --aic-nextn-accept-rates=", 1, `--aic-nextn-accept-rates is empty; a list of chances from 0 to 1 separated by commas, such as "0.85,0.3", is accepted`},
	{"chances without drafts", one, "--aic-nextn-accept-rates 0.5", 1, "--aic-nextn-accept-rates is given without --aic-nextn; both or neither are accepted"},
	{"drafts and a decode speed-up", one, `--aic-nextn 2 --extra-engine-args {"engine":{"decode_speedup_ratio":2}}`, 1, "--aic-nextn is given with engine arguments that have a decode_speedup_ratio other than 1; either is accepted alone"},

	{"engine file missing", one, "--extra-engine-args none.json", 1, "--extra-engine-args: cannot open none.json: no such file or directory; JSON or the path of a JSON file is accepted"},
	{"engine file cut off", one, "--extra-engine-args cut.json", 1, "cut.json:2:17: not JSON: unexpected end of JSON input"},
	{"engine field misspelt", one, `--extra-engine-args {"engine":{"num_gpu_block":5}}`, 1, `--extra-engine-args:1:12: unknown field "engine.num_gpu_block"; did you mean num_gpu_blocks?`},
	{"engine field twice", one, `--extra-engine-args {"block_size":16,"block_size":16}`, 1, `--extra-engine-args:1:18: field "block_size" appears twice; once is accepted`},
	{"engine field of another type", one, `--extra-engine-args {"engine":{"speedup_ratio":"2"}}`, 1, `--extra-engine-args:1:28: engine.speedup_ratio is the text "2"; a finite number of at least 0 is accepted`},
	{"engine not built", one, `--extra-engine-args {"engine":{"state_cache":{}}}`, 1, `--extra-engine-args:1:26: engine.state_cache is an object, but the recurrent-state cache is not built yet; null is accepted`},
	{"SGLang without a budget", one, `--extra-engine-args {"engine":{"backend":"sglang","sglang":{"max_prefill_tokens":0}}}`, 1, `--extra-engine-args:1:62: engine.sglang.max_prefill_tokens is the number 0; a whole number of at least 1 is accepted for backend sglang`},
	{"SGLang with a broken chunk", one, `--extra-engine-args {"engine":{"backend":"sglang","block_size":3,"sglang":{"chunked_prefill_size":8}}}`, 1, `--extra-engine-args:1:79: engine.sglang.chunked_prefill_size is the number 8; a multiple of the block size 3 is accepted`},
	{"pages beside the default chunk", one, `--extra-engine-args {"engine":{"backend":"sglang","block_size":3}}`, 1, `--extra-engine-args:1:44: engine.block_size is the number 3; a divisor of chunked_prefill_size 8192 is accepted`},
	{"SGLang ranks without chunks", one, `--extra-engine-args {"engine":{"backend":"sglang","sglang":{"chunked_prefill_size":3}},"dp_size":4}`, 1, `--extra-engine-args:1:64: engine.sglang.chunked_prefill_size is the number 3; at least 1 for each of 4 ranks is accepted`},
	{"more SGLang ranks than the chunk", one, `--extra-engine-args {"engine":{"backend":"sglang"},"dp_size":9000}`, 1, `--extra-engine-args:1:42: dp_size is the number 9000; at most chunked_prefill_size 8192 is accepted`},
	{"an interval of SGLang", one, `--extra-engine-args {"engine":{"prefill_decode_interval":1}}`, 1, `--extra-engine-args:1:38: engine.prefill_decode_interval is the number 1; 0 is accepted for backend vllm`},
	{"a negative reserve", one, `--extra-engine-args {"engine":{"backend":"sglang","sglang":{"schedule_conservativeness":-1}}}`, 1, `--extra-engine-args:1:69: engine.sglang.schedule_conservativeness is the number -1; a finite number of at least 0 is accepted for backend sglang`},
	{"engine empty", one, "--extra-engine-args=", 1, "--extra-engine-args is empty; JSON or the path of a JSON file is accepted"},

	{"a file for a cache", one, "--engine wasm --wasm-cache t.jsonl", 1, "--wasm-cache: the cache for compiled WebAssembly cannot be used: mkdir t.jsonl: not a directory; a directory that can be written is accepted"},
	{"no cache", one, "--engine wasm --wasm-cache=", 1, "--wasm-cache is empty; a path is accepted"},
	{"another engine", one, "--engine fast", 2, `--engine is "fast"; native or wasm or auto is accepted`},
	{"report below a file", one, "--report-json t.jsonl/r.json", 1, "--report-json: cannot write t.jsonl/r.json: not a directory"},
	{"lines into a directory", one, "--report-jsonl .", 1, "--report-jsonl: cannot write .: is a directory"},
	{"report on a full device", one, "--report-json /dev/full", 1, "cannot write /dev/full: no space left on device"},
	{"lines on a full device", one, "--report-jsonl /dev/full --report-json r.json", 1, "cannot write /dev/full: no space left on device"},
	{"heap profile on a full device", one, "--mem-profile /dev/full", 1, "cannot write /dev/full: no space left on device"},
	{"profile where none can be", one, "--cpu-profile /proc/none/x", 1, "--cpu-profile: cannot write /proc/none/x: no such file or directory"},
}

func TestBadInput(t *testing.T) {
	if len(badInputs) < 60 {
		t.Fatalf("only %d cases", len(badInputs))
	}
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, "t.jsonl", c.trace)
			put(t, dir, "t.jsonl.gz", one)
			put(t, dir, "cut.gz", gzipped(t, strings.Repeat(one, 50))[:20])
			put(t, dir, "cut.json", "{\"engine\":\n {\"block_size\": ")
			before := tree(t, dir)
			args := []string{"t.jsonl"}
			if rest, own := strings.CutPrefix(c.args, "!"); own {
				args = strings.Fields(rest)
			} else {
				args = append(args, strings.Fields(c.args)...)
			}
			expect(t, invoke(t, dir, args...), c.status, c.want)
			expect(t, invoke(t, dir, append(slices.Clone(sandbox), args...)...), c.status, c.want)
			if after := tree(t, dir); after != before {
				t.Errorf("files changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// expect wants nothing on standard output and one sentence on standard error.
func expect(t *testing.T, got outcome, status int, want string) {
	t.Helper()
	if got.stderr != "replay: "+want+"\n" {
		t.Errorf("got  %swant replay: %s", got.stderr, want)
	}
	if got.status != status {
		t.Errorf("status %d, want %d", got.status, status)
	}
	if got.stdout != "" {
		t.Errorf("standard output: %s", got.stdout)
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A line that never ends must not fill the memory.
func TestHugeLine(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "t.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"hash_ids":[1`)
	chunk := bytes.Repeat([]byte(",1"), 1<<19)
	for range 100 {
		f.Write(chunk)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, invoke(t, dir, "t.jsonl"), 1, "t.jsonl:1: the line is longer than 67108864 bytes; want one JSON object per line")
}

// A disk that is full in the middle of the lines leaves no file behind. The
// limit on the size of files stands for it.
func TestFullDisk(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	put(t, dir, "t.jsonl", strings.Repeat(one, 200))
	before := tree(t, dir)
	cmd := exec.Command("bash", "-c", `trap '' XFSZ; ulimit -f 64; exec "$0" t.jsonl --report-json r.json --report-jsonl r.jsonl`, program)
	cmd.Dir = dir
	expect(t, finish(t, cmd), 1, "cannot write r.jsonl: file too large")
	if after := tree(t, dir); after != before {
		t.Errorf("files changed from\n%s\nto\n%s", before, after)
	}
}

func TestFullStandardOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	for _, args := range [][]string{{"t.jsonl"}, {"--help"}, {"--version"}} {
		dir := t.TempDir()
		put(t, dir, "t.jsonl", one)
		cmd := command(dir, args...)
		cmd.Stdout = full
		expect(t, finish(t, cmd), 1, "cannot write standard output: no space left on device")
	}
}

// recordedCommand is a command line, and how the reference's ends.
type recordedCommand struct {
	Name   string
	Argv   []string
	Files  map[string]string
	Status int    `json:"reference_status"`
	Want   string // our sentence, if it is rejected
}

func recordedCommands(t *testing.T, file string) (cases []recordedCommand) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/cli/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// invoke runs it where its files are.
func (c *recordedCommand) invoke(t *testing.T) outcome {
	t.Helper()
	dir := t.TempDir()
	for name, text := range c.Files {
		put(t, dir, name, text)
	}
	return invoke(t, dir, c.Argv...)
}

// testdata/cli/rejected.json holds what the reference's command line rejects.
func TestRejectedAsReference(t *testing.T) {
	cases := recordedCommands(t, "rejected.json")
	if len(cases) < 69 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got := c.invoke(t)
			if c.Status != 0 {
				expect(t, got, c.Status, strings.TrimPrefix(c.Want, "replay: "))
				return
			}
			if got.status != 0 || !strings.HasPrefix(got.stdout, "NVIDIA AIPerf | LLM Metrics\n") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A program that was built without core.wasm says so; natively it works.
func TestWithoutCore(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "t.jsonl", one)
	core, err := filepath.Abs("../../" + corewasm.Path)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{core: ""}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "overlay.json", string(overlay))
	bare := filepath.Join(dir, "bare")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bare, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bare, "t.jsonl", "--engine", "wasm")
	cmd.Dir = dir
	expect(t, finish(t, cmd), 1, "--engine wasm: this program was built without core.wasm; one built with make carries it")
	cmd = exec.Command(bare, "t.jsonl")
	cmd.Dir = dir
	ok(t, finish(t, cmd))
}
