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
# Formats that core.wasm reads.
FORMATS = ("mooncake", "mooncake-delta", "mooncake_delta")


def name(case: Path) -> str:
    return case.parent.parent.name


def lots(case: Path) -> bool:
    """Whether lots are drawn in a case, in which the reference has no seed."""
    return bool(json.loads(case.read_text())["kwargs"].get("router_mode") == "kv_router")


def sandboxed(case: Path) -> bool:
    """Whether core.wasm does what a case asks for."""
    kwargs = json.loads(case.read_text())["kwargs"]
    return kwargs.get("trace_format", "mooncake") in FORMATS and not lots(case) and "prefill_engine_args" not in kwargs


def call(case: Path, **more: Any) -> dryserve.ReplayReport:
    """The recorded call."""
    c = json.loads(case.read_text())
    if c.get("synthetic"):
        return dryserve.run_synthetic_trace_replay(**c["synthetic"], **c["kwargs"], **more)
    files = [case.parent.parent / f for f in c["files"]]
    return dryserve.run_trace_replay(files if len(files) != 1 else files[0], **c["kwargs"], **more)


def test_there_are_cases() -> None:
    assert len(CASES) >= 48


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.filterwarnings("ignore::dryserve.ReplayWarning")
def test_golden(case: Path, tmp_path: Path) -> None:
    report = call(case)
    assert report.per_request is None
    assert report.engine == ("wasm" if sandboxed(case) else "native")
    native = call(case, engine="native", capture_per_request=True)
    assert native.engine == "native" and timeless(native.summary) == timeless(report.summary)
    captured = call(case, capture_per_request=True)
    assert captured.per_request == native.per_request
    assert native.per_request is not None and native.coverage == {
        "capture_per_request": True, "capture_planner_details": False, "per_request_records": len(native.per_request),
    }
    if lots(case):
        assert timeless(report.summary) == timeless(command_line(case, tmp_path / "r.json"))
        return
    compare(report.summary, json.loads((case.parent / "report.json").read_text()))
    recorded = [json.loads(line) for line in (case.parent / "requests.jsonl").read_text().splitlines() if line]
    assert sorted(map(canonical, native.per_request)) == sorted(json.dumps(r, sort_keys=True) for r in recorded)


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


def compare(got: dict[str, Any], want: dict[str, Any]) -> None:
    """Every key of the reference with the same value, and the counters that make requests add up.

    The reference sums the spread of small samples in an order of its own; the
    spread of equal samples is the rounding of that sum.
    """
    for key, w in want.items():
        g = got[key]
        if key.startswith("std_"):
            granted = max(1e-12 * abs(w), want["num_requests"] * 2**-53 * abs(want["mean_" + key[4:]]))
            assert math.isclose(g, w, rel_tol=0, abs_tol=granted), key
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
