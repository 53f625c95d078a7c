"""Object files of the runner: sections with bytes, symbols, and places that the linker completes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from buildtool.base.errors import ToolError

Kind = Literal["code", "const", "data"]  # const is addressed by cp, data by dp


@dataclass(frozen=True)
class Fixup:
    """A place in a section that needs a symbol's address.

    `form`: "word" (32 bits, the address itself), "number" (the address itself in a long instruction), "pool"
    (words from cp or dp, by the section's kind, in a long instruction), "long" (a long branch or LDAP: from
    the next instruction, in steps of `scale` bytes), "short" (a branch of 16 bits at `offset`; the next
    instruction is at `after`).
    """

    offset: int  # bytes from the section's start
    form: Literal["word", "number", "pool", "long", "short"]
    symbol: str
    addend: int = 0
    scale: int = 2
    after: int = 0


@dataclass
class Section:
    """A piece of memory that stays together. `is_zero`: it has no bytes in the image, `size` only."""

    name: str
    kind: Kind
    align: int = 4
    data: bytearray = field(default_factory=bytearray)
    fixups: list[Fixup] = field(default_factory=list)
    is_zero: bool = False
    size: int = 0

    @property
    def bytes(self) -> int:
        """Returns the length in memory."""
        return self.size if self.is_zero else len(self.data)


@dataclass(frozen=True)
class Symbol:
    """A name's place: an offset in a section, or an absolute number."""

    section: Section | None
    value: int
    is_weak: bool = False


@dataclass
class Object:
    """What one text or one ELF file becomes. `locals`: seen in this object only."""

    name: str
    sections: list[Section] = field(default_factory=list)
    globals: dict[str, Symbol] = field(default_factory=dict)
    locals: dict[str, Symbol] = field(default_factory=dict)


def patch(section: Section, fixup: Fixup, address: int, at: int, pool: int) -> None:
    """Writes the symbol's address into a section that lies at `at`; `pool` is cp or dp.

    Raises ToolError where it is out of reach.
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
    """Returns a long instruction with another number; raises ToolError if it has too few bits."""
    bits = 10 if word >> 27 in (0x1A, 0x1B, 0x1C) else 6  # bl, ldap, and bla or ldw with cp
    if not 0 <= number < 1 << (bits + 10):
        hint = "compile with -mcmodel=large, or give the section a place nearer by"
        raise ToolError(f"{where}, which is out of reach ({number} steps)", hint=hint)
    low, high = word & 0xFC00, word >> 16 & ~((1 << bits) - 1)
    return (high | number & ((1 << bits) - 1)) << 16 | low | number >> bits
