"""How a daemon begins and ends: its lock, its socket, and the record of what it is and why it ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import Any

from buildtool import __version__
from buildtool.base.folders import kept_folder
from buildtool.base.identity import home, interpreter
from buildtool.base.locks import locked
from buildtool.base.outfiles import write_whole
from buildtool.client.daemon import Link
from buildtool.client.endpoint import AbsentError, Endpoint, every, process_start

MOST_LOG_BYTES = 1 << 20  # then the log begins anew, the old one is kept beside it
_BACKLOG = 256  # clients that may wait to be let in
_KILLED = "it ended without a word, as a killed process does"


class Life:
    """A daemon's hold on its endpoint. `lock` is held for as long as it lives; `code`: digest of its code."""

    def __init__(self, at: Endpoint, lock: int, code: str) -> None:
        self.at, self.code, self._lock = at, code, lock
        self.listener = _listening(at)
        self._node = _identity(os.stat(at.address))  # noqa: PTH116
        self._cache = kept_folder()
        self._cache_node: tuple[int, int] | None = None
        self.began = time.time()
        said = at.said()
        self.last_end = str(said.get("ended") or (_KILLED if said else ""))
        self.note()

    def note(self, ended: str = "") -> None:
        """Writes the record. `ended`: why this daemon ends."""
        said: dict[str, Any] = {
            "version": __version__,
            "pid": os.getpid(),
            "start": process_start(os.getpid()),
            "python": interpreter(),
            "home": home(),
            "code": self.code,
            "began": round(self.began, 3),
            "ended": ended,
        }
        with contextlib.suppress(OSError):
            write_whole(self.at.record, (json.dumps(said, indent=1) + "\n").encode())

    def what_is_gone(self) -> str:
        """What this daemon cannot be without, in words; "" where all is there.

        Nobody finds it any more without its socket, its lock and their folder. Nobody needs it any more
        once its cache's folder was removed, as those of tests and of builds in a box of their own are.
        """
        if not (self._has_socket() and self._has_lock()):
            return "its socket or its folder"
        return "" if self.has_cache() else "its cache's folder"

    def leave(self, why: str) -> None:
        """Takes the endpoint away, so that the next client starts another daemon."""
        if self._has_socket():
            with contextlib.suppress(OSError):
                self.at.address.unlink()
        if self._has_lock():  # else the record is another one's
            self.note(why)
        self.listener.close()

    def has_cache(self) -> bool:
        """Whether the cache's folder is the one that there was; it is made with the first entry.

        It has to be asked when an entry may have been written: a folder that nobody saw is not missed.
        """
        if self._cache is None:
            return True
        try:
            found = os.stat(self._cache)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return self._cache_node is None
        except OSError:  # a disk that is away for a moment
            return True
        node = found.st_dev, found.st_ino
        self._cache_node = self._cache_node or node
        return self._cache_node == node

    def _has_socket(self) -> bool:
        try:
            return _identity(os.stat(self.at.address)) == self._node  # noqa: PTH116
        except OSError:
            return False

    def _has_lock(self) -> bool:
        try:
            return _identity(os.stat(self.at.lock)) == _identity(os.fstat(self._lock))  # noqa: PTH116
        except OSError:
            return False


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    """Tells a file from another one that has its name, and maybe its node, since it was removed."""
    return found.st_dev, found.st_ino, found.st_mtime_ns


def shorten_log(at: Endpoint) -> None:
    """Begins a log anew that has become long."""
    with contextlib.suppress(OSError):
        if at.log.stat().st_size > MOST_LOG_BYTES:
            at.log.replace(at.old_log)


def retire_others(mine: Endpoint, code: str) -> None:
    """Daemons of older code of this same installation end when they have answered who waits.

    What those left that have ended is removed.
    """
    for other in every():
        said = other.said()
        same = said.get("home") == home() and said.get("python") == interpreter()
        if other.name == mine.name or not same or said.get("code") == code:
            continue
        if not other.is_alive():
            _remove_traces(other)
            continue
        connection = other.connect(1.0)
        if connection is not None:
            with contextlib.suppress(AbsentError):
                Link(connection).greet().control("retire")
            connection.close()


def _remove_traces(of: Endpoint) -> None:
    """Removes the files of a daemon that has ended, unless somebody is about to start it."""
    with contextlib.suppress(OSError), locked(of.starting, wait=False) as mine:
        if mine is not None and not of.is_alive():
            for path in (of.record, of.log, of.old_log, of.lock, of.starting):
                path.unlink(missing_ok=True)


def _listening(at: Endpoint) -> socket.socket:
    """A socket at the endpoint; the lock is held, so what lies there is stale."""
    with contextlib.suppress(FileNotFoundError):
        at.address.unlink()
    found = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        found.bind(str(at.address))
    finally:
        os.umask(before)
    found.listen(_BACKLOG)
    found.setblocking(False)
    return found
