"""The host's side of an attached board: errors at the board's end of the link are reported."""

import os
import random
import struct
import subprocess
import sys
import tty
from contextlib import closing

import pytest
from buildtool_plugins.board_link import ROOT, attached, conversation, link, ports
from buildtool_plugins.board_link.link import MOST_PAYLOAD, Decoder, Frame, decode
from buildtool_plugins.board_link.ports import SerialPort
from fakeboard import FakeBoard, on_a_port
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs_tool
from paths import TESTS

from buildtool.base.errors import ToolError
from buildtool.base.modes import Level
from buildtool.target.plugin import ProgramError
from buildtool.target.registry import load_board
from buildtool.target.types import RunRequest

WHAT = "board 'b'"
BOARD = load_board("nucleo-f767zi")
IDENTITY = conversation.Identity("0" * 32, "00" * 16, ())
INPUTS = RunRequest({"input.bin": bytes(16)}, ("output.bin", "report.txt"), timeout=2.0)


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(link, "RESEND_SECONDS", 0.02)


def run(board, request=INPUTS, expected=IDENTITY):
    with on_a_port(board) as port:
        return attached._run_on_port(BOARD, request, port, expected)


def failure(board, **more):
    with pytest.raises(ToolError) as caught:
        run(board, **more)
    return caught.value


def test_a_board_gives_outputs_and_cycles_and_the_level_is_the_connections(monkeypatch):
    fake = FakeBoard(core_hz=BOARD.clock_hz)
    behind_a_program = run(fake)
    assert behind_a_program.files["output.bin"] == fake.output * 2
    assert b"sets=2\n" in behind_a_program.files["report.txt"]
    assert behind_a_program.reality == attached.EMULATED
    assert (behind_a_program.cycles, behind_a_program.total_cycles) == ({}, None)
    assert "emulator" in behind_a_program.no_cycles
    monkeypatch.setattr(attached, "is_pseudo", lambda port: False)
    on_board = run(fake)
    assert on_board.reality is not None and on_board.reality.level is Level.BOARD
    assert on_board.cycles == {0: 10, 1: 1 << 33, 2: 30}
    assert on_board.total_cycles == (1 << 33) + 45
    still = run(FakeBoard(counter=2))
    assert still.total_cycles is None and "does not count" in still.no_cycles
    with pytest.raises(ToolError, match=r"runs at 16,000,000 Hz, and its file says 216,000,000"):
        run(FakeBoard(core_hz=16_000_000))


def test_firmware_that_is_not_the_images_is_refused_with_both_named():
    assert "version 2 of the test firmware's protocol" in failure(FakeBoard(protocol=2)).text
    assert f"expected {'0' * 32}, found {'f' * 32}" in failure(FakeBoard(plan="f" * 32)).text
    assert f"expected {'00' * 16}, found {'ab' * 16}" in failure(FakeBoard(layout=b"\xab" * 16)).text
    stored = conversation.Identity(IDENTITY.plan, IDENTITY.layout, ((0x08000000, b"code"),))
    error = failure(FakeBoard(crc=5), expected=stored)
    assert "4 bytes at 0x08000000 have CRC-32 00000005" in error.text and "flash" in error.hint
    three = RunRequest({"input.bin": bytes(3)}, INPUTS.outputs)
    assert "has 8 bytes; input.bin has 3 bytes" in failure(FakeBoard(), request=three).text


def answering(kind, *frame):
    """A board that answers requests of one kind with `frame`, a kind and a payload."""
    plain, (letter, payload) = FakeBoard(), frame

    def serve(request):
        if request.kind != kind:
            return plain.answer(request)
        session = 0 if letter in "b" or payload == b"\1" else request.session
        return Frame(letter, request.sequence, session, payload).encode()

    return FakeBoard(serve=serve)


def silent(monkeypatch, answer):
    """A board that sends no more than `answer` once the network has run; then timeouts are short."""
    plain = FakeBoard()

    def serve(request):
        if request.kind == "I":
            monkeypatch.setattr(conversation, "ANSWER_SECONDS", 0.1)
        return answer if request.kind == "O" else plain.answer(request)

    return FakeBoard(serve=serve)


