"""Samples of a run, from a helper of our making, and from the real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dryserve

from test_helper import _fresh, _reader, play  # noqa: F401

SAMPLES = [{"sample_ordinal": 0, "kind": "baseline"}, {"sample_ordinal": 1, "kind": "final"}]
PLAYED = f"""
q = hello()
report = json.dumps({{"telemetry": {{"sample_interval_ms": 50.0, "samples": {json.dumps(SAMPLES)}}}, "args": q["args"].split(chr(0))}})
send({{"v": 1, "id": 1, "event": "done", "report": report, "table": "", "path": "", "engine": "native"}})
receive()
"""


@pytest.mark.parametrize(
    "options, kept, flags",
    [
        ({}, True, ["--capture-telemetry=true"]),
        ({"callback": True}, False, ["--capture-telemetry=true"]),
        ({"callback": True, "capture_in_memory": True}, True, ["--capture-telemetry=true"]),
        ({"jsonl_path": "s.jsonl"}, False, ["--telemetry-jsonl-path=s.jsonl"]),
        ({"jsonl_path": "s.jsonl", "capture_in_memory": True}, True, ["--capture-telemetry=true", "--telemetry-jsonl-path=s.jsonl"]),
    ],
)
def test_samples(play: Callable[[str], Path], trace: Path, options: dict[str, Any], kept: bool, flags: list[str]) -> None:  # noqa: F811
    """They go where they are wanted, and never into the summary."""
    play("import json" + PLAYED)
    heard: list[dict[str, Any]] = []
    if options.get("callback"):
        options = {**options, "callback": heard.append}
    report = dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(50, **options))
    assert report.telemetry == (dryserve.ReplayTelemetryDetails(50.0, SAMPLES) if kept else None)
    assert heard == (SAMPLES if "callback" in options else [])
    assert "telemetry" not in report.summary and report.to_dict().get("telemetry") == ({"sample_interval_ms": 50.0, "samples": SAMPLES} if kept else None)
    asked = [a for a in report.summary["args"] if "telemetry" in a]
    assert sorted(asked) == sorted([*flags, "--telemetry-sample-interval-ms=50.0"])


def test_real(trace: Path) -> None:
    """The real helper takes samples."""
    report = dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(10))
    assert report.telemetry is not None and report.telemetry.samples[0]["kind"] == "baseline"
    assert [s["sample_ordinal"] for s in report.telemetry.samples] == list(range(len(report.telemetry.samples)))
