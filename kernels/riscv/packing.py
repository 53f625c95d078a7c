"""Constants for RISC-V cores, laid out as kernels/riscv (scalar) and kernels/riscv_v (vectors) read them.

A convolution's block begins with nn_conv_constants and the layer's mode (nn_riscv_head). A scalar kernel
reads nn_riscv_channel for each channel: requantisation with the first rounding's doubling, the second one's
half and the zero point folded into its constants. A layer with a channel whose sums or factor are too extreme
for that is "general" and keeps the plain constants. A channel with a constant output, as trained networks
have them with factors of 2^-30, becomes a bias without weights. Vector kernels read channels side by side.
Lengths depend on the topology alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import (
    Packing,
    align,
    by_group,
    channel_head,
    channel_table,
    filter_weights,
    without_weights,
    words,
)
from buildtool.graph.types import Graph, Op

Int = npt.NDArray[np.int64]
PLAIN, ODD, GENERAL = 0, 1, 2  # nn_riscv_mode
TILE = 4  # output channels of a convolution that a scalar kernel computes together
DENSE_TILE = 8


def conv_tiles(graph: Graph, op: Op) -> bytes:
    """Blocks of four output channels, tap by tap; missing ones are zeros."""
    weights = filter_weights(graph, op)
    flat = weights.reshape(weights.shape[0], -1)
    head, kept = _scalar(graph, op, flat, TILE)
    return head + _tiles(kept, TILE)


def depthwise_rows(graph: Graph, op: Op) -> bytes:
    """All rows of taps of a channel, each filled with zeros to 3, 5 or 7 taps; then the next channel's."""
    flat = _by_channel(graph, op)
    rows, columns = graph.tensors[op.inputs[1]].shape[1:3]
    width = max(3, columns + 1 - columns % 2)
    head, kept = _scalar(graph, op, flat, 1)
    padded = np.pad(kept.reshape(-1, rows, columns), ((0, 0), (0, 0), (0, width - columns)))
    return head + padded.tobytes()


def fully_connected_tiles(graph: Graph, op: Op) -> bytes:
    """nn_dense_channel of each output, then blocks of eight outputs, input by input."""
    return channel_head(graph, op) + _tiles(filter_weights(graph, op), DENSE_TILE)


def conv_vector(graph: Graph, op: Op) -> bytes:
    """All output channels of a tap, then those of the next."""
    weights = filter_weights(graph, op)
    return _vector(graph, op, weights.reshape(weights.shape[0], -1), weights.shape[3])


def depthwise_vector(graph: Graph, op: Op) -> bytes:
    """All channels of a tap, then those of the next."""
    return _vector(graph, op, _by_channel(graph, op), 1)


def fully_connected_vector(graph: Graph, op: Op) -> bytes:
    """nn_dense_channel of each output, then all outputs of an input, then those of the next."""
    return channel_head(graph, op) + np.ascontiguousarray(filter_weights(graph, op).T).tobytes()


def _by_channel(graph: Graph, op: Op) -> npt.NDArray[np.int8]:
    weights = filter_weights(graph, op)
    return np.ascontiguousarray(weights.reshape(-1, weights.shape[3]).T)


def _tiles(weights: npt.NDArray[np.int8], tile: int) -> bytes:
    """`weights`: outputs x inputs; as blocks of `tile` outputs, input by input."""
    padded = np.pad(weights, ((0, -len(weights) % tile), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, tile, weights.shape[1]).transpose(0, 2, 1)).tobytes()


def _mode(head: Int, shift: Int) -> int:
    """Outputs below the zero point, if there are any, show how negative halves are rounded."""
    if head[2] >= head[1]:
        return GENERAL if (shift > 0).any() else PLAIN
    return GENERAL if (shift > -1).any() else ODD


def _scalar(
    graph: Graph, op: Op, weights: npt.NDArray[np.int8], tile: int
) -> tuple[bytes, npt.NDArray[np.int8]]:
    """nn_riscv_head with nn_riscv_channel of each channel, up to a multiple of `tile`; the weights left."""
    head, columns = channel_table(graph, op)
    columns, weights = without_weights(head, columns, weights)
    bias, multiplier, shift = columns.T
    exponent = np.clip(-shift, 0, 30)
    offset = ((1 << exponent) >> 1) + (head[1] << exponent)
    largest = np.abs(bias) + 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    room = (largest * np.abs(multiplier) >> 31) + np.abs(offset) + 2 < 1 << 31
    good = room & (shift == -exponent) & (multiplier >= 0) & (largest < 1 << 31)
    mode = _mode(head, shift) if good.all() else GENERAL
    numbers = (bias, 2 * multiplier, exponent, offset)
    table = np.column_stack((bias, multiplier, shift, 0 * bias) if mode == GENERAL else numbers)
    table = np.pad(table, ((0, -len(table) % tile), (0, 0)))
    return words(*head, mode, 0, 0, 0) + table.astype(np.uint32).astype("<u4").tobytes(), weights


def _vector(graph: Graph, op: Op, weights: npt.NDArray[np.int8], inputs: int) -> bytes:
    """nn_rvv_head; all biases, all multipliers, all shifts; the weights (channels x taps) turned.

    `inputs`: the input channels that an output channel meets.
    """
    head, columns = channel_table(graph, op)
    columns, weights = without_weights(head, columns, weights)
    mode = _mode(head, columns[:, 2])
    table = np.ascontiguousarray(columns.T).astype("<i4").tobytes()
    return align(words(*head, mode, inputs, 0, 0) + table) + np.ascontiguousarray(weights.T).tobytes()


PACKINGS: dict[str, Packing] = {
    "conv_tiles": conv_tiles,
    "depthwise_rows": depthwise_rows,
    "fully_connected_tiles": fully_connected_tiles,
    "conv_vector": conv_vector,
    "depthwise_vector": depthwise_vector,
    "fully_connected_vector": fully_connected_vector,
    "grouped_conv_tiles": by_group(conv_tiles),
    "grouped_conv_vector": by_group(conv_vector),
}
