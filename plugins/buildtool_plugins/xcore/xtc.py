"""XMOS's XTC tools, where they are in PATH: the project of a network is compiled with them.

It was never run with the real tools. Its command lines are those of XMOS's application note, and a file that
does not begin as an .xe file does is refused.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from buildtool.base.errors import Hint, ToolError
from buildtool.target.plugin import VendorBuild
from buildtool_plugins.xcore import project

# What builds, flashes and runs a project by hand, in its folder.
LINES = (
    'cmake -G "Unix Makefiles" -B build',
    "xmake -C build",
    "xflash --target XK-EVK-XU316 --data ../{net}_weights.bin build/app.xe",
    "xrun --xscope build/app.xe",
)
COMPILER = "xcc"
BUILD = ("xmake", "cmake")  # besides; the first comes with the compiler
TOOLS = (COMPILER, *BUILD)
HINT = "source XMOS's SetEnv, which puts the XTC tools in PATH, or take them out of it"
MAGIC = b"XMOS"  # how an .xe file begins
TIMEOUT = 600.0  # seconds for one of the tools
_SHOWN = 2000  # characters of a tool's complaint


def is_there() -> bool:
    """Whether the vendor's compiler is in PATH."""
    return shutil.which(COMPILER) is not None


def by_hand(net: str) -> ToolError:
    """The error of a request for the kit: what to run in its place, line by line."""
    return ToolError(
        "XMOS's XTC tools make the chip's program, flash it and run it; nothing here does that",
        hint=[
            Hint("buildtool build MODEL --board xcore --out DIR"),
            Hint(f"cd DIR/{project.folder(net)}"),
            *(Hint(line) for line in LINES[:2]),
            Hint(LINES[2].format(net=net)),
            Hint(LINES[3]),
        ],
    )


def commands() -> list[list[str]]:
    """What compiles a project, in its folder; raises ToolError where one of the programs is missing."""
    for name in TOOLS:
        if shutil.which(name) is None:
            hint = "apt-get install cmake" if name == "cmake" else HINT
            raise ToolError(f"'{COMPILER}' is in PATH and '{name}' is not: nothing is compiled", hint=hint)
    return [shlex.split(line) for line in LINES[:2]]


def compile_project(net: str, place: Path, tell: Callable[[str], None]) -> VendorBuild | None:
    """The .xe of the project below `place`; None without XTC or project. ToolError with what a tool said."""
    where = place / project.folder(net)
    if not is_there() or not where.is_dir():
        return None
    lines = commands()
    for line in lines:
        tell(f"{line[0]} in {where.name}, with XMOS's XTC tools")
        _run(line, where)
    made = where / "build" / project.APP
    data = made.read_bytes() if made.is_file() else b""
    if not data.startswith(MAGIC):
        what = f"a {project.APP} that is no program for the chip" if data else f"no {project.APP}"
        raise ToolError(f"xmake ended without an error and made {what}", hint=HINT)
    return VendorBuild({f"{net}.xe": data}, f"XTC's {COMPILER}")


def _run(line: Sequence[str], where: Path) -> None:
    try:
        done = subprocess.run(
            line, cwd=where, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{line[0]} was still running after {TIMEOUT:g} s and was ended") from None
    except OSError as error:
        raise ToolError(f"{line[0]} cannot be started: {error.strerror}", hint=HINT) from None
    if done.returncode:
        said = (done.stderr + done.stdout).strip()[-_SHOWN:]
        raise ToolError(f"'{' '.join(line)}' failed with exit status {done.returncode}:\n{said}", hint=HINT)
