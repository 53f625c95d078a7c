"""The objects that the assembler makes and the linker reads: sections with bytes, symbols and relocations
(fixups).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from buildtool.base.errors import ToolError

Kind = Literal["code", "const", "data"]  # const is addressed by cp, data by dp


@dataclass(frozen=True)
class Fixup:
    """A relocation: a place in a section that needs a symbol's address.

    `form` is one of these:
    "word": 32 bits, the address itself.
    "number": a long instruction with the address itself.
    "pool": a long instruction with the number of words from cp or dp; the section's kind says which.
    "long": a long branch or LDAP, with the distance from the next instruction in units of `scale` bytes.
    "short": a branch of 16 bits at `offset`; the next instruction is at `after`.
    """

    offset: int  # bytes from the section's start
    form: Literal["word", "number", "pool", "long", "short"]
    symbol: str
    addend: int = 0
    scale: int = 2
    after: int = 0


@dataclass
class Section:
    """A piece of memory that stays together. If `is_zero`, the image has no bytes for it, and `size` is its
    length.
    """

    name: str
    kind: Kind
    align: int = 4
    data: bytearray = field(default_factory=bytearray)
    fixups: list[Fixup] = field(default_factory=list)
    is_zero: bool = False
    size: int = 0

    @property
    def bytes(self) -> int:
        """The length in memory, in bytes."""
        return self.size if self.is_zero else len(self.data)


@dataclass(frozen=True)
class Symbol:
    """The place that a name stands for: the offset `value` in a section, or without a section an absolute
    number.
    """

    section: Section | None
    value: int
    is_weak: bool = False


@dataclass
class Object:
    """The result of assembling a text, or of reading an ELF object. `locals` are symbols that only this
    object sees.
    """

    name: str
    sections: list[Section] = field(default_factory=list)
    globals: dict[str, Symbol] = field(default_factory=dict)
    locals: dict[str, Symbol] = field(default_factory=dict)


def patch(section: Section, fixup: Fixup, address: int, at: int, pool: int) -> None:
    """Applies a relocation: writes the symbol's `address` into a section that lies at the address `at`.
    `pool` is the value of cp or dp.

    Raises ToolError if the address is out of the instruction's reach.
    """
    data, offset = section.data, fixup.offset
    target = address + fixup.addend
    where = f"{section.name}+{offset:#x} needs '{fixup.symbol}'"
    if fixup.form == "word":
        data[offset : offset + 4] = (target & 0xFFFFFFFF).to_bytes(4, "little")
        return
    if fixup.form == "short":
        half = int.from_bytes(data[offset : offset + 2], "little")
        steps = _steps(target - (at + fixup.after), fixup.scale, where)
        bits = 10 if half >> 11 in (0x1A, 0x1B) else 6
        if abs(steps) >> bits:
            raise ToolError(f"{where}, which a short branch does not reach", hint="take a long one")
        half = half & ~(0x400 | ((1 << bits) - 1)) | abs(steps) | (0x400 if steps < 0 else 0)
        data[offset : offset + 2] = half.to_bytes(2, "little")
        return
    word = int.from_bytes(data[offset : offset + 4], "little")
    if fixup.form == "long":
        number = _steps(target - (at + offset + 4), fixup.scale, where)
        word = word & ~(0x400 << 16) | (0x400 << 16 if number < 0 else 0)
        number = abs(number)
    elif fixup.form == "pool":
        number = _steps(target - pool, 4, where)
    else:
        number = target
    data[offset : offset + 4] = set_number(word, number, where).to_bytes(4, "little")


def _steps(distance: int, scale: int, where: str) -> int:
    if distance % scale:
        raise ToolError(f"{where}, {distance} bytes away, which is not a multiple of {scale}")
    return distance // scale


def set_number(word: int, number: int, where: str) -> int:
    """Returns the long instruction `word` with its number replaced. Raises ToolError if the number has too
    many bits.
    """
    bits = 10 if word >> 27 in (0x1A, 0x1B, 0x1C) else 6  # bl, ldap, and bla or ldw with cp
    if not 0 <= number < 1 << (bits + 10):
        hint = "compile with -mcmodel=large, or give the section a place nearer by"
        raise ToolError(f"{where}, which is out of reach ({number} steps)", hint=hint)
    low, high = word & 0xFC00, word >> 16 & ~((1 << bits) - 1)
    return (high | number & ((1 << bits) - 1)) << 16 | low | number >> bits
