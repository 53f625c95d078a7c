"""Finds the operators of an integer network that compute in float32 (a float island), and checks them.

A converter leaves an operator in float32 where it has no integer form for it, between a DEQUANTIZE and a
QUANTIZE. Its tensors have no scales, so the rules for integers do not apply.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buildtool.graph.ops import COMPARISONS, DEFS
from buildtool.graph.quantrules import QuantError, check_type
from buildtool.graph.types import DType, Graph, Op, OpKind, cached_on_graph

Array = npt.NDArray[np.generic]
CONVERSIONS = frozenset({OpKind.QUANTIZE, OpKind.DEQUANTIZE, OpKind.CAST})
MOST_WEIGHTS = 10_000  # float32 constants of a network that runs as it is


def touches_floats(graph: Graph, op: Op) -> bool:
    """Whether an operator reads or writes float32."""
    return any(t >= 0 and graph.tensors[t].dtype is DType.FLOAT32 for t in (*op.inputs, *op.outputs))


def computes_in_floats(graph: Graph, op: Op) -> bool:
    """Whether an operator reads or writes float32 and is not a conversion."""
    return op.kind not in CONVERSIONS and touches_floats(graph, op)


@cached_on_graph
def float_operators(graph: Graph) -> frozenset[int]:
    """Returns the positions of the operators that read or write float32."""
    return frozenset(i for i, op in enumerate(graph.ops) if touches_floats(graph, op))


def check_floats(graph: Graph, op: Op) -> None:
    """Raises QuantError for an operator that cannot run in float32.

    It needs a float32 form, constant weights, and tensors of float32 elements or truth values.
    """
    definition = DEFS[op.kind]
    if not definition.floats:
        raise QuantError(f"{op.kind} has no float32 form")
    for position, t in enumerate(op.inputs):
        if t >= 0 and not (op.kind is OpKind.GATHER and position):  # indices
            chooses = op.kind is OpKind.SELECT_V2 and position == 0
            check_type(graph.tensors[t], DType.BOOL if chooses else DType.FLOAT32)
        if position > 0 and definition.optional and t >= 0 and not graph.tensors[t].is_constant:
            raise QuantError("float32 weights that are not constant", graph.tensors[t])
    for t in op.outputs:
        check_type(graph.tensors[t], DType.BOOL if op.kind in COMPARISONS else DType.FLOAT32)


# ---- exp, log, tanh, ... -------------------------------------------------------------------------------

# LiteRT calls the machine's library, whose documented errors are at most 1 unit in the last place (tanh: 2).
# Ours are below 1 (`reference.realfunctions`), so the two are at most this many units apart. LiteRT
# computes GELU with Eigen's erfc and tanh, which were measured. The unit of GELU is the operand's, as results
# near 0 are differences; the unit of LOG_SOFTMAX is at least that of 1.
_UNITS_APART = {
    OpKind.EXP: 2,
    OpKind.LOG: 2,
    OpKind.TANH: 3,
    OpKind.LOGISTIC: 8,
    OpKind.ELU: 2,
    OpKind.POW: 2,
    OpKind.GELU: 4,
}
_UNITS_OF_TERM = 2  # units for each term of a sum, because each of its roundings may differ


def curve_bound(graph: Graph, op: Op) -> int:
    """Returns how far an operator's results may be from LiteRT's, in units in the last place of float32.

    It is 0 for operators that equal LiteRT's to the bit. The others compute an exp, a log or a tanh.
    """
    if not computes_in_floats(graph, op):
        return 0
    if op.kind in (OpKind.SOFTMAX, OpKind.LOG_SOFTMAX):
        return _UNITS_APART[OpKind.LOGISTIC] + _UNITS_OF_TERM * graph.tensors[op.inputs[0]].shape[-1]
    return _UNITS_APART.get(op.kind, 0)


def curve_units(op: Op, operand: Array) -> Array | None:
    """Returns numbers whose last place is the unit of `curve_bound`, one for each element of the result.

    Where the result itself is larger in magnitude, its own last place is the unit. Returns None if the
    result's last place is the unit everywhere. `operand`: the operator's input.
    """
    if op.kind is OpKind.LOG_SOFTMAX:
        return np.ones_like(operand)
    return operand if op.kind is OpKind.GELU else None
