"""A bar on standard error while a run is under way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# How long a stage stays silent, in seconds.
_PATIENCE = 0.3
_WIDTH = 30


class Progress(NamedTuple):
    """How far a run is: ``done`` of ``total`` bytes or requests; total -1: unknown."""

    stage: str
    done: int
    total: int


class Bar:
    """A bar: tqdm's where tqdm is installed (in notebooks a widget), else a line on a terminal."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._stage = ""
        self._drawn = False
        self._tqdm: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._make = tqdm

    def __call__(self, p: Progress) -> None:
        if time.monotonic() - self._began < _PATIENCE:
            return
        if self._make is not None:
            self._update_tqdm(p)
        elif sys.stderr.isatty():
            self._draw(p)

    def _update_tqdm(self, p: Progress) -> None:
        if p.stage != self._stage:
            self.close()
            unit = {"reading": "B"}.get(p.stage, "req")
            self._stage = p.stage
            self._tqdm = self._make(total=p.total if p.total > 0 else None, desc=p.stage, unit=unit, unit_scale=True, leave=False)
        self._tqdm.update(p.done - self._tqdm.n)

    def _draw(self, p: Progress) -> None:
        if p.total > 0:
            share = min(p.done / p.total, 1.0)
            full = int(share * _WIDTH)
            line = f"{p.stage} [{'=' * full}{' ' * (_WIDTH - full)}] {share:4.0%}"
        else:
            line = f"{p.stage} {p.done:,}"
        sys.stderr.write("\r\x1b[K" + line)
        sys.stderr.flush()
        self._drawn = True

    def close(self) -> None:
        """Takes the bar away."""
        if self._tqdm is not None:
            self._tqdm.close()
            self._tqdm = None
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def listener(progress: bool | Callable[[Progress], object] | None) -> tuple[Callable[[Progress], object] | None, Callable[[], None]]:
    """Who is told of progress, and what ends that."""
    if progress is None or progress is False:
        return None, _nothing
    if progress is True:
        bar = Bar()
        return bar, bar.close
    if callable(progress):
        return progress, _nothing
    raise TypeError(f"progress is {progress!r}; True, False or a function of a dryserve.Progress is accepted")


def _nothing() -> None:
    pass
