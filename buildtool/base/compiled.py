"""Loads the planner's parts in C: shared libraries, which a wheel contains and `./dev` builds."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buildtool.base.errors import ToolError

SUFFIX = ".dll" if sys.platform == "win32" else ".so"  # also on macOS; setup.py makes the files


def load(module: str, name: str, abi: int, functions: Mapping[str, tuple[Any, ...]]) -> ctypes.CDLL:
    """Returns the library `_NAME` that lies beside the file `module` (a path).

    `functions` gives, for each function's name, the ctypes types of the result and of the arguments. The
    library's own function `NAME_abi` returns its ABI. Raises ToolError if the library is missing or does not
    have the ABI `abi`.
    """
    with contextlib.suppress(OSError, AttributeError):  # missing, built for another system, another library
        library = ctypes.CDLL(str(Path(module).with_name(f"_{name}{SUFFIX}")))
        if getattr(library, f"{name}_abi")() == abi:
            for function, (result, *arguments) in functions.items():
                getattr(library, function).restype = result
                getattr(library, function).argtypes = arguments
            return library
    raise ToolError(
        f"the planner's part in C, '_{name}', is missing, or belongs to another version",
        path=str(Path(module).parent),
        hint="in a checkout run ./dev, which builds it; elsewhere install the wheel for this system again",
    )


def struct(*fields: tuple[Any, str]) -> type[ctypes.Structure]:
    """Returns the ctypes class of a C struct. Each of `fields` is a type, and the names of the fields of that
    type in one string, separated by spaces.
    """
    pairs = [(name, kind) for kind, names in fields for name in names.split()]
    return type("struct", (ctypes.Structure,), {"_fields_": pairs})
