package main

// Features of the reference that are not built yet, as sentences call them.
const (
	disagg      = "disaggregated serving without a frontend"
	aisCapacity = "KV capacity by a share of memory; --num-gpu-blocks-override says it"
)

// estimatorKey begins the keys of what a grid is found by.
const estimatorKey = "engine.timing_model.config."

// engineFlags describe the simulated engine (live notes §1).
func engineFlags() []spec {
	return []spec{
		{name: "engine-type", kind: choice, choices: []string{"vllm", "sglang", "trtllm"}, def: "vllm", key: "engine.backend", arg: "engine", usage: "engine to simulate: vllm, sglang or trtllm"},
		{name: "num-gpu-blocks-override", kind: whole, key: "engine.num_gpu_blocks", arg: "blocks", usage: "KV blocks of each rank (default 16384)"},
		{name: "block-size", kind: whole, key: "engine.block_size", arg: "tokens", usage: "tokens of a KV block (default: vllm 64, sglang 1, trtllm 32)"},
		{name: "max-model-len", kind: whole, key: "engine.max_model_len", arg: "tokens", usage: "longest sequence, prompt and answer (default: no limit)"},
		{name: "max-num-seqs", kind: whole, def: "256", key: "engine.max_num_seqs", arg: "requests", usage: "requests that run at the same time"},
		{name: "max-num-batched-tokens", kind: whole, def: "8192", key: "engine.max_num_batched_tokens", arg: "tokens", usage: "tokens that a pass computes at most"},
		{name: "enable-prefix-caching", kind: toggle, def: "true", key: "engine.enable_prefix_caching", usage: "find what prompts have in common in the cache"},
		{name: "enable-chunked-prefill", kind: toggle, def: "true", key: "engine.enable_chunked_prefill", usage: "compute long prompts in several passes"},
		{name: "preemption-mode", kind: choice, choices: []string{"lifo", "fifo"}, def: "lifo", key: "engine.preemption_mode", arg: "mode", usage: "who leaves when the cache is full: the newest or the oldest"},
		{name: "data-parallel-size", kind: whole, key: "dp_size", arg: "ranks", usage: "data-parallel ranks of each worker (default 1)"},
		{name: "speedup-ratio", kind: real, def: "1.0", key: "engine.speedup_ratio", arg: "ratio", usage: "how much faster than real time; 0 is real time, as in the reference, 1e9 takes no time"},
		{name: "decode-speedup-ratio", kind: real, def: "1.0", key: "engine.decode_speedup_ratio", arg: "ratio", usage: "how much faster decode steps are on top of that"},
		{name: "planner-profile-data", arg: "path", usage: "pass durations from a profile: a NumPy archive or a profiler's results directory"},
		{name: "perf-grid", arg: "file", usage: "pass durations from a grid file (docs/timing.md)"},
		{name: "startup-time", kind: real, key: "startup_time", arg: "seconds", usage: "how long a worker needs to come up; requests wait (default 0)"},
		{name: "ais-nextn", legacy: "aic-nextn", kind: whole, key: "engine.aic_nextn", arg: "tokens", usage: "tokens drafted per step, 1 to 5 (default: no speculation)"},
		{name: "ais-nextn-accept-rates", legacy: "aic-nextn-accept-rates", key: "engine.aic_nextn_accept_rates", arg: "rates", usage: "chance of each draft after the one before it"},
		{name: "ais-mtp-seed", legacy: "aic-mtp-seed", kind: whole, def: "42", key: "engine.aic_mtp_seed", arg: "seed", usage: "seed of the drafts' luck"},
		{name: "kv-bytes-per-token", kind: whole, arg: "bytes", usage: "KV cache of a token (default: counted from --model-path where it is needed)"},
		{name: "kv-cache-dtype", kind: choice, choices: []string{"auto", "bfloat16", "fp8", "fp8_ds_mla", "fp8_e4m3", "fp8_e5m2", "fp8_inc"}, def: "auto", arg: "type", usage: "type of the cache's numbers, to count these bytes"},
		{name: "num-host-blocks", kind: whole, key: "engine.native_host_offload.num_host_blocks", arg: "blocks", usage: "KV blocks in host memory of each rank, vllm only (default: none)"},
		{name: "host-offload-d2h-bandwidth-gbps", kind: real, key: "engine.native_host_offload.d2h_bandwidth_gbps", arg: "GB/s", usage: "bandwidth to host memory (default 32)"},
		{name: "host-offload-h2d-bandwidth-gbps", kind: real, key: "engine.native_host_offload.h2d_bandwidth_gbps", arg: "GB/s", usage: "bandwidth from host memory (default 32)"},
		{name: "sglang-schedule-policy", kind: choice, choices: []string{"fifo", "lpm", "fcfs"}, words: map[string]string{"fcfs": "fifo"}, key: "engine.sglang.schedule_policy", arg: "policy", usage: "order of the queue (default fifo)"},
		{name: "sglang-page-size", kind: whole, arg: "tokens", usage: "older name of --block-size for sglang"},
		{name: "sglang-max-prefill-tokens", kind: whole, key: "engine.sglang.max_prefill_tokens", arg: "tokens", usage: "prompt tokens of a pass (default 16384)"},
		{name: "sglang-chunked-prefill-size", kind: whole, key: "engine.sglang.chunked_prefill_size", arg: "tokens", usage: "tokens of a chunk (default 8192)"},
		{name: "sglang-clip-max-new-tokens", kind: whole, key: "engine.sglang.clip_max_new_tokens", arg: "tokens", usage: "output that admission reckons with (default 4096)"},
		{name: "sglang-schedule-conservativeness", kind: real, key: "engine.sglang.schedule_conservativeness", arg: "factor", usage: "share of that output which is reserved (default 1.0)"},
		{name: "trtllm-capacity-scheduler-policy", kind: choice, choices: []string{"guaranteed_no_evict"}, key: "engine.trtllm.capacity_scheduler_policy", arg: "policy", usage: "only guaranteed_no_evict"},
		{name: "extra-engine-args", arg: "file", usage: "engine arguments as JSON, in place of all flags above"},
	}
}

