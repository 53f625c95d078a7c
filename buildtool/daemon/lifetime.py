"""How a daemon begins and ends (lock, socket, record), and how a daemon of newer code replaces it."""

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
from buildtool.base.code_digest import code_digest, home, interpreter
from buildtool.base.folders import active_cache_folder
from buildtool.base.locks import hold_lock, process
from buildtool.base.outfiles import write_whole
from buildtool.client.daemon import Link, reach
from buildtool.client.endpoint import AbsentError, Endpoint, every

MOST_LOG_BYTES = 1 << 20  # a longer log is moved to `old_log`
MOST_REQUESTS = 4  # requests that the next daemon prepares; few, since code is saved often
END_SECONDS = 30.0  # a daemon of older code waits this long to send the new one these requests
_ATTEMPTS = 5  # on a busy machine a daemon may be silent for longer than a client waits
_BACKLOG = 256  # clients that may wait to be accepted
_KILLED = "it ended without a message, as a killed process does"


class Life:
    """A running daemon's files: its lock, which it holds until it ends, its socket and its record.

    - `at`: the daemon's endpoint.
    - `code`: the digest of its code.
    - `last_end`: why the daemon before it ended.
    """

    def __init__(self, at: Endpoint, lock: int, code: str) -> None:
        self.at, self.code, self._lock = at, code, lock
        self.listener = socket.socket(socket.AF_UNIX)
        at.address.unlink(missing_ok=True)  # we hold the lock, so a socket there is stale
        old_mask = os.umask(0o177)
        try:
            self.listener.bind(str(at.address))
        finally:
            os.umask(old_mask)
        self.listener.listen(_BACKLOG)
        self.listener.setblocking(False)
        self._node, self._lock_node = _identity(at.address), _identity(lock)
        self._cache = active_cache_folder()
        self._cache_node: tuple[int, int] | None = None
        self._began = round(time.time(), 3)
        record = at.read_record()
        self.last_end = str(record.get("ended") or (_KILLED if record else ""))
        self.note()

    def note(self, ended: str = "") -> None:
        """Writes the record. `ended` is the reason why this daemon ends."""
        record: dict[str, Any] = {
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
            write_whole(self.at.record, (json.dumps(record, indent=1) + "\n").encode())

    def what_is_gone(self) -> str:
        """Returns what this daemon needs and has lost, in words; "" if nothing is missing.

        Without its socket and lock no client finds it. Without the folder of its cache no client needs it.
        """
        if _identity(self.at.address) != self._node or _identity(self.at.lock) != self._lock_node:
            return "its socket or its folder"
        return "" if self.has_cache() else "its cache's folder"

    def leave(self, why: str) -> None:
        """Removes the socket, so that the next client starts another daemon. `why` goes into the record."""
        if _identity(self.at.address) == self._node:
            with contextlib.suppress(OSError):
                self.at.address.unlink()
        if _identity(self.at.lock) == self._lock_node:  # otherwise the record belongs to another daemon
            self.note(why)
        self.listener.close()

    def has_cache(self) -> bool:
        """Returns whether the folder of the cache is still the one that this method has seen before.

        The folder is created with the first cache entry. Call this whenever an entry may have been written:
        otherwise the daemon would not notice later that the folder is gone.
        """
        if self._cache is None:
            return True
        try:
            there = self._cache.stat()
        except (FileNotFoundError, NotADirectoryError):
            return self._cache_node is None
        except OSError:  # the disk may be away for a moment
            return True
        node = there.st_dev, there.st_ino
        self._cache_node = self._cache_node or node
        return self._cache_node == node


def _identity(path: Path | int) -> tuple[int, int, int] | None:
    """Returns numbers that no later file with the same name will have, even if it gets the same inode.

    None if the file cannot be read.
    """
    try:
        there = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return there.st_dev, there.st_ino, there.st_mtime_ns


def shorten_log(at: Endpoint) -> None:
    """Starts a new log if the present one is long."""
    with contextlib.suppress(OSError):
        if at.log.stat().st_size > MOST_LOG_BYTES:
            at.log.replace(at.old_log)


def retire_others(mine: Endpoint, code: str) -> None:
    """Tells daemons of this installation that run other code to end, and removes the files of ended daemons.

    `mine` is this daemon's endpoint, and `code` the digest of its code.
    """
    for other in every():
        record = other.read_record()
        same = record.get("home") == home() and record.get("python") == interpreter()
        if other.name == mine.name or not same or record.get("code") == code:
            continue
        if not other.is_alive():
            # unless a client is about to start it
            with contextlib.suppress(OSError), hold_lock(other.starting, wait=False) as lock:
                if lock is not None and not other.is_alive():
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
    """Starts the next daemon after an edit of buildtool or a plugin, and sends it requests to prepare.

    The next daemon learns how long no client has sent a request. After a further edit, it starts a daemon
    itself only if a client has sent it a request meanwhile. Errors here do no harm: the next client would
    start the new daemon, which asks the old one to end.

    - `code`: the digest of this daemon's code.
    - `wake`: a function that another thread calls when `is_stale` becomes true.
    - `is_asked`: whether a client has sent a request since the last edit.
    - `is_stale`: the code has changed, and no client has sent a request.
    """

    def __init__(self, code: str, wake: Callable[[], None]) -> None:
        self.is_asked = self.is_stale = False
        self._code, self._wake = code, wake
        self._at_work: list[threading.Thread] = []

    def begin(self, requests: Requests, told: Mapping[str, float], after_seconds: float = 0.0) -> None:
        """Starts a daemon of the code on disk after `after_seconds`, if that code is new, in another thread.

        Sends it the requests and `told`: the seconds since the last request, and the CPU seconds spent on
        preparations.
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
        """Waits until the next daemon has its requests, for END_SECONDS at most."""
        for thread in self._at_work:
            thread.join(END_SECONDS)
