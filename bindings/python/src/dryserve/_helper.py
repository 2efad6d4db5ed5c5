"""The helper: a process that simulates, ``replay serve`` (docs/serve.md).

Owns: where the program is, starting and ending processes, their pool, frames
as dictionaries, and the sentence for a process that has failed. Does not own:
what a run is asked (``_arguments``) and what comes out of it (``_run``).

One process serves one call at a time and is kept for the next one. Nothing of
it outlives this process: its input ends with us, and so does it. A forked
child has none of its parent's. Whatever interrupts a call ends its process,
first by the end of its input, so that it leaves no half-written file.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import Any

import msgpack

from dryserve import _pipe
from dryserve._errors import HelperError
from dryserve._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import IO

# Version of the frames.
ABI = 1
# Another program than the one in the package.
OVERRIDE = "DRYSERVE_HELPER"

_KEPT = 4  # processes that wait for the next call
_HELLO_S = 20.0  # a first start may be slow: virus scanners look at it
_PARTING_S = 1.0
_KEEPING_S = 10.0  # at the end of the program: core.wasm may still be compiled, for the next one
_BROKEN_S = 0.1


def program() -> Path:
    """Where the helper is."""
    override = os.environ.get(OVERRIDE)
    if override:
        return Path(override)
    name = "replay.exe" if sys.platform == "win32" else "replay"
    return Path(__file__).with_name("_bin") / name


def require_program() -> Path:
    """Where the helper is, or why it is not there."""
    path = program()
    if path.is_file():
        return path
    if os.environ.get(OVERRIDE):
        raise HelperError(f"{OVERRIDE} is {path}, which is no file; the path of the program replay is accepted")
    raise HelperError(f"the helper {path} is missing; install a wheel of dryserve for this platform, or set {OVERRIDE} to the program replay")


class Helper:
    """A running helper, for one thread at a time."""

    def __init__(self) -> None:
        import subprocess
        import tempfile

        self.path = require_program()
        self.place = place()
        self.stderr: IO[bytes] = tempfile.TemporaryFile()
        self.process: subprocess.Popen[bytes]
        apart: dict[str, Any]
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        else:  # Ctrl-C is this process's to deal with
            apart = {"start_new_session": True}
        try:
            self.process = subprocess.Popen(
                [os.fspath(self.path), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, bufsize=0, **apart
            )
        except OSError as e:
            self.stderr.close()
            raise HelperError(f"the helper {self.path} cannot be started: {e.strerror or e}") from e
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._reader = _pipe.reader(self._out.fileno())
        _live.add(self)
        try:
            self._greet()
        except BaseException:
            self.end()
            raise

    def _greet(self) -> None:
        self.send({"op": "hello"})
        hello = self.receive(_HELLO_S)
        if hello.get("event") != "hello" or hello.get("abi") != ABI:
            abi = hello.get("abi", hello.get("v"))
            raise HelperError(f"the helper {self.path} speaks version {abi} of the frames; dryserve {__version__} speaks version {ABI}")

    def send(self, message: dict[str, Any]) -> None:
        """Writes a frame."""
        body = msgpack.packb({"v": ABI, **message}, unicode_errors="surrogateescape")
        data = memoryview(len(body).to_bytes(4, "little") + body)
        try:
            while data:
                data = data[self._in.write(data) :]
        except (OSError, ValueError) as e:
            raise self.failed("has ended") from e

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """Reads a frame."""
        try:
            body = self._reader.frame(timeout)
        except (_pipe.PipeFault, OSError, ValueError) as e:
            raise self.failed(str(e)) from e
        try:
            message = msgpack.unpackb(body, unicode_errors="surrogateescape")
        except Exception as e:  # msgpack has many kinds
            raise self.failed("has sent what is no frame") from e
        if not isinstance(message, dict):
            raise self.failed("has sent what is no frame")
        if message.get("v") != ABI:
            raise self.failed(f"has sent a frame of version {message.get('v')}; version {ABI} is accepted")
        return message

    def failed(self, what: str) -> HelperError:
        """The exception for a process that has failed; it is ended."""
        status = self._stop(_BROKEN_S)
        if status is not None and status < 0:
            what += f"; it was killed by signal {-status}"
        elif status:
            what += f"; its exit status is {status}"
        said = self._said()
        self.stderr.close()
        return HelperError(f"the helper {self.path} {what}" + (f"; it said: {said}" if said else ""))

    def _said(self) -> str:
        """The line on standard error that tells most."""
        try:
            self.stderr.seek(0)
            text = self.stderr.read(1 << 16).decode(errors="replace")
        except (OSError, ValueError):
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("fatal error:", "panic:", "runtime:"))]
        return (telling or lines[-1:] or [""])[0]

    def alive(self) -> bool:
        """Whether it can serve a call: it is there, answers, and has our surroundings."""
        if self.process.poll() is not None or self.place != place():
            return False
        try:
            self._greet()
        except HelperError:
            return False
        return True

    def hang_up(self) -> None:
        """Ends its input, upon which it stops whatever it does. Any thread may."""
        try:
            self._in.close()
        except OSError:
            pass

    def end(self, patience: float = _PARTING_S) -> None:
        """Ends the process and waits for that."""
        self._stop(patience)
        self.stderr.close()

    def _stop(self, patience: float) -> int | None:
        """Ends the process, by force after some patience. Returns the exit status it gave itself."""
        import subprocess

        _live.discard(self)
        self.hang_up()
        status: int | None = None
        try:
            status = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        except BaseException:  # a second Ctrl-C
            self.process.kill()
            self.process.wait()
            raise
        try:
            self._out.close()
        except OSError:
            pass
        return status

    def forget(self) -> None:
        """In a forked child: lets go of the parent's process."""
        self.process.returncode = 0  # so that nobody waits for it
        for end in (self._in, self._out, self.stderr):
            try:
                end.close()
            except OSError:
                pass


def place() -> tuple[str, dict[str, str]]:
    """What a process takes over when it starts: paths are relative to it."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    return cwd, dict(os.environ)


_lock = threading.Lock()
_idle: list[Helper] = []
_live: set[Helper] = set()


def take() -> Helper:
    """A helper for one call: one that waits, or a new one."""
    while True:
        with _lock:
            helper = _idle.pop() if _idle else None
        if helper is None:
            return Helper()
        if helper.alive():
            return helper
        helper.end()


def give_back(helper: Helper) -> None:
    """Keeps a helper whose call has ended well."""
    with _lock:
        if len(_idle) < _KEPT:
            _idle.append(helper)
            return
    helper.end()


@atexit.register
def close() -> None:
    """Ends all helpers. Calls made after it start new ones."""
    with _lock:
        _idle.clear()
    for helper in list(_live):
        helper.hang_up()
    for helper in list(_live):
        helper.end(_KEEPING_S)


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for helper in _live:
        helper.forget()
    _live.clear()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