// workerFlags describe the workers of this process.
func workerFlags() []spec {
	return []spec{
		{name: "model-path", arg: "path", usage: "directory of a model, for its tokenizer (default: a built-in one of bytes)"},
		{name: "model-name", arg: "name", usage: "name that requests ask for (default: --model-path, else dynamo)"},
		{name: "num-workers", kind: whole, def: "1", arg: "workers", usage: "workers in this process"},
		{name: "stagger-delay", kind: real, def: "0.0", arg: "seconds", usage: "time between the launches of workers; -1 chooses one"},
		{name: "reasoning", arg: "JSON", usage: "answers of a reasoning model: start_thinking_token_id, end_thinking_token_id, thinking_ratio"},
		{name: "response-replay-trace-path", arg: "file", usage: "Mooncake trace whose output_token_ids are answers, by annotation output_replay_id:KEY"},
	}
}

// httpFlags are about serving by itself; they are ours.
func httpFlags() []spec {
	return []spec{
		{name: "http", arg: "address", usage: "serve OpenAI's API there, without any other process: 127.0.0.1:8000, or :8000 for short; 0.0.0.0:8000 is open to others"},
		{name: "default-output-tokens", alone: true, kind: whole, def: "128", arg: "tokens", usage: "length of a chat's answer where the request does not say; completions have 16"},
		{name: "seed", kind: whole, def: "0", arg: "number", usage: "seed of answers, ids and the router's lots"},
		{name: "log-level", kind: choice, choices: []string{"trace", "debug", "info", "warn", "error", "off"}, def: "info", arg: "level", usage: "what is told on standard error; the first word of the variable DYN_LOG stands in for it"},
		{name: "log-format", kind: choice, choices: []string{"text", "json"}, def: "text", arg: "format", usage: "how it is told"},
		{name: "report-json", alone: true, arg: "path", usage: "at the end write what became of the requests there, in the form of a report of replay"},
		{name: "drain-timeout", env: "DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", kind: real, def: "900", arg: "seconds", usage: "how long requests under way may take after SIGTERM"},
		{name: "fault-seed", alone: true, kind: whole, def: "0", arg: "number", usage: "seed of the faults: equal seeds give the n-th request equal faults"},
		{name: "fault-jitter-ms", alone: true, kind: real, def: "0", arg: "ms", usage: "each token is late by up to this"},
		{name: "fault-error-rate", alone: true, kind: real, def: "0", arg: "chance", usage: "share of requests that are refused"},
		{name: "fault-error-status", alone: true, kind: whole, def: "500", arg: "status", usage: "with this status"},
		{name: "fault-stall-rate", alone: true, kind: real, def: "0", arg: "chance", usage: "share of answers that pause once"},
		{name: "fault-stall-ms", alone: true, kind: real, def: "1000", arg: "ms", usage: "for so long"},
		{name: "fault-disconnect-rate", alone: true, kind: real, def: "0", arg: "chance", usage: "share of answers whose connection breaks"},
		{name: "fault-rate-limit", alone: true, kind: real, def: "0", arg: "requests/s", usage: "more than these are refused with status 429; 0: no limit"},
	}
}

