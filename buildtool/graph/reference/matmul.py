"""BATCH_MATMUL of int8 and int16. Each operand is an activation or a constant."""

import numpy as np

from buildtool.graph.fixedpoint import multiply_wide, quantize_multiplier
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Factor, Values, centre, clip, quantization, requantise_output
from buildtool.graph.types import DType, Graph, MatmulAttrs, Op


def matmul_multiplier(graph: Graph, op: Op) -> Factor:
    """Returns the (multiplier, shift) from a sum of products to the output.

    The product of the operands' scales is in float32.
    """
    first, second, out = (quantization(graph, op, t).scale for t in (*op.inputs, op.outputs[0]))
    return quantize_multiplier(float(np.float32(first) * np.float32(second)) / out)


def batch_matmul(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes BATCH_MATMUL. Sums of int16 have 64 bits."""
    attrs = attributes(op, MatmulAttrs)
    x, y = (centre(graph, op, n, value) for n, value in enumerate(inputs))
    x = x.swapaxes(-1, -2) if attrs.adj_x else x
    y = y.swapaxes(-1, -2) if attrs.adj_y else y
    sums, factor = np.matmul(x, y), matmul_multiplier(graph, op)
    if graph.tensors[op.outputs[0]].dtype is DType.INT16:
        return [clip(graph, op, multiply_wide(sums, *factor))]
    return [requantise_output(graph, op, sums, factor)]
