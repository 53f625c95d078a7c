"""Reads XS3's instructions from instructions.h, with their text, formats and encodings, and encodes them."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "instructions.h"
REGISTERS = {**{f"r{i}": i for i in range(12)}, "cp": 12, "dp": 13, "sp": 14, "lr": 15}
NOP = 0x17FF
SHORT = frozenset(("R3", "RUS2", "RUS2B", "R2", "RUS", "RUSB", "R1", "R0", "RU6", "U6", "U10"))
# The operands that are numbers, and the largest one; RU6's and U6's have ten more bits in the long form.
NUMBERS = {
    "RUS2": ("c", 11), "L2RUS": ("c", 11), "L3RUS": ("c", 11), "RUS2B": ("c", 32), "L2RUSB": ("c", 32),
    "RUSB": ("b", 32), "L4RUSB": ("e", 32), "RU6": ("b", 63), "U6": ("a", 63), "U10": ("a", 1023),
}  # fmt: skip
PREFIXED = ("RU6", "U6", "U10")
LONG_BITS = {"RU6": 16, "U6": 16, "U10": 20}  # of the number in the long form
POSITIONS = {32: 0, **{i: i for i in range(1, 9)}, 16: 9, 24: 10}  # a bit position's code
_LINE = re.compile(r'^XS3_OP\((\w+), "([^"]*)", (\w+), (0x[0-9a-f]+), "([^"]*)", "(\w+)"\)$', re.MULTILINE)
_WORD = re.compile(r"[a-z]\w*|\d+|[\[\]:,-]")


@dataclass(frozen=True)
class Instruction:
    """An instruction in a line of instructions.h.

    `places` has, for each operand in the text, the letter of the operand in the encoding ("-": it is fixed).
    """

    name: str
    mnemonic: str
    shape: str  # the operands' text with R for registers and I for numbers, as from `_operand`
    places: str
    fixed: tuple[int | None, ...]  # of each operand in the text, a register or number that it must be
    format: str
    base: int
    access: str
    traits: str

    @property
    def is_short(self) -> bool:
        """Whether the encoding has 16 bits. Short instructions with a format in PREFIXED also have a long
        form.
        """
        return self.format in SHORT

    @property
    def number(self) -> str:
        """The letter of the operand, in the encoding, that is a number; "" if none is."""
        return NUMBERS.get(self.format, ("", 0))[0]

    def fits(self, values: Sequence[int], is_long: bool = False) -> bool:
        """Whether the operands `values`, in the text's order, can be encoded; with `is_long` in the long
        form.
        """
        for place, fixed, value in zip(self.places, self.fixed, values, strict=True):
            if fixed is not None:
                if value != fixed:
                    return False
            elif place == self.number:
                if not self._fits_number(value, is_long):
                    return False
            elif value > (15 if self.format == "RU6" and "J" not in self.traits else 11):
                return False
        return True

    def _fits_number(self, value: int, is_long: bool) -> bool:
        if self.format.endswith("B"):
            return value in POSITIONS
        most = (
            (1 << LONG_BITS[self.format]) - 1
            if is_long and self.format in LONG_BITS
            else NUMBERS[self.format][1]
        )
        return 0 <= value <= most


@functools.cache
def instructions() -> dict[tuple[str, str], tuple[Instruction, ...]]:
    """Returns the instructions by their mnemonic and the shape of their operands; those of 16 bits come
    first.
    """
    table: dict[tuple[str, str], list[Instruction]] = {}
    for name, text, format_, base, access, traits in _LINE.findall(SOURCE.read_text(encoding="ascii")):
        mnemonic, _, operands = text.partition(" ")
        number = NUMBERS.get(format_, ("", 0))[0]
        shape, places, fixed = "", "", list[int | None]()
        words = _WORD.findall(operands)
        for at, word in enumerate(words):
            is_base = word in ("sp", "dp", "cp") and words[at + 1 : at + 2] == ["["]
            if is_base or not word[0].isalnum():
                shape += word
            elif len(word) == 1 and word.isalpha():
                shape += "I" if word == number else "R"
                places += word
                fixed.append(None)
            else:
                shape += "R" if word in REGISTERS else "I" if word.isdigit() else word
                if shape[-1] in "RI":
                    places += "-"
                    fixed.append(REGISTERS.get(word, 0))
        made = Instruction(
            name, mnemonic, shape, places, tuple(fixed), format_, int(base, 16), access, traits
        )
        table.setdefault((mnemonic, shape), []).append(made)
    return {key: tuple(sorted(found, key=lambda i: not i.is_short)) for key, found in table.items()}


def _three(a: int, b: int, c: int) -> int:
    high = (a >> 2) + 3 * (b >> 2) + 9 * (c >> 2)
    return high << 6 | (a & 3) << 4 | (b & 3) << 2 | (c & 3)


def _two(a: int, b: int) -> int:
    high = 27 + (a >> 2) + 3 * (b >> 2)
    upper = high > 31
    return (high - 5 * upper) << 6 | upper << 5 | (a & 3) << 2 | (b & 3)


def _by_place(it: Instruction, values: Sequence[int]) -> dict[str, int]:
    operands = {place: value for place, value in zip(it.places, values, strict=True) if place != "-"}
    if it.format.endswith("B"):
        operands[it.number] = POSITIONS[operands[it.number]]
    return operands


def encode_short(it: Instruction, values: Sequence[int]) -> int:
    """Returns the 16 bits of a short instruction. `values` are the operands in the text's order."""
    o = _by_place(it, values)
    match it.format:
        case "R3" | "RUS2" | "RUS2B":
            return it.base | _three(o["a"], o["b"], o["c"])
        case "R2" | "RUS" | "RUSB":
            return it.base | _two(o["a"], o["b"])
        case "RU6":
            return it.base | o["a"] << 6 | o["b"]
        case "R1" | "U6" | "U10":
            return it.base | o["a"]
        case _:
            return it.base


def encode_long(it: Instruction, values: Sequence[int]) -> int:
    """Returns the 32 bits of a long instruction. Its lower half comes first in memory."""
    if it.format in PREFIXED:
        at = it.places.index(it.number)
        bits = 10 if it.format == "U10" else 6
        number = values[at]
        short = [*values[:at], number & ((1 << bits) - 1), *values[at + 1 :]]
        return encode_short(it, short) << 16 | 0xF000 | number >> bits
    o = _by_place(it, values)
    if it.format == "L2R":
        return it.base | _two(o["a"], o["b"])
    word = it.base | _three(o["a"], o["b"], o["c"])
    match it.format:
        case "L4R" | "L3RUS":
            return word | o["d"] << 16
        case "L5R" | "L4RUSB":
            return word | _two(o["d"], o["e"]) << 16
        case "L6R":
            return word | _three(o["d"], o["e"], o["f"]) << 16
        case _:
            return word
