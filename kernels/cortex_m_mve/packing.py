"""Packs constants of the Helium kernels: weights in vectors of 16 bytes, biases and factors by channel tiles.

The comment at the top of each kernel in this folder describes its layout.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import Packing, by_group, channel_table, clamp, filter_weights, quantization, words
from buildtool.emit.packing import packings
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.elementwise import add_sub
from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, Graph, Op, OpKind
from buildtool.target.kernels import kernels_root

VECTOR = 16  # bytes
CONV_TILE, DENSE_TILE = 3, 6  # output channels that are computed together
DENSE_LEAST = 128  # bytes: the kernel loads the head and the factors of eight outputs, also for one output
MOST_VECTORS = 4  # of a depthwise channel's taps, for which there are quick tiles
GROUP = 4  # channels that are requantised together
SUM_BITS = 22  # fraction bits of a sum of two operands
HALF_SUM = 1 << (SUM_BITS - 1)

PLAIN, ODD, GENERAL = range(3)  # as in nn_mve.h

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Channels:
    """The zero points and clamps of a layer, and the bias and factors of each output channel."""

    common: list[int]
    bias: Int32s  # channels
    factors: Int32s  # channels x (multiplier, shift), for dense layers (multiplier, shift, low)


def _channels(graph: Graph, op: Op, *, fold: bool = True) -> _Channels:
    """Returns the constants of a layer. With `fold`, the biases include the effect of the input's zero point.

    A multiplier of 0 gets a right shift, which all modes allow.
    """
    common, table = channel_table(graph, op, fold=fold)
    factors = table[:, 1:].astype(np.int32)
    factors[factors[:, 0] == 0, 1] = -2
    return _Channels(common.tolist(), table[:, 0].astype(np.int32), factors)


def _head(channels: _Channels, mode: int) -> bytes:
    """Packs nn_mve_head. `mode`: how the kernel may requantise (PLAIN, ODD or GENERAL)."""
    return words(*channels.common, mode, 0, 0, 0)


def _pack_factors(factors: Int32s) -> bytes:
    """Packs the multipliers of four channels, then their shifts (and lows), and so on for all channels.

    If the last group has fewer than four channels, zeros fill it.
    """
    padded = np.pad(factors, ((0, -len(factors) % GROUP), (0, 0)))
    return padded.reshape(-1, GROUP, factors.shape[1]).transpose(0, 2, 1).astype("<i4").tobytes()


def _split_vectors(weights: Int8s) -> Int8s:
    """Returns each channel's weights, padded with zeros: channels x vectors x 16."""
    rows = weights.reshape(len(weights), -1)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % VECTOR)))
    return padded.reshape(len(rows), -1, VECTOR)


