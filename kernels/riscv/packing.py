"""Packs constants for RISC-V cores, for the kernels in kernels/riscv (scalar) and kernels/riscv_v (vectors).

A convolution's block begins with nn_conv_constants and the layer's mode (nn_riscv_head). A scalar kernel
reads nn_riscv_channel for each channel. These constants contain the doubling of the first rounding, the half
of the second one and the zero point. A layer with a channel whose sums or factor are too extreme for them is
"general" and keeps the plain constants. A channel with a constant output becomes a bias without weights;
trained networks have such channels, with factors of 2^-30. Vector kernels read an array of channels for each
constant. A block's length depends on the topology alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import (
    Packing,
    align,
    by_group,
    by_phase,
    channel_table,
    filter_weights,
    wide_table,
    without_weights,
    words,
)
from buildtool.graph.geometry import attributes
from buildtool.graph.types import DepthwiseAttrs, Graph, Op, OpKind

Int = npt.NDArray[np.int64]
PLAIN, ODD, GENERAL = 0, 1, 2  # nn_riscv_mode
TILE = 4  # output channels that a scalar convolution computes together
DENSE_TILE = 8


def conv_tiles(graph: Graph, op: Op) -> bytes:
    """Packs blocks of four output channels, tap by tap; missing channels are zeros."""
    weights = filter_weights(graph, op)
    flat = weights.reshape(weights.shape[0], -1)
    head, remaining = _scalar_block(graph, op, flat, TILE)
    return head + _pack_tiles(remaining, TILE)


def depthwise_rows(graph: Graph, op: Op, *, turned: bool = False) -> bytes:
    """Packs the rows of taps channel by channel, each row padded with zeros to 3, 5, 7 or 9 taps.

    With a depth multiplier, the first output of every channel comes first, then the second of every channel.
    If `turned`, the only column of taps is packed as a row.
    """
    flat = _by_channel(graph, op)
    rows, columns = graph.tensors[op.inputs[1]].shape[1:3]
    if turned:
        rows, columns = columns, rows
    width = max(3, columns + 1 - columns % 2)
    times = attributes(op, DepthwiseAttrs).depth_multiplier
    head, remaining = _scalar_block(graph, op, flat, 1, times)
    padded = np.pad(remaining.reshape(-1, rows, columns), ((0, 0), (0, 0), (0, width - columns)))
    return head + padded.tobytes()


def fully_connected_tiles(graph: Graph, op: Op) -> bytes:
    """Packs each output's constants (see `_dense_table`), then blocks of eight outputs, input by input."""
    head, table = _dense_table(graph, op)
    packed = words(*head) + table.astype(np.uint32).astype("<u4").tobytes()
    return align(packed) + _pack_tiles(filter_weights(graph, op), DENSE_TILE)


def conv_vector(graph: Graph, op: Op) -> bytes:
    """Packs the weights tap by tap, each tap with all output channels."""
    weights = filter_weights(graph, op)
    return _vector_block(graph, op, weights.reshape(weights.shape[0], -1), weights.shape[3])


def depthwise_vector(graph: Graph, op: Op) -> bytes:
    """Packs the weights tap by tap, each tap with all channels."""
    return _vector_block(graph, op, _by_channel(graph, op), 1)


def conv_rows_vector(graph: Graph, op: Op) -> bytes:
    """Packs the weights of each output channel tap by tap."""
    weights = filter_weights(graph, op)
    return _vector_block(graph, op, weights.reshape(weights.shape[0], -1), weights.shape[3], by_tap=False)


def fully_connected_vector(graph: Graph, op: Op) -> bytes:
    """Packs nn_rvv_head, the constants of all outputs, and the weights input by input, each with all
    outputs.
    """
    head, table = _dense_table(graph, op)
    return _vector_head(head, PLAIN, 1, table[:, [0, 1, 3, 2]].T) + _by_input(filter_weights(graph, op))


def _dense_table(graph: Graph, op: Op) -> tuple[Int, Int]:
    """Returns nn_conv_constants, and one row per output channel: bias, multiplier, shifts, lower part.

    The two shifts put the output into a product's upper word. Factors of 2^28 and more saturate every sum but
    0: they may be less.
    """
    head, columns = channel_table(graph, op)
    bias, multiplier, shift, low = columns.T
    exponent = 31 - np.minimum(shift, 29)
    up = np.maximum(33 - exponent, 0)
    return head, np.column_stack((bias, multiplier, (up << 8) + exponent + up - 32, low << 16))


def wide_conv_vector(graph: Graph, op: Op) -> bytes:
    """Packs nn_rvv_wide.h's constants, and the weights tap by tap, each tap with all output channels."""
    (*limits, bits, _), columns = wide_table(graph, op)
    low, high, multiplier, shift = columns.T
    if bits == 32:
        multiplier, shift = multiplier << 16, shift - 16
    weights = filter_weights(graph, op)
    packed = weights if op.kind is OpKind.DEPTHWISE_CONV_2D else weights.reshape(len(weights), -1).T
    rows = np.array((low, multiplier, shift, high))
    return _vector_head((0, 0, *limits), bits, 1, rows) + np.ascontiguousarray(packed).tobytes()


