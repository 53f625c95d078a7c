"""The shared cache as a session's cache uses it.

Nobody knows who has written an entry that a server sends. So it is only accepted if it is signed with the key
that the user has set. Without a key, only the namespaces OPEN are read, whose values are checked in full.

A server never fails a request and hardly delays one. After a time-out, or an answer other than an entry or
"not found", the server is not used any more: by this process until it ends, and for a minute by other
processes with the same cache folder.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from buildtool.base.folders import short_name
from buildtool.base.store import OFF_FILE
from buildtool.base.store.disk import MOST_BYTES, BadEntryError
from buildtool.base.store.remote.entries import pack, unpack
from buildtool.base.store.remote.redisserver import RedisServer
from buildtool.base.store.remote.servers import (
    CONNECT_SECONDS,
    MOST_SENT,
    SEND_SECONDS,
    Helper,
    HttpServer,
    Server,
    ServerError,
)
from buildtool.base.store.remote.settings import Settings, split_url

T = TypeVar("T")

ANSWER_SECONDS = 1.0  # for one entry
REQUEST_SECONDS = 5.0  # of waiting in one request of a client
UPLOAD_SECONDS = 4.0  # to send all entries of a request, after its answer
OFF_SECONDS = 60.0
MOST_QUEUED = 64 << 20  # bytes of entries that wait to be sent
OPEN = frozenset({"plans"})
# These need a key. The others are made as fast as they are sent (docs/guides/shared-cache.md).
SIGNED = frozenset({"fronts", "objects", "programs", "refusals"})


class Remote:
    """The entries on a server. `folder` is the cache's folder on disk, None if it cannot be used.

    `counts`: hits, misses, errors, sent entries and microseconds.
    `warnings`: lines for the user.
    `off`: whether the server is not used any more.
    """

    def __init__(self, settings: Settings, folder: Path | None) -> None:
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._mark = folder / OFF_FILE if folder is not None else None
        self._queue: dict[str, bytes] = {}
        self._waited = 0.0
        self._sends = settings.mode == "write"
        self._server: Server | None = None
        self._helper: Helper | None = None
        self.off = self._is_marked()

    def begin(self) -> None:
        """Begins a request: its limit on the time of waiting starts anew."""
        self._waited = 0.0

    def get(self, level: str, key: str) -> bytes | None:
        """Returns a payload; None if the server has no valid entry, or is not asked."""
        if self.off or not self._serves(level):
            return None
        payload = None
        began = time.perf_counter()
        try:
            data = self._ask(lambda server: server.get(key), ANSWER_SECONDS)
            if data is not None:
                payload = unpack(data, level, key, self.settings.key)
        except BadEntryError:
            self.counts["errors"] += 1
        except MemoryError:  # this process is not to be trusted any more
            raise
        except Exception as error:  # a cache never fails a build
            self._fail(error)
        seconds = time.perf_counter() - began
        self.counts["microseconds"] += int(1e6 * seconds)
        self.counts["hits" if payload is not None else "misses"] += 1
        self._waited += seconds
        if self._waited > REQUEST_SECONDS and not self.off:
            self._fail(TimeoutError(f"took {self._waited:.1f} s altogether"))
        return payload

    def queue(self, level: str, key: str, payload: bytes) -> None:
        """Queues an entry, which `push` sends, if the settings allow writing and entries of its namespace are
        sent.
        """
        if self.off or not self._sends or not self._serves(level) or len(payload) > MOST_BYTES:
            return
        data = pack(level, key, payload, self.settings.key)
        if len(data) <= MOST_SENT and sum(map(len, self._queue.values())) <= MOST_QUEUED:
            self._queue[key] = data

    @property
    def is_waiting(self) -> bool:
        """Whether queued entries wait to be sent."""
        return bool(self._queue)

    def push(self) -> None:
        """Sends the queued entries until UPLOAD_SECONDS are over; drops the rest. No request waits for an
        answer meanwhile.
        """
        waiting, self._queue = self._queue, {}
        deadline = time.monotonic() + UPLOAD_SECONDS
        for key, data in waiting.items():
            if self.off or not self._sends or time.monotonic() > deadline:
                return
            began = time.perf_counter()
            try:
                self._ask(partial(_put, key, data), SEND_SECONDS)
                self.counts["sent"] += 1
            except (ServerError, TimeoutError) as error:  # it may still be read
                self._sends = False
                self._fail(error, is_over=isinstance(error, TimeoutError))
            except Exception as error:
                self._fail(error)
            self.counts["microseconds"] += int(1e6 * (time.perf_counter() - began))

    def close(self) -> None:
        """Closes the connection to the server, and ends the thread that uses it."""
        if self._helper is not None and self._server is not None:
            self._server.interrupt()
            self._helper.end(self._server.close)
        self._helper = self._server = None

    def __del__(self) -> None:
        """Closes the connection when the session that used it has ended."""
        self.close()

    def _serves(self, level: str) -> bool:
        return level in OPEN or (bool(self.settings.key) and level in SIGNED)

    def _ask(self, step: Callable[[Server], T], seconds: float) -> T:
        """Returns the result of `step` on the server, within `seconds`. If the server has closed the
        connection meanwhile, it is opened again.
        """
        if self._server is None or self._helper is None:
            is_http = split_url(self.settings.url).scheme.startswith("http")
            self._server = HttpServer(self.settings) if is_http else RedisServer(self.settings)
            self._helper = Helper()
        server, helper = self._server, self._helper
        was_open = server.is_open
        if not was_open:
            helper.run(server.connect, CONNECT_SECONDS)
        try:
            return helper.run(lambda: step(server), seconds)
        except ConnectionError:
            server.close()
            if not was_open:
                raise
            return self._ask(step, seconds)

    def _fail(self, error: Exception, *, is_over: bool = True) -> None:
        """Counts an error, and adds a warning. If `is_over`, the server is not used any more."""
        self.counts["errors"] += 1
        what = "goes on without it" if is_over else "sends nothing more to it"
        self.warnings.append(f"the shared cache at {self.settings.host} {_describe(error)}; the build {what}")
        if not is_over:
            return
        self.off = True
        self._queue.clear()
        self.close()
        if self._mark is not None:
            with contextlib.suppress(OSError):
                self._mark.write_text(short_name(self.settings.url))

    def _is_marked(self) -> bool:
        """Whether a process has found, within the last minute, that the server does not answer."""
        try:
            age = time.time() - self._mark.stat().st_mtime if self._mark is not None else OFF_SECONDS
            return 0 <= age < OFF_SECONDS and self._is_marked_for(short_name(self.settings.url))
        except OSError:
            return False

    def _is_marked_for(self, name: str) -> bool:
        return self._mark is not None and self._mark.read_bytes()[:64] == name.encode()


def _put(key: str, data: bytes, server: Server) -> None:
    server.put(key, data)


def _describe(error: Exception) -> str:
    """Returns what is wrong with a server, without the texts of libraries, which may quote headers."""
    if isinstance(error, ServerError):
        return str(error)
    if isinstance(error, TimeoutError):
        text = str(error)
        return text if text.startswith(("did not", "took")) else "did not answer in time"
    if isinstance(error, OSError):
        return f"cannot be reached ({error.strerror or type(error).__name__})"
    return f"sent no valid answer ({type(error).__name__})"
