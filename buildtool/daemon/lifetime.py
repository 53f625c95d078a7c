"""How a daemon begins, ends and is succeeded: lock, socket, record, and the daemon of newer code."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from buildtool import __version__
from buildtool.base.folders import kept_folder
from buildtool.base.identity import code_digest, home, interpreter
from buildtool.base.locks import hold_lock, process
from buildtool.base.outfiles import write_whole
from buildtool.client.daemon import Link, reach
from buildtool.client.endpoint import AbsentError, Endpoint, every

MOST_LOG_BYTES = 1 << 20  # then the log begins anew, the old one is kept beside it
MOST_REQUESTS = 4  # that the next daemon is given: code is saved often
END_SECONDS = 30.0  # that a daemon of older code stays to tell the new one what to prepare
_ATTEMPTS = 5  # a daemon on a busy machine may be silent for longer than a client waits
_BACKLOG = 256  # clients that may wait to be let in
_KILLED = "it ended without a word, as a killed process does"


class Life:
    """A daemon's hold on its endpoint. `lock` is held for as long as it lives; `code`: digest of its code."""

    def __init__(self, at: Endpoint, lock: int, code: str) -> None:
        self.at, self.code, self._lock = at, code, lock
        self.listener = socket.socket(socket.AF_UNIX)
        at.address.unlink(missing_ok=True)  # the lock is held, so what lies there is stale
        before = os.umask(0o177)
        try:
            self.listener.bind(str(at.address))
        finally:
            os.umask(before)
        self.listener.listen(_BACKLOG)
        self.listener.setblocking(False)
        self._node, self._lock_node = _identity(at.address), _identity(lock)
        self._cache = kept_folder()
        self._cache_node: tuple[int, int] | None = None
        self._began = round(time.time(), 3)
        said = at.said()
        self.last_end = str(said.get("ended") or (_KILLED if said else ""))
        self.note()

    def note(self, ended: str = "") -> None:
        """Writes the record. `ended`: why this daemon ends."""
        said: dict[str, Any] = {
            "version": __version__,
            "pid": os.getpid(),
            "start": process(os.getpid())[1],
            "python": interpreter(),
            "home": home(),
            "code": self.code,
            "began": self._began,
            "ended": ended,
        }
        with contextlib.suppress(OSError):
            write_whole(self.at.record, (json.dumps(said, indent=1) + "\n").encode())

    def what_is_gone(self) -> str:
        """The thing that this daemon needs and that is gone, in words; "" where everything is there.
        Without its socket and lock no client finds it; without its cache's folder no client needs it.
        """
        if _identity(self.at.address) != self._node or _identity(self.at.lock) != self._lock_node:
            return "its socket or its folder"
        return "" if self.has_cache() else "its cache's folder"

    def leave(self, why: str) -> None:
        """Removes the socket, so that the next client starts another daemon."""
        if _identity(self.at.address) == self._node:
            with contextlib.suppress(OSError):
                self.at.address.unlink()
        if _identity(self.at.lock) == self._lock_node:  # else the record is another one's
            self.note(why)
        self.listener.close()

    def has_cache(self) -> bool:
        """Whether the cache's folder is still the same one. The first entry makes the folder.
        Call this whenever an entry may have been written: a folder that was never seen is not missed.
        """
        if self._cache is None:
            return True
        try:
            there = self._cache.stat()
        except (FileNotFoundError, NotADirectoryError):
            return self._cache_node is None
        except OSError:  # a disk that is away for a moment
            return True
        node = there.st_dev, there.st_ino
        self._cache_node = self._cache_node or node
        return self._cache_node == node


def _identity(path: Path | int) -> tuple[int, int, int] | None:
    """Identifies a file among later ones of its name, even with the same inode; None: it cannot be read."""
    try:
        there = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return there.st_dev, there.st_ino, there.st_mtime_ns


def shorten_log(at: Endpoint) -> None:
    """Starts a new log where the present one has become long."""
    with contextlib.suppress(OSError):
        if at.log.stat().st_size > MOST_LOG_BYTES:
            at.log.replace(at.old_log)


def retire_others(mine: Endpoint, code: str) -> None:
    """Tells this installation's daemons of older code to end; removes the files of those that have ended."""
    for other in every():
        said = other.said()
        same = said.get("home") == home() and said.get("python") == interpreter()
        if other.name == mine.name or not same or said.get("code") == code:
            continue
        if not other.is_alive():
            # unless somebody is about to start it
            with contextlib.suppress(OSError), hold_lock(other.starting, wait=False) as mine_too:
                if mine_too is not None and not other.is_alive():
                    for path in (other.record, other.log, other.old_log, other.lock, other.starting):
                        path.unlink(missing_ok=True)
            continue
        connection = other.connect(1.0)
        if connection is not None:
            with contextlib.suppress(AbsentError):
                Link(connection).greet().control("retire")
            connection.close()


# ---- the next daemon ----------------------------------------------------------------------------------

Requests = Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]


class Succession:
    """Starts a daemon of the new code when buildtool or a plugin was edited, and has it prepare requests.

    It takes over how long nobody has asked, and has no successor of its own before somebody does. A client
    would start it anyway, and the new daemon asks the old one to end; so whatever fails here is left to them.
    `code`: this daemon's own; `wake` is called, from another thread, when `is_stale`.
    `is_asked`: a request came since the last succession; `is_stale`: the code is another one, and none came.
    """

    def __init__(self, code: str, wake: Callable[[], None]) -> None:
        self.is_asked = self.is_stale = False
        self._code, self._wake = code, wake
        self._at_work: list[threading.Thread] = []

    def begin(self, requests: Requests, told: Mapping[str, float], after_seconds: float = 0.0) -> None:
        """Starts, after `after_seconds`, the daemon of the code on disk, if it is new, and gives it requests.
        `told`: seconds that nobody has asked for, and CPU seconds spent on preparing meanwhile.
        """
        was_asked = self.is_asked

        def run() -> None:
            time.sleep(after_seconds)
            for _ in range(_ATTEMPTS):
                with contextlib.suppress(AbsentError, OSError):
                    if code_digest() == self._code:
                        return
                    if not was_asked:
                        self.is_stale = True
                        self._wake()
                        return
                    with contextlib.closing(reach(start=True)) as link:
                        link.prepare(requests[-MOST_REQUESTS:], told)
                    self.is_asked = False
                    return

        self._at_work.append(threading.Thread(target=run, daemon=True))
        self._at_work[-1].start()

    def wait(self) -> None:
        """Waits until the next daemon has its requests, END_SECONDS at most; it may end this one before."""
        for thread in self._at_work:
            thread.join(END_SECONDS)
