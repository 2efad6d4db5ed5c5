"""``python -m dryserve.replay``: the program replay with the same arguments."""

from __future__ import annotations

import os
import sys

from dryserve._errors import HelperError
from dryserve._helper import require_program


def main() -> int:
    """Becomes the program, or on Windows waits for it. Returns an exit status."""
    try:
        path = os.fspath(require_program())
    except HelperError as e:
        print(f"dryserve: {e}", file=sys.stderr)
        return 1
    args = [path, *sys.argv[1:]]
    if sys.platform != "win32":
        try:
            os.execv(path, args)
        except OSError as e:
            print(f"dryserve: the helper {path} cannot be started: {e.strerror}", file=sys.stderr)
            return 1
    import subprocess

    with subprocess.Popen(args) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the program has it, too
                continue


if __name__ == "__main__":
    sys.exit(main())
