package coretest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// wrong are scenarios that cannot be run, as JSON, by what is wrong. Those
// without a workload get a synthetic one.
var wrong = []string{
	// engine arguments by themselves
	`{"engine": {"num_gpu_blocks": 0}}`, `{"engine": {"num_gpu_blocks": 2147483648}}`, `{"engine": {"num_gpu_blocks": -1}}`, `{"engine": {"num_gpu_blocks": 1.5}}`,
	`{"engine": {"num_gpu_blocks": "many"}}`, `{"engine": {"num_gpu_blocks": null}}`, `{"engine": {"num_gpu_blocks": 1e21}}`, `{"engine": {"block_size": 0}}`,
	`{"engine": {"block_size": 1}}`, `{"engine": {"type": "trtllm", "block_size": 1}}`, `{"engine": {"block_size": 2147483648}}`, `{"engine": {"block_size": true}}`,
	`{"engine": {"num_gpu_blocks": 2147483647, "block_size": 2147483647}}`,
	`{"engine": {"max_model_len": 0}}`, `{"engine": {"max_model_len": "long"}}`, `{"engine": {"max_num_seqs": 0}}`, `{"engine": {"max_num_seqs": 1.25}}`,
	`{"engine": {"max_num_batched_tokens": 0}}`, `{"engine": {"max_num_batched_tokens": []}}`, `{"engine": {"enable_prefix_caching": 1}}`, `{"engine": {"enable_chunked_prefill": "no"}}`,
	`{"engine": {"type": "sglang", "enable_chunked_prefill": false}}`, `{"engine": {"speedup_ratio": -1}}`, `{"engine": {"speedup_ratio": "fast"}}`, `{"engine": {"decode_speedup_ratio": -0.5}}`,
	`{"engine": {"type": "nothing"}}`, `{"engine": {"type": 1}}`, `{"engine": {"preemption_mode": "random"}}`, `{"engine": {"emit_kv_token_ids": true}}`,
	`{"engine": {"prefill_schedule_interval": 0}}`, `{"engine": {"type": "sglang", "prefill_schedule_interval": 2}}`, `{"engine": {"prefill_decode_interval": 3}}`, `{"engine": {"prefill_decode_interval": -3}}`,
	`{"engine": {"dp_size": 0}}`, `{"engine": {"dp_size": 1048577}}`, `{"engine": {"dp_size": "two"}}`, `{"engine": {"tensor_parallel_size": 0}}`, `{"engine": {"tensor_parallel_size": 4294967296}}`,
	`{"engine": {"aic_nextn": 6}}`, `{"engine": {"aic_nextn": 0}}`, `{"engine": {"aic_nextn_accept_rates": "0.5"}}`, `{"engine": {"aic_nextn": 2, "aic_nextn_accept_rates": "0.5,x"}}`,
	`{"engine": {"aic_nextn": 2, "aic_nextn_accept_rates": "0.5,1.5"}}`, `{"engine": {"aic_nextn": 2, "aic_nextn_accept_rates": 3}}`, `{"engine": {"aic_nextn": 2, "decode_speedup_ratio": 2}}`,
	`{"engine": {"aic_mtp_seed": -1}}`, `{"engine": {"kv_transfer_bandwidth": -1}}`, `{"engine": {"kv_transfer_bytes_per_token": 0}}`, `{"engine": {"kv_transfer_timing_mode": "some"}}`,
	`{"engine": {"kv_cache_bytes_per_token": 0}}`, `{"engine": {"worker_type": "prefill"}}`, `{"engine": {"worker_type": "other"}}`,
	`{"engine": {"kv_cache_groups": [1]}}`, `{"engine": {"kv_cache_groups": 1}}`, `{"engine": {"kv_cache_capacity_bytes": 5}}`, `{"engine": {"state_cache": {}}}`, `{"engine": {"kv_eviction_policy": "belady"}}`,
	`{"engine": {"kv_eviction_policy": "fifo"}}`, `{"engine": {"prefix_match_unit": 3}}`,
	`{"engine": {"num_gpu_block": 3}}`, `{"engine": {"something_else": 3}}`, `{"engine": {"sglang": {"page": 3}}}`, `{"engine": {"sglang": 3}}`, `{"engine": {"trtllm": {"capacity_scheduler_policy": "x"}}}`,
	`{"engine": {"type": "sglang", "sglang": {"max_prefill_tokens": 0}}}`, `{"engine": {"type": "sglang", "sglang": {"chunked_prefill_size": 0}}}`, `{"engine": {"type": "sglang", "sglang": {"chunked_prefill_size": 100}, "block_size": 64}}`,
	`{"engine": {"type": "sglang", "block_size": 100}}`, `{"engine": {"type": "sglang", "sglang": {"chunked_prefill_size": 4}, "dp_size": 5}}`, `{"engine": {"type": "sglang", "dp_size": 8193}}`,
	`{"engine": {"type": "sglang", "sglang": {"schedule_conservativeness": -1}}}`, `{"engine": {"sglang": {"schedule_conservativeness": "x"}}}`, `{"engine": {"sglang": {"schedule_policy": "x"}}}`, `{"engine": {"sglang": {"clip_max_new_tokens": -1}}}`,
	`{"engine": {"startup_time": -1}}`, `{"engine": {"gpu_memory_utilization": 2}}`, `{"engine": {"cuda_graph_reserved_bytes": -1}}`, `{"engine": {"num_gpu_blocks_is_explicit": 1}}`,
	`{"engine": {"dynamo": {"router_queue_policy": "x"}}}`, `{"engine": {"dynamo": {"bootstrap_port": 70000}}}`, `{"engine": {"dynamo": {"reasoning": {"thinking_ratio": 0.5}}}}`, `{"engine": {"dynamo": {"nothing": 1}}}`,
	// host memory and disks
	`{"engine": {"native_host_offload": {"num_host_blocks": 5}}}`, `{"engine": {"native_host_offload": {}}}`, `{"engine": {"native_host_offload": 5}}`, `{"engine": {"native_host_offload": {"num_host_blocks": 0}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "scope": "x"}}}`, `{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "d2h_bandwidth_gbps": -1}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "scope": "cluster_shared"}}}`, `{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "scope": "cluster_shared", "kv_layout_id": " "}}}`,
	`{"engine": {"type": "trtllm", "kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}}}`, `{"engine": {"enable_prefix_caching": false, "kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}}}`,
	`{"engine": {"aic_nextn": 1, "kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}}}`, `{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 2147483648}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 9000000000000000, "native_host_offload": {"num_host_blocks": 2147483647}}}`,
	`{"engine": {"g3_offload": {"num_g3_blocks": 5, "scope": "worker_local"}}}`, `{"engine": {"g3_offload": {"num_g3_blocks": 5}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "scope": "cluster_shared", "kv_layout_id": "x"}, "g3_offload": {"num_g3_blocks": 5, "scope": "worker_local"}}}`,
	`{"engine": {"dp_size": 2, "kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}, "g3_offload": {"num_g3_blocks": 5, "scope": "worker_local"}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}, "g3_offload": {"num_g3_blocks": 5, "scope": "worker_local", "read_bandwidth_gbps": 0, "latency_to_first_byte_ms": 0}}}`,
	`{"engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}, "g3_offload": {"num_g3_blocks": 2147483648, "scope": "worker_local"}}}`,
	`{"router": {"mode": "kv_router"}, "engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5, "scope": "cluster_shared", "kv_layout_id": "x"}}}`,
	`{"router": {"mode": "kv_router"}, "engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}, "g3_offload": {"num_g3_blocks": 5, "scope": "worker_local"}}}`,
	// durations
	`{"timing": {"kind": "fixed", "prefillMs": -1, "decodeMs": 1}}`, `{"timing": {"kind": "fixed", "prefillMs": 1, "decodeMs": -1}}`, `{"timing": {"kind": "fixed", "prefillMs": 1}}`, `{"timing": {"kind": "fixed", "prefillMs": "x", "decodeMs": 1}}`,
	// the run
	`{"numWorkers": 0}`, `{"numWorkers": 1048577}`, `{"numWorkers": 1.5}`, `{"numWorkers": "two"}`, `{"numWorkers": -3}`, `{"numWorkers": 1e30}`, `{"sla": {"ttftMs": 0}}`, `{"sla": {"itlMs": -1}}`, `{"sla": {"e2eMs": 5, "ttftMs": 5}}`, `{"sla": {"e2eMs": "soon"}}`,
	`{"maxSimTimeMs": 5}`, `{"numPrefillWorkers": 2}`, `{"numDecodeWorkers": 2}`, `{"transferSharing": "pair"}`, `{"transferSharing": "x"}`, `{"prefillWorkersPerNode": 2}`,
	`{"router": {"kvEventLagMs": 5}}`, `{"router": {"mode": "kv_router", "kvEventLagMs": -5}}`, `{"router": {"mode": "random", "seed": -1}}`, `{"router": {"mode": "random", "seed": "18446744073709551616"}}`,
	// synthetic workloads
	`{"workload": {"kind": "synthetic", "inputTokens": 0, "outputTokens": 1, "requestCount": 1, "concurrency": 1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 2147483648, "requestCount": 1, "concurrency": 1}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": -1, "concurrency": 1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 0}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "requestRate": 1}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "concurrency": 1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "requestRate": 0}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "arrivalIntervalMs": 1e-320}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "arrivalIntervalMs": -4}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "sharedPrefixRatio": 2}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "numPrefixGroups": -1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "numPrefixGroups": 4294967296}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "interTurnDelayMs": -1}}`, `{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "concurrency": 1, "arrivalSpeedup": 0}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 3, "arrivalIntervalMs": 1.7e308}}`, `{"workload": {"kind": "synthetic", "inputTokens": 100, "outputTokens": 1, "requestCount": 2000000000, "turnsPerSession": 9, "concurrency": 1}}`,
	`{"workload": {"kind": "synthetic", "inputTokens": 1, "outputTokens": 1, "requestCount": 1, "requestRate": 1, "arrivalSeed": 1.5}}`,
	// the router
	`{"router": {"mode": "kv_router", "config": {"overlap_score_credit": -1}}}`, `{"router": {"mode": "kv_router", "config": {"overlap_score_credit": "x"}}}`, `{"router": {"mode": "kv_router", "config": {"host_cache_hit_weight": 2}}}`,
	`{"router": {"mode": "kv_router", "config": {"host_cache_hit_weight": null}}}`, `{"router": {"mode": "kv_router", "config": {"router_temperature": -0.5}}}`, `{"router": {"mode": "kv_router", "config": {"router_queue_threshold": -0.5}}}`,
	`{"router": {"mode": "kv_router", "config": {"router_queue_policy": "x"}}}`, `{"router": {"mode": "kv_router", "config": {"router_track_active_blocks": 1}}}`, `{"router": {"mode": "kv_router", "config": {"router_track_output_blocks": true, "router_track_active_blocks": false}}}`,
	`{"router": {"mode": "kv_router", "config": {"nothing": 1}}}`, `{"router": {"mode": "kv_router", "config": {"router_temperatur": 1}}}`, `{"router": {"mode": "kv_router", "config": {"router_event_threads": 0}}}`, `{"router": {"mode": "kv_router", "config": {"router_event_threads": -1}}}`,
	`{"router": {"mode": "kv_router", "config": {"durable_kv_events": true}}}`, `{"router": {"mode": "kv_router", "config": {"router_prefill_load_model": "aic"}}}`, `{"router": {"mode": "kv_router", "config": {"router_prefill_load_model": "aic", "router_track_prefill_tokens": false}}}`,
	`{"router": {"mode": "kv_router", "config": {"use_remote_indexer": true, "serve_indexer": true}}}`, `{"router": {"mode": "kv_router", "config": {"use_kv_events": false, "router_predicted_ttl_secs": 5}}}`, `{"router": {"mode": "kv_router", "config": {"enable_session_prefix_index": true, "use_kv_events": false}}}`,
	`{"router": {"mode": "kv_router", "config": {"enable_session_prefix_index": true, "use_remote_indexer": true}}}`, `{"router": {"mode": "kv_router", "config": {"conditional_disagg_enabled": true, "conditional_disagg_policy": "prefill_load"}}}`, `{"router": {"mode": "kv_router", "config": {"router_tracking_key_id": "x"}}}`,
	`{"router": {"mode": "kv_router", "config": {"overlap_score_weight": -1}}}`, `{"router": {"mode": "round_robin", "config": {"overlap_score_weight": "x"}}}`, `{"router": {"mode": "kv_router", "config": {"shared_cache_multiplier": 3}}}`, `{"router": {"mode": "kv_router", "config": {"router_snapshot_threshold": 4294967296}}}`,
	`{"router": {"mode": "kv_router", "config": {"conditional_disagg_eff_isl_threshold": "x"}}}`, `{"router": {"mode": "kv_router", "config": {"router_policy_config": " "}}}`,
	// two pools
	`{"prefillEngine": {"num_gpu_blocks": 0}}`, `{"prefillEngine": {}, "engine": {"num_gpu_blocks": 0}}`, `{"prefillEngine": {"type": "sglang"}}`, `{"prefillEngine": {"block_size": 32}}`, `{"prefillEngine": {}, "numWorkers": 2}`, `{"prefillEngine": {}, "numPrefillWorkers": 0}`,
	`{"prefillEngine": {}, "numDecodeWorkers": 0}`, `{"prefillEngine": {}, "numDecodeWorkers": 1048577}`, `{"prefillEngine": {}, "numPrefillWorkers": 1048577}`, `{"prefillEngine": {}, "router": {"mode": "random"}}`, `{"prefillEngine": {}, "prefillWorkersPerNode": 2}`,
	`{"prefillEngine": {}, "transferSharing": "node", "prefillWorkersPerNode": 0}`, `{"prefillEngine": {"worker_type": "decode"}}`, `{"prefillEngine": {}, "engine": {"worker_type": "prefill"}}`, `{"prefillEngine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}}}`,
	`{"prefillEngine": {}, "engine": {"kv_cache_bytes_per_token": 5, "native_host_offload": {"num_host_blocks": 5}, "g3_offload": {"num_g3_blocks": 5, "scope": "worker_local"}}}`, `{"prefillEngine": {"dp_size": 0}}`, `{"prefillEngine": {"speedup_ratio": -2}}`, `{"prefillEngine": {"type": "trtllm", "block_size": 1}, "engine": {"type": "trtllm"}}`,
}

