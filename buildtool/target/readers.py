"""Readers of values in board files and catalogues that are more than a number or a text; see `plain.Kind`.

Each gets the value in the TOML table and its dotted key. It returns the field's value, or raises Mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from buildtool.base.errors import did_you_mean, shown
from buildtool.base.modes import MOST_THREADS
from buildtool.base.plain import (
    Kind,
    Mismatch,
    a_name,
    a_table,
    size,
    text,
    texts,
    whole,
)
from buildtool.base.sizes import parse_size, show_size
from buildtool.graph.types import DType, OpKind

ADDRESS_END = 1 << 32
THREADS_MACRO = "NN_THREADS"
# Flags with which a compiler prints something or stops early, and makes no object.
_NO_OBJECT = frozenset(
    (
        *("-E", "-S", "-M", "-MM", "-c", "-o", "-###", "-fsyntax-only"),
        *("--version", "--help", "-help", "-emit-llvm"),
    )
)
_PRINTS = ("-print-", "--print-", "-dumpversion", "-dumpmachine", "-dumpspecs", "--analyze", "-cc1")
_BLOCKS = re.compile(r"(?:([1-9][0-9]{0,5})x)?([0-9]{1,9} *[A-Za-z]*)")

_ABOVE_0 = "number above 0"
_AT_LEAST_0 = "number, 0 or above"


def names(value: object, key: str) -> tuple[str, ...]:
    """Returns a list of names as a tuple."""
    return tuple(a_name(name, key) for name in texts(value, key))


def flags(value: object, key: str) -> tuple[str, ...]:
    """Returns a list of compiler flags. A flag with which the compiler makes no object is a Mismatch."""
    words = texts(value, key)
    for flag in words:
        if flag in _NO_OBJECT or flag.startswith(_PRINTS):
            hint = "remove it: these flags are for making objects and firmware images"
            raise Mismatch(f"with '{flag}' the compiler makes no object", key, hint)
    return words


def macros(value: object, key: str) -> tuple[str, ...]:
    """Returns a list of macros. The macro for the number of threads must not be among them."""
    words = texts(value, key)
    if any(define.partition("=")[0] == THREADS_MACRO for define in words):
        raise Mismatch(f"{THREADS_MACRO} is buildtool's own macro", key, "write threads under [core]")
    return words


def threads(value: object, key: str) -> int:
    """Returns the number of threads that share a kernel's call."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_THREADS:
        raise Mismatch(f"must be a whole number from 1 to {MOST_THREADS}, not {shown(value)}", key)
    return value


def one_line(value: object, key: str) -> str:
    """Returns a text of one or more lines as one line."""
    return text(" ".join(value.split()) if isinstance(value, str) else value, key)


def text_or_none(value: object, key: str) -> str:
    """Returns a text that may be empty."""
    return "" if value == "" else text(value, key)


def sizes_by_name(value: object, key: str) -> tuple[tuple[str, int], ...]:
    """Returns the names and sizes (or addresses) in a table."""
    return tuple((name, size(number, f"{key}.{name}")) for name, number in a_table(value, key).items())


def source(value: object, key: str) -> str:
    """Returns the name of a plugin's file, or the path of a user's .c file, relative to the board's file."""
    name = text(value, key)
    return name if name.endswith(".c") else a_name(name, key)


def erase_blocks(value: object, key: str) -> tuple[tuple[int, int], ...]:
    """Returns pairs (number, bytes) for a list of blocks such as ["4x16K", "64K", "128K"]. Each block must
    begin at a multiple of its size.
    """
    blocks, at = list[tuple[int, int]](), 0
    if not isinstance(value, list) or not value:
        hint = 'such as ["4x16K", "64K", "128K"]'
        raise Mismatch(f"must be a list of blocks, not {shown(value)}", key, hint)
    for item in value:
        match = _BLOCKS.fullmatch(item) if isinstance(item, str) else None
        block = parse_size(match[2]) if match else None
        if match is None or block is None:
            hint = 'a size, such as "4K", or "4x16K" for four of 16K'
            raise Mismatch(f"{shown(item)} is not a block", key, hint)
        count = int(match[1] or 1)
        if block < 16 or block & (block - 1) or at % block:
            what = f"{shown(item)} at {show_size(at)}: blocks are powers of two, at multiples of their size"
            raise Mismatch(what, key)
        blocks.append((count, block))
        at += count * block
    return tuple(blocks)


def string(value: object, key: str) -> str:
    """Returns a text of a catalogue as one line. In the file it may have several lines."""
    if not isinstance(value, str) or not value.strip():
        raise Mismatch(f"must be a string that is not empty, not {shown(value)}", key)
    return " ".join(value.split())


