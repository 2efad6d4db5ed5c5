"""Writes a grid of durations from an installed AIConfigurator::

    python -m dryserve.export_grid --model Qwen/Qwen3-32B --system h200_sxm --backend vllm --tp 2 --out grid.json
    python -m dryserve.replay trace.jsonl --perf-grid grid.json

The grid (docs/timing.md) has what AIConfigurator predicts at its points. They
begin on axes that double from point to point; where between two neighbours the
prediction is far from the straight line, there comes a point more, over and
over: so a jump in the tables ends up between two points that are close
together. What is left of it is measured at random places, and said.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dryserve._version import __version__
from dryserve.aiconfigurator import AIConfigurator

Function = Callable[..., float]

# Where the axes begin.
PREFILL = ([1, 2, 4, 8, 16, 32, 64], [1, 16, 64, 256, 1024, 4096, 16384], [0, 1024, 4096, 16384, 32768])
DECODE = ([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], [1, 256, 1024, 4096, 16384, 65536])
BLOCK_SIZE = {"vllm": 64, "sglang": 1, "trtllm": 32}
NOTICE = (
    "predictions of aiconfigurator-core {core}, computed from its measurements; aiconfigurator-core: Copyright (c) 2025-2026 NVIDIA CORPORATION & AFFILIATES, "
    "licensed under the Apache License, Version 2.0"
)


class Grid:
    """A function of whole numbers by its values on axes, with straight lines between."""

    def __init__(self, function: Function, axes: Sequence[Sequence[int]]) -> None:
        self.function = function
        self.axes = [list(a) for a in axes]
        self._known: dict[tuple[int, ...], float] = {}

    def exact(self, *at: int) -> float:
        """The function; asked once for each place."""
        if at not in self._known:
            self._known[at] = self.function(*at)
        return self._known[at]

    def points(self) -> int:
        """How many points there are."""
        return math.prod(map(len, self.axes))

    def values(self) -> Any:
        """The values as nested lists, the first axis outermost."""

        def inner(at: tuple[int, ...], axes: list[list[int]]) -> Any:
            return [inner((*at, x), axes[1:]) for x in axes[0]] if axes else self.exact(*at)

        return inner((), self.axes)

    def look_up(self, *at: int) -> float:
        """What the grid says at a place within its axes (docs/timing.md)."""
        ends, shares = [], []
        for x, axis in zip(at, self.axes):
            i = min(max(bisect.bisect_right(axis, x) - 1, 0), len(axis) - 2)
            ends.append((axis[i], axis[i + 1]))
            shares.append((x - axis[i]) / (axis[i + 1] - axis[i]))
        total = 0.0
        for corner in itertools.product((0, 1), repeat=len(at)):
            weight = math.prod(s if high else 1 - s for high, s in zip(corner, shares))
            if weight:
                total += weight * self.exact(*(end[high] for high, end in zip(corner, ends)))
        return total

    def refine(self, tolerance: float, most: int) -> None:
        """Adds points until the lines are near at a few places between any two, or there are as many points as wanted."""
        while True:
            wanted = sorted(self._far(tolerance), reverse=True)
            grown = False
            for _, k, x in wanted[: max(len(wanted) // 2, 1)]:  # others may be near by then
                if self.points() // len(self.axes[k]) * (len(self.axes[k]) + 1) <= most:
                    bisect.insort(self.axes[k], x)
                    grown = True
            if not grown:
                return

    def _far(self, tolerance: float) -> list[tuple[float, int, int]]:
        """Where the line between two neighbours is off, the worst place of each interval: by how much, weighed with the interval's width; the axis; the place."""
        found = []
        for k, axis in enumerate(self.axes):
            others = [a for i, a in enumerate(self.axes) if i != k]
            for low, high in zip(axis, axis[1:]):
                wide = high - low
                places = {low + wide // 4, low + wide // 2, low + 3 * wide // 4, math.isqrt((low + 1) * (high + 1)) - 1} - {low, high}
                worst = max(((self._off(k, low, high, x, others), x) for x in places), default=(0.0, 0))
                if worst[0] > tolerance:
                    found.append((worst[0] * math.log2((high + 1) / (low + 1)), k, worst[1]))
        return found

    def _off(self, k: int, low: int, high: int, x: int, others: list[list[int]]) -> float:
        """The largest relative error at x on axis k between low and high, over all points of the other axes."""
        worst = 0.0
        for rest in itertools.product(*others):
            a, b, true = (self.exact(*rest[:k], v, *rest[k:]) for v in (low, high, x))
            line = a + (b - a) * (x - low) / (high - low)
            worst = max(worst, abs(line - true) / true if true else 0.0)
        return worst

    def errors(self, samples: int) -> list[float]:
        """Relative errors at random places, spread evenly over the logarithms, in order of size."""
        draw = random.Random(samples)
        off = []
        for _ in range(samples):
            at = [int(math.exp(draw.uniform(math.log(a[0] + 1), math.log(a[-1] + 1)))) - 1 for a in self.axes]
            at = [min(max(x, a[0]), a[-1]) for x, a in zip(at, self.axes)]
            true = self.exact(*at)
            off.append(abs(self.look_up(*at) - true) / true if true else 0.0)
        return sorted(off)


def export(model: AIConfigurator, block_size: int, tolerance: float = 0.02, most: int = 4000, samples: int = 5000) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The grid file's object, and the errors of prefill and decode at random places."""
    grids = {"prefill": Grid(model.predict_prefill, PREFILL), "decode": Grid(lambda batch, context: model.predict_decode(batch, context, 2), DECODE)}
    errors = {}
    for name, grid in grids.items():
        grid.refine(tolerance, most)
        errors[name] = grid.errors(samples)
    core = _core_version()
    largest = ", ".join(f"{name} {e[-1]:.1%} (median {e[len(e) // 2]:.2%})" for name, e in errors.items())
    file = {
        "backend": model.backend, "backend_version": model.resolved_version(), "system": model.system, "model": model.model, "tp": model.tp_size,
        "source": f"{NOTICE.format(core=core)}; largest error at {samples:,} random places: {largest}",
        "aiconfigurator_core": core, "exporter": f"dryserve {__version__}",
        "block_size": block_size, "num_gpu_blocks": model.num_gpu_blocks(block_size),
        "prefill": {**dict(zip(("batch", "isl", "prefix"), grids["prefill"].axes)), "ms": _rounded(grids["prefill"].values())},
        "decode": {**dict(zip(("batch", "context"), grids["decode"].axes)), "ms": _rounded(grids["decode"].values())},
    }  # fmt: skip
    return file, errors


def _rounded(values: Any) -> Any:
    """Durations to a nanosecond, which is all that a pass takes of them."""
    return [_rounded(v) for v in values] if isinstance(values, list) else round(values, 6)


def _core_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aiconfigurator-core")
    except PackageNotFoundError:
        return "unknown"


def write(path: str, text: str) -> None:
    """Writes a file, which appears whole."""
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def main(argv: list[str] | None = None) -> int:
    """Writes the file that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m dryserve.export_grid", description="Writes a grid of durations (docs/timing.md) from an installed AIConfigurator.")
    parser.add_argument("--model", required=True, help="as AIConfigurator names it, such as Qwen/Qwen3-32B")
    parser.add_argument("--system", required=True, help="the GPU, such as h200_sxm")
    parser.add_argument("--backend", required=True, choices=sorted(BLOCK_SIZE))
    parser.add_argument("--backend-version", default="current", help="(default: current)")
    parser.add_argument("--tp", type=int, default=1, help="GPUs of a rank (default: 1)")
    parser.add_argument("--block-size", type=int, help="tokens of a KV block (default: the backend's)")
    parser.add_argument("--tolerance", type=float, default=0.02, help="how far from a line is far, as a share (default: 0.02)")
    parser.add_argument("--most", type=int, default=4000, help="points of prefill and of decode at most (default: 4000)")
    parser.add_argument("--out", default="-", help="the file (default: standard output)")
    args = parser.parse_args(argv)
    try:
        model = AIConfigurator(args.model, args.system, args.backend, backend_version=args.backend_version, tp_size=args.tp)
        file, errors = export(model, args.block_size or BLOCK_SIZE[args.backend], args.tolerance, args.most)
    except Exception as e:  # of AIConfigurator, which has many kinds
        print(f"export_grid: {e}", file=sys.stderr)
        return 1
    text = json.dumps(file) + "\n"
    if args.out == "-":
        sys.stdout.write(text)
    else:
        try:
            write(args.out, text)
        except OSError as e:
            print(f"export_grid: {args.out} cannot be written: {e.strerror}", file=sys.stderr)
            return 1
    for name, off in errors.items():
        points = math.prod(len(v) for k, v in file[name].items() if k != "ms")
        usual = f"median {off[len(off) // 2]:.2%}, p99 {off[len(off) * 99 // 100]:.1%}"
        print(f"{name}: {points:,} points; error at {len(off):,} random places: {usual}, largest {off[-1]:.1%}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
