"""What a replay gives back: the shapes of dynamo.replay 1.6.1, and views of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas

# The distributions of a summary: title, name and unit in its keys.
_DISTRIBUTIONS = (
    ("Time to First Token (ms)", "ttft", "_ms"),
    ("Time to Second Token (ms)", "ttst", "_ms"),
    ("Request Latency (ms)", "e2e_latency", "_ms"),
    ("Inter Token Latency (ms)", "itl", "_ms"),
    ("Time per Output Token (ms)", "tpot", "_ms"),
    ("Output Token Throughput Per User (tokens/sec/user)", "output_token_throughput_per_user", ""),
)
_STATISTICS = ("mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std")
_RATES = (
    ("Output Token Throughput (tokens/sec)", "output_throughput_tok_s"),
    ("Request Throughput (requests/sec)", "request_throughput_rps"),
    ("Request Count (requests)", "completed_requests"),
    ("Prefix Cache Reused Ratio", "prefix_cache_reused_ratio"),
    ("GPU Hours", "gpu_hours"),
)


def plain(value: Any) -> Any:
    """Values as JSON has them: no dataclasses, enumerators, tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


@dataclass
class PlannerReplayDetails:
    """What a planner did in a run (replay notes §7)."""

    metadata: dict[str, Any] = field(default_factory=dict)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    scaling_events: list[Any] = field(default_factory=list)
    lifecycle_operations: list[dict[str, Any]] = field(default_factory=list)
    total_ticks: int = 0
    html_report_path: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}


@dataclass
class ReplayTelemetryDetails:
    """Samples taken at an interval of simulated time (replay notes §9.3)."""

    sample_interval_ms: float
    samples: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists."""
        return {"sample_interval_ms": self.sample_interval_ms, "samples": plain(self.samples)}


@dataclass
class ReplayReport:
    """The outcome of a replay.

    ``summary`` has the numbers of the reference's report under their names
    (replay notes §9.1), besides the counters ``rejected_requests``,
    ``failed_requests``, ``cancelled_requests`` and ``unfinished_requests``,
    with which the requests add up. ``per_request`` has a dictionary for each
    request (§9.2) if they were asked for.
    """

    summary: dict[str, Any]
    per_request: list[dict[str, Any]] | None
    coverage: dict[str, Any]
    planner: PlannerReplayDetails | None
    telemetry: ReplayTelemetryDetails | None = None

    def __post_init__(self) -> None:
        self._table = ""
        self._engine = ""

    @property
    def table(self) -> str:
        """The table that the command line prints; empty if there was no run."""
        return self._table

    @property
    def engine(self) -> str:
        """Where the simulation ran: "wasm" or "native"; empty if there was no run."""
        return self._engine

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists; telemetry only if there is any."""
        out: dict[str, Any] = {"summary": self.summary, "per_request": self.per_request, "coverage": self.coverage}
        out["planner"] = self.planner.to_dict() if self.planner is not None else None
        if self.telemetry is not None:
            out["telemetry"] = self.telemetry.to_dict()
        return out

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame with a row for each request, in the order of ``per_request``.

        Raises ValueError if the requests were not asked for.
        """
        if self.per_request is None:
            raise ValueError("the report has no requests; capture_per_request=True asks for them")
        return _pandas().DataFrame.from_records(self.per_request)

    def metrics_to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame with a row for each distribution and a column for each statistic."""
        rows = {name + unit: [self.summary[f"{s}_{name}{unit}"] for s in _STATISTICS] for _, name, unit in self._distributions()}
        return _pandas().DataFrame.from_dict(rows, orient="index", columns=list(_STATISTICS))

    def _distributions(self) -> list[tuple[str, str, str]]:
        return [d for d in _DISTRIBUTIONS if f"mean_{d[1]}{d[2]}" in self.summary]

    def _repr_html_(self) -> str:
        """The table, as notebooks show it."""
        head = "".join(f"<th>{s}</th>" for s in _STATISTICS)
        rows = []
        for title, name, unit in self._distributions():
            cells = "".join(_cell(self.summary.get(f"{s}_{name}{unit}")) for s in _STATISTICS)
            rows.append(f"<tr><th style='text-align:left'>{title}</th>{cells}</tr>")
        for title, key in _RATES:
            if key in self.summary:
                empty = "<td></td>" * (len(_STATISTICS) - 1)
                rows.append(f"<tr><th style='text-align:left'>{title}</th>{_cell(self.summary[key])}{empty}</tr>")
        return f"<table><thead><tr><th style='text-align:left'>Metric</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}" if isinstance(value, float) else ""
    return f"<td style='text-align:right'>{text}</td>"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as e:
        raise ImportError("pandas is not installed; pip install pandas adds it") from e
    return pandas
