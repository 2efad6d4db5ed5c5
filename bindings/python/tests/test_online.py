"""Replays in real time: what comes back, what is refused as the reference refuses it, and that they end at once."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import dryserve

from conftest import ROW, TESTDATA, python

REFERENCE = json.loads((TESTDATA / "online" / "reference.json").read_text())
TRACE = TESTDATA / "online" / "trace.jsonl"
ENGINE = {"engine": {"backend": "vllm", "block_size": 64, "num_gpu_blocks": 1024}}
COUNTERS = {"rejected_requests", "failed_requests", "cancelled_requests", "unfinished_requests"}


@pytest.fixture(autouse=True)
def _late() -> Any:
    """A machine with much to do is late, and says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dryserve.ReplayWarning)
        yield


def online(trace: Path = TRACE, **parameters: Any) -> dict[str, Any]:
    """A run as a script for dynamo.replay asks for it."""
    summary: dict[str, Any] = dryserve.run_trace_replay(trace, replay_mode="online", **{"extra_engine_args": ENGINE, "trace_block_size": 64, **parameters})
    return summary


def test_summary(tmp_path: Path) -> None:
    """The summary comes back, with the reference's keys, and the requests are in the file."""
    lines = tmp_path / "r.jsonl"
    summary = online(report_jsonl_path=lines)
    want = REFERENCE["single"]
    assert type(summary) is dict and set(summary) == set(want["report"]) | COUNTERS
    assert summary["completed_requests"] == want["requests"] and summary["total_output_tokens"] == want["output_tokens"]
    assert 100 < summary["duration_ms"] <= summary["wall_time_ms"]  # the last request comes at 100 ms
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [list(r) for r in records] == [want["record"]] * 4
    assert [r["arrival_time_ms"] for r in records] == [0, 50, 100, 100]
    assert all(r["terminal_time_ms"] > r["arrival_time_ms"] for r in records)


@pytest.mark.parametrize(
    "parameters",
    [
        {"router_mode": "kv_router", "num_workers": 2},
        {"replay_concurrency": 2, "engine": "native"},
        {"extra_engine_args": {**ENGINE, "dp_size": 2}},
        {"extra_engine_args": {"engine": {"backend": "sglang"}}, "arrival_speedup_ratio": 10.0},
        {"sla_ttft_ms": 0, "sla_e2e_ms": 5.0},
        {"trace_format": "mooncake-delta"},
    ],
)
def test_runs(parameters: dict[str, Any]) -> None:
    assert online(**parameters)["completed_requests"] == 4


def test_synthetic() -> None:
    summary = dryserve.run_synthetic_trace_replay(100, 5, 4, replay_mode="online", extra_engine_args=ENGINE, arrival_interval_ms=5, progress=lambda p: None)
    assert set(summary) == set(REFERENCE["synthetic"]["report"]) | COUNTERS and summary["total_output_tokens"] == 20


def test_async() -> None:
    summary = asyncio.run(dryserve.run_trace_replay_async(TRACE, replay_mode="online", extra_engine_args=ENGINE))
    assert summary["completed_requests"] == 4


# The parameters that the reference was asked with, and the sentence here.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "capture_per_request": ({"capture_per_request": True}, "capture_per_request is given with replay_mode 'online'; replay_mode 'offline' is accepted"),
    "planner_config": ({"planner_config": {}}, "planner_config is given with replay_mode 'online'; replay_mode 'offline' is accepted"),
    "telemetry_options": ({"telemetry_options": dryserve.TelemetryOptions()}, "telemetry_options is given with replay_mode 'online'; replay_mode 'offline' is accepted"),
    "max_sim_time_ms": ({"max_sim_time_ms": 60}, "max_sim_time_ms is given with replay_mode online; it is accepted with offline"),
    "kv_event_lag_ms": ({"kv_event_lag_ms": 5, "router_mode": "kv_router"}, "kv_event_lag_ms is given with replay_mode online; it is accepted with offline"),
    "sla_ttft_ms -1": ({"sla_ttft_ms": -1}, "sla_ttft_ms is -1; a finite number of at least 0 is accepted"),
    "two pools": (
        {"extra_engine_args": None, "prefill_engine_args": {"engine": {"worker_type": "prefill"}}, "decode_engine_args": {"engine": {"worker_type": "decode"}}},
        "workers in two pools (prefill_engine_args) are given with replay_mode online; workers that serve whole requests (extra_engine_args) are accepted, or replay_mode offline",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """What the reference refuses with a ValueError is one here."""
    parameters, sentence = REFUSED[name]
    kind = ValueError if REFERENCE["parameters"][name]["kind"] == "ValueError" and name != "sla_ttft_ms -1" else dryserve.ReplayError
    with pytest.raises(kind) as e:
        online(**parameters)
    assert str(e.value) == sentence


def test_refused_besides() -> None:
    """What the reference does not have."""

    class Never:
        """Answers nothing."""

        def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
            raise AssertionError

        def predict_decode(self, batch_size: int, isl: int, osl: int) -> float:
            raise AssertionError

        def initial_tick_ms(self) -> float:
            raise AssertionError

        def on_tick(self, tick: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError

    for name in ("performance_model", "scaling_policy"):
        with pytest.raises(ValueError, match=f"{name} is given with replay_mode 'online'; replay_mode 'offline' is accepted"):
            never: dict[str, Any] = {name: Never()}
            online(**never)
    with pytest.raises(ValueError, match="engine is 'wasm', where no time passes, and replay_mode 'online' is in real time; 'auto' or 'native' is accepted"):
        online(engine="wasm")
    with pytest.raises(dryserve.UsageError, match="parity is given with replay_mode online; it is accepted with offline"):
        online(parity=True)
    with pytest.raises(ValueError, match="replay_mode is 'online', but scenarios of a sweep run side by side"):
        dryserve.sweep({"num_workers": [1, 2]}, trace_files=TRACE, replay_mode="online")


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends the wait for the next request."""
    (tmp_path / "t.jsonl").write_text(ROW + ROW.replace('"timestamp":0', '"timestamp":3600000'))
    program = "import dryserve\ndryserve.run_trace_replay('t.jsonl', replay_mode='online', report_jsonl_path='r.jsonl')"
    process = subprocess.Popen(python("-c", program), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while len(list(tmp_path.iterdir())) == 1:  # until the file of the requests is begun
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    for _ in range(500):  # the helper goes when its client has
        if len(list(tmp_path.iterdir())) == 1:
            break
        time.sleep(0.01)
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]
