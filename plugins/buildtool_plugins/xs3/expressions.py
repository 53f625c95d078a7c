"""Parses the numbers of assembly text: constants, symbols, and sums of them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from buildtool.base.errors import ToolError

_SYMBOL = re.compile(r"(?<![\w.$])[A-Za-z_.$][\w.$]*")
_INTEGERS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Mult: operator.mul, ast.Div: operator.floordiv, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Mod: operator.mod,
}  # fmt: skip


@dataclass(frozen=True)
class Sum:
    """The sum of a constant and of symbols, each times a whole factor."""

    constant: int
    terms: Mapping[str, int] = field(default_factory=dict)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """Returns self + factor * other."""
        terms = dict(self.terms)
        for name, times in other.terms.items():
            terms[name] = terms.get(name, 0) + factor * times
        return Sum(self.constant + factor * other.constant, {n: t for n, t in terms.items() if t})


def parse(text: str) -> Sum:
    """Returns the value of an expression with C's operators. Raises ToolError if it is not a sum of
    symbols.
    """
    text = text.strip()
    try:
        return Sum(int(text, 0))
    except ValueError:
        pass
    if len(text) == 3 and text[0] == text[2] == "'":
        return Sum(ord(text[1]))
    names: list[str] = []

    def name(match: re.Match[str]) -> str:
        names.append(match[0])
        return f"S{len(names) - 1}"

    try:
        return _walk(ast.parse(_SYMBOL.sub(name, text), mode="eval").body, names)
    except (SyntaxError, KeyError, ValueError):
        raise ToolError(f"'{text}' is not a number or a sum of symbols") from None


def _walk(node: ast.expr, names: list[str]) -> Sum:
    match node:
        case ast.Constant(value=int(value)):
            return Sum(value)
        case ast.Name(id=word):
            return Sum(0, {names[int(word[1:])]: 1})
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return Sum(0).plus(_walk(inner, names), -1)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _walk(inner, names)
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return Sum(~_constant(_walk(inner, names)))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _walk(left, names).plus(_walk(right, names))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _walk(left, names).plus(_walk(right, names), -1)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _walk(left, names), _walk(right, names)
            return Sum(_INTEGERS[type(op)](_constant(a), _constant(b)))
    raise ValueError


def _constant(value: Sum) -> int:
    if value.terms:
        raise ValueError
    return value.constant
