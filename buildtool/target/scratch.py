"""Temporary folders, and those that killed commands have left."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator

from buildtool.base.locks import REAL_FOLDER, locked

PREFIX = "buildtool-run-"
YOUNG_SECONDS = 10.0  # as old may a folder be that is made and not yet locked


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder as tempfile.TemporaryDirectory makes it, locked while it is used.

    Before that, folders whose lock nobody has any more are removed: their commands were killed.
    """
    _clear(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # without a lock it is never cleared
            held.enter_context(locked(name, wait=True, flags=REAL_FOLDER))
        yield name


def _clear(folder: str) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    """Removes a folder of this user's that is no link, is not young, and is locked by nobody; OSError."""
    with locked(path, wait=False, flags=REAL_FOLDER) as number:
        found = os.fstat(number) if number is not None else None
        if found and found.st_uid == os.getuid() and time.time() - found.st_mtime > YOUNG_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
