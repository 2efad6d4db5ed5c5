"""Parameters: those of the reference, their types, and what is said of wrong ones."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dryserve
import dryserve.replay
from dryserve import _arguments

from conftest import ROW

# The parameters of dynamo.replay 1.6.1 with their defaults, as inspect tells them.
TRACE = (
    "trace_files, *, extra_engine_args=None, prefill_engine_args=None, decode_engine_args=None, router_config=None, ais_perf_config=None, num_workers=1, "
    "num_prefill_workers=1, num_decode_workers=1, replay_concurrency=None, agentic_lanes=None, replay_mode='offline', router_mode='round_robin', "
    "arrival_speedup_ratio=1.0, trace_block_size=None, trace_format='mooncake', trace_shared_prefix_ratio=0.0, trace_num_prefix_groups=0, "
    "report_jsonl_path=None, max_sim_time_ms=None, model_name=None, sla_ttft_ms=None, sla_itl_ms=None, sla_e2e_ms=None, planner_config=None, "
    "performance_model_metadata=None, benchmark_granularity=8, capture_per_request=False, capture_planner_details=True, execution_model=None, "
    "weka_nested_timestamp_basis=None, telemetry_options=None, kv_event_lag_ms=None"
)
SYNTHETIC = (
    "input_tokens, output_tokens, request_count, *, extra_engine_args=None, prefill_engine_args=None, decode_engine_args=None, router_config=None, "
    "ais_perf_config=None, num_workers=1, num_prefill_workers=1, num_decode_workers=1, replay_concurrency=None, replay_mode='offline', "
    "router_mode='round_robin', arrival_speedup_ratio=1.0, request_rate=None, arrival_interval_ms=None, arrival_seed=42, turns_per_session=1, "
    "shared_prefix_ratio=0.0, num_prefix_groups=0, inter_turn_delay_ms=0.0, model_name=None, sla_ttft_ms=None, sla_itl_ms=None, sla_e2e_ms=None, "
    "planner_config=None, performance_model_metadata=None, benchmark_granularity=8, capture_per_request=False, capture_planner_details=True, "
    "telemetry_options=None, kv_event_lag_ms=None"
)


@pytest.mark.parametrize("function, want", [(dryserve.run_trace_replay, TRACE), (dryserve.run_synthetic_trace_replay, SYNTHETIC)])
def test_signatures(function: Any, want: str) -> None:
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(function).parameters.values()]
    assert str(inspect.Signature(bare))[1:].startswith(want + ", ")


def test_names() -> None:
    assert set(dryserve.replay.__all__) == {
        "PlannerReplayDetails", "ReplayReport", "ReplayTelemetryDetails", "TelemetryOptions", "run_synthetic_trace_replay", "run_trace_replay",
    }
    assert [(f.name, f.default) for f in dataclasses.fields(dryserve.TelemetryOptions)] == [
        ("sample_interval_ms", 1000.0), ("capture_in_memory", None), ("callback", None), ("jsonl_path", None),
    ]
    assert [f.name for f in dataclasses.fields(dryserve.ReplayReport)] == ["summary", "per_request", "coverage", "planner", "telemetry"]


class Colour(enum.Enum):
    VLLM = "vllm"


class Kept(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **values: Any) -> None:
        self.values_ = values

    def __getitem__(self, key: str) -> Any:
        return self.values_[key]

    def __iter__(self) -> Any:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


@dataclasses.dataclass
class Launch:
    engine: dict[str, Any]


class Model:
    """As pydantic's."""

    def model_dump(self) -> dict[str, Any]:
        return {"engine": {"block_size": 32}}


class Old:
    """As the engine arguments of ai-dynamo 1.4."""

    def dump_json(self) -> str:
        return '{"block_size": 32}'


def test_engine_arguments(trace: Path, tmp_path: Path) -> None:
    """Whatever gives JSON is taken."""
    want = dryserve.run_trace_replay(trace, extra_engine_args={"engine": {"block_size": 32}}).summary
    file = tmp_path / "e.json"
    file.write_text('{"engine": {"block_size": 32}}')
    numpy = pytest.importorskip("numpy")
    for given in (
        '{"engine": {"block_size": 32}}', file, str(file), Kept(engine=Kept(block_size=32)), Launch({"block_size": 32}), Model(), Old(),
        {"engine": {"backend": Colour.VLLM, "block_size": numpy.int64(32)}},
    ):
        got = dryserve.run_trace_replay(trace, extra_engine_args=given).summary
        assert got["mean_ttft_ms"] == want["mean_ttft_ms"] and got["committed_prefill_tokens"] == want["committed_prefill_tokens"], given


