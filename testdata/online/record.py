"""Records what the reference says of replays in real time: which keys its reports and its records of requests have, which
parameters it refuses and how. Times differ from run to run, so none is kept.

    /path/to/python/with/ai-dynamo==1.6.1 record.py > reference.json
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("DYN_LOG", "error")
from dynamo.replay import TelemetryOptions, run_synthetic_trace_replay, run_trace_replay  # noqa: E402

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "replay"
ENGINE = {"engine": {"backend": "vllm", "block_size": 64, "num_gpu_blocks": 1024}}


def engine(**fields):
    return {"engine": {**ENGINE["engine"], **fields}}


def keys(name, trace, **parameters):
    """The keys of a report and of the records of its requests."""
    lines = Path("/tmp") / f"{name}.jsonl"
    report = run_trace_replay(trace, replay_mode="online", report_jsonl_path=lines, **{"extra_engine_args": ENGINE, "trace_block_size": 64, **parameters})
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    lines.unlink()
    assert all(r.keys() == records[0].keys() for r in records)
    return {"report": sorted(report), "record": list(records[0]), "requests": report["num_requests"], "output_tokens": report["total_output_tokens"]}


def outcome(**parameters):
    """What comes of parameters: nothing, or an exception."""
    trace = parameters.pop("trace", HERE / "trace.jsonl")
    try:
        run_trace_replay(trace, replay_mode="online", **{"extra_engine_args": ENGINE, "trace_block_size": 64, **parameters})
    except Exception as e:
        return {"kind": type(e).__name__, "text": str(e)}
    return None


AGENTS = {"trace_format": "agentic_mooncake", "execution_model": "m"}
HOST = {"num_host_blocks": 100}
PARAMETERS = {
    "capture_per_request": {"capture_per_request": True},
    "planner_config": {"planner_config": {}},
    "telemetry_options": {"telemetry_options": TelemetryOptions()},
    "max_sim_time_ms": {"max_sim_time_ms": 60},
    "kv_event_lag_ms": {"kv_event_lag_ms": 5, "router_mode": "kv_router"},
    "kv_event_lag_ms 0": {"kv_event_lag_ms": 0, "router_mode": "kv_router"},
    "two pools": {"extra_engine_args": None, "prefill_engine_args": engine(worker_type="prefill"), "decode_engine_args": engine(worker_type="decode")},
    "worker_type": {"extra_engine_args": engine(worker_type="prefill")},
    "num_workers 0": {"num_workers": 0},
    "replay_concurrency 0": {"replay_concurrency": 0},
    "agents under a cap": {"trace": CASES / "agentic_mooncake_v2" / "trace.jsonl", "replay_concurrency": 1, **AGENTS},
    "mooncake-delta": {"trace_format": "mooncake-delta"},
    "shared host memory": {"extra_engine_args": engine(kv_cache_bytes_per_token=131072, native_host_offload={**HOST, "scope": "cluster_shared", "kv_layout_id": "x"})},
    "host memory of a rank": {"extra_engine_args": engine(kv_cache_bytes_per_token=131072, native_host_offload=HOST)},
    "disk": {"extra_engine_args": engine(kv_cache_bytes_per_token=131072, native_host_offload=HOST, g3_offload={"num_g3_blocks": 1000, "scope": "worker_local"})},
    "sla_ttft_ms 0": {"sla_ttft_ms": 0},
    "sla_ttft_ms -1": {"sla_ttft_ms": -1},
    "sla_e2e_ms and sla_ttft_ms": {"sla_e2e_ms": 40, "sla_ttft_ms": 5},
    "dp_size 2": {"extra_engine_args": {**ENGINE, "dp_size": 2}},
    "startup_time": {"extra_engine_args": {**ENGINE, "startup_time": 0.2}},
    "one worker behind the KV router": {"router_mode": "kv_router"},
    "num_prefill_workers": {"num_prefill_workers": 2},
}

made = {
    "reference": "ai-dynamo 1.6.1",
    "single": keys("single", HERE / "trace.jsonl"),
    "sla": keys("sla", HERE / "trace.jsonl", sla_ttft_ms=20.0),
    "sessions": keys("sessions", CASES / "session_trace" / "trace.jsonl", extra_engine_args=engine(block_size=16)),
    "agents": keys("agents", CASES / "agentic_mooncake_v2" / "trace.jsonl", **AGENTS),
    "synthetic": {"report": sorted(run_synthetic_trace_replay(100, 5, 4, replay_mode="online", extra_engine_args=ENGINE, arrival_interval_ms=5))},
    "parameters": {name: outcome(**parameters) for name, parameters in PARAMETERS.items()},
}
json.dump(made, sys.stdout, indent=1)
print()
