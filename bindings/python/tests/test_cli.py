"""``python -m dryserve.replay`` and ``python -m dynamo.replay``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dryserve
from dryserve import _helper

from conftest import ROOMY, TESTS, python

COMPANION = TESTS.parent / "dynamo-replay" / "src"


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(python(*args), capture_output=True, text=True, env={**os.environ, **(env or {})}, cwd="/", stdin=subprocess.DEVNULL)


def test_command_line(trace: Path) -> None:
    """Arguments, output and exit status are the program's."""
    out = run("-m", "dryserve.replay", str(trace), "--num-workers", "2")
    assert out.returncode == 0 and out.stdout.startswith("NVIDIA AIPerf | LLM Metrics\n") and out.stderr == ""
    out = run("-m", "dryserve.replay", "--num-wroker", "2")
    assert (out.returncode, out.stdout, out.stderr) == (2, "", 'replay: unknown flag "--num-wroker"; did you mean --num-workers?\n')
    out = run("-m", "dryserve.replay", "--version")
    assert out.stdout.startswith("replay (Dryserve) ") and "follows ai-dynamo 1.6.1" in out.stdout


def test_stdin(trace: Path) -> None:
    with trace.open() as f:
        out = subprocess.run(python("-m", "dryserve.replay", "-", "--no-table", "--report-json", "/dev/stdout"), stdin=f, capture_output=True, text=True)
    assert out.returncode == 0 and '"completed_requests": 3' in out.stdout


def test_missing() -> None:
    out = run("-m", "dryserve.replay", env={_helper.OVERRIDE: "/nothing"})
    assert out.returncode == 1 and out.stderr == "dryserve: DRYSERVE_HELPER is /nothing, which is no file; the path of the program replay is accepted\n"


def test_interrupt(endless: Path) -> None:
    """The program deals with Ctrl-C itself, and leaves no file."""
    before = sorted(endless.parent.iterdir())
    out = endless.parent / "r.jsonl"
    p = subprocess.Popen(python("-m", "dryserve.replay", str(endless), "--extra-engine-args", json.dumps(ROOMY), "--report-jsonl", str(out)), stderr=subprocess.PIPE)
    while sorted(endless.parent.iterdir()) == before:  # until it has begun a file
        assert p.poll() is None
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    assert p.communicate(timeout=10)[1] == b"replay: interrupted\n" and p.returncode == 130
    assert sorted(endless.parent.iterdir()) == before


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """An environment in which the companion is installed."""
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(f"import site; site.addsitedir({str(COMPANION)!r})\n")
    return {"PYTHONPATH": os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])}


def dynamo(tmp_path: Path, **files: str) -> None:
    """An ai-dynamo of our making, with files of dynamo/replay."""
    package = tmp_path / "site" / "dynamo" / "replay"
    package.mkdir(parents=True)
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)


def test_no_dynamo(site: dict[str, str], trace: Path) -> None:
    """Where there is no ai-dynamo, its names are ours."""
    out = run("-m", "dynamo.replay", str(trace), env=site)
    assert out.returncode == 0 and out.stdout.startswith("NVIDIA AIPerf | LLM Metrics\n")
    program = "import dynamo.replay as d, dryserve; print(d.run_trace_replay is dryserve.run_trace_replay, sorted(d.__all__))"
    assert run("-c", program, env=site).stdout.startswith("True ['PlannerReplayDetails', 'ReplayReport', ")
    out = run("-c", "import dynamo.llm", env=site)
    assert "No module named 'dynamo.llm'" in out.stderr
    out = run("-m", "dynamo.frontend", env=site)
    assert out.returncode == 1 and "No module named dynamo.frontend" in out.stderr


def test_dynamo_without_command_line(site: dict[str, str], tmp_path: Path, trace: Path) -> None:
    """Of an ai-dynamo without the command line everything else stays its own."""
    dynamo(tmp_path, __init__="here = 'its own'")
    out = run("-m", "dynamo.replay", str(trace), env=site)
    assert out.returncode == 0 and out.stdout.startswith("NVIDIA AIPerf | LLM Metrics\n")
    assert run("-c", "import dynamo.replay; print(dynamo.replay.here)", env=site).stdout == "its own\n"


def test_dynamo_with_command_line(site: dict[str, str], tmp_path: Path, trace: Path) -> None:
    """An ai-dynamo that has the command line keeps it."""
    dynamo(tmp_path, __init__="", __main__="import sys; print('its own', sys.argv[1:])")
    assert run("-m", "dynamo.replay", "trace", env=site).stdout == "its own ['trace']\n"


def test_start_costs_little(site: dict[str, str]) -> None:
    """The companion imports nothing when Python starts."""
    program = "import sys; print(*sys.modules)"
    more = set(run("-c", program, env=site).stdout.split()) - set(run("-c", program).stdout.split())
    assert more <= {"dryserve_dynamo_replay", "sitecustomize", "encodings.utf_8_sig"}  # the last is how Python 3.13 reads a .pth file
