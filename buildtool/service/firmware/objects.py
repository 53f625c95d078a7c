"""Compiles C and assembly files to objects, through a per-user cache keyed by content.

A cache entry is the SHA-256 of an object and the object. The cache never makes a build fail: an entry that
is damaged is compiled anew, a folder that cannot be read or written is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from buildtool.errors import ToolError
from buildtool.service.firmware.includes import reads

CACHE_BYTES = 256 << 20  # above this the oldest objects go
_DIGEST_BYTES = 32
_STALE_SECONDS = 3600  # a half-written entry this old belongs to nobody any more
_TRIM_SECONDS = 60  # between two looks at the whole cache, which may hold ten thousand objects
_TRIMMED = "trimmed"  # the empty file whose time says when that was
_LINES_SHOWN = 20  # of what a tool said
# What objects and images begin with: ELF, LLVM's bitcode (-flto), Mach-O.
_MADE = (b"\x7fELF", b"BC\xc0\xde", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")


@dataclass(frozen=True)
class Unit:
    """A file to compile: where it is, the folders it includes from, and its own flags."""

    source: Path
    includes: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiler:
    """A compiler with the flags that every unit gets; `identity` is its name and version.

    `renames`: flags that give folders of this machine other names in debug information (FLAG=FOLDER=NAME),
    so that objects are the same wherever these folders are.
    """

    cc: str
    identity: str
    flags: tuple[str, ...]
    renames: tuple[str, ...] = ()

    def called(self, folder: Path) -> str:
        """What debug information calls a folder; "" where it has no name but its own."""
        pairs = (rename.partition("=")[2].rpartition("=")[::2] for rename in self.renames)
        found = [(Path(place), name) for place, name in pairs if folder.is_relative_to(place)]
        place, name = max(found, key=lambda pair: len(pair[0].parts), default=(folder, ""))
        return f"{name}/{folder.relative_to(place).as_posix()}" if name else ""


def cache_folder() -> Path | None:
    """$XDG_CACHE_HOME/buildtool/objects, or ~/.cache/buildtool/objects; None without a home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "buildtool" / "objects"
    except RuntimeError:
        return None


