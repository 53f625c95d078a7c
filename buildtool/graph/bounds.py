"""Finds which values each channel of an activation can have, whatever the network's input is.

The bounds of a channel (the last dimension) hold for all of its elements. They follow from the operator's
own arithmetic in integers: a rule here gives the least and greatest sums, or the operands' least and greatest
values, and the reference executor computes their outputs. This is valid because scaling, rounding and clamps
are monotone, as long as no sum, shifted or not, overflows. Where one might, the channel may have any value.
For functions of one byte, all results between the operand's bounds are compared. No input violates the
bounds, but there may be bounds that no input reaches.

A rule takes the bounds of the operator's operands, and returns those of its outputs. None: nothing is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import BuildtoolError
from buildtool.graph import types as g
from buildtool.graph.fixedpoint import (
    INT32_MAX,
    RANGES,
    quantize_multiplier,
    quantize_multipliers,
    reduce_multiplier,
)
from buildtool.graph.ops import DEFS, varying
from buildtool.graph.ops.types import load
from buildtool.graph.reference import convolution, execute_op, table, tensors
from buildtool.graph.types import (
    ConvAttrs,
    DType,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    Tensor,
    cached_on_graph,
)

Int64: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
_AT_ONCE = 1 << 20  # weights that become floats at a time
_LARGEST_SUM = 1 << 62  # of 64-bit sums
_BOUNDED = (DType.INT8, DType.INT16, DType.BOOL)


class Bounds(NamedTuple):
    """The least and the greatest stored value of each channel, both inclusive."""

    low: Int64
    high: Int64

    @property
    def constant(self) -> Mask:
        """A mask of the channels that have only one possible value."""
        return np.asarray(self.low == self.high)


# (graph, operator, bounds of its operands) -> bounds of its outputs. None: anything is possible.
Rule: TypeAlias = Callable[[Graph, Op, list[Bounds]], list[Bounds] | None]


@cached_on_graph
def find_bounds(graph: Graph) -> dict[int, Bounds]:
    """Returns the bounds of every activation of int8, int16 or truth values, by the tensor's number."""
    bounds = {
        t: _unbounded(graph.tensors[t])
        for t in (*graph.inputs, *(state.before for state in graph.states))
        if graph.tensors[t].dtype in _BOUNDED
    }
    for op in graph.ops:
        found = _bound(graph, op, bounds)
        for position, t in enumerate(op.outputs):
            if graph.tensors[t].dtype in _BOUNDED:
                bounds[t] = found[position] if found is not None else _unbounded(graph.tensors[t])
    return bounds


def count_channels(tensor: Tensor) -> int:
    """Returns the size of the last dimension."""
    return tensor.shape[-1] if tensor.shape else 1


def _unbounded(tensor: Tensor) -> Bounds:
    ends = (0, 1) if tensor.dtype is DType.BOOL else RANGES[tensor.dtype]
    return Bounds(*(np.full(count_channels(tensor), end, np.int64) for end in ends))


def _bound(graph: Graph, op: Op, bounds: dict[int, Bounds]) -> list[Bounds] | None:
    """Returns the bounds of an operator's outputs, None if nothing is known about them."""
    definition = DEFS[op.kind]
    rule: Rule | None = load("graph", definition.bounds) if definition.bounds else None
    position = varying(graph, op)
    if position is not None and graph.tensors[op.inputs[position]].dtype in (DType.INT8, DType.BOOL):
        rule = _bound_by_table
    operands = [bounds.get(t) or _bound_constant(graph.tensors[t]) for t in op.inputs if t >= 0]
    if rule is None or graph.tensors[op.outputs[0]].dtype not in _BOUNDED or None in operands[:1]:
        return None
    try:
        return rule(graph, op, operands)  # type: ignore[arg-type]  # a rule needs its activations only
    except BuildtoolError:  # computing it reports the error
        return None


def _bound_constant(tensor: Tensor) -> Bounds | None:
    if tensor.data is None or tensor.dtype not in _BOUNDED:
        return None
    values = tensor.data.reshape(-1, count_channels(tensor)).astype(np.int64)
    return Bounds(values.min(axis=0), values.max(axis=0))


