"""Locks between processes, on systems that have them; the states of processes; locked temporary folders."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FILE = os.O_RDWR | os.O_CREAT | _NO_LINK  # a file, which is made if it is missing
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
REAL_FOLDER = FOLDER | _NO_LINK  # a folder, not a link to one
PREFIX = "buildtool-run-"  # temporary folders have names with this prefix
YOUNG_SECONDS = 10.0  # a younger temporary folder may belong to a process that has not locked it yet


@functools.cache
def has_locks() -> bool:
    """Whether the system has locks of files; Windows has none of this kind."""
    try:
        import fcntl  # noqa: F401 - many commands lock nothing
    except ImportError:
        return False
    return True


def lock(handle: int, *, wait: bool, shared: bool = False) -> bool:
    """Locks an open file, whose descriptor is `handle`. If `wait` is False and another process has the lock,
    it returns False. Raises OSError on a system without locks.
    """
    if not has_locks():
        raise OSError("this system has no locks of files")
    import fcntl

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def hold_lock(path: Path | str, *, wait: bool, flags: int = FILE) -> Iterator[int | None]:
    """A context that holds the lock of a file, and yields the open file's descriptor.

    Yields None if another process has the lock and `wait` is False, and on a system without locks. Raises
    OSError if the file cannot be opened with `flags`.
    """
    if not has_locks():
        yield None
        return
    handle = os.open(path, flags, 0o600)
    try:
        is_mine = False
        with contextlib.suppress(OSError):
            is_mine = lock(handle, wait=wait)
        yield handle if is_mine else None
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a process holds a file's lock. The check makes no other process wait."""
    if not has_locks():
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
    """Returns the parent's PID and the start time of a process; (0, "") if it has ended, and on systems other
    than Linux. A PID alone may have been reused; a PID and a start time identify one process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return (0, "") if fields[0] in "ZX" else (int(fields[1]), fields[19])
    except (OSError, ValueError, IndexError):
        return 0, ""


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A context with a new temporary folder, which is locked while it is in use. At the start it removes such
    folders of commands that were killed.
    """
    import shutil  # clients need neither
    import tempfile

    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with (
                    contextlib.suppress(OSError),
                    hold_lock(entry.path, wait=False, flags=REAL_FOLDER) as handle,
                ):
                    info = os.fstat(handle) if handle is not None else None
                    if info and info.st_uid == os.getuid() and time.time() - info.st_mtime > YOUNG_SECONDS:
                        shutil.rmtree(entry.path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a folder without a lock is not removed after a crash
            stack.enter_context(hold_lock(name, wait=True, flags=REAL_FOLDER))
        yield name
