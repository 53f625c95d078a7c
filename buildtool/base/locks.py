"""Locks of files and folders among processes, where the system has them."""

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


@contextlib.contextmanager
def locked(path: Path | str, *, wait: bool, flags: int = FILE) -> Iterator[int | None]:
    """Holds a lock; None where another process has it and nobody is to `wait`, or there are no locks.

    `flags`: how the file is opened, which may raise OSError.
    """
    if not HAS_LOCKS:
        yield None
        return
    import fcntl  # for who locks: a command may need none

    handle = os.open(path, flags, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield handle
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds a file's lock; whoever asks holds none that others would wait for."""
    if not HAS_LOCKS:
        return False
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False
