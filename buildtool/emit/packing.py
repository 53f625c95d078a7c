"""The constants that the C kernels read: everything that training changes, laid out as nn.h says.

Each packing is one layout; kernels name theirs in their catalogue, and families with layouts of
their own add them to `PACKINGS`. A block's length depends on the topology alone, never on values.
The requantisation factors are computed in the precision that TFLite's kernels use for each operator
(their Prepare functions): float32 products here and there, doubles elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from buildtool.errors import TargetError, UnsupportedError, did_you_mean
from buildtool.graph import reference
from buildtool.graph.fixedpoint import activation_range, dense_multiplier, quantize_multiplier
from buildtool.graph.reference.convolution import channel_scales
from buildtool.graph.reference.softmax import exponentials
from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    ElementwiseAttrs,
    FullyConnectedAttrs,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    PoolAttrs,
    Quantization,
    SoftmaxAttrs,
    Tensor,
)

ALIGNMENT = 16  # bytes; of blocks, and of the weights in them
MAX_TAPS = (1 << 17) - 1  # products of two int8 that an int32 sum holds for sure
ADD_LEFT_SHIFT = 20
DEPTHWISE_BLOCK = 4  # channels whose weights of a tap lie side by side

Packing = Callable[[Graph, Op], bytes]


def pack(graph: Graph, op: Op, packing: str) -> bytes:
    """The `constants` block of a kernel for `op`: little-endian, a multiple of 16 bytes long.

    `packing` is a key of `PACKINGS` (KernelVariant.packing). Raises TargetError for an unknown one,
    UnsupportedError for values that the kernels cannot work with.
    """
    # which import from here
    from buildtool.emit import packing_cmsis_nn, packing_dsp, packing_mve, packing_riscv

    families = (packing_dsp, packing_mve, packing_riscv, packing_cmsis_nn)
    known = dict(PACKINGS)
    for family in families:
        known |= family.PACKINGS
    try:
        build = known[packing]
    except KeyError:
        raise TargetError(f"packing '{packing}' is unknown", hint=did_you_mean(packing, known)) from None
    return aligned(build(graph, op))


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


def _clamp(graph: Graph, op: Op, activation: Activation) -> tuple[int, int]:
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
    taps = weights.size // weights.shape[_channel_axis(op)]
    if taps > MAX_TAPS:
        raise UnsupportedError(
            f"{taps} products in a sum, more than {MAX_TAPS}", operator=op.place, tensor=tensor.name
        )
    return weights


def channel_head(graph: Graph, op: Op, activation: Activation, *, fold: bool = True) -> bytes:
    """nn_conv_constants and every channel's constants, a multiple of 16 bytes.

    `fold`: minus the input's zero point times the sum of a channel's weights goes into its bias.
    """
    weights, axis = filter_weights(graph, op), _channel_axis(op)
    zero_point = quantization(graph, op, op.inputs[0]).zero_point
    bias = channel_bias(graph, op, weights.shape[axis])
    if fold:
        others = tuple(d for d in range(weights.ndim) if d != axis)
        bias = bias - zero_point * weights.sum(axis=others, dtype=np.int64)
    factors = np.array(channel_factors(graph, op), np.int32)
    table = np.column_stack((bias.astype(np.int32), factors)).astype("<i4")
    output_zero_point = quantization(graph, op, op.outputs[0]).zero_point
    head = words(zero_point, output_zero_point, *_clamp(graph, op, activation))
    return aligned(head + table.tobytes())


def _channel_axis(op: Op) -> int:
    return 3 if op.kind is OpKind.DEPTHWISE_CONV_2D else 0


def _conv_activation(op: Op) -> Activation:
    assert isinstance(op.attrs, ConvAttrs)
    return op.attrs.activation


def _conv(graph: Graph, op: Op) -> bytes:
    return channel_head(graph, op, _conv_activation(op)) + filter_weights(graph, op).tobytes()


def _depthwise(graph: Graph, op: Op) -> bytes:
    """The channels in blocks of four: all taps of one block, then those of the next."""
    weights = filter_weights(graph, op)
    starts = range(0, weights.shape[3], DEPTHWISE_BLOCK)
    blocks = (weights[..., c : c + DEPTHWISE_BLOCK].tobytes() for c in starts)
    return channel_head(graph, op, _conv_activation(op)) + b"".join(blocks)


def _transpose_conv(graph: Graph, op: Op) -> bytes:
    head = channel_head(graph, op, _conv_activation(op), fold=False)
    return head + filter_weights(graph, op).tobytes()


def _fully_connected(graph: Graph, op: Op) -> bytes:
    assert isinstance(op.attrs, FullyConnectedAttrs)
    return channel_head(graph, op, op.attrs.activation) + filter_weights(graph, op).tobytes()


# ---- elementwise -------------------------------------------------------------------------------


def _add(graph: Graph, op: Op) -> bytes:
    """nn_add_constants; SUB negates the second operand's multiplier."""
    assert isinstance(op.attrs, ElementwiseAttrs)
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    twice = 2.0 * max(first.scale, second.scale)
    factor1, shift1 = quantize_multiplier(first.scale / twice)
    factor2, shift2 = quantize_multiplier(second.scale / twice)
    factor, shift = quantize_multiplier(twice / ((1 << ADD_LEFT_SHIFT) * out.scale))
    sign = -1 if op.kind is OpKind.SUB else 1
    return words(
        *(first.zero_point, factor1, shift1),
        *(second.zero_point, sign * factor2, shift2),
        ADD_LEFT_SHIFT,
        *(out.zero_point, factor, shift),
        *_clamp(graph, op, op.attrs.activation),
    )


