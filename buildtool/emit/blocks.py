"""Functions for the packing.py of kernel families: a channel's factors and bias, heads of blocks, alignment.

The requantisation factors are computed in the precision that TFLite's kernels use for each operator (in their
Prepare functions): some products in float32, others in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.fixedpoint import (
    activation_range,
    dense_multiplier,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    reduce_multiplier,
)
from buildtool.graph.limits import MAX_TAPS
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    FilledPoolAttrs,
    Graph,
    Op,
    OpKind,
    Quantization,
    Tensor,
)

ALIGNMENT = 16  # of blocks and of the weights in them, in bytes
_MOST_SUM = 1 << 47  # LiteRT's multiplication does not allow larger sums
_LEAST_SHIFT = 17  # the smallest shift for requantisation in 32 bits
_FACTOR_BITS = 53  # the significant bits of a double
_LEAST_FACTOR = 2.0**-48  # with a smaller factor, no sum reaches half a step
FILTER, BIAS = 1, 2  # positions among a convolution's inputs

Packing = Callable[[Graph, Op], bytes]
Ints = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]


def align(block: bytes) -> bytes:
    """Returns `block` padded with zeros to a multiple of 16 bytes."""
    return block + bytes(-len(block) % ALIGNMENT)


def words(*values: int) -> bytes:
    """Returns the bytes of the values as little-endian int32."""
    return np.array(values, "<i4").tobytes()


def quantization(graph: Graph, op: Op, tensor: int) -> Quantization:
    """Returns a tensor's quantisation; raises UnsupportedError if it has none."""
    quant = graph.tensors[tensor].quant
    if quant is None:
        raise UnsupportedError(
            "a tensor is not quantised", operator=op.place, tensor=graph.tensors[tensor].name
        )
    return quant


def _data(tensor: Tensor) -> npt.NDArray[np.generic]:
    assert tensor.data is not None  # the reader refuses weights without data
    return tensor.data


def clamp(graph: Graph, op: Op, activation: Activation | None = None) -> tuple[int, int]:
    """Returns the smallest and the largest output value with `activation` (None: that of the operator)."""
    out = op.outputs[0]
    own = getattr(op.attrs, "activation", Activation.NONE) if activation is None else activation
    return activation_range(own, quantization(graph, op, out), graph.tensors[out].dtype)


POOL_LIMITS = 2  # numbers in a pair of limits of a pooling


def pool_limits(graph: Graph, op: Op) -> bytes:
    """Packs the smallest and the largest output value of a pooling, and what it needs for a folded PAD.

    With a folded PAD, a maximum pooling also needs the limits for windows that meet the padding (see
    `bordered`), and an average pooling the padding's value and the number of elements of a window.
    """
    (low, high), attrs = clamp(graph, op), op.attrs
    if not isinstance(attrs, FilledPoolAttrs):
        return words(low, high)
    if op.kind is OpKind.AVERAGE_POOL_2D:
        return words(low, high, attrs.value, math.prod(attrs.kernel))
    return words(low, high, max(low, min(attrs.value, high)), high)


# ---- convolutions and dense layers -------------------------------------------------------------


def channel_factors(graph: Graph, op: Op) -> list[tuple[int, ...]]:
    """Returns the requantisation factor of every output channel: (multiplier, shift); for a dense layer,
    (multiplier, shift, low bits of the multiplier).
    """
    scales = channel_scales(graph, op)
    factors: dict[float, tuple[int, ...]] = {}
    for scale in dict.fromkeys(scales):
        if op.kind is OpKind.FULLY_CONNECTED:
            if scale < 0:  # the rewriter negates all other such channels
                raise UnsupportedError("a channel of negative scale with a weight of -128", operator=op.place)
            multiplier, low, shift = dense_multiplier(scale)
            factors[scale] = (multiplier, shift, low)
        else:
            factors[scale] = quantize_multiplier(scale)
    return [factors[scale] for scale in scales]


