"""MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD over any axes, ARG_MAX and ARG_MIN: 8 bits."""

from __future__ import annotations

import math

import numpy as np

from buildtool.graph.fixedpoint import RANGES, multiply_wide, quantize_multiplier, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.ops.reductions import product_step
from buildtool.graph.reference.tensors import (
    Values,
    centred,
    output_quantization,
    quantization,
    requantised,
)
from buildtool.graph.types import AxisAttrs, DType, Graph, MeanAttrs, Op, OpKind


def mean_count(graph: Graph, op: Op) -> int:
    """How many elements become one."""
    shape = graph.tensors[op.inputs[0]].shape
    return math.prod(shape[axis] for axis in attributes(op, MeanAttrs).axes)


def mean(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """MEAN; sums are modulo 2^32, as LiteRT's are, and 1 / count is part of their factor.

    The multiplier of the two scales' ratio is shifted left as far as the count has bits, then
    divided by the count, truncating; 31 bits in all are kept.
    """
    attrs, count = attributes(op, MeanAttrs), mean_count(graph, op)
    scale, out = quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op).scale
    multiplier, shift = quantize_multiplier(scale / out)
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    total = wrap_int32(centred(graph, op, 0, inputs[0]).sum(axis=attrs.axes, keepdims=attrs.keep_dims))
    return [requantised(graph, op, total, ((multiplier << bits) // count, shift - bits))]


def extreme(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """REDUCE_MAX, REDUCE_MIN."""
    attrs = attributes(op, MeanAttrs)
    function = np.max if op.kind is OpKind.REDUCE_MAX else np.min
    return [np.asarray(function(inputs[0], axis=attrs.axes, keepdims=attrs.keep_dims))]


def product_factor(graph: Graph, op: Op) -> tuple[int, int]:
    """(multiplier, shift) of every step of a product."""
    return quantize_multiplier(product_step(graph, op))


def product(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """REDUCE_PROD; scaled and rounded after each factor, in the order in which they lie, modulo 2^32."""
    attrs, factor = attributes(op, MeanAttrs), product_factor(graph, op)
    x, shape = centred(graph, op, 0, inputs[0]), graph.tensors[op.outputs[0]].shape
    kept = [d for d in range(x.ndim) if d not in attrs.axes]
    first, *rest = x.transpose(*attrs.axes, *kept).reshape(mean_count(graph, op), -1)
    for element in rest:
        first = multiply_wide(first * element, *factor)
    total = wrap_int32(multiply_wide(first, *factor) + output_quantization(graph, op).zero_point)
    return [np.clip(total, *RANGES[DType.INT8]).astype(np.int8).reshape(shape)]


def arg_extreme(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """ARG_MAX, ARG_MIN: the first of equal ones."""
    function = np.argmax if op.kind is OpKind.ARG_MAX else np.argmin
    found = function(inputs[0], axis=attributes(op, AxisAttrs).axis)
    return [np.asarray(found, graph.tensors[op.outputs[0]].dtype.value)]
