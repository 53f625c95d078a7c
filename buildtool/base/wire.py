"""Frames between a client and the service: a length of four bytes (little-endian), then msgpack.

Every frame is a map with `protocol`, which this module adds, and one key that gives its kind. The client
sends `hello`, `request` (with `cache`: on, off or renew) and `control`. The service sends `hello`, then any
number of `beat` (it is at work), `progress` and `log`, then one `answer`, or one `error` from
`errors.to_data`.

This module imports the standard library and msgpack only: every build waits for the client to start.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any

import msgpack

from buildtool.base.errors import ToolError

PROTOCOL = 1
REQUEST_LIMIT = 1 << 20  # bytes of a frame to the daemon, where each byte may become an object of 64 bytes
FRAME_LIMIT = 1 << 28  # bytes of any frame; a larger length is refused before memory is allocated for it

_LENGTH = struct.Struct("<I")
_CHUNK = 1 << 20


def send(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    """Writes one frame and flushes. Raises ToolError for a message above FRAME_LIMIT."""
    stream.write(pack_frame(message))
    stream.flush()


def pack_frame(message: Mapping[str, Any]) -> bytes:
    """Returns the bytes of one frame. Raises ToolError for a message above FRAME_LIMIT."""
    # a file's name need not be UTF-8
    payload = msgpack.packb({"protocol": PROTOCOL, **message}, unicode_errors="surrogateescape")
    if len(payload) > FRAME_LIMIT:
        raise ToolError(f"a message of {len(payload):,} bytes exceeds the limit of {FRAME_LIMIT:,}")
    return _LENGTH.pack(len(payload)) + bytes(payload)


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """Reads and returns one frame; None at the end of the stream. Raises ToolError if the bytes are not a
    valid frame.
    """
    decoder = Decoder()
    while (message := decoder.take()) is None:
        part = stream.read(min(decoder.missing, _CHUNK))  # memory grows only as bytes arrive
        if not part:
            if decoder.held:
                raise ToolError("the stream ended within a frame")
            return None
        decoder.add(part)
    return message


class Decoder:
    """Decodes frames from bytes as they arrive. It refuses a frame of more than `most` bytes."""

    def __init__(self, most: int = FRAME_LIMIT) -> None:
        self._most = most
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """The number of bytes that have arrived and that `take` has not returned yet as part of a message."""
        return len(self._buffer)

    @property
    def missing(self) -> int:
        """The number of bytes that are still missing from the frame that is arriving.

        As long as the frame's length has not arrived completely, only the missing bytes of this length count.
        """
        held = len(self._buffer)
        if held < _LENGTH.size:
            return _LENGTH.size - held
        return max(0, _LENGTH.size + int(_LENGTH.unpack_from(self._buffer)[0]) - held)

    @property
    def has_message(self) -> bool:
        """Whether a whole frame has arrived."""
        return not self.missing

    def add(self, data: bytes) -> None:
        """Adds bytes that have arrived."""
        self._buffer += data

    def take(self) -> dict[str, Any] | None:
        """Returns the next message, None if no whole frame has arrived. Raises ToolError for an invalid
        frame.
        """
        if len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._most:
                raise ToolError(f"a frame of {length:,} bytes exceeds the limit of {self._most:,}")
        if self.missing:
            return None
        end = _LENGTH.size + length
        payload = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        try:
            message = msgpack.unpackb(
                payload, raw=False, strict_map_key=False, unicode_errors="surrogateescape"
            )
        except Exception as error:  # msgpack raises a dozen kinds, RecursionError among them
            raise ToolError(f"a frame is not msgpack: {error}") from None
        if not isinstance(message, dict):
            raise ToolError("a frame does not hold a message")
        if message.get("protocol") != PROTOCOL:
            text = f"protocol {message.get('protocol')!r} where {PROTOCOL} was expected"
            raise ToolError(text, hint="client and service come from different versions of buildtool")
        return message

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Adds `data`; returns the messages that are complete now. Raises ToolError for an invalid frame."""
        self.add(data)
        return list(iter(self.take, None))
