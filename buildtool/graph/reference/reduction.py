"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, ARG_MAX, ARG_MIN and pools."""

import math
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from buildtool.graph.fixedpoint import RANGES, multiply_wide, quantize_multiplier, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.ops.reductions import product_step
from buildtool.graph.reference import tensors
from buildtool.graph.reference.tensors import Int64, Values, centre, requantise_output
from buildtool.graph.types import (
    AsUint8,
    AxisAttrs,
    FilledPoolAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PoolAttrs,
)


def mean_count(graph: Graph, op: Op) -> int:
    """Returns the number of input elements that are reduced to one output element."""
    shape = graph.tensors[op.inputs[0]].shape
    return math.prod(shape[axis] for axis in attributes(op, MeanAttrs).axes)


def mean(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes MEAN. As in LiteRT, sums are modulo 2^32, and 1 / count is part of their factor.

    The multiplier for the ratio of the scales is shifted left by floor(log2(count)) bits, or by fewer where
    the shift would be out of range. Then it is divided by the count and rounded down. The multiplier has 31
    bits.
    """
    return [finish_mean(graph, op, _add_up(graph, op, inputs))]


def finish_mean(graph: Graph, op: Op, total: Int64) -> Values:
    """Returns the output of MEAN from the sums of the elements minus their zero point, modulo 2^32."""
    count, (multiplier, shift) = mean_count(graph, op), _scale_factor(graph, op)
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    return requantise_output(graph, op, total, ((multiplier << bits) // count, shift - bits))


def total(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SUM as TensorFlow Lite Micro does: LiteRT's reference kernel reads the elements as uint8."""
    return [finish_total(graph, op, _add_up(graph, op, inputs))]


def finish_total(graph: Graph, op: Op, total: Int64) -> Values:
    """Returns the output of SUM from the sums of the elements minus their zero point, modulo 2^32."""
    return requantise_output(graph, op, total, _scale_factor(graph, op))


def _scale_factor(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns (multiplier, shift) from the input's scale to the output's, in double precision."""
    source, out = tensors.quantization(graph, op, op.inputs[0]), tensors.output_quantization(graph, op)
    return quantize_multiplier(source.scale / out.scale)


def _add_up(graph: Graph, op: Op, inputs: list[Values]) -> Int64:
    """Returns the sums of the elements minus their zero point, modulo 2^32."""
    attrs = attributes(op, MeanAttrs)
    return wrap_int32(centre(graph, op, 0, inputs[0]).sum(axis=attrs.axes, keepdims=attrs.keep_dims))


def extreme(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes REDUCE_MAX and REDUCE_MIN."""
    attrs = attributes(op, MeanAttrs)
    function = np.max if op.kind is OpKind.REDUCE_MAX else np.min
    return [np.asarray(function(inputs[0], axis=attrs.axes, keepdims=attrs.keep_dims))]


def product_factor(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns the (multiplier, shift) that REDUCE_PROD applies at each step."""
    return quantize_multiplier(product_step(graph, op))


def product(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes REDUCE_PROD modulo 2^32.

    It multiplies the elements in memory order, and scales and rounds after each one.
    """
    attrs, factor = attributes(op, MeanAttrs), product_factor(graph, op)
    x, shape = centre(graph, op, 0, inputs[0]), graph.tensors[op.outputs[0]].shape
    other_axes = [d for d in range(x.ndim) if d not in attrs.axes]
    first, *rest = x.transpose(*attrs.axes, *other_axes).reshape(mean_count(graph, op), -1)
    for element in rest:
        first = multiply_wide(first * element, *factor)
    total = wrap_int32(multiply_wide(first, *factor) + tensors.output_quantization(graph, op).zero_point)
    dtype = graph.tensors[op.outputs[0]].dtype
    return [np.clip(total, *RANGES[dtype]).astype(dtype.value).reshape(shape)]


def arg_extreme(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes ARG_MAX and ARG_MIN. Of equal elements, the first one counts."""
    function = np.argmax if op.kind is OpKind.ARG_MAX else np.argmin
    places = function(inputs[0], axis=attributes(op, AxisAttrs).axis)
    return [np.asarray(places, graph.tensors[op.outputs[0]].dtype.value)]


def _make_windows(x: Int64, attrs: PoolAttrs, out: tuple[int, ...], fill: int) -> Int64:
    """Pads `x` with `fill`, or with the value of a folded PAD, and returns its windows.

    Their shape is (batch, rows, columns, channels, kernel rows, kernel columns).
    """
    # Windows of the last rows and columns may reach past the explicit padding.
    need = [(out[i + 1] - 1) * attrs.stride[i] + attrs.kernel[i] for i in range(2)]
    before = (attrs.pad.top, attrs.pad.left)
    fill = attrs.value if isinstance(attrs, FilledPoolAttrs) else fill
    after = [max(need[i] - x.shape[i + 1] - before[i], 0) for i in range(2)]
    widths = ((0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0))
    windows = sliding_window_view(np.pad(x, widths, constant_values=fill), attrs.kernel, axis=(1, 2))
    return windows[:, :: attrs.stride[0], :: attrs.stride[1]][:, : out[1], : out[2]]


def pool(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes AVERAGE_POOL_2D and MAX_POOL_2D. Padded positions count only for a folded PAD.

    As in TFLite, input and output must have the same quantisation.
    """
    attrs, out = attributes(op, PoolAttrs), graph.tensors[op.outputs[0]]
    x = inputs[0].astype(np.int64)
    if op.kind is OpKind.MAX_POOL_2D:
        y = _make_windows(x, attrs, out.shape, RANGES[out.dtype][0]).max(axis=(4, 5))
    else:
        inside = np.ones((1, *x.shape[1:3], 1), np.int64)
        ones = replace(attrs, value=1) if isinstance(attrs, FilledPoolAttrs) else attrs
        count = _make_windows(inside, ones, out.shape, 0).sum(axis=(4, 5))
        return [average(graph, op, _make_windows(x, attrs, out.shape, 0).sum(axis=(4, 5)), count)]
    return [np.clip(y, *tensors.output_limits(graph, op)).astype(out.dtype.value)]


def average(graph: Graph, op: Op, total: Int64, count: Int64) -> Values:
    """Returns the output of AVERAGE_POOL_2D from the sums of `count` elements each."""
    sign = 1 if isinstance(op.attrs, AsUint8) else np.sign(total)  # halves up, or away from zero
    y = sign * ((sign * total + count // 2) // count)
    dtype = graph.tensors[op.outputs[0]].dtype
    return np.asarray(np.clip(y, *tensors.output_limits(graph, op)), dtype.value)


def pool_count(op: Op) -> int:
    """Returns the number of elements in a window of a pooling without padding."""
    return math.prod(attributes(op, PoolAttrs).kernel)
