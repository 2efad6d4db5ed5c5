"""What all tests share: recorded cases, scratch caches, results for tally."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent.parent.parent
TESTDATA = REPOSITORY / "testdata"
EXAMPLES = REPOSITORY / "examples"
# The environment as it was, with the caches of other programs.
ENVIRONMENT = dict(os.environ)

# A row of a trace, and one that keeps the readable engine busy for long.
ROW = '{"timestamp":0,"input_length":10,"output_length":2,"hash_ids":[1]}\n'
LONG_ROW = '{"timestamp":0,"input_length":10,"output_length":2000000,"hash_ids":[1]}\n'
ROOMY = {"engine": {"num_gpu_blocks": 1_000_000, "block_size": 8192}}


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled WebAssembly goes to a directory of the session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> None:
    """Ctrl-C means something, also where the tests run as a job in the background, to which shells do not pass it on."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of three requests."""
    path = tmp_path / "t.jsonl"
    path.write_text(ROW * 3)
    return path


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A trace that takes very long with the engine of ROOMY, whose blocks only the readable engine has."""
    path = tmp_path / "long.jsonl"
    path.write_text(LONG_ROW * 200)
    return path


def helpers_of(pid: int) -> list[int]:
    """The helpers that a process has started, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(") ", 1)
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if int(stat[1].split()[1]) == pid and b"serve" in command and stat[1][0] != "Z":
                found.append(int(entry.name))
    return found


# One line for each result, as go test -json writes them, for internal/tidy/cmd/tally.
_events = os.environ.get("DRYSERVE_TEST_EVENTS")
_PACKAGE = "bindings/python"


def _emit(**event: Any) -> None:
    if _events:
        with open(_events, "a", encoding="utf-8") as f:
            f.write(json.dumps({"Package": _PACKAGE, **event}) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        if report.when == "teardown" and report.passed:
            return
        action = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
        if report.failed:
            _emit(Action="output", Test=report.nodeid, Output=f"{report.nodeid}\n{report.longreprtext}\n{report.capstdout}{report.capstderr}")
        _emit(Action=action, Test=report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _emit(Action="output", Test=report.nodeid, Output=f"{report.nodeid}\n{report.longreprtext}\n")
        _emit(Action="fail", Test=report.nodeid)


def python(*args: str) -> list[str]:
    """The command of another Python with the same packages."""
    return [sys.executable, *args]
