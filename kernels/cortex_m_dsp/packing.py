"""Packs constants for the kernels in this folder, for cores with the DSP extension.

A block begins with nn_dsp_constants. Then follow the weights, in the order in which a kernel reads them, and
the constants of nn_dsp_channel, with which a channel is requantised in a few operations. If a channel's sums
or factor are so extreme that the results would not be exact, it is "general" and keeps the constants of the
plain layout. A block's length depends on the topology alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from buildtool.emit.blocks import (
    Packing,
    by_group,
    by_phase,
    channel_table,
    filter_weights,
    sum_ends,
    wide_head,
    words,
)
from buildtool.emit.recurrent_blocks import Layout, lstm_block, svdf_block
from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier
from buildtool.graph.types import Graph, Op

Int = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

QUAD = 4  # inputs whose weights share two words
OCTET = 8  # inputs of a dense layer that are processed together
SPARE_BITS = 4  # fraction bits of a dense layer's sums
GROUP_PAIRS = 3  # pairs of a dense layer's outputs that are computed together
INT8 = (-128, 127)


def conv_pairs(graph: Graph, op: Op) -> bytes:
    """Packs output channels in pairs. The taps of a pair come row by row, in quads (four inputs each).

    The inputs that do not fill a quad at the end of a row come after all rows, packed together.
    """
    return _pack_filter(graph, op, filter_weights(graph, op))


def depthwise_as_conv(graph: Graph, op: Op) -> bytes:
    """Packs a depthwise filter as that of a convolution: zeros for the inputs of other channels."""
    taps = filter_weights(graph, op)[0].transpose(2, 0, 1)
    outputs, channels = len(taps), graph.tensors[op.inputs[0]].shape[-1]
    weights = np.zeros((*taps.shape, channels), np.int8)
    each = np.arange(outputs)
    weights[each, :, :, each * channels // outputs] = taps
    return _pack_filter(graph, op, weights)


def _pack_filter(graph: Graph, op: Op, weights: npt.NDArray[np.int8]) -> bytes:
    outputs, kernel_h = weights.shape[:2]
    rows = weights.reshape(outputs, kernel_h, -1)
    whole = rows.shape[2] // QUAD * QUAD
    quads, rest = rows[:, :, :whole].reshape(outputs, -1), rows[:, :, whole:].reshape(outputs, -1)
    return _pack_pairs(graph, op, np.concatenate((quads, _pad_axis(rest, 1)), axis=1))


def depthwise_columns(graph: Graph, op: Op) -> bytes:
    """Packs blocks of four channels: their nn_dsp_channel, then the taps column by column.

    Two rows of a column are two words: channels 0 and 1 of both rows, then channels 2 and 3 of both rows. If
    the number of rows is odd, the last row is one word. The last block has the last four channels.
    """
    return _pack_columns(graph, op, filter_weights(graph, op)[0])


def depthwise_pairs(graph: Graph, op: Op) -> bytes:
    """Packs the taps row by row, like `depthwise_columns` for a window of one column.

    If the operator has fewer than four channels, the block's other channels are zeros.
    """
    weights = filter_weights(graph, op)
    return _pack_columns(graph, op, weights.reshape(-1, 1, weights.shape[3]))


def depthwise_multiplied_pairs(graph: Graph, op: Op) -> bytes:
    """Packs the output channels that read one input channel, in pairs.

    All taps of an output channel are packed as one row.
    """
    weights = filter_weights(graph, op)
    return _pack_pairs(graph, op, _pad_axis(weights.reshape(-1, weights.shape[3]).T, 1))


def _pack_columns(graph: Graph, op: Op, weights: npt.NDArray[np.int8]) -> bytes:
    """Packs the blocks of `depthwise_columns`; `weights`: rows x columns x channels."""
    kernel_h, kernel_w, channels = weights.shape
    blocks = []
    starts = block_starts(channels)
    members = [range(start, min(start + QUAD, channels)) for start in starts]
    head, table = _channels(graph, op, weights.reshape(-1, channels).T, members)
    filled_table, filled_weights = _pad_axis(table, 0), _pad_axis(weights, 2)
    for start in starts:
        four = filled_weights[:, :, start : start + QUAD]
        blocks.append(filled_table[start : start + QUAD].astype("<i4").tobytes())
        for column in range(kernel_w):
            for row in range(0, kernel_h - 1, 2):
                first, second = four[row, column], four[row + 1, column]
                blocks.append(np.concatenate((first[:2], second[:2], first[2:], second[2:])).tobytes())
            if kernel_h % 2:
                blocks.append(four[-1, column].tobytes())
    return head + b"".join(blocks)


def block_starts(channels: int) -> list[int]:
    """Returns the first channel of each block of four; the last block may overlap the one before it."""
    starts = list(range(0, channels - QUAD + 1, QUAD))
    return starts if channels % QUAD == 0 else [*starts, max(0, channels - QUAD)]


def fully_connected_groups(graph: Graph, op: Op) -> bytes:
    """Packs each channel's constants for nn_fully_connected_s8_dsp.c, then the weights.

    The weights of two output channels are packed together (see nn_dsp_dense.h).
    """
    weights = filter_weights(graph, op)
    head, columns = channel_table(graph, op)
    largest = np.abs(columns[:, 0]) + 128 * np.abs(weights.astype(np.int64)).sum(axis=1)
    channels = _one_rounding(columns, largest, int(head[1])).astype(np.uint32).astype("<u4")
    even, odd = _split_even_odd(_pad_axis(weights, 1, OCTET))
    # The lower byte is 0 to 255, so that the upper byte is always the odd row's weight.
    quads = _make_words(even + 128, odd).reshape(len(even), -1, 2, 2)
    groups = [quads[i : i + GROUP_PAIRS] for i in range(0, len(quads), GROUP_PAIRS)]
    stream = b"".join(group.transpose(1, 2, 0, 3).tobytes() for group in groups)
    return words(*head, 0, 0, 0, 0) + channels.tobytes() + stream


def _one_rounding(columns: Int, largest: Int, zero_point: int) -> Int:
    """Returns the constants of each output channel for nn_fully_connected_s8_dsp.c: channels x 4.

    With them a sum is requantised with one rounding. Channels with extreme values keep their plain bias and
    shift. `columns`: each channel's bias, multiplier, shift, and further bits of the multiplier. `largest`:
    an upper limit for the magnitude of each channel's sums, bias included.
    """
    bias, multiplier, shift, low = columns.T
    down = SPARE_BITS - 1 - shift
    # The offset is below 2^30, and the product's upper half is at most 2^30.
    usual = (down >= 2) & (down <= 22) & (largest << SPARE_BITS < 1 << 31)
    exponent = np.where(usual, down, 1)
    offset = np.where(usual, (2 * zero_point + 1) << (exponent - 1), shift)
    return np.column_stack(
        (np.where(usual, bias << SPARE_BITS, bias), multiplier, offset, (low << 16) + exponent)
    )


def _pack_four_rows(weights: Int) -> bytes:
    """Packs rows of weights in groups of four, quad by quad (four inputs).

    Rows of zeros fill the last group.
    """
    even, odd = _split_even_odd(_pad_axis(_pad_axis(weights, 1), 0))
    return _make_words(even, odd).reshape(even.shape[0] // 2, 2, -1, 4).transpose(0, 2, 1, 3).tobytes()


def _overflows(weights: Int) -> bool:
    """Whether two neighbouring rows of `weights` do not fit together in int16 (see `_fit`)."""
    return not bool(_fit(*_split_even_odd(_pad_axis(weights, 0))).all())


QUADS = Layout(_pack_four_rows, _overflows)


def _pad_axis(values: npt.NDArray[np.integer], axis: int, step: int = QUAD) -> npt.NDArray[np.integer]:
    """Pads an axis with zeros to a multiple of `step`."""
    widths = [(0, 0)] * values.ndim
    widths[axis] = (0, -values.shape[axis] % step)
    return np.pad(values, widths)


def _split_even_odd(weights: npt.NDArray[np.integer]) -> tuple[Int, Int]:
    """Returns the even and the odd output channels. Zeros are added if the number of channels is odd."""
    wide = weights.astype(np.int64)
    if wide.shape[0] % 2:
        wide = np.concatenate((wide, np.zeros_like(wide[:1])))
    return wide[0::2], wide[1::2]


def _fit(even: Int, odd: Int) -> Bools:
    """Whether all weights of each pair of channels, as 256 * odd + even, fit in int16.

    They do not if the odd channel has a weight of -128 where the even channel's weight is negative.
    """
    fit: Bools = ~((odd == -128) & (even < 0)).any(axis=1)
    return fit


def _make_words(even: Int, odd: Int) -> npt.NDArray[np.uint16]:
    """Returns 256 * odd + even as halfwords, with each quad (k0, k1, k2, k3) in the order k0, k2, k1, k3."""
    halves = (odd * 256 + even).astype("<u2")  # wraps as the kernel's general path expects
    count, inputs = halves.shape
    quads = halves.reshape(count, inputs // QUAD, QUAD)[:, :, [0, 2, 1, 3]]
    return quads.reshape(count, inputs // 2, 2).view(np.uint16)


def _pack_pairs(graph: Graph, op: Op, weights: npt.NDArray[np.integer]) -> bytes:
    """Packs the stream of nn_dsp_matmul.h; `weights`: outputs x inputs, padded."""
    even, odd = _split_even_odd(weights)
    pairs = even.shape[0]
    members = [range(c, min(c + 2, len(weights))) for c in range(0, len(weights), 2)]
    # 256 times the odd channel's sum must fit in int32.
    exact = _fit(even, odd) & (np.abs(odd).sum(axis=1) * 128 < 1 << 23)
    head, table = _channels(graph, op, weights, members, np.repeat(exact, 2)[: len(weights)])
    channels = np.zeros((2 * pairs, 4), "<i4")
    channels[: len(weights)] = table
    stream = (
        np.ascontiguousarray(_make_words(even, odd)).view("<i4").reshape(pairs, -1),
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
    """Returns nn_dsp_constants, and nn_dsp_channel of each output channel (channels x 4).

    `weights`: channels x taps. `members`: ranges of channels that the kernel computes together. `exact`: a
    mask of the channels whose sums the kernel computes exactly (None: all).
    """
    head, columns = channel_table(graph, op)
    table, good = _fast_channels(columns, weights, int(head[1]))
    general = _general_range(good if exact is None else good & exact, members)
    for c in range(*general):
        table[c] = (columns[c, 0], columns[c, 1], 0, columns[c, 2])
    return words(*head, *general, 0, 0), table


def _fast_channels(columns: Int, weights: npt.NDArray[np.integer], zero_point: int) -> tuple[Int, Bools]:
    """Returns (nn_dsp_channel of each channel, a mask of the channels that are then exact for every input).

    `columns`: each channel's bias, multiplier and shift. `weights`: channels x taps. `zero_point`: that of
    the output.
    """
    bias, multiplier, shift = columns.T
    low, high = sum_ends(bias, weights)
    largest = np.maximum(np.abs(low), np.abs(high))
    exponent = np.clip(-shift, 1, 22)
    offset = (1 << (exponent - 1)) + (zero_point << exponent)
    room = (largest * multiplier >> 31) + np.abs(offset) + 2 < 1 << 31
    is_exact = (shift == -exponent) & (multiplier >= 0) & (largest < 1 << 30) & room
    table = np.column_stack((2 * bias, multiplier, offset, exponent))
    # Requantisation and saturation are monotonic: if the ends are equal, so is everything between them.
    value, last = (
        np.clip(multiply_by_quantized_multiplier(n, multiplier, shift) + zero_point, *INT8).astype(np.int64)
        for n in (low, high)
    )
    small = np.abs(weights.astype(np.int64)).sum(axis=1) < 1 << 22
    is_constant = (value == last) & (largest < 1 << 31) & (shift <= 0) & small
    # (2 * value + 1 - either of 0 and 1) >> 1
    constant = np.column_stack((0 * bias, 0 * bias, 2 * value + 1, 0 * bias + 1))
    return np.where((is_constant & ~is_exact)[:, None], constant, table), is_exact | is_constant


def _general_range(good: Bools, members: Sequence[range]) -> tuple[int, int]:
    """Returns the smallest range [first, end) of channels that need the general constants.

    `good`: a mask of the channels that do not need them. The kernel computes the channels of a range in
    `members` together: if one of them needs the general constants, all have them, and so have overlapping
    ranges.
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

