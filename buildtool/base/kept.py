"""Small files in the user's cache folder that spare a build what an earlier one found out.

A file that is missing, damaged or not the user's own is taken for one that was never written, and what
cannot be written is not kept: neither ever fails a build. A file is its magic, the SHA-256 of what
follows, and the content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

_MAGIC = b"BTKEPT1\n"
_DIGEST_BYTES = 32
MOST_BYTES = 1 << 25  # of a file; a larger one is not read
MOST_FILES = 256  # in a folder; then the older half is removed


def folder(kind: str) -> Path | None:
    """$XDG_CACHE_HOME/buildtool/`kind`, or the one below ~/.cache; None where there is no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "buildtool" / kind
    except RuntimeError:
        return None


def read(kind: str, name: str) -> bytes | None:
    """What was kept under `name`; None where there is nothing that can be believed."""
    place = folder(kind)
    if place is None:
        return None
    try:
        if not _is_ours(place.stat()):
            return None
        no_link_no_wait = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(place / name, os.O_RDONLY | no_link_no_wait)
        with os.fdopen(handle, "rb") as file:
            there = os.fstat(handle)
            if not (_is_ours(there) and stat.S_ISREG(there.st_mode)) or there.st_size > MOST_BYTES:
                return None
            data = file.read(MOST_BYTES)
    except (OSError, ValueError):
        return None
    digest, content = data[len(_MAGIC) :][:_DIGEST_BYTES], data[len(_MAGIC) + _DIGEST_BYTES :]
    if not data.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
        return None
    return content


def write(kind: str, name: str, content: bytes) -> None:
    """Keeps `content` under `name`, whole or not at all."""
    place = folder(kind)
    if place is None or len(content) > MOST_BYTES - 100:
        return
    with contextlib.suppress(OSError, ValueError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(place.stat()):
            return
        _make_room(place)
        import tempfile  # for who writes; those who read pay nothing for it

        handle, part = tempfile.mkstemp(dir=place, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            Path(part).replace(place / name)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(part).unlink()
            raise


def _is_ours(there: os.stat_result) -> bool:
    """Whether nobody but the user can have written it."""
    if not hasattr(os, "geteuid"):
        return True
    return there.st_uid == os.geteuid() and not there.st_mode & 0o022


def _make_room(place: Path) -> None:
    """Removes the files of a full folder that were written first."""
    files = list(place.iterdir())
    if len(files) < MOST_FILES:
        return
    times = []
    for path in files:
        with contextlib.suppress(OSError):
            times.append((path.lstat().st_mtime_ns, path))
    for _, path in sorted(times)[: MOST_FILES // 2]:
        with contextlib.suppress(OSError):
            path.unlink()
