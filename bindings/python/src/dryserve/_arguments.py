"""Parameters of the functions as arguments of the command line.

Owns: which parameter is which flag, its type, and names in sentences. Does not
own: whether a value makes sense, which the helper says.
"""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any

from dryserve._report import plain

# Separates arguments in a frame (docs/serve.md).
SEPARATOR = "\0"


def _whole(name: str, value: Any) -> str:
    try:
        return str(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is {_short(value)}; a whole number is accepted") from None


def _real(name: str, value: Any) -> str:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is {_short(value)}; a number is accepted")
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {_short(value)}; a number is accepted") from None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {_short(value)}; a text is accepted")
    return value


def _path(name: str, value: Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name} is {_short(value)}; a path is accepted") from None


def _switch(name: str, value: Any) -> str:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {_short(value)}; True or False is accepted")
    return "true" if value else "false"


def _json(name: str, value: Any) -> str:
    """A mapping, an object that gives one, JSON text or a path of it."""
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    for method in ("to_dict", "model_dump"):
        made = getattr(value, method, None)
        if callable(made) and not isinstance(value, (type, Mapping)):
            value = made()
            break
    else:
        dumped = getattr(value, "dump_json", None)
        if callable(dumped):
            return _text(name, dumped())
    if is_dataclass(value) and not isinstance(value, type):
        value = plain(value)
    if not isinstance(value, Mapping):
        if type(value).__name__ == "KvRouterConfig":
            raise TypeError(f"{name} is ai-dynamo's KvRouterConfig, which does not tell its values; a mapping or dryserve.KvRouterConfig is accepted")
        raise TypeError(f"{name} is {_short(value)}; a mapping, JSON text or the path of a JSON file is accepted")
    return json.dumps(dict(value), default=lambda v: _json_value(name, v))


def _json_value(name: str, value: Any) -> Any:
    """What json does not know: mappings, enumerators, paths, NumPy's scalars."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    if hasattr(value, "value"):
        return value.value
    raise TypeError(f"{name} has the value {_short(value)}; values of JSON are accepted")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# For each parameter its flag, its conversion, and the value that asks for
# nothing and is left out. Those without a flag of their own name are spelt as
# the parameter with dashes.
_FLAGS: dict[str, tuple[str, Any, Any]] = {
    "extra_engine_args": ("", _json, None),
    "prefill_engine_args": ("", _json, None),
    "decode_engine_args": ("", _json, None),
    "router_config": ("", _json, None),
    "ais_perf_config": ("", _json, None),
    "num_workers": ("", _whole, 1),
    "num_prefill_workers": ("", _whole, 1),
    "num_decode_workers": ("", _whole, 1),
    "replay_concurrency": ("", _whole, None),
    "agentic_lanes": ("", _whole, None),
    "replay_mode": ("", _text, "offline"),
    "router_mode": ("", _text, "round_robin"),
    "arrival_speedup_ratio": ("", _real, 1.0),
    "trace_block_size": ("", _whole, None),
    "trace_format": ("", _text, "auto"),
    "trace_shared_prefix_ratio": ("", _real, 0.0),
    "trace_num_prefix_groups": ("", _whole, 0),
    "report_jsonl_path": ("report-jsonl", _path, None),
    "max_sim_time_ms": ("", _real, None),
    "model_name": ("", _text, None),
    "sla_ttft_ms": ("", _real, None),
    "sla_itl_ms": ("", _real, None),
    "sla_e2e_ms": ("", _real, None),
    "planner_config": ("", _json, None),
    "performance_model_metadata": ("", _json, None),
    "benchmark_granularity": ("", _whole, 8),
    "execution_model": ("", _text, None),
    "weka_nested_timestamp_basis": ("", _text, None),
    "kv_event_lag_ms": ("", _real, None),
    "input_tokens": ("", _whole, None),
    "output_tokens": ("", _whole, None),
    "request_count": ("", _whole, None),
    "request_rate": ("", _real, None),
    "arrival_interval_ms": ("", _real, None),
    "arrival_seed": ("", _whole, 42),
    "turns_per_session": ("", _whole, 1),
    "shared_prefix_ratio": ("", _real, 0.0),
    "num_prefix_groups": ("", _whole, 0),
    "inter_turn_delay_ms": ("", _real, 0.0),
    "telemetry_sample_interval_ms": ("", _real, None),
    "telemetry_jsonl_path": ("", _path, None),
    "capture_telemetry": ("", _switch, False),
    "engine": ("", _text, "native"),
    "router_seed": ("", _whole, None),
    "parity": ("", _switch, False),
}

_BY_FLAG = {flag or name.replace("_", "-"): name for name, (flag, _, _) in _FLAGS.items()}


def arguments(parameters: Mapping[str, Any], trace_files: Iterable[str] = ()) -> list[str]:
    """The command line that says the same."""
    args = []
    for name, value in parameters.items():
        flag, convert, neutral = _FLAGS[name]
        if value is None or value == neutral and type(value) is type(neutral):
            continue
        args.append(f"--{flag or name.replace('_', '-')}={convert(name, value)}")
    files = list(trace_files)
    if files:
        args.append("--")
        args += [f"./{f}" if f == "-" else f for f in files]
    for arg in args:
        if SEPARATOR in arg:
            raise ValueError(f"{_short(arg)} has a NUL byte; text without one is accepted")
    return args


def traces(trace_files: Any) -> list[str]:
    """One path or several, as texts."""
    if isinstance(trace_files, (str, bytes, os.PathLike)):
        return [_path("trace_files", trace_files)]
    try:
        files = list(trace_files)
    except TypeError:
        raise TypeError(f"trace_files is {_short(trace_files)}; a path or several are accepted") from None
    return [_path("trace_files", f) for f in files]


def reworded(sentence: str) -> str:
    """A sentence of the command line with the names of parameters for flags."""
    return re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", lambda m: _BY_FLAG.get(m[1], m[0]), sentence)
