"""Servers that store entries, and a limit on the time that they may take.

http, https     GET and PUT of URL/ac/KEY, as Bazel's cache: bazel-remote, nginx with WebDAV, ...
redis, rediss   GETRANGE and SET of buildtool:KEY: see redisserver.py
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from buildtool import __version__
from buildtool.base.store.remote.settings import Settings, split_url

T = TypeVar("T")

CONNECT_SECONDS = 0.3  # to look up the server's name and to connect
SEND_SECONDS = 2.0  # to send one entry
MOST_SENT = 4 << 20  # bytes of an entry on the way


class ServerError(Exception):
    """The server's answer is neither an entry nor "not found". `args[0]` is a text about it without
    credentials.
    """


class Server(Protocol):
    """A connection to a server. Each method may raise any error, and may block."""

    is_open: bool

    def connect(self) -> None:
        """Connects to the server."""

    def get(self, key: str) -> bytes | None:
        """Returns the entry under `key` as it was sent, None if there is none there."""

    def put(self, key: str, data: bytes) -> None:
        """Stores the entry `data` under `key`."""

    def interrupt(self) -> None:
        """Makes a method fail that another thread is executing.

        Without this, the method might never end, since a server can send without end.
        """

    def close(self) -> None:
        """Closes the connection."""


class HttpServer:
    """An HTTP server with entries at URL/ac/KEY. It follows no redirection, and uses no proxy."""

    def __init__(self, settings: Settings) -> None:
        import http.client

        self._parts, self.is_open = split_url(settings.url), False
        self._headers = {"User-Agent": f"buildtool/{__version__}"}
        if settings.token:
            self._headers["Authorization"] = f"Bearer {settings.token}"
        elif settings.user or settings.password:
            pair = f"{settings.user}:{settings.password}".encode()
            self._headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
        host, port = self._parts.hostname or "", self._parts.port
        secure = self._parts.scheme == "https"
        default = http.client.HTTPS_PORT if secure else http.client.HTTP_PORT
        self._connection = http.client.HTTPConnection(host, port or default, timeout=SEND_SECONDS)
        self._context: Any = None
        if secure:
            import ssl

            self._context = ssl.create_default_context()

    def connect(self) -> None:
        """Connects to the server. TLS begins with the first request, which is allowed more time."""
        self._connection.connect()
        self.is_open, self._is_bare = True, self._context is not None

    def get(self, key: str) -> bytes | None:
        """Returns the content of URL/ac/KEY, None if it does not exist. Raises ServerError for another
        status.
        """
        status, data = self._exchange("GET", key)
        if status in (404, 410):
            return None
        if status != 200:
            raise ServerError(_explain(status))
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores `data` at URL/ac/KEY. Raises ServerError if the server refuses it."""
        status, _ = self._exchange("PUT", key, data)
        if status not in (200, 201, 202, 204):
            raise ServerError(_explain(status))

    def interrupt(self) -> None:
        """Ends the transfer that another thread is waiting for."""
        there = self._connection.sock
        if there is not None:
            with contextlib.suppress(OSError):  # not SSLSocket's own method, which changes what is being read
                socket.socket.shutdown(there, socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes the connection."""
        self.is_open = False
        self._connection.close()

    def _exchange(self, method: str, key: str, body: bytes | None = None) -> tuple[int, bytes]:
        if self._is_bare:
            self._connection.sock = self._context.wrap_socket(
                self._connection.sock, server_hostname=self._parts.hostname
            )
            self._is_bare = False
        path = f"{self._parts.path.rstrip('/')}/ac/{key}"
        headers = self._headers | ({"Content-Type": "application/octet-stream"} if body is not None else {})
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read(MOST_SENT + 1)
        if not answer.isclosed():  # there is more, or less came than the header says
            self.close()
        return answer.status, data


def _explain(status: int) -> str:
    reasons = {401: ": credentials are missing or wrong", 403: ": these credentials do not allow it"}
    reason = ": it redirects, which is not followed" if 300 <= status < 400 else reasons.get(status, "")
    return f"answered with status {status}{reason}"


class Helper:
    """A thread that runs steps, so that the caller can stop waiting for one, whatever it is blocked in: the
    look-up of a host's name, or an answer that arrives byte by byte. After a time-out, only `end` may be
    called.
    """

    def __init__(self) -> None:
        self._steps: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def run(self, step: Callable[[], T], seconds: float) -> T:
        """Returns the result of `step`. Raises TimeoutError after `seconds`, or the step's own error."""
        self._steps.put(step)
        try:
            result, error = self._results.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            raise TimeoutError(f"did not answer within {seconds:.1f} s") from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def end(self, step: Callable[[], Any]) -> None:
        """Lets the thread finish its current step, run `step` and end. Does not wait for it."""
        self._steps.put(step)
        self._steps.put(None)

    def _work(self) -> None:
        while (step := self._steps.get()) is not None:
            try:
                self._results.put((step(), None))
            except Exception as error:
                self._results.put((None, error))
