"""Frames between a client and the service: four bytes of length (little-endian), then msgpack.

Every frame is a map with `protocol`, which is added here, and one key that says what it is. To the service:
`hello`, `request` (with `cache`: on, off or renew) and `control`. From it: `hello`, any number of `beat` (it
is at work), `progress` and `log`, then one `answer`, or one `error` with what `errors.to_data` gives.

Imports the standard library and msgpack only: the client's start-up time is every build's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any

import msgpack

from buildtool.base.errors import ToolError

PROTOCOL = 1
REQUEST_LIMIT = 1 << 20  # the same for the daemon, where each byte may become an object of 64 bytes
FRAME_LIMIT = 1 << 28  # bytes; a larger length is refused before memory is allocated for it

_LENGTH = struct.Struct("<I")
_CHUNK = 1 << 20


def send(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    """Writes one frame and flushes. ToolError when the message is over FRAME_LIMIT."""
    stream.write(pack_frame(message))
    stream.flush()


def pack_frame(message: Mapping[str, Any]) -> bytes:
    """The bytes of one frame. ToolError when the message is over FRAME_LIMIT."""
    # a file's name need not be UTF-8
    payload = msgpack.packb({"protocol": PROTOCOL, **message}, unicode_errors="surrogateescape")
    if len(payload) > FRAME_LIMIT:
        raise ToolError(f"a message of {len(payload):,} bytes exceeds the limit of {FRAME_LIMIT:,}")
    return _LENGTH.pack(len(payload)) + bytes(payload)


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """Reads one frame; None at a clean end of the stream. ToolError for anything but a frame."""
    decoder = Decoder()
    while (message := decoder.take()) is None:
        part = stream.read(min(decoder.missing, _CHUNK))  # memory is taken as bytes arrive
        if not part:
            if decoder.held:
                raise ToolError("the stream ended within a frame")
            return None
        decoder.add(part)
    return message


class Decoder:
    """Frames out of bytes as they arrive. `most`: bytes of a frame; a longer one is refused by its length."""

    def __init__(self, most: int = FRAME_LIMIT) -> None:
        self._most = most
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """Bytes that have arrived and were not taken: of frames that are whole, and of one that is not."""
        return len(self._buffer)

    @property
    def missing(self) -> int:
        """Bytes that the next message lacks: of its length, or of all of it."""
        held = len(self._buffer)
        if held < _LENGTH.size:
            return _LENGTH.size - held
        return max(0, _LENGTH.size + int(_LENGTH.unpack_from(self._buffer)[0]) - held)

    @property
    def has_message(self) -> bool:
        """Whether a whole frame is there."""
        return not self.missing

    def add(self, data: bytes) -> None:
        """Adds bytes that have arrived."""
        self._buffer += data

    def take(self) -> dict[str, Any] | None:
        """The next message; None where no frame is whole. ToolError for anything but a frame."""
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
        """The messages that end in `data`. ToolError for anything but a frame."""
        self.add(data)
        return list(iter(self.take, None))
