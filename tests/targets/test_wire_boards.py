"""Networks on emulated boards over their UARTs: outputs are exact, whatever the link does to the bytes."""

from __future__ import annotations

import random
import re
import shlex
import socket
import subprocess
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from boardruns import file_of
from buildtool_plugins.board_link import attached, conversation, link, semihosted
from buildtool_plugins.board_link.ports import SerialPort, Socket
from buildtool_plugins.qemu.runner import command
from daemons import eventually
from loaded import own_board
from paths import script
from rttprobe import attached as attached_probe

from buildtool.api import handle
from buildtool.api.requests import parse
from buildtool.base.errors import ToolError
from buildtool.base.modes import Reference
from buildtool.base.session import Session
from buildtool.firmware.datasets.arrays import draw_inputs
from buildtool.firmware.run import execute
from buildtool.firmware.run.compare import referrer
from buildtool.firmware.run.execute import build_temporarily, input_file, plan_and_sources
from buildtool.target.registry import load_board
from buildtool.target.types import Board, BoardLink, RunRequest
from buildtool.zoo.drawn import NetBuilder

WHAT = "the board"
PROBE = '[probe]\nopenocd = ["-f", "mine.cfg"]'
EXITED = "echo 'semihosting: *** application exited"  # what OpenOCD prints
# STM32F405 as QEMU emulates it: no clock control, but the USART of STM32F4.
F405 = """
title = "STM32F405, emulated"
[memory.ram]
size = "128K"
[emulator]
kind = "qemu-system-arm"
machine = "netduinoplus2"
[uart]
driver = "stm32_usart"
base = 0x40011000
clock_hz = 84000000
"""


_FOLDER = tempfile.TemporaryDirectory(prefix="wire-boards-")


def _write_network() -> str:
    """Writes a small network whose first operator needs the most stack. Returns its path."""
    net = NetBuilder(4, "wired")
    x = net.conv(net.input((1, 25, 20, 1)), 8, kernel=(3, 3), stride=(2, 2), same=True)
    for _ in range(2):
        x = net.conv(net.conv(x, 0, kernel=(3, 3), same=True, depth_multiplier=1), 8)
    return file_of(net.graph([net.softmax(net.dense(net.mean(x), 6))]), Path(_FOLDER.name), "wired")


NET = _write_network()


@dataclass
class Built:
    """A firmware image that answers over a link, its inputs, and its expected outputs."""

    board: Board
    image: Path
    inputs: bytes
    outputs: bytes

    def run(self, opened):
        """Begins a session, runs the network and compares the outputs."""
        connection = link.Link(opened, WHAT)
        firmware = conversation.read_hello(connection.hello(conversation.HELLO_SECONDS), WHAT)
        expected = conversation.identity(self.image, attached._read_only(self.board))
        conversation.check_identity(firmware, expected, WHAT)
        conversation.check_memory(connection, expected, WHAT)
        request = RunRequest({"input.bin": self.inputs}, ("output.bin", "report.txt"), timeout=60.0)
        result = conversation.run(connection, firmware, request, WHAT)
        assert result.files["output.bin"] == self.outputs
        self.again = connection.again
        return result


@contextmanager
def firmware(board, wire="serial", **options):
    request = parse({"kind": "flash", "model": NET, "board": board, "wire": wire, "options": options})
    network, sources = plan_and_sources(request, Session())
    inputs = draw_inputs(network.graph, 2, 7)
    want = [referrer(Reference.NUMPY, b"", network.source, network.graph)(values, False) for values in inputs]
    outputs = b"".join(
        np.ascontiguousarray(values[t]).tobytes() for values in want for t in network.graph.outputs
    )
    with build_temporarily(network, sources) as image:
        yield Built(network.target.board, image.elf, input_file(network.graph, inputs), outputs)


@contextmanager
def machine(image, folder):
    """Runs the firmware image in QEMU; yields its UART's pseudo-terminal, and a function for its monitor."""
    words = [word for word in command(image.board, image.image) if word != "-no-reboot"]
    at, path = words.index("-monitor"), folder / "monitor"
    words[at + 1] = f"unix:{path},server=on,wait=off"
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(attached._with_uart(words), stdin=subprocess.DEVNULL, **output)
    try:
        match = None
        while match is None:
            line = process.stdout.readline()
            assert line, "QEMU ended"
            match = re.search(rb"redirected to (\S+)", line)
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(path))
            yield match[1].decode(), lambda text: monitor.sendall(f"{text}\n".encode())
    finally:
        process.kill()
        process.wait()


