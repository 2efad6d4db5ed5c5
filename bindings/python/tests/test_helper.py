"""Helpers that are missing, wrong, broken or killed; what is left of them."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dryserve
from dryserve import _helper, _pipe

from conftest import ROOMY, helpers_of

# The beginning of a program that plays a helper.
PLAYER = f"""#!{sys.executable}
import os, sys, time
import msgpack
def send(m):
    b = msgpack.packb(m)
    os.write(1, len(b).to_bytes(4, "little") + b)
def receive():
    n = int.from_bytes(os.read(0, 4), "little")
    return msgpack.unpackb(os.read(0, n)) if n else None
def hello():
    send({{"v": 1, "event": "hello", "abi": 1}})
    return receive()
receive()
"""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No helper of another test serves, and none is left."""
    _helper.close()
    yield
    _helper.close()
    assert not helpers_of(os.getpid())


@pytest.fixture(params=["poll", "thread"])
def _reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read a pipe."""
    if request.param == "thread":
        monkeypatch.setattr(_pipe, "reader", _pipe.ThreadReader)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _reader: None) -> Callable[[str], Path]:
    """Puts a program in the helper's place."""

    def play(text: str) -> Path:
        path = tmp_path / "player"
        path.write_text(PLAYER + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(_helper.OVERRIDE, str(path))
        return path

    return play


def failure(trace: Path) -> str:
    with pytest.raises(dryserve.HelperError) as e:
        dryserve.run_trace_replay(trace)
    return str(e.value)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("sys.exit(3)", "has ended; its exit status is 3"),
        ("print('no such flag', file=sys.stderr); sys.exit(2)", "has ended; its exit status is 2; it said: no such flag"),
        ("print('fatal error: out of memory\\n\\ngoroutine 1', file=sys.stderr); sys.exit(2)", "has ended; its exit status is 2; it said: fatal error: out of memory"),
        ("print('hello, I am another program'); sys.stdout.flush(); receive()", "has paused within a frame after 28 of 1,819,043,180 bytes"),
        ("os.write(1, b'\\xff' * 100); receive()", "has sent a frame of 4,294,967,295 bytes; at most 2,147,483,648 are accepted"),
        ("send([1])", "has sent what is no frame"),
        ("os.write(1, b'\\x01\\0\\0\\0\\xc1')", "has sent what is no frame"),
        ("send({'v': 7, 'event': 'hello', 'abi': 7})", "has sent a frame of version 7; version 1 is accepted"),
        ("send({'v': 1, 'event': 'hello', 'abi': 9})", f"speaks version 9 of the frames; dryserve {dryserve.__version__} speaks version 1"),
        ("hello(); os.write(1, b'\\x20\\0\\0\\0half of')", "has ended within a frame, after 11 of 36 bytes"),
        ("hello(); os.write(1, b'\\x20\\0\\0\\0half of'); time.sleep(60)", "has paused within a frame after 11 of 36 bytes"),
        ("hello(); os.write(1, b'\\x20\\0')", "has ended within a frame, after 2 of at least 4 bytes"),
        ("hello()", "has ended"),
        ("hello(); send({'v': 1, 'event': 'dance'})", "has sent the event 'dance', which dryserve does not know"),
        ("hello(); os.kill(os.getpid(), 9)", "has ended; it was killed by signal 9"),
    ],
)
def test_broken(play: Callable[[str], Path], trace: Path, text: str, sentence: str) -> None:
    path = play(text)
    assert failure(trace) == f"the helper {path} {sentence}"


def test_silent(play: Callable[[str], Path], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_helper, "_HELLO_S", 0.3)
    path = play("time.sleep(60)")
    assert failure(trace) == f"the helper {path} has not answered for 0.3 s"


def test_slow_frame(play: Callable[[str], Path], trace: Path) -> None:
    """A frame may come in parts."""
    play(
        "q = hello()\n"
        "b = msgpack.packb({'v': 1, 'event': 'error', 'kind': 'run', 'text': f'args {q[\"args\"][:12]!r}', 'status': 1})\n"
        "for c in len(b).to_bytes(4, 'little') + b:\n"
        "    os.write(1, bytes([c])); time.sleep(0.002)\n"
        "receive()"
    )
    with pytest.raises(dryserve.ReplayError, match="args '--trace-form'"):
        dryserve.run_trace_replay(trace)


def test_missing(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_helper.OVERRIDE, str(tmp_path / "nothing"))
    assert failure(trace) == f"DRYSERVE_HELPER is {tmp_path / 'nothing'}, which is no file; the path of the program replay is accepted"
    monkeypatch.setenv(_helper.OVERRIDE, str(trace))
    assert failure(trace) == f"the helper {trace} cannot be started: Permission denied"


def test_killed_in_a_run(endless: Path, trace: Path, _reader: None) -> None:
    def kill(p: dryserve.Progress) -> None:
        if p.stage == "simulating":
            for helper in helpers_of(os.getpid()):  # none when it has told of itself a second time before
                os.kill(helper, signal.SIGKILL)

    with pytest.raises(dryserve.HelperError, match="has ended; it was killed by signal 9"):
        dryserve.run_trace_replay(endless, extra_engine_args=ROOMY, engine="native", progress=kill)
    assert dryserve.run_trace_replay(trace).summary["completed_requests"] == 3


def test_killed_between_runs(trace: Path) -> None:
    dryserve.run_trace_replay(trace)
    (helper,) = helpers_of(os.getpid())
    os.kill(helper, signal.SIGKILL)
    assert dryserve.run_trace_replay(trace).summary["completed_requests"] == 3
    assert helpers_of(os.getpid()) != [helper]


def test_kept(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper serves one call after the other, while its surroundings are ours."""
    dryserve.run_trace_replay(trace)
    first = helpers_of(os.getpid())
    with pytest.raises(dryserve.ReplayError):
        dryserve.run_trace_replay(trace, num_workers=0)
    dryserve.run_synthetic_trace_replay(10, 2, 3, arrival_interval_ms=1)
    assert helpers_of(os.getpid()) == first
    monkeypatch.chdir(tmp_path)
    assert dryserve.run_trace_replay("t.jsonl").summary["completed_requests"] == 3
    second = helpers_of(os.getpid())
    assert len(second) == 1 and second != first
    monkeypatch.setenv("DRYSERVE_TEST", "1")
    dryserve.run_trace_replay("t.jsonl")
    assert helpers_of(os.getpid()) != second


def test_threads(trace: Path) -> None:
    """Calls of several threads go on side by side, and few helpers are kept."""
    reports: list[dryserve.ReplayReport] = []
    threads = [threading.Thread(target=lambda: reports.append(dryserve.run_trace_replay(trace))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.summary["completed_requests"] for r in reports] == [3] * 8
    assert 1 <= len(helpers_of(os.getpid())) <= 4


def test_callback_fails(endless: Path, tmp_path: Path, _reader: None) -> None:
    """Its exception comes out as it is, the run ends, and no file is left."""
    before = sorted(tmp_path.iterdir())

    def fail(p: dryserve.Progress) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="^enough$"):
        dryserve.run_trace_replay(endless, extra_engine_args=ROOMY, engine="native", report_jsonl_path=tmp_path / "r.jsonl", progress=fail)
    assert not helpers_of(os.getpid()) and sorted(tmp_path.iterdir()) == before
