"""The two functions of dynamo.replay 1.6.1 (replay notes §2), and their asynchronous forms."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, overload

from dryserve import _arguments, _run
from dryserve._errors import ReplayWarning
from dryserve._progress import Progress, listener
from dryserve._report import PlannerReplayDetails, ReplayReport, ReplayTelemetryDetails
from dryserve._run import PerformanceModel, ScalingPolicy

# Where a run is simulated: sandboxed in WebAssembly, as native code, or (auto)
# sandboxed. The results are the same. In real time it is always native code.
Engine = Literal["auto", "wasm", "native"]
_ENGINES = ("auto", "wasm", "native")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class TelemetryOptions:
    """Samples of a run at an interval of simulated time, in ms.

    They are kept in the report if there is no other place for them, unless
    ``capture_in_memory`` says otherwise. ``callback`` is called with each of
    them while the run goes on; what it raises ends the run and comes out.
    """

    sample_interval_ms: float = 1000.0
    capture_in_memory: bool | None = None
    callback: Callable[[dict[str, Any]], None] | None = None
    jsonl_path: str | os.PathLike[str] | None = None


# The parameters but replay_mode, on which the type of what comes back depends.
class _Parameters(TypedDict, total=False):
    extra_engine_args: Any
    prefill_engine_args: Any
    decode_engine_args: Any
    router_config: Any
    ais_perf_config: Any
    num_workers: int
    num_prefill_workers: int
    num_decode_workers: int
    replay_concurrency: int | None
    router_mode: str
    arrival_speedup_ratio: float
    model_name: str | None
    sla_ttft_ms: float | None
    sla_itl_ms: float | None
    sla_e2e_ms: float | None
    planner_config: Any
    performance_model_metadata: dict[str, Any] | None
    benchmark_granularity: int
    capture_per_request: bool
    capture_planner_details: bool
    telemetry_options: TelemetryOptions | None
    kv_event_lag_ms: float | None
    performance_model: PerformanceModel | None
    scaling_policy: ScalingPolicy | None
    router_seed: int | None
    engine: Engine
    parity: bool
    progress: bool | Callable[[Progress], object] | None
    _cancellation: _run.Cancellation | None


class _TraceParameters(_Parameters, total=False):
    agentic_lanes: int | None
    trace_block_size: int | None
    trace_format: str
    trace_shared_prefix_ratio: float
    trace_num_prefix_groups: int
    report_jsonl_path: str | os.PathLike[str] | None
    max_sim_time_ms: float | None
    execution_model: str | None
    weka_nested_timestamp_basis: str | None


class _SyntheticParameters(_Parameters, total=False):
    request_rate: float | None
    arrival_interval_ms: float | None
    arrival_seed: int
    turns_per_session: int
    shared_prefix_ratio: float
    num_prefix_groups: int
    inter_turn_delay_ms: float


@overload
def run_trace_replay(trace_files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, replay_mode: Literal["offline"] = "offline", **parameters: Unpack[_TraceParameters]) -> ReplayReport: ...
@overload
def run_trace_replay(trace_files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, replay_mode: Literal["online"], **parameters: Unpack[_TraceParameters]) -> dict[str, Any]: ...
@overload
def run_trace_replay(trace_files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, replay_mode: str, **parameters: Unpack[_TraceParameters]) -> ReplayReport | dict[str, Any]: ...
def run_trace_replay(
    trace_files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    extra_engine_args: Any = None,
    prefill_engine_args: Any = None,
    decode_engine_args: Any = None,
    router_config: Any = None,
    ais_perf_config: Any = None,
    num_workers: int = 1,
    num_prefill_workers: int = 1,
    num_decode_workers: int = 1,
    replay_concurrency: int | None = None,
    agentic_lanes: int | None = None,
    replay_mode: str = "offline",
    router_mode: str = "round_robin",
    arrival_speedup_ratio: float = 1.0,
    trace_block_size: int | None = None,
    trace_format: str = "mooncake",
    trace_shared_prefix_ratio: float = 0.0,
    trace_num_prefix_groups: int = 0,
    report_jsonl_path: str | os.PathLike[str] | None = None,
    max_sim_time_ms: float | None = None,
    model_name: str | None = None,
    sla_ttft_ms: float | None = None,
    sla_itl_ms: float | None = None,
    sla_e2e_ms: float | None = None,
    planner_config: Any = None,
    performance_model_metadata: dict[str, Any] | None = None,
    benchmark_granularity: int = 8,
    capture_per_request: bool = False,
    capture_planner_details: bool = True,
    execution_model: str | None = None,
    weka_nested_timestamp_basis: str | None = None,
    telemetry_options: TelemetryOptions | None = None,
    kv_event_lag_ms: float | None = None,
    performance_model: PerformanceModel | None = None,
    scaling_policy: ScalingPolicy | None = None,
    router_seed: int | None = None,
    engine: Engine = "auto",
    parity: bool = False,
    progress: bool | Callable[[Progress], object] | None = None,
    _cancellation: _run.Cancellation | None = None,
) -> ReplayReport | dict[str, Any]:
    """Replays a trace on simulated engines.

    With ``replay_mode="online"`` it is replayed in real time: requests are sent
    when they are due, engines and router run live, and times are measured on the
    machine's clock (docs/online.md). As in dynamo.replay the summary comes back then, a
    dictionary, and ``report_jsonl_path`` is for the requests.

    The parameters up to ``kv_event_lag_ms`` are those of dynamo.replay, with its
    defaults; ``trace_format`` also takes "auto". Besides:

    - ``performance_model``: an object that says how long passes take
      (:class:`dryserve.PerformanceModel`). Its exceptions come out of this call.
    - ``scaling_policy``: an object that says how many workers there are to be
      (:class:`dryserve.ScalingPolicy`); ``report.planner`` tells what came of it.
    - ``router_seed``: of the lots that the router draws among equals.
    - ``engine``: "wasm" (sandboxed), "native" (faster), or "auto", which is "wasm".
      The numbers are the same. In real time it is "native".
    - ``parity``: end as the reference does when a request can never be served,
      instead of failing that request alone.
    - ``progress``: True for a bar, or a function of a :class:`dryserve.Progress`.

    Raises ReplayError if the run cannot be done, its subclass UsageError (a
    ValueError) for arguments that do not go together or ask for what is not
    built, HelperError if the helper process fails; TypeError and ValueError for
    arguments of a wrong kind. Warns with ReplayWarning.
    """
    given = dict(locals())
    if isinstance(agentic_lanes, bool) or not isinstance(agentic_lanes, (int, type(None))):
        raise TypeError("agentic_lanes must be an integer or None")
    _check_basis(weka_nested_timestamp_basis, trace_format)
    given["execution_model"] = _target_model(execution_model, trace_format)
    files = _arguments.traces(given.pop("trace_files"))
    if planner_config is not None and trace_format != "dynamo" and len(files) != 1:
        raise ValueError(f"planner_config with trace_format {trace_format!r} and {len(files)} trace files; exactly one file is accepted")
    return _replay(given, files)


@overload
def run_synthetic_trace_replay(input_tokens: int, output_tokens: int, request_count: int, *, replay_mode: Literal["offline"] = "offline", **parameters: Unpack[_SyntheticParameters]) -> ReplayReport: ...
@overload
def run_synthetic_trace_replay(input_tokens: int, output_tokens: int, request_count: int, *, replay_mode: Literal["online"], **parameters: Unpack[_SyntheticParameters]) -> dict[str, Any]: ...
@overload
def run_synthetic_trace_replay(input_tokens: int, output_tokens: int, request_count: int, *, replay_mode: str, **parameters: Unpack[_SyntheticParameters]) -> ReplayReport | dict[str, Any]: ...
def run_synthetic_trace_replay(
    input_tokens: int,
    output_tokens: int,
    request_count: int,
    *,
    extra_engine_args: Any = None,
    prefill_engine_args: Any = None,
    decode_engine_args: Any = None,
    router_config: Any = None,
    ais_perf_config: Any = None,
    num_workers: int = 1,
    num_prefill_workers: int = 1,
    num_decode_workers: int = 1,
    replay_concurrency: int | None = None,
    replay_mode: str = "offline",
    router_mode: str = "round_robin",
    arrival_speedup_ratio: float = 1.0,
    request_rate: float | None = None,
    arrival_interval_ms: float | None = None,
    arrival_seed: int = 42,
    turns_per_session: int = 1,
    shared_prefix_ratio: float = 0.0,
    num_prefix_groups: int = 0,
    inter_turn_delay_ms: float = 0.0,
    model_name: str | None = None,
    sla_ttft_ms: float | None = None,
    sla_itl_ms: float | None = None,
    sla_e2e_ms: float | None = None,
    planner_config: Any = None,
    performance_model_metadata: dict[str, Any] | None = None,
    benchmark_granularity: int = 8,
    capture_per_request: bool = False,
    capture_planner_details: bool = True,
    telemetry_options: TelemetryOptions | None = None,
    kv_event_lag_ms: float | None = None,
    performance_model: PerformanceModel | None = None,
    scaling_policy: ScalingPolicy | None = None,
    router_seed: int | None = None,
    engine: Engine = "auto",
    parity: bool = False,
    progress: bool | Callable[[Progress], object] | None = None,
    _cancellation: _run.Cancellation | None = None,
) -> ReplayReport | dict[str, Any]:
    """Replays requests that are made up on simulated engines (replay notes §4).

    The parameters up to ``kv_event_lag_ms`` are those of dynamo.replay, with its
    defaults; for the others and the exceptions see :func:`run_trace_replay`.
    """
    return _replay(dict(locals()), [])


def _replay(given: dict[str, Any], files: list[str]) -> ReplayReport | dict[str, Any]:
    """Runs what the parameters of either function say."""
    telemetry = given.pop("telemetry_options")
    model, policy = given.pop("performance_model"), given.pop("scaling_policy")
    progress, cancellation = given.pop("progress"), given.pop("_cancellation")
    capture, details = given.pop("capture_per_request"), given.pop("capture_planner_details")
    online = given["replay_mode"] == "online"
    if online:
        _check_online(given, capture_per_request=capture, telemetry_options=telemetry, performance_model=model, scaling_policy=policy)
    if given["planner_config"] is not None and given["replay_mode"] != "offline":
        raise ValueError(f"planner_config is given with replay_mode {given['replay_mode']!r}; replay_mode 'offline' is accepted")
    _check_lag(given["kv_event_lag_ms"], given["router_mode"])
    if given["engine"] not in _ENGINES:
        raise ValueError(f"engine is {given['engine']!r}; 'auto', 'wasm' or 'native' is accepted")
    given.update(_telemetry(telemetry))
    requests = not online and (bool(capture) or given.get("report_jsonl_path") is not None)
    tell, end = listener(progress)
    try:
        out = _run.run(_run.Order(_arguments.arguments(given, files), requests, model, policy, telemetry and telemetry.callback, tell, cancellation))
    finally:
        end()
    coverage = {
        "capture_per_request": requests,
        "capture_planner_details": bool(details) and policy is not None,
        "per_request_records": len(out.requests),
    }
    for text in out.warnings:  # as from the line that called
        warnings.warn(text, ReplayWarning, stacklevel=3)
    if online:
        return out.report
    samples = _sampled(out.report)
    planner = None
    if policy is not None:
        planner = PlannerReplayDetails(ticks=out.ticks if details else [], lifecycle_operations=out.lifecycle, total_ticks=len(out.ticks))
    report = ReplayReport(out.report, out.requests if requests else None, coverage, planner, samples)
    report._table, report._engine = out.table, out.engine
    return report


def _check_online(given: Mapping[str, Any], **others: Any) -> None:
    """What the reference refuses with ValueError, and what needs a simulation."""
    for name, value in others.items():
        if value is not None and value is not False:
            raise ValueError(f"{name} is given with replay_mode 'online'; replay_mode 'offline' is accepted")
    if given["engine"] == "wasm":
        raise ValueError("engine is 'wasm', where no time passes, and replay_mode 'online' is in real time; 'auto' or 'native' is accepted")


def _check_basis(basis: Any, trace_format: str) -> None:
    if basis is None:
        return
    if not isinstance(basis, str):
        raise TypeError("weka_nested_timestamp_basis must be a string or None")
    if basis not in ("auto", "absolute", "relative"):
        raise ValueError(f"weka_nested_timestamp_basis is {basis!r}; 'auto', 'absolute' or 'relative' is accepted")
    if trace_format not in ("weka", "auto"):
        raise ValueError(f"weka_nested_timestamp_basis is given with trace_format {trace_format!r}; 'weka' is accepted")


def _target_model(model: object, trace_format: str) -> str | None:
    if model is not None:
        if not isinstance(model, str):
            raise TypeError("execution_model must be a string or None")
        if not model.strip():
            raise ValueError("execution_model is blank; a name is accepted")
        return model.strip()
    if trace_format in ("weka", "agentic_mooncake", "agentic-mooncake"):
        raise ValueError(f"trace_format {trace_format!r} names models of its own; the name of the model that serves all requests (execution_model) is needed")
    return None


def _check_lag(lag: Any, router_mode: str) -> None:
    if lag is None:
        return
    if isinstance(lag, (int, float)) and not (math.isfinite(lag) and lag >= 0):
        raise ValueError(f"kv_event_lag_ms is {lag}; a finite number of at least 0 is accepted")
    if lag and router_mode != "kv_router":
        raise ValueError(f"kv_event_lag_ms is given with router_mode {router_mode!r}; 'kv_router' is accepted")


def _telemetry(options: TelemetryOptions | None) -> dict[str, Any]:
    if options is None:
        return {}
    capture = options.capture_in_memory
    if capture is None:
        capture = options.callback is None and options.jsonl_path is None
    if not capture and options.callback is None and options.jsonl_path is None:
        raise ValueError("TelemetryOptions has no place for samples; capture_in_memory, callback or jsonl_path is needed")
    interval = options.sample_interval_ms
    if not (math.isfinite(interval) and interval > 0):
        raise ValueError(f"sample_interval_ms is {interval}; a finite number above 0 is accepted")
    return {
        "capture_telemetry": capture,
        "telemetry_sample_interval_ms": interval,
        "telemetry_jsonl_path": options.jsonl_path,
    }


def _sampled(report: dict[str, Any]) -> ReplayTelemetryDetails | None:
    """Takes the samples out of a report, where they were to be kept."""
    taken = report.pop("telemetry", None)
    if taken is None:
        return None
    return ReplayTelemetryDetails(float(taken["sample_interval_ms"]), taken["samples"])


@overload
async def run_trace_replay_async(trace_files: Any, *, replay_mode: Literal["online"], **parameters: Any) -> dict[str, Any]: ...
@overload
async def run_trace_replay_async(trace_files: Any, **parameters: Any) -> ReplayReport: ...
async def run_trace_replay_async(trace_files: Any, **parameters: Any) -> ReplayReport | dict[str, Any]:
    """:func:`run_trace_replay` for event loops, which go on meanwhile.

    Callbacks are called in another thread. Cancelling the task ends the run.
    """
    return await _in_thread(lambda c: run_trace_replay(trace_files, **parameters, _cancellation=c))


@overload
async def run_synthetic_trace_replay_async(input_tokens: int, output_tokens: int, request_count: int, *, replay_mode: Literal["online"], **parameters: Any) -> dict[str, Any]: ...
@overload
async def run_synthetic_trace_replay_async(input_tokens: int, output_tokens: int, request_count: int, **parameters: Any) -> ReplayReport: ...
async def run_synthetic_trace_replay_async(input_tokens: int, output_tokens: int, request_count: int, **parameters: Any) -> ReplayReport | dict[str, Any]:
    """:func:`run_synthetic_trace_replay` for event loops, which go on meanwhile.

    Callbacks are called in another thread. Cancelling the task ends the run.
    """
    return await _in_thread(lambda c: run_synthetic_trace_replay(input_tokens, output_tokens, request_count, **parameters, _cancellation=c))


async def _in_thread(call: Callable[[_run.Cancellation], ReplayReport | dict[str, Any]]) -> ReplayReport | dict[str, Any]:
    import asyncio

    cancellation = _run.Cancellation()
    future = asyncio.get_running_loop().run_in_executor(None, call, cancellation)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancellation.cancel()
        await asyncio.wait([future])
        future.exception()  # seen: the run was to end
        raise
