"""The host's side of a board on the desk: what is wrong at the other end of the wire is told."""

from __future__ import annotations

import os
import select
import struct
import sys
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from buildtool_plugins.wire import desk, link, ports, talk
from buildtool_plugins.wire.link import Decoder, Frame
from buildtool_plugins.wire.ports import SerialPort

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.plugin import ProgramError
from buildtool.target.registry import load_board
from buildtool.target.types import RunRequest, RunResult

HELLO = struct.Struct("<10I64s")
RESULT = struct.Struct("<iIIIIQ")


@dataclass
class FakeBoard:
    """What it says; `cycles`: by operator. `serve` answers a request, None: not at all."""

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
        """The frame, or bytes, that answer a request."""
        self.seen.append(request.kind)
        if self.serve is not None:
            return self.serve(request)
        payload = self._payload(request)
        return Frame(request.kind.lower(), request.sequence, request.session, payload).encoded()

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
    """The name of a pseudo-terminal that the board is behind."""
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


WHAT = "board 'b'"
BOARD = load_board("nucleo-f767zi")
IDENTITY = talk.Identity("0" * 32, "00" * 16, ())
INPUTS = RunRequest({"input.bin": bytes(16)}, ("output.bin", "report.txt"), timeout=2.0)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "AGAIN_SECONDS", 0.02)


def run(board: FakeBoard, request: RunRequest = INPUTS, expected: talk.Identity = IDENTITY) -> RunResult:
    with on_a_port(board) as port:
        return desk._run(BOARD, request, port, expected)


