"""The programs that flash a board, and the debug servers that give a debugger access to it."""

from __future__ import annotations

import shutil
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, ToolError, UsageError, did_you_mean
from buildtool.target.hardware import SERVERS
from buildtool.target.types import Board, DebugServer, Flashing
from buildtool_plugins.qemu.runner import command

_LINES = """[probe]
    openocd = ["-f", "board/NAME.cfg"]
    pyocd = ["--target", "NAME"]"""
INSTALL = {
    "openocd": "apt-get install openocd",
    "pyocd": "pip install pyocd",
    "esptool": "pip install esptool",
    "xflash": "install XMOS's XTC tools, and run their SetEnv",
}


def flashing(board: Board, image: Path, tool: str = "") -> Flashing:
    """Returns the command that flashes `image` with the program `tool`.

    If `tool` is "", the command is for the first installed program in the board's file; if no program is
    installed, for the first one. Raises UsageError if the board's file does not name the program.
    """
    tools = board.probe.tools if board.probe is not None else ()
    if not tools:
        message = f"the file of board '{board.name}' names no tool that flashes it"
        raise UsageError(message, hint=f"a .toml file that extends it, with\n    {_LINES}")
    names = [each.name for each in tools]
    if tool and tool not in names:
        text = f"the file of board '{board.name}' has no options for '{tool}'"
        raise UsageError(text, option="tool", hint=did_you_mean(tool, names))
    candidates = [each for each in tools if tool in ("", each.name)]
    selected = next((each for each in candidates if shutil.which(each.name)), candidates[0])
    name, options, program = selected.name, selected.options, shutil.which(selected.name)
    words: tuple[str, ...]
    match name:
        case "openocd":  # braces make any path one word of Tcl
            words = (*options, "-c", f"program {{{image}}} verify reset exit")
        case "pyocd":
            words = ("load", "--no-wait", *options, "--format", "elf", str(image))
        case "esptool":
            words = (*options, "write_flash", "0x0", str(image.with_suffix(".bin")))
        case _:
            words = (*options, "--factory", str(image.with_suffix(".xe")))
    return Flashing(name, program is not None, (program or name, *words), INSTALL[name])


# ---- debuggers --------------------------------------------------------------------------------------

HERE = "127.0.0.1"  # other machines cannot connect
_PROBE = """[probe]
    openocd = ["-f", "board/NAME.cfg"]"""


def debug_server(board: Board, port: int, debuggers: tuple[str, ...]) -> DebugServer:
    """Returns a board's debug server, which listens at the TCP port `port`.

    Raises TargetError if the board has neither emulator nor probe, and ToolError if the probe's server is
    missing.
    """
    if board.own_emulator is not None:
        *line, kernel, _ = command(board, Path("image"))
        words = (*line, "-S", "-gdb", f"tcp:{HERE}:{port}", kernel, "")
        return DebugServer(words, len(words) - 1, debuggers)
    if board.probe is None:
        text = f"board '{board.name}' has no emulator, and its file names no probe"
        raise TargetError(text, hint=f"a .toml file that extends it, with\n    {_PROBE}")
    serving = [tool for tool in board.probe.tools if tool.name in SERVERS]
    if not serving:
        hint = f"in the board's file:\n    {_PROBE}"
        raise ToolError("the board's file names no debug server", hint=hint)
    tool = next((tool for tool in serving if shutil.which(tool.name)), serving[0])
    program = shutil.which(tool.name)
    if program is None:
        hints = [Hint(INSTALL[tool.name]) for tool in serving]
        raise ToolError(f"the probe's server {tool.name} was not found", hint=hints)
    # The debugger loads the firmware image; the firmware reads and writes files by semihosting.
    if tool.name == "pyocd":
        words = ("gdbserver", "--port", str(port), "--semihosting", *tool.options)
        return DebugServer((program, *words), -1, debuggers, ("monitor reset halt", "load"))
    words = (*tool.options, "-c", f"bindto {HERE}", "-c", f"gdb_port {port}")
    first_commands = ("monitor reset halt", "monitor arm semihosting enable", "load")
    return DebugServer((program, *words), -1, debuggers, first_commands)
