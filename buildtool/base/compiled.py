"""Loads the planner's parts in C: shared libraries, which a wheel contains and `./dev` builds."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from buildtool.base.errors import ToolError


def load(module: str, name: str, abi: int, functions: Mapping[str, tuple[Any, ...]]) -> ctypes.CDLL:
    """Returns the library `_NAME` that lies beside the file of a module.

    `functions` gives the ctypes types of each function's result and arguments. The library's own function
    `NAME_abi` returns its ABI. Raises ToolError where no library there has the ABI `abi`.
    """
    for suffix in EXTENSION_SUFFIXES:
        try:
            library = ctypes.CDLL(str(Path(module).with_name(f"_{name}{suffix}")))
            own_abi = getattr(library, f"{name}_abi")
        except (OSError, AttributeError):  # missing, built for another system, or another library
            continue
        if own_abi() == abi:
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
    """Returns the class of a C struct. Each of `fields` is a type and its fields' names, in one string."""
    pairs = [(name, kind) for kind, names in fields for name in names.split()]
    return type("struct", (ctypes.Structure,), {"_fields_": pairs})
