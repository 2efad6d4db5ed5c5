"""A Python object says how many workers there are to be."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

import dryserve

from conftest import EXAMPLES, helpers_of

TRACE = EXAMPLES / "conversation-2k.jsonl"


class Policy:
    """Answers with what it was made with, and remembers what it was told."""

    def __init__(self, first: Any, *said: Any) -> None:
        self.first, self.said = first, list(said)
        self.told: list[dict[str, Any]] = []

    def initial_tick_ms(self) -> float:
        return self.first  # type: ignore[no-any-return]

    def on_tick(self, tick: dict[str, Any]) -> dict[str, Any]:
        self.told.append(tick)
        said = self.said[len(self.told) - 1]
        if isinstance(said, BaseException):
            raise said
        return said  # type: ignore[no-any-return]


def test_policy() -> None:
    policy = Policy(1000, {"target_decode": 3, "next_tick_ms": 60_000}, {"next_tick_ms": 120_000.5}, {"target_prefill": None, "target_decode": 1, "next_tick_ms": None})
    report = dryserve.run_trace_replay(TRACE, scaling_policy=policy)
    assert [t["now_ms"] for t in policy.told] == [1000.0, 60_000.0, 120_000.5]
    assert [t["active_decode_count"] for t in policy.told] == [1, 3, 3] and [t["tick_ordinal"] for t in policy.told] == [0, 1, 2]
    assert report.planner is not None and report.planner.ticks == policy.told and report.planner.total_ticks == 3
    assert [op["at_ms"] for op in report.planner.lifecycle_operations][:2] == [1000.0, 120_000.5]
    assert report.coverage["capture_planner_details"] is True and report.engine == "wasm"
    alone = dryserve.run_trace_replay(TRACE).summary
    assert report.summary["p99_ttft_ms"] < alone["p99_ttft_ms"] and report.summary["decode_worker_seconds"] > alone["decode_worker_seconds"]


@pytest.mark.parametrize("never", [math.inf, math.nan])
def test_never(never: float) -> None:
    """A first time that is no number is never, as in the reference."""
    policy = Policy(never)
    report = dryserve.run_trace_replay(TRACE, scaling_policy=policy, capture_planner_details=False)
    assert policy.told == [] and report.planner == dryserve.PlannerReplayDetails() and report.coverage["capture_planner_details"] is False


@pytest.mark.parametrize("end", [LookupError("no target"), KeyboardInterrupt()])
def test_exception(end: BaseException) -> None:
    with pytest.raises(type(end)) as e:
        dryserve.run_trace_replay(TRACE, scaling_policy=Policy(5, end))
    assert e.value is end and not helpers_of(os.getpid())


@pytest.mark.parametrize(
    "first, said, sentence",
    [
        ("soon", {}, "scaling_policy.initial_tick_ms() is 'soon'; a number of ms is accepted"),
        (5, None, "scaling_policy.on_tick has returned None; a mapping with target_prefill, target_decode and next_tick_ms is accepted"),
        (5, {"target_decode": -1}, "scaling_policy.on_tick has returned target_decode -1; a whole number of at least 0, or None, is accepted"),
        (5, {"target_decode": 1.5}, "scaling_policy.on_tick has returned target_decode 1.5; a whole number of at least 0, or None, is accepted"),
        (5, {"next_tick_ms": "x"}, "next_tick_ms of scaling_policy.on_tick is 'x'; a number of ms is accepted"),
    ],
)
def test_wrong(first: Any, said: Any, sentence: str) -> None:
    with pytest.raises((TypeError, ValueError)) as e:
        dryserve.run_trace_replay(TRACE, scaling_policy=Policy(first, said))
    assert str(e.value) == sentence


def test_engines(trace: Path) -> None:
    runs = [dryserve.run_trace_replay(trace, scaling_policy=Policy(5, {"target_decode": 2}), engine=engine) for engine in ("native", "wasm")]
    assert [r.engine for r in runs] == ["native", "wasm"]
    assert runs[0].planner == runs[1].planner and runs[0].planner is not None