_QUAD_ORDER = (0, 2, 1, 3)  # the order of four inputs' weights in a word


def wide_pairs(graph: Graph, op: Op) -> bytes:
    """Packs pairs of output channels: for every four inputs, one word per channel (see nn_dsp_wide.h)."""
    weights = filter_weights(graph, op)
    rows = _pad_axis(_pad_axis(weights.reshape(len(weights), -1), 1), 0, 2)
    quads = rows.reshape(len(rows) // 2, 2, -1, QUAD)[..., _QUAD_ORDER]
    return wide_head(graph, op) + quads.transpose(0, 2, 1, 3).tobytes()


def wide_taps(graph: Graph, op: Op) -> bytes:
    """Packs pairs of channels: one word for every two taps (see nn_depthwise_conv2d_s16_dsp.c)."""
    weights = filter_weights(graph, op)[0]
    taps = _pad_axis(_pad_axis(weights.reshape(-1, weights.shape[2]), 0, 2), 1, 2)
    return wide_head(graph, op) + taps.reshape(len(taps) // 2, 2, -1, 2).transpose(2, 0, 1, 3).tobytes()


def _are_even(width: int, stride: int, channels: int) -> bool:
    """Whether the phases of a transpose convolution that share a row are computed from the same inputs: they
    have equally many taps, or so few channels that collecting inputs takes longer than products with zeros.
    """
    return width <= stride or width % stride == 0 or channels <= 4


PACKINGS: dict[str, Packing] = {
    "conv_pairs": conv_pairs,
    "depthwise_as_conv": depthwise_as_conv,
    "depthwise_columns": depthwise_columns,
    "depthwise_pairs": depthwise_pairs,
    "depthwise_multiplied_pairs": by_group(depthwise_multiplied_pairs),
    "fully_connected_groups": fully_connected_groups,
    # The plain blocks, with the weights of four features, or of a cell's four gates, together.
    "svdf_quads": lambda graph, op: svdf_block(graph, op, QUADS),
    "lstm_quads": lambda graph, op: lstm_block(graph, op, QUADS),
    "wide_pairs": wide_pairs,
    "wide_dense_pairs": wide_pairs,
    "wide_taps": wide_taps,
    "grouped_conv_pairs": by_group(conv_pairs),
    "transpose_conv_pairs": by_phase(conv_pairs, _are_even),
    "wide_transpose_conv_pairs": by_phase(wide_pairs),
}
