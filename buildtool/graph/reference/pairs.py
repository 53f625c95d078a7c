"""Elementwise operators of several operands: maxima, differences, quotients, comparisons, SELECT.

The operands are int8, int16 or truth values (one byte, 0 or 1) and broadcast. ADD, SUB and MUL are in
`elementwise`.
"""

import numpy as np

from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.geometry import attributes
from buildtool.graph.ops.pairs import compares_stored
from buildtool.graph.reference import tensors
from buildtool.graph.reference.curves import reciprocal
from buildtool.graph.reference.tensors import Factor, Values, centre, quantization
from buildtool.graph.types import DType, Graph, Op, QuotientAttrs

# Bits by which the operands of SQUARED_DIFFERENCE are shifted left.
DIFFERENCE_LEFT_SHIFTS = {DType.INT8: 7, DType.INT16: 0}
COMPARISON_LEFT_SHIFT = 8  # bits by which the operands of a comparison are shifted left


def larger(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Returns the larger of the stored values. For truth values this is LOGICAL_OR."""
    return [np.asarray(np.maximum(*inputs))]


def smaller(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Returns the smaller of the stored values. For truth values this is LOGICAL_AND."""
    return [np.asarray(np.minimum(*inputs))]


def negate(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes LOGICAL_NOT."""
    return [np.logical_not(inputs[0])]


def select(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SELECT and SELECT_V2: the second operand where the first is true, otherwise the third."""
    return [np.where(*inputs)]


def difference_factors(graph: Graph, op: Op) -> tuple[Factor, Factor, Factor]:
    """Returns (multiplier, shift) of SQUARED_DIFFERENCE for the first operand, the second and the square."""
    first, second = (quantization(graph, op, t).scale for t in op.inputs)
    twice, left = 2 * max(first, second), DIFFERENCE_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    steps = (1 << (2 * left)) * tensors.output_quantization(graph, op).scale
    return (
        quantize_multiplier(first / twice),
        quantize_multiplier(second / twice),
        quantize_multiplier(twice * twice / steps),
    )


def squared_difference(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SQUARED_DIFFERENCE. Both operands are in steps of twice the larger scale times 2^-7.

    For int16 it is twice the larger scale. LiteRT has no such kernel; this is TensorFlow Lite Micro's.
    """
    *pairs, square = difference_factors(graph, op)
    left = DIFFERENCE_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    a, b = (
        multiply_by_quantized_multiplier(centre(graph, op, i, inputs[i]) << left, *pair)
        for i, pair in enumerate(pairs)
    )
    return [tensors.requantise_output(graph, op, (a - b) ** 2, square)]


# ---- DIV ----------------------------------------------------------------------------------------------


def quotient_factor(graph: Graph, op: Op) -> Factor:
    """Returns DIV's (multiplier, shift), computed in float32.

    They apply to operands from which the zero points have been subtracted.
    """
    first, second = (np.float32(quantization(graph, op, t).scale) for t in op.inputs)
    return quantize_multiplier(
        float(first / (second * np.float32(tensors.output_quantization(graph, op).scale)))
    )


def divide(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes DIV with a reciprocal.

    LiteRT fails if a divisor is 0; here the result is the end of the range. For a very small quotient the
    reference kernel shifts by 32 bits or more, which is undefined in C: x86-64 and AArch64 take the distance
    modulo 32. The result here is the same, or 0 if the attributes say so.
    """
    a, b = (centre(graph, op, i, inputs[i]) for i in range(2))
    attrs = attributes(op, QuotientAttrs)
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    factor, bits = reciprocal(np.maximum(b, 1))
    magnitudes = [int(v).bit_length() for v in np.where(a >= 0, a, ~a).flat]
    room = 31 - np.array(magnitudes, np.int64).reshape(a.shape)  # bits after the sign bit, equal to it
    multiplier, shift = quotient_factor(graph, op)
    quotient = fixedpoint.saturating_rounding_doubling_high_mul(a << room, factor)
    scaled = fixedpoint.saturating_rounding_doubling_high_mul(quotient, np.asarray(multiplier, np.int64))
    right = bits + room - shift
    wrapped = (scaled >> (right & 31)) + (scaled >= 0) if attrs.wraps else np.zeros_like(scaled)
    y = np.where(right < 32, fixedpoint.rounding_divide_by_pot(scaled, np.minimum(right, 31)), wrapped)
    return [tensors.clip(graph, op, np.where(b == 0, np.sign(a) << 16, y))]


# ---- truth values -------------------------------------------------------------------------------------


def comparison_operands(graph: Graph, op: Op) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Returns (zero point, multiplier, shift) of both operands, which scale them to steps of 2^-8.

    Truth values count as 0 and 1. LESS, LESS_EQUAL, GREATER and GREATER_EQUAL of int16 compare the stored
    values, as in LiteRT.
    """

    def operand(t: int) -> tuple[int, int, int]:
        if graph.tensors[t].dtype is DType.BOOL or compares_stored(graph, op):
            return 0, *quantize_multiplier(1.0)
        quant = quantization(graph, op, t)
        return quant.zero_point, *quantize_multiplier(quant.scale)

    return operand(op.inputs[0]), operand(op.inputs[1])


def compare(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes a comparison such as LESS, as LiteRT does: of operands rounded to fixed point.

    Both have steps of 1/256, so values that differ by less may count as equal.
    """
    scaled = []
    for value, (zero_point, *factor) in zip(inputs, comparison_operands(graph, op), strict=True):
        steps = (value.astype(np.int64) - zero_point) << COMPARISON_LEFT_SHIFT
        scaled.append(multiply_by_quantized_multiplier(steps, *factor))
    return [np.asarray(getattr(np, op.kind.lower())(*scaled))]
