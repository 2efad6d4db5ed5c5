"""The names of ``dynamo.replay``; ``python -m dryserve.replay`` is its command line."""

from dryserve import (
    PlannerReplayDetails,
    ReplayReport,
    ReplayTelemetryDetails,
    TelemetryOptions,
    run_synthetic_trace_replay,
    run_trace_replay,
)

__all__ = [
    "PlannerReplayDetails",
    "ReplayReport",
    "ReplayTelemetryDetails",
    "TelemetryOptions",
    "run_synthetic_trace_replay",
    "run_trace_replay",
]