// aisFlags say for which model and GPU pass durations are taken from a grid, as
// the reference takes them from AISimulate.
func aisFlags() []spec {
	flag := func(name string, k kind, key, arg, usage string) spec {
		if key != "" {
			key = estimatorKey + key
		}
		return spec{name: "ais-" + name, legacy: "aic-" + name, kind: k, key: key, arg: arg, usage: usage}
	}
	return []spec{
		flag("perf-model", on, "", "", "pass durations and KV capacity from the grid of the model of --model-path and a GPU (docs/timing.md)"),
		flag("system", freeText, "system", "name", "the GPU (default h200_sxm)"),
		flag("backend", freeText, "backend", "engine", "the engine of the grid (default: that of --engine-type)"),
		flag("backend-version", freeText, "backend_version", "version", "its version (default: any)"),
		flag("tp-size", whole, "tp", "GPUs", "GPUs of a rank (default 1)"),
		flag("moe-tp-size", whole, "moe_tp_size", "GPUs", "GPUs that share an expert (default: any)"),
		flag("moe-ep-size", whole, "moe_ep_size", "groups", "groups that share the experts (default: any)"),
		flag("attention-dp-size", whole, "attention_dp", "ranks", "ranks that share the experts (default 1)"),
		{name: "ais-perf-config", arg: "JSON", usage: "all this as JSON, or the path of a JSON file"},
		{name: "grid-dir", arg: "path", usage: "directory where the grid is looked for, before those that the program carries"},
		{name: "gpu-memory-utilization", kind: real, arg: "value", later: aisCapacity},
		{name: "mem-fraction-static", kind: real, arg: "value", later: aisCapacity},
		{name: "free-gpu-memory-fraction", kind: real, arg: "value", later: aisCapacity},
	}
}

// frontendFlags are for workers behind a Dynamo frontend.
func frontendFlags() []spec {
	return []spec{
		{name: "disaggregation-mode", kind: choice, choices: []string{"agg", "prefill", "decode"}, def: "agg", arg: "mode", front: true, usage: "what workers do: all of a request, its prompt, or all but its prompt"},
		{name: "is-prefill-worker", kind: on, front: true, usage: "older spelling of --disaggregation-mode prefill"},
		{name: "is-decode-worker", kind: on, front: true, usage: "older spelling of --disaggregation-mode decode"},
		{name: "bootstrap-ports", kind: ports, arg: "ports", front: true, usage: "where workers that decode find those that compute prompts, one port for each of these (default: prompts are handed over through the frontend)"},
		{name: "kv-transfer-bandwidth", kind: real, key: "engine.kv_transfer_bandwidth", arg: "GB/s", front: true, usage: "bandwidth over which a prompt is handed over (default: no limit)"},
		{name: "kv-transfer-timing-mode", kind: choice, choices: []string{"full_prompt", "destination_missing"}, def: "full_prompt", key: "engine.kv_transfer_timing_mode", arg: "mode", front: true, usage: "what is moved then: all of it, or what the other worker lacks"},
		{name: "endpoint", arg: "endpoint", front: true, usage: "where workers are found (default dyn://NAMESPACE.backend.generate, NAMESPACE of DYN_NAMESPACE, else dynamo)"},
		{name: "discovery-backend", env: "DYN_DISCOVERY_BACKEND", kind: choice, choices: []string{"kubernetes", "etcd", "file", "mem"}, def: "etcd", arg: "backend", front: true, ready: []string{"etcd", "file", "mem"}, usage: "how frontends find workers: by etcd (ETCD_ENDPOINTS), by files (in DYN_FILE_KV, else in dynamo_store_kv of the temporary directory), not at all (mem)"},
		{name: "request-plane", env: "DYN_REQUEST_PLANE", kind: choice, choices: []string{"nats", "tcp"}, def: "tcp", arg: "plane", front: true, usage: "how requests come: over TCP or NATS (NATS_SERVER)"},
		{name: "response-plane", env: "DYN_RESPONSE_PLANE", kind: choice, choices: []string{"tcp", "quic"}, def: "tcp", arg: "plane", front: true, ready: []string{"tcp"}, usage: "how answers go; so far tcp"},
		{name: "event-plane", env: "DYN_EVENT_PLANE", kind: choice, choices: []string{"nats", "zmq"}, arg: "plane", front: true, usage: "how events go: over ZeroMQ or NATS (default zmq)"},
		{name: "zmq-kv-events-ports", kind: ports, arg: "ports", front: true, usage: "tell of caches as vLLM itself does, over ZeroMQ: for each worker the port of its first rank"},
		{name: "zmq-replay-ports", kind: ports, arg: "ports", front: true, usage: "ports where what was told there can be asked for again"},
		{name: "sglang-generate", kind: on, front: true, usage: "answer SGLang's own /generate, which the frontend then offers"},
	}
}