def _bound_by_table(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds a function of one byte by its smallest and largest result between the operand's bounds."""
    position, out = varying(graph, op), graph.tensors[op.outputs[0]]
    source = operands[position or 0]
    if out.dtype not in (DType.INT8, DType.BOOL):
        return None
    results = table(graph, op).view(out.dtype.value).astype(np.int64)
    if graph.tensors[op.inputs[position or 0]].dtype is DType.INT8:
        results, first = np.roll(results, 128), 128  # in the order of the values, -128 first
    else:
        first = 0
    ends = list(zip(source.low + first, source.high + first, strict=True))
    parts = {pair: results[pair[0] : pair[1] + 1] for pair in set(ends)}
    lows, highs = ({pair: int(end(part)) for pair, part in parts.items()} for end in (np.min, np.max))
    return [Bounds(np.array([lows[p] for p in ends]), np.array([highs[p] for p in ends]))]


# ---- sums of products --------------------------------------------------------------------------------


def weighted(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds convolutions and dense layers: finds the bounds of their sums, then requantises these."""
    low, high = _bound_taps(graph, op, operands[0])
    if op.kind is not OpKind.FULLY_CONNECTED:
        low, high = _bound_windows(graph, op, low, high)
    else:
        low, high = low[:, 0], high[:, 0]
    bias = graph.tensors[op.inputs[2]].data if op.inputs[2] >= 0 else None
    if bias is not None:
        low, high = low + bias.reshape(-1).astype(np.int64), high + bias.reshape(-1).astype(np.int64)
    ends = np.stack([low, high])
    results = _requantise(graph, op, ends)
    least, greatest = RANGES[graph.tensors[op.outputs[0]].dtype]
    known = _stays_exact(graph, op, ends)
    return [
        Bounds(
            np.where(known, results.min(axis=0), least),
            np.where(known, results.max(axis=0), greatest),
        )
    ]


def _requantise(graph: Graph, op: Op, sums: Int64) -> Int64:
    """Returns the outputs of sums with bias, as the reference computes them.

    The last dimension of the sums is the output channels.
    """
    if op.kind is OpKind.FULLY_CONNECTED:
        return convolution.scale_sums(graph, op, sums).astype(np.int64)
    wide = graph.tensors[op.inputs[0]].dtype is DType.INT16
    return convolution.requantise_sums(graph, op, sums, wide=wide).astype(np.int64)


def _stays_exact(graph: Graph, op: Op, ends: Int64) -> Mask:
    """Returns a mask of the channels in which no sum between two ends overflows, not even when it is shifted.

    `ends` are the least and the greatest sums: (2, channels).
    """
    largest = np.abs(ends).max(axis=0)
    scales = convolution.channel_scales(graph, op)
    if op.kind is OpKind.FULLY_CONNECTED:
        wide = graph.tensors[op.inputs[0]].dtype is DType.INT16
        return np.asarray(largest <= (_LARGEST_SUM if wide else INT32_MAX))
    multipliers, shifts = quantize_multipliers(scales)
    if graph.tensors[op.inputs[0]].dtype is DType.INT16:
        reduced = np.abs(reduce_multiplier(multipliers)).astype(np.float64)
        product = largest.astype(np.float64) * reduced
        return np.asarray((product < _LARGEST_SUM) & (product < 2.0 ** (31 + 14 - shifts)))
    left = np.maximum(shifts, 0)
    return np.asarray(largest.astype(np.float64) * 2.0**left < INT32_MAX - 256)


def _bound_taps(graph: Graph, op: Op, source: Bounds) -> tuple[Int64, Int64]:
    """Returns the least and greatest sum of each tap over the input channels: (channels, taps)."""
    filters = graph.tensors[op.inputs[1]]
    zero_points = [tensors.quantization(graph, op, t).zero_point for t in op.inputs[:2]]
    assert filters.data is not None
    low, high = source.low - zero_points[0], source.high - zero_points[0]
    if op.kind is OpKind.DEPTHWISE_CONV_2D:
        weights = filters.data[0].reshape(-1, filters.shape[3]).T.astype(np.int64) - zero_points[1]
        times = weights.shape[0] // len(low)
        ends = [weights * np.repeat(end, times)[:, None] for end in (low, high)]
        return np.minimum(*ends), np.maximum(*ends)
    taps = filters.data.reshape(filters.shape[0], -1, filters.shape[-1])
    depth, groups = taps.shape[2], len(low) // taps.shape[2]
    share, step = len(taps) // groups, max(1, _AT_ONCE // (taps.shape[1] * depth))
    result = np.empty((2, *taps.shape[:2]))
    for group, part in enumerate(np.split(np.arange(len(low)), groups)):
        middle, half = (low + high)[part] / 2, (high - low)[part] / 2
        for first in range(group * share, (group + 1) * share, step):
            rows = slice(first, min(first + step, (group + 1) * share))
            weights = taps[rows].astype(np.float64) - zero_points[1]  # exact: sums stay below 2^52
            centre, reach = weights @ middle, np.abs(weights) @ half
            result[:, rows] = centre - reach, centre + reach
    least, greatest = result.astype(np.int64)
    return least, greatest


def _bound_windows(graph: Graph, op: Op, low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Returns the least and greatest sum of each channel over all windows, also those that meet the padding.

    `low` and `high` are the least and greatest sums of each tap: (channels, taps). A tap in the padding adds
    nothing.
    """
    if op.kind is OpKind.TRANSPOSE_CONV:  # any of the taps may meet an input pixel
        return np.minimum(low, 0).sum(axis=1), np.maximum(high, 0).sum(axis=1)
    masks = np.array(window_masks(graph, op), np.int64).T  # (taps, kinds of windows)
    return (low @ masks).min(axis=1), (high @ masks).max(axis=1)


def window_masks(graph: Graph, op: Op) -> list[tuple[bool, ...]]:
    """Returns which taps of a convolution lie in the image, once for each different case among its windows.

    The taps are in the filter's order, row by row. False: the tap lies in the padding.
    """
    attrs, source, out = op.attrs, graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    assert isinstance(attrs, ConvAttrs)
    kernel = graph.tensors[op.inputs[1]].shape[1:3]
    sides = []
    for axis, before in ((0, attrs.pad.top), (1, attrs.pad.left)):
        first, taps = np.arange(out[axis + 1]) * attrs.stride[axis] - before, np.arange(kernel[axis])
        taps *= attrs.dilation[axis]
        crosses = (first < 0) | (first + taps[-1] >= source[axis + 1])
        places = first[crosses][:, None] + taps
        inside = (places >= 0) & (places < source[axis + 1])
        whole = [] if crosses.all() else [(True,) * len(taps)]
        sides.append(sorted({*map(tuple, inside.tolist()), *whole}))
    return [tuple(r and c for r in rows for c in columns) for rows, columns in itertools.product(*sides)]


# ---- extremes of operands ----------------------------------------------------------------------------


def corners(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds a function of two operands that is monotone in each: it has its extremes at their bounds."""
    if len(operands) != 2 or isinstance(op.attrs, g.WidenedAttrs) or None in operands:
        return None
    if op.kind is OpKind.MUL:
        (a, b), out = (tensors.quantization(graph, op, t).scale for t in op.inputs), op.outputs[0]
        factor = a * b / tensors.quantization(graph, op, out).scale
        if quantize_multiplier(factor)[1] > 14 or graph.tensors[out].dtype is not DType.INT8:
            return None  # a product could leave 32 bits
    channels = count_channels(graph.tensors[op.outputs[0]])
    results = np.stack(
        [
            _compute(graph, op, [first, second], (1, channels))
            for first, second in itertools.product(*operands)
        ]
    )
    return [Bounds(results.min(axis=0).reshape(-1), results.max(axis=0).reshape(-1))]


def window(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds a pool: a maximum or a mean lies within the bounds of its elements, and is then clamped."""
    limits, (low, high) = tensors.output_limits(graph, op), operands[0]
    if isinstance(op.attrs, g.FilledPoolAttrs):  # its padding is one more element
        low, high = np.minimum(low, op.attrs.value), np.maximum(high, op.attrs.value)
    return [Bounds(*(np.clip(end, *limits) for end in (low, high)))]


def reduction(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds MEAN, REDUCE_MAX and REDUCE_MIN over pixels by their results for the extreme images.

    In one image all elements have their least value, in the other one their greatest value.
    """
    attrs, source = op.attrs, graph.tensors[op.inputs[0]]
    assert isinstance(attrs, MeanAttrs)
    if len(source.shape) - 1 in attrs.axes or source.dtype is not DType.INT8:
        return None
    ratio = source.quant.scale / tensors.output_quantization(graph, op).scale if source.quant else 0.0
    if op.kind is OpKind.MEAN and not 0 < ratio < 1 << 8:
        return None
    ends = [
        _compute(graph, op, [np.broadcast_to(end, source.shape)], graph.tensors[op.outputs[0]].shape)
        for end in operands[0]
    ]
    flat = [end.reshape(-1, count_channels(source))[0] for end in ends]
    return [Bounds(np.minimum(*flat), np.maximum(*flat))]


def resize(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds RESIZE_NEAREST_NEIGHBOR, which keeps bounds, and the constant channels of RESIZE_BILINEAR.

    The weights of RESIZE_BILINEAR may be negative, so its other channels may have any value.
    """
    (source,), out = operands, graph.tensors[op.outputs[0]]
    if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR:
        return [source]
    if out.dtype is not DType.INT8 or not source.constant.any():
        return None
    image = np.broadcast_to(source.low, graph.tensors[op.inputs[0]].shape)
    results = _compute(graph, op, [image], out.shape).reshape(-1, count_channels(out))
    low, high = _unbounded(out)
    return [
        Bounds(
            np.where(source.constant, results.min(axis=0), low),
            np.where(source.constant, results.max(axis=0), high),
        )
    ]


def _compute(graph: Graph, op: Op, values: list[Any], shape: tuple[int, ...]) -> Int64:
    """Returns an operator's output as the reference computes it from the operands `values`.

    `shape` is the output's shape.
    """
    operands = [graph.tensors[t] for t in op.inputs]
    arrays = [
        np.ascontiguousarray(np.atleast_2d(value), tensor.dtype.value)
        for value, tensor in zip(values, operands, strict=True)
    ]
    held = [replace(t, shape=a.shape, data=None) for t, a in zip(operands, arrays, strict=True)]
    result = len(held)
    alone = replace(op, inputs=tuple(range(result)), outputs=(result,))
    held.append(replace(graph.tensors[op.outputs[0]], shape=shape))
    small = Graph("", tuple(held), (alone,), alone.inputs, alone.outputs)
    return execute_op(small, alone, dict(enumerate(arrays)))[0].astype(np.int64)


# ---- moves -------------------------------------------------------------------------------------------


def pad(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds a PAD of pixels by the input's bounds and the padding's value."""
    attrs = op.attrs
    assert isinstance(attrs, g.PadAttrs)
    if any(attrs.paddings[-1]):
        return None
    if attrs.mode is not g.PadMode.CONSTANT:
        return operands
    return [Bounds(np.minimum(operands[0].low, attrs.value), np.maximum(operands[0].high, attrs.value))]


def concatenation(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds a CONCATENATION. If it joins channels, each channel keeps the bounds that it has in its operand.

    If it joins another dimension, a channel's bounds include those of all operands.
    """
    if None in operands or _axis(graph, op, op.outputs[0]) is None:
        return None
    if _axis(graph, op, op.outputs[0]) == -1:
        return [Bounds(*(np.concatenate(ends) for ends in zip(*operands, strict=True)))]
    lows, highs = zip(*operands, strict=True)
    return [Bounds(np.min(lows, axis=0), np.max(highs, axis=0))]


def split(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds the outputs of a SPLIT by the bounds of their channels."""
    if _axis(graph, op, op.inputs[0]) == -1:
        low, high = (np.split(end, len(op.outputs)) for end in operands[0])
        return [Bounds(*pair) for pair in zip(low, high, strict=True)]
    return operands * len(op.outputs)


def _axis(graph: Graph, op: Op, tensor: int) -> int | None:
    """Returns the operator's axis as a dimension of `tensor`; -1 for the last one.

    Returns None if the operator has no axis.
    """
    attrs, rank = op.attrs, len(graph.tensors[tensor].shape)
    if not isinstance(attrs, g.AxisAttrs):
        return None
    return -1 if attrs.axis == rank - 1 else attrs.axis


def reshape(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds aliases, copies and TRANSPOSE, which keep each element's value."""
    (source,), after = operands, count_channels(graph.tensors[op.outputs[0]])
    if op.kind is OpKind.TRANSPOSE:
        return [Bounds(np.full(after, source.low.min()), np.full(after, source.high.max()))]
    return [_regroup(source, after)]


def slice_(graph: Graph, op: Op, operands: list[Bounds]) -> list[Bounds] | None:
    """Bounds SLICE and STRIDED_SLICE by the bounds of the channels that they take."""
    attrs = op.attrs
    assert isinstance(attrs, g.SliceAttrs)
    picked = attrs.begin[-1] + attrs.stride[-1] * np.arange(attrs.extent[-1])
    source = Bounds(*(end[picked] for end in operands[0]))
    return [_regroup(source, count_channels(graph.tensors[op.outputs[0]]))]


def _regroup(source: Bounds, after: int) -> Bounds:
    """Returns bounds for a tensor that is reshaped so that its last dimension has `after` elements.

    `source`: the bounds of the tensor before the RESHAPE.
    """
    before = len(source.low)
    if after % before == 0:  # pixels become channels
        return Bounds(*(np.tile(end, after // before) for end in source))
    if before % after == 0:  # channels become pixels
        return Bounds(source.low.reshape(-1, after).min(axis=0), source.high.reshape(-1, after).max(axis=0))
    return Bounds(np.full(after, source.low.min()), np.full(after, source.high.max()))
