"""MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD over any axes, ARG_MAX and ARG_MIN; pools. 8 bits, some 16."""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from buildtool.graph.fixedpoint import RANGES, multiply_wide, quantize_multiplier, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.ops.reductions import product_step
from buildtool.graph.reference import tensors
from buildtool.graph.reference.tensors import Int64, Values, centre, requantised
from buildtool.graph.types import AsUint8, AxisAttrs, DType, Graph, MeanAttrs, Op, OpKind, PoolAttrs


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
    source, out = tensors.quantization(graph, op, op.inputs[0]), tensors.output_quantization(graph, op)
    multiplier, shift = quantize_multiplier(source.scale / out.scale)
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    total = wrap_int32(centre(graph, op, 0, inputs[0]).sum(axis=attrs.axes, keepdims=attrs.keep_dims))
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
    x, shape = centre(graph, op, 0, inputs[0]), graph.tensors[op.outputs[0]].shape
    kept = [d for d in range(x.ndim) if d not in attrs.axes]
    first, *rest = x.transpose(*attrs.axes, *kept).reshape(mean_count(graph, op), -1)
    for element in rest:
        first = multiply_wide(first * element, *factor)
    total = wrap_int32(multiply_wide(first, *factor) + tensors.output_quantization(graph, op).zero_point)
    return [np.clip(total, *RANGES[DType.INT8]).astype(np.int8).reshape(shape)]


def arg_extreme(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """ARG_MAX, ARG_MIN: the first of equal ones."""
    function = np.argmax if op.kind is OpKind.ARG_MAX else np.argmin
    places = function(inputs[0], axis=attributes(op, AxisAttrs).axis)
    return [np.asarray(places, graph.tensors[op.outputs[0]].dtype.value)]


def _windows(x: Int64, attrs: PoolAttrs, out: tuple[int, ...], fill: int) -> Int64:
    """A view (batch, rows, columns, channels, kernel rows, kernel columns) of the padded input."""
    # Windows of the last rows and columns may reach past the explicit padding.
    need = [(out[i + 1] - 1) * attrs.stride[i] + attrs.kernel[i] for i in range(2)]
    before = (attrs.pad.top, attrs.pad.left)
    after = [max(need[i] - x.shape[i + 1] - before[i], 0) for i in range(2)]
    widths = ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0))
    view = sliding_window_view(np.pad(x, widths, constant_values=fill), attrs.kernel, axis=(1, 2))
    return view[:, :: attrs.stride[0], :: attrs.stride[1]][:, : out[1], : out[2]]


def pool(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """AVERAGE_POOL_2D, MAX_POOL_2D: padded positions do not count.

    The quantisations of input and output are taken to be equal, as in TFLite.
    """
    attrs, out = attributes(op, PoolAttrs), graph.tensors[op.outputs[0]]
    x = inputs[0].astype(np.int64)
    if op.kind is OpKind.MAX_POOL_2D:
        y = _windows(x, attrs, out.shape, RANGES[out.dtype][0]).max(axis=(4, 5))
    else:
        inside = np.ones((1, *x.shape[1:3], 1), np.int64)
        count = _windows(inside, attrs, out.shape, 0).sum(axis=(4, 5))
        total = _windows(x, attrs, out.shape, 0).sum(axis=(4, 5))
        sign = 1 if isinstance(attrs, AsUint8) else np.sign(total)  # halves up, or away from zero
        y = sign * ((sign * total + count // 2) // count)
    return [np.clip(y, *tensors.output_limits(graph, op)).astype(out.dtype.value)]
