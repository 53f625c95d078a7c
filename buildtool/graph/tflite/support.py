"""TFLite's built-in operators by the data type of their activations: read, or why not.

A data type is a line of `TYPES`; the tables behind it are the reader's own. Run as a program,
it prints docs/operators.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from buildtool.graph.tflite import operators
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import DType

_NO_KERNEL = "no kernel here"


@dataclass(frozen=True)
class Support:
    """An operator; `refused`: by data type why it is not read, "" where it is."""

    name: str
    refused: dict[str, str]


def table() -> tuple[Support, ...]:
    """Every built-in operator of TFLite's schema, by name."""
    named = sorted((name, code) for code, name in BUILTIN_NAMES.items())
    return tuple(
        Support(name, {str(dtype): reason(code) for dtype, reason in TYPES.items()}) for name, code in named
    )


def _int8(code: int) -> str:
    """Why an operator is not read; "" where it is."""
    if code in operators.SPELLINGS or code in operators.VARIABLES:
        return ""
    if code in operators.CONTROL_FLOW:
        return "it runs another subgraph"
    if code == tflite.BuiltinOperator.CUSTOM:
        return "its arithmetic is not LiteRT's"
    return operators.NO_INT8.get(code, _NO_KERNEL)


def _uint8(code: int) -> str:
    if code in operators.VARIABLES:
        return "state is of int8 or int16"
    return _int8(code) or operators.SPELLINGS[code][0].no_uint8


def _int16(code: int) -> str:
    return _int8(code) or (
        "" if code in (operators.INT16 | operators.VARIABLES) else operators.NO_INT16.get(code, _NO_KERNEL)
    )


TYPES: dict[DType, Callable[[int], str]] = {
    DType.INT8: _int8,
    DType.UINT8: _uint8,
    DType.INT16: _int16,
}

_HEAD = """\
# TFLite's operators: which are read

This page is made from the tables that the reader uses:
`python -m buildtool.graph.tflite.support > docs/operators.md`. `buildtool ops` prints the same, and which
kernels each operator has on every board; `buildtool ops --json` gives it to programs.

The columns are the data types of an operator's activations. Truth values, which comparisons give and SELECT
takes, are bytes of 0 and 1. Some operators take other types at a network's edges: QUANTIZE reads float32 and
uint8 and writes uint8 as well; DEQUANTIZE writes float32. Networks of uint8 become int8 networks that compute
the same to the bit. Float networks are refused as a whole. Integer operators on constant shapes
(SHAPE, PACK and their like) are folded where only a parameter of another operator reads them.

"""


def page() -> str:
    """The page in Markdown: every built-in operator of the schema, read or refused with the reason."""
    titles = ["operator", *map(str, TYPES)]
    lines = [titles, ["---"] * len(titles), *map(_row, table())]
    return _HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(operator: Support) -> list[str]:
    """An operator's cells; a reason that an earlier type has stands once."""
    cells, seen = [operator.name], {""}
    for reason in operator.refused.values():
        cells.append("read" if not reason else "refused" if reason in seen else f"refused: {reason}")
        seen.add(reason)
    return cells


if __name__ == "__main__":
    sys.stdout.write(page())
