"""Heads of blocks for layers of int16 activations, which every family's packings of such layers share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.emit.blocks import aligned, channel_axis, channel_bias, clamp, filter_weights, words
from buildtool.graph.fixedpoint import quantize_multiplier, reduced_multiplier
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import Activation, Graph, Op, OpKind

_MOST_SUM = 1 << 47  # LiteRT's multiplication takes none beyond
_LEAST_SHIFT = 17  # of convolutions that are requantised in 32 bits
_FACTOR_BITS = 53  # of a double
_LEAST_FACTOR = 2.0**-48  # below, no sum gives half a step


def wide_head(graph: Graph, op: Op, activation: Activation) -> bytes:
    """nn_wide_constants and every channel's constants, a multiple of 16 bytes."""
    weights, axis = filter_weights(graph, op), channel_axis(op)
    others = tuple(d for d in range(weights.ndim) if d != axis)
    most = int(np.abs(weights.astype(np.int64)).sum(axis=others).max()) << 15
    bias = channel_bias(graph, op, weights.shape[axis])
    total = most + int(np.abs(bias.astype(np.float64)).max())
    if total >= _MOST_SUM:
        raise UnsupportedError("a sum may need more than 48 bits", operator=op.place)
    if op.kind is OpKind.FULLY_CONNECTED:
        factors, narrow = _dense_factors(graph, op), most < 1 << 31
    else:
        factors = _factors(graph, op)
        narrow = total < 1 << 31 and int(factors[:, 1].min()) >= _LEAST_SHIFT
    head = words(*clamp(graph, op, activation), 32 if narrow else 64, 0)
    halves = bias.astype("<i8").view("<i4").reshape(-1, 2)
    return aligned(head + np.column_stack((halves, factors)).astype("<i4").tobytes())


def _factors(graph: Graph, op: Op) -> npt.NDArray[np.int64]:
    """Of each channel of a convolution (multiplier of 16 bits, right shift)."""
    pairs = np.array([quantize_multiplier(scale) for scale in channel_scales(graph, op)], np.int64)
    return np.column_stack((reduced_multiplier(pairs[:, 0]), 15 - pairs[:, 1]))


def _dense_factors(graph: Graph, op: Op) -> npt.NDArray[np.int64]:
    """Of each output of a dense layer the factor: its 53 bits in two words, the right shift, 0."""
    found = []
    for scale in channel_scales(graph, op):
        if scale < 0:  # the rewriter turns all others
            raise UnsupportedError("a channel of negative scale with a weight of -128", operator=op.place)
        fraction, power = math.frexp(scale) if scale >= _LEAST_FACTOR else (0.0, 0)
        factor = int(fraction * 2.0**_FACTOR_BITS)
        low = factor & 0xFFFFFFFF
        found.append((low - (low >> 31 << 32), factor >> 32, _FACTOR_BITS - power, 0))
    return np.array(found, np.int64)
