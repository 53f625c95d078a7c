"""A connection to a board's test firmware. A request is sent again until its answer arrives.

The bytes on the way may be lost, changed or added. So they are sent in frames with a checksum (see frames.h).
"""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from dataclasses import dataclass
from typing import Protocol

from buildtool.base.errors import Hint, ToolError
from buildtool.target.plugin import ProgramError

RESEND_SECONDS = 0.5  # without an answer, after which a request is sent again
SHOWN = 60  # bytes of unknown data that an error message shows
_NO_SESSION = 1
MOST_PAYLOAD = 240
_HEAD = struct.Struct("<BBH")
_CRC = struct.Struct("<I")
_MOST_BYTES = _HEAD.size + MOST_PAYLOAD + _CRC.size + 1
_END = b"\0"


@dataclass(frozen=True)
class Frame:
    """A request or an answer. The kind of a request is a capital letter, that of an answer a small one."""

    kind: str
    sequence: int
    session: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """Returns the bytes of the frame as they are sent, with a zero byte at each end."""
        content = _HEAD.pack(ord(self.kind), self.sequence, self.session) + self.payload
        content += _CRC.pack(zlib.crc32(content))
        runs = content.split(_END)  # at most 254 bytes each, because a frame has no more
        return _END + b"".join(bytes([len(run) + 1]) + run for run in runs) + _END


def decode(data: bytes) -> Frame | None:
    """Returns the frame in the bytes between two zero bytes; None if they are not a valid frame."""
    if not _HEAD.size + _CRC.size < len(data) <= _MOST_BYTES:
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
    """Finds the frames in a stream of bytes. `strange` has the last bytes that were not part of a frame."""

    def __init__(self) -> None:
        self._open = b""
        self.strange = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Adds bytes that have arrived; returns the frames that are complete now."""
        *parts, self._open = (self._open + data).split(_END)
        frames = []
        for part in filter(None, parts):
            if frame := decode(part):
                frames.append(frame)
            else:
                self.strange = (self.strange + part)[-_MOST_BYTES:]
        if len(self._open) > 2 * _MOST_BYTES:  # a frame would have ended
            self.strange = self._open[-_MOST_BYTES:]
            self._open = b""
        return frames

    @property
    def rest(self) -> bytes:
        """The last bytes that were not part of a frame, and those of a frame that has not ended."""
        return self.strange + self._open


class Transport(Protocol):
    """Carries bytes to and from a board. Its errors are ToolErrors."""

    name: str

    def read(self, seconds: float) -> bytes:
        """Returns the bytes that have arrived, or b"". It waits up to `seconds` for the first byte."""

    def write(self, data: bytes) -> None:
        """Sends all of `data`."""

    def close(self) -> None:
        """Closes the port or connection."""


class Link:
    """A session with a board's test firmware. `what` names the board in errors; `again` counts requests that
    were repeated.
    """

    def __init__(self, transport: Transport, what: str) -> None:
        self._transport = transport
        self._what = what
        self._decoder = Decoder()
        self._sequence = 0
        self._session = 1 + secrets.randbelow(0xFFFE)  # should differ from earlier sessions
        self._received = 0  # bytes
        self.again = 0

    def hello(self, seconds: float) -> bytes:
        """Begins the session; returns the bytes of the firmware's description of itself.

        Raises ToolError if no test firmware answers within `seconds`.
        """
        return self.ask("H", b"", "h", seconds).payload

    def ask(self, kind: str, payload: bytes, answers: str, seconds: float) -> Frame:
        """Sends a request, and returns its answer, whose kind is one of the letters of `answers`.

        Raises ToolError if there is no answer within `seconds`, or the board was reset; ProgramError if the
        firmware ended.
        """
        self._sequence = (self._sequence + 1) % 256
        data = Frame(kind, self._sequence, self._session, payload).encode()
        end, received_before = time.monotonic() + seconds, self._received
        self._transport.write(data)
        resend_at = time.monotonic() + RESEND_SECONDS
        while True:
            now = time.monotonic()
            if now >= end:
                raise self._silence(kind, seconds, received_before)
            if now >= resend_at:
                self.again += 1
                self._transport.write(data)
                resend_at = now + RESEND_SECONDS
            received = self._transport.read(max(min(end, resend_at) - now, 0.0))
            self._received += len(received)
            for frame in self._decoder.feed(received):
                if self._is_answer(frame, kind) and frame.kind in answers:
                    return frame

    def _is_answer(self, frame: Frame, kind: str) -> bool:
        """Whether the frame answers the current request. Raises the errors that a frame of the firmware
        reports.
        """
        if frame.kind == "f" and frame.session in (0, self._session):
            code, operator = struct.unpack_from("<ii", frame.payload.ljust(8, b"\0"))
            text = frame.payload[8:].decode("ascii", "replace").strip()
            error = ProgramError(f"the firmware on {self._what} ended with exit code {code}: {text}")
            error.running = operator if operator >= 0 else None
            raise error
        if kind != "H" and frame.kind == "b":
            raise self._was_reset()
        if frame.sequence != self._sequence:
            return False  # it answers an earlier request that was sent twice
        if frame.kind == "e" and frame.payload[:1] == bytes([_NO_SESSION]):
            raise self._was_reset()
        if frame.session != self._session:
            return False
        if frame.kind == "e":
            what = f"{self._what} does not understand the request '{kind}'"
            hint = "flash the test firmware again: another version of buildtool made this one"
            raise ToolError(what, hint=hint)
        return True

    def _was_reset(self) -> ToolError:
        hint = [
            Hint("run it again; if it happens again, check the board's power supply and cable"),
            Hint("let no debugger or other program reset the board during the run"),
        ]
        return ToolError(f"{self._what} was reset in the middle of the run", hint=hint)

    def _silence(self, kind: str, seconds: float, received_before: int) -> ToolError:
        """Returns the error for a request of a kind that was not answered within `seconds`.

        `received_before` is the number of bytes that had arrived before the request. The hints depend on what
        has arrived since.
        """
        name, rest = self._transport.name, self._decoder.rest
        if kind == "H":
            return _unknown_data_error(self._what, name, rest, seconds)
        if not (arrived := self._received - received_before):
            what = f"{self._what} stopped answering: nothing arrived on {name} for {seconds:g} s"
            return ToolError(what, hint="check the cable and the board's power, reset it, and run again")
        what = f"{self._what} sent no complete answer within {seconds:g} s"
        return ToolError(
            f"{what} ({arrived:,} bytes arrived on {name})",
            hint="a shorter cable, a lower baud rate in the board's file ([uart] baud)",
        )


def _unknown_data_error(what: str, name: str, rest: bytes, seconds: float) -> ToolError:
    if not rest:
        hint = [
            Hint("check that the board has power, that this is its port, and that its pins are wired"),
            Hint("flash the test firmware (buildtool flash), and press the board's reset button"),
            Hint("after a run that was cut off, reset the board"),
        ]
        return ToolError(f"{what} does not answer: nothing arrived on {name} within {seconds:g} s", hint=hint)
    another = Hint("the board has other firmware (buildtool flash), or this is another device's port")
    shown = rest[-SHOWN:]
    printable = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in shown) / len(shown)
    if printable > 0.9:
        words = shown.decode("ascii", "replace").strip()
        return ToolError(f"{name} sends data, but not from the test firmware: {words!r}", hint=[another])
    baud = Hint("check the baud rate in the board's file ([uart] baud), and the clock of the UART")
    text = f"{name} sends data, but not from the test firmware: {len(rest)} bytes are not a frame"
    return ToolError(text, hint=[baud, another])
