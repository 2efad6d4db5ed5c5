"""Frames out of a pipe, with bounds on how long each may take.

Owns: the length before a frame, and waiting. Does not own: what is in a frame,
the process at the other end. Between two frames a reader waits as long as
nothing comes; within a frame a pause is a fault of the writer, for a frame is
written as a whole.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import queue

# A pause within a frame, in seconds. Two of them in a row are a fault: after
# this process itself was stopped for a while, the first says nothing.
PAUSE = 0.4
MAX_FRAME = 1 << 31
_CHUNK = 1 << 18


class PipeFault(Exception):
    """A stream that cannot be read on; the text says why, without a subject."""


class Reader:
    """Reads frames out of what :meth:`_some` gives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def frame(self, timeout: float | None = None) -> bytes:
        """The next frame; waits for its beginning for at most timeout seconds."""
        self._fill(4, timeout, begun=bool(self._buffer))
        size = int.from_bytes(self._buffer[:4], "little")
        if size > MAX_FRAME:
            raise PipeFault(f"has sent a frame of {size:,} bytes; at most {MAX_FRAME:,} are accepted")
        self._fill(4 + size, None, begun=True)
        frame = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return frame

    def _fill(self, size: int, timeout: float | None, begun: bool) -> None:
        pauses = 0
        while len(self._buffer) < size:
            part = self._some(PAUSE if begun else timeout)
            if part is None:
                pauses += 1
                if not begun:
                    raise PipeFault(f"has not answered for {timeout:g} s")
                if pauses == 2:
                    raise PipeFault(f"has paused within a frame after {len(self._buffer)} of {self._claim()} bytes")
                continue
            if not part:
                if self._buffer:
                    raise PipeFault(f"has ended within a frame, after {len(self._buffer)} of {self._claim()} bytes")
                raise PipeFault("has ended")
            self._buffer += part
            begun, pauses = True, 0

    def _claim(self) -> str:
        return f"{4 + int.from_bytes(self._buffer[:4], 'little'):,}" if len(self._buffer) >= 4 else "at least 4"

    def _some(self, timeout: float | None) -> bytes | None:
        """What there is; None: nothing in time, empty: the end."""
        raise NotImplementedError


if sys.platform != "win32":

    class PollReader(Reader):
        """Reads a file descriptor where pipes can be polled."""

        def __init__(self, fd: int) -> None:
            import select

            super().__init__()
            self._fd = fd
            self._poll = select.poll()
            self._poll.register(fd, select.POLLIN)

        def _some(self, timeout: float | None) -> bytes | None:
            if not self._poll.poll(None if timeout is None else timeout * 1000):
                return None
            return os.read(self._fd, _CHUNK)


class ThreadReader(Reader):
    """Reads a file descriptor with a thread, where pipes cannot be polled (Windows)."""

    # A wait of the main thread ends for Ctrl-C only when it ends by itself.
    _BEAT = 0.1

    def __init__(self, fd: int) -> None:
        import queue
        import threading

        super().__init__()
        self._parts: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._ended = False
        threading.Thread(target=self._pump, args=(fd,), daemon=True, name="dryserve helper").start()

    def _pump(self, fd: int) -> None:
        while True:
            try:
                part = os.read(fd, _CHUNK)
            except OSError:
                part = b""
            self._parts.put(part)
            if not part:
                return

    def _some(self, timeout: float | None) -> bytes | None:
        import queue
        import time

        if self._ended:
            return b""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = self._BEAT if until is None else min(self._BEAT, until - time.monotonic())
            try:
                part = self._parts.get(timeout=max(left, 0))
            except queue.Empty:
                if until is not None and time.monotonic() >= until:
                    return None
                continue
            self._ended = not part
            return part


def reader(fd: int) -> Reader:
    """The reader that this system has."""
    if sys.platform == "win32":
        return ThreadReader(fd)
    else:  # a type checker for Windows does not know the other one
        return PollReader(fd)
