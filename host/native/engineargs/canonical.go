package engineargs

import (
	"math"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// canonical reads {"engine": {…}, "dp_size": …, "dynamo": {…}}.
func (d *decoder) canonical(root value) error {
	d.args = Default()
	if err := d.walk(root, launchFields()); err != nil {
		return err
	}
	d.defaultBlockSize("engine.block_size")
	if _, said := d.at["num_gpu_blocks_is_explicit"]; !said {
		_, d.args.NumGPUBlocksExplicit = d.at["engine.num_gpu_blocks"]
	}
	return nil
}

// defaultBlockSize fills a block size that is absent or null; the backend is
// known by now, wherever it stands in the text.
func (d *decoder) defaultBlockSize(key string) {
	if v, ok := d.at[key]; !ok || v.kind == null {
		d.args.Engine.BlockSize = config.DefaultBlockSize(d.args.Engine.Backend)
	}
}

func launchFields() []field {
	return []field{
		{"engine", "engine", wantObject, setObject(engineFields)},
		{"dp_size", "dp_size", wantPositive, setCount(config.MaxRanks+1, func(a *Args) *int { return &a.Engine.DPSize })},
		{"tensor_parallel_size", "tensor_parallel_size", wantPositive, setCount(config.MaxTensorSize+1, func(a *Args) *int { return &a.Engine.TensorParallelSize })},
		{"startup_time", "startup_time", wantNumber + " or null", setOptReal(0, math.MaxFloat64, func(a *Args) *OptFloat { return &a.StartupTimeS })},
		{"num_gpu_blocks_is_explicit", "num_gpu_blocks_is_explicit", wantBool, setBool(func(a *Args) *bool { return &a.NumGPUBlocksExplicit })},
		{"gpu_memory_utilization", "gpu_memory_utilization", wantFraction, setOptReal(0, 1, func(a *Args) *OptFloat { return &a.GPUMemoryUtilization })},
		{"mem_fraction_static", "mem_fraction_static", wantFraction, setOptReal(0, 1, func(a *Args) *OptFloat { return &a.MemFractionStatic })},
		{"free_gpu_memory_fraction", "free_gpu_memory_fraction", wantFraction, setOptReal(0, 1, func(a *Args) *OptFloat { return &a.FreeGPUMemoryFraction })},
		{"cuda_graph_reserved_bytes", "cuda_graph_reserved_bytes", wantUint + " or null", setOptUint(0, math.MaxUint64, func(a *Args) *OptUint { return &a.CUDAGraphReservedBytes })},
		{"dynamo", "dynamo", wantObject, setObject(dynamoFields)},
	}
}

func engineFields() []field {
	e := func(name, accepts string, set setter) field { return field{name, "engine." + name, accepts, set} }
	seqs := func(a *Args) *int { return &a.Engine.MaxNumSeqs }
	budget := func(a *Args) *int { return &a.Engine.MaxNumBatchedTokens }
	limit := func(a *Args) *int { return &a.Engine.MaxModelLen }
	size := func(a *Args) *int { return &a.Engine.BlockSize }
	bytesPerToken := setOptUint(1, math.MaxUint64, func(a *Args) *OptUint { return &a.KVTransferBytesPerToken })
	return []field{
		e("backend", oneOf(backendWords), setWord(backendWords, func(a *Args, i int) { a.Engine.Backend = config.Backend(i) })),
		e("num_gpu_blocks", wantPositive, setCount(config.MaxGPUBlocks+1, func(a *Args) *int { return &a.Engine.NumGPUBlocks })),
		e("block_size", wantPositive+" or null", orNull(0, size, setCount(config.MaxBlockSize+1, size))),
		e("max_model_len", wantPositive+" or null", orNull(0, limit, positive(setCount(config.Unbounded, limit)))),
		e("max_num_seqs", wantPositive+" or null (no limit)", orNull(config.Unbounded, seqs, setCount(config.Unbounded, seqs))),
		e("max_num_batched_tokens", wantPositive+" or null (no limit)", orNull(config.Unbounded, budget, setCount(config.Unbounded, budget))),
		e("prefill_schedule_interval", wantPositive, setUint(1, math.MaxUint64, func(a *Args) *uint64 { return &a.PrefillScheduleInterval })),
		e("prefill_decode_interval", wantUint, setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.PrefillDecodeInterval })),
		e("enable_prefix_caching", wantBool, setBool(func(a *Args) *bool { return &a.Engine.EnablePrefixCaching })),
		e("enable_chunked_prefill", wantBool, setBool(func(a *Args) *bool { return &a.Engine.EnableChunkedPrefill })),
		e("speedup_ratio", wantNumber, setReal(func(a *Args) *float64 { return &a.Engine.SpeedupRatio })),
		e("decode_speedup_ratio", wantNumber, setReal(func(a *Args) *float64 { return &a.Engine.DecodeSpeedupRatio })),
		e("aic_nextn", "a whole number from 1 to 5 or null", (*decoder).nextN),
		e("aic_nextn_accept_rates", wantText, (*decoder).acceptRates),
		e("aic_mtp_seed", wantUint, setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.MTPSeed })),
		e("worker_type", oneOf(roleWords), setWord(roleWords, func(a *Args, i int) { a.Engine.Role = config.Role(i) })),
		e("preemption_mode", oneOf(preemptionWords), setWord(preemptionWords, func(a *Args, i int) { a.Engine.Preemption = config.Preemption(i) })),
		e("emit_kv_events", wantBool, setBool(func(a *Args) *bool { return &a.Engine.EmitKVEvents })),
		e("emit_kv_token_ids", wantBool, setBool(func(a *Args) *bool { return &a.Engine.EmitKVTokenIDs })),
		e("kv_transfer_bytes_per_token", wantPositive+" or null", bytesPerToken),
		{"kv_bytes_per_token", "engine.kv_transfer_bytes_per_token", wantPositive + " or null", bytesPerToken},
		e("kv_cache_bytes_per_token", wantPositive+" or null", setOptUint(1, math.MaxUint64, func(a *Args) *OptUint { return &a.KVCacheBytesPerToken })),
		e("kv_cache_groups", "an array", (*decoder).cacheGroups),
		e("kv_cache_capacity_bytes", wantUint+" or null", setLater(number, "a KV cache measured in bytes")),
		e("native_host_offload", wantObject+" or null", (*decoder).hostOffload),
		e("state_cache", wantObject+" or null", setLater(object, "the recurrent-state cache")),
		e("kv_eviction_policy", `"lru" or null`, evictionPolicy),
		e("prefix_match_unit", wantPositive+" or null", setLater(number, "a prefix match unit other than the block")),
		e("g3_offload", wantObject+" or null", (*decoder).diskOffload),
		e("kv_transfer_bandwidth", wantNumber+" or null", setOptReal(0, math.MaxFloat64, func(a *Args) *OptFloat { return &a.KVTransferBandwidthGBs })),
		e("kv_transfer_timing_mode", oneOf(transferWords), setWord(transferWords, func(a *Args, i int) { a.DestinationMissing = i == 1 })),
		e("timing_model", `an object such as {"type": "polynomial"}`, (*decoder).timing),
		e("sglang", wantObject, setObject(sglangFields)),
		e("trtllm", wantObject, setObject(trtllmFields)),
	}
}

