"""The constants that the plain kernels read: everything that training changes, laid out as nn.h says.

Each packing is one layout; kernels name theirs in their catalogue. A block's length depends on the
topology alone, never on values; the catalogue has a formula for it.
"""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.emit.blocks import Packing, channel_head, clamp, filter_weights, quantization, wide_head, words
from buildtool.emit.recurrent_blocks import lstm_block, svdf_block
from buildtool.graph import reference
from buildtool.graph.fixedpoint import quantize_multiplier, reduced_multiplier
from buildtool.graph.limits import MAX_MEAN
from buildtool.graph.reference import pairs, wide
from buildtool.graph.reference.activation import leaky_factors
from buildtool.graph.reference.elementwise import ADD_LEFT_SHIFTS, add_factors
from buildtool.graph.reference.matmul import matmul_multiplier
from buildtool.graph.reference.reduction import product_factor
from buildtool.graph.reference.softmax import exponentials, log_scaling
from buildtool.graph.types import (
    Activation,
    Graph,
    MeanAttrs,
    Op,
    OpKind,
    PadAttrs,
    QuotientAttrs,
    SoftmaxAttrs,
)

DEPTHWISE_BLOCK = 4  # channels whose weights of a tap lie side by side


def _conv(graph: Graph, op: Op) -> bytes:
    """Convolutions and dense layers."""
    return channel_head(graph, op) + filter_weights(graph, op).tobytes()


def _depthwise(graph: Graph, op: Op) -> bytes:
    """The channels in blocks of four: all taps of one block, then those of the next."""
    weights = filter_weights(graph, op)
    starts = range(0, weights.shape[3], DEPTHWISE_BLOCK)
    blocks = (weights[..., c : c + DEPTHWISE_BLOCK].tobytes() for c in starts)
    return channel_head(graph, op) + b"".join(blocks)


def _transpose_conv(graph: Graph, op: Op) -> bytes:
    head = channel_head(graph, op, fold=False)
    return head + filter_weights(graph, op).tobytes()


# ---- networks that were uint8: filters with a zero point --------------------------------------------


def _offset(graph: Graph, op: Op) -> bytes:
    """The filter's zero point, in 16 bytes."""
    return words(quantization(graph, op, op.inputs[1]).zero_point, 0, 0, 0)


def _conv_offset(graph: Graph, op: Op) -> bytes:
    head = channel_head(graph, op, fold=False)
    return _offset(graph, op) + head + filter_weights(graph, op).tobytes()


def _fully_connected_offset(graph: Graph, op: Op) -> bytes:
    return _offset(graph, op) + _conv(graph, op)


# ---- elementwise -------------------------------------------------------------------------------


def _add(graph: Graph, op: Op) -> bytes:
    """nn_add_constants; of int16, too, which move left less. SUB negates the second operand's multiplier."""
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    own, (factor, shift), last = add_factors(graph, op)
    sign = -1 if op.kind is OpKind.SUB else 1
    return words(
        *(first.zero_point, *own),
        *(second.zero_point, sign * factor, shift),
        ADD_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype],
        *(out.zero_point, *last),
        *clamp(graph, op),
    )


