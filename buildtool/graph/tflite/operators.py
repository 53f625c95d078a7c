"""TFLite's operators by their builtin codes: which are read, and why the others are not."""

from __future__ import annotations

from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Int16, OpDef, Spelling
from buildtool.graph.tflite.schema import tflite

_B = tflite.BuiltinOperator


def _spelled(*, int16: Int16) -> frozenset[int]:
    return frozenset(code for code, (_, spelling) in SPELLINGS.items() if spelling.int16 is int16)


# The operators that are read, by their codes.
SPELLINGS: dict[int, tuple[OpDef, Spelling]] = {
    getattr(_B, spelling.name): (found, spelling) for found in DEFS.values() for spelling in found.read
}
# Operators that are read with int16 activations (16x8 quantisation), too.
INT16 = _spelled(int16=Int16.READ)


# Element-wise operators whose int8 form LiteRT's reference kernels lack, or compute otherwise than they say.
NO_INT8: dict[int, str] = {
    _B.SQUARE: "LiteRT's kernel takes no int8; use MUL of a tensor by itself",
    _B.ADD_N: "LiteRT's kernel takes no int8; use ADD of two tensors at a time",
    _B.POW: "LiteRT's kernel takes no int8; use MUL for a square, SQRT for a root",
    _B.FLOOR: "LiteRT's kernel takes no int8",
    _B.CEIL: "LiteRT's kernel takes no int8",
    _B.ROUND: "LiteRT's kernel takes no int8",
    _B.SIN: "LiteRT's kernel takes no int8",
    _B.COS: "LiteRT's kernel takes no int8",
    _B.SIGN: "LiteRT's kernel takes no int8",
    _B.ZEROS_LIKE: "LiteRT's kernel takes no int8",
    _B.CUMSUM: "LiteRT's kernel takes no int8",
    _B.SUM: "LiteRT's reference kernel takes the bytes for uint8; use MEAN, the scale divided by the count",
    _B.SHAPE: "it gives integers, which are folded where a parameter reads them",
    _B.RANK: "it gives integers, which are folded where a parameter reads them",
    _B.RANGE: "it takes integers, and is folded where a parameter reads it",
    _B.BROADCAST_ARGS: "it takes integers, and is folded where a parameter reads it",
}
# Operators whose int16 form LiteRT lacks.
NO_INT16 = dict.fromkeys(_spelled(int16=Int16.NOT_IN_LITERT), "LiteRT's kernel takes no int16")
# Operators that run another subgraph.
CONTROL_FLOW = frozenset(
    {_B.CALL, _B.IF, _B.WHILE, _B.STABLEHLO_WHILE, _B.STABLEHLO_REDUCE, _B.STABLEHLO_SORT}
)
# Operators that name, initialise, read and assign variables, which become states (see `variables`).
VARIABLES = frozenset({_B.VAR_HANDLE, _B.READ_VARIABLE, _B.ASSIGN_VARIABLE, _B.CALL_ONCE})
# Operators that keep state between two runs, and are not read.
STATEFUL = frozenset(
    {
        _B.LSTM,
        _B.RNN,
        _B.UNIDIRECTIONAL_SEQUENCE_RNN,
        _B.BIDIRECTIONAL_SEQUENCE_RNN,
        _B.BIDIRECTIONAL_SEQUENCE_LSTM,
    }
)
