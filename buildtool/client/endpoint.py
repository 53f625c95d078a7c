"""Where this user's daemon is: its name, its files, and whether it is alive.

A daemon's name stands for what its answers depend on beside requests: protocol and version, the Python that
runs it, and buildtool's own code. It has no part of a board, a network, or the folder that a build runs in,
so that one daemon serves them all; and whoever has edited buildtool gets another one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any, NamedTuple

from buildtool import __version__
from buildtool.base import wire
from buildtool.base.errors import MachineError
from buildtool.base.folders import cache_folder, kept_levels, private, short_name, socket_path, state_folder
from buildtool.base.identity import code_digest, home, interpreter
from buildtool.base.locks import is_locked, process

CONNECT_SECONDS = 1.0


class AbsentError(Exception):
    """There is no daemon that answers; `args[0]` says why."""


class Endpoint(NamedTuple):
    """The files of the daemon called `name` in `folder`."""

    name: str
    folder: Path

    @property
    def address(self) -> Path:
        """Its socket; the folder may be another one, where the path would be too long."""
        return socket_path(self.name)

    @property
    def lock(self) -> Path:
        """Locked for as long as it lives."""
        return self.folder / f"{self.name}.lock"

    @property
    def starting(self) -> Path:
        """Locked by the client that starts it."""
        return self.folder / f"{self.name}.start"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / f"{self.name}.log"

    @property
    def old_log(self) -> Path:
        """What it said before the log became long."""
        return self.folder / f"{self.name}.log.old"

    @property
    def record(self) -> Path:
        """What it is, and why it ended last, as JSON."""
        return self.folder / f"{self.name}.json"

    def prepared(self) -> Endpoint:
        """Itself, its folders made. MachineError where they are not this user's alone."""
        private(self.folder)
        private(self.address.parent)
        return self

    def is_alive(self) -> bool:
        """Whether a process holds the lock."""
        return is_locked(self.lock)

    def said(self) -> dict[str, Any]:
        """What its record says; {} where there is none."""
        import json  # a client of a daemon that runs needs none of it

        try:
            found = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def process(self) -> tuple[int, str]:
        """Number and start of the process that wrote the record; (0, "") where it does not say."""
        pid, start = map(self.said().get, ("pid", "start"))
        return (pid, start) if isinstance(pid, int) and isinstance(start, str) else (0, "")

    def last_words(self, lines: int = 40) -> str:
        """The end of its log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def connect(self, seconds: float) -> socket.socket | None:
        """A connection to it; None where nobody of this user listens, or too many others wait."""
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(seconds)
        with contextlib.suppress(OSError):
            found.connect(str(self.address))
            if peer(found) in (None, os.getuid()):
                return found
        found.close()
        return None


def endpoint() -> Endpoint:
    """That of the daemon for this code, this Python and this user."""
    levels = kept_levels()
    cache = "all" if levels is None else ",".join(sorted(levels)), str(cache_folder())
    identity = "\0".join((str(wire.PROTOCOL), __version__, interpreter(), home(), code_digest(), *cache))
    return Endpoint(short_name(identity), state_folder())


def every() -> list[Endpoint]:
    """All daemons that left a record in the state folder, this code's or another's."""
    with contextlib.suppress(OSError, MachineError):
        folder = private(state_folder())
        return [Endpoint(path.stem, folder) for path in sorted(folder.glob("*.json"))]
    return []


def peer(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))[1])


def process_start(pid: int) -> str:
    """When a process began; "" for one that has ended."""
    return process(pid)[1]
