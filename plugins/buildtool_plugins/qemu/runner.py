"""Runs a board's firmware image in QEMU, with files by semihosting. On request it counts instructions."""

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

# The firmware's text and files go through semihosting; QEMU opens no ports.
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
    """Returns the command line that runs `image` on the board's emulator. Raises ToolError if the board has
    none, or it is not installed.
    """
    emulator = board.emulator
    if emulator is None or not emulator.kind.startswith("qemu-system-"):
        hints = [suggest("on the attached board", on="board"), Hint("or choose an emulated board")]
        raise ToolError(f"board '{board.name}' has no emulator", hint=hints)
    kind, program = emulator.kind, shutil.which(emulator.kind)
    if program is None:
        raise ToolError(f"the emulator {kind} was not found", hint=_APT.get(kind, f"install {kind}"))
    return [program, "-M", emulator.machine, *emulator.options, *OPTIONS, "-kernel", str(image.resolve())]


def run(board: Board, image: Path, request: RunRequest) -> RunResult:
    """Runs `image` in an empty folder. Counts are sums over all invokes of the run.

    Raises ToolError if the emulator or an output file is missing, and at the time limit; ProgramError for a
    fault or a non-zero exit code.
    """
    what = f"the firmware on {board.name}"
    line = command(board, image)
    try:
        if not request.count:
            files, text = run_program(line, request, what=what, clean=_remove_qemu_warning)
            return RunResult(files=files, text=text)
        plugin_arguments = counting.arguments(board) if request.blocks else []
        plugin = counting.counting_plugin(counting.BLOCKS_SOURCE if request.blocks else counting.SOURCE)
        counting_line, outputs = with_plugin(line, plugin, plugin_arguments), (counting.OUTPUT,)
        files, text = run_program(
            counting_line, request, what=what, links=(plugin,), optional=outputs, clean=_remove_qemu_warning
        )
    except ProgramError as error:
        error.running = _find_failing_operator(line, request)
        raise
    if counting.OUTPUT not in files:
        hint = "QEMU 4.2 to 8.2 have plugins of version 1"
        raise ToolError("QEMU ran, but its counting plugin did not", hint=hint)
    counts_text = files.pop(counting.OUTPUT)
    counts, total = counting.parse_counts(counts_text)
    executed = counting.parse_blocks(counts_text, board) if request.blocks else None
    return RunResult(files=files, text=text, counts=counts, total_instructions=total, executed=executed)


def _remove_qemu_warning(text: str) -> str:
    """Returns the text of a run without QEMU's warning that its network device is not connected."""
    remark = re.compile(r"qemu-system-\w+: warning: nic .* has no peer")
    return "".join(line for line in text.splitlines(keepends=True) if not remark.match(line))


def with_plugin(line: list[str], plugin: Path, more: Sequence[str] = ()) -> list[str]:
    """Returns the command line with a counting plugin and its further arguments `more`. The plugin must lie
    in the run's folder.
    """
    isa = next((isa for isa in ("riscv", "xtensa") if isa in Path(line[0]).name), "arm")
    # A path in the run's folder: a comma in the path of the cache would end the argument.
    arguments = ",".join([f"./{plugin.name}", f"isa={isa}", f"out={counting.OUTPUT}", *more])
    return [line[0], "-plugin", arguments, *line[1:]]


def _find_failing_operator(line: list[str], request: RunRequest) -> int | None:
    """Runs a failing run again, and returns the position of the operator in which it fails; None if that is
    not known.
    """
    try:
        plugin = counting.counting_plugin()
        again = dataclasses.replace(request, outputs=(counting.OUTPUT,))
        files = what_is_left(with_plugin(line, plugin), again, (plugin,))
    except ToolError:  # no compiler for the plugin, or a QEMU without plugins
        return None
    return counting.parse_running(files.get(counting.OUTPUT, b""))
