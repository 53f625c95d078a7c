"""What the packings of kernel families share: a channel's factors and bias, heads of blocks, alignment.

A family's packing.py imports from here, whoever ships the family. The requantisation factors are computed
in the precision that TFLite's kernels use for each operator (their Prepare functions): float32 products
here and there, doubles elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import UnsupportedError
from buildtool.graph.fixedpoint import activation_range, dense_multiplier, quantize_multiplier
from buildtool.graph.limits import MAX_TAPS
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.types import Activation, Graph, Op, OpKind, Quantization, Tensor

ALIGNMENT = 16  # bytes; of blocks, and of the weights in them

Packing = Callable[[Graph, Op], bytes]


def aligned(block: bytes) -> bytes:
    """`block` with zeros behind it up to a multiple of 16 bytes."""
    return block + bytes(-len(block) % ALIGNMENT)


def words(*values: int) -> bytes:
    """Values as little-endian int32."""
    return np.array(values, "<i4").tobytes()


def quantization(graph: Graph, op: Op, tensor: int) -> Quantization:
    """A tensor's quantisation; UnsupportedError if it has none."""
    quant = graph.tensors[tensor].quant
    if quant is None:
        raise UnsupportedError(
            "a tensor is not quantised", operator=op.place, tensor=graph.tensors[tensor].name
        )
    return quant


def _data(tensor: Tensor) -> npt.NDArray[np.generic]:
    assert tensor.data is not None  # the reader takes no other weights
    return tensor.data


def clamp(graph: Graph, op: Op, activation: Activation) -> tuple[int, int]:
    """The least and the greatest value that the operator's output may take."""
    out = op.outputs[0]
    return activation_range(activation, quantization(graph, op, out), graph.tensors[out].dtype)


# ---- convolutions and dense layers -------------------------------------------------------------


def channel_factors(graph: Graph, op: Op) -> list[tuple[int, ...]]:
    """Of every output channel (multiplier, shift), of a dense layer's (multiplier, shift, low)."""
    scales = channel_scales(graph, op)
    factors: dict[float, tuple[int, ...]] = {}
    for scale in dict.fromkeys(scales):
        if op.kind is OpKind.FULLY_CONNECTED:
            if scale < 0:  # the rewriter turns all others
                raise UnsupportedError("a channel of negative scale with a weight of -128", operator=op.place)
            multiplier, low, shift = dense_multiplier(scale)
            factors[scale] = (multiplier, shift, low)
        else:
            factors[scale] = quantize_multiplier(scale)
    return [factors[scale] for scale in scales]


def channel_bias(graph: Graph, op: Op, channels: int) -> npt.NDArray[np.int64]:
    """Every output channel's bias as the model has it; zeros without one."""
    index = op.inputs[2] if len(op.inputs) > 2 else -1
    if index < 0:
        return np.zeros(channels, np.int64)
    return _data(graph.tensors[index]).astype(np.int64).reshape(channels)


def filter_weights(graph: Graph, op: Op) -> npt.NDArray[np.int8]:
    """The filter as the model has it; UnsupportedError if its sums may not fit 32 bits."""
    tensor = graph.tensors[op.inputs[1]]
    weights = _data(tensor).astype(np.int8)
    taps = weights.size // weights.shape[channel_axis(op)]
    if taps > MAX_TAPS:
        raise UnsupportedError(
            f"{taps} products in a sum, more than {MAX_TAPS}", operator=op.place, tensor=tensor.name
        )
    return weights


def channel_head(graph: Graph, op: Op, activation: Activation, *, fold: bool = True) -> bytes:
    """nn_conv_constants and every channel's constants, a multiple of 16 bytes.

    `fold`: minus the input's zero point times the sum of a channel's weights, without the filter's zero
    point, goes into its bias.
    """
    weights, axis = filter_weights(graph, op), channel_axis(op)
    zero_point = quantization(graph, op, op.inputs[0]).zero_point
    bias = channel_bias(graph, op, weights.shape[axis])
    if fold:
        others = tuple(d for d in range(weights.ndim) if d != axis)
        taps = weights.size // weights.shape[axis]
        own = quantization(graph, op, op.inputs[1]).zero_point  # 0 but in networks that were uint8
        bias = bias - zero_point * (weights.sum(axis=others, dtype=np.int64) - taps * own)
    factors = np.array(channel_factors(graph, op), np.int32)
    table = np.column_stack((bias.astype(np.int32), factors)).astype("<i4")
    output_zero_point = quantization(graph, op, op.outputs[0]).zero_point
    head = words(zero_point, output_zero_point, *clamp(graph, op, activation))
    return aligned(head + table.tobytes())


def channel_axis(op: Op) -> int:
    """The dimension of a filter that counts output channels."""
    return 3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0