def words(value: object, key: str) -> tuple[str, ...]:
    """Returns a text of a catalogue, or a list of texts, as a tuple."""
    items = value if isinstance(value, list) else [value]
    strings = tuple(item for item in items if isinstance(item, str) and item)
    if not strings or len(strings) != len(items):
        raise Mismatch(f"must be a string or a list of strings, not {shown(value)}", key)
    return strings


def formulas(value: object, key: str) -> Mapping[str, str]:
    """Returns a table of formulas, by name."""
    return {name: string(formula, f"{key}.{name}") for name, formula in a_table(value, key).items()}


def count(value: object, key: str) -> int:
    """Returns a whole number, 0 or above."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Mismatch(f"must be a whole number, not {shown(value)}", key)
    return value


def files(value: object, key: str) -> tuple[str, ...]:
    """Returns the names of files in the family's folder, or "family/file" for files of another family."""
    names = words(value, key)
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise Mismatch(f"source '{name}' is neither a file in the folder nor \"family/file\"", at=key)
    return names


def kinds(value: object, key: str) -> tuple[str, ...]:
    """Returns operator kinds. A class of kinds, such as "@lookup", is replaced by its members."""
    from buildtool.graph.ops import CLASSES  # imported here: code that only lists boards does not need it

    kinds: list[str] = []
    for name in words(value, key):
        if name not in OpKind.__members__ and name not in CLASSES:
            hint = did_you_mean(name, (*OpKind.__members__, *CLASSES))
            raise Mismatch(f"operator kind '{name}' is unknown", hint=hint, at=key)
        kinds += CLASSES.get(name, (name,))
    return tuple(kinds)


def types(value: object, key: str) -> tuple[DType, DType]:
    """Returns the types of a kernel's first input and of its output, for "int16" or "int8 -> int16"."""
    words = [word.strip() for word in string(value, key).split("->")]
    names = [str(dtype) for dtype in DType]
    if len(words) > 2 or any(word not in names for word in words):
        hint = 'one type, or two with an arrow: "int8 -> int16"; known: ' + ", ".join(names)
        raise Mismatch(f"types '{value}' are unknown", hint=hint, at=key)
    return DType(words[0]), DType(words[-1])


FILLED = "filled"  # the form of average poolings in which padded elements count


def form(value: object, key: str) -> str:
    """Returns the arithmetic of a kernel, which must be "uint8" or "filled" (see `KernelVariant.form`)."""
    if value not in ("uint8", FILLED):
        hint = 'write "uint8" or "filled", or remove the key'
        raise Mismatch(f"form '{string(value, key)}' is unknown", hint=hint, at=key)
    return str(value)


# Types of fields, with the kinds of values that files have for them.
Number = Annotated[int, Kind("number")]
AboveZero = Annotated[int, Kind(_ABOVE_0)]
AtLeastZero = Annotated[int, Kind(_AT_LEAST_0)]
Whole = Annotated[int, Kind(_ABOVE_0, whole)]
Rate = Annotated[int, Kind(_ABOVE_0, wrong=lambda number: "" if number else "must be above 0")]
Address = Annotated[
    int, Kind("number", wrong=lambda at: "" if at < ADDRESS_END else f"{at:#x} is not a 32-bit address")
]
Bits32 = Annotated[
    int,
    Kind("number", wrong=lambda value: "" if value < ADDRESS_END else f"{value:#x} has more than 32 bits"),
]
Count = Annotated[int, Kind("whole number", count)]
MemoryName = Annotated[str, Kind("name of a memory")]
RamName = Annotated[str, Kind("name of a RAM")]
Source = Annotated[str, Kind("name, or path of a .c file", source)]
Settings = Annotated[tuple[str, ...], Kind("list of macros")]
Blocks = Annotated[
    tuple[tuple[int, int], ...], Kind('list of sizes, such as `["4x16K", "64K", "128K"]`', erase_blocks)
]
Names = Annotated[tuple[str, ...], Kind("list of names")]
Files = Annotated[tuple[str, ...], Kind("list of files", files)]
Headers = Annotated[tuple[str, ...], Kind("list of files", words)]
Formulas = Annotated[Mapping[str, str], Kind("formulas by the names of kernels", formulas)]
Stated = Annotated[Mapping[str, Any], Kind("table", a_table)]
Types = Annotated[tuple[DType, DType], Kind("element types", types)]
Form = Annotated[str, Kind("`uint8` or `filled`", form)]
Operators = Annotated[str, Kind("operator kind, or a list", kinds)]
Packing = Annotated[str, Kind("name of a packing")]
