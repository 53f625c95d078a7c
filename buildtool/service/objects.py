"""Compiles C and assembly files to objects, through a per-user cache keyed by content."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from buildtool.errors import ToolError

CACHE_BYTES = 256 << 20  # above this the oldest objects go


@dataclass(frozen=True)
class Unit:
    """A file to compile: where it is, the folders it includes from, and its own flags."""

    source: Path
    includes: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiler:
    """A compiler with the flags that every unit gets; `identity` is its name and version."""

    cc: str
    identity: str
    flags: tuple[str, ...]


@functools.lru_cache(maxsize=64)
def _headers(folder: Path, _stamp: tuple[tuple[str, int, int], ...]) -> str:
    """Digest of every header in a folder, by name and content."""
    digest = hashlib.sha256()
    for header in sorted(folder.glob("*.h")):
        digest.update(header.name.encode() + b"\0" + header.read_bytes() + b"\0")
    return digest.hexdigest()


def headers_digest(folder: Path) -> str:
    """Stands for all that a unit may include from `folder` in the cache's key."""
    stats = [(h.name, h.stat()) for h in sorted(folder.glob("*.h"))]
    return _headers(folder, tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/buildtool/objects, or ~/.cache/buildtool/objects."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "buildtool" / "objects"


def compile_all(compiler: Compiler, units: Sequence[Unit], folder: Path) -> list[Path]:
    """Objects of `units` in `folder`, in order; raises ToolError with the compiler's words."""
    cache = cache_folder()

    def one(numbered: tuple[int, Unit]) -> Path:
        number, unit = numbered
        target = folder / f"{number:03d}_{unit.source.stem}.o"
        _compile(compiler, unit, target, cache)
        return target

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        objects = list(pool.map(one, enumerate(units)))
    _trim(cache)
    return objects


def _key(compiler: Compiler, unit: Unit) -> str | None:
    """None: not cacheable (an assembly file may include what the key cannot see)."""
    if unit.source.suffix != ".c":
        return None
    digest = hashlib.sha256()
    headers = [headers_digest(folder) for folder in (unit.source.parent, *unit.includes)]
    for part in (compiler.identity, *compiler.flags, "", *unit.flags, "", *headers, unit.source.name):
        digest.update(part.encode() + b"\0")
    digest.update(unit.source.read_bytes())
    return digest.hexdigest()


def _compile(compiler: Compiler, unit: Unit, target: Path, cache: Path) -> None:
    key = _key(compiler, unit)
    kept = cache / f"{key}.o" if key else None
    if kept is not None:
        try:
            target.write_bytes(kept.read_bytes())
            os.utime(kept)
            return
        except OSError:
            pass
    includes = [f"-I{folder}" for folder in unit.includes]
    # the source is named relative to its own folder: no path of this machine gets into the object
    command = [
        compiler.cc,
        *compiler.flags,
        *unit.flags,
        *includes,
        "-c",
        unit.source.name,
        "-o",
        str(target),
    ]
    run(command, f"compiling {unit.source.name}", cwd=unit.source.parent)
    if kept is not None:
        _keep(target, kept)


def _keep(target: Path, kept: Path) -> None:
    """Puts an object into the cache; a full or read-only disk is no error."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
            file.write(target.read_bytes())
        Path(file.name).replace(kept)
    except OSError:
        pass


def _trim(cache: Path) -> None:
    """Removes the oldest objects once the cache has grown over its size."""
    try:
        entries = [(entry.stat(), entry) for entry in cache.glob("*.o")]
    except OSError:
        return
    total = sum(stat.st_size for stat, _ in entries)
    if total <= CACHE_BYTES:
        return
    for stat, entry in sorted(entries, key=lambda pair: pair[0].st_mtime):
        entry.unlink(missing_ok=True)
        total -= stat.st_size
        if total <= CACHE_BYTES * 8 // 10:
            return


def run(command: Sequence[str], what: str, cwd: Path | None = None) -> str:
    """Runs a tool; its output, or a ToolError with the end of what it said."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ToolError(f"{what}: cannot start {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-20:])
        raise ToolError(f"{what} failed ({Path(command[0]).name} exit {done.returncode}):\n{said}")
    return done.stdout
