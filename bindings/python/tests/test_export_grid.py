"""Grids out of a model of our making, with a jump in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dryserve
from dryserve import export_grid

from conftest import EXAMPLES, python


class Model:
    """Straight but for one jump in each table; 4 blocks a token."""

    model, system, backend, backend_version, tp_size = "m", "gpu", "vllm", "current", 2

    def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
        return 5.0 + 0.01 * batch_size * isl + prefix / 1e4 + (20 if isl > 777 else 0)

    def predict_decode(self, batch_size: int, isl: int, osl: int = 2) -> float:
        return 3.0 + 0.05 * batch_size + isl / 1e4 + (4 if batch_size > 100 else 0)

    def resolved_version(self) -> str:
        return "1.2.3"

    def num_gpu_blocks(self, block_size: int) -> int:
        return block_size * 100


def test_grid() -> None:
    """A grid finds a jump, and looks up as docs/timing.md says."""
    grid = export_grid.Grid(lambda batch, isl: 2.0 * batch + 3.0 * isl + (50 if isl > 777 else 0), ([1, 8], [0, 1024, 4096]))
    assert grid.look_up(1, 0) == 2.0 and grid.look_up(3, 512) == 6.0 + (0 + 3 * 1024 + 50) / 2
    before = grid.errors(500)[-1]
    grid.refine(0.001, 100)
    assert grid.axes[0] == [1, 8] and {777, 778} <= set(grid.axes[1])
    assert grid.errors(500)[-1] < 1e-12 < before
    grid = export_grid.Grid(lambda x: float(x % 7), ([0, 10_000],))
    grid.refine(0.01, 20)
    assert 10 < grid.points() <= 20  # as many as are wanted, where it never ends


def test_export(tmp_path: Path) -> None:
    """The file's durations are the model's, as far as the errors say, and the helper takes it."""
    file, errors = export_grid.export(Model(), 64, tolerance=0.01, samples=300)  # type: ignore[arg-type]
    assert {777, 778} <= set(file["prefill"]["isl"]) and {100, 101} <= set(file["decode"]["batch"])
    assert file["num_gpu_blocks"] == 6400 and file["backend_version"] == "1.2.3" and "Apache License" in file["source"] and f"{errors['decode'][-1]:.1%}" in file["source"]
    assert errors["prefill"][-1] < 0.02 and errors["decode"][-1] < 0.01
    path, trace = tmp_path / "grid.json", tmp_path / "t.jsonl"
    path.write_text(json.dumps(file))
    trace.write_text("".join(json.dumps({"timestamp": 40 * i, "input_length": 100 * i + 1, "output_length": 5, "hash_ids": list(range(i * (i < 5), i * (i < 5) + (100 * i) // 500 + 1))}) + "\n" for i in range(15)))
    engine: dict[str, Any] = {"timing_model": {"type": "external", "provider": "grid", "config": {"path": str(path)}}}
    by_grid = dryserve.run_trace_replay(trace, trace_block_size=500, extra_engine_args={"engine": engine}).summary
    by_model = dryserve.run_trace_replay(trace, trace_block_size=500, extra_engine_args={"engine": {"num_gpu_blocks": 6400}}, performance_model=Model()).summary
    assert by_grid["mean_ttft_ms"] == pytest.approx(by_model["mean_ttft_ms"], rel=0.02)
    # At the grid's own look-up the two are the same to the bit.
    grids = {"prefill": export_grid.Grid(Model().predict_prefill, export_grid.PREFILL), "decode": export_grid.Grid(Model().predict_decode, export_grid.DECODE)}
    for name, grid in grids.items():
        grid.refine(0.01, 4000)
        assert grid.axes == [file[name][k] for k in file[name] if k != "ms"]

    class ByGrid:
        def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
            return grids["prefill"].look_up(batch_size, isl, prefix)

        def predict_decode(self, batch_size: int, isl: int, osl: int) -> float:
            return grids["decode"].look_up(batch_size, isl)

    again = dryserve.run_trace_replay(trace, trace_block_size=500, extra_engine_args={"engine": {"num_gpu_blocks": 6400}}, performance_model=ByGrid()).summary
    assert again["mean_ttft_ms"] == pytest.approx(by_grid["mean_ttft_ms"], rel=1e-6) and again["duration_ms"] == pytest.approx(by_grid["duration_ms"], rel=1e-6)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("grid-*.json")), ids=lambda p: str(p.stem))
def test_examples(path: Path) -> None:
    """Grids that are shipped are taken, with their capacity."""
    grid = json.loads(path.read_text())
    engine = {"backend": grid["backend"], "timing_model": {"type": "external", "provider": "grid", "config": {"path": str(path)}}}
    summary = dryserve.run_synthetic_trace_replay(1, 2, 1, extra_engine_args={"engine": engine}, arrival_interval_ms=0.0).summary
    assert summary["mean_ttft_ms"] == pytest.approx(grid["prefill"]["ms"][0][0][0], rel=1e-12)
    assert summary["decode_gpus_per_worker"] == grid["tp"]


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(export_grid, "AIConfigurator", lambda *args, **kwargs: Model())
    args = ["--model", "m", "--system", "gpu", "--backend", "vllm"]
    assert export_grid.main([*args, "--out", str(tmp_path / "g.json")]) == 0
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("prefill: ") and "\ndecode: " in err and "error at 5,000 random places: median " in err
    assert export_grid.main([*args, "--block-size", "16"]) == 0
    assert {**json.loads(capsys.readouterr().out)}["block_size"] == 16
    assert export_grid.main([*args, "--out", str(tmp_path / "no" / "g.json")]) == 1
    assert capsys.readouterr().err == f"export_grid: {tmp_path / 'no' / 'g.json'} cannot be written: No such file or directory\n"


def test_not_installed() -> None:
    out = subprocess.run(python("-c", "import sys; sys.modules['aiconfigurator_core'] = None; from dryserve.export_grid import main; sys.exit(main(['--model', 'm', '--system', 's', '--backend', 'vllm']))"),
                         capture_output=True, text=True)  # fmt: skip
    assert out.returncode == 1 and out.stderr == "export_grid: aiconfigurator-core is not installed; pip install aiconfigurator-core adds it (Python 3.11 and later)\n"
