"""The facts that files about a chip give: its core, its memories, its clock, its serial ports."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count

from buildtool.target.hardware import MemoryKind
from buildtool.target.readers import ADDRESS_END

SMALLEST = 1024  # bytes: smaller memories (options, one-time programmable words) hold neither code nor arenas
_SCALES = {"k": 1 << 10, "m": 1 << 20}
_NUMBER = re.compile(r"\b(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)([kKmM]?)[bB]?\b")
_OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Region:
    """A memory as a file describes it. `erase` is the size of an erase block in bytes (0: not known)."""

    name: str
    kind: MemoryKind
    base: int
    size: int
    erase: int = 0

    def overlaps(self, other: Region) -> bool:
        """Whether some address is in both memories."""
        return self.base < other.base + other.size and other.base < self.base + self.size


@dataclass(frozen=True)
class ChipFacts:
    """What is known about a chip. Unknown text is "", an unknown number 0.

    `core`: the name of one of buildtool's cores, such as "cortex-m4", or another core's own name.
    `fpu`: "none", "single" or "double".
    `code`, `arena`: the names of the `regions` for them.
    `uarts`: the names and addresses of serial ports.
    `remarks`: sentences about what a file has and buildtool does not use.
    """

    chip: str = ""
    core: str = ""
    fpu: str = ""
    clock_hz: int = 0
    regions: tuple[Region, ...] = ()
    code: str = ""
    arena: str = ""
    uarts: tuple[tuple[str, int], ...] = ()
    remarks: tuple[str, ...] = ()

    def or_else(self, other: ChipFacts) -> ChipFacts:
        """Returns these facts; what is not known here is taken from `other`."""
        own = {field.name: getattr(self, field.name) or getattr(other, field.name) for field in fields(self)}
        if self.regions:  # the names of memories are those of the same file
            own |= {"code": self.code, "arena": self.arena}
        own["remarks"] = tuple(dict.fromkeys((*self.remarks, *other.remarks)))
        return replace(self, **own)


def add_region(
    regions: list[Region], name: str, kind: MemoryKind, base: int, size: int, erase: int = 0
) -> None:
    """Appends a memory to `regions`, unless it is too small, is not a 32-bit address range, or overlaps an
    earlier one.
    """
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "memory"
    word = f"memory_{word}" if word[0].isdigit() else word
    region = Region(word, kind, base, size, erase)
    if size < SMALLEST or base < 0 or base + size > ADDRESS_END or any(map(region.overlaps, regions)):
        return
    regions.append(replace(region, name=unused_name(word, {each.name for each in regions})))


def unused_name(word: str, names: Container[str]) -> str:
    """Returns the word, with a number appended if `names` already has it."""
    return next(name for n in count(1) if (name := word if n == 1 else f"{word}{n}") not in names)


def evaluate(text: str, names: Mapping[str, int] | None = None) -> int | None:
    """Returns the value of an expression of whole numbers (1024K, 0x400 * 2) and `names`; None for any other
    text, and for a value that is not a 32-bit number.
    """

    def scaled(match: re.Match[str]) -> str:
        digits = match[1] if match[1][:2].lower() == "0x" else match[1].lstrip("0") or "0"
        return f"({digits}*{_SCALES.get(match[3].lower(), 1)})"

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as number):
                return number
            case ast.Name(id=name) if names and name in names:
                return names[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
        raise ValueError

    if len(text) > 200:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # about words that are not numbers
            words = ast.parse(_NUMBER.sub(scaled, text.strip()).replace("/", "//"), mode="eval")
        number = value(words.body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
    return number if 0 <= number <= ADDRESS_END else None


def largest(regions: Sequence[Region], kind: MemoryKind) -> str:
    """Returns the name of the largest memory of a kind; "" if there is none."""
    return max(
        (r for r in regions if r.kind is kind), key=lambda r: r.size, default=Region("", kind, 0, 0)
    ).name