def _conv(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_conv2d_s8_mve."""
    channels = _channels(graph, op)
    return _conv_head(channels) + b"".join(_pack_pairs(filter_weights(graph, op), channels.bias))


def _conv_head(channels: _Channels) -> bytes:
    """Packs nn_mve_head and the channels' factors."""
    _, zero_point, least, _ = channels.common
    greatest = int(channels.factors[:, 1].max(initial=-1))
    mode = PLAIN if greatest <= 0 and least >= zero_point else ODD if greatest < 0 else GENERAL
    return _head(channels, mode) + _pack_factors(channels.factors)


def _pack_pairs(weights: Int8s, bias: Int32s) -> list[bytes]:
    """Packs the weights and biases of a convolution in tiles of three channels, for two pixels at a time."""
    return _pack_tiles(weights, bias, CONV_TILE, 2, 1)


def _transpose_conv(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_transpose_conv2d_s8_mve.

    The outputs at one place within a stride (a phase) read the same taps. So each phase is packed like a
    convolution with these taps.
    """
    channels, weights = _channels(graph, op, fold=False), filter_weights(graph, op)
    rows, columns = attributes(op, ConvAttrs).stride
    pieces = [_conv_head(channels)]
    for i, j in itertools.product(range(rows), range(columns)):
        taps = weights[:, i::rows, j::columns][:, ::-1, ::-1]
        sums = taps.sum(axis=(1, 2, 3), dtype=np.int64)
        taps = taps if taps.size else np.zeros((len(weights), 1), np.int8)
        bias = (channels.bias - channels.common[0] * sums).astype(np.int32)
        pieces += _pack_pairs(taps, bias)
    return b"".join(pieces)


def _pack_tiles(weights: Int8s, bias: Int32s, tile: int, pixels: int, most_left: int) -> list[bytes]:
    """Packs tiles of output channels, then single channels: each bias `pixels` times, then the weights.

    The vectors of a tile's channels alternate. If more than `most_left` channels remain after the tiles, they
    are padded with zeros to a tile.
    """
    remainder = len(bias) % tile
    missing = tile - remainder if remainder > most_left else 0
    biases = np.pad(np.repeat(bias.astype("<i4")[:, None], pixels, axis=1), ((0, missing), (0, 0)))
    vectors = np.pad(_split_vectors(weights), ((0, missing), (0, 0), (0, 0)))
    whole = len(biases) - len(biases) % tile
    pieces = []
    for first in range(0, whole, tile):
        pieces += [biases[first : first + tile], vectors[first : first + tile].transpose(1, 0, 2)]
    for channel in range(whole, len(bias)):
        pieces += [biases[channel], vectors[channel]]
    return [piece.tobytes() for piece in pieces]


def _dense(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_fully_connected_s8_mve."""
    channels = _channels(graph, op)
    _, shifts, lows = channels.factors.T
    mode = GENERAL if shifts.max(initial=-2) > -2 else ODD if lows.any() else PLAIN
    pieces = [_head(channels, mode), _pack_factors(channels.factors << np.array([0, 0, 16], np.int32))]
    pieces += _pack_tiles(filter_weights(graph, op), channels.bias, DENSE_TILE, 1, DENSE_TILE)
    return b"".join(pieces).ljust(DENSE_LEAST, b"\0")


def tap_vectors(weights: Int8s) -> Int8s:
    """Returns depthwise weights (1 x rows x columns x channels) as channels x vectors x 16.

    Four rows are packed together, column by column; missing rows are zeros.
    """
    _, rows, columns, channels = weights.shape
    padded = np.pad(weights[0], ((0, -rows % 4), (0, 0), (0, 0))).reshape(-1, 4, columns, channels)
    return _split_vectors(padded.transpose(3, 2, 0, 1).reshape(channels, -1))


def _depthwise(graph: Graph, op: Op, axes: tuple[int, ...] = (0, 1, 2, 3)) -> bytes:
    """Packs the constants of nn_depthwise_conv2d_s8_mve; `axes`: the order of the filter's dimensions."""
    weights = filter_weights(graph, op).transpose(axes)
    channels = _channels(graph, op)
    vectors = tap_vectors(weights).reshape(len(channels.bias), -1)
    times = attributes(op, DepthwiseAttrs).depth_multiplier
    multiplier, shift = channels.factors.astype(np.int64).T
    greatest = np.abs(channels.bias.astype(np.int64)) + 128 * np.abs(vectors.astype(np.int64)).sum(axis=1)
    steep = (shift > 1) | ((shift == 1) & (greatest >= 1 << 30))
    mode = GENERAL if steep.any() or vectors.shape[1] > MOST_VECTORS * VECTOR else PLAIN
    if mode == PLAIN:
        multiplier, shift = (multiplier << np.maximum(shift, 0)) - (1 << 31), np.minimum(shift, 0)
    numbers = np.column_stack((channels.bias, multiplier, shift, np.zeros_like(shift))).astype("<i4")
    records = np.concatenate((vectors, numbers.view(np.int8)), axis=1)
    by_output = records.reshape(-1, times, records.shape[1]).swapaxes(0, 1)
    return _head(channels, mode) + bytes(VECTOR) + by_output.tobytes()


# ---- sums of two operands -----------------------------------------------------------------------------

INT32_LIMIT = 1 << 31
ELEMENTS = np.arange(-128, 128, dtype=np.int8)


@dataclass(frozen=True)
class _Line:
    """An addition as one rounded sum of an offset and a term for each operand (see nn_add_s8_mve.c)."""

    factor1: int
    factor2: int
    offset: int

    def parts(self) -> tuple[Int64s, Int64s]:
        """Returns (terms of the sum for the first operand, terms for the second one), for all 256 values."""
        lifted = ELEMENTS.astype(np.int64) << 24
        first, second = ((2 * lifted * factor + INT32_LIMIT) >> 32 for factor in (self.factor1, self.factor2))
        return first, second

    def outputs(self) -> Int64s:
        """Returns the kernel's outputs for all pairs, 256 x 256, before clamping."""
        first, second = self.parts()
        sums = np.clip(first + self.offset, -INT32_LIMIT, INT32_LIMIT - 1)[:, None] + second
        saturated: Int64s = np.clip(sums, -INT32_LIMIT, INT32_LIMIT - 1)
        return (saturated + HALF_SUM) >> SUM_BITS


def _find_line(graph: Graph, op: Op) -> _Line | None:
    """Returns a line that gives the exact output for every pair of elements, or None.

    Each output bounds the offset from below and from above; a clamped output has only one of these bounds.
    """
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    low, high = clamp(graph, op)
    unit = 2.0 ** (SUM_BITS + 7)
    sign = -1 if op.kind is OpKind.SUB else 1
    slopes = round(first.scale / out.scale * unit), sign * round(second.scale / out.scale * unit)
    if max(map(abs, slopes)) >= INT32_LIMIT:
        return None
    pairs = (x.ravel() for x in np.meshgrid(ELEMENTS, ELEMENTS, indexing="ij"))
    outputs = add_sub(graph, op, list(pairs))[0].astype(np.int64).reshape(256, 256)
    of_first, of_second = _Line(*slopes, 0).parts()
    rest = (outputs << SUM_BITS) - HALF_SUM - (of_first[:, None] + of_second)
    least = rest[outputs > low].max(initial=-INT32_LIMIT)
    most = (rest + (1 << SUM_BITS) - 1)[outputs < high].min(initial=INT32_LIMIT - 1)
    line = _Line(*slopes, int(least + most) // 2)
    exact = least <= most and np.array_equal(np.clip(line.outputs(), low, high), outputs)
    return line if exact else None


def _add(graph: Graph, op: Op) -> bytes:
    """Packs the constants of nn_add_s8_mve: those of the plain kernel, then those of the line (see `_Line`).

    If there is no exact line, zeros replace its constants.
    """
    plain = _plain(graph, op, "add")
    line = _find_line(graph, op)
    return plain + (words(1, line.factor1, line.factor2, line.offset) if line else bytes(16))


def _plain(graph: Graph, op: Op, packing: str) -> bytes:
    """Packs the constants of a plain kernel."""
    return packings(kernels_root() / "reference" / "packing.py")[packing](graph, op)


PACKINGS: dict[str, Packing] = {
    "add_mve": _add,
    "conv_mve": _conv,
    # for nn_depthwise_1xn_s8_mve: the row of taps becomes a column
    "depthwise_row_mve": lambda graph, op: _depthwise(graph, op, (0, 2, 1, 3)),
    "depthwise_words_mve": _depthwise,
    "fully_connected_mve": _dense,
    "transpose_conv_mve": _transpose_conv,
    "grouped_conv_mve": by_group(_conv),
    "wide_grouped_conv_mve": by_group(lambda graph, op: _plain(graph, op, "wide_conv")),
}