func sglangFields() []field {
	s := func(name, accepts string, set setter) field {
		return field{name, "engine.sglang." + name, accepts, set}
	}
	return []field{
		s("schedule_policy", oneOf(policyWords), setWord(policyWords, func(a *Args, i int) { a.SGLang.LongestPrefixFirst = i == 1 })),
		s("max_prefill_tokens", wantUint, setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.MaxPrefillTokens })),
		s("chunked_prefill_size", wantUint, setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.ChunkedPrefillSize })),
		s("clip_max_new_tokens", wantUint, setUint(0, math.MaxUint64, func(a *Args) *uint64 { return &a.SGLang.ClipMaxNewTokens })),
		s("schedule_conservativeness", "a finite number", setReal(func(a *Args) *float64 { return &a.SGLang.Conservativeness })),
	}
}

func trtllmFields() []field {
	policy := []string{"guaranteed_no_evict"}
	return []field{
		{"capacity_scheduler_policy", "engine.trtllm.capacity_scheduler_policy", oneOf(policy), setWord(policy, func(*Args, int) {})},
	}
}

func dynamoFields() []field {
	y := func(name, accepts string, set setter) field { return field{name, "dynamo." + name, accepts, set} }
	return []field{
		y("enable_local_indexer", wantBool, setBool(func(a *Args) *bool { return &a.Dynamo.EnableLocalIndexer })),
		y("bootstrap_port", wantPort, setOptUint(0, math.MaxUint16, func(a *Args) *OptUint { return &a.Dynamo.BootstrapPort })),
		y("handoff_session_timeout_ms", wantPositive, setUint(1, math.MaxUint64, func(a *Args) *uint64 { return &a.Dynamo.HandoffSessionTimeoutMs })),
		y("reasoning", wantObject+" or null", (*decoder).reasoning),
		y("response_replay_trace_path", wantText, setOptText(func(a *Args) *OptString { return &a.Dynamo.ResponseReplayTracePath })),
		y("zmq_kv_events_port", wantPort, setOptUint(0, math.MaxUint16, func(a *Args) *OptUint { return &a.Dynamo.ZMQKVEventsPort })),
		y("zmq_replay_port", wantPort, setOptUint(0, math.MaxUint16, func(a *Args) *OptUint { return &a.Dynamo.ZMQReplayPort })),
		y("router_queue_policy", oneOf(queueWords, "null"), queuePolicy),
	}
}

func reasoningFields() []field {
	r := func(name, accepts string, set setter) field {
		return field{name, "dynamo.reasoning." + name, accepts, set}
	}
	const wantToken = "a whole number from 0 to 4294967295"
	return []field{
		r("start_thinking_token_id", wantToken, setUint(0, math.MaxUint32, func(a *Args) *uint64 { return &a.Dynamo.Reasoning.StartTokenID })),
		r("end_thinking_token_id", wantToken, setUint(0, math.MaxUint32, func(a *Args) *uint64 { return &a.Dynamo.Reasoning.EndTokenID })),
		r("thinking_ratio", "a number from 0 to 1", (*decoder).thinkingRatio),
	}
}

// oneOf words a choice: "a", "b" or "c". Words in others stay unquoted.
func oneOf(words []string, others ...string) string {
	all := make([]string, 0, len(words)+len(others))
	for _, w := range words {
		all = append(all, `"`+w+`"`)
	}
	all = append(all, others...)
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
