"""Many replays side by side, on this machine or on a Ray cluster.

Owns: which scenarios there are, where they run, what becomes of the others
when one fails. Does not own: a replay.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dryserve import _api
from dryserve._progress import Progress, listener
from dryserve._report import ReplayReport, _pandas
from dryserve._run import Cancellation

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas


@dataclass
class Sweep:
    """The scenarios of a sweep and their reports, in the order of the scenarios."""

    scenarios: list[dict[str, Any]]
    reports: list[ReplayReport]

    def __iter__(self) -> Iterator[tuple[dict[str, Any], ReplayReport]]:
        return iter(zip(self.scenarios, self.reports))

    def __len__(self) -> int:
        return len(self.scenarios)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame with a row for each scenario: what was varied, then its summary."""
        return _pandas().DataFrame.from_records([{**scenario, **report.summary} for scenario, report in self])


def sweep(
    vary: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    on: Literal["local", "ray"] = "local",
    jobs: int | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    **common: Any,
) -> Sweep:
    """Replays every scenario, several at a time.

    ``vary`` has the values of each parameter, of which every combination is a
    scenario (the last parameter varies fastest), or is a list of scenarios. A name with dots reaches into
    a mapping: ``"extra_engine_args.engine.num_gpu_blocks"``. ``common`` are
    the parameters that all have. Those with ``trace_files`` go to
    :func:`dryserve.run_trace_replay`, the others to
    :func:`dryserve.run_synthetic_trace_replay`.

    ``jobs`` run at a time on this machine, each in a process of its own
    (default: one for each processor). With ``on="ray"`` they are tasks of the
    Ray cluster that the caller is connected to, where traces have to be
    readable; ``jobs`` bounds them, too, if it is given. Replays in real time
    (``replay_mode="online"``) are not for sweeps.

    The first exception ends the others and comes out as it is.
    """
    scenarios = _scenarios(vary)
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs is {jobs!r}; a whole number of at least 1 is accepted")
    if on not in ("local", "ray"):
        raise ValueError(f"on is {on!r}; 'local' or 'ray' is accepted")
    calls = [_merged(common, scenario) for scenario in scenarios]
    if any(call.get("replay_mode") == "online" for call in calls):
        raise ValueError("replay_mode is 'online', but scenarios of a sweep run side by side, which would keep each other waiting; 'offline' is accepted")
    tell, end = listener(progress)
    try:
        run = _on_ray if on == "ray" else _locally
        reports = run(calls, jobs, lambda done: tell and tell(Progress("scenarios", done, len(calls))))
    finally:
        end()
    return Sweep(scenarios, reports)


def _scenarios(vary: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not isinstance(vary, Mapping):
        return [dict(scenario) for scenario in vary]
    for name, values in vary.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"vary has {values!r} for {name}; a list of its values is accepted")
    return [dict(zip(vary, values)) for values in itertools.product(*vary.values())]


def _merged(common: Mapping[str, Any], scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a scenario's call."""
    call = dict(common)
    for name, value in scenario.items():
        first, *rest = name.split(".")
        if not rest:
            call[first] = value
            continue
        inner = call.get(first)
        if inner is not None and not isinstance(inner, Mapping):
            raise TypeError(f"{name} reaches into {first}, which is {inner!r}; a mapping is accepted")
        call[first] = at = _plain(inner or {})
        for part in rest[:-1]:
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise TypeError(f"{name} reaches into {part}, which is {at!r}; a mapping is accepted")
        at[rest[-1]] = value
    return call


def _plain(value: Any) -> Any:
    """A copy in which every mapping is a dictionary."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return copy.copy(value)


def _replay(call: dict[str, Any], cancellation: Cancellation | None = None) -> ReplayReport:
    """One scenario."""
    function: Any = _api.run_trace_replay if "trace_files" in call else _api.run_synthetic_trace_replay
    report: ReplayReport = function(**call, _cancellation=cancellation)
    return report


def _locally(calls: list[dict[str, Any]], jobs: int | None, tell: Callable[[int], object]) -> list[ReplayReport]:
    """On this machine: a thread waits for each helper."""
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    under_way = [Cancellation() for _ in calls]
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1, thread_name_prefix="dryserve sweep") as pool:
        futures = [pool.submit(_replay, call, c) for call, c in zip(calls, under_way)]
        try:
            waiting, done = set(futures), 0
            while waiting:
                ended, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)  # so that Ctrl-C is heard everywhere
                for future in ended:
                    future.result()
                done += len(ended)
                if ended:
                    tell(done)
        except BaseException:
            for future in futures:
                future.cancel()
            for cancellation in under_way:
                cancellation.cancel()
            raise
    return [future.result() for future in futures]


def _on_ray(calls: list[dict[str, Any]], jobs: int | None, tell: Callable[[int], object]) -> list[ReplayReport]:
    """As tasks of a Ray cluster."""
    try:
        import ray
    except ImportError as e:
        raise ImportError("ray is not installed; pip install ray adds it, and on='local' does without") from e
    if not ray.is_initialized():
        ray.init()
    task = ray.remote(_replay)
    reports: list[ReplayReport | None] = [None] * len(calls)
    left = list(range(len(calls)))[::-1]
    running: dict[Any, int] = {}
    try:
        while left or running:
            while left and (jobs is None or len(running) < jobs):
                i = left.pop()
                running[task.remote(calls[i])] = i
            ended, _ = ray.wait(list(running))
            for ref in ended:
                try:
                    reports[running[ref]] = ray.get(ref)
                except ray.exceptions.RayTaskError as e:  # the scenario's own is in it
                    raise getattr(e, "cause", None) or e from None
                del running[ref]
            tell(len(calls) - len(left) - len(running))
    except BaseException:
        for ref in running:
            ray.cancel(ref, force=True)
        raise
    return [r for r in reports if r is not None]
