"""Arithmetic expressions of kernel catalogues: parsed and checked, never executed as code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NoReturn

from buildtool.errors import TargetError, did_you_mean

Value = int | bool | float

MAX_LENGTH = 2000  # characters of an expression
MAX_DEPTH = 40  # of nested operations
MAX_LITERAL = 1 << 63  # absolute value of a number written in an expression

_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _ceil_div(a: Value, b: Value) -> Value:
    return -(-a // b)


def _align(a: Value, to: Value) -> Value:
    return _ceil_div(a, to) * to


# name -> (function, fewest arguments, most arguments)
_FUNCTIONS: dict[str, tuple[Callable[..., Value], int, int]] = {
    "min": (min, 2, 8),
    "max": (max, 2, 8),
    "abs": (abs, 1, 1),
    "ceil_div": (_ceil_div, 2, 2),  # rounded up
    "align": (_align, 2, 2),  # up to a multiple of the second
}


def evaluate(expression: str, variables: Mapping[str, int]) -> Value:
    """The value of `expression` with names looked up in `variables`.

    Numbers, names, + - * / // %, comparisons, `and`, `or`, `not`, `x if c else y`, and the
    functions min, max, abs, ceil_div(a, b), align(a, to). Raises TargetError for anything else, a
    name that is not in `variables`, a division by zero, or a result that is not finite.
    """
    formula = compiled(expression)
    try:
        value = formula(variables)
        finite = not isinstance(value, float) or math.isfinite(value)
    except (ZeroDivisionError, OverflowError) as error:
        _refuse(expression, str(error))
    if not finite:
        _refuse(expression, "the result is not finite")
    return value


def check(expression: str, names: frozenset[str]) -> None:
    """Raises TargetError unless `expression` is well formed and uses only `names`."""
    for node in ast.walk(_parse(expression)):
        if isinstance(node, ast.Name) and node.id not in names and node.id not in _FUNCTIONS:
            _refuse(expression, f"unknown name '{node.id}'", did_you_mean(node.id, names))


def _refuse(expression: str, why: str, hint: str = "") -> NoReturn:
    shown = expression if len(expression) <= 80 else expression[:77] + "..."
    raise TargetError(f"expression '{shown}': {why}", hint=hint)


def _parse(expression: str) -> ast.expr:
    """The checked tree."""
    if len(expression) > MAX_LENGTH:
        _refuse(expression, f"longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    # Deeply nested input ends CPython's parser in one of the last three.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse(expression, "not a well-formed expression")
    _check_node(tree, expression, 0)
    return tree


def _check_node(node: ast.AST, expression: str, depth: int) -> None:
    """Refuses every node that `_closure` has no rule for."""
    if depth > MAX_DEPTH:
        _refuse(expression, f"nested deeper than {MAX_DEPTH}")
    children: list[ast.expr] = []
    match node:
        case ast.Constant(value=int() | float() as number) if abs(number) < MAX_LITERAL:
            pass
        case ast.Name():
            pass
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            children = [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            children = [operand]
        case ast.BoolOp(values=values):
            children = values
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in _COMPARE for op in ops):
            children = [left, *right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            _, fewest, most = _FUNCTIONS[name]
            if not fewest <= len(args) <= most:
                _refuse(expression, f"{name}() takes {fewest} to {most} arguments, not {len(args)}")
            children = args
        case ast.Call(func=ast.Name(id=name)):
            _refuse(expression, f"unknown function '{name}'", did_you_mean(name, _FUNCTIONS))
        case _:
            _refuse(expression, f"{type(node).__name__} is not allowed here")
    for child in children:
        _check_node(child, expression, depth + 1)


Formula = Callable[[Mapping[str, int]], Value]


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Formula:
    """A function of the variables that is worth what `evaluate` gives, but is many times faster.

    It is made of closures over the checked tree, and checks neither divisions nor results: it is for
    expressions that the catalogue's reader has accepted, on variables that are in their range. Cached,
    because a planner asks for the same few costs very often.
    """
    return _closure(_parse(expression), expression)


def _closure(node: ast.expr, expression: str) -> Formula:
    """The value of a checked node as a function of the variables."""

    def part(child: ast.expr) -> Formula:
        return _closure(child, expression)

    match node:
        case ast.Constant(value=int() | float() as number):
            return lambda variables: number
        case ast.Name(id=name):
            return _variable(name, expression)
        case ast.BinOp(left=left, op=op, right=right):
            return _combined(_BINARY[type(op)], part(left), part(right))
        case ast.UnaryOp(op=op, operand=operand):
            change, inner = _UNARY[type(op)], part(operand)
            return lambda variables: change(inner(variables))
        case ast.BoolOp(op=op, values=values):
            parts = [part(child) for child in values]
            joined = all if isinstance(op, ast.And) else any
            return lambda variables: joined(each(variables) for each in parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison(ops, [part(left), *map(part, comparators)])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, then, otherwise = part(test), part(body), part(orelse)
            return lambda variables: then(variables) if asked(variables) else otherwise(variables)
        case ast.Call(func=ast.Name(id=name), args=args):
            function, arguments = _FUNCTIONS[name][0], [part(child) for child in args]
            return lambda variables: function(*[each(variables) for each in arguments])
    raise AssertionError("checked by _check_node")


def _variable(name: str, expression: str) -> Formula:
    def value(variables: Mapping[str, int]) -> Value:
        try:
            return variables[name]
        except KeyError:
            _refuse(expression, f"unknown name '{name}'", did_you_mean(name, variables))

    return value


def _combined(function: Callable[[Value, Value], Value], a: Formula, b: Formula) -> Formula:
    return lambda variables: function(a(variables), b(variables))


def _comparison(ops: Sequence[ast.cmpop], operands: Sequence[Formula]) -> Formula:
    tests = [_COMPARE[type(op)] for op in ops]
    if len(tests) == 1:
        return _combined(tests[0], *operands)

    def holds(variables: Mapping[str, int]) -> Value:
        values = [each(variables) for each in operands]
        return all(test(a, b) for test, a, b in zip(tests, values, values[1:], strict=False))

    return holds
