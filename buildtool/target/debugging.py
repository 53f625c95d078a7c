"""A toolchain for debuggers: code that can be followed line by line, symbols without this machine's paths.

Folders have names of their own in debug information, as /buildtool/kernels: the same sources give the same
bytes wherever they lie. A debugger is told where the folders are ("set substitute-path").
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from buildtool.target.types import Toolchain

# NN_DEBUG: what only a debugger wants to know, such as the arena by the network's name.
FLAGS = ("-Og", "-g", "-DNN_DEBUG")
RENAMES = "-ffile-prefix-map="  # FOLDER=NAME: in debug information and in __FILE__
_OPTIMISES = re.compile(r"-O([0-3sgz]|fast)?")


def called(name: str) -> str:
    """What debug information calls a folder of buildtool's, by the folder's name in `describe`."""
    return f"/buildtool/{name}"


def debuggable(tools: Toolchain, folders: Mapping[str, Path]) -> Toolchain:
    """`tools` with flags for debugging in place of those that optimise; `folders` by their names.

    The innermost of two folders comes last, as compilers want it.
    """
    kept = [flag for flag in tools.cflags if not _OPTIMISES.fullmatch(flag)]
    places = sorted(((str(folder.resolve()), name) for name, folder in folders.items()))
    return dataclasses.replace(
        tools,
        cflags=(*kept, *FLAGS),
        renames=tuple(f"{RENAMES}{place}={called(name)}" for place, name in places),
    )
