"""The constants that the plain kernels read: everything that training changes, laid out as nn.h says.

Each packing is one layout; kernels name theirs in their catalogue. A block's length depends on the
topology alone, never on values; the catalogue has a formula for it.
"""

from __future__ import annotations

import numpy as np

from buildtool.emit.blocks import (
    Packing,
    channel_head,
    clamp,
    filter_weights,
    quantization,
    words,
)
from buildtool.errors import UnsupportedError
from buildtool.graph import reference
from buildtool.graph.fixedpoint import quantize_multiplier
from buildtool.graph.limits import MAX_MEAN
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
    SoftmaxAttrs,
)

ADD_LEFT_SHIFT = 20
DEPTHWISE_BLOCK = 4  # channels whose weights of a tap lie side by side


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
        *clamp(graph, op, op.attrs.activation),
    )


def _mul(graph: Graph, op: Op) -> bytes:
    """nn_mul_constants; the factor is computed in float32."""
    assert isinstance(op.attrs, ElementwiseAttrs)
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    real = np.float32(first.scale) * np.float32(second.scale) / np.float32(out.scale)
    return words(
        *(first.zero_point, second.zero_point, out.zero_point),
        *quantize_multiplier(float(real)),
        *clamp(graph, op, op.attrs.activation),
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
    return words(*clamp(graph, op, op.attrs.activation))


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
    if count > MAX_MEAN:
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


PACKINGS: dict[str, Packing] = {
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
