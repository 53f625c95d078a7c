"""What serves an image to a debugger: QEMU, halted before the first instruction, or a probe's own server."""

from __future__ import annotations

import shutil
from pathlib import Path

from buildtool.errors import TargetError, ToolError
from buildtool.target.types import Board, DebugServer, Probe
from buildtool_plugins.qemu.runner import command

HERE = "127.0.0.1"  # nobody else may connect
_PROBE = """[probe]
    server = "openocd"
    options = ["-f", "board/NAME.cfg"]"""


def debug_server(board: Board, port: int, debuggers: tuple[str, ...]) -> DebugServer:
    """The server of a board; TargetError where neither an emulator nor a probe is known, ToolError."""
    if board.emulator is not None:
        *line, kernel, _ = command(board, Path("image"))
        words = (*line, "-S", "-gdb", f"tcp:{HERE}:{port}", kernel, "")
        return DebugServer(words, len(words) - 1, debuggers)
    if board.probe is not None:
        return _of_probe(board.probe, port, debuggers)
    raise TargetError(
        f"board '{board.name}' has no emulator, and its file names no probe",
        hint=f"a .toml file that extends it, with\n    {_PROBE}",
    )


def _of_probe(probe: Probe, port: int, debuggers: tuple[str, ...]) -> DebugServer:
    """The server of a probe: the debugger loads the image, and files come by semihosting."""
    program = shutil.which(probe.server)
    if program is None:
        hint = {"openocd": "apt-get install openocd", "pyocd": "pip install pyocd"}[probe.server]
        raise ToolError(f"the probe's server {probe.server} was not found", hint=hint)
    if probe.server == "pyocd":
        words = ("gdbserver", "--port", str(port), "--semihosting", *probe.options)
        return DebugServer((program, *words), -1, debuggers, ("monitor reset halt", "load"))
    words = (*probe.options, "-c", f"bindto {HERE}", "-c", f"gdb_port {port}")
    said = ("monitor reset halt", "monitor arm semihosting enable", "load")
    return DebugServer((program, *words), -1, debuggers, said)