// routerFlags describe the router before the workers. The reference only tells
// the frontend of them.
func routerFlags() []spec {
	const (
		approximate = "routing without KV events"
		sharedCache = "caches that workers share"
		affinity    = "sessions bound to workers"
		thresholds  = "limits on busy workers"
		replicas    = "several routers"
	)
	return []spec{
		{name: "router-mode", env: "DYN_ROUTER_MODE", kind: choice, choices: []string{"round-robin", "random", "power-of-two", "kv", "direct", "least-loaded", "device-aware-weighted"}, arg: "mode", usage: "how a worker is chosen (default round-robin)"},
		{name: "load-aware", env: "DYN_ROUTER_LOAD_AWARE", kind: toggle, def: "false", usage: "look at the load only, not at what is cached"},
		{name: "router-kv-overlap-score-credit", env: "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT", kind: real, def: "1.0", field: "overlap_score_credit", arg: "blocks", usage: "cost that a cached block saves"},
		{name: "router-kv-overlap-score-credit-decay", env: "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY", kind: real, def: "0.0", field: "overlap_score_credit_decay", arg: "rate", usage: "how fast that falls with the load"},
		{name: "router-kv-overlap-score-weight", aliases: []string{"kv-overlap-score-weight"}, kind: real, field: "overlap_score_weight", arg: "weight", usage: "older name of --router-prefill-load-scale"},
		{name: "router-prefill-load-scale", env: "DYN_ROUTER_PREFILL_LOAD_SCALE", kind: real, def: "1.0", field: "prefill_load_scale", arg: "scale", usage: "weight of prompt work against decode blocks"},
		{name: "router-decode-active-request-weight", env: "DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT", kind: real, def: "0.0", field: "decode_active_request_weight", arg: "blocks", usage: "cost of each live request"},
		{name: "router-host-cache-hit-weight", env: "DYN_ROUTER_HOST_CACHE_HIT_WEIGHT", kind: real, def: "0.75", field: "host_cache_hit_weight", arg: "weight", usage: "worth of a block in host memory"},
		{name: "router-disk-cache-hit-weight", env: "DYN_ROUTER_DISK_CACHE_HIT_WEIGHT", kind: real, def: "0.25", field: "disk_cache_hit_weight", arg: "weight", usage: "worth of a block further down"},
		{name: "router-temperature", env: "DYN_ROUTER_TEMPERATURE", kind: real, def: "0.0", field: "router_temperature", arg: "degree", usage: "0 takes the cheapest worker, more draws lots"},
		{name: "router-track-active-blocks", aliases: []string{"track-active-blocks"}, env: "DYN_ROUTER_TRACK_ACTIVE_BLOCKS", kind: toggle, def: "true", field: "router_track_active_blocks", usage: "know the blocks of live prompts"},
		{name: "router-assume-kv-reuse", aliases: []string{"assume-kv-reuse"}, env: "DYN_ROUTER_ASSUME_KV_REUSE", kind: toggle, def: "true", field: "router_assume_kv_reuse", usage: "live prompts share blocks"},
		{name: "router-track-prefill-tokens", env: "DYN_ROUTER_TRACK_PREFILL_TOKENS", kind: toggle, def: "true", field: "router_track_prefill_tokens", usage: "know the prompt work that is left"},
		{name: "router-tracking-hash", env: "DYN_ROUTER_TRACKING_HASH", kind: choice, choices: []string{"public-xxh3-v1", "keyed-xxh3-v1"}, def: "public-xxh3-v1", field: "router_tracking_hash", arg: "hash", usage: "how blocks of live prompts are named"},
		{name: "router-tracking-key-file", env: "DYN_ROUTER_TRACKING_KEY_FILE", field: "router_tracking_key_file", arg: "file", usage: "key of the keyed names"},
		{name: "router-tracking-key-id", env: "DYN_ROUTER_TRACKING_KEY_ID", field: "router_tracking_key_id", arg: "name", usage: "name of that key"},
		{name: "router-queue-threshold", env: "DYN_ROUTER_QUEUE_THRESHOLD", kind: real, field: "router_queue_threshold", arg: "share", usage: "requests wait while all workers have more prompt work than this share of a pass"},
		{name: "router-queue-policy", env: "DYN_ROUTER_QUEUE_POLICY", kind: choice, choices: []string{"fcfs", "wspt"}, def: "fcfs", field: "router_queue_policy", arg: "policy", usage: "order of those that wait"},
		{name: "router-policy-config", env: "DYN_ROUTER_POLICY_CONFIG", field: "router_policy_config", arg: "file", usage: "classes of requests and their queues (docs/router.md)"},
		{name: "router-event-threads", env: "DYN_ROUTER_EVENT_THREADS", kind: whole, def: "4", field: "router_event_threads", arg: "threads", usage: "checked; the index here needs none"},

		{name: "router-kv-events", aliases: []string{"kv-events"}, env: "DYN_ROUTER_USE_KV_EVENTS", kind: toggle, def: "true", field: "use_kv_events", later: approximate},
		{name: "router-ttl-secs", env: "DYN_ROUTER_TTL_SECS", kind: real, def: "120.0", arg: "seconds", field: "router_ttl_secs", later: approximate},
		{name: "router-approximate-cache-policy", env: "DYN_ROUTER_APPROXIMATE_CACHE_POLICY", kind: choice, choices: []string{"ttl", "lru"}, def: "ttl", arg: "policy", told: true, later: approximate},
		{name: "router-predicted-ttl-secs", env: "DYN_ROUTER_PREDICTED_TTL_SECS", kind: real, arg: "seconds", field: "router_predicted_ttl_secs", later: approximate},
		{name: "router-replica-sync", env: "DYN_ROUTER_REPLICA_SYNC", kind: toggle, def: "false", field: "router_replica_sync", later: replicas},
		{name: "use-remote-indexer", env: "DYN_USE_REMOTE_INDEXER", kind: toggle, def: "false", field: "use_remote_indexer", later: replicas},
		{name: "router-track-output-blocks", aliases: []string{"track-output-blocks"}, env: "DYN_ROUTER_TRACK_OUTPUT_BLOCKS", kind: toggle, def: "false", field: "router_track_output_blocks", later: "tracking of output blocks"},
		{name: "router-prefill-load-model", env: "DYN_ROUTER_PREFILL_LOAD_MODEL", kind: choice, choices: []string{"none", "ais"}, def: "none", arg: "model", field: "router_prefill_load_model", usage: "predict how long prompts take, by the grid of the engine"},
		{name: "router-session-affinity-ttl-secs", env: "DYN_ROUTER_SESSION_AFFINITY_TTL_SECS", kind: whole, arg: "seconds", told: true, later: affinity},
		{name: "router-session-affinity-mode", env: "DYN_ROUTER_SESSION_AFFINITY_MODE", kind: choice, choices: []string{"hard", "soft"}, def: "hard", arg: "mode", told: true, later: affinity},
		{name: "enable-session-prefix-index", env: "DYN_ENABLE_SESSION_PREFIX_INDEX", kind: toggle, def: "false", field: "enable_session_prefix_index", later: affinity},
		{name: "active-decode-blocks-threshold", env: "DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD", kind: real, arg: "share", told: true, later: thresholds},
		{name: "active-prefill-tokens-threshold", env: "DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD", kind: whole, arg: "tokens", told: true, later: thresholds},
		{name: "active-prefill-tokens-threshold-frac", env: "DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD_FRAC", kind: real, arg: "share", told: true, later: thresholds},
		{name: "router-conditional-disagg", env: "DYN_ROUTER_CONDITIONAL_DISAGG", kind: toggle, def: "false", later: disagg},
		{name: "router-conditional-disagg-config", env: "DYN_ROUTER_CONDITIONAL_DISAGG_CONFIG", arg: "JSON", later: disagg},
		{name: "router-prefill-policy", env: "DYN_ROUTER_PREFILL_POLICY", arg: "name", told: true, later: "named policies for choosing workers"},
		{name: "router-decode-policy", env: "DYN_ROUTER_DECODE_POLICY", arg: "name", told: true, later: "named policies for choosing workers"},
		{name: "shared-cache-multiplier", env: "DYN_SHARED_CACHE_MULTIPLIER", kind: real, arg: "share", field: "shared_cache_multiplier", later: sharedCache},
		{name: "shared-cache-type", env: "DYN_SHARED_CACHE_TYPE", kind: choice, choices: []string{"none", "hicache"}, def: "none", arg: "type", field: "shared_cache_type", later: sharedCache},
	}
}
