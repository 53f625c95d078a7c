"""Locks among processes, where the system has them; processes; temporary folders, locked while in use."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

HAS_LOCKS = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
FILE = os.O_RDWR | os.O_CREAT | _NO_LINK  # it is made where it is not there
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
REAL_FOLDER = FOLDER | _NO_LINK  # no link to one
PREFIX = "buildtool-run-"  # of temporary folders
YOUNG_SECONDS = 10.0  # of such a folder that is made and may not be locked yet


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
def hold_lock(path: Path | str, *, wait: bool, flags: int = FILE) -> Iterator[int | None]:
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
    """Whether a process holds a file's lock. The check itself makes nobody wait."""
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
    """Parent and start of a process on Linux, whose number may be reused; (0, "") if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return (0, "") if fields[0] in "ZX" else (int(fields[1]), fields[19])
    except (OSError, ValueError, IndexError):
        return 0, ""


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A temporary folder, locked while it is used. First removes the folders that killed commands left."""
    import shutil  # for who needs such a folder: a client does not
    import tempfile

    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with (
                    contextlib.suppress(OSError),
                    hold_lock(entry.path, wait=False, flags=REAL_FOLDER) as held,
                ):
                    left = os.fstat(held) if held is not None else None
                    if left and left.st_uid == os.getuid() and time.time() - left.st_mtime > YOUNG_SECONDS:
                        shutil.rmtree(entry.path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without a lock it is never cleared
            stack.enter_context(hold_lock(name, wait=True, flags=REAL_FOLDER))
        yield name
