"""Frames over a stream of bytes that may lose, garble or add some; frames.h describes them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MOST_PAYLOAD = 240
_HEAD = struct.Struct("<BBH")
_CRC = struct.Struct("<I")
_MOST = _HEAD.size + MOST_PAYLOAD + _CRC.size + 1
_END = b"\0"


@dataclass(frozen=True)
class Frame:
    """A request (a capital letter) or an answer: its kind, number and session, and what it carries."""

    kind: str
    sequence: int
    session: int
    payload: bytes = b""

    def encoded(self) -> bytes:
        """As it goes over the wire, zeros on both sides."""
        content = _HEAD.pack(ord(self.kind), self.sequence, self.session) + self.payload
        content += _CRC.pack(zlib.crc32(content))
        runs = content.split(_END)  # of 254 bytes at most, because the whole is
        return _END + b"".join(bytes([len(run) + 1]) + run for run in runs) + _END


def decoded(data: bytes) -> Frame | None:
    """The frame between two zeros; None where it is none."""
    if not _HEAD.size + _CRC.size < len(data) <= _MOST:
        return None
    runs, at = [], 0
    while at < len(data):
        end = at + data[at]
        if end > len(data):
            return None
        runs.append(data[at + 1 : end])
        at = end
    content = _END.join(runs)
    if _CRC.pack(zlib.crc32(content[: -_CRC.size])) != content[-_CRC.size :]:
        return None
    kind, sequence, session = _HEAD.unpack_from(content)
    if not (0x20 < kind < 0x7F):
        return None
    return Frame(chr(kind), sequence, session, content[_HEAD.size : -_CRC.size])


class Decoder:
    """Frames out of bytes as they come; `strange`: what came and was no frame, the latest of it."""

    def __init__(self) -> None:
        self._open = b""
        self.strange = b""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete with `data`."""
        *parts, self._open = (self._open + data).split(_END)
        found = []
        for part in filter(None, parts):
            frame = decoded(part)
            if frame is None:
                self._passed_over(part)
            else:
                found.append(frame)
        if len(self._open) > 2 * _MOST:  # nobody who sends frames goes so long without a zero
            self._passed_over(self._open)
            self._open = b""
        return found

    def _passed_over(self, data: bytes) -> None:
        self.strange = (self.strange + data)[-_MOST:]

    @property
    def rest(self) -> bytes:
        """What came and was no frame, and what may become one."""
        return self.strange + self._open
