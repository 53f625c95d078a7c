"""Constants for cores with the DSP extension, laid out as the kernels beside this file read them.

A block begins with nn_dsp_constants. Then come the weights, in the order in which a kernel reads them, and
every channel's requantisation in the few operations of nn_dsp_channel. These are right unless a sum or a
factor is extreme; such channels are "general" and keep the constants of the plain layout. Lengths depend on
the topology alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import Packing, by_group, channel_table, filter_weights, sum_ends, wide_head, words
from buildtool.emit.recurrent_blocks import Layout, lstm_block, svdf_block
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.types import Graph, Op

Int = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

QUAD = 4  # inputs whose weights share two words
OCTET = 8  # inputs of a dense layer at a time
SPARE_BITS = 4  # below a dense layer's sums
GROUP_PAIRS = 3  # of a dense layer's outputs that are computed side by side
INT8 = (-128, 127)


def conv_pairs(graph: Graph, op: Op) -> bytes:
    """Weights by pairs of output channels: the quads of each row of taps, then the rests of all rows."""
    weights = filter_weights(graph, op)
    outputs, kernel_h = weights.shape[:2]
    rows = weights.reshape(outputs, kernel_h, -1)
    whole = rows.shape[2] // QUAD * QUAD
    quads, rest = rows[:, :, :whole].reshape(outputs, -1), rows[:, :, whole:].reshape(outputs, -1)
    return _pairs(graph, op, np.concatenate((quads, _padded(rest, 1)), axis=1))


def depthwise_columns(graph: Graph, op: Op) -> bytes:
    """Blocks of four channels: their nn_dsp_channel, then the taps column by column.

    Two rows are two words: channels 0 and 1 of the first row, then of the second; channels 2 and 3 likewise.
    A last odd row is one word. The last block has the last four channels.
    """
    weights = filter_weights(graph, op)[0]
    kernel_h, kernel_w, channels = weights.shape
    blocks = []
    starts = block_starts(channels)
    members = [range(start, start + QUAD) for start in starts]
    head, table = _channels(graph, op, weights.reshape(-1, channels).T, members)
    for start in starts:
        block = weights[:, :, start : start + QUAD]
        blocks.append(table[start : start + QUAD].astype("<i4").tobytes())
        for column in range(kernel_w):
            for row in range(0, kernel_h - 1, 2):
                first, second = block[row, column], block[row + 1, column]
                blocks.append(np.concatenate((first[:2], second[:2], first[2:], second[2:])).tobytes())
            if kernel_h % 2:
                blocks.append(block[-1, column].tobytes())
    return head + b"".join(blocks)


def block_starts(channels: int) -> list[int]:
    """First channels of blocks of four that cover all channels, the last one moved back to fit."""
    starts = list(range(0, channels - QUAD + 1, QUAD))
    return starts if channels % QUAD == 0 else [*starts, channels - QUAD]


def fully_connected_groups(graph: Graph, op: Op) -> bytes:
    """The channels of nn_fully_connected_s8_dsp.c, then the weights in pairs: see nn_dsp_dense.h."""
    weights = filter_weights(graph, op)
    head, columns = channel_table(graph, op)
    largest = np.abs(columns[:, 0]) + 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    channels = _one_rounding(columns, largest, int(head[1])).astype(np.uint32).astype("<u4")
    even, odd = _halves(_padded(weights, 1, OCTET))
    # The lower byte is 0 to 255, so the upper one is the odd row's weight, for any weight of the even row.
    quads = _words(even + 128, odd).reshape(len(even), -1, 2, 2)
    groups = [quads[i : i + GROUP_PAIRS] for i in range(0, len(quads), GROUP_PAIRS)]
    stream = b"".join(group.transpose(1, 2, 0, 3).tobytes() for group in groups)
    return words(*head, 0, 0, 0, 0) + channels.tobytes() + stream


def _one_rounding(columns: Int, largest: Int, zero_point: int) -> Int:
    """The channels of nn_fully_connected_s8_dsp.c (channels x 4), each from (bias, multiplier, shift, low).

    `largest`: an upper limit for the size of each channel's sums, bias included.
    """
    bias, multiplier, shift, low = columns.T
    down = SPARE_BITS - 1 - shift
    # The offset is below 2^30, and the product's upper half not above it.
    usual = (down >= 2) & (down <= 22) & (largest << SPARE_BITS < 1 << 31)
    exponent = np.where(usual, down, 1)
    offset = np.where(usual, (2 * zero_point + 1) << (exponent - 1), shift)
    return np.column_stack(
        (np.where(usual, bias << SPARE_BITS, bias), multiplier, offset, (low << 16) + exponent)
    )


def _four_rows(weights: Int) -> bytes:
    """Four rows side by side, quad by quad; rows of zeros fill up the last four."""
    even, odd = _halves(_padded(_padded(weights, 1), 0))
    return _words(even, odd).reshape(even.shape[0] // 2, 2, -1, 4).transpose(0, 2, 1, 3).tobytes()


def _overflow(weights: Int) -> bool:
    """Whether a weight of -128 is beside a negative one in a pair of rows."""
    return not bool(_fit(*_halves(_padded(weights, 0))).all())


QUADS = Layout(_four_rows, _overflow)


def _padded(values: npt.NDArray[np.integer], axis: int, step: int = QUAD) -> npt.NDArray[np.integer]:
    """Zeros at the end of an axis, up to a multiple of `step`."""
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, -values.shape[axis] % step)
    return np.pad(values, widths)


def _halves(weights: npt.NDArray[np.integer]) -> tuple[Int, Int]:
    """Even and odd output channels; an odd number of them gets a partner of zeros."""
    wide = weights.astype(np.int64)
    if wide.shape[0] % 2:
        wide = np.concatenate((wide, np.zeros_like(wide[:1])))
    return wide[0::2], wide[1::2]


def _fit(even: Int, odd: Int) -> Bools:
    """Whether 256 * odd + even fits int16, for each pair; it does not with -128 beside a negative weight."""
    fit: Bools = ~((odd == -128) & (even < 0)).any(axis=1)
    return fit


def _words(even: Int, odd: Int) -> npt.NDArray[np.uint16]:
    """Halves 256 * odd + even, each quad (k0, k1, k2, k3) in the order k0, k2, k1, k3."""
    halves = (odd * 256 + even).astype("<u2")  # wraps as the kernel's general path expects
    count, inputs = halves.shape
    quads = halves.reshape(count, inputs // QUAD, QUAD)[:, :, [0, 2, 1, 3]]
    return quads.reshape(count, inputs // 2, 2).view(np.uint16)


def _pairs(graph: Graph, op: Op, weights: npt.NDArray[np.integer]) -> bytes:
    """The stream of nn_dsp_matmul.h; `weights`: outputs x inputs, padded."""
    even, odd = _halves(weights)
    pairs = even.shape[0]
    members = [range(c, min(c + 2, len(weights))) for c in range(0, len(weights), 2)]
    # 256 times the odd channel's sum has to fit int32.
    exact = _fit(even, odd) & (np.abs(odd).sum(axis=1) * 128 < 1 << 23)
    head, table = _channels(graph, op, weights, members, np.repeat(exact, 2)[: len(weights)])
    channels = np.zeros((2 * pairs, 4), "<i4")
    channels[: len(weights)] = table
    stream = (
        np.ascontiguousarray(_words(even, odd)).view("<i4").reshape(pairs, -1),
        channels.reshape(pairs, 8),
    )
    return head + np.concatenate(stream, axis=1).astype("<i4").tobytes()


def _channels(
    graph: Graph,
    op: Op,
    weights: npt.NDArray[np.integer],
    members: Sequence[range],
    exact: Bools | None = None,
) -> tuple[bytes, Int]:
    """nn_dsp_constants, and nn_dsp_channel of each output (channels x 4).

    `weights`: channels x taps; `members`: the channels that are computed together; `exact`: those
    whose sums the kernel can form.
    """
    head, columns = channel_table(graph, op)
    table, good = _few_operations(columns, weights, int(head[1]))
    general = _general(good if exact is None else good & exact, members)
    for c in range(*general):
        table[c] = (columns[c, 0], columns[c, 1], 0, columns[c, 2])
    return words(*head, *general, 0, 0), table


def _few_operations(columns: Int, weights: npt.NDArray[np.integer], zero_point: int) -> tuple[Int, Bools]:
    """nn_dsp_channel of each (bias, multiplier, shift), and whether it is right for every input."""
    bias, multiplier, shift = columns.T
    low, high = sum_ends(bias, weights)
    largest = np.maximum(np.abs(low), np.abs(high))
    exponent = np.clip(-shift, 1, 22)
    offset = (1 << (exponent - 1)) + (zero_point << exponent)
    room = (largest * multiplier >> 31) + np.abs(offset) + 2 < 1 << 31
    good = (shift == -exponent) & (multiplier >= 0) & (largest < 1 << 30) & room
    table = np.column_stack((2 * bias, multiplier, offset, exponent))
    # Requantisation and saturation are monotonic: if the ends are equal, so is everything between them.
    value, last = (
        np.clip(multiply_by_quantized_multiplier(n, multiplier, shift) + zero_point, *INT8).astype(np.int64)
        for n in (low, high)
    )
    small = np.abs(weights.astype(np.int64)).sum(axis=1) < 1 << 22
    same = (value == last) & (largest < 1 << 31) & (shift <= 0) & small
    # (2 * value + 1 - either of 0 and 1) >> 1
    constant = np.column_stack((0 * bias, 0 * bias, 2 * value + 1, 0 * bias + 1))
    return np.where((same & ~good)[:, None], constant, table), good | same


def _general(good: Bools, members: Sequence[range]) -> tuple[int, int]:
    """The channels [first, end) that are computed together with one that is not good, and those between.

    Members may share channels: whoever touches the range belongs to it.
    """
    bad = [group for group in members if not good[group.start : group.stop].all()]
    if not bad:
        return 0, 0
    first, end = bad[0].start, bad[-1].stop
    for group in (*members, *reversed(members)):
        if group.start < end and group.stop > first:
            first, end = min(first, group.start), max(end, group.stop)
    return first, min(end, len(good))


# ---- int16 activations ---------------------------------------------------------------------------

_QUAD_ORDER = (0, 2, 1, 3)  # in which a word has the weights of four inputs


def wide_pairs(graph: Graph, op: Op) -> bytes:
    """Pairs of output channels, a word of each for every four inputs: see nn_dsp_wide.h."""
    weights = filter_weights(graph, op)
    rows = _padded(_padded(weights.reshape(len(weights), -1), 1), 0, 2)
    quads = rows.reshape(len(rows) // 2, 2, -1, QUAD)[..., _QUAD_ORDER]
    return wide_head(graph, op) + quads.transpose(0, 2, 1, 3).tobytes()


def wide_taps(graph: Graph, op: Op) -> bytes:
    """Pairs of channels, a word for every two taps: see nn_depthwise_conv2d_s16_dsp.c."""
    weights = filter_weights(graph, op)[0]
    taps = _padded(_padded(weights.reshape(-1, weights.shape[2]), 0, 2), 1, 2)
    return wide_head(graph, op) + taps.reshape(len(taps) // 2, 2, -1, 2).transpose(2, 0, 1, 3).tobytes()


PACKINGS: dict[str, Packing] = {
    "conv_pairs": conv_pairs,
    "depthwise_columns": depthwise_columns,
    "fully_connected_groups": fully_connected_groups,
    # The plain blocks, with the weights of four features, or of a cell's four gates, side by side.
    "svdf_quads": lambda graph, op: svdf_block(graph, op, QUADS),
    "lstm_quads": lambda graph, op: lstm_block(graph, op, QUADS),
    "wide_pairs": wide_pairs,
    "wide_dense_pairs": wide_pairs,
    "wide_taps": wide_taps,
    "grouped_conv_pairs": by_group(conv_pairs),
}