class Bad:
    """A link that changes, loses or adds one of `every` bytes, in both directions."""

    def __init__(self, inner, every, seed):
        self.name, self._inner, self._every, self._chance = inner.name, inner, every, random.Random(seed)
        self.on_write = lambda count: None
        self._writes = 0

    def _garbled(self, data):
        out = bytearray()
        for byte in data:
            if self._every and self._chance.randrange(self._every) == 0:
                out += self._chance.choice([b"", bytes([byte ^ 1 << self._chance.randrange(8)]), b"\0\xff"])
            else:
                out.append(byte)
        return bytes(out)

    def read(self, seconds):
        return self._garbled(self._inner.read(seconds))

    def write(self, data):
        self._writes += 1
        self.on_write(self._writes)
        self._inner.write(self._garbled(data))

    def close(self):
        self._inner.close()


@pytest.mark.slow
def test_a_bad_wire_a_reset_and_another_build_on_one_emulated_board(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "RESEND_SECONDS", 0.05)
    with firmware("cortex-m4") as image, machine(image, tmp_path) as (port, monitor):
        with closing(SerialPort(port, 115200)) as opened:
            result = image.run(opened)
            assert result.total_cycles == 0 and "no cycle counter" in result.no_cycles
            assert 0 < int(re.search(rb"stack_high_water=(\d+)", result.files["report.txt"])[1]) < 2048
            image.run(Bad(opened, 400, 3))  # about every third frame is damaged
            assert image.again > 5
            # One host stops in the middle of a frame, and another one follows.
            opened.write(b"\0\x05W\1")
            image.run(opened)
            reset = Bad(opened, 0, 0)
            reset.on_write = lambda count: monitor("system_reset") if count == 9 else None
            with pytest.raises(ToolError, match="was reset in the middle of the run"):
                image.run(reset)
            image.run(opened)
        identity = conversation.identity(image.image, attached._read_only(image.board))
        other_plan = conversation.Identity("0" * 32, identity.layout, identity.stored)
        stored = tuple((at, data[:-1] + b"?") for at, data in identity.stored)
        changed = conversation.Identity(identity.plan, identity.layout, stored)
        request = RunRequest({"input.bin": image.inputs}, ("output.bin", "report.txt"))
        for wrong, message in ((other_plan, "has another plan"), (changed, "has another build")):
            with pytest.raises(ToolError, match=message):
                attached._run_on_port(image.board, request, port, wrong)


@pytest.mark.slow
def test_every_tensor_and_rows_come_over_the_wire_as_a_request_asks():
    request = {"kind": "validate", "model": NET, "board": "cortex-m4", "wire": "serial", "inputs": 1}
    answer = handle({**request, "tensors": True})
    assert answer["exact"] and answer["tensors_compared"] > 7
    answer = handle({**request, "options": {"image": "stream"}})
    assert answer["exact"] and answer["tensors_compared"] == 1
    assert (answer["level"], answer["level_text"]) == ("emulator", "emulated board over its UART")


@pytest.mark.slow
def test_a_profile_over_a_uart_counts_no_cycles_of_an_emulators():
    """In QEMU, mcycle follows the host's clock. (Cortex-M has no counter: the test of a debugger says so.)"""
    answer = handle({"kind": "profile", "model": NET, "board": "hifive1", "wire": "serial"})
    assert answer["exact"] and answer["level"] == "emulator"
    assert answer["cycles"] is None and "an emulator counts no cycles" in answer["no_cycles"]
    assert all(row["cycles"] is None for row in answer["per_operator"])


@pytest.mark.slow
def test_the_usart_driver_of_stm32f4_answers_on_an_emulated_one(tmp_path):
    board = own_board(tmp_path, F405, "nucleo-f412zg")
    with (
        firmware(board) as image,
        machine(image, tmp_path) as (port, _),
        closing(SerialPort(port, 9600)) as wire,
    ):
        image.run(wire)


@pytest.mark.slow
def test_the_uart_driver_of_nrf51_answers_on_an_emulated_one():
    answer = handle({"kind": "validate", "model": NET, "board": "microbit", "wire": "serial", "inputs": 2})
    assert answer["exact"] and answer["level"] == "emulator"


