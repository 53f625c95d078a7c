"""One client's socket: frames in, frames out, nothing that blocks."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any

from buildtool import wire

MOST_UNREAD = 256 << 20  # bytes that a client may leave unread before it is hung up on
FRAME_SECONDS = 10.0  # that a frame, or a client's hello, may take to arrive
_CHUNK = 1 << 18


class Connection:
    """A client; `greeted`: it has said hello; `job`: the key of the request that it waits for."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.greeted = self.leased = False
        self.job: str | None = None
        self._closing = 0.0  # since when it is hung up on as soon as everything is sent
        self._decoder = wire.Decoder(wire.REQUEST_LIMIT)
        self._out = bytearray()
        self._begun = time.monotonic()  # when what has not arrived yet began: the hello, or a frame

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._out)

    @property
    def is_over(self) -> bool:
        """Whether it has been sent its last bytes."""
        return bool(self._closing) and not self._out

    def close(self) -> None:
        """Listens to it no more; it is hung up on as soon as everything is sent."""
        self._closing = self._closing or time.monotonic()

    def read(self) -> list[dict[str, Any]] | None:
        """The messages that have arrived; None where the client is gone. ToolError for what is no message."""
        try:
            data = self.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            return None
        if not data:
            return None
        if self._closing:
            return []
        found = self._decoder.feed(data)
        if not self._decoder.is_amid:
            self._begun = 0.0
        elif found or not self._begun:
            self._begun = time.monotonic()
        return found

    def is_stuck(self, now: float) -> bool:
        """Whether a frame began long ago, or what was sent is not read."""
        late = any(then and now - then > FRAME_SECONDS for then in (self._begun, self._closing))
        return late or len(self._out) > MOST_UNREAD

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message, as soon as the client takes it."""
        self.send_frame(wire.packed({"protocol": wire.PROTOCOL, **message}))

    def send_frame(self, frame: bytes) -> None:
        """The same with the bytes of a frame."""
        self._out += frame
        self.write()

    def write(self) -> bool:
        """Sends what the client takes now; False where it is gone."""
        try:
            while self._out:
                sent = self.socket.send(memoryview(self._out)[:_CHUNK].tobytes())
                del self._out[:sent]
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            self._out.clear()
            return False
        return True
