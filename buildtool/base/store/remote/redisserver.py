"""A client for a Redis server that stores entries. It needs no package: it uses five commands of RESP, the
protocol of Redis.

It never reads more of an answer than it has asked for, whatever length the server gives.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import IO, Any

from buildtool.base.store.remote.servers import MOST_SENT, SEND_SECONDS, ServerError
from buildtool.base.store.remote.settings import Settings, split_url

_PORT = 6379
_MOST_LINE = 512  # bytes of a line, such as an error's text
_CREDENTIALS = ("NOAUTH", "WRONGPASS", "NOPERM")


class RedisServer:
    """A Redis server with entries as strings under the keys buildtool:KEY."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._parts = settings, split_url(settings.url)
        self.is_open = False
        self._socket: socket.socket | None = None
        self._answers: IO[bytes] | None = None
        self._context: Any = None
        if self._parts.scheme == "rediss":
            import ssl

            self._context = ssl.create_default_context()

    def connect(self) -> None:
        """Connects to the server. TLS and the log-in follow with the first command, which is allowed more
        time.
        """
        place = self._parts.hostname or "", self._parts.port or _PORT
        self._socket = socket.create_connection(place, timeout=SEND_SECONDS)
        self.is_open = True

    def get(self, key: str) -> bytes | None:
        """Returns the entry under `key`, None if there is none there."""
        return self._ask("GETRANGE", f"buildtool:{key}", "0", str(MOST_SENT)) or None

    def put(self, key: str, data: bytes) -> None:
        """Stores the entry `data` under `key`. The server's own policy decides how long it stays."""
        self._ask("SET", f"buildtool:{key}", data)

    def interrupt(self) -> None:
        """Ends the transfer that another thread is waiting for."""
        there = self._socket
        if there is not None:
            with contextlib.suppress(OSError):  # not SSLSocket's own method, which changes what is being read
                socket.socket.shutdown(there, socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes the connection."""
        self.is_open = False
        for one in (self._answers, self._socket):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.close()
        self._socket = self._answers = None

    def _ask(self, *words: str | bytes) -> bytes:
        if self._answers is None:
            self._begin()
        return self._exchange(*words)

    def _begin(self) -> None:
        """Encrypts the connection, logs in and selects the database, as far as the settings say so."""
        assert self._socket is not None
        if self._context is not None:
            self._socket = self._context.wrap_socket(self._socket, server_hostname=self._parts.hostname)
        self._answers = self._socket.makefile("rb")
        user, password = self._settings.user, self._settings.password or self._settings.token
        if user or password:
            self._exchange("AUTH", *([user] if user else []), password)
        if database := self._parts.path.strip("/"):
            self._exchange("SELECT", database)

    def _exchange(self, *words: str | bytes) -> bytes:
        """Sends a command, whose parts are `words`, and returns its answer: b"" if the server has no such
        string.
        """
        assert self._socket is not None
        assert self._answers is not None
        data = [word.encode() if isinstance(word, str) else word for word in words]
        sent = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in data)
        self._socket.sendall(b"*%d\r\n%b" % (len(data), sent))
        line = self._answers.readline(_MOST_LINE)
        if not line:
            raise ConnectionResetError(errno.ECONNRESET, "no connection")
        kind, text = line[:1], line[1:-2]
        if not line.endswith(b"\r\n") or kind not in (b"+", b"-", b"$"):
            raise ValueError("not an answer of Redis")
        if kind == b"-":
            raise ServerError(_explain(text))
        return text if kind == b"+" else self._read_string(int(text))

    def _read_string(self, size: int) -> bytes:
        if size == -1:
            return b""
        if not 0 <= size <= MOST_SENT + 1:
            raise ServerError("sent more than it was asked for")
        assert self._answers is not None
        data = self._answers.read(size + 2)
        if len(data) < size + 2:
            raise ConnectionResetError(errno.ECONNRESET, "no connection")
        return data[:-2]


def _explain(text: bytes) -> str:
    """Returns what an error of the server means, without its text, which may quote a command."""
    code = text.split(b" ")[0].decode("ascii", "replace")
    if code in _CREDENTIALS:
        return "does not allow it: credentials are missing or wrong"
    return f"answered with an error ({code if code.isalpha() and code.isupper() else 'without a name'})"
