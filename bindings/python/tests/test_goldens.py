"""Every recorded call of the reference's functions, as it was made, on both engines."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dryserve
from dryserve import _helper

from conftest import TESTDATA

CASES = sorted((TESTDATA / "replay").glob("*/api-1.6.1/case.json"))
WALL = ("wall_time_ms", "processed_tokens_per_s", "processed_output_tokens_per_s")
COUNTERS = ("rejected_requests", "failed_requests", "cancelled_requests", "unfinished_requests")


def name(case: Path) -> str:
    return case.parent.parent.name


def lots(case: Path) -> bool:
    """Whether lots are drawn in a case, in which the reference has no seed."""
    return bool(json.loads(case.read_text())["kwargs"].get("router_mode") == "kv_router")


def changing(case: Path) -> bool:
    """Whether workers come and go."""
    return "scaling_policy" in json.loads(case.read_text())


class Scripted:
    """The policy of a recorded case."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.initial, self.decisions = recorded["initial"], iter(recorded["decisions"])

    def initial_tick_ms(self) -> float:
        return float(self.initial)

    def on_tick(self, tick: dict[str, Any]) -> dict[str, Any]:
        return dict(next(self.decisions))


def call(case: Path, **more: Any) -> dryserve.ReplayReport:
    """The recorded call. The recordings have the interval of telemetry as a parameter, and a policy's decisions."""
    c = json.loads(case.read_text())
    if "telemetry" in c["kwargs"]:
        more["telemetry_options"] = dryserve.TelemetryOptions(c["kwargs"].pop("telemetry"))
    if "scaling_policy" in c:
        more["scaling_policy"] = Scripted(c["scaling_policy"])
    if c.get("synthetic"):
        report: dryserve.ReplayReport = dryserve.run_synthetic_trace_replay(**c["synthetic"], **c["kwargs"], **more)
        return report
    files = [case.parent.parent / f for f in c["files"]]
    report = dryserve.run_trace_replay(files if len(files) != 1 else files[0], **c["kwargs"], **more)
    return report


def test_there_are_cases() -> None:
    assert len(CASES) >= 48


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.filterwarnings("ignore::dryserve.ReplayWarning")
def test_golden(case: Path, tmp_path: Path) -> None:
    report = call(case)
    assert report.per_request is None
    assert report.engine == "wasm"
    native = call(case, engine="native", capture_per_request=True)
    assert native.engine == "native" and timeless(native.summary) == timeless(report.summary)
    captured = call(case, capture_per_request=True)
    assert captured.per_request == native.per_request
    assert native.per_request is not None and native.coverage == {
        "capture_per_request": True, "capture_planner_details": changing(case), "per_request_records": len(native.per_request),
    }
    details(case, captured)
    if lots(case):
        assert timeless(report.summary) == timeless(command_line(case, tmp_path / "r.json"))
        return
    compare(report.summary, json.loads((case.parent / "report.json").read_text()), json.loads(case.read_text())["jitter"]["ulp"])
    recorded = [json.loads(line) for line in (case.parent / "requests.jsonl").read_text().splitlines() if line]
    assert sorted(map(canonical, native.per_request)) == sorted(json.dumps(r, sort_keys=True) for r in recorded)


def details(case: Path, report: dryserve.ReplayReport) -> None:
    """What a policy was told, what came of it, and samples, as they were recorded."""
    for name, got in (
        ("ticks", report.planner and report.planner.ticks), ("lifecycle", report.planner and report.planner.lifecycle_operations),
        ("telemetry", report.telemetry and report.telemetry.samples),
    ):  # fmt: skip
        recorded = case.parent / f"{name}.json"
        if not recorded.exists():
            assert got is None, name
            continue
        want = json.loads(recorded.read_text())
        assert same(got, want["samples"] if isinstance(want, dict) else want), name


def same(got: Any, want: Any, key: str = "") -> bool:
    """Equal, but for the last bits of variances, whose sums the reference orders otherwise."""
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(same(got[k], want[k], k) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    return bool(math.isclose(got, want, rel_tol=1e-12) if key.startswith("var_") else got == want)


def timeless(summary: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in summary.items() if k not in WALL}


def command_line(case: Path, out: Path) -> dict[str, Any]:
    """What the command line reports of a recorded call."""
    c = json.loads(case.read_text())
    args = [f"--{k.replace('_', '-')}={v if isinstance(v, str) else json.dumps(v)}" for k, v in {**c.get("synthetic", {}), **c["kwargs"]}.items()]
    files = [str(case.parent.parent / f) for f in c["files"]]
    subprocess.run([_helper.program(), *args, *files, "--no-table", "--report-json", out], capture_output=True, check=True)
    report: dict[str, Any] = json.loads(out.read_text())
    return report


def compare(got: dict[str, Any], want: dict[str, Any], jitter: list[str]) -> None:
    """Every key of the reference with the same value, and the counters that make requests add up.

    The reference sums the spread of small samples in an order of its own; the
    spread of equal samples is the rounding of that sum. Fields that changed
    in the last bits when the reference repeated the run are listed with it.
    """
    for key, w in want.items():
        g = got[key]
        if key.startswith("std_"):
            granted = max(1e-12 * abs(w), want["num_requests"] * 2**-53 * abs(want["mean_" + key[4:]]))
            assert math.isclose(g, w, rel_tol=0, abs_tol=granted), key
        elif key in jitter:
            assert math.isclose(g, w, rel_tol=1e-9), key
        else:
            assert g == w and type(g) is type(w), key
    assert got.keys() - want.keys() == {*WALL, *COUNTERS}
    assert want["num_requests"] == want["completed_requests"] + sum(got[k] for k in COUNTERS)


def canonical(request: dict[str, Any]) -> str:
    """A request as the recordings have it: no ids, no nulls, histories only where there is something to see."""
    r = {k: v for k, v in request.items() if v is not None and k not in ("uuid", "routing_history")}
    if r["readmission_count"] == 0:
        r.pop("admission_history", None)
    return json.dumps(r, sort_keys=True)
