"""TFLite's built-in operators: which are read, with which types of activations, and why the others are not.

Run as a program, this prints docs/operators.md.
"""

import sys
from collections.abc import Callable

from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Int16, OpDef, Spelling
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import DType

_B = tflite.BuiltinOperator
_NO_KERNEL = "no kernel here"

# The operators that are read, by their codes.
SPELLINGS: dict[int, tuple[OpDef, Spelling]] = {
    getattr(_B, spelling.name): (definition, spelling)
    for definition in DEFS.values()
    for spelling in definition.read
}
# Operators that are read with int16 activations (16x8 quantisation), too.
INT16 = frozenset(code for code, (_, spelling) in SPELLINGS.items() if spelling.int16 is Int16.READ)
# Operators whose int8 form LiteRT's reference kernels lack, or compute otherwise than they say.
_LACKS = "LiteRT's kernel takes no int8"
_WITHOUT = (_B.FLOOR, _B.CEIL, _B.ROUND, _B.SIN, _B.COS, _B.SIGN, _B.ZEROS_LIKE, _B.CUMSUM)
_GIVES = "it gives integers, which are folded where a parameter reads them"
_TAKES = "it takes integers, and is folded where a parameter reads it"
NO_INT8: dict[int, str] = {
    _B.SQUARE: f"{_LACKS}; use MUL of a tensor by itself",
    _B.ADD_N: f"{_LACKS}; use ADD of two tensors at a time",
    _B.POW: f"{_LACKS}; use MUL for a square, SQRT for a root",
    _B.SUM: "LiteRT's reference kernel takes the bytes for uint8; use MEAN, the scale divided by the count",
    **dict.fromkeys(_WITHOUT, _LACKS),
    **dict.fromkeys((_B.SHAPE, _B.RANK), _GIVES),
    **dict.fromkeys((_B.RANGE, _B.BROADCAST_ARGS), _TAKES),
}
# Operators that run another subgraph.
CONTROL_FLOW = {_B.CALL, _B.IF, _B.WHILE, _B.STABLEHLO_WHILE, _B.STABLEHLO_REDUCE, _B.STABLEHLO_SORT}
# Operators that name, initialise, read and assign variables, which become states (see `network`).
VARIABLES = {_B.VAR_HANDLE, _B.READ_VARIABLE, _B.ASSIGN_VARIABLE, _B.CALL_ONCE}
# Operators that keep state between two runs, and are not read.
STATEFUL = {
    *(_B.LSTM, _B.RNN, _B.UNIDIRECTIONAL_SEQUENCE_RNN),
    *(_B.BIDIRECTIONAL_SEQUENCE_RNN, _B.BIDIRECTIONAL_SEQUENCE_LSTM),
}


def table() -> dict[str, dict[str, str]]:
    """Every built-in operator of the schema, by name: by data type why it is not read, "" where it is."""
    named = sorted((name, code) for code, name in BUILTIN_NAMES.items())
    return {name: {str(dtype): reason(code) for dtype, reason in TYPES.items()} for name, code in named}


def _int8(code: int) -> str:
    """Why an operator is not read; "" where it is."""
    if code in SPELLINGS or code in VARIABLES:
        return ""
    if code in CONTROL_FLOW:
        return "it runs another subgraph"
    if code == _B.CUSTOM:
        return "its arithmetic is not LiteRT's"
    return NO_INT8.get(code, _NO_KERNEL)


def _uint8(code: int) -> str:
    if code in VARIABLES:
        return "state is of int8 or int16"
    return _int8(code) or SPELLINGS[code][0].no_uint8


def _int16(code: int) -> str:
    if code in INT16 | VARIABLES:
        return ""
    lacks = code in SPELLINGS and SPELLINGS[code][1].int16 is Int16.NOT_IN_LITERT
    return _int8(code) or ("LiteRT's kernel takes no int16" if lacks else _NO_KERNEL)


TYPES: dict[DType, Callable[[int], str]] = {DType.INT8: _int8, DType.UINT8: _uint8, DType.INT16: _int16}

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
    lines = [titles, ["---"] * len(titles)]
    for name, reasons in table().items():
        cells, seen = [name], {""}  # a reason that an earlier type has stands once
        for reason in reasons.values():
            cells.append("read" if not reason else "refused" if reason in seen else f"refused: {reason}")
            seen.add(reason)
        lines.append(cells)
    return _HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
