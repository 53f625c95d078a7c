"""Lists TFLite's built-in operators: which are read for which activation types, and why others are refused.

Run as a program, this module prints docs/reference/operators.md.
"""

import sys
from collections.abc import Callable

from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import OpDef, Spelling
from buildtool.graph.tflite.flat import BUILTIN_NAMES
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import DType

_B = tflite.BuiltinOperator
_NO_KERNEL = "no kernel here"

# The operators that are read: by operator code, and custom ones by name.
_READ = [(definition, spelling) for definition in DEFS.values() for spelling in definition.read]
SPELLINGS = {getattr(_B, one[1].name): one for one in _READ if hasattr(_B, one[1].name)}
CUSTOM: dict[str, tuple[OpDef, Spelling]] = {
    one[1].name: one for one in _READ if not hasattr(_B, one[1].name)
}
# Operators that are also read with int16 activations (16x8 quantisation).
INT16 = frozenset(code for code, (definition, _) in SPELLINGS.items() if not definition.no_int16)
# Operators that LiteRT's reference kernels do not compute in int8.
_LACKS = "LiteRT's kernel does not support int8"
_WITHOUT = (_B.FLOOR, _B.CEIL, _B.ROUND, _B.SIN, _B.COS, _B.SIGN, _B.ZEROS_LIKE, _B.CUMSUM)
_GIVES = "its output is integers, which are folded where they are a parameter of another operator"
_TAKES = "its input is integers; it is folded where its output is a parameter of another operator"
NO_INT8: dict[int, str] = {
    _B.ADD_N: f"{_LACKS}; use several ADDs of two tensors",
    **dict.fromkeys(_WITHOUT, _LACKS),
    **dict.fromkeys((_B.SHAPE, _B.RANK), _GIVES),
    **dict.fromkeys((_B.RANGE, _B.BROADCAST_ARGS), _TAKES),
}
# Operators that run another subgraph.
CONTROL_FLOW = {_B.CALL, _B.IF, _B.WHILE, _B.STABLEHLO_WHILE, _B.STABLEHLO_REDUCE, _B.STABLEHLO_SORT}
# Operators that name, initialise, read and assign variables. Variables become states (see `network`).
VARIABLES = {_B.VAR_HANDLE, _B.READ_VARIABLE, _B.ASSIGN_VARIABLE, _B.CALL_ONCE}
# Operators that keep state between two runs and are refused.
STATEFUL = {
    *(_B.LSTM, _B.RNN, _B.UNIDIRECTIONAL_SEQUENCE_RNN),
    *(_B.BIDIRECTIONAL_SEQUENCE_RNN, _B.BIDIRECTIONAL_SEQUENCE_LSTM),
}


def table() -> dict[str, dict[str, str]]:
    """Returns {operator: {data type: reason for a refusal}}. The reason is "" if there is no refusal."""
    named = sorted((name, code) for code, name in BUILTIN_NAMES.items())
    return {name: {str(dtype): reason(code) for dtype, reason in TYPES.items()} for name, code in named}


def _int8(code: int) -> str:
    """Returns the reason why an operator is refused in int8. It is "" if the operator is supported."""
    if code in SPELLINGS:
        return SPELLINGS[code][0].no_integers
    if code in VARIABLES:
        return ""
    if code in CONTROL_FLOW:
        return "it runs another subgraph"
    if code == _B.CUSTOM:
        return "only TFLite_Detection_PostProcess and TFLM's signal library are known"
    return NO_INT8.get(code, _NO_KERNEL)


def _uint8(code: int) -> str:
    if code in VARIABLES:
        return "state must be int8 or int16"
    return _int8(code) or SPELLINGS[code][0].no_uint8


def _int16(code: int) -> str:
    if code in VARIABLES:
        return ""
    return _int8(code) or SPELLINGS[code][0].no_int16


def _float32(code: int) -> str:
    if code in SPELLINGS:
        return "" if SPELLINGS[code][0].floats else _NO_KERNEL
    if code in VARIABLES:
        return "state must be int8 or int16"
    return _NO_KERNEL if code in NO_INT8 else _int8(code)


TYPES: dict[DType, Callable[[int], str]] = {
    DType.INT8: _int8,
    DType.UINT8: _uint8,
    DType.INT16: _int16,
    DType.FLOAT32: _float32,
}

_HEAD = """\
# TFLite operators that are supported

The reader's tables generate this page:
`python -m buildtool.graph.tflite.support > docs/reference/operators.md`. `buildtool ops` prints the same
table, and the kernels of each operator on every board. `buildtool ops --json` prints it as JSON.

The columns are the data types of an operator's activations. Truth values are bytes of 0 and 1: comparisons
write them and SELECT reads them. Some operators have other types at the inputs and outputs of a network:
QUANTIZE also reads float32 and uint8, and also writes uint8; DEQUANTIZE writes float32. A uint8 network
becomes an int8 network that computes the same values, bit for bit. The filters of int8 CONV_2D,
DEPTHWISE_CONV_2D and FULLY_CONNECTED may have 4 bits ([four-bit weights](../guides/four-bit-weights.md)).
Operators of float32 run in a network with fewer than 10,000 weights of float32 ([float
islands](../guides/float-islands.md)); a larger float network is refused as a whole; `buildtool quantize`
makes an integer network of it ([quantize.md](../guides/quantize.md)).
TFLite_Detection_PostProcess, a custom operator of LiteRT, reads int8 or uint8 and writes float32
([detection.md](../guides/detection.md)). The custom operators of TensorFlow Lite Micro's signal library make
features of sound ([sound.md](../guides/sound.md)). All other custom operators are refused.
ADD, SUB, MUL, DIV and the larger or smaller of two elements also take int32 numbers without a scale.
Integer operators on constant shapes (such as SHAPE and PACK) are folded if their output is only used as a
parameter of other operators.

"""


def page() -> str:
    """Returns the page as Markdown: one row per built-in operator, with the reason if it is refused."""
    titles = ["operator", *map(str, TYPES)]
    lines = [titles, ["---"] * len(titles)]
    for name, reasons in table().items():
        cells, printed = [name], {""}  # the same reason is printed once per row
        for reason in reasons.values():
            cells.append("read" if not reason else "refused" if reason in printed else f"refused: {reason}")
            printed.add(reason)
        lines.append(cells)
    return _HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
