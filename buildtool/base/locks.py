"""Locks of files and folders among processes, where the system has them, and which processes there are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

HAS_LOCKS = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FILE = os.O_RDWR | os.O_CREAT | _NO_LINK  # it is made where it is not there
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
REAL_FOLDER = FOLDER | _NO_LINK  # no link to one


def lock(handle: int, *, wait: bool, shared: bool = False) -> bool:
    """Locks an open file; False where another process has the lock. OSError where it has no locks."""
    import fcntl  # for who locks: a command may need none

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(path: Path | str, *, wait: bool, flags: int = FILE) -> Iterator[int | None]:
    """Holds a lock; None where another process has it and nobody is to `wait`, or there are no locks.

    `flags`: how the file is opened, which may raise OSError.
    """
    if not HAS_LOCKS:
        yield None
        return
    handle = os.open(path, flags, 0o600)
    try:
        mine = False
        with contextlib.suppress(OSError):
            mine = lock(handle, wait=wait)
        yield handle if mine else None
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds a file's lock; whoever asks holds none that others would wait for."""
    if not HAS_LOCKS:
        return False
    try:
        handle = os.open(path, os.O_RDWR)
        try:
            return not lock(handle, wait=False, shared=True)
        finally:
            os.close(handle)
    except OSError:
        return False


def process(pid: int) -> tuple[int, str]:
    """Parent and start of a process, as Linux counts it: its number alone may be another's by now.

    (0, "") elsewhere, and for one that has ended, also if its parent has not waited for it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return (0, "") if fields[0] in "ZX" else (int(fields[1]), fields[19])
    except (OSError, ValueError, IndexError):
        return 0, ""
