"""Runs a board's image in QEMU: files by semihosting, instructions counted on request."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from buildtool.base.errors import Hint, ToolError, suggest
from buildtool.target.plugin import ProgramError
from buildtool.target.types import Board, RunRequest, RunResult
from buildtool_plugins.qemu import counting
from buildtool_plugins.tools.sandbox import run_program, what_is_left

# Text and files of the firmware go through semihosting; nothing listens anywhere.
OPTIONS = (
    *("-semihosting-config", "enable=on,target=native"),
    *("-display", "none", "-monitor", "none", "-serial", "none", "-parallel", "none", "-nic", "none"),
    "-no-reboot",
)
_APT = {
    "qemu-system-arm": "apt-get install qemu-system-arm",
    "qemu-system-riscv32": "apt-get install qemu-system-misc",
    "qemu-system-riscv64": "apt-get install qemu-system-misc",
    "qemu-system-xtensa": "apt-get install qemu-system-misc",
}


def command(board: Board, image: Path) -> list[str]:
    """The command line that runs `image` on the board's emulator; raises ToolError."""
    emulator = board.emulator
    if emulator is None or not emulator.kind.startswith("qemu-system-"):
        hints = [suggest("on the desk", on="board"), Hint("or choose an emulated board")]
        raise ToolError(f"board '{board.name}' has no emulator", hint=hints)
    kind, program = emulator.kind, shutil.which(emulator.kind)
    if program is None:
        raise ToolError(f"the emulator {kind} was not found", hint=_APT.get(kind, f"install {kind}"))
    return [program, "-M", emulator.machine, *emulator.options, *OPTIONS, "-kernel", str(image.resolve())]


def run(board: Board, image: Path, request: RunRequest) -> RunResult:
    """Runs `image` in a fresh folder; counts are summed over every invoke of the run.

    Raises ToolError: no emulator, the time limit, a missing output file; ProgramError: a fault, a non-zero
    exit.
    """
    what = f"the firmware on {board.name}"
    line = command(board, image)
    try:
        if not request.count:
            files, text = run_program(line, request, what=what, clean=_own_text)
            return RunResult(files=files, text=text)
        more = counting.arguments(board) if request.blocks else []
        plugin = counting.counting_plugin(counting.BLOCKS_SOURCE if request.blocks else counting.SOURCE)
        counted, outputs = with_plugin(line, plugin, more), (counting.OUTPUT,)
        files, text = run_program(
            counted, request, what=what, links=(plugin,), optional=outputs, clean=_own_text
        )
    except ProgramError as error:
        error.running = _running(line, request)
        raise
    if counting.OUTPUT not in files:
        hint = "QEMU 4.2 to 8.2 have plugins of version 1"
        raise ToolError("QEMU ran, but its counting plugin did not", hint=hint)
    said = files.pop(counting.OUTPUT)
    counts, total = counting.parse_counts(said)
    executed = counting.parse_blocks(said, board) if request.blocks else None
    return RunResult(files=files, text=text, counts=counts, total_instructions=total, executed=executed)


def _own_text(text: str) -> str:
    """The firmware's text, without QEMU's remark that its network device is not connected."""
    remark = re.compile(r"qemu-system-\w+: warning: nic .* has no peer")
    return "".join(line for line in text.splitlines(keepends=True) if not remark.match(line))


def with_plugin(line: list[str], plugin: Path, more: Sequence[str] = ()) -> list[str]:
    """The command line with a counting plugin, which is to lie in the run's folder; `more`: its arguments."""
    isa = next((isa for isa in ("riscv", "xtensa") if isa in Path(line[0]).name), "arm")
    # By its name in the run's folder: a comma in the path of the cache would end the argument.
    arguments = ",".join([f"./{plugin.name}", f"isa={isa}", f"out={counting.OUTPUT}", *more])
    return [line[0], "-plugin", arguments, *line[1:]]


def _running(line: list[str], request: RunRequest) -> int | None:
    """The operator in which a run fails, found by running it once more; None where that cannot be known."""
    try:
        plugin = counting.counting_plugin()
        again = dataclasses.replace(request, outputs=(counting.OUTPUT,))
        left = what_is_left(with_plugin(line, plugin), again, (plugin,))
    except ToolError:  # no compiler for the plugin, or a QEMU without plugins: it is an extra
        return None
    return counting.parse_running(left.get(counting.OUTPUT, b""))
