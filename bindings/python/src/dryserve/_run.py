"""One run on a helper, from its arguments to its outcome.

Owns: the dialogue of a run (docs/serve.md). A run that does not end well for
any reason, an exception of a callback or Ctrl-C among them, ends its helper.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dryserve import _helper
from dryserve._arguments import SEPARATOR, reworded
from dryserve._errors import HelperError, ReplayError, UsageError
from dryserve._progress import Progress


class PerformanceModel(Protocol):
    """Says how long passes take, in ms. Each question comes once in a run."""

    def predict_prefill(self, batch_size: int, isl: int, prefix: int, /) -> float:
        """Of a prefill of batch_size prompts, each with isl tokens to compute on top of prefix cached ones."""

    def predict_decode(self, batch_size: int, isl: int, osl: int, /) -> float:
        """Of a decode step of batch_size sequences with isl tokens each on average; osl is 2."""


class ScalingPolicy(Protocol):
    """Says how many workers there are to be while a run goes on (replay notes §7)."""

    def initial_tick_ms(self) -> float:
        """When it is asked first, in ms of simulated time; not finite: never."""

    def on_tick(self, tick: dict[str, Any], /) -> dict[str, Any]:
        """Is told the state of the run and says target_prefill, target_decode (None: as many as now) and next_tick_ms (None: never again)."""


class Cancellation:
    """Lets another thread end a run."""

    def __init__(self) -> None:
        self._helper: _helper.Helper | None = None
        self.cancelled = False

    def attach(self, helper: _helper.Helper) -> None:
        """Names the helper that the run is on."""
        self._helper = helper
        if self.cancelled:
            helper.hang_up()

    def cancel(self) -> None:
        """Ends the run, which fails unless it has just succeeded, and its helper."""
        self.cancelled = True
        if self._helper is not None:
            self._helper.hang_up()


@dataclass
class Order:
    """What a run is asked for."""

    args: Sequence[str]
    requests: bool = False
    model: PerformanceModel | None = None
    policy: ScalingPolicy | None = None
    sample: Callable[[dict[str, Any]], object] | None = None
    progress: Callable[[Progress], object] | None = None
    cancellation: Cancellation | None = None


@dataclass
class Outcome:
    """What a run has given."""

    report: dict[str, Any] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    table: str = ""
    engine: str = ""
    warnings: list[str] = field(default_factory=list)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    lifecycle: list[dict[str, Any]] = field(default_factory=list)


_RUN = 1  # the id; a helper does one run at a time


def run(order: Order) -> Outcome:
    """Runs an order on a helper."""
    helper = _helper.take()
    try:
        if order.cancellation is not None:
            order.cancellation.attach(helper)
        request: dict[str, Any] = {"id": _RUN, "op": "run", "args": SEPARATOR.join(order.args)}
        if order.requests:
            request["requests"] = True
        if order.sample is not None:
            request["tell_samples"] = True
        if order.model is not None:
            request["ask_timing"] = True
        if order.policy is not None:
            request["ask_scaling"], request["first_tick_ms"] = True, _ms("scaling_policy.initial_tick_ms()", order.policy.initial_tick_ms())
        helper.send(request)
        outcome = _converse(helper, order)
    except BaseException as e:
        if isinstance(e, ReplayError) and not isinstance(e, HelperError):  # the run has ended, the helper has not
            _leave(helper, order)
        else:
            helper.end()
        raise
    _leave(helper, order)
    return outcome


def _leave(helper: _helper.Helper, order: Order) -> None:
    """Keeps a helper for the next run, unless it was told to end meanwhile."""
    if order.cancellation is not None and order.cancellation.cancelled:
        helper.end()
    else:
        _helper.give_back(helper)


def _converse(helper: _helper.Helper, order: Order) -> Outcome:
    """The dialogue after the request."""
    outcome = Outcome()
    while True:
        m = helper.receive()
        event = m.get("event")
        if event == "progress":
            if order.progress is not None:
                order.progress(Progress(m["stage"], m["done"], m["total"]))
        elif event == "warning":
            outcome.warnings.append(reworded(m["text"]))
        elif event == "samples":
            if order.sample is not None:
                for line in m["lines"].splitlines():
                    order.sample(json.loads(line))
        elif event == "lines":
            outcome.requests += [json.loads(line) for line in m["lines"].splitlines() if line]
        elif event == "ask":
            answer = _decision(order.policy, m, outcome.ticks) if "ask_tick" in m else {"answer_ms": _answer(order.model, m)}
            helper.send({"id": _RUN, "op": "answer", **answer})
        elif event == "done":
            outcome.report, outcome.table, outcome.engine = json.loads(m["report"]), m["table"], m.get("engine", "")
            outcome.lifecycle = json.loads(m.get("lifecycle", "[]"))
            return outcome
        elif event == "error":
            kind = UsageError if m.get("kind") == "usage" else ReplayError
            raise kind(reworded(str(m.get("text"))), m.get("status", 1))
        else:
            raise helper.failed(f"has sent the event {event!r}, which dryserve does not know")


def _answer(model: PerformanceModel | None, ask: dict[str, Any]) -> float:
    """What the model says to a question."""
    assert model is not None
    batch, isl = ask["ask_batch"], ask["ask_isl"]
    if ask["ask_kind"] == 0:
        name, args = "predict_prefill", (batch, isl, ask["ask_prefix"])
        ms = model.predict_prefill(*args)
    else:
        name, args = "predict_decode", (batch, isl, ask["ask_osl"])
        ms = model.predict_decode(*args)
    try:
        number = float(ms)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"performance_model.{name}{args} is {ms!r}; a finite number of ms is accepted")
    return number


def _decision(policy: ScalingPolicy | None, ask: dict[str, Any], ticks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the policy says to a tick."""
    assert policy is not None
    tick = json.loads(ask["ask_tick"])
    ticks.append(tick)
    said = policy.on_tick(tick)
    if not isinstance(said, Mapping):
        raise TypeError(f"scaling_policy.on_tick has returned {said!r}; a mapping with target_prefill, target_decode and next_tick_ms is accepted")
    answer: dict[str, Any] = {}
    for key, name in (("target_prefill", "answer_prefill"), ("target_decode", "answer_decode")):
        target = said.get(key)
        if target is None:
            continue
        if isinstance(target, bool) or not isinstance(target, int) or target < 0:
            raise ValueError(f"scaling_policy.on_tick has returned {key} {target!r}; a whole number of at least 0, or None, is accepted")
        answer[name] = target
    if said.get("next_tick_ms") is not None:
        answer["answer_next_ms"] = _ms("next_tick_ms of scaling_policy.on_tick", said["next_tick_ms"])
    return answer


def _ms(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}; a number of ms is accepted") from None