def channel_bias(graph: Graph, op: Op, channels: int) -> Ints:
    """Returns the bias of every output channel, as the model has it; zeros if the model has no bias."""
    index = op.inputs[2] if len(op.inputs) > 2 else -1
    if index < 0:
        return np.zeros(channels, np.int64)
    return _data(graph.tensors[index]).astype(np.int64).reshape(channels)


def filter_weights(graph: Graph, op: Op) -> Int8s:
    """Returns the weights of the operator's filter.

    Raises UnsupportedError if the operator's sums of products may not fit in 32 bits.
    """
    tensor = graph.tensors[op.inputs[1]]
    weights = _data(tensor).astype(np.int8)
    taps = weights.size // weights.shape[channel_axis(op)]
    if taps > MAX_TAPS:
        raise UnsupportedError(
            f"a sum of {taps} products; at most {MAX_TAPS} are supported",
            operator=op.place,
            tensor=tensor.name,
        )
    return weights


def channel_table(
    graph: Graph, op: Op, activation: Activation | None = None, *, fold: bool = True
) -> tuple[Ints, Ints]:
    """Returns the numbers of nn_conv_constants, and a row (bias, multiplier, shift[, low]) for every output
    channel.

    With `fold`, the biases include the effect of the input's zero point: minus this zero point times the
    channel's sum of (weight - the filter's zero point).
    """
    weights, axis = filter_weights(graph, op), channel_axis(op)
    zero_point = quantization(graph, op, op.inputs[0]).zero_point
    bias = channel_bias(graph, op, weights.shape[axis])
    if fold:
        others = tuple(d for d in range(weights.ndim) if d != axis)
        taps = weights.size // weights.shape[axis]
        filter_zero_point = quantization(
            graph, op, op.inputs[1]
        ).zero_point  # 0 except in networks that were uint8
        bias = bias - zero_point * (weights.sum(axis=others, dtype=np.int64) - taps * filter_zero_point)
    factors = np.array(channel_factors(graph, op), np.int64)
    output_zero_point = quantization(graph, op, op.outputs[0]).zero_point
    common = np.array((zero_point, output_zero_point, *clamp(graph, op, activation)), np.int64)
    return common, np.column_stack((bias.astype(np.int32), factors)).astype(np.int64)


def channel_head(graph: Graph, op: Op, activation: Activation | None = None, *, fold: bool = True) -> bytes:
    """Packs nn_conv_constants and the rows of all output channels (see `channel_table`), padded to 16
    bytes.
    """
    common, table = channel_table(graph, op, activation, fold=fold)
    return align(words(*common) + table.astype("<i4").tobytes())