def test_a_board_that_ends_resets_or_falls_silent_in_the_middle_is_told(monkeypatch):
    words = struct.pack("<ii", 103, 4) + b"fault: HardFault at pc=0x08000123\n"
    error = failure(answering("I", "f", words))
    assert isinstance(error, ProgramError) and error.running == 4 and "HardFault at pc" in error.text
    for reset in (("b", b""), ("e", b"\1")):
        assert "was reset in the middle of the run" in failure(answering("O", *reset)).text
    with monkeypatch.context() as patience:
        error = failure(silent(patience, None))
    assert "stopped answering: nothing arrived on /dev/pts/" in error.text and "cable" in error.hint
    with monkeypatch.context() as patience:
        error = failure(silent(patience, b"\0\1\2\3\0"))
    assert "sent no complete answer within 0.1 s" in error.text and "baud" in error.hint
    assert "does not understand the request 'W'" in failure(answering("W", "e", b"\2")).text
    status = struct.pack("<iIIIIQ", -3, 0, 0, 0, 0, 0)
    assert "invoke returned status -3" in failure(answering("I", "i", status)).text


def test_answers_that_come_late_or_twice_do_no_harm():
    plain, answers = FakeBoard(), list[bytes]()

    def late(request):
        """Returns the previous request's answer twice, and then this request's."""
        answers.append(plain.answer(request) or b"")
        return b"".join([*answers[-2:-1] * 2, answers[-1]])

    assert run(FakeBoard(serve=late)).files["output.bin"] == plain.output * 2


