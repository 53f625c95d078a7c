"""The planner's parts in C: plain shared libraries, which a wheel brings and `./dev` builds."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from buildtool.base.errors import ToolError


def load(module: str, name: str, abi: int, functions: Mapping[str, tuple[Any, ...]]) -> ctypes.CDLL:
    """The library `_NAME` beside a module's file; `functions`: result and arguments, as ctypes has them.
    ToolError where no library there has this ABI, which its function `NAME_abi` gives.
    """
    for suffix in EXTENSION_SUFFIXES:
        try:
            library = ctypes.CDLL(str(Path(module).with_name(f"_{name}{suffix}")))
            own = getattr(library, f"{name}_abi")
        except (OSError, AttributeError):  # not there, not loadable here, or not this library
            continue
        if own() == abi:
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
    """A struct of C; `fields`: a type, and the names of the fields in a row that have it, between blanks."""
    listed = [(name, kind) for kind, names in fields for name in names.split()]
    return type("struct", (ctypes.Structure,), {"_fields_": listed})
