"""A connection to a board's test firmware: a request is asked again until its answer comes.

Frames (frames.h describes them) go over a stream of bytes that may lose, garble or add some.
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

AGAIN_SECONDS = 0.5  # without an answer, after which a request is asked again
SHOWN = 60  # bytes of what somebody else sent
_NO_SESSION = 1
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

    def encode(self) -> bytes:
        """As it goes over the wire, zeros on both sides."""
        content = _HEAD.pack(ord(self.kind), self.sequence, self.session) + self.payload
        content += _CRC.pack(zlib.crc32(content))
        runs = content.split(_END)  # of 254 bytes at most, because the whole is
        return _END + b"".join(bytes([len(run) + 1]) + run for run in runs) + _END


def decode(data: bytes) -> Frame | None:
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
        frames = []
        for part in filter(None, parts):
            if frame := decode(part):
                frames.append(frame)
            else:
                self.strange = (self.strange + part)[-_MOST:]
        if len(self._open) > 2 * _MOST:  # frames have a zero more often
            self.strange = self._open[-_MOST:]
            self._open = b""
        return frames

    @property
    def rest(self) -> bytes:
        """What came and was no frame, and what may become one."""
        return self.strange + self._open


class Transport(Protocol):
    """Bytes to and from a board; errors are ToolErrors."""

    name: str

    def read(self, seconds: float) -> bytes:
        """What has come; waits so long for a first byte. b"": none came."""

    def write(self, data: bytes) -> None:
        """Sends all of it."""

    def close(self) -> None:
        """Gives the port back."""


class Link:
    """A session with a board. `what` names the board in errors; `again`: requests that were asked again."""

    def __init__(self, transport: Transport, what: str) -> None:
        self._transport = transport
        self._what = what
        self._decoder = Decoder()
        self._sequence = 0
        self._session = 1 + secrets.randbelow(0xFFFE)  # any that no session before had is good
        self._received = 0  # bytes
        self.again = 0

    def hello(self, seconds: float) -> bytes:
        """Begins the session; the firmware's description of itself. ToolError where nobody answers so."""
        return self.ask("H", b"", "h", seconds).payload

    def ask(self, kind: str, payload: bytes, answers: str, seconds: float) -> Frame:
        """The answer to a request, one of the kinds `answers`; ToolError, ProgramError."""
        self._sequence = (self._sequence + 1) % 256
        data = Frame(kind, self._sequence, self._session, payload).encode()
        end, before = time.monotonic() + seconds, self._received
        self._transport.write(data)
        again = time.monotonic() + AGAIN_SECONDS
        while True:
            now = time.monotonic()
            if now >= end:
                raise self._silence(kind, seconds, before)
            if now >= again:
                self.again += 1
                self._transport.write(data)
                again = now + AGAIN_SECONDS
            received = self._transport.read(max(min(end, again) - now, 0.0))
            self._received += len(received)
            for frame in self._decoder.feed(received):
                if self._is_answer(frame, kind) and frame.kind in answers:
                    return frame

    def _is_answer(self, frame: Frame, kind: str) -> bool:
        """Whether it answers the request that is being asked; errors of the firmware's are raised."""
        if frame.kind == "f" and frame.session in (0, self._session):
            code, operator = struct.unpack_from("<ii", frame.payload.ljust(8, b"\0"))
            text = frame.payload[8:].decode("ascii", "replace").strip()
            ended = ProgramError(f"the firmware on {self._what} ended with exit code {code}: {text}")
            ended.running = operator if operator >= 0 else None
            raise ended
        if kind != "H" and frame.kind == "b":
            raise self._was_reset()
        if frame.sequence != self._sequence:
            return False  # of a request that was asked twice
        if frame.kind == "e" and frame.payload[:1] == bytes([_NO_SESSION]):
            raise self._was_reset()
        if frame.session != self._session:
            return False
        if frame.kind == "e":
            what = f"{self._what} does not understand the request '{kind}'"
            hint = "flash the test firmware anew: this one is of another version of buildtool"
            raise ToolError(what, hint=hint)
        return True

    def _was_reset(self) -> ToolError:
        hint = [
            Hint("run it again; if that comes back, look at the board's power supply and cable"),
            Hint("let no debugger or other program reset the board meanwhile"),
        ]
        return ToolError(f"{self._what} was reset in the middle of the run", hint=hint)

    def _silence(self, kind: str, seconds: float, before: int) -> ToolError:
        """The error for a request without an answer: what came instead decides what may be wrong."""
        name, rest = self._transport.name, self._decoder.rest
        if kind == "H":
            return _stranger(self._what, name, rest, seconds)
        if not (came := self._received - before):
            what = f"{self._what} stopped answering: nothing came on {name} for {seconds:g} s"
            return ToolError(what, hint="check the cable and the board's power, reset it, and run again")
        what = f"{self._what} gave no answer that is whole within {seconds:g} s"
        return ToolError(
            f"{what} ({came:,} bytes came on {name})",
            hint="a shorter cable, a lower baud rate in the board's file ([uart] baud)",
        )


def _stranger(what: str, name: str, rest: bytes, seconds: float) -> ToolError:
    if not rest:
        hint = [
            Hint("check that the board has power, that this is its port, and that its pins are wired"),
            Hint("flash the test firmware (buildtool flash), and press the board's reset button"),
            Hint("after a run that was cut off, reset the board"),
        ]
        return ToolError(f"{what} does not answer: nothing came on {name} within {seconds:g} s", hint=hint)
    another = Hint("another firmware is on the board, or this is another port: buildtool flash")
    shown = rest[-SHOWN:]
    printable = sum(byte in b"\t\r\n" or 32 <= byte < 127 for byte in shown) / len(shown)
    if printable > 0.9:
        words = shown.decode("ascii", "replace").strip()
        return ToolError(f"{name} speaks, but not as the test firmware: {words!r}", hint=[another])
    baud = Hint("check the baud rate in the board's file ([uart] baud), and the clock that it is made from")
    text = f"{name} speaks, but not as the test firmware: {len(rest)} bytes came that are not a frame"
    return ToolError(text, hint=[baud, another])