def sum_ends(bias: Ints, weights: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Returns each channel's smallest and largest possible sum, bias included. `weights` are channels x
    taps.
    """
    positive = np.maximum(weights, 0).sum(axis=1, dtype=np.int64)
    negative = np.minimum(weights, 0).sum(axis=1, dtype=np.int64)
    return bias - 128 * positive + 127 * negative, bias + 127 * positive - 128 * negative


def without_weights(common: Ints, table: Ints, weights: Int8s) -> tuple[Ints, Int8s]:
    """Returns the channels' rows and weights (channels x taps), with weights of 0 for each constant channel.

    A channel is constant if its output is the same for every input; its row then makes this output. `common`
    and `table` are from `channel_table`.
    """
    bias, multiplier, shift = table.T
    zero_point, limits = int(common[1]), (int(common[2]), int(common[3]))
    ends = sum_ends(bias, weights)
    first, last = (
        np.clip(multiply_by_quantized_multiplier(n, multiplier, shift) + zero_point, *limits) for n in ends
    )
    # Requantisation is monotonic: if the ends are equal, all values between them are equal, too.
    is_constant = (
        (first == last) & (np.maximum(-ends[0], ends[1]) < 1 << 31) & (multiplier >= 0) & (shift <= 0)
    )
    # The output minus the zero point, times 4; the multiplier divides by 4.
    constant = np.column_stack((4 * (first - zero_point), 0 * bias + (1 << 30), 0 * bias - 1))
    return np.where(is_constant[:, None], constant, table), np.where(
        is_constant[:, None], np.int8(0), weights
    )


def channel_axis(op: Op) -> int:
    """Returns the index of the filter's dimension that counts output channels."""
    return 3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0


# ---- layers of int16 activations ------------------------------------------------------------------------


def wide_head(graph: Graph, op: Op) -> bytes:
    """Packs, for int16 activations, nn_wide_constants and every channel's constants, padded to a multiple of
    16 bytes.
    """
    common, table = wide_table(graph, op)
    return align(words(*common) + table.astype("<i4").tobytes())


def wide_table(graph: Graph, op: Op) -> tuple[tuple[int, ...], Ints]:
    """Returns, for int16 activations, the words of nn_wide_constants, and one row per output channel: its
    constants as words.
    """
    weights, axis = filter_weights(graph, op), channel_axis(op)
    others = tuple(d for d in range(weights.ndim) if d != axis)
    most = int(np.abs(weights.astype(np.int64)).sum(axis=others).max()) << 15
    bias = channel_bias(graph, op, weights.shape[axis])
    total = most + int(np.abs(bias.astype(np.float64)).max())
    if total >= _MOST_SUM:
        raise UnsupportedError("a sum may need more than 48 bits", operator=op.place)
    if op.kind is OpKind.FULLY_CONNECTED:
        factors, narrow = _dense_factors(graph, op), most < 1 << 31
    else:  # (multiplier of 16 bits, right shift) of each channel
        pairs = np.array([quantize_multiplier(scale) for scale in channel_scales(graph, op)], np.int64)
        factors = np.column_stack((reduce_multiplier(pairs[:, 0]), 15 - pairs[:, 1]))
        narrow = total < 1 << 31 and int(factors[:, 1].min()) >= _LEAST_SHIFT
    halves = bias.astype("<i8").view("<i4").reshape(-1, 2)
    return (*clamp(graph, op), 32 if narrow else 64, 0), np.column_stack((halves, factors))


def _dense_factors(graph: Graph, op: Op) -> Ints:
    """Returns the requantisation factors of a dense layer with int16 activations, one row per output channel.

    A row is four words: the factor's 53 significant bits in two words (the low one first), the right shift,
    and 0.
    """
    rows = []
    for scale in channel_scales(graph, op):
        if scale < 0:  # the rewriter negates all other such channels
            raise UnsupportedError("a channel of negative scale with a weight of -128", operator=op.place)
        fraction, power = math.frexp(scale) if scale >= _LEAST_FACTOR else (0.0, 0)
        factor = int(fraction * 2.0**_FACTOR_BITS)
        low = factor & 0xFFFFFFFF
        rows.append((low - (low >> 31 << 32), factor >> 32, _FACTOR_BITS - power, 0))
    return np.array(rows, np.int64)


# ---- convolutions of several groups -----------------------------------------------------------------------
#
# A convolution with groups (its input has a multiple of the filter's channels) is computed as one convolution
# per group, on a part of the input's channels and of the output's. nn_groups.h calls a kernel for each group.
# Each input channel of a depthwise convolution is a group.


def by_group(packing: Packing) -> Packing:
    """Returns a packing for convolutions with groups: nn_groups_constants, then each group's block, made by
    `packing`.
    """

    def build(graph: Graph, op: Op) -> bytes:
        channels = graph.tensors[op.inputs[0]].shape[3]
        each = 1 if op.kind is OpKind.DEPTHWISE_CONV_2D else graph.tensors[op.inputs[FILTER]].shape[3]
        groups = channels // each
        blocks = [align(packing(_cut_to_group(graph, op, group, groups), op)) for group in range(groups)]
        return words(len(blocks[0]), 0, 0, 0) + b"".join(blocks)

    return build


def _cut_to_group(graph: Graph, op: Op, group: int, groups: int) -> Graph:
    """Returns a graph in which the tensors of `op` have only the channels of one group. It serves only to
    pack `op`.
    """
    tensors = list(graph.tensors)
    cuts = {op.inputs[0]: 3, op.inputs[FILTER]: channel_axis(op), op.outputs[0]: 3}
    if len(op.inputs) > BIAS and op.inputs[BIAS] >= 0:
        cuts[op.inputs[BIAS]] = len(tensors[op.inputs[BIAS]].shape) - 1
    for index, axis in cuts.items():
        tensor = tensors[index]
        share, quant = tensor.shape[axis] // groups, tensor.quant
        part = slice(group * share, (group + 1) * share)
        if quant is not None and len(quant.scales) > 1 and quant.axis == axis:
            quant = replace(quant, scales=quant.scales[part], zero_points=quant.zero_points[part])
        shape = (*tensor.shape[:axis], share, *tensor.shape[axis + 1 :])
        data = None if tensor.data is None else tensor.data[(*(slice(None),) * axis, part)]
        tensors[index] = replace(tensor, shape=shape, data=data, quant=quant)
    return replace(graph, tensors=tuple(tensors))


# ---- transpose convolutions as convolutions ----------------------------------------------------------------
#
# The outputs of a transpose convolution whose row and column leave the same remainders by the strides (a
# phase) meet the same taps: they are a convolution's, without a stride. nn_phases.h calls a kernel for each.


def by_phase(packing: Packing, are_even: Callable[[int, int, int], bool] | None = None) -> Packing:
    """Returns a packing for transpose convolutions: the offset of each phase's block, then the blocks, made
    by `packing`.

    A phase is the set of outputs whose row and column have the same remainders modulo the strides. If
    `are_even` is true of the filter's columns, the stride along them and the input's channels, the phases of
    a row get equally many columns of taps, by zeros before the others, and the lowest bits of the offsets are
    set.
    """

    def build(graph: Graph, op: Op) -> bytes:
        assert isinstance(op.attrs, ConvAttrs)
        rows, columns = op.attrs.stride
        width, channels = graph.tensors[op.inputs[FILTER]].shape[2:]
        even = are_even is not None and are_even(width, columns, channels)
        least = -(-width // columns) if even else 1
        blocks = [
            align(packing(_cut_to_phase(graph, op, row, column, least), replace(op, kind=OpKind.CONV_2D)))
            for row in range(rows)
            for column in range(columns)
        ]
        head = -(-4 * len(blocks) // ALIGNMENT) * ALIGNMENT
        offsets = np.cumsum([head, *map(len, blocks[:-1])]) + even
        return align(words(*offsets)) + b"".join(blocks)

    return build


def _cut_to_phase(graph: Graph, op: Op, row: int, column: int, least: int) -> Graph:
    """Returns a graph in which the filter of `op` has only the taps of one phase, in the order of the inputs.

    If the phase has no taps, the filter is 0. It has `least` columns at least, by zeros before the others.
    The graph serves only to pack `op`.
    """
    assert isinstance(op.attrs, ConvAttrs)
    tensors, index = list(graph.tensors), op.inputs[FILTER]
    taps = _data(tensors[index])[:, row :: op.attrs.stride[0], column :: op.attrs.stride[1]][:, ::-1, ::-1]
    if taps.size == 0:
        taps = np.zeros([max(1, size) for size in taps.shape], taps.dtype)
    taps = np.pad(taps, ((0, 0), (0, 0), (max(0, least - taps.shape[2]), 0), (0, 0)))
    tensors[index] = replace(tensors[index], shape=taps.shape, data=np.ascontiguousarray(taps))
    return replace(graph, tensors=tuple(tensors))