def compile_all(
    compiler: Compiler, units: Sequence[Unit], folder: Path, tell: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Objects of `units` in `folder`, in order; raises ToolError with the compiler's words.

    `tell` hears how many are done.
    """
    cache = cache_folder()
    folder = folder.absolute()  # compilers run in the folders of their sources

    def one(numbered: tuple[int, Unit]) -> tuple[Path, bool]:
        number, unit = numbered
        target = folder / f"{number:03d}_{unit.source.stem}.o"
        return target, _compile(compiler, unit, target, cache)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        made = []
        for done in pool.map(one, enumerate(units)):
            made.append(done)
            tell(f"compiled {len(made)} of {len(units)} files")
    if cache is not None and any(kept for _, kept in made) and _is_time(cache):
        _trim(cache)
    return [target for target, _ in made]


def _include_folders(compiler: Compiler, unit: Unit) -> Iterator[Path]:
    """Where the unit's headers may come from, but for the compiler's own and the source's folder."""
    yield from unit.includes
    flags = (*compiler.flags, *unit.flags)
    for flag, after in itertools.zip_longest(flags, flags[1:], fillvalue=""):
        if flag in ("-I", "-isystem", "-iquote", "-idirafter"):
            yield Path(after)
        elif flag.startswith("-I"):
            yield Path(flag[2:])


def _key(compiler: Compiler, unit: Unit) -> str | None:
    """Stands for all that the object is made of; None: not cacheable (it reads what cannot be seen)."""
    found = reads(unit.source, list(_include_folders(compiler, unit)))
    if found is None:
        return None
    flags = [flag for flag in (*compiler.flags, "", *unit.flags) if found.asks_for(flag)]
    digest = hashlib.sha256()
    folders = [unit.source.parent, *unit.includes] if compiler.renames else []
    named = [compiler.called(folder.resolve()) or str(folder) for folder in folders]
    for part in (compiler.identity, *flags, "", *itertools.chain(*found.files), *named):
        digest.update(part.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def _compile(compiler: Compiler, unit: Unit, target: Path, cache: Path | None) -> bool:
    """Makes the object, or takes it from the cache; whether the cache has grown."""
    key = _key(compiler, unit)
    kept = cache / f"{key}.o" if key and cache is not None else None
    known = _read(kept) if kept is not None else None
    if known is not None:
        target.write_bytes(known)
        return False
    includes = [f"-I{folder.absolute()}" for folder in unit.includes]
    # the source is named relative to its own folder: no path of this machine gets into the object
    command = [
        compiler.cc,
        *compiler.flags,
        *unit.flags,
        *compiler.renames,
        *includes,
        "-c",
        unit.source.name,
        "-o",
        str(target),
    ]
    said = run(command, f"compiling {unit.source.name}", cwd=unit.source.parent)
    refuse_unless_made(target, f"compiling {unit.source.name}", compiler.cc, said)
    if kept is not None:
        _keep(target.read_bytes(), kept)
    return kept is not None


def _read(kept: Path) -> bytes | None:
    """The object of an entry; None if there is none, or a damaged one."""
    try:
        entry = kept.read_bytes()
    except OSError:
        return None
    digest, data = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    if hashlib.sha256(data).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(kept)  # used: trimmed last
    return data


def _keep(data: bytes, kept: Path) -> None:
    """Puts an object into the cache, whole or not at all."""
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=kept.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(data).digest() + data)
            Path(name).replace(kept)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _is_time(cache: Path) -> bool:
    """Whether the cache was last looked through long ago; it is now, if so."""
    mark = cache / _TRIMMED
    try:
        with contextlib.suppress(FileNotFoundError):
            if 0 <= time.time() - mark.stat().st_mtime < _TRIM_SECONDS:
                return False
        mark.touch()
    except OSError:
        return False
    return True


def _trim(cache: Path) -> None:
    """Removes the oldest objects once the cache has grown over its size, and what was left half-written."""
    with contextlib.suppress(OSError):
        entries: list[tuple[int, str, int]] = []
        with os.scandir(cache) as found:
            for entry in found:
                stat = entry.stat()
                if entry.name.endswith(".o"):
                    entries.append((stat.st_mtime_ns, entry.path, stat.st_size))
                elif entry.name.endswith(".part") and time.time() - stat.st_mtime > _STALE_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)
        total = sum(size for _, _, size in entries)
        if total <= CACHE_BYTES:
            return
        for _, path, size in sorted(entries):
            Path(path).unlink(missing_ok=True)
            total -= size
            if total <= CACHE_BYTES * 8 // 10:
                return


def refuse_unless_made(target: Path, what: str, program: str, said: str) -> None:
    """ToolError where a compiler or linker that reported no failure made no object or image at `target`."""
    try:
        with target.open("rb") as file:
            if file.read(4) in _MADE:
                return
    except FileNotFoundError:
        pass
    lines = said.strip().splitlines()[:_LINES_SHOWN]
    text = f"{what} failed: {Path(program).name} reported success, but made no object file"
    raise ToolError(
        "\n".join([f"{text}; it printed:" if lines else text, *lines]),
        hint="check the compiler, and core.cflags of the board's file: no flag may make it print or stop",
    )


Explain = Callable[[str], ToolError | None]


def run(command: Sequence[str], what: str, cwd: Path | None = None, explain: Explain | None = None) -> str:
    """Runs a tool; its output, or a ToolError with the beginning of what it said.

    `explain` may know a better error for all that the tool said.
    """
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in an argument
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"{what}: cannot start {command[0]}: {reason}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        better = explain(said) if explain is not None else None
        if better is not None:
            raise better
        lines = said.splitlines()
        shown = lines[:_LINES_SHOWN] + (["..."] if len(lines) > _LINES_SHOWN else [])
        how = f"exit {done.returncode}"
        if done.returncode < 0:
            how = f"signal {-done.returncode}, {signal.strsignal(-done.returncode)}"
        text = f"{what} failed ({Path(command[0]).name} {how})"
        raise ToolError("\n".join([f"{text}:" if shown else text, *shown]))
    return done.stdout
