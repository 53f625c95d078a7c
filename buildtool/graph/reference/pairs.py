"""Operators of several operands element by element: maxima, differences, quotients, comparisons, choices.

int8 and truth values (one byte, 0 or 1); operands broadcast as numpy does. ADD, SUB, MUL: elementwise.py.
"""

import numpy as np

from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.geometry import attributes
from buildtool.graph.reference import tensors
from buildtool.graph.reference.curves import reciprocal
from buildtool.graph.reference.tensors import Factor, Values, centre, quantization
from buildtool.graph.types import DType, Graph, Op, QuotientAttrs

DIFFERENCE_LEFT_SHIFT = 7  # of SQUARED_DIFFERENCE's operands
COMPARISON_LEFT_SHIFT = 8  # of a comparison's operands


def larger(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """The larger of the bytes as they are; of 0 and 1 it is LOGICAL_OR."""
    return [np.asarray(np.maximum(*inputs))]


def smaller(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """The smaller of the bytes as they are; of 0 and 1 it is LOGICAL_AND."""
    return [np.asarray(np.minimum(*inputs))]


def negate(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """LOGICAL_NOT."""
    return [np.logical_not(inputs[0])]


def select(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SELECT and SELECT_V2: the bytes of the second operand where the first is true, else of the third."""
    return [np.where(*inputs)]


def difference_factors(graph: Graph, op: Op) -> tuple[Factor, Factor, Factor]:
    """SQUARED_DIFFERENCE's (multiplier, shift) of the first operand, the second, and the square."""
    first, second = (quantization(graph, op, t).scale for t in op.inputs)
    twice = 2 * max(first, second)
    steps = (1 << (2 * DIFFERENCE_LEFT_SHIFT)) * tensors.output_quantization(graph, op).scale
    return (
        quantize_multiplier(first / twice),
        quantize_multiplier(second / twice),
        quantize_multiplier(twice * twice / steps),
    )


def squared_difference(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SQUARED_DIFFERENCE: both operands in units of twice the larger scale, 2^-7 of it a step."""
    *pairs, square = difference_factors(graph, op)
    a, b = (
        multiply_by_quantized_multiplier(centre(graph, op, i, inputs[i]) << DIFFERENCE_LEFT_SHIFT, *pair)
        for i, pair in enumerate(pairs)
    )
    return [tensors.requantised(graph, op, (a - b) ** 2, square)]


# ---- DIV ----------------------------------------------------------------------------------------------


def quotient_factor(graph: Graph, op: Op) -> Factor:
    """DIV's (multiplier, shift) of the quotient of two differences to zero points; float32."""
    first, second = (np.float32(quantization(graph, op, t).scale) for t in op.inputs)
    return quantize_multiplier(
        float(first / (second * np.float32(tensors.output_quantization(graph, op).scale)))
    )


def divide(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """DIV by a reciprocal; LiteRT stops at a divisor of 0, which here gives the end of the range.

    Where a quotient is very small the reference kernel shifts by 32 bits and more, which C leaves undefined.
    x86-64 and AArch64 take the distance modulo 32, as here unless the attributes ask for 0.
    """
    a, b = (centre(graph, op, i, inputs[i]) for i in range(2))
    attrs = attributes(op, QuotientAttrs)
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    factor, bits = reciprocal(np.maximum(b, 1))
    magnitudes = [int(v).bit_length() for v in np.where(a >= 0, a, ~a).flat]
    room = 31 - np.array(magnitudes, np.int64).reshape(a.shape)  # bits below the sign that are equal to it
    multiplier, shift = quotient_factor(graph, op)
    quotient = fixedpoint.saturating_rounding_doubling_high_mul(a << room, factor)
    scaled = fixedpoint.saturating_rounding_doubling_high_mul(quotient, np.asarray(multiplier, np.int64))
    right = bits + room - shift
    wrapped = (scaled >> (right & 31)) + (scaled >= 0) if attrs.wraps else np.zeros_like(scaled)
    y = np.where(right < 32, fixedpoint.rounding_divide_by_pot(scaled, np.minimum(right, 31)), wrapped)
    return [tensors.clip(graph, op, np.where(b == 0, np.sign(a) * 256, y))]


# ---- truth values -------------------------------------------------------------------------------------


def comparison_operands(graph: Graph, op: Op) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(zero point, multiplier, shift) of both operands, in steps of 2^-8; truth values are 0 and 1."""

    def operand(t: int) -> tuple[int, int, int]:
        if graph.tensors[t].dtype is DType.BOOL:
            return 0, *quantize_multiplier(1.0)
        quant = quantization(graph, op, t)
        return quant.zero_point, *quantize_multiplier(quant.scale)

    return operand(op.inputs[0]), operand(op.inputs[1])


def compare(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """EQUAL, LESS, ...: operands in units of 1/256, rounded; so values of small scales may count as equal."""
    scaled = []
    for value, (zero_point, *factor) in zip(inputs, comparison_operands(graph, op), strict=True):
        steps = (value.astype(np.int64) - zero_point) << COMPARISON_LEFT_SHIFT
        scaled.append(multiply_by_quantized_multiplier(steps, *factor))
    return [np.asarray(getattr(np, op.kind.lower())(*scaled))]
