"""Constants of the Helium kernels: weights in vectors of 16 bytes, biases and factors by tiles of channels.

The layouts are described at the top of each kernel in kernels/cortex_m_mve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.emit.packing import channel_head, filter_weights, words
from buildtool.graph.types import Activation, ConvAttrs, Graph, Op, OpKind

VECTOR = 16  # bytes
TILE = 3  # output channels of a convolution that are computed together
GROUP = 4  # channels that are requantised together

PLAIN, ODD, GENERAL = range(3)  # as in nn_mve.h

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Channels:
    """What channel_head says: zero points and clamps, then each output channel's bias and factors."""

    common: list[int]
    bias: Int32s  # channels
    factors: Int32s  # channels x (multiplier, shift), for dense layers (multiplier, shift, low)


def _channels(graph: Graph, op: Op, activation: Activation) -> _Channels:
    """A multiplier of 0 is shifted right, which changes nothing and suits `ODD`."""
    count = graph.tensors[op.inputs[1]].shape[3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    columns = 4 if op.kind is OpKind.FULLY_CONNECTED else 3
    numbers = np.frombuffer(channel_head(graph, op, activation), "<i4")
    rows = numbers[4 : 4 + columns * count].reshape(count, columns)
    factors = rows[:, 1:].copy()
    factors[factors[:, 0] == 0, 1] = -1
    return _Channels([int(n) for n in numbers[:4]], rows[:, 0].copy(), factors)


def _head(channels: _Channels) -> bytes:
    """nn_mve_head."""
    _, output_zero_point, clamp_min, _ = channels.common
    greatest = int(channels.factors[:, 1].max(initial=-1))
    mode = ODD if greatest < 0 else GENERAL
    if greatest <= 0 and clamp_min >= output_zero_point:
        mode = PLAIN
    return words(*channels.common, mode, 0, 0, 0)


def _grouped(factors: Int32s) -> bytes:
    """For each four channels their multipliers, then their shifts; padded with zeros shifted right."""
    padded = np.concatenate([factors, np.tile(np.array([[0, -1]], np.int32), (-len(factors) % GROUP, 1))])
    return padded.reshape(-1, GROUP, 2).transpose(0, 2, 1).astype("<i4").tobytes()


def _vectors(weights: Int8s) -> Int8s:
    """Rows of weights, padded with zeros: rows x vectors x 16."""
    rows = weights.reshape(len(weights), -1)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % VECTOR)))
    return padded.reshape(len(rows), -1, VECTOR)


def _conv(graph: Graph, op: Op) -> bytes:
    """The constants of nn_conv2d_s8_mve."""
    assert isinstance(op.attrs, ConvAttrs)
    channels = _channels(graph, op, op.attrs.activation)
    bias = np.repeat(channels.bias[:, None], 2, axis=1)
    vectors = _vectors(filter_weights(graph, op))
    whole = len(bias) - len(bias) % TILE
    pieces = [_head(channels), _grouped(channels.factors)]
    for first in range(0, whole, TILE):
        tile = vectors[first : first + TILE].transpose(1, 0, 2)
        pieces += [bias[first : first + TILE].tobytes(), tile.tobytes()]
    for channel in range(whole, len(bias)):
        pieces += [bias[channel].tobytes(), vectors[channel].tobytes()]
    return b"".join(pieces)


def tap_vectors(weights: Int8s) -> Int8s:
    """Depthwise weights (1 x rows x columns x channels) as channels x vectors x 16: words of four rows."""
    _, rows, columns, channels = weights.shape
    padded = np.pad(weights[0], ((0, -rows % 4), (0, 0), (0, 0))).reshape(-1, 4, columns, channels)
    return _vectors(padded.transpose(3, 2, 0, 1).reshape(channels, -1))


def _depthwise(graph: Graph, op: Op) -> bytes:
    """The constants of nn_depthwise_conv2d_s8_mve."""
    assert isinstance(op.attrs, ConvAttrs)
    channels = _channels(graph, op, op.attrs.activation)
    numbers = np.column_stack((channels.bias, channels.factors, np.zeros_like(channels.bias))).astype("<i4")
    vectors = tap_vectors(filter_weights(graph, op)).reshape(len(numbers), -1)
    records = np.concatenate((vectors, numbers.view(np.int8)), axis=1)
    return _head(channels) + bytes(VECTOR) + records.tobytes()


PACKINGS: dict[str, Callable[[Graph, Op], bytes]] = {
    "conv_mve": _conv,
    "depthwise_mve": _depthwise,
}
