"""A Python object says how long passes take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dryserve

from conftest import helpers_of

ENGINE = {"engine": {"block_size": 4}}
FIXED = {"engine": {"block_size": 4, "timing_model": {"type": "fixed", "prefill_ms": 7.0, "decode_ms": 3.0}}}


class Fixed:
    """7 ms a prefill, 3 ms a decode step; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int, int]] = []

    def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
        self.asked.append(("prefill", batch_size, isl, prefix))
        return 7.0

    def predict_decode(self, batch_size: int, isl: int, osl: int) -> float:
        self.asked.append(("decode", batch_size, isl, osl))
        return 3


@pytest.mark.parametrize("engine", ["native", "wasm"])
def test_model(tmp_path: Path, engine: dryserve._api.Engine) -> None:
    trace = tmp_path / "t.jsonl"
    row = '{"timestamp":%d,"input_length":%d,"output_length":4,"hash_ids":[1,%d]}\n'
    trace.write_text(row % (0, 10, 2) + row % (0, 16, 2) + row % (9, 16, 3))
    model = Fixed()
    got = dryserve.run_trace_replay(trace, trace_block_size=8, extra_engine_args=ENGINE, performance_model=model, engine=engine, capture_per_request=True)
    want = dryserve.run_trace_replay(trace, trace_block_size=8, extra_engine_args=FIXED, engine=engine, capture_per_request=True)
    assert got.engine == engine and got.per_request == want.per_request
    assert len(model.asked) == len(set(model.asked)) and model.asked[:2] == [("prefill", 2, 9, 4), ("decode", 2, 14, 2)]
    assert ("prefill", 1, 8, 8) in model.asked


@pytest.mark.parametrize("engine", ["native", "wasm"])
@pytest.mark.parametrize("end", [KeyError("table"), KeyboardInterrupt(), SystemExit(4)])
def test_exception(trace: Path, engine: dryserve._api.Engine, end: BaseException) -> None:
    """It comes out as it is, and ends the run."""

    class Failing(Fixed):
        def predict_decode(self, batch_size: int, isl: int, osl: int) -> float:
            raise end

    with pytest.raises(type(end)) as e:
        dryserve.run_trace_replay(trace, performance_model=Failing(), engine=engine)
    assert e.value is end and not helpers_of(os.getpid())


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), None, "soon"])
def test_no_number(trace: Path, wrong: float) -> None:
    class Wrong(Fixed):
        def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
            return wrong

    with pytest.raises(ValueError) as e:
        dryserve.run_trace_replay(trace, performance_model=Wrong())
    assert str(e.value) == f"performance_model.predict_prefill(3, 10, 0) is {wrong!r}; a finite number of ms is accepted"


def test_two_models(trace: Path) -> None:
    with pytest.raises(dryserve.ReplayError, match="the engine says how long passes take, and so does"):
        dryserve.run_trace_replay(trace, extra_engine_args=FIXED, performance_model=Fixed())


def test_numpy_numbers(trace: Path) -> None:
    numpy = pytest.importorskip("numpy")

    class Numpy(Fixed):
        def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
            return numpy.float32(7.5)  # type: ignore[no-any-return]

    summary = dryserve.run_trace_replay(trace, performance_model=Numpy()).summary
    assert summary["min_ttft_ms"] == 7.5
