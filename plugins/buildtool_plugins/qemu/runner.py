"""Runs a board's image in QEMU: files by semihosting, instructions counted on request."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from buildtool.errors import ToolError
from buildtool.target.types import Board, RunRequest, RunResult
from buildtool_plugins.tools.sandbox import run_program

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
}


def find_qemu(kind: str) -> str:
    """The emulator's path; raises ToolError with what to install."""
    path = shutil.which(kind)
    if path is None:
        raise ToolError(f"the emulator {kind} was not found", hint=_APT.get(kind, f"install {kind}"))
    return path


def command(board: Board, image: Path) -> list[str]:
    """The command line that runs `image` on the board's emulator; raises ToolError."""
    emulator = board.emulator
    if emulator is None or not emulator.kind.startswith("qemu-system-"):
        raise ToolError(f"board '{board.name}' has no emulator", hint="flash it, or choose an emulated board")
    program = find_qemu(emulator.kind)
    return [program, "-M", emulator.machine, *emulator.options, *OPTIONS, "-kernel", str(image.resolve())]


def run(board: Board, image: Path, request: RunRequest) -> RunResult:
    """Runs `image` in a fresh folder; counts are summed over every invoke of the run.

    Raises ToolError: no emulator, a fault, a non-zero exit, the time limit, a missing output file.
    """
    what = f"the firmware on {board.name}"
    line = command(board, image)
    if not request.count:
        files, text = run_program(line, request, what=what, clean=_own_text)
        return RunResult(files=files, text=text)
    from buildtool_plugins.qemu import counter

    plugin = counter.counting_plugin()
    isa = "riscv" if "riscv" in line[0] else "arm"
    # By its name in the run's folder: a comma in the path of the cache would end the argument.
    option = ["-plugin", f"./{plugin.name},isa={isa},out={counter.OUTPUT}"]
    files, text = run_program(
        [line[0], *option, *line[1:]],
        request,
        what=what,
        links=(plugin,),
        optional=(counter.OUTPUT,),
        clean=_own_text,
    )
    if counter.OUTPUT not in files:
        hint = "QEMU 4.2 to 8.2 have plugins of version 1"
        raise ToolError("QEMU ran, but its counting plugin did not", hint=hint)
    counts, total = counter.parse_counts(files.pop(counter.OUTPUT))
    return RunResult(files=files, text=text, counts=counts, total_instructions=total)


def _own_text(text: str) -> str:
    """The firmware's text, without QEMU's remark that its network device is not connected."""
    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines if not re.match(r"qemu-system-\w+: warning: nic .* has no peer", line)
    )
