"""Frames between a client and the service: four bytes of length (little-endian), then msgpack.

A request frame is {"protocol": 1, "request": {...}}, its answer {"protocol": 1, "answer": {...}} or
{"protocol": 1, "error": {...}} with what `errors.to_data` gives. Imports the standard library and
msgpack only: the client's start-up time is every build's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any

import msgpack

from buildtool.errors import BuildtoolError, ToolError, from_data, to_data

PROTOCOL = 1
FRAME_LIMIT = 1 << 28  # bytes; a larger length is refused before memory is allocated for it

_LENGTH = struct.Struct("<I")


def send(stream: IO[bytes], message: Mapping[str, Any]) -> None:
    """Writes one frame and flushes. ToolError when the message is over FRAME_LIMIT."""
    # a file's name need not be UTF-8
    payload = msgpack.packb(message, use_bin_type=True, unicode_errors="surrogateescape")
    if len(payload) > FRAME_LIMIT:
        raise ToolError(f"a message of {len(payload):,} bytes exceeds the limit of {FRAME_LIMIT:,}")
    stream.write(_LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """Reads one frame; None at a clean end of the stream. ToolError for anything but a frame."""
    head = _read(stream, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise ToolError("the stream ended within a frame")
    (length,) = _LENGTH.unpack(head)
    if length > FRAME_LIMIT:
        raise ToolError(f"a frame of {length:,} bytes exceeds the limit of {FRAME_LIMIT:,}")
    payload = _read(stream, length)
    if len(payload) < length:
        raise ToolError("the stream ended within a frame")
    try:
        message = msgpack.unpackb(payload, raw=False, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise ToolError(f"a frame is not msgpack: {error}") from None
    if not isinstance(message, dict):
        raise ToolError("a frame does not hold a message")
    if message.get("protocol") != PROTOCOL:
        raise ToolError(
            f"protocol {message.get('protocol')!r} where {PROTOCOL} was expected",
            hint="client and service come from different versions of buildtool",
        )
    return message


def error_message(error: BuildtoolError) -> dict[str, Any]:
    """The answer frame that carries `error`."""
    return {"protocol": PROTOCOL, "error": to_data(error)}


def to_error(fields: Mapping[str, Any]) -> BuildtoolError:
    """The exception that an answer's "error" describes, of the class that has its code."""
    return from_data(fields)


def _read(stream: IO[bytes], length: int) -> bytes:
    """Up to `length` bytes; fewer only at the stream's end. Allocates as the bytes arrive."""
    parts: list[bytes] = []
    while length:
        part = stream.read(min(length, 1 << 20))
        if not part:
            break
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