def wide_fully_connected_vector(graph: Graph, op: Op) -> bytes:
    """Packs nn_rvv_head, the words of all channels, and the weights input by input, each with all outputs."""
    (*limits, bits, _), columns = wide_table(graph, op)
    return _vector_head((0, 0, *limits), bits, 1, columns.T[:5]) + _by_input(filter_weights(graph, op))


def _by_input(weights: npt.NDArray[np.int8]) -> bytes:
    return np.ascontiguousarray(weights.T).tobytes()


def _by_channel(graph: Graph, op: Op) -> npt.NDArray[np.int8]:
    weights = filter_weights(graph, op)
    return np.ascontiguousarray(weights.reshape(-1, weights.shape[3]).T)


def _pack_tiles(weights: npt.NDArray[np.int8], tile: int) -> bytes:
    """Packs `weights` (outputs x inputs) in blocks of `tile` outputs, input by input."""
    padded = np.pad(weights, ((0, -len(weights) % tile), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, tile, weights.shape[1]).transpose(0, 2, 1)).tobytes()


def _mode(head: Int, shift: Int) -> int:
    """Returns the layer's mode, which says how the kernel may requantise.

    If outputs may be below the zero point, sums may be negative, and the mode also depends on how the kernel
    rounds negative halves.
    """
    if head[2] >= head[1]:
        return GENERAL if (shift > 0).any() else PLAIN
    return GENERAL if (shift > -1).any() else ODD


def _scalar_block(
    graph: Graph, op: Op, weights: npt.NDArray[np.int8], tile: int, times: int = 1
) -> tuple[bytes, npt.NDArray[np.int8]]:
    """Returns nn_riscv_head with channels padded to a multiple of `tile`, and the weights.

    Channels with a constant output have weights of 0. Every `times` neighbouring channels are distributed.
    """
    head, columns = channel_table(graph, op)
    order = np.arange(len(columns)).reshape(-1, times).T.ravel()
    columns, weights = columns[order], weights[order]
    columns, weights = without_weights(head, columns, weights)
    bias, multiplier, shift = columns.T
    exponent = np.clip(-shift, 0, 30)
    offset = ((1 << exponent) >> 1) + (head[1] << exponent)
    largest = np.abs(bias) + 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    room = (largest * np.abs(multiplier) >> 31) + np.abs(offset) + 2 < 1 << 31
    is_exact = room & (shift == -exponent) & (multiplier >= 0) & (largest < 1 << 31)
    mode = _mode(head, shift) if is_exact.all() else GENERAL
    numbers = (bias, 2 * multiplier, exponent, offset)
    table = np.column_stack((bias, multiplier, shift, 0 * bias) if mode == GENERAL else numbers)
    table = np.pad(table, ((0, -len(table) % tile), (0, 0)))
    return words(*head, mode, 0, 0, 0) + table.astype(np.uint32).astype("<u4").tobytes(), weights


def _vector_block(
    graph: Graph, op: Op, weights: npt.NDArray[np.int8], inputs: int, *, by_tap: bool = True
) -> bytes:
    """Packs nn_rvv_head, all biases, multipliers and shifts, and the weights (channels x taps), transposed if
    `by_tap`.

    `inputs`: how many input channels an output channel reads.
    """
    head, columns = channel_table(graph, op)
    columns, weights = without_weights(head, columns, weights)
    packed = _by_input(weights) if by_tap else weights.tobytes()
    return _vector_head(head, _mode(head, columns[:, 2]), inputs, columns.T) + packed


def _vector_head(head: Iterable[int], mode: int, inputs: int, rows: Int) -> bytes:
    """Packs nn_rvv_head and rows of words, each of all channels."""
    table = np.ascontiguousarray(rows).astype(np.uint32).astype("<u4").tobytes()
    return align(words(*head, mode, inputs, 0, 0) + table)


PACKINGS: dict[str, Packing] = {
    "conv_tiles": conv_tiles,
    "depthwise_rows": depthwise_rows,
    "depthwise_column": lambda graph, op: depthwise_rows(graph, op, turned=True),
    "fully_connected_tiles": fully_connected_tiles,
    "conv_vector": conv_vector,
    "depthwise_vector": depthwise_vector,
    "fully_connected_vector": fully_connected_vector,
    "conv_rows_vector": conv_rows_vector,
    "wide_conv_vector": wide_conv_vector,
    "wide_depthwise_vector": wide_conv_vector,
    "wide_fully_connected_vector": wide_fully_connected_vector,
    "grouped_conv_tiles": by_group(conv_tiles),
    "grouped_conv_vector": by_group(conv_vector),
    "transpose_conv_tiles": by_phase(conv_tiles),
    "transpose_conv_vector": by_phase(conv_vector),
}
