"""The command that brings an image into a board's flash, by the tools that the board's file names."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from buildtool.base.errors import UsageError, did_you_mean
from buildtool.target.hardware import ProbeTool
from buildtool.target.types import Board, Flashing

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
