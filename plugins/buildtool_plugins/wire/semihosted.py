"""Runs of test firmware that reads and writes files through a debugger, and counts its core's cycles."""

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
from buildtool.target.types import Board, Desk, Reality, RunRequest, RunResult
from buildtool_plugins.tools.sandbox import start
from buildtool_plugins.wire.talk import reason, settled

CYCLES = "cycles.bin"
EMULATED = Reality(Level.EMULATOR, "emulated, with the core's counter")
BOARD = Reality(Level.BOARD, "on the board, through its debugger")
_HEAD = struct.Struct("<IIQ")
_EXITED = re.compile(rb"application exited (normally|with.*)")
_LOOK_SECONDS = 0.1


def run(board: Board, image: Path, request: RunRequest, desk: Desk) -> RunResult:
    """Runs an image, in the emulator or by OpenOCD on the board; ToolError, ProgramError."""
    from buildtool_plugins.qemu import runner

    if CYCLES.encode() not in image.read_bytes():  # the file's name is in the firmware that writes it
        hint = "build it with --wire semihosting"
        raise ToolError("the image writes no cycles by semihosting", path=str(image), hint=hint)
    wanted = dataclasses.replace(request, outputs=(*request.outputs, CYCLES), count=False)
    if desk.is_emulated:
        result, reality = runner.run(board, image, wanted), EMULATED
    else:
        result, reality = _by_openocd(board, wanted), BOARD
    files = dict(result.files)
    state, core_hz, total = _HEAD.unpack_from(files[CYCLES])
    counts = struct.iter_unpack("<Q", files.pop(CYCLES)[_HEAD.size :])
    cycles = {i: count for i, (count,) in enumerate(counts)}
    counted = RunResult(files, result.text, cycles=cycles, total_cycles=total, no_cycles=reason(state))
    return settled(counted, board, reality, core_hz)


def _by_openocd(board: Board, request: RunRequest) -> RunResult:
    """Resets the board and serves the files of its firmware until that has ended."""
    tools = board.probe.tools if board.probe is not None else ()
    options = next((tool.options for tool in tools if tool.name == "openocd"), None)
    if options is None:
        text = f"the file of board '{board.name}' does not say how OpenOCD reaches it"
        raise UsageError(text, option="wire", hint='[probe] openocd = ["-f", "board/NAME.cfg"]')
    program = shutil.which("openocd")
    commands = ("init", "reset halt", "arm semihosting enable", "resume")
    words = [program or "openocd", *options, *(word for one in commands for word in ("-c", one))]
    if program is None:
        hint = f"apt-get install openocd; it would be run as: {shlex.join(words)}"
        raise ToolError("semihosting on a board needs OpenOCD, which was not found", hint=hint)
    with scratch() as name:
        folder = Path(name)
        for file, data in request.files.items():
            (folder / file).write_bytes(data)
        said = _run_openocd(words, folder, request.timeout, board)
        files = {file: (folder / file).read_bytes() for file in request.outputs if (folder / file).is_file()}
    for file in request.outputs:
        if file not in files:
            raise ToolError(f"the firmware on board '{board.name}' wrote no file '{file}':\n{said[-800:]}")
    return RunResult(files, said)


def _run_openocd(words: list[str], folder: Path, seconds: float, board: Board) -> str:
    """What OpenOCD said until the firmware ended; it is ended then."""
    what = f"the firmware on board '{board.name}'"
    over, text, end = False, b"", time.monotonic() + seconds
    with (folder / ".said").open("w+b") as said, start(words, said, folder) as process:
        while not (over or _EXITED.search(text) or time.monotonic() > end):
            time.sleep(_LOOK_SECONDS)
            over = process.poll() is not None
            text = (folder / ".said").read_bytes()
    shown = text.decode("utf-8", "replace").strip()
    exited = _EXITED.search(text)
    if exited is None:
        how = "OpenOCD ended" if over else f"it was still running after {seconds:g} s"
        raise ToolError(f"{what} did not end: {how}\n{shown[-800:]}")
    if exited[1] != b"normally":
        raise ProgramError(f"{what} {exited[0].decode()}:\n{shown[-800:]}")
    return shown
