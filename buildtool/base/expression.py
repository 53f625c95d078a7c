"""Arithmetic expressions of kernel catalogues. They are parsed and checked before they are evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NoReturn, cast

from buildtool.base.errors import TargetError, did_you_mean

Value = int | bool | float
Formula = Callable[[Mapping[str, int]], Value]

MAX_LENGTH = 2000  # upper limit for the characters of an expression
MAX_DEPTH = 40  # upper limit for nested operations
MAX_LITERAL = 1 << 63  # the absolute value of a number in an expression is below this

_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_UNARY = (ast.UAdd, ast.USub, ast.Not)
_COMPARE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _ceil_div(a: Value, b: Value) -> Value:
    return -(-a // b)


def _align(a: Value, to: Value) -> Value:
    return _ceil_div(a, to) * to


# name -> (function, fewest arguments, most arguments)
FUNCTIONS: dict[str, tuple[Callable[..., Value], int, int]] = {
    "min": (min, 2, 8),
    "max": (max, 2, 8),
    "abs": (abs, 1, 1),
    "ceil_div": (_ceil_div, 2, 2),  # the quotient, rounded up
    "align": (_align, 2, 2),  # the first, rounded up to a multiple of the second
}


def evaluate(expression: str, variables: Mapping[str, int]) -> Value:
    """Returns the value of `expression`, whose names are looked up in `variables`.

    An expression has numbers, names, + - * / // %, comparisons, `and`, `or`, `not`, `x if c else y`, and the
    functions min, max, abs, ceil_div(a, b), align(a, to). Raises TargetError for anything else, a name that
    is not in `variables`, a division by zero, or a result that is not finite.
    """
    formula = compiled(expression)
    try:
        value = formula(variables)
        finite = not isinstance(value, float) or math.isfinite(value)
    except KeyError as error:
        _refuse(expression, f"unknown name '{error.args[0]}'", did_you_mean(error.args[0], variables))
    except (ZeroDivisionError, OverflowError) as error:
        _refuse(expression, str(error))
    if not finite:
        _refuse(expression, "the result is not finite")
    return value


def check(expression: str, names: frozenset[str]) -> bool:
    """Checks that `expression` is well formed and uses only `names`; raises TargetError otherwise. Returns
    whether it needs no parentheses as a part of another expression.
    """
    used, is_atom = _survey(expression)
    for name in used:
        if name not in names and name not in FUNCTIONS:
            _refuse(expression, f"unknown name '{name}'", did_you_mean(name, names))
    return is_atom


@lru_cache(maxsize=1024)
def _survey(expression: str) -> tuple[tuple[str, ...], bool]:
    """Returns the names in an expression, and whether the expression needs no parentheses as part of another
    one.
    """
    tree = _parse(expression)
    names = dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return tuple(names), isinstance(tree, ast.Name | ast.Constant | ast.Call)


def _refuse(expression: str, why: str, hint: str = "") -> NoReturn:
    text = expression if len(expression) <= 80 else expression[:77] + "..."
    raise TargetError(f"expression '{text}': {why}", hint=hint)


def _parse(expression: str) -> ast.expr:
    """Returns the checked syntax tree of an expression."""
    if len(expression) > MAX_LENGTH:
        _refuse(expression, f"longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    # Deeply nested text makes CPython's parser raise one of the last three.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse(expression, "not a well-formed expression")
    _check_node(tree, expression, 0)
    return tree


def _check_node(node: ast.AST, expression: str, depth: int) -> None:
    """Raises TargetError for a node that is not arithmetic. A tree without such nodes is safe to execute."""
    if depth > MAX_DEPTH:
        _refuse(expression, f"nested deeper than {MAX_DEPTH}")
    children: list[ast.expr] = []
    match node:
        case ast.Constant(value=int() | float() as number) if abs(number) < MAX_LITERAL:
            pass
        case ast.Name():
            pass
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _BINARY):
            children = [left, right]
        case ast.UnaryOp(op=op, operand=operand) if isinstance(op, _UNARY):
            children = [operand]
        case ast.BoolOp(values=values):
            children = values
        case ast.Compare(left=left, ops=ops, comparators=others) if all(isinstance(o, _COMPARE) for o in ops):
            children = [left, *others]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            _, fewest, most = FUNCTIONS[name]
            if not fewest <= len(args) <= most:
                _refuse(expression, f"{name}() takes {fewest} to {most} arguments, not {len(args)}")
            children = args
        case ast.Call(func=ast.Name(id=name)):
            _refuse(expression, f"unknown function '{name}'", did_you_mean(name, FUNCTIONS))
        case _:
            _refuse(expression, f"{type(node).__name__} is not allowed here")
    for child in children:
        _check_node(child, expression, depth + 1)


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Formula:
    """Returns a function of the variables that computes what `evaluate` does, many times faster.

    It is bytecode of the checked tree, and looks names up in the variables only. It does not check names,
    divisions or results: the catalogue's reader has done that.
    """
    function = ast.parse("lambda variables: 0", mode="eval")
    assert isinstance(function.body, ast.Lambda)
    function.body.body = _Names().visit(_parse(expression))
    space: dict[str, object] = {"__builtins__": {}, "bool": bool}
    space.update((name, function) for name, (function, _, _) in FUNCTIONS.items())
    code = compile(ast.fix_missing_locations(function), "<expression>", "eval")
    return cast(Formula, eval(code, space))  # safe: all nodes were checked


class _Names(ast.NodeTransformer):
    """Changes a checked tree so that names are looked up in `variables`, and conditions are True or False."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replaces a name by a look-up in `variables`."""
        return ast.Subscript(ast.Name("variables", ast.Load()), ast.Constant(node.id), ast.Load())

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Makes a condition True or False. Python would return one of its operands."""
        condition = ast.BoolOp(node.op, [self.visit(value) for value in node.values])
        return ast.Call(ast.Name("bool", ast.Load()), [condition], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Changes the arguments of a call, but not the function's name."""
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])
