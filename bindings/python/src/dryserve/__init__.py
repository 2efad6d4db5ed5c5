"""Dryserve: what would my LLM serving fleet do?

Replays request traces on simulated inference engines, with the functions and
the numbers of ``dynamo.replay`` (ai-dynamo 1.6.1)::

    from dryserve import run_trace_replay
    report = run_trace_replay("trace.jsonl", num_workers=4)
    print(report.table)
"""

from dryserve._api import (
    TelemetryOptions,
    run_synthetic_trace_replay,
    run_synthetic_trace_replay_async,
    run_trace_replay,
    run_trace_replay_async,
)
from dryserve._errors import HelperError, ReplayError, ReplayWarning, UsageError
from dryserve._progress import Progress
from dryserve._report import PlannerReplayDetails, ReplayReport, ReplayTelemetryDetails
from dryserve._router import KvRouterConfig
from dryserve._run import PerformanceModel, ScalingPolicy
from dryserve._sweep import Sweep, sweep
from dryserve._version import __version__

__all__ = [
    "HelperError",
    "KvRouterConfig",
    "PerformanceModel",
    "PlannerReplayDetails",
    "Progress",
    "ReplayError",
    "ReplayReport",
    "ReplayTelemetryDetails",
    "ReplayWarning",
    "ScalingPolicy",
    "Sweep",
    "TelemetryOptions",
    "UsageError",
    "__version__",
    "run_synthetic_trace_replay",
    "run_synthetic_trace_replay_async",
    "run_trace_replay",
    "run_trace_replay_async",
    "sweep",
]
