"""A fake board: a thread on a pseudo-terminal that speaks the test firmware's protocol.

It computes nothing. It has what no emulator has, such as a running cycle counter, and plays firmware that
the host does not expect.
"""

from __future__ import annotations

import os
import select
import struct
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from buildtool_plugins.board_link.link import Decoder, Frame

HELLO = struct.Struct("<10I64s")
RESULT = struct.Struct("<iIIIIQ")


@dataclass
class FakeBoard:
    """The board's answers. `cycles`: of each operator. `serve` replaces the answers; None: no answer."""

    protocol: int = 1
    input_bytes: int = 8
    output_bytes: int = 4
    core_hz: int = 0
    counter: int = 0
    cycles: tuple[int, ...] = (10, 1 << 33, 30)
    plan: str = "0" * 32
    layout: bytes = bytes(16)
    output: bytes = b"\1\2\3\4"
    crc: int = 0
    seen: list[str] = field(default_factory=list)
    serve: Callable[[Frame], bytes | None] | None = None

    def answer(self, request: Frame) -> bytes | None:
        self.seen.append(request.kind)
        if self.serve is not None:
            return self.serve(request)
        payload = self._payload(request)
        return Frame(request.kind.lower(), request.sequence, request.session, payload).encode()

    def _payload(self, request: Frame) -> bytes:
        header = bytes(32) + self.layout + bytes(16)
        hello = (self.protocol, 0, self.input_bytes, self.output_bytes, 64, len(self.cycles))
        first = int.from_bytes(request.payload[:4], "little")
        answers = {
            "H": lambda: HELLO.pack(*hello, self.core_hz, self.counter, 4, 0, header) + self.plan.encode(),
            "K": lambda: struct.pack("<I", self.crc),
            "S": lambda: struct.pack("<iI", 0, 100),
            "I": lambda: RESULT.pack(0, 64, 200, 0, 0, sum(self.cycles) + 5),
            "O": lambda: self.output[first:],
            "C": lambda: struct.pack(f"<{len(self.cycles) - first}Q", *self.cycles[first:]),
        }
        return answers.get(request.kind, bytes)()


@contextmanager
def on_a_port(board: FakeBoard) -> Iterator[str]:
    """Serves the board on a pseudo-terminal. Yields its name."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    ended = threading.Event()

    def serve() -> None:
        decoder = Decoder()
        while not ended.is_set():
            if select.select([ours], [], [], 0.02)[0]:
                for request in decoder.feed(os.read(ours, 4096)):
                    if (data := board.answer(request)) is not None:
                        os.write(ours, data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(theirs)
    finally:
        ended.set()
        thread.join()
        os.close(ours)
        os.close(theirs)
