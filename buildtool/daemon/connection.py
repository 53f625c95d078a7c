"""Clients' sockets, which never block, and the limits for all clients together.

While a client does not read its answers, the daemon reads nothing from it: its next request stays in the
socket.
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

MOST_UNSENT = 64 << 10  # bytes that wait to be sent; above this, nothing is read from the client
MOST_VALUES = 20_000  # values in a message: a byte of a frame may become an object of 64 bytes
FRAME_SECONDS = 10.0  # a frame or a hello must arrive, and a client must read, within this time
MOST_CLIENTS = 128
MOST_WAITING = 112  # clients that wait for answers; the other places stay free for control words
MOST_BYTES = 64 << 20  # unread answers and requests of all clients; a single answer may be larger
_CHUNK = 1 << 18


class Connection:
    """A client.

    - `greeted`: it has said hello.
    - `leased`: it has asked the daemon to stay for as long as it is connected.
    - `job`: the key of the request that it waits for (None: it waits for none).
    - `asked_bytes`: the size of that request.
    - `used`: the time when the client last sent or read something.
    """

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.greeted = self.leased = False
        self.job: str | None = None
        self.asked_bytes = 0
        self.used = clock()
        self._clock = clock
        self._closing = 0.0  # time of `close`: it is disconnected once everything is sent
        self._decoder = wire.Decoder(wire.REQUEST_LIMIT)
        self._out: deque[memoryview] = deque()  # the unsent rest of each frame
        self._begun = self.used  # when the client began to send the hello or frame that is still incomplete

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are waiting to be sent."""
        return bool(self._out)

    @property
    def is_paused(self) -> bool:
        """Whether too many bytes wait to be sent. Until the client reads, the daemon then reads nothing from
        it.
        """
        return sum(map(len, self._out)) > MOST_UNSENT

    @property
    def events(self) -> int:
        """The events to wait for at the socket. A selector reports in any case that a client has gone."""
        read = 0 if self.is_paused else selectors.EVENT_READ
        return read | (selectors.EVENT_WRITE if self._out else 0)

    @property
    def is_over(self) -> bool:
        """Whether `close` was called, and everything has been sent."""
        return bool(self._closing) and not self._out

    @property
    def has_message(self) -> bool:
        """Whether `take` would return a message."""
        return self._decoder.has_message and not self._closing and not self.is_paused

    @property
    def held(self) -> int:
        """The bytes of this client's requests that are not answered yet."""
        return self._decoder.held + (self.asked_bytes if self.job is not None else 0)

    def frames(self) -> Iterator[bytes]:
        """Yields the messages that are not completely sent, as bytes. Clients may share them."""
        return (view.obj for view in self._out if isinstance(view.obj, bytes))

    def close(self) -> None:
        """Stops reading from the client, and closes the connection as soon as everything is sent."""
        self._closing = self._closing or self._clock()

    def read(self) -> bool:
        """Reads the bytes that have arrived. Returns False if the client has gone."""
        if self.has_message or self.is_paused:
            return True  # the message is handled first
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
        """Returns the client's next message; None if no whole message has arrived, or while the client is
        paused.

        Raises ToolError for an invalid message.
        """
        if self._closing or self.is_paused:
            return None
        before = self._decoder.held
        message = self._decoder.take()
        if message is None:
            return None
        self._begun = self._clock() if self._decoder.held else 0.0
        size = before - self._decoder.held
        if size > MOST_VALUES:  # a value takes a byte at least
            stack: list[Any] = [message]
            values = 0
            while stack:
                value = stack.pop()
                values += 1
                if isinstance(value, Mapping):
                    stack += (*value.keys(), *value.values())
                elif isinstance(value, list | tuple):
                    stack += value
                if values + len(stack) > MOST_VALUES:
                    raise ToolError(f"a message of more than {MOST_VALUES:,} values")
        if self.job is None:
            self.asked_bytes = size
        return message

    def is_stuck(self, now: float) -> bool:
        """Whether the client takes too long: to send the rest of a message, or to read what was sent."""
        waits = self._begun if not self.is_paused else 0.0
        unread = self.used if self._out else 0.0
        return any(start and now - start > FRAME_SECONDS for start in (waits, unread, self._closing))

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a message. Bytes that the client does not take now are sent later."""
        self.send_frame(wire.pack_frame(message))

    def send_frame(self, frame: bytes) -> None:
        """Sends a message as bytes. Bytes that the client does not take now are sent later."""
        if not self._out:
            self.used = self._clock()  # the client's time to read begins
        self._out.append(memoryview(frame))
        self.write()

    def write(self) -> bool:
        """Sends as many bytes as the client takes now. Returns False if the client has gone."""
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
            self._begun = self._clock()  # nothing was read from it meanwhile
        return True


class Clients(set[Connection]):
    """The open connections, and their limits.

    If there are too many, a new client still gets in: of the clients that wait for no answer, the one that
    was idle for longest is disconnected. So a control word ("status", "stop") can always be sent.
    """

    def to_make_room(self) -> Connection | None:
        """Returns the client to disconnect for a new one; None if all clients wait for answers.

        Of the clients that wait for no answer it is the one that was idle for longest. Clients with a lease,
        which have asked the daemon to stay, come last.
        """
        idle = (client for client in self if client.job is None)
        return min(idle, key=lambda c: (c.leased, c.wants_to_write, c.used), default=None)

    @property
    def held(self) -> int:
        """The bytes of all unsent messages and unanswered requests. A message for several clients counts
        once.
        """
        frames = {id(frame): len(frame) for client in self for frame in client.frames()}
        return sum(frames.values()) + sum(client.held for client in self)

    def surplus(self) -> list[Connection]:
        """Returns the clients to disconnect so that the others hold at most MOST_BYTES together.

        Clients that have not read for longest come first. The last client stays, even if it holds more: a
        single answer about a large network may be that large.
        """
        chosen: list[Connection] = []
        holders = [client for client in self if client.job is None and (client.held or client.wants_to_write)]
        for client in sorted(holders, key=lambda client: client.used)[:-1]:
            if Clients(self - set(chosen)).held <= MOST_BYTES:
                break
            chosen.append(client)
        return chosen

    def refusal(self, asking: Connection) -> str:
        """Returns why a client's request is refused; "" if it is accepted."""
        waiting = [client for client in self if client.job is not None]
        if len(waiting) >= MOST_WAITING:
            return f"{len(waiting)} clients wait for answers already"
        if sum(client.asked_bytes for client in waiting) + asking.asked_bytes > MOST_BYTES // 2:
            return "the waiting requests together are too large"
        return ""
