"""Clients' sockets: frames in, frames out, nothing that blocks; and what all clients together may hold.

A client that does not read what it is sent is not heard either: its next request waits in its own socket.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from buildtool.base import wire
from buildtool.base.errors import ToolError

MOST_UNSENT = 64 << 10  # bytes that wait for a client; with more, nothing is read from it
MOST_VALUES = 20_000  # in a message: a byte of a frame may become an object of 64 bytes
FRAME_SECONDS = 10.0  # that a frame or a hello may take to arrive, and that a client may read nothing
MOST_CLIENTS = 128
MOST_WAITING = 112  # for answers; the other places are never taken by requests
MOST_BYTES = 64 << 20  # of answers that were not read yet, and of requests; one answer may have more
_CHUNK = 1 << 18


class Connection:
    """A client; `greeted`: it has said hello; `job`: the key of the request that it waits for.

    `asked_bytes`: size of that request; `used`: when the client last said or read something.
    """

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.greeted = self.leased = False
        self.job: str | None = None
        self.asked_bytes = 0
        self.used = clock()
        self._clock = clock
        self._closing = 0.0  # since when it is hung up on as soon as everything is sent
        self._decoder = wire.Decoder(wire.REQUEST_LIMIT)
        self._out: deque[memoryview] = deque()  # what is left of each frame
        self._begun = self.used  # when what has not arrived yet began: the hello, or a frame

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._out)

    @property
    def is_paused(self) -> bool:
        """Whether so much waits to be sent that nothing is read from the client before it has read some."""
        return sum(map(len, self._out)) > MOST_UNSENT

    @property
    def events(self) -> int:
        """The events to wait for at its socket. The selector reports a client that hung up in any case."""
        read = 0 if self.is_paused else selectors.EVENT_READ
        return read | (selectors.EVENT_WRITE if self._out else 0)

    @property
    def is_over(self) -> bool:
        """Whether it is to be closed, and everything has been sent."""
        return bool(self._closing) and not self._out

    @property
    def has_message(self) -> bool:
        """Whether `take` has something to give."""
        return self._decoder.has_message and not self._closing and not self.is_paused

    @property
    def held(self) -> int:
        """Bytes of the requests that it has sent and that are not answered yet."""
        return self._decoder.held + (self.asked_bytes if self.job is not None else 0)

    def frames(self) -> Iterator[bytes]:
        """The frames of which something waits to be sent; clients may share them."""
        return (view.obj for view in self._out if isinstance(view.obj, bytes))

    def close(self) -> None:
        """Reads nothing more from it. The connection is closed as soon as everything is sent."""
        self._closing = self._closing or self._clock()

    def read(self) -> bool:
        """Reads the bytes that have arrived; False where the client is gone."""
        if self.has_message or self.is_paused:
            return True  # one message after the other
        try:
            data = self.socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        if data and not self._closing:
            self.used = self._clock()
            self._begun = self._begun or self.used
            self._decoder.add(data)
        return bool(data)

    def take(self) -> dict[str, Any] | None:
        """Its next message; None where there is none, or it has to read first. ToolError for a wrong one."""
        if self._closing or self.is_paused:
            return None
        before = self._decoder.held
        message = self._decoder.take()
        if message is None:
            return None
        self._begun = self._clock() if self._decoder.held else 0.0
        size = before - self._decoder.held
        if size > MOST_VALUES:  # else each value has a byte
            left: list[Any] = [message]
            values = 0
            while left:
                one = left.pop()
                values += 1
                if isinstance(one, Mapping):
                    left += (*one.keys(), *one.values())
                elif isinstance(one, list | tuple):
                    left += one
                if values + len(left) > MOST_VALUES:
                    raise ToolError(f"a message of more than {MOST_VALUES:,} values")
        if self.job is None:
            self.asked_bytes = size
        return message

    def is_stuck(self, now: float) -> bool:
        """Whether a frame began long ago, or nothing of what is sent to it is read."""
        waits = self._begun if not self.is_paused else 0.0
        unread = self.used if self._out else 0.0
        return any(then and now - then > FRAME_SECONDS for then in (waits, unread, self._closing))

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message, as soon as the client takes it."""
        self.send_frame(wire.pack_frame(message))

    def send_frame(self, frame: bytes) -> None:
        """The same with the bytes of a frame."""
        if not self._out:
            self.used = self._clock()  # from now on it has time to read
        self._out.append(memoryview(frame))
        self.write()

    def write(self) -> bool:
        """Sends what the client takes now; False where it is gone."""
        was_paused = self.is_paused
        try:
            while self._out:
                sent = self.socket.send(self._out[0][:_CHUNK])
                self.used = self._clock()
                view = self._out.popleft()
                if sent < len(view):
                    self._out.appendleft(view[sent:])
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._out.clear()
            return False
        if was_paused and self._begun:
            self._begun = self._clock()  # it was not heard meanwhile
        return True


class Clients(set[Connection]):
    """The connections that are open: who makes room for another one, and how much they may hold.

    Every client that asks only how the daemon is, or tells it to end, finds a place: of those that wait for
    no answer the one that was silent for longest gives way.
    """

    def to_make_room(self) -> Connection | None:
        """The client to disconnect when another one comes: the longest idle one, one with a lease last."""
        idle = (client for client in self if client.job is None)
        return min(idle, key=lambda c: (c.leased, c.wants_to_write, c.used), default=None)

    @property
    def held(self) -> int:
        """Bytes of all that is not read or not answered yet; a frame that several wait for counts once."""
        frames = {id(frame): len(frame) for client in self for frame in client.frames()}
        return sum(frames.values()) + sum(client.held for client in self)

    def surplus(self) -> list[Connection]:
        """The clients to disconnect so that all hold MOST_BYTES at most: who has not read for longest.

        The last client may hold more: a single answer about a large network.
        """
        chosen: list[Connection] = []
        holders = [client for client in self if client.job is None and (client.held or client.wants_to_write)]
        for client in sorted(holders, key=lambda client: client.used)[:-1]:
            if Clients(self - set(chosen)).held <= MOST_BYTES:
                break
            chosen.append(client)
        return chosen

    def refusal(self, asking: Connection) -> str:
        """Why a client's request is refused, in words; "" where it is accepted."""
        waiting = [client for client in self if client.job is not None]
        if len(waiting) >= MOST_WAITING:
            return f"{len(waiting)} clients wait for answers already"
        if sum(client.asked_bytes for client in waiting) + asking.asked_bytes > MOST_BYTES // 2:
            return "the requests that wait for answers are too large together"
        return ""
