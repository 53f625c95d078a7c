"""How programs reach a board: the tools of its file that flash it, and what serves it to a debugger."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from buildtool.base.errors import Hint, TargetError, ToolError, UsageError, did_you_mean
from buildtool.target.hardware import SERVERS, Probe, ProbeTool
from buildtool.target.types import Board, DebugServer, Flashing
from buildtool_plugins.qemu.runner import command

Words = Callable[[tuple[str, ...], Path], tuple[str, ...]]
_LINES = """[probe]
    openocd = ["-f", "board/NAME.cfg"]
    pyocd = ["--target", "NAME"]"""
INSTALL = {
    "openocd": "apt-get install openocd",
    "pyocd": "pip install pyocd",
    "esptool": "pip install esptool",
    "xflash": "install XMOS's XTC tools, and run their SetEnv",
}


def _openocd(options: tuple[str, ...], image: Path) -> tuple[str, ...]:
    # Braces: the path is a word of Tcl, whatever is in it.
    return (*options, "-c", f"program {{{image}}} verify reset exit")


def _pyocd(options: tuple[str, ...], image: Path) -> tuple[str, ...]:
    return ("load", "--no-wait", *options, "--format", "elf", str(image))


def _esptool(options: tuple[str, ...], image: Path) -> tuple[str, ...]:
    return (*options, "write_flash", "0x0", str(image.with_suffix(".bin")))


def _xflash(options: tuple[str, ...], image: Path) -> tuple[str, ...]:
    return (*options, "--factory", str(image.with_suffix(".xe")))


_WORDS: dict[str, Words] = {"openocd": _openocd, "pyocd": _pyocd, "esptool": _esptool, "xflash": _xflash}


def flashing(board: Board, image: Path, tool: str = "") -> Flashing:
    """How `image` is flashed: by `tool`, or by the first tool of the board's file that is there.

    Where none is there, by the first one of the file. Raises UsageError.
    """
    tools = board.probe.tools if board.probe is not None else ()
    if not tools:
        raise UsageError(
            f"the file of board '{board.name}' names no tool that flashes it",
            hint=f"a .toml file that extends it, with\n    {_LINES}",
        )
    names = [one.name for one in tools]
    if tool and tool not in names:
        text = f"the file of board '{board.name}' does not say how '{tool}' reaches it"
        raise UsageError(text, option="tool", hint=did_you_mean(tool, names))
    wanted = [one for one in tools if tool in ("", one.name)]
    found = next((one for one in wanted if shutil.which(one.name)), None)
    return _command(found or wanted[0], image, found is not None)


def _command(tool: ProbeTool, image: Path, is_there: bool) -> Flashing:
    program = shutil.which(tool.name) or tool.name
    words = (program, *_WORDS[tool.name](tool.options, image))
    return Flashing(tool.name, is_there, words, INSTALL[tool.name])


# ---- debuggers --------------------------------------------------------------------------------------

HERE = "127.0.0.1"  # nobody else may connect
_PROBE = """[probe]
    openocd = ["-f", "board/NAME.cfg"]"""


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
    serving = [tool for tool in probe.tools if tool.name in SERVERS]
    for tool in serving:
        if program := shutil.which(tool.name):
            return tool, program
    if not serving:
        raise ToolError(
            "no tool of the board's file serves debuggers", hint=f"in the board's file:\n    {_PROBE}"
        )
    hints = [Hint(INSTALL[tool.name]) for tool in serving]
    raise ToolError(f"the probe's server {serving[0].name} was not found", hint=hints)
