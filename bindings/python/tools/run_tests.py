"""Tests the wheels as their users get them: built, installed in a fresh virtual environment.

Needs Go, Python with venv, and the package index for what tests/requirements.txt
names. Standard output has results as go test -json writes them, for
internal/tidy/cmd/tally; what people read is on standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PACKAGE = "bindings/python"
# Where there are wheels of it.
AICONFIGURATOR = 'aiconfigurator-core==0.12.0; python_version >= "3.11" and sys_platform != "win32"'


def say(**event: object) -> None:
    """Prints a result."""
    print(json.dumps({"Package": PACKAGE, **event}), flush=True)


def attempt(what: str, *command: str, **env: str) -> None:
    """Runs a command whose failure is the end."""
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **env})
    if out.returncode != 0:
        say(Action="output", Output=f"{what} has failed:\n{out.stdout}")
        raise SystemExit(1)


def test(scratch: Path) -> bool:
    """Builds, installs and tests below a directory."""
    wheels, environment, events = scratch / "wheels", scratch / "venv", scratch / "events"
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    venv.create(environment, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    attempt("installing what the tests need (tests/requirements.txt) from the package index", *pip, "--requirement", str(HERE / "tests/requirements.txt"))
    attempt("building the wheels", str(python), str(HERE / "tools/build_wheel.py"), "--out", str(wheels), "--platform", "host")
    if os.environ.get("AICONFIGURATOR"):
        attempt("installing AIConfigurator", *pip, AICONFIGURATOR)
    attempt("installing the wheels", *pip, "--no-deps", *map(str, sorted(wheels.glob("dryserve-*.whl"))))
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DRYSERVE_HELPER")}
    env |= {"DRYSERVE_TEST_EVENTS": str(events), "DRYSERVE_TEST_WHEELS": str(wheels), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", "pytest", "--rootdir", str(HERE), "-c", str(HERE / "pyproject.toml"), str(HERE / "tests"), *sys.argv[1:]]
    status = subprocess.run(command, cwd=scratch, stdout=sys.stderr, env=env).returncode
    if events.exists():
        sys.stdout.write(events.read_text(encoding="utf-8"))
    return status == 0


def main() -> int:
    """Tests and says what came of it."""
    say(Action="start")
    start, good = time.monotonic(), False
    try:
        with tempfile.TemporaryDirectory(prefix="dryserve-test-") as scratch:
            good = test(Path(scratch))
    finally:
        say(Action="pass" if good else "fail", Elapsed=round(time.monotonic() - start, 2))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