def test_spelling(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    args = _arguments.arguments({
        "num_workers": numpy.int64(2), "replay_concurrency": True, "arrival_speedup_ratio": 2, "max_sim_time_ms": 0.1, "sla_ttft_ms": numpy.float64(1e-300),
        "report_jsonl_path": tmp_path / "r", "trace_format": "mooncake", "router_mode": "round_robin", "router_config": dryserve.KvRouterConfig(router_temperature=0.5),
        "num_prefill_workers": 1, "model_name": None, "parity": True,
    }, ["-", "-x", "a b"])  # fmt: skip
    assert args == [
        "--num-workers=2", "--replay-concurrency=1", "--arrival-speedup-ratio=2.0", "--max-sim-time-ms=0.1", "--sla-ttft-ms=1e-300", f"--report-jsonl={tmp_path / 'r'}",
        "--trace-format=mooncake", '--router-config={"router_temperature": 0.5}', "--parity=true", "--", "./-", "-x", "a b",
    ]


def test_trace_files(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path or several, of any kind, also those that look like flags."""
    monkeypatch.chdir(trace.parent)
    for name in ("-", "--version", "-x", "serve", "sp ace", "ü.jsonl", b"b.jsonl", b"\xff.jsonl"):
        Path(name if isinstance(name, str) else name.decode(errors="surrogateescape")).write_text(ROW * 2)
        assert dryserve.run_trace_replay(name).summary["num_requests"] == 2  # type: ignore[arg-type]
    for files in (trace, str(trace), [trace], (trace for _ in range(1))):
        assert dryserve.run_trace_replay(files).summary["num_requests"] == 3


@pytest.mark.parametrize(
    "kind, sentence, parameters",
    [
        (TypeError, "num_workers is '2'; a whole number is accepted", {"num_workers": "2"}),
        (TypeError, "num_workers is 2.0; a whole number is accepted", {"num_workers": 2.0}),
        (TypeError, "arrival_speedup_ratio is '2'; a number is accepted", {"arrival_speedup_ratio": "2"}),
        (TypeError, "sla_ttft_ms is [1]; a number is accepted", {"sla_ttft_ms": [1]}),
        (TypeError, "router_mode is 1; a text is accepted", {"router_mode": 1}),
        (TypeError, "report_jsonl_path is 1.5; a path is accepted", {"report_jsonl_path": 1.5}),
        (TypeError, "parity is 1; True or False is accepted", {"parity": 1}),
        (TypeError, "extra_engine_args is 3; a mapping, JSON text or the path of a JSON file is accepted", {"extra_engine_args": 3}),
        (TypeError, "extra_engine_args has the value {1}; values of JSON are accepted", {"extra_engine_args": {"engine": {1}}}),
        (TypeError, "agentic_lanes must be an integer or None", {"agentic_lanes": True}),
        (TypeError, "progress is 3; True, False or a function of a dryserve.Progress is accepted", {"progress": 3}),
        (ValueError, "engine is 'fast'; 'auto', 'wasm' or 'native' is accepted", {"engine": "fast"}),
        (ValueError, "'--model-name=a\\x00b' has a NUL byte; text without one is accepted", {"model_name": "a\0b"}),
        (ValueError, "execution_model is blank; a name is accepted", {"execution_model": "  "}),
        (ValueError, "weka_nested_timestamp_basis is 'x'; 'auto', 'absolute' or 'relative' is accepted", {"weka_nested_timestamp_basis": "x"}),
        (ValueError, "weka_nested_timestamp_basis is given with trace_format 'mooncake'; 'weka' is accepted", {"weka_nested_timestamp_basis": "auto"}),
        (ValueError, "kv_event_lag_ms is -1; a finite number of at least 0 is accepted", {"kv_event_lag_ms": -1}),
        (ValueError, "kv_event_lag_ms is given with router_mode 'round_robin'; 'kv_router' is accepted", {"kv_event_lag_ms": 1.0}),
        (ValueError, "capture_per_request is given with replay_mode 'online'; replay_mode 'offline' is accepted", {"capture_per_request": True, "replay_mode": "online"}),
        (ValueError, "TelemetryOptions has no place for samples; capture_in_memory, callback or jsonl_path is needed", {"telemetry_options": dryserve.TelemetryOptions(capture_in_memory=False)}),
        (ValueError, "sample_interval_ms is -1; a finite number above 0 is accepted", {"telemetry_options": dryserve.TelemetryOptions(-1)}),
        (dryserve.ReplayError, "num_workers is 0; a whole number from 1 to 1048576 is accepted", {"num_workers": 0}),
        (dryserve.ReplayError, "max_sim_time_ms is -1; a finite number of at least 0 is accepted", {"max_sim_time_ms": -1}),
        (dryserve.ReplayError, "sla_ttft_ms is 0; a finite number above 0 is accepted", {"sla_ttft_ms": 0}),
        (dryserve.UsageError, "trace_format is \"nope\"; mooncake or mooncake-delta or agentic_mooncake or applied_compute_agentic or dynamo or weka or azure or burstgpt is accepted", {"trace_format": "nope"}),
        (dryserve.UsageError, "replay_mode is \"inline\"; offline or online is accepted", {"replay_mode": "inline"}),
    ],
)  # fmt: skip
def test_wrong(trace: Path, kind: type[Exception], sentence: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(kind) as e:
        dryserve.run_trace_replay(trace, **parameters)
    assert str(e.value) == sentence and type(e.value) is kind


def test_wrong_files(trace: Path) -> None:
    with pytest.raises(TypeError, match="trace_files is 3; a path or several are accepted"):
        dryserve.run_trace_replay(3)  # type: ignore[call-overload]
    with pytest.raises(dryserve.UsageError, match="trace_format mooncake is given, but no trace file"):
        dryserve.run_trace_replay([])
    with pytest.raises(dryserve.ReplayError, match="/nothing: no such file"):
        dryserve.run_trace_replay("/nothing")
    with pytest.raises(dryserve.UsageError, match="2 trace files are given"):
        dryserve.run_trace_replay([trace, trace])


def test_later(trace: Path) -> None:
    """What the helper does not have yet is refused by its name, and surely not ignored."""
    known = inspect.signature(dryserve.run_trace_replay).parameters
    later: dict[str, Any] = {
        "planner_config": {"mode": "agg"},
        "performance_model_metadata": {"a": 1}, "benchmark_granularity": 9,
    }
    for name, value in later.items():
        assert name in known
        with pytest.raises(dryserve.UsageError, match="is not built yet"):
            dryserve.run_trace_replay(trace, **{name: value})


def test_performance_model(trace: Path) -> None:
    """The router's predictions are those of a grid, by the identity that the reference's AisPerfConfig has."""
    identity = {"backend": "vllm", "system": "h200_sxm", "model": "meta-llama/Meta-Llama-3.1-8B", "tp": 1, "worker_type": "aggregated"}
    predicting: dict[str, Any] = {"router_mode": "kv_router", "num_workers": 2, "router_config": {"router_prefill_load_model": "ais"}}
    report = dryserve.run_trace_replay(trace, ais_perf_config=identity, **predicting)
    assert report.summary["num_requests"] > 0
    with pytest.raises(dryserve.ReplayError, match="router_prefill_load_model predicts"):
        dryserve.run_trace_replay(trace, **predicting)
    with pytest.raises(dryserve.ReplayError, match="ais_perf_config: no grid is for meta-llama/Meta-Llama-3.1-8B on h200_sxm with vllm, tp 8; there are shipped:"):
        dryserve.run_trace_replay(trace, ais_perf_config={**identity, "tp": 8}, **predicting)


def test_exceptions_travel() -> None:
    """Between processes."""
    import pickle

    for e in (dryserve.ReplayError("a", 3), dryserve.UsageError("b", 2), dryserve.HelperError("c")):
        back = pickle.loads(pickle.dumps(e))
        assert type(back) is type(e) and str(back) == str(e) and back.status == e.status


def test_router_config() -> None:
    config = dryserve.KvRouterConfig.from_json('{"router_temperature": 0.5, "overlap_score_credit": 2}')
    assert config.to_dict() == {"router_temperature": 0.5, "overlap_score_credit": 2}
    assert config.copy() == config and config.copy() is not config
    assert config.with_overrides(prefill_load_scale=3.0).to_dict() == {**config.to_dict(), "prefill_load_scale": 3.0}
    with pytest.raises(ValueError, match="has router_temprature; an object"):
        dryserve.KvRouterConfig.from_json('{"router_temprature": 0.5}')
    assert json.loads(_arguments.arguments({"router_config": config})[0].split("=", 1)[1]) == config.to_dict()

    class KvRouterConfig:
        """As ai-dynamo's, which shows a few of its values only."""

    with pytest.raises(TypeError, match="which does not tell its values; a mapping or dryserve.KvRouterConfig is accepted"):
        _arguments.arguments({"router_config": KvRouterConfig()})
