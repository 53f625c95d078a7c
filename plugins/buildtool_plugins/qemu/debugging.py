"""What serves an image to a debugger: QEMU, halted before the first instruction, or a probe's own server."""

from __future__ import annotations

import shutil
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, ToolError
from buildtool.target.hardware import Probe, ProbeTool
from buildtool.target.types import Board, DebugServer
from buildtool_plugins.qemu.runner import command

HERE = "127.0.0.1"  # nobody else may connect
_PROBE = """[probe]
    openocd = ["-f", "board/NAME.cfg"]"""
_INSTALL = {"openocd": "apt-get install openocd", "pyocd": "pip install pyocd"}


def debug_server(board: Board, port: int, debuggers: tuple[str, ...]) -> DebugServer:
    """The server of a board; TargetError where neither an emulator nor a probe is known, ToolError."""
    if board.own_emulator is not None:
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
    tool, program = _server(probe)
    if tool.name == "pyocd":
        words = ("gdbserver", "--port", str(port), "--semihosting", *tool.options)
        return DebugServer((program, *words), -1, debuggers, ("monitor reset halt", "load"))
    words = (*tool.options, "-c", f"bindto {HERE}", "-c", f"gdb_port {port}")
    said = ("monitor reset halt", "monitor arm semihosting enable", "load")
    return DebugServer((program, *words), -1, debuggers, said)


def _server(probe: Probe) -> tuple[ProbeTool, str]:
    """The first tool of a probe that serves debuggers and is there, and its path."""
    serving = [tool for tool in probe.tools if tool.name in _INSTALL]
    for tool in serving:
        if program := shutil.which(tool.name):
            return tool, program
    if not serving:
        raise ToolError(
            "no tool of the board's file serves debuggers", hint=f"in the board's file:\n    {_PROBE}"
        )
    hints = [Hint(_INSTALL[tool.name]) for tool in serving]
    raise ToolError(f"the probe's server {serving[0].name} was not found", hint=hints)
