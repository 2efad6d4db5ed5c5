"""Many replays at once, here and on a Ray of our making."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dryserve
from dryserve import _helper

from conftest import ROOMY, helpers_of


def test_product(trace: Path) -> None:
    """Every combination, in order; names with dots reach into mappings."""
    seen: list[dryserve.Progress] = []
    base = {"engine": {"block_size": 16}}
    vary: dict[str, Any] = {"num_workers": [1, 2], "extra_engine_args.engine.max_num_seqs": (1, 4, 8)}
    swept = dryserve.sweep(vary, trace_files=trace, extra_engine_args=base, progress=seen.append, capture_per_request=True)
    assert swept.scenarios == [{"num_workers": w, "extra_engine_args.engine.max_num_seqs": n} for w in (1, 2) for n in (1, 4, 8)]
    assert base == {"engine": {"block_size": 16}}
    for scenario, report in swept:
        args = {"engine": {"block_size": 16, "max_num_seqs": scenario["extra_engine_args.engine.max_num_seqs"]}}
        alone = dryserve.run_trace_replay(trace, num_workers=scenario["num_workers"], extra_engine_args=args, capture_per_request=True)
        assert alone.per_request == report.per_request
    assert len({r.summary["mean_ttft_ms"] for r in swept.reports[:3]}) > 1
    assert seen[-1] == ("scenarios", 6, 6) and [p.done for p in seen] == sorted(p.done for p in seen)
    frame = swept.to_pandas()
    assert list(frame["num_workers"]) == [1, 1, 1, 2, 2, 2] and list(frame["completed_requests"]) == [3] * 6


def test_list() -> None:
    """Scenarios one by one, of made-up requests, whose dots make a mapping."""
    swept = dryserve.sweep(
        [{"request_count": 3, "arrival_interval_ms": 1.0}, {"request_count": 4, "request_rate": 5.0, "extra_engine_args.engine.block_size": 16}],
        input_tokens=50, output_tokens=2, jobs=1,
    )  # fmt: skip
    assert [r.summary["completed_requests"] for r in swept.reports] == [3, 4] and len(swept) == 2
    assert len(dryserve.sweep([], input_tokens=50)) == 0


def test_failure_ends_the_others(trace: Path, endless: Path) -> None:
    """Long runs that are under way end with the first exception."""
    _helper.close()
    scenarios = [{"trace_files": endless, "extra_engine_args": ROOMY, "engine": "native"}] * 2 + [{"trace_files": trace, "num_workers": 0}] + [{"trace_files": endless}] * 20
    with pytest.raises(dryserve.ReplayError, match="num_workers is 0"):
        dryserve.sweep(scenarios, jobs=3)
    _helper.close()
    assert not helpers_of(os.getpid())


@pytest.mark.parametrize(
    "vary, more, sentence",
    [
        ({"num_workers": 3}, {}, "vary has 3 for num_workers; a list of its values is accepted"),
        ({"trace_format": "auto"}, {}, "vary has 'auto' for trace_format; a list of its values is accepted"),
        ({"num_workers": [1]}, {"jobs": 0}, "jobs is 0; a whole number of at least 1 is accepted"),
        ({"num_workers": [1]}, {"on": "mars"}, "on is 'mars'; 'local' or 'ray' is accepted"),
        ({"extra_engine_args.engine": [1]}, {"extra_engine_args": "e.json"}, "extra_engine_args.engine reaches into extra_engine_args, which is 'e.json'; a mapping is accepted"),
        ({"extra_engine_args.engine.x": [1]}, {"extra_engine_args": {"engine": 1}}, "extra_engine_args.engine.x reaches into engine, which is 1; a mapping is accepted"),
    ],
)
def test_wrong(trace: Path, vary: dict[str, Any], more: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError)) as e:
        dryserve.sweep(vary, trace_files=trace, **more)
    assert str(e.value) == sentence


class TaskError(Exception):
    """As Ray's, which has the task's exception in it."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A Ray that runs a task when it is waited for."""
    used = types.SimpleNamespace(cancelled=[], widest=0)

    class Task:
        def __init__(self, function: Callable[..., Any]) -> None:
            self.function = function

        def remote(self, *args: Any) -> object:
            return Ref(self.function, args)

    class Ref:
        def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
            self.function, self.args = function, args

    def wait(refs: list[Any]) -> tuple[list[Any], list[Any]]:
        used.widest = max(used.widest, len(refs))
        return refs[-1:], refs[:-1]

    def get(ref: Any) -> Any:
        try:
            return ref.function(*ref.args)
        except Exception as e:
            raise TaskError(e) from e

    fake = types.ModuleType("ray")
    vars(fake).update(
        is_initialized=lambda: True, remote=Task, wait=wait, get=get, cancel=lambda ref, force: used.cancelled.append(ref),
        exceptions=types.SimpleNamespace(RayTaskError=TaskError),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", fake)
    return used


def test_ray(trace: Path, ray: types.SimpleNamespace) -> None:
    """The same with one argument, in the order of the scenarios."""
    vary = {"num_workers": [1, 2, 3], "replay_concurrency": [1, 2]}
    there, here = (dryserve.sweep(vary, trace_files=trace, on=on, jobs=4, capture_per_request=True) for on in ("ray", "local"))
    assert [r.per_request for r in there.reports] == [r.per_request for r in here.reports] and ray.widest == 4
    with pytest.raises(dryserve.ReplayError, match="num_workers is 0"):
        dryserve.sweep({"num_workers": [1, 2, 0]}, trace_files=trace, on="ray")
    assert len(ray.cancelled) == 3


def test_no_ray(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="ray is not installed; pip install ray adds it, and on='local' does without"):
        dryserve.sweep({"num_workers": [1]}, trace_files=trace, on="ray")
