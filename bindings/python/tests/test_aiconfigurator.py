"""Durations from AIConfigurator: from one of our making, and from the installed one if there is one."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dryserve
from dryserve.aiconfigurator import AIConfigurator


class Handle:
    """Answers with what it is asked."""

    @staticmethod
    def compile(*args: Any, **kwargs: Any) -> Handle:
        Handle.compiled = (args, kwargs)
        return Handle()

    compiled: Any = None

    def predict_prefill_latency(self, bs: int, isl: int, prefix: int) -> float:
        return bs * 1e6 + isl + prefix / 1000

    def predict_decode_latency(self, bs: int, isl: int, osl: int) -> int:
        return bs * 1000 + isl + osl


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    asked: dict[str, Any] = {}

    def estimate(*args: Any, **kwargs: Any) -> int:
        asked.update(args=args, **kwargs)
        return 77

    package, sdk = types.ModuleType("aiconfigurator_core"), types.ModuleType("aiconfigurator_core.sdk")
    package.sdk, sdk.EngineHandle, sdk.estimate_num_gpu_blocks = sdk, Handle, estimate  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aiconfigurator_core", package)
    monkeypatch.setitem(sys.modules, "aiconfigurator_core.sdk", sdk)
    return asked


def test_questions(made_up: dict[str, Any]) -> None:
    """A prompt's length counts its prefix there, and a run's parameters reach both functions."""
    model = AIConfigurator("m", "gpu", "trtllm", tp_size=2, moe_ep_size=4)
    assert Handle.compiled == (("m", "gpu", "trtllm"), {"backend_version": "current", "tp_size": 2, "moe_ep_size": 4})
    assert model.predict_prefill(3, 100, 28) == 3000128.028 and model.predict_decode(5, 10, 2) == 5012.0
    assert model.num_gpu_blocks(32) == 77 and model.resolved_version() == "current"
    assert made_up == {
        "args": ("m", "gpu", "trtllm", "current"), "scheduler_block_size": 32, "max_num_tokens": 8192, "max_batch_size": 1,
        "memory_fraction_kind": "of_free", "memory_fraction_value": 0.9, "tp_size": 2, "moe_ep_size": 4,
    }
    AIConfigurator("m", "gpu", "sglang").num_gpu_blocks(1, memory_fraction=0.5, max_num_batched_tokens=100)
    assert (made_up["memory_fraction_kind"], made_up["memory_fraction_value"], made_up["max_num_tokens"]) == ("of_total", 0.5, 100)
    with pytest.raises(ValueError, match="backend is 'vlm'; 'vllm', 'sglang' or 'trtllm' is accepted"):
        AIConfigurator("m", "gpu", "vlm")


def test_run(made_up: dict[str, Any], trace: Path) -> None:
    summary = dryserve.run_trace_replay(trace, performance_model=AIConfigurator("m", "gpu")).summary
    assert summary["min_ttft_ms"] == 3000010.0  # three prompts of ten tokens


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiconfigurator_core", None)
    with pytest.raises(ImportError, match="aiconfigurator-core is not installed; pip install aiconfigurator-core adds it"):
        AIConfigurator("m", "gpu")


@pytest.mark.filterwarnings("default")
def test_installed(trace: Path) -> None:
    """Predictions that version 0.12.0 gave when they were written down."""
    core = pytest.importorskip("aiconfigurator_core")
    model = AIConfigurator("Qwen/Qwen3-32B", "h200_sxm", "vllm")
    assert core is not None and model.predict_prefill(1, 1024, 0) == pytest.approx(93.1905478353455, rel=0.02)
    assert model.predict_prefill(1, 1024, 3072) == pytest.approx(105.3668885742778, rel=0.02)
    assert model.predict_decode(8, 1024) == pytest.approx(19.32011862986047, rel=0.02)
    assert model.resolved_version() not in ("", "current")
    assert model.num_gpu_blocks(64) == pytest.approx(3904, rel=0.05)
    summary = dryserve.run_trace_replay(trace, performance_model=model).summary
    assert summary["mean_ttft_ms"] == pytest.approx(round(model.predict_prefill(3, 10, 0), 6), rel=1e-12)
    assert summary["mean_itl_ms"] == pytest.approx(round(model.predict_decode(3, 11), 6), rel=1e-12)
