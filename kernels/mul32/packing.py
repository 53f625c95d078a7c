"""Packs constants for the kernels in this folder, which read only words.

A convolution's block begins with nn_conv_constants and the layer's mode (nn_mul32_head). Kernels compute with
x + 128 for inputs, and w + 128 for weights of dense layers and convolutions. The biases compensate for this,
except for the terms that depend on the inputs. The fast requantisation uses parts of a multiplier. If a
channel's factor is too extreme for it, the layer is "general" and keeps the plain shift. A channel with a
constant output becomes a bias without weights; trained networks have such channels, with factors of 2^-30. A
block's length depends on the topology alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import (
    Packing,
    align,
    by_group,
    channel_table,
    filter_weights,
    sum_ends,
    without_weights,
    words,
)
from buildtool.graph.types import Graph, Op

Int = npt.NDArray[np.int64]
Int8 = npt.NDArray[np.int8]
PLAIN, ODD, GENERAL = 0, 1, 2  # nn_mul32_mode
LIMIT = (1 << 20) - 1  # larger values are cut off
STEEPEST, FLATTEST = 1, 11  # exponents whose rounding constants and cut-off values fit
QUAD = 4  # taps of two channels in two words; outputs of a dense layer in one
OFFSET = 128  # from signed to unsigned bytes


def conv_quads(graph: Graph, op: Op) -> bytes:
    """Packs blocks of two output channels. Missing channels are zeros.

    A word has two taps of one channel, then the same taps of the other channel.
    """
    weights = filter_weights(graph, op)
    head, remaining = _convolution(graph, op, weights.reshape(weights.shape[0], -1), 2)
    padded = np.pad(remaining, ((0, len(remaining) % 2), (0, -remaining.shape[1] % QUAD)))
    natural = (padded.astype(np.int64) + OFFSET).astype(np.uint8)
    pairs = natural.reshape(-1, 2, natural.shape[1] // 2, 2).transpose(0, 2, 1, 3)
    return head + np.ascontiguousarray(pairs).tobytes()


def depthwise_words(graph: Graph, op: Op) -> bytes:
    """Packs the rows of taps channel by channel: three signed taps in a word, or seven in two words."""
    weights = filter_weights(graph, op)
    flat = np.ascontiguousarray(weights.reshape(-1, weights.shape[3]).T)
    rows, columns = graph.tensors[op.inputs[1]].shape[1:3]
    head, remaining = _convolution(graph, op, flat, 1)
    width = QUAD if columns < QUAD else 2 * QUAD
    return (
        head + np.pad(remaining.reshape(-1, rows, columns), ((0, 0), (0, 0), (0, width - columns))).tobytes()
    )


def dense_quads(graph: Graph, op: Op) -> bytes:
    """Packs nn_dense_channel of each output, then blocks of four outputs, input by input."""
    weights = filter_weights(graph, op)
    head, table = channel_table(graph, op)
    table[:, 0] -= OFFSET * weights.sum(axis=1, dtype=np.int64)
    padded = np.pad(weights, ((0, -len(weights) % QUAD), (0, 0)))
    natural = (padded.astype(np.int64) + OFFSET).astype(np.uint8)
    tiles = np.ascontiguousarray(natural.reshape(-1, QUAD, natural.shape[1]).transpose(0, 2, 1))
    return words(*head) + _low_words(table) + tiles.tobytes()


def _low_words(table: Int) -> bytes:
    return (table & 0xFFFFFFFF).astype("<u4").tobytes()


def _convolution(graph: Graph, op: Op, weights: Int8, tile: int) -> tuple[bytes, Int8]:
    """Returns nn_mul32_head with channels padded to a multiple of `tile`, and the weights.

    Channels with a constant output have weights of 0.
    """
    head, table = channel_table(graph, op)
    table, weights = without_weights(head, table, weights)
    bias, multiplier, shift = table.T
    low, high = sum_ends(bias, weights)
    largest = np.maximum(-low, high)
    fits = (multiplier >= 1 << 30) & (-shift >= STEEPEST) & (-shift <= FLATTEST) & (largest < 1 << 31)
    mode = GENERAL if not fits.all() else ODD if head[2] < head[1] else PLAIN
    natural = bias - OFFSET * weights.sum(axis=1, dtype=np.int64)
    table = np.column_stack((natural, multiplier, shift if mode == GENERAL else -shift))
    table = np.pad(table, ((0, -len(table) % tile), (0, 0)))
    wide = int((largest > LIMIT).any())
    return align(words(*head, mode, wide, 0, 0) + _low_words(table)), weights


PACKINGS: dict[str, Packing] = {
    "conv_quads": conv_quads,
    "depthwise_words": depthwise_words,
    "dense_quads": dense_quads,
    "grouped_conv_quads": by_group(conv_quads),
}
