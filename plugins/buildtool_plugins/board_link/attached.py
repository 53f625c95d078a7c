"""Runs test firmware on an attached board, or on an emulated board over its UART."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from buildtool.base.errors import Hint, ToolError, suggest
from buildtool.base.modes import Level
from buildtool.target.hardware import MemoryKind
from buildtool.target.types import Board, BoardLink, Reality, RunRequest, RunResult
from buildtool_plugins.board_link import conversation
from buildtool_plugins.board_link.link import Link, Transport
from buildtool_plugins.board_link.ports import SerialPort, Socket, is_pseudo, only_port
from buildtool_plugins.tools.sandbox import start

if TYPE_CHECKING:
    from collections.abc import Callable

EMULATED = Reality(Level.EMULATOR, "emulated board over its UART")
_PTY = re.compile(rb"char device redirected to (\S+)")
_START_SECONDS = 20.0
_RTT_SERVER = ("127.0.0.1", 9090)


def run(board: Board, image: Path, request: RunRequest, board_link: BoardLink) -> RunResult:
    """Runs the firmware image that is in the flash of an attached board.

    If the board is emulated, the emulator is started with this image. Raises ToolError if the link or a
    program fails, and ProgramError if the firmware does.
    """
    if board_link.wire == "semihosting":
        from buildtool_plugins.board_link.semihosted import run as run_by_files

        return run_by_files(board, image, request, board_link)
    expected = conversation.identity(image, _read_only(board))
    if board_link.is_emulated:
        with emulate_uart(board, image) as port:
            return _run_on_port(board, request, port, expected)
    if board_link.wire == "rtt":
        port = board_link.port or _find_rtt_server(board, image)
        return _run_on_port(board, request, port, expected, over_rtt=True)
    return _run_on_port(board, request, board_link.port or only_port(), expected)


def _run_on_port(
    board: Board, request: RunRequest, port: str, expected: conversation.Identity, over_rtt: bool = False
) -> RunResult:
    what = f"board '{board.name}'"
    baud = board.uart.baud if board.uart is not None else 0
    transport: Transport = Socket(port) if over_rtt else SerialPort(port, baud)
    reality = reality_of(port, over_rtt)
    with closing(transport):
        link = Link(transport, what)
        firmware = conversation.read_hello(link.hello(conversation.HELLO_SECONDS), what)
        conversation.check_identity(firmware, expected, what)
        conversation.check_memory(link, expected, what)
        result = conversation.run(link, firmware, request, what)
    return conversation.finish_result(result, board, reality, firmware.core_hz)


def _find_rtt_server(board: Board, image: Path) -> str:
    """Returns the default address of the RTT server.

    Raises ToolError if no server listens there; its hint is the command that starts one.
    """
    with socket.socket() as connection:
        if connection.connect_ex(_RTT_SERVER) == 0:
            return f"{_RTT_SERVER[0]}:{_RTT_SERVER[1]}"
    tools = board.probe.tools if board.probe is not None else ()
    options = next((tool.options for tool in tools if tool.name == "openocd"), ("-f", "board/NAME.cfg"))
    setup = f"rtt setup {conversation.rtt_block(image):#x} 64 {{SEGGER RTT}}"
    commands = ("init", "reset run", "sleep 500", setup, "rtt start", f"rtt server start {_RTT_SERVER[1]} 0")
    words = ["openocd", *options, *(word for text in commands for word in ("-c", text))]
    what = f"no RTT server runs at {_RTT_SERVER[0]}:{_RTT_SERVER[1]}"
    raise ToolError(what, hint=[Hint(f"in another terminal: {shlex.join(words)}"), suggest(flashed=True)])


def reality_of(port: str, over_rtt: bool = False) -> Reality:
    """Returns how close a run over this connection is to a real board: it is emulated if `port` is a
    pseudo-terminal.
    """
    if over_rtt:
        return Reality(Level.BOARD, "on the board, over RTT")
    if is_pseudo(port):
        return EMULATED
    return Reality(Level.BOARD, "on the board, over its serial port")


@contextmanager
def emulate_uart(board: Board, image: Path) -> Iterator[str]:
    """A context in which the emulated board runs the firmware image. Yields the name of its UART's
    pseudo-terminal.
    """
    from buildtool_plugins.qemu.runner import command

    words = _with_uart(command(board, image))
    with tempfile.TemporaryFile() as output, start(words, output) as process:
        for _ in range(int(_START_SECONDS / 0.02)):
            if match := _PTY.search(os.pread(output.fileno(), 1 << 16, 0)):
                yield match[1].decode()
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
                break
        text = os.pread(output.fileno(), 1 << 16, 0).decode("utf-8", "replace").strip()
        raise ToolError(f"the emulator opened no pseudo-terminal: {text[-400:]}", path=str(process.args))


def _with_uart(words: Sequence[str]) -> list[str]:
    """Returns an emulator's command line in which its first UART is a pseudo-terminal."""
    at = words.index("-serial")
    return [*words[: at + 1], "pty", *words[at + 2 :]]


def _read_only(board: Board) -> Callable[[int], bool]:
    memories = [memory for memory in board.memories if memory.kind is MemoryKind.ROM]
    return lambda address: any(m.base <= address < m.base + m.size for m in memories)
