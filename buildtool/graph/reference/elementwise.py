"""ADD, SUB, MUL and PRELU of int8 and int16. Inputs broadcast as in numpy."""

import numpy as np

from buildtool.graph.fixedpoint import RANGES, multiply_by_quantized_multiplier, quantize_multiplier
from buildtool.graph.reference import tensors
from buildtool.graph.reference.tensors import Factor, Values, centre, float_factor, quantization
from buildtool.graph.types import DType, Graph, Op, OpKind, WidenedAttrs

# Bits by which both inputs of ADD and SUB are shifted left before they are scaled.
ADD_LEFT_SHIFTS = {DType.INT8: 20, DType.INT16: 15}


def add_factors(graph: Graph, op: Op) -> tuple[Factor, Factor, Factor]:
    """Returns (multiplier, shift) of ADD or SUB for the first input, the second input and the output.

    Both inputs are scaled to steps of twice the larger scale times 2^-20, for int16 times 2^-15.
    """
    scales = [quantization(graph, op, t).scale for t in op.inputs[:2]]
    twice_larger = 2 * max(scales)
    left = ADD_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    return (
        quantize_multiplier(scales[0] / twice_larger),
        quantize_multiplier(scales[1] / twice_larger),
        quantize_multiplier(twice_larger / ((1 << left) * tensors.output_quantization(graph, op).scale)),
    )


def add_sub(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes ADD and SUB."""
    if isinstance(op.attrs, WidenedAttrs):  # adds the missing channels to the second operand
        wide, narrow, filling = inputs
        after = wide.shape[-1] - narrow.shape[-1] - op.attrs.before
        sides = [(0, 0)] * (narrow.ndim - 1) + [(op.attrs.before, after)]
        inputs = [wide, np.pad(narrow, sides, constant_values=filling[0])]
    *factors, out = add_factors(graph, op)
    left = ADD_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    a, b = (
        multiply_by_quantized_multiplier(centre(graph, op, i, inputs[i]) << left, *factor)
        for i, factor in enumerate(factors)
    )
    return [tensors.requantise_output(graph, op, a - b if op.kind is OpKind.SUB else a + b, out)]


def mul(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes MUL. The factor is in float32, as in TFLite."""
    product = centre(graph, op, 0, inputs[0]) * centre(graph, op, 1, inputs[1])
    factor = float_factor(graph, op, quantization(graph, op, op.inputs[1]).scale)
    return [tensors.requantise_output(graph, op, product, factor)]


def prelu(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes PRELU. Alpha broadcasts to the input; the factors are in float32."""
    x, alpha = centre(graph, op, 0, inputs[0]), centre(graph, op, 1, inputs[1])
    negative = float_factor(graph, op, quantization(graph, op, op.inputs[1]).scale)
    dtype, zero_point = graph.tensors[op.outputs[0]].dtype, tensors.output_quantization(graph, op).zero_point
    y = np.where(
        x >= 0,
        tensors.requantise(x, *float_factor(graph, op), zero_point, RANGES[dtype]),
        tensors.requantise(x * alpha, *negative, zero_point, RANGES[dtype]),
    )
    return [y.astype(dtype.value)]