def failure(board: FakeBoard, **more: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        run(board, **more)  # type: ignore[arg-type]
    return caught.value


def test_a_board_gives_outputs_and_cycles_and_the_level_is_the_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeBoard(core_hz=BOARD.clock_hz)
    behind_a_program = run(fake)
    assert behind_a_program.files["output.bin"] == fake.output * 2
    assert b"sets=2\n" in behind_a_program.files["report.txt"]
    assert behind_a_program.reality == desk.EMULATED
    assert (behind_a_program.cycles, behind_a_program.total_cycles) == ({}, None)
    assert "emulator" in behind_a_program.no_cycles
    monkeypatch.setattr(desk, "is_pseudo", lambda port: False)
    on_the_desk = run(fake)
    assert on_the_desk.reality is not None and on_the_desk.reality.level is Level.BOARD
    assert on_the_desk.cycles == {0: 10, 1: 1 << 33, 2: 30}
    assert on_the_desk.total_cycles == (1 << 33) + 45
    still = run(FakeBoard(counter=2))
    assert still.total_cycles is None and "stands still" in still.no_cycles
    with pytest.raises(ToolError, match=r"runs at 16,000,000 Hz, and its file says 216,000,000"):
        run(FakeBoard(core_hz=16_000_000))


def test_firmware_that_is_not_the_images_is_refused_with_both_named() -> None:
    assert "version 2 of the test firmware's protocol" in failure(FakeBoard(protocol=2)).text
    assert f"expected {'0' * 32}, found {'f' * 32}" in failure(FakeBoard(plan="f" * 32)).text
    assert f"expected {'00' * 16}, found {'ab' * 16}" in failure(FakeBoard(layout=b"\xab" * 16)).text
    stored = talk.Identity(IDENTITY.plan, IDENTITY.layout, ((0x08000000, b"code"),))
    error = failure(FakeBoard(crc=5), expected=stored)
    assert "4 bytes at 0x08000000 have CRC-32 00000005" in error.text and "flash" in error.hint
    three = RunRequest({"input.bin": bytes(3)}, INPUTS.outputs)
    assert "takes 8 bytes a set, and was given 3" in failure(FakeBoard(), request=three).text


Serve = Callable[[Frame], bytes | None]


def answering(fake: FakeBoard, kind: str, otherwise: Serve) -> FakeBoard:
    """Serves as ever, but for one kind of request."""
    plain = FakeBoard(**{**vars(fake), "serve": None})
    fake.serve = lambda request: otherwise(request) if request.kind == kind else plain.answer(request)
    return fake


def silent(monkeypatch: pytest.MonkeyPatch, said: bytes | None) -> FakeBoard:
    """A board that says no more than this once the network has run; from then on nobody is patient."""
    plain = FakeBoard()

    def serve(request: Frame) -> bytes | None:
        if request.kind == "I":
            monkeypatch.setattr(talk, "ANSWER_SECONDS", 0.1)
        return said if request.kind == "O" else plain.answer(request)

    return FakeBoard(serve=serve)


def test_a_board_that_ends_resets_or_falls_silent_in_the_middle_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = struct.pack("<ii", 103, 4) + b"fault: HardFault at pc=0x08000123\n"
    fault = answering(FakeBoard(), "I", lambda r: Frame("f", r.sequence, r.session, words).encoded())
    error = failure(fault)
    assert isinstance(error, ProgramError) and error.running == 4 and "HardFault at pc" in error.text
    for reset in (Frame("b", 0, 0), Frame("e", 1, 0, b"\1")):
        board = answering(
            FakeBoard(), "O", lambda r, b=reset: Frame(b.kind, r.sequence, 0, b.payload).encoded()
        )
        assert "was reset in the middle of the run" in failure(board).text
    with monkeypatch.context() as patience:
        error = failure(silent(patience, None))
    assert "stopped answering: nothing came on /dev/pts/" in error.text and "cable" in error.hint
    with monkeypatch.context() as patience:
        error = failure(silent(patience, b"\0\1\2\3\0"))
    assert "no answer that is whole within 0.1 s" in error.text and "baud" in error.hint
    error = failure(answering(FakeBoard(), "W", lambda r: Frame("e", r.sequence, r.session, b"\2").encoded()))
    assert "does not understand the request 'W'" in error.text
    status = struct.pack("<iIIIIQ", -3, 0, 0, 0, 0, 0)
    error = failure(
        answering(FakeBoard(), "I", lambda r: Frame("i", r.sequence, r.session, status).encoded())
    )
    assert "invoke gave status -3" in error.text


def test_answers_that_come_late_or_twice_do_no_harm() -> None:
    plain, kept = FakeBoard(), list[bytes]()

    def late(request: Frame) -> bytes:
        """The answer of the request before, twice, and then its own."""
        kept.append(plain.answer(request) or b"")
        return b"".join([*kept[-2:-1] * 2, kept[-1]])

    assert run(FakeBoard(serve=late)).files["output.bin"] == plain.output * 2


@pytest.fixture
def port() -> Iterator[tuple[int, str]]:
    """The other end of a pseudo-terminal, and its name."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    ("said", "expected", "hint"),
    [
        (b"", "does not answer: nothing came", "power"),
        (b"Hello from Zephyr\r\n", "speaks, but not as the test firmware: 'Hello from Zephyr'", "flash"),
        (bytes(range(128, 256)), "128 bytes came that are no frame", "baud"),
    ],
)
def test_who_speaks_otherwise_is_no_test_firmware(
    port: tuple[int, str], said: bytes, expected: str, hint: str
) -> None:
    ours, name = port
    with closing(SerialPort(name, 115200)) as opened:
        os.write(ours, said)
        with pytest.raises(ToolError) as caught:
            link.Link(opened, WHAT).hello(0.1)
    assert expected in caught.value.text and hint in caught.value.hint


def test_ports_that_cannot_be_had_are_told(port: tuple[int, str], tmp_path: Path) -> None:
    _, name = port
    with closing(SerialPort(name, 115200)) as opened:
        with pytest.raises(ToolError, match="another program has the port"):
            SerialPort(name, 115200)
        opened.close()
    with pytest.raises(ToolError, match="there is no such port"):
        SerialPort("/dev/ttyNONE", 115200)
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match="no serial port"):
        SerialPort(str(tmp_path / "file"), 115200)
    with pytest.raises(ToolError, match=r"cannot connect to the RTT server at 127\.0\.0\.1:1"):
        ports.Socket("127.0.0.1:1")
    for place in ("localhost", ":9090", "localhost:99999", "localhost:x"):
        with pytest.raises(ToolError, match=f"'{place}' is no server's place"):
            ports.Socket(place)


def test_without_pyserial_its_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(ToolError, match="pyserial, which is not installed") as caught:
        SerialPort("/dev/ttyACM0", 115200)
    assert "pip install pyserial" in caught.value.hint


def test_the_port_that_is_meant_is_the_only_one_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, said in (([], "no serial port of a board"), (["/dev/a", "/dev/b"], "2 serial ports: /dev/a")):
        monkeypatch.setattr(ports, "serial_ports", lambda found=found: found)
        with pytest.raises(ToolError, match=said):
            ports.only_port()
    monkeypatch.setattr(ports, "serial_ports", lambda: ["/dev/a"])
    assert ports.only_port() == "/dev/a"


def test_a_port_that_goes_away_is_told(port: tuple[int, str]) -> None:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with closing(SerialPort(os.ttyname(theirs), 115200)) as opened:
        os.close(theirs)
        os.close(ours)
        with pytest.raises(ToolError, match="the connection broke off"):
            for _ in range(3):
                opened.write(b"x")
                opened.read(0.05)