def _mul(graph: Graph, op: Op) -> bytes:
    """nn_mul_constants; the factor is computed in float32."""
    assert isinstance(op.attrs, ElementwiseAttrs)
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    real = np.float32(first.scale) * np.float32(second.scale) / np.float32(out.scale)
    return words(
        *(first.zero_point, second.zero_point, out.zero_point),
        *quantize_multiplier(float(real)),
        *_clamp(graph, op, op.attrs.activation),
    )


def _prelu(graph: Graph, op: Op) -> bytes:
    """nn_prelu_constants; both factors are computed in float32."""
    source, alpha, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    positive = np.float32(source.scale) / np.float32(out.scale)
    negative = np.float32(source.scale) * np.float32(alpha.scale) / np.float32(out.scale)
    return words(
        *(source.zero_point, alpha.zero_point, out.zero_point),
        *quantize_multiplier(float(positive)),
        *quantize_multiplier(float(negative)),
    )


def _lut(graph: Graph, op: Op) -> bytes:
    return reference.table(graph, op).astype(np.uint8).tobytes()


# ---- pooling, reductions, the rest -------------------------------------------------------------


def _pool(graph: Graph, op: Op) -> bytes:
    assert isinstance(op.attrs, PoolAttrs)
    return words(*_clamp(graph, op, op.attrs.activation))


def _mean(graph: Graph, op: Op) -> bytes:
    """nn_mean_constants: the count's reciprocal goes into the multiplier as far as its shift allows.

    As TFLite's QuantizedMeanOrSum: the multiplier is shifted left by floor(log2(count)), but never
    so far that the total right shift exceeds 31, then divided by the count, rounding down.
    """
    assert isinstance(op.attrs, MeanAttrs)
    source, out = quantization(graph, op, op.inputs[0]), quantization(graph, op, op.outputs[0])
    shape = graph.tensors[op.inputs[0]].shape
    count = 1
    for axis in op.attrs.axes:
        count *= shape[axis]
    if count > MAX_TAPS << 6:
        raise UnsupportedError(f"a mean of {count} elements", operator=op.place)
    multiplier, shift = quantize_multiplier(source.scale / out.scale)
    up = min(count.bit_length() - 1, 32, 31 + shift)
    return words(source.zero_point * count, out.zero_point, (multiplier << up) // count, shift - up)


def _softmax(graph: Graph, op: Op) -> bytes:
    """nn_softmax_constants."""
    assert isinstance(op.attrs, SoftmaxAttrs)
    scale = quantization(graph, op, op.inputs[0]).scale
    return exponentials(scale, op.attrs.beta).astype("<i4").tobytes()


def _pad(graph: Graph, op: Op) -> bytes:
    assert isinstance(op.attrs, PadAttrs)
    return words(op.attrs.value)


def _none(graph: Graph, op: Op) -> bytes:
    return b""


PACKINGS: dict[str, Packing] = {
    "none": _none,
    "conv_plain": _conv,
    "depthwise_plain": _depthwise,
    "transpose_conv_plain": _transpose_conv,
    "fully_connected_plain": _fully_connected,
    "add": _add,
    "mul": _mul,
    "prelu": _prelu,
    "lut": _lut,
    "pool": _pool,
    "mean": _mean,
    "softmax": _softmax,
    "pad": _pad,
}