@pytest.fixture
def port():
    """A pseudo-terminal: the file of the board's end, and the name of the host's end."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    ("data", "expected", "hint"),
    [
        (b"", "does not answer: nothing arrived", "power"),
        (b"Hello from Zephyr\r\n", "data, but not from the test firmware: 'Hello from Zephyr'", "flash"),
        (bytes(range(128, 256)), "128 bytes are not a frame", "baud"),
    ],
)
def test_who_speaks_otherwise_is_no_test_firmware(port, data, expected, hint):
    ours, name = port
    with closing(SerialPort(name, 115200)) as opened:
        os.write(ours, data)
        with pytest.raises(ToolError) as caught:
            link.Link(opened, WHAT).hello(0.1)
    assert expected in caught.value.text and hint in caught.value.hint


def test_ports_that_cannot_be_had_are_told(port, tmp_path):
    _, name = port
    (tmp_path / "file").touch()
    with closing(SerialPort(name, 115200)):
        for other, message in (
            (name, "another program uses the port"),
            ("/dev/ttyNONE", "there is no such port"),
            (str(tmp_path / "file"), "not a serial port"),
        ):
            with pytest.raises(ToolError, match=message):
                SerialPort(other, 115200)
    with pytest.raises(ToolError, match=r"cannot connect to the RTT server at 127\.0\.0\.1:1"):
        ports.Socket("127.0.0.1:1")
    for place in ("localhost", ":9090", "localhost:99999", "localhost:x"):
        with pytest.raises(ToolError, match=f"'{place}' is not a server's address"):
            ports.Socket(place)


def test_without_pyserial_its_line_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(ToolError, match="pyserial, which is not installed") as caught:
        SerialPort("/dev/ttyACM0", 115200)
    assert "pip install pyserial" in caught.value.hint


def test_the_port_that_is_meant_is_the_only_one_there_is(monkeypatch):
    for found, message in (
        ([], "no serial port of a board"),
        (["/dev/a", "/dev/b"], "2 serial ports: /dev/a"),
    ):
        monkeypatch.setattr(ports, "serial_ports", lambda found=found: found)
        with pytest.raises(ToolError, match=message):
            ports.only_port()
    monkeypatch.setattr(ports, "serial_ports", lambda: ["/dev/a"])
    assert ports.only_port() == "/dev/a"


def test_a_port_that_goes_away_is_told():
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with closing(SerialPort(os.ttyname(theirs), 115200)) as opened:
        os.close(theirs)
        os.close(ours)
        with pytest.raises(ToolError, match="the connection broke"):
            for _ in range(3):
                opened.write(b"x")
                opened.read(0.05)


# ---- frames ------------------------------------------------------------------------------------------


payloads = st.one_of(
    st.binary(max_size=MOST_PAYLOAD),
    st.integers(0, MOST_PAYLOAD).map(bytes),  # zeros alone
    st.integers(0, MOST_PAYLOAD).map(lambda n: b"\xff" * n),
)
frames = st.builds(Frame, st.sampled_from("HWabz"), st.integers(0, 255), st.integers(0, 65535), payloads)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(frames, st.binary(max_size=20)), max_size=6), st.integers(1, 50))
def test_frames_come_out_of_a_stream_with_rubbish_between_them(sent, piece):
    stream = b"".join(rubbish + frame.encode() for frame, rubbish in sent)
    decoder, received = Decoder(), list[Frame]()
    for at in range(0, len(stream), piece):
        received += decoder.feed(stream[at : at + piece])
    assert [frame for frame in received if frame in [one for one, _ in sent]] == [frame for frame, _ in sent]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(frames, st.data())
def test_a_byte_that_is_changed_or_lost_makes_no_frame(frame, data):
    encoded = frame.encode().strip(b"\0")
    at = data.draw(st.integers(0, len(encoded) - 1))
    other = data.draw(st.integers(1, 255).filter(lambda byte: byte != encoded[at]))
    assert decode(encoded) == frame
    assert decode(encoded[:at] + bytes([other]) + encoded[at + 1 :]) is None
    assert decode(encoded[:at] + encoded[at + 1 :]) is None


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    """frames.c with sanitizers, on standard input and output."""
    program = tmp_path_factory.mktemp("frames") / "frames"
    flags = ["-std=gnu99", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [ROOT / "frames.c", TESTS / "targets/wire/frames_main.c"]
    command = [needs_tool("cc"), *flags, f"-I{ROOT}", *sources, "-o", program]
    subprocess.run(command, check=True, timeout=60)
    return program


def answers_to(firmware, stream):
    process = subprocess.run([firmware], input=stream, capture_output=True, check=True, timeout=60)
    return Decoder().feed(process.stdout)


@pytest.mark.slow
def test_the_firmware_answers_each_request_of_its_session_once(firmware):
    """A repeated request gets the same answer, other sessions are refused, a hello begins a new session."""
    hello, other = Frame("H", 1, 7), Frame("W", 9, 8, b"abc")
    work = [Frame("W", n % 256, 7, bytes([n % 256, 0]) * (n % 121)) for n in range(2, 300)]
    stream = [Frame("W", 5, 0, b"x"), hello, *work, work[-1], other, work[-1], Frame("H", 3, 8), other]
    answers = answers_to(firmware, b"".join(frame.encode() for frame in stream))
    turned = [Frame("w", one.sequence, 7, one.payload[::-1]) for one in work]
    expected = [Frame("e", 5, 0, b"\1"), Frame("h", 1, 7), *turned, turned[-1], Frame("e", 9, 7, b"\1")]
    assert answers[: len(expected)] == expected
    assert answers[-2:] == [Frame("h", 3, 8), Frame("w", 9, 8, b"cba")]


@pytest.mark.slow
def test_the_firmware_stands_whatever_comes(firmware):
    """After rubbish, half frames and frames that are too long, the next whole request is answered."""
    chance = random.Random(4)
    for _ in range(12):
        stream = b""
        for number in range(200):
            whole = Frame("W", number, 7, chance.randbytes(chance.randrange(MOST_PAYLOAD))).encode()
            cut = chance.randrange(len(whole))
            rubbish = [whole[:cut], whole[cut:], chance.randbytes(cut), bytes(cut), b"\1" * 600]
            stream += chance.choice(rubbish)
        last = Frame("W", 201, 7, bytes(range(240)))
        stream += b"\0" + Frame("H", 200, 7).encode() + last.encode()
        expected = [Frame("h", 200, 7), Frame("w", 201, 7, last.payload[::-1])]
        assert answers_to(firmware, stream)[-2:] == expected
