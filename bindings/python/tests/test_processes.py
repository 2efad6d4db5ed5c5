"""Ctrl-C, dying parents, forked and spawned children, event loops."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import dryserve
from dryserve import _helper, _run

from conftest import ROOMY, TESTS, helpers_of, python

# A program that tells when its run is under way.
BUSY = """
import sys, dryserve
def tell(p):
    if p.stage == "simulating":
        print("busy", flush=True)
dryserve.run_trace_replay(sys.argv[1], extra_engine_args={"engine": {"num_gpu_blocks": 1_000_000, "block_size": 8192}}, engine=sys.argv[2],
                          report_jsonl_path=sys.argv[3], progress=tell)
"""


def wait_for(what: str, condition: "object", seconds: float = 10) -> None:
    assert callable(condition)
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def busy(endless: Path, engine: str) -> tuple[subprocess.Popen[bytes], int]:
    """A busy program and its helper."""
    p = subprocess.Popen(python("-c", BUSY, str(endless), engine, str(endless.parent / "r.jsonl")), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout is not None and p.stdout.readline() == b"busy\n"
    (helper,) = helpers_of(p.pid)
    return p, helper


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("engine", ["native", "wasm"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_ends(endless: Path, engine: str, end: signal.Signals) -> None:
    """However a program ends, its helper does too, and no file is left."""
    before = sorted(endless.parent.iterdir())
    p, helper = busy(endless, engine)
    p.send_signal(end)
    _, stderr = p.communicate(timeout=10)
    assert p.returncode == -end, stderr
    if end == signal.SIGINT:
        assert b"KeyboardInterrupt" in stderr
    wait_for("the helper goes on", lambda: gone(helper))
    wait_for("files are left", lambda: sorted(endless.parent.iterdir()) == before)


def replayed(trace: str) -> tuple[int, int]:
    """In a child: a replay, and whether it has a helper of its own."""
    report = dryserve.run_trace_replay(trace)
    return report.summary["completed_requests"], len(helpers_of(os.getpid()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children(trace: Path, method: str) -> None:
    """Children have helpers of their own; the parent keeps its."""
    dryserve.run_trace_replay(trace)
    mine = helpers_of(os.getpid())
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(replayed, [str(trace)] * 4) == [(3, 1)] * 4
    assert replayed(str(trace)) == (3, len(mine)) and helpers_of(os.getpid()) == mine


def test_fork_lets_go(trace: Path) -> None:
    """A child that lives on does not keep its parent's helper alive."""
    program = f"""
import os, sys, time
import dryserve
dryserve.run_trace_replay({str(trace)!r})
if os.fork() == 0:
    sys.stdout.close(); os.close(1)
    time.sleep(60)
print(os.getppid(), flush=True)
os.kill(os.getpid(), 9)
"""
    p = subprocess.Popen(python("-c", program), stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert p.stdout is not None and p.stdout.readline()
        p.wait(10)
        wait_for("the helper goes on", lambda: not [h for h in helpers_in(p.pid) if not gone(h)])
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.stdout and p.stdout.close()


def helpers_in(pid: int) -> list[int]:
    """Helpers that a process had started before it ended: their sessions are their own, so by their environment."""
    return [h for h in helpers_of(1)] + helpers_of(pid)


def test_exit_is_quiet(trace: Path) -> None:
    """At the end of a program its helper ends without a word."""
    program = f"import dryserve; dryserve.run_trace_replay({str(trace)!r}); print(dryserve._helper._idle[0].process.pid)"
    out = subprocess.run(python("-W", "error", "-X", "dev", "-c", program), capture_output=True, check=True)
    assert out.stderr == b""
    wait_for("the helper goes on", lambda: gone(int(out.stdout)))


def test_compiles_once(trace: Path, tmp_path: Path) -> None:
    """However short the first program is, what it has compiled is there for the next one."""
    cache = tmp_path / "cache"
    cache.mkdir()
    program = f"import dryserve; print(dryserve.run_trace_replay({str(trace)!r}).engine)"
    out = subprocess.run(python("-c", program), capture_output=True, check=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    assert out.stdout.split() == [b"wasm"]
    (kept,) = cache.glob("dryserve/wasm/wazero-*/*")
    assert kept.stat().st_size > 1_000_000


def test_async(trace: Path) -> None:
    async def both() -> list[int]:
        reports = await asyncio.gather(
            dryserve.run_trace_replay_async(trace, num_workers=2),
            dryserve.run_synthetic_trace_replay_async(100, 3, 5, arrival_interval_ms=2.0),
        )
        return [r.summary["completed_requests"] for r in reports]

    assert asyncio.run(both()) == [3, 5]


def test_async_cancelled(endless: Path) -> None:
    """Cancelling a task ends its run."""
    _helper.close()

    async def cancelled() -> None:
        under_way = asyncio.Event()
        loop = asyncio.get_running_loop()

        def tell(p: dryserve.Progress) -> None:
            if p.stage == "simulating":
                loop.call_soon_threadsafe(under_way.set)

        task = asyncio.create_task(dryserve.run_trace_replay_async(endless, extra_engine_args=ROOMY, engine="native", progress=tell))
        await under_way.wait()
        assert len(helpers_of(os.getpid())) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not helpers_of(os.getpid())

    asyncio.run(cancelled())


def test_cancelled_late() -> None:
    """A helper that was told to end is not kept, even if its run ended before it had noticed."""
    helper, cancellation = _helper.take(), _run.Cancellation()
    cancellation.attach(helper)
    cancellation.cancel()
    _run._leave(helper, _run.Order([], cancellation=cancellation))
    assert helper.process.returncode == 0 and helper not in _helper._idle


def test_async_fails(trace: Path) -> None:
    with pytest.raises(dryserve.ReplayError, match="num_workers is 0"):
        asyncio.run(dryserve.run_trace_replay_async(trace, num_workers=0))


def test_import_takes_little() -> None:
    """What costs time is imported when it is needed."""
    out = subprocess.run(python("-c", "import sys, dryserve; print(*sys.modules)"), capture_output=True, check=True, text=True, cwd=TESTS)
    assert not {"subprocess", "asyncio", "pandas", "numpy", "tempfile", "multiprocessing", "tqdm"} & set(out.stdout.split())