@pytest.mark.slow
def test_a_run_on_a_board_flashes_it_and_checks_what_its_memory_holds(tmp_path, monkeypatch):
    """The tool that flashes is a stub that records its arguments; the firmware image runs already."""
    board, stub = own_board(tmp_path, PROBE), tmp_path / "openocd"
    script(stub, f'printf "%s\\n" "$@" > {tmp_path}/called')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    request = {"model": NET, "board": board, "on": "board"}
    with firmware(board) as image, machine(image, tmp_path) as (port, _):
        answer = handle({"kind": "validate", **request, "wire": f"serial:{port}"})
        assert answer["exact"] and answer["level"] == "emulator"  # behind this port is a program
        assert (tmp_path / "called").read_text().splitlines()[:3] == ["-f", "mine.cfg", "-c"]
        script(stub, "echo Error: open failed; exit 1")
        with pytest.raises(ToolError, match="openocd ended with exit status 1:\n    Error: open failed"):
            handle({"kind": "validate", **request, "wire": f"serial:{port}"})
        profile = handle({"kind": "profile", **request, "wire": f"serial:{port}", "flashed": True})
        assert profile["exact"] and profile["cycles"] is None
        other = {**request, "flashed": True, "options": {"image": "resident"}}
        with pytest.raises(ToolError, match="has another plan"):
            handle({"kind": "validate", **other, "wire": f"serial:{port}"})


@pytest.mark.slow
def test_a_fault_comes_over_the_wire_with_its_operator(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "refuse_unless_enough", lambda *args: None)
    board = own_board(tmp_path, "stack_bytes = 448")
    with pytest.raises(ToolError, match=r"code 104: fault: MemManage after a stack overflow") as caught:
        handle({"kind": "validate", "model": NET, "board": board, "wire": "serial"})
    assert caught.value.operator.startswith("#0 ") and "computed CONV_2D" in caught.value.text


def test_firmware_that_writes_no_cycles_is_told_as_such(tmp_path):
    (tmp_path / "net.elf").write_bytes(b"another build")
    with pytest.raises(ToolError, match="does not write cycles") as caught:
        semihosted.run(
            load_board("cortex-m4"), tmp_path / "net.elf", RunRequest({}, ()), BoardLink("semihosting")
        )
    assert "--wire semihosting" in caught.value.hint


@pytest.mark.slow
def test_files_and_cycles_come_through_a_debugger(tmp_path, monkeypatch):
    """OpenOCD is a stub that starts QEMU: the test covers everything but the debug probe."""
    board, stub = own_board(tmp_path, PROBE), tmp_path / "openocd"
    request = {"kind": "profile", "model": NET, "board": board, "wire": "semihosting"}
    emulated = handle(request)
    assert emulated["exact"] and emulated["level"] == "emulator"
    assert emulated["cycles"] is None and "no cycle counter" in emulated["no_cycles"]
    on_board = {**request, "on": "board", "flashed": True}
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with firmware(board, "semihosting") as image:
        line = shlex.join(command(image.board, image.image))
        script(stub, f"echo $@ > {tmp_path}/called\n{line}\n{EXITED} normally ***'\nsleep 60")
        answer = handle(on_board)
    assert answer["exact"] and answer["level_text"] == "on the board, through its debugger"
    assert (tmp_path / "called").read_text().startswith("-f mine.cfg -c init -c reset halt")
    script(stub, f"{EXITED} with error-code 104 ***'")
    with pytest.raises(ToolError, match="application exited with error-code 104"):
        handle(on_board)
    script(stub, "echo Error: open failed; exit 1")
    with pytest.raises(ToolError, match=r"did not end: OpenOCD ended\n\s*Error: open failed"):
        handle(on_board)


@pytest.mark.slow
def test_a_network_answers_over_rtt_through_a_probe():
    """The probe is QEMU's GDB server, which stops the core for every memory access."""
    with firmware("cortex-m4", "rtt") as image:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [*command(image.board, image.image), "-S", "-gdb", f"tcp:127.0.0.1:{port}"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        try:
            eventually(lambda: listens(port))
            with attached_probe(port, image.image) as probe:
                image.run(Socket("RTT", probe))
        finally:
            process.kill()
            process.wait()


def listens(port):
    """Whether a program listens on the port. It is not connected: QEMU takes only one connection."""
    with socket.socket() as probe_socket:
        probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe_socket.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
