"""Parses statements of assembly text with one instruction: its operands, and the encodings that can hold
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from buildtool.base.errors import ToolError
from buildtool_plugins.xs3.encoding import PREFIXED, REGISTERS, Instruction, instructions
from buildtool_plugins.xs3.expressions import Sum

JUMPS = ("bt", "bf", "bu", "bl", "ldap")
_POOLS = ("sp", "dp", "cp")  # registers that an index in the encoding counts from
_SPECIAL = ("id", "ed", "et", "kep", "ksp")
_INDEXED = re.compile(r"(\w+)\s*\[(.*)\]")

Value = Callable[[str], Sum]


@dataclass(frozen=True)
class Operation:
    """An instruction with its operands in the text's order, and the short and long encodings that can hold
    them.

    `symbol` is the operand that depends on a symbol, whose place in `values` has 0; None if there is none.
    """

    text: str
    shorts: list[Instruction]
    longs: list[Instruction]
    values: list[int]
    symbol: Sum | None

    @property
    def lane(self) -> str:
        """The half of a bundle in which the instruction can be: m is the upper, r the lower, e either, l
        neither.
        """
        return next(trait for trait in "mrel" if trait in (self.shorts or self.longs)[0].traits)

    @property
    def is_jump(self) -> bool:
        """Whether the instruction's number is the distance to a symbol."""
        return self.symbol is not None and self.longs[0].mnemonic in JUMPS

    def single_symbol(self) -> tuple[str, int]:
        """Returns the name of the operand's symbol, and the constant that is added to it. Raises ToolError if
        it is another sum.
        """
        assert self.symbol is not None
        return single_symbol(self.symbol)


def single_symbol(value: Sum) -> tuple[str, int]:
    """Returns the name of the one symbol of a sum, and the sum's constant. Raises ToolError if it is another
    sum.
    """
    if len(value.terms) != 1 or next(iter(value.terms.values())) != 1:
        raise ToolError("this place takes one symbol and a constant")
    return next(iter(value.terms)), value.constant


def parse_operation(text: str, value: Value) -> Operation:
    """Parses an instruction; `value` parses its numbers. Raises ToolError if no encoding can hold the
    operands.
    """
    words = text.split(None, 1)
    mnemonic = words[0].lower()
    operands = [word.strip() for word in words[1].split(",")] if len(words) > 1 else []
    if mnemonic == "mov" and len(operands) == 2:
        mnemonic, operands = "add", [*operands, "0"]
    shapes, values, symbol = [], list[int](), None
    for operand in operands:
        shape, numbers = _operand(operand, value)
        shapes.append(shape)
        for number in numbers:
            if isinstance(number, Sum) and number.terms:
                if symbol is not None:
                    raise ToolError("two symbols in one instruction")
                symbol = number
                values.append(0)
            else:
                values.append(number.constant if isinstance(number, Sum) else number)
    candidates = _candidates(mnemonic, ",".join(shapes))
    shorts = [i for i in candidates if i.is_short and i.fits(values)]
    longs = [i for i in candidates if (not i.is_short or i.format in PREFIXED) and i.fits(values, True)]
    if not shorts and not longs:
        raise ToolError(f"the operands fit no form of '{mnemonic}'")
    return Operation(text, shorts, longs, values, symbol)


def _candidates(mnemonic: str, shape: str) -> tuple[Instruction, ...]:
    candidates = instructions().get((mnemonic, shape), ())
    if not candidates:
        known = sorted({key[1] or "none" for key in instructions() if key[0] == mnemonic})
        if not known:
            raise ToolError(f"unknown instruction '{mnemonic}'")
        hint = f"its operands are {'; '.join(known)} (R a register, I a number)"
        raise ToolError(f"'{mnemonic}' has no form {shape or 'without operands'}", hint=hint)
    return candidates


def _operand(text: str, value: Value) -> tuple[str, list[int | Sum]]:
    """Returns an operand's shape, as in the keys of `instructions`, and its registers and numbers."""
    if text in REGISTERS:
        return "R", [REGISTERS[text]]
    if text in _SPECIAL:
        return text, []
    match = _INDEXED.fullmatch(text)
    if match is None:
        return "I", [value(text)]
    base, index = match[1], match[2].strip()
    if base not in REGISTERS:
        raise ToolError(f"'{base}' is not a register")
    shape, head = (base, list[int | Sum]()) if base in _POOLS else ("R", [REGISTERS[base]])
    sign = "-" if index[:1] == "-" and index[1:].strip() in REGISTERS else ""
    if index.removeprefix(sign).strip() in REGISTERS:
        return f"{shape}[{sign}R]", [*head, REGISTERS[index.removeprefix(sign).strip()]]
    number = value(index)
    if number.terms and head:
        raise ToolError(f"'{index}' is not a constant")
    if number.constant < 0 and not number.terms:
        return f"{shape}[-I]", [*head, -number.constant]
    return f"{shape}[I]", [*head, number]
