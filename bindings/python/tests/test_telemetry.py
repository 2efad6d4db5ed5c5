"""Samples of a run, from a helper of our making, and from the real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dryserve

from conftest import ROOMY
from test_helper import _fresh, _reader, play  # noqa: F401

SAMPLES = [{"sample_ordinal": 0, "kind": "baseline"}, {"sample_ordinal": 1, "kind": "final"}]
PLAYED = f"""
q = hello()
args = q["args"].split(chr(0))
report = {{"args": args}}
if "--capture-telemetry=true" in args:
    report["telemetry"] = {{"sample_interval_ms": 50.0, "samples": {json.dumps(SAMPLES)}}}
report = json.dumps(report)
if q.get("tell_samples"):
    for sample in {json.dumps(SAMPLES)}:
        send({{"v": 1, "id": 1, "event": "samples", "lines": (json.dumps(sample) + chr(10)).encode()}})
send({{"v": 1, "id": 1, "event": "done", "report": report, "table": "", "path": "", "engine": "native"}})
receive()
"""


@pytest.mark.parametrize(
    "options, kept, flags",
    [
        ({}, True, ["--capture-telemetry=true"]),
        ({"callback": True}, False, []),
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


def test_told_meanwhile(trace: Path) -> None:
    """A callback has the samples that a report would have, before the run has ended; what it raises ends that."""
    heard: list[dict[str, Any]] = []
    kept = dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(10, callback=heard.append, capture_in_memory=True))
    assert kept.telemetry is not None and heard == kept.telemetry.samples and len(heard) > 1
    only: list[dict[str, Any]] = []
    assert dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(10, callback=only.append)).telemetry is None
    assert only == heard

    class Enough(Exception):
        pass

    def stop(sample: dict[str, Any]) -> None:
        raise Enough(sample["kind"])

    with pytest.raises(Enough, match="baseline"):
        dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(10, callback=stop))


def test_raised_in_a_run(endless: Path, _reader: None) -> None:  # noqa: F811
    """A run that would take for ever is ended by its callback."""
    heard: list[dict[str, Any]] = []

    def third(sample: dict[str, Any]) -> None:
        heard.append(sample)
        if len(heard) == 3:
            raise KeyError("third")

    with pytest.raises(KeyError, match="third"):
        dryserve.run_trace_replay(endless, extra_engine_args=ROOMY, telemetry_options=dryserve.TelemetryOptions(10, callback=third))
    assert [s["sample_ordinal"] for s in heard] == [0, 1, 2]


def test_real(trace: Path) -> None:
    """The real helper takes samples."""
    report = dryserve.run_trace_replay(trace, telemetry_options=dryserve.TelemetryOptions(10))
    assert report.telemetry is not None and report.telemetry.samples[0]["kind"] == "baseline"
    assert [s["sample_ordinal"] for s in report.telemetry.samples] == list(range(len(report.telemetry.samples)))
