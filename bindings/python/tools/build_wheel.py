"""Builds the wheels: for every platform on one machine, the same bytes every time.

    python3 tools/build_wheel.py --out DIR [--platform linux/amd64 ...]

A wheel of dryserve is the package with the helper in it, a static program that
Go builds for any platform; so it needs Go, and nothing from the package index
on Python 3.11 and later. The file is also the build backend of pyproject.toml:
``pip install bindings/python`` builds for the machine it runs on.
"""

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent.parent
COMPANION = HERE / "dynamo-replay"

# For each platform of Go the tags of wheels. A static program runs with any
# libc; what Go itself asks of macOS is 12.
PLATFORMS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "windows"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def host() -> str:
    """This machine's platform."""
    system, machine = platform.system(), platform.machine().lower()
    name = f"{_SYSTEMS.get(system, system)}/{_MACHINES.get(machine, machine)}"
    if name not in PLATFORMS:
        raise SystemExit(f"build_wheel: the platform {name} has no wheel; {', '.join(PLATFORMS)} have one")
    return name


def version() -> str:
    """The version of both packages."""
    scope: dict[str, Any] = {}
    exec((HERE / "src/dryserve/_version.py").read_text(encoding="utf-8"), scope)
    return str(scope["__version__"])


@functools.cache
def core_wasm(go: str) -> None:
    """Builds core.wasm, once for all platforms."""
    subprocess.run([go, "run", "./internal/corewasm/cmd/corewasm"], cwd=REPOSITORY, check=True, stdout=sys.stderr)


def helper(target: str, directory: Path) -> Path:
    """Builds the helper for a platform."""
    goos, goarch = target.split("/")
    go = os.environ.get("GO", "go")
    program = directory / ("replay.exe" if goos == "windows" else "replay")
    build = [go, "build", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w -X main.version={version()}", "-o", os.fspath(program), "./cmd/replay"]
    env = {**os.environ, "GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0", "GOFLAGS": ""}
    try:
        core_wasm(go)
        subprocess.run(build, cwd=REPOSITORY, check=True, env=env, stdout=sys.stderr)
    except FileNotFoundError:
        raise SystemExit(f"build_wheel: {go} is not there; the helper is built with Go 1.26 or later") from None
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"build_wheel: {' '.join(e.cmd[:3])} has failed with status {e.returncode}") from None
    return program


class Wheel:
    """A wheel under way: files in order, then its RECORD."""

    def __init__(self, project: Path, tag: str, pure: bool) -> None:
        self.meta = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        self.name = self.meta["name"].replace("-", "_")
        self.file = f"{self.name}-{version()}-{tag}.whl"
        self.info = f"{self.name}-{version()}.dist-info"
        self.files: dict[str, tuple[bytes, int]] = {}
        self.package(project / "src")
        self.add(f"{self.info}/METADATA", self.metadata(project))
        tags = [f"Tag: py3-none-{p}" for p in tag.split("-")[2].split(".")]
        self.add(f"{self.info}/WHEEL", "\n".join(["Wheel-Version: 1.0", "Generator: dryserve build_wheel", f"Root-Is-Purelib: {str(pure).lower()}", *tags, ""]))
        self.add(f"{self.info}/licenses/LICENSE", (REPOSITORY / "LICENSE").read_bytes())

    def package(self, source: Path) -> None:
        """Adds the files of a package."""
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc" and "_bin" not in path.parts:
                self.add(path.relative_to(source).as_posix(), path.read_bytes())

    def add(self, name: str, content: bytes | str, mode: int = 0o644) -> None:
        """Adds a file."""
        self.files[name] = (content.encode() if isinstance(content, str) else content, mode)

    def metadata(self, project: Path) -> str:
        """The core metadata."""
        m = self.meta
        lines = ["Metadata-Version: 2.4", f"Name: {m['name']}", f"Version: {version()}", f"Summary: {m['description']}"]
        lines += [f"Keywords: {','.join(m['keywords'])}"] if "keywords" in m else []
        lines += [f"License-Expression: {m['license']}", "License-File: LICENSE", f"Requires-Python: {m['requires-python']}"]
        lines += [f"Classifier: {c}" for c in m.get("classifiers", [])]
        lines += [f"Project-URL: {k}, {v}" for k, v in m.get("urls", {}).items()]
        lines += [f"Requires-Dist: {d.replace('{version}', version())}" for d in m.get("dependencies", [])]
        for extra, needs in m.get("optional-dependencies", {}).items():
            lines += [f"Provides-Extra: {extra}"] + [f'Requires-Dist: {d}; extra == "{extra}"' for d in needs]
        readme = (project / "README.md").read_text(encoding="utf-8")
        return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])

    def write(self, directory: Path) -> Path:
        """Writes the wheel; it appears whole."""
        rows = []
        for name, (content, _) in self.files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
        record = f"{self.info}/RECORD"
        self.add(record, "".join(rows) + f"{record},,\n")
        directory.mkdir(parents=True, exist_ok=True)
        part = directory / (self.file + ".part")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, (content, mode) in self.files.items():
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.external_attr = (0o100000 | mode) << 16
                entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
                archive.writestr(entry, content)
        return part.replace(directory / self.file)


def dryserve(target: str, directory: Path) -> Path:
    """Builds the wheel of dryserve for a platform."""
    with tempfile.TemporaryDirectory() as scratch:
        program = helper(target, Path(scratch))
        wheel = Wheel(HERE, f"py3-none-{PLATFORMS[target]}", pure=False)
        wheel.add(f"dryserve/_bin/{program.name}", program.read_bytes(), 0o755)
        return wheel.write(directory)


def companion(directory: Path) -> Path:
    """Builds the wheel that supplies dynamo.replay."""
    return Wheel(COMPANION, "py3-none-any", pure=True).write(directory)


# The hooks of PEP 517.


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Builds for this machine."""
    return dryserve(host(), Path(wheel_directory)).name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """There is none: the helper's source is the whole repository."""
    raise SystemExit("build_wheel: a source distribution would need the whole repository; a wheel is built")


def main() -> None:
    """Builds wheels as the command line says."""
    parser = argparse.ArgumentParser(prog="build_wheel", description="Builds the wheels of dryserve and dryserve-dynamo-replay.")
    parser.add_argument("--out", type=Path, required=True, help="directory for the wheels")
    parser.add_argument("--platform", action="append", choices=["host", *PLATFORMS], help="platform to build for (default: all)")
    args = parser.parse_args()
    targets = [host() if p == "host" else p for p in args.platform or PLATFORMS]
    for target in dict.fromkeys(targets):
        path = dryserve(target, args.out)
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    print(companion(args.out))


if __name__ == "__main__":
    main()
