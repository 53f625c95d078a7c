"""How a daemon begins and ends: its lock, its socket, and the record of what it is and why it ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from typing import Any

from buildtool import __version__
from buildtool.client.endpoint import Endpoint, process_start
from buildtool.identity import home

MOST_LOG_BYTES = 1 << 20  # then the log begins anew, the old one is kept beside it


class Life:
    """A daemon's hold on its endpoint. `lock` is held for as long as it lives."""

    def __init__(self, at: Endpoint, lock: int) -> None:
        self.at, self._lock = at, lock
        self.listener = _listening(at)
        self._node = os.stat(at.address).st_ino  # noqa: PTH116
        self.began = time.time()
        self.last_end = str(at.said().get("ended") or "")
        self.note()

    def note(self, ended: str = "") -> None:
        """Writes the record. `ended`: why this daemon ends."""
        said: dict[str, Any] = {
            "version": __version__,
            "pid": os.getpid(),
            "start": process_start(os.getpid()),
            "python": sys.executable,
            "home": home(),
            "began": round(self.began, 3),
            "ended": ended,
        }
        part = self.at.record.with_suffix(f".{os.getpid()}.part")
        with contextlib.suppress(OSError):
            part.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
            part.replace(self.at.record)

    def is_cut_off(self) -> bool:
        """Whether nobody can find this daemon any more: its socket or its folder is gone."""
        try:
            return os.stat(self.at.address).st_ino != self._node or not self.at.lock.exists()  # noqa: PTH116
        except OSError:
            return True

    def leave(self, why: str) -> None:
        """Takes the endpoint away, so that the next client starts another daemon."""
        if not self.is_cut_off():
            with contextlib.suppress(OSError):
                self.at.address.unlink()
        self.listener.close()
        self.note(why)


def shorten_log(at: Endpoint) -> None:
    """Begins a log anew that has become long."""
    with contextlib.suppress(OSError):
        if at.log.stat().st_size > MOST_LOG_BYTES:
            at.log.replace(at.log.with_suffix(".log.old"))


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
    found.listen(64)
    found.setblocking(False)
    return found
