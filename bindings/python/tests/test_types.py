"""Types: the package is strict, and its users are told theirs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dryserve
from dryserve import _api

from conftest import TESTS, python

PROJECT = TESTS.parent / "pyproject.toml"
PACKAGE = TESTS.parent / "src" / "dryserve"

USER = """
from pathlib import Path
import dryserve
from dryserve.replay import run_trace_replay, ReplayReport

class Model:
    def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
        return 1.0
    def predict_decode(self, batch_size: int, isl: int, osl: int) -> float:
        return 1.0

def tell(p: dryserve.Progress) -> None:
    print(p.stage.upper(), p.done + 1)

report: ReplayReport = run_trace_replay(Path("t"), num_workers=4, performance_model=Model(), progress=tell, engine="wasm")
reveal_type(report.summary)
report = run_trace_replay(["a", "b"], capture_per_request=True, telemetry_options=dryserve.TelemetryOptions())
reveal_type(report.per_request)
reveal_type(run_trace_replay("t", replay_mode="online"))
run_trace_replay("t", num_worker=4)
run_trace_replay("t", engine="fast")
run_trace_replay("t", performance_model=3)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache for all runs, for the types of Python itself take long."""
    return str(tmp_path_factory.mktemp("mypy"))


def mypy(*args: str) -> str:
    out = subprocess.run(python("-m", "mypy", "--no-error-summary", *args), capture_output=True, text=True)
    return out.stdout + out.stderr


def test_strict_on_windows(cache: str) -> None:
    assert mypy("--config-file", str(PROJECT), "--cache-dir", cache, "--platform", "win32", str(PACKAGE)) == ""


def test_strict(cache: str) -> None:
    """The package, and what is around it."""
    files = [PACKAGE, *sorted(TESTS.glob("*.py")), *sorted((TESTS.parent / "tools").glob("*.py")), TESTS.parent / "dynamo-replay" / "src" / "dryserve_dynamo_replay"]
    assert mypy("--config-file", str(PROJECT), "--cache-dir", cache, "--python-version", "3.11", *map(str, files)) == ""


def test_user(tmp_path: Path, cache: str) -> None:
    """A program that uses the package is checked against its types."""
    program = tmp_path / "user.py"
    program.write_text(USER)
    out = mypy("--strict", "--cache-dir", cache, "--python-version", "3.11", str(program))
    assert 'Revealed type is "dict[str, Any]"' in out and 'Revealed type is "list[dict[str, Any]] | None"' in out, out
    assert 'Revealed type is "dict[str, Any]"' in out.split("list[dict[str, Any]] | None")[1], out
    assert 'Unexpected keyword argument "num_worker"' in out
    wrong = {line.split(":")[1] for line in out.splitlines() if "error:" in line}
    lines = USER.splitlines()
    assert wrong == {str(i + 1) for i, line in enumerate(lines) if "num_worker=" in line or '"fast"' in line or "=3" in line}, out


@pytest.mark.parametrize(
    "function, parameters", [(dryserve.run_trace_replay, _api._TraceParameters), (dryserve.run_synthetic_trace_replay, _api._SyntheticParameters)]
)
def test_overloads(function: Any, parameters: Any) -> None:
    """The overloads take what the functions take, with the same types."""
    have = {**parameters.__annotations__, "replay_mode": "str"}
    want = {p.name: p.annotation for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}
    assert {name: getattr(a, "__forward_arg__", a) for name, a in have.items()} == want


def test_runtime_agrees(tmp_path: Path) -> None:
    """What type checkers see of the package is what there is."""
    allowed = (TESTS / "stubtest.txt").read_text()
    if sys.version_info >= (3, 13):  # of every dataclass, which the checker's description of them does not have
        allowed += r"dryserve\..*\.__replace__" + "\n"
    (tmp_path / "allowed").write_text(allowed)
    out = subprocess.run(
        python("-m", "mypy.stubtest", "--mypy-config-file", str(PROJECT), "--allowlist", str(tmp_path / "allowed"), "dryserve"), capture_output=True, text=True, cwd=tmp_path
    )
    assert out.returncode == 0, out.stdout + out.stderr
    assert "no issues found" in out.stdout
