"""What may go wrong, as exceptions. Each has one sentence for its reader."""

from __future__ import annotations


class ReplayError(Exception):
    """A replay that could not be done: a file, a value or the run is at fault.

    ``status`` is the exit status that the command line has for it.
    """

    def __init__(self, sentence: str, status: int = 1) -> None:
        super().__init__(sentence)
        self.status = status

    def __reduce__(self) -> tuple[type[ReplayError], tuple[str, int]]:
        return type(self), (str(self), self.status)


class UsageError(ReplayError, ValueError):
    """Arguments that do not go together, or ask for what is not built."""


class HelperError(ReplayError, RuntimeError):
    """The helper process is not there, has ended early or talks nonsense."""


class ReplayWarning(UserWarning):
    """Something that the results of a run do not show."""
