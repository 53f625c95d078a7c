"""Constants for requantisation by the VPU's multipliers of 16 bits, as nn_vpu16.h lays them out, and bounds.

A group of 16 channels that the unit would requantise with a larger error than is allowed is packed to be
requantised as the reference does; so is one that might leave 32 bits. The block's length is the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from buildtool_plugins.xcore.vpu16 import LANES, Factors, Sums, chosen

from buildtool.emit.blocks import (
    Packing,
    channel_axis,
    channel_bias,
    channel_head,
    clamp,
    filter_weights,
    quantization,
    words,
)
from buildtool.emit.bounds import Bound
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import Activation, ConvAttrs, FullyConnectedAttrs, Graph, Op, OpKind

HEAD_WORDS = 4  # nn_conv_constants
ROUNDED, CLAMPED = 16, 32  # of a record's kind, as in nn_vpu16.h
CHUNK = 32  # bytes of a pixel's taps that are multiplied at once
STEPS = 1  # proven: both values are within 0.5 + 0.125 and 0.5 + 0.25 steps of the real one
Weights = npt.NDArray[np.int8]
Int = npt.NDArray[np.int64]


def conv(graph: Graph, op: Op) -> bytes:
    """CONV_2D and FULLY_CONNECTED: the groups' weights chunk by chunk of 32 taps."""
    weights = _by_channel(graph, op)
    extra = -weights.shape[1] % 4
    groups = (_chunks(weights[c : c + LANES], extra) for c in range(0, len(weights), LANES))
    return _records(graph, op) + b"".join(groups)


def depthwise(graph: Graph, op: Op) -> bytes:
    """DEPTHWISE_CONV_2D: of each group 16 channels a tap; 32 bytes are read of the last."""
    weights = _by_channel(graph, op)
    padded = np.pad(weights, ((0, -len(weights) % LANES), (0, 0)))
    turned = padded.reshape(-1, LANES, weights.shape[1]).transpose(0, 2, 1)
    return _records(graph, op) + np.ascontiguousarray(turned).tobytes() + bytes(LANES)


def bound(graph: Graph, op: Op) -> Bound:
    """The proven bound of an operator's outputs."""
    factors, channels = factors_of(graph, op), len(channel_scales(graph, op))
    rounded = int(factors.rounded.sum())
    return Bound(STEPS if rounded else 0, float(factors.error.max(initial=0.0)), rounded, channels)


def factors_of(graph: Graph, op: Op) -> Factors:
    """What the unit needs of each channel."""
    weights = _by_channel(graph, op).astype(np.int64)
    positive, negative = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    zero_point = quantization(graph, op, op.inputs[0]).zero_point
    bias = channel_bias(graph, op, len(weights)) - zero_point * weights.sum(axis=1)
    low, high = clamp(graph, op, _activation(op))
    return chosen(
        Sums(
            127 * negative - 128 * positive,
            127 * positive - 128 * negative,
            bias,
            np.array(channel_scales(graph, op)),
            quantization(graph, op, op.outputs[0]).zero_point,
            low,
            high,
        )
    )


def _activation(op: Op) -> Activation:
    assert isinstance(op.attrs, ConvAttrs | FullyConnectedAttrs)
    return op.attrs.activation


def _by_channel(graph: Graph, op: Op) -> Weights:
    """The filter as output channels x taps."""
    weights = np.moveaxis(filter_weights(graph, op), channel_axis(op), 0)
    return weights.reshape(len(weights), -1)


def _chunks(rows: Weights, extra: int) -> bytes:
    """A group's weights: of each chunk the rows of the last channel to the first.

    The last chunk may be shorter; `extra` zeros behind it make it a multiple of 4 bytes.
    """
    padded = np.pad(rows[::-1], ((0, 0), (0, extra)))
    parts = (padded[:, k : k + CHUNK].tobytes() for k in range(0, padded.shape[1], CHUNK))
    return b"".join(parts)


def _records(graph: Graph, op: Op) -> bytes:
    """nn_conv_constants and the groups' records, a multiple of 16 bytes."""
    plain = np.frombuffer(channel_head(graph, op, _activation(op)), "<i4")
    head, width = plain[:HEAD_WORDS], 4 if op.kind is OpKind.FULLY_CONNECTED else 3
    factors = factors_of(graph, op)
    channels = len(channel_scales(graph, op))
    table = np.zeros((len(factors.start), 4), np.int64)
    table[:channels, :width] = plain[HEAD_WORDS : HEAD_WORDS + width * channels].reshape(-1, width)
    limited = (int(head[2]), int(head[3])) != (-128, 127)
    block = words(*head.tolist())
    for first in range(0, channels, LANES):
        block += _record(factors, table, slice(first, min(first + LANES, channels + -channels % 4)), limited)
    return block + bytes(-len(block) % 16)


def _record(factors: Factors, table: Int, lanes: slice, limited: bool) -> bytes:
    rounded = bool(factors.rounded[lanes].any())
    start = factors.start[lanes] + table[lanes, 0] * (not rounded)
    halves = (start >> 16).astype("<i2").tobytes() + (start & 0xFFFF).astype("<u2").tobytes()
    if rounded:
        arrays = (factors.down, factors.factor, factors.bias)
        body = b"".join(values[lanes].astype("<i2").tobytes() for values in arrays)
        kind = ROUNDED + CLAMPED * limited + int(factors.up[lanes][0])
    else:
        body = b"".join(table[lanes, n].astype("<i4").tobytes() for n in (1, 2, 3))
        kind = 0
    count = len(start)
    return halves + body.ljust(12 * count, b"\0") + bytes([kind]).ljust(count, b"\0")


PACKINGS: dict[str, Packing] = {
    "conv_vpu16": conv,
    "depthwise_vpu16": depthwise,
    "fully_connected_vpu16": conv,
}
BOUNDS = dict.fromkeys(PACKINGS, bound)
