"""Where this user's daemon is: its name, its files, and whether it is alive.

The name is a digest of all that answers depend on besides requests: protocol and version, Python, buildtool's
code and the cache. One daemon serves all boards, networks and folders. Edited code gets another daemon.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any

from buildtool import __version__
from buildtool.base import wire
from buildtool.base.code_digest import code_digest, home, interpreter
from buildtool.base.errors import MachineError
from buildtool.base.folders import cache_folder, cache_levels, private, short_name, socket_path, state_folder
from buildtool.base.locks import is_locked

CONNECT_SECONDS = 1.0


class AbsentError(Exception):
    """No daemon answers; `args[0]` says why."""


class Endpoint:
    """The files of the daemon `name` in `folder`.

    - `lock`: the daemon locks it while it runs.
    - `starting`: the client that starts the daemon locks it.
    - `log`: the daemon's log.
    - `old_log`: the earlier part of a log that became too long.
    - `record`: JSON about the daemon's process, and why the last daemon ended.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        ends = ("lock", "start", "log", "log.old", "json")
        files = (folder / f"{name}.{end}" for end in ends)
        self.lock, self.starting, self.log, self.old_log, self.record = files

    @property
    def address(self) -> Path:
        """The path of the daemon's socket, which is in another folder if the path would be too long."""
        return socket_path(self.name)

    def prepared(self) -> Endpoint:
        """Creates the daemon's folders and returns this endpoint. Raises MachineError if others may write to
        them.
        """
        private(self.folder)
        private(self.address.parent)
        return self

    def is_alive(self) -> bool:
        """Whether the daemon runs: a running daemon has locked `lock`."""
        return is_locked(self.lock)

    def read_record(self) -> dict[str, Any]:
        """Returns the content of the daemon's record, or {} if there is none."""
        import json  # a client of a running daemon does not need it

        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def process(self) -> tuple[int, str]:
        """Returns the PID and the start time of the daemon's process, from its record; (0, "") if not
        known.
        """
        pid, start = map(self.read_record().get, ("pid", "start"))
        return (pid, start) if isinstance(pid, int) and isinstance(start, str) else (0, "")

    def log_end(self, lines: int = 40) -> str:
        """Returns the last `lines` lines of the daemon's log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def connect(self, seconds: float) -> socket.socket | None:
        """Returns a connection to the daemon, or None if no process accepts it within `seconds`.

        No process accepts it if none of this user listens, or if too many clients wait to be accepted.
        """
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(seconds)
        with contextlib.suppress(OSError):
            connection.connect(str(self.address))
            if peer(connection) in (None, os.getuid()):
                return connection
        connection.close()
        return None


def endpoint() -> Endpoint:
    """Returns the endpoint of the daemon for this code, Python, cache and user."""
    levels = cache_levels()
    cache = "all" if levels is None else ",".join(sorted(levels)), str(cache_folder())
    identity = "\0".join((str(wire.PROTOCOL), __version__, interpreter(), home(), code_digest(), *cache))
    return Endpoint(short_name(identity), state_folder())


def every() -> list[Endpoint]:
    """Returns the endpoints of all daemons with a record in the state folder, also of those with other
    code.
    """
    with contextlib.suppress(OSError, MachineError):
        folder = private(state_folder())
        return [Endpoint(path.stem, folder) for path in sorted(folder.glob("*.json"))]
    return []


def peer(connection: socket.socket) -> int | None:
    """Returns the user ID of the process at the other end, or None if the system does not report it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, 12))[1])