// location is where a sentence of the command line says that engine arguments
// are at fault; a page marks the field instead.
var location = regexp.MustCompile(`^(--(extra|prefill|decode)-engine-args:\d+:\d+: |--router-config: (line \d+: )?)`)

// said is what the command line says, without its name and location.
func said(stderr string) string {
	text := strings.TrimSuffix(strings.TrimPrefix(stderr, "replay: "), "\n")
	return location.ReplaceAllString(text, "")
}

// What is wrong with a scenario is said in the sentence of the command line that
// it amounts to.
func TestScenarioSentences(t *testing.T) {
	var jobs []job
	for i, text := range wrong {
		var s map[string]any
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if s["workload"] == nil {
			s["workload"] = map[string]any{"kind": "synthetic", "inputTokens": 10, "outputTokens": 2, "requestCount": 2, "concurrency": 1}
		}
		jobs = append(jobs, job{Name: fmt.Sprint(i), Scenario: s})
	}
	got := inNode(t, jobs)
	for i, j := range jobs {
		o := got[j.Name]
		stderr, err := run(t.TempDir(), append(o.Command[1:len(o.Command):len(o.Command)], "--no-table")...)
		switch {
		case err == nil:
			t.Errorf("%s: the command line takes it: %s", wrong[i], o.Shell)
		case len(o.Complaints) == 0:
			t.Errorf("%s: %s\nwant %s", wrong[i], o.Error, said(stderr))
		case o.Complaints[0].Sentence != said(stderr):
			t.Errorf("%s:\ngot  %s\nwant %s", wrong[i], o.Complaints[0].Sentence, said(stderr))
		case !placed(j.Scenario, o.Complaints[0].Path):
			t.Errorf("%s: there is no place %q for %s", wrong[i], o.Complaints[0].Path, o.Complaints[0].Sentence)
		}
	}
}

// placed reports whether a path leads to a value of a scenario, or to where one
// is missing.
func placed(s map[string]any, path string) bool {
	keys := strings.Split(path, ".")
	for _, k := range keys[:len(keys)-1] {
		inner, ok := s[k].(map[string]any)
		if !ok {
			return k == "engine"
		}
		s = inner
	}
	return path != ""
}