def _mul(graph: Graph, op: Op) -> bytes:
    """nn_mul_constants; the factor is computed in float32."""
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    real = np.float32(first.scale) * np.float32(second.scale) / np.float32(out.scale)
    return words(
        *(first.zero_point, second.zero_point, out.zero_point),
        *quantize_multiplier(float(real)),
        *clamp(graph, op),
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


def _squared_difference(graph: Graph, op: Op) -> bytes:
    """nn_squared_difference_constants."""
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    factors = pairs.difference_factors(graph, op)
    return words(
        *(first.zero_point, *factors[0]),
        *(second.zero_point, *factors[1]),
        pairs.DIFFERENCE_LEFT_SHIFT,
        *(out.zero_point, *factors[2]),
        *clamp(graph, op, Activation.NONE),
    )


def _div(graph: Graph, op: Op) -> bytes:
    """nn_div_constants; the factor is computed in float32."""
    assert isinstance(op.attrs, QuotientAttrs)
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    return words(
        *(first.zero_point, second.zero_point, out.zero_point),
        *pairs.quotient_factor(graph, op),
        *clamp(graph, op),
        int(op.attrs.wraps),
    )


LESS, EQUAL, GREATER = 1, 2, 4
_TRUTH = {
    OpKind.EQUAL: EQUAL,
    OpKind.NOT_EQUAL: LESS | GREATER,
    OpKind.LESS: LESS,
    OpKind.LESS_EQUAL: LESS | EQUAL,
    OpKind.GREATER: GREATER,
    OpKind.GREATER_EQUAL: GREATER | EQUAL,
}


def _compare(graph: Graph, op: Op) -> bytes:
    """nn_compare_constants."""
    first, second = pairs.comparison_operands(graph, op)
    return words(*first, *second, pairs.COMPARISON_LEFT_SHIFT, _TRUTH[op.kind])


def _l2_normalization(graph: Graph, op: Op) -> bytes:
    return words(quantization(graph, op, op.inputs[0]).zero_point)


def _log_softmax(graph: Graph, op: Op) -> bytes:
    """nn_log_softmax_constants."""
    scale = quantization(graph, op, op.inputs[0]).scale
    s = log_scaling(scale)
    head = words(s.multiplier, s.shift, s.back, s.back_shift, s.radius)
    return head + exponentials(scale, 1.0).astype("<i4").tobytes()


def _lut(graph: Graph, op: Op) -> bytes:
    return reference.table(graph, op).astype(np.uint8).tobytes()


# ---- pooling, reductions, the rest -------------------------------------------------------------


def _pool(graph: Graph, op: Op) -> bytes:
    return words(*clamp(graph, op))


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


def _product(graph: Graph, op: Op) -> bytes:
    """nn_product_constants."""
    source, out = quantization(graph, op, op.inputs[0]), quantization(graph, op, op.outputs[0])
    multiplier, shift = product_factor(graph, op)
    reduced = int(reduced_multiplier(np.asarray(multiplier, np.int64)))
    return words(source.zero_point, out.zero_point, reduced, 15 - shift)


def _softmax(graph: Graph, op: Op) -> bytes:
    """nn_softmax_constants."""
    assert isinstance(op.attrs, SoftmaxAttrs)
    scale = quantization(graph, op, op.inputs[0]).scale
    return exponentials(scale, op.attrs.beta).astype("<i4").tobytes()


def _matmul(graph: Graph, op: Op) -> bytes:
    """nn_matmul_constants."""
    first, second, out = (quantization(graph, op, t) for t in (*op.inputs, op.outputs[0]))
    return words(first.zero_point, second.zero_point, out.zero_point, *matmul_multiplier(graph, op))


def _pad(graph: Graph, op: Op) -> bytes:
    assert isinstance(op.attrs, PadAttrs)
    return words(op.attrs.value)


# ---- int16 activations ---------------------------------------------------------------------------


def _wide_conv(graph: Graph, op: Op) -> bytes:
    """Convolutions and dense layers; a depthwise filter as the model has it: H W O."""
    return wide_head(graph, op) + filter_weights(graph, op).tobytes()


def _leaky(graph: Graph, op: Op) -> bytes:
    """nn_leaky_constants: of RELU and RELU6 both factors are one, and the output is cut."""
    if op.kind is OpKind.LEAKY_RELU:
        identity, leak = leaky_factors(graph, op)
        return words(*identity, *leak, *clamp(graph, op, Activation.NONE))
    source, out = quantization(graph, op, op.inputs[0]), quantization(graph, op, op.outputs[0])
    pair = quantize_multiplier(float(np.float32(source.scale) / np.float32(out.scale)))
    activation = Activation.RELU if op.kind is OpKind.RELU else Activation.RELU6
    return words(*pair, *pair, *clamp(graph, op, activation))


def _sigmoid(graph: Graph, op: Op) -> bytes:
    """nn_sigmoid_constants."""
    pair = wide.sigmoid_factor(quantization(graph, op, op.inputs[0]).scale)
    return words(*pair) + wide.sigmoid_table()[: wide.SIGMOID_STEPS].astype("<u2").tobytes()


def _wide_softmax(graph: Graph, op: Op) -> bytes:
    """nn_wide_softmax_constants."""
    tables = (wide.exponential_table(), wide.reciprocal_table())
    filled = b"".join(np.append(table, 0).astype("<i2").tobytes() for table in tables)
    return words(*wide.softmax_factor(graph, op)) + filled


def _convert(graph: Graph, op: Op) -> bytes:
    """nn_convert_constants; a CAST needs no quantisation."""
    if op.kind is OpKind.CAST:
        return words(0, 0, 0, 0, 0, 0, 1)
    source, out = quantization(graph, op, op.inputs[0]), quantization(graph, op, op.outputs[0])
    pair = quantize_multiplier(source.scale / out.scale)
    return words(source.zero_point, out.zero_point, *pair, *clamp(graph, op, Activation.NONE), 0)


PACKINGS: dict[str, Packing] = {
    "conv_plain": _conv,
    "depthwise_plain": _depthwise,
    "transpose_conv_plain": _transpose_conv,
    "fully_connected_plain": _conv,
    "conv_offset": _conv_offset,
    "depthwise_offset": _conv_offset,
    "fully_connected_offset": _fully_connected_offset,
    "add": _add,
    "mul": _mul,
    "prelu": _prelu,
    "lut": _lut,
    "difference": _squared_difference,
    "div": _div,
    "compare": _compare,
    "l2_norm": _l2_normalization,
    "log_soft": _log_softmax,
    "pool": _pool,
    "mean": _mean,
    "product": _product,
    "softmax": _softmax,
    "matmul": _matmul,
    "pad": _pad,
    "svdf": svdf_block,
    "lstm": lstm_block,
    "wide_conv": _wide_conv,
    "wide_depthwise": _wide_conv,
    "wide_fully_connected": _wide_conv,
    "leaky": _leaky,
    "sigmoid": _sigmoid,
    "wide_softmax": _wide_softmax,
    "convert": _convert,
}
