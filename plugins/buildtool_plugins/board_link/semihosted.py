"""Runs test firmware that reads and writes files through a debugger (semihosting), and counts its core's
cycles.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import struct
import time
from pathlib import Path

from buildtool.base.errors import ToolError, UsageError
from buildtool.base.locks import scratch
from buildtool.base.modes import Level
from buildtool.target.plugin import ProgramError
from buildtool.target.types import Board, BoardLink, Reality, RunRequest, RunResult
from buildtool_plugins.board_link.conversation import explain_no_cycles, finish_result
from buildtool_plugins.tools.sandbox import start

CYCLES = "cycles.bin"
EMULATED = Reality(Level.EMULATOR, "emulated, with the core's counter")
BOARD = Reality(Level.BOARD, "on the board, through its debugger")
_HEAD = struct.Struct("<IIQ")
_EXITED = re.compile(rb"application exited (normally|with.*)")
_LOOK_SECONDS = 0.1


def run(board: Board, image: Path, request: RunRequest, board_link: BoardLink) -> RunResult:
    """Runs a firmware image in the emulator, or on the board through OpenOCD. Raises ToolError if a program
    fails, and ProgramError if the firmware does.
    """
    from buildtool_plugins.qemu import runner

    if CYCLES.encode() not in image.read_bytes():  # firmware that writes the file contains its name
        hint = "build it with --wire semihosting"
        text = "the firmware image does not write cycles by semihosting"
        raise ToolError(text, path=str(image), hint=hint)
    profiling = dataclasses.replace(request, outputs=(*request.outputs, CYCLES), count=False)
    if board_link.is_emulated:
        result, reality = runner.run(board, image, profiling), EMULATED
    else:
        result, reality = _run_by_openocd(board, profiling), BOARD
    files = dict(result.files)
    state, core_hz, total = _HEAD.unpack_from(files[CYCLES])
    counts = struct.iter_unpack("<Q", files.pop(CYCLES)[_HEAD.size :])
    cycles = {i: count for i, (count,) in enumerate(counts)}
    with_cycles = RunResult(
        files, result.text, cycles=cycles, total_cycles=total, no_cycles=explain_no_cycles(state)
    )
    return finish_result(with_cycles, board, reality, core_hz)


def _run_by_openocd(board: Board, request: RunRequest) -> RunResult:
    """Resets the board, and lets OpenOCD serve the firmware's files until the firmware ends. Returns the
    result.
    """
    tools = board.probe.tools if board.probe is not None else ()
    options = next((tool.options for tool in tools if tool.name == "openocd"), None)
    if options is None:
        text = f"the file of board '{board.name}' has no options for OpenOCD"
        raise UsageError(text, option="wire", hint='[probe] openocd = ["-f", "board/NAME.cfg"]')
    program = shutil.which("openocd")
    commands = ("init", "reset halt", "arm semihosting enable", "resume")
    words = [program or "openocd", *options, *(word for command in commands for word in ("-c", command))]
    if program is None:
        hint = f"apt-get install openocd; the command would be: {shlex.join(words)}"
        raise ToolError("semihosting on a board needs OpenOCD, which was not found", hint=hint)
    with scratch() as name:
        folder = Path(name)
        for file, data in request.files.items():
            (folder / file).write_bytes(data)
        output = _run_openocd(words, folder, request.timeout, board)
        files = {file: (folder / file).read_bytes() for file in request.outputs if (folder / file).is_file()}
    for file in request.outputs:
        if file not in files:
            raise ToolError(f"the firmware on board '{board.name}' wrote no file '{file}':\n{output[-800:]}")
    return RunResult(files, output)


def _run_openocd(words: list[str], folder: Path, seconds: float, board: Board) -> str:
    """Runs OpenOCD with the arguments `words` until the firmware ends, at most `seconds`. Returns what it
    printed.
    """
    what = f"the firmware on board '{board.name}'"
    has_ended, text, end = False, b"", time.monotonic() + seconds
    with (folder / ".said").open("w+b") as output, start(words, output, folder) as process:
        while not (has_ended or _EXITED.search(text) or time.monotonic() > end):
            time.sleep(_LOOK_SECONDS)
            has_ended = process.poll() is not None
            text = (folder / ".said").read_bytes()
    shown = text.decode("utf-8", "replace").strip()
    match = _EXITED.search(text)
    if match is None:
        how = "OpenOCD ended" if has_ended else f"it was still running after {seconds:g} s"
        raise ToolError(f"{what} did not end: {how}\n{shown[-800:]}")
    if match[1] != b"normally":
        raise ProgramError(f"{what} {match[0].decode()}:\n{shown[-800:]}")
    return shown
