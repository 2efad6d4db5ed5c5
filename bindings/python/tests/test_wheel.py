"""The wheels that are tested here, as files; DRYSERVE_TEST_WHEELS is their directory."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dryserve
from dryserve import _helper

from conftest import ENVIRONMENT, REPOSITORY, TESTS, helpers_of

WHEELS = Path(os.environ.get("DRYSERVE_TEST_WHEELS", "/nonexistent"))
pytestmark = pytest.mark.skipif(not WHEELS.is_dir(), reason="the package is not tested from its wheel")


def wheel(name: str) -> Path:
    (path,) = WHEELS.glob(f"{name}-*.whl")
    return path


@pytest.mark.parametrize("name", ["dryserve", "dryserve_dynamo_replay"])
def test_record(name: str) -> None:
    """RECORD has every file with its digest and size, and no other."""
    with zipfile.ZipFile(wheel(name)) as z:
        (record,) = [n for n in z.namelist() if n.endswith(".dist-info/RECORD")]
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(z.read(record).decode()))}
        assert list(rows) == z.namelist() and rows.pop(record) == ["", ""]
        for file, (digest, size) in rows.items():
            content = z.read(file)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert int(size) == len(content)


def test_contents() -> None:
    with zipfile.ZipFile(wheel("dryserve")) as z:
        files = {i.filename: i.external_attr >> 16 for i in z.infolist()}
        assert {"dryserve/__init__.py", "dryserve/py.typed", "dryserve/replay/__main__.py"} < files.keys()
        programs = [n for n in files if n.startswith("dryserve/_bin/")]
        assert len(programs) == 1 and files[programs[0]] == 0o100755
        assert all(mode == 0o100644 for n, mode in files.items() if n not in programs)
        assert not [n for n in files if "__pycache__" in n or "test" in n]
        tags = z.read(f"dryserve-{dryserve.__version__}.dist-info/WHEEL").decode().splitlines()
    assert "Root-Is-Purelib: false" in tags
    assert {t[5:] for t in tags if t.startswith("Tag: ")} == {f"py3-none-{p}" for p in wheel("dryserve").stem.split("-")[4].split(".")}


def test_installed() -> None:
    """What is tested is the wheel, with the helper that it carries."""
    assert _helper.program().is_relative_to(Path(sys.prefix)) and os.access(_helper.program(), os.X_OK)
    assert "site-packages" in dryserve.__file__
    meta = importlib.metadata.metadata("dryserve")
    assert meta["Version"] == dryserve.__version__ and importlib.metadata.requires("dryserve") is not None
    assert [r for r in importlib.metadata.requires("dryserve") or [] if "extra" not in r] == ["msgpack>=1.0"]
    out = subprocess.run([_helper.program(), "--version"], capture_output=True, text=True, check=True).stdout
    assert out.startswith(f"replay (Dryserve) {dryserve.__version__}, ")


def test_static() -> None:
    """The helper needs no library of the system: it has no interpreter."""
    head = _helper.program().read_bytes()[:4096]
    assert head[:4] == b"\x7fELF" and b"/ld-" not in head


def test_reproducible(tmp_path: Path) -> None:
    """The same source gives the same bytes."""
    build = [sys.executable, str(TESTS.parent / "tools" / "build_wheel.py"), "--out", str(tmp_path), "--platform", "host"]
    subprocess.run(build, check=True, cwd=REPOSITORY, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in ("dryserve", "dryserve_dynamo_replay"):
        assert (tmp_path / wheel(name).name).read_bytes() == wheel(name).read_bytes()


def test_no_helper_is_left(trace: Path) -> None:
    dryserve.run_trace_replay(trace)
    _helper.close()
    assert not helpers_of(os.getpid())
