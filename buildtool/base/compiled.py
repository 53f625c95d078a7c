"""The parts of the planner that are in C: plain shared libraries beside their twins in Python.

Each is compiled where the package is built; where that was not possible, or BUILDTOOL_PURE_PYTHON is set,
its twin does the same more slowly. A twin and its C give equal answers, which tests compare.
"""

from __future__ import annotations

import ctypes
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SWITCH = "BUILDTOOL_PURE_PYTHON"  # an environment variable: not empty, nothing in C is used


def load(module: str, name: str, abi: int, path: Path | None = None) -> ctypes.CDLL | None:
    """The library `_NAME` beside the file of a module; None where there is none of this ABI.

    It tells its own by a function `NAME_abi`. `path`: the library itself, wherever it is.
    """
    if path is None and os.environ.get(SWITCH):
        return None
    beside = Path(module).parent
    for candidate in [path] if path else [beside / f"_{name}{suffix}" for suffix in EXTENSION_SUFFIXES]:
        try:
            found = ctypes.CDLL(str(candidate))
            own = getattr(found, f"{name}_abi")
        except (OSError, AttributeError):  # not there, not loadable here, or not this library
            continue
        if own() == abi:
            return found
    return None
