"""Packs the constants of the plain kernels: everything that training changes, in the layouts of nn.h.

Each packing is one layout; a kernel's entry in the catalogue names its packing. Names that begin with nn_ are
C structs in kernels/include. A block's length depends on the topology alone, never on values. The catalogue
has a formula for it.
"""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.emit import signal
from buildtool.emit.blocks import (
    Packing,
    by_phase,
    channel_head,
    clamp,
    filter_weights,
    pool_limits,
    quantization,
    wide_head,
    words,
)
from buildtool.emit.recurrent_blocks import lstm_block, sigmoid_words, svdf_block, wide_lstm_block
from buildtool.graph import reference
from buildtool.graph.fixedpoint import quantize_multiplier, reduce_multiplier
from buildtool.graph.geometry import attributes
from buildtool.graph.hop.pooling import pooling_of
from buildtool.graph.limits import MAX_MEAN
from buildtool.graph.ops import DEFS
from buildtool.graph.reference import detection, floats, pairs, wide
from buildtool.graph.reference.activation import curve, leaky_factors
from buildtool.graph.reference.elementwise import ADD_LEFT_SHIFTS, add_factors
from buildtool.graph.reference.matmul import matmul_multiplier
from buildtool.graph.reference.reduction import mean_count, product_factor
from buildtool.graph.reference.softmax import exponentials, log_scaling
from buildtool.graph.reference.tensors import float_factor
from buildtool.graph.types import (
    Activation,
    DetectionAttrs,
    DType,
    GeluAttrs,
    Graph,
    LeakyReluAttrs,
    Op,
    OpKind,
    PadAttrs,
    QuotientAttrs,
    SoftmaxAttrs,
)

DEPTHWISE_BLOCK = 4  # channels whose weights of a tap are adjacent


def _conv(graph: Graph, op: Op) -> bytes:
    """Packs convolutions and dense layers."""
    return channel_head(graph, op) + filter_weights(graph, op).tobytes()


def _depthwise(graph: Graph, op: Op) -> bytes:
    """Packs the channels in blocks of four, and each block tap by tap."""
    weights = filter_weights(graph, op)
    starts = range(0, weights.shape[3], DEPTHWISE_BLOCK)
    blocks = (weights[..., c : c + DEPTHWISE_BLOCK].tobytes() for c in starts)
    return channel_head(graph, op) + b"".join(blocks)


def _conv_unfolded(graph: Graph, op: Op) -> bytes:
    """Packs a convolution with the model's own biases, because the kernel reads the input's zero point."""
    return channel_head(graph, op, fold=False) + filter_weights(graph, op).tobytes()


def _depthwise_offset(graph: Graph, op: Op) -> bytes:
    """Packs the filter's zero point, the model's biases, and the taps of one channel after another."""
    weights = filter_weights(graph, op)
    by_channel = np.ascontiguousarray(weights.reshape(-1, weights.shape[3]).T)
    return _offset(graph, op) + channel_head(graph, op, fold=False) + by_channel.tobytes()


def _offset(graph: Graph, op: Op) -> bytes:
    """Packs a filter's zero point in 16 bytes, for filters whose zero point is not 0."""
    return words(quantization(graph, op, op.inputs[1]).zero_point, 0, 0, 0)


# ---- elementwise -------------------------------------------------------------------------------


def _zero_points(graph: Graph, op: Op) -> tuple[int, ...]:
    """Returns the zero points of the inputs and the output."""
    return tuple(quantization(graph, op, t).zero_point for t in (*op.inputs, op.outputs[0]))


def _scale(graph: Graph, op: Op, position: int = 0) -> float:
    return quantization(graph, op, op.inputs[position]).scale


def _add(graph: Graph, op: Op) -> bytes:
    """Packs nn_add_constants, also for int16. SUB negates the second operand's multiplier."""
    first, second, out = _zero_points(graph, op)
    first_factor, (factor, shift), last = add_factors(graph, op)
    sign, left_shift = -1 if op.kind is OpKind.SUB else 1, ADD_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    return words(
        first, *first_factor, second, sign * factor, shift, left_shift, out, *last, *clamp(graph, op)
    )


def _mul(graph: Graph, op: Op) -> bytes:
    """Packs nn_mul_constants."""
    factor = float_factor(graph, op, _scale(graph, op, 1))
    return words(*_zero_points(graph, op), *factor, *clamp(graph, op))


def _prelu(graph: Graph, op: Op) -> bytes:
    """Packs nn_prelu_constants."""
    negative = float_factor(graph, op, _scale(graph, op, 1))
    return words(*_zero_points(graph, op), *float_factor(graph, op), *negative)


def _squared_difference(graph: Graph, op: Op) -> bytes:
    """Packs nn_squared_difference_constants."""
    first, second, out = _zero_points(graph, op)
    first_factor, second_factor, last = pairs.difference_factors(graph, op)
    limits = clamp(graph, op, Activation.NONE)
    left_shift = pairs.DIFFERENCE_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    return words(first, *first_factor, second, *second_factor, left_shift, out, *last, *limits)


def _div(graph: Graph, op: Op) -> bytes:
    """Packs nn_div_constants."""
    assert isinstance(op.attrs, QuotientAttrs)
    factor = pairs.quotient_factor(graph, op)
    return words(*_zero_points(graph, op), *factor, *clamp(graph, op), int(op.attrs.wraps))


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
    """Packs nn_compare_constants."""
    first, second = pairs.comparison_operands(graph, op)
    return words(*first, *second, pairs.COMPARISON_LEFT_SHIFT, _TRUTH[op.kind])


def _log_softmax(graph: Graph, op: Op) -> bytes:
    """Packs nn_log_softmax_constants."""
    scale = _scale(graph, op)
    s = log_scaling(scale)
    head = words(s.multiplier, s.shift, s.back, s.back_shift, s.radius)
    return head + exponentials(scale, 1.0).astype("<i4").tobytes()


def _softmax(graph: Graph, op: Op) -> bytes:
    """Packs nn_softmax_constants."""
    assert isinstance(op.attrs, SoftmaxAttrs)
    return exponentials(_scale(graph, op), op.attrs.beta).astype("<i4").tobytes()


# ---- reductions, the rest ----------------------------------------------------------------------


def _mean(graph: Graph, op: Op) -> bytes:
    """Packs nn_mean_constants of MEAN and SUM.

    The multiplier of MEAN contains the count's reciprocal, as far as its shift allows.

    As in TFLite's QuantizedMeanOrSum, the multiplier is shifted left by floor(log2(count)), but the total
    right shift stays at most 31. Then it is divided by the count, rounding down.
    """
    count, (source, out) = mean_count(graph, op), _zero_points(graph, op)
    if count > MAX_MEAN:
        raise UnsupportedError(f"a mean of {count} elements", operator=op.place)
    multiplier, shift = _double_factor(graph, op)
    if op.kind is OpKind.SUM:
        return words(source * count, out, multiplier, shift)
    up = min(count.bit_length() - 1, 32, 31 + shift)
    return words(source * count, out, (multiplier << up) // count, shift - up)


def _double_factor(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns (multiplier, shift) from the input's scale to the output's, in double precision."""
    return quantize_multiplier(_scale(graph, op) / quantization(graph, op, op.outputs[0]).scale)


def _product(graph: Graph, op: Op) -> bytes:
    """Packs nn_product_constants."""
    multiplier, shift = product_factor(graph, op)
    reduced = int(reduce_multiplier(np.asarray(multiplier, np.int64)))
    return words(*_zero_points(graph, op), reduced, 15 - shift)


def _matmul(graph: Graph, op: Op) -> bytes:
    """Packs nn_matmul_constants."""
    return words(*_zero_points(graph, op), *matmul_multiplier(graph, op))


def _pad(graph: Graph, op: Op) -> bytes:
    assert isinstance(op.attrs, PadAttrs)
    return words(op.attrs.value)


# ---- int16 activations ---------------------------------------------------------------------------


def _wide_conv(graph: Graph, op: Op) -> bytes:
    """Packs convolutions and dense layers with int16 activations.

    A depthwise filter keeps the model's order: rows, columns, output channels.
    """
    return wide_head(graph, op) + filter_weights(graph, op).tobytes()


def _leaky(graph: Graph, op: Op) -> bytes:
    """Packs nn_leaky_constants. Only LEAKY_RELU has two different factors; RELU and RELU6 clamp."""
    if op.kind is OpKind.LEAKY_RELU:
        identity, leak = leaky_factors(graph, op)
        return words(*identity, *leak, *clamp(graph, op, Activation.NONE))
    clamps = {OpKind.RELU: Activation.RELU, OpKind.RELU6: Activation.RELU6}
    activation = clamps.get(op.kind, Activation.NONE)
    return words(*float_factor(graph, op), *float_factor(graph, op), *clamp(graph, op, activation))


def _sigmoid(graph: Graph, op: Op) -> bytes:
    """Packs nn_sigmoid_constants."""
    return sigmoid_words(_scale(graph, op))


def _wide_lut(graph: Graph, op: Op) -> bytes:
    """Packs nn_wide_lut_constants."""
    return np.append(curve(graph, op), 0).astype("<i2").tobytes()


def _sqrt(graph: Graph, op: Op) -> bytes:
    """Packs nn_sqrt_constants."""
    return np.array([_scale(graph, op), quantization(graph, op, op.outputs[0]).scale], "<f4").tobytes()


def _wide_matmul(graph: Graph, op: Op) -> bytes:
    """Packs nn_matmul_constants for int16."""
    multiplier, shift = matmul_multiplier(graph, op)
    return words(0, 0, 0, int(reduce_multiplier(np.asarray(multiplier, np.int64))), 15 - shift)


def _wide_softmax(graph: Graph, op: Op) -> bytes:
    """Packs nn_wide_softmax_constants."""
    tables = (wide.exponential_table(), wide.reciprocal_table())
    padded = b"".join(np.append(table, 0).astype("<i2").tobytes() for table in tables)
    return words(*wide.softmax_factor(graph, op)) + padded


def _convert(graph: Graph, op: Op) -> bytes:
    """Packs nn_convert_constants; a CAST needs no quantisation."""
    if op.kind is OpKind.CAST:
        return words(0, 0, 0, 0, 0, 0, 1)
    limits = clamp(graph, op, Activation.NONE)
    return words(*_zero_points(graph, op), *_double_factor(graph, op), *limits, 0)


def _detection(graph: Graph, op: Op) -> bytes:
    """Packs nn_detection_constants, the tables of places and half sizes, and the anchors."""
    attrs = op.attrs
    assert isinstance(attrs, DetectionAttrs)
    boxes, scores, anchors = (graph.tensors[t] for t in op.inputs)
    enough = np.flatnonzero(detection.every_value(scores) >= np.float32(attrs.least_score))
    least = int(enough[0]) - 128 if enough.size else 128  # 128: no score is enough
    quant = quantization(graph, op, op.inputs[1])
    head = words(least, quant.zero_point) + np.array([quant.scale, attrs.most_overlap], "<f4").tobytes()
    encoded = np.roll(detection.every_value(boxes), 128)  # in the order of the bits
    places = [encoded.astype(np.float64) / scale for scale in attrs.scales[:2]]
    sizes = [detection.half_sizes(encoded, scale) for scale in attrs.scales[2:]]
    assert anchors.data is not None
    sides = detection.real_values(anchors, anchors.data)
    return head + np.array([*places, *sizes], "<f8").tobytes() + sides.astype("<f4").tobytes()


# ---- float32 -------------------------------------------------------------------------------------


def _reals(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def _float_limits(_graph: Graph, op: Op) -> bytes:
    """Packs nn_float_limits."""
    return _reals(*map(float, floats.limits(op)))


def _float_scaling(_graph: Graph, op: Op) -> bytes:
    """Packs nn_float_factor."""
    if isinstance(op.attrs, SoftmaxAttrs):
        return _reals(op.attrs.beta)
    return _reals(attributes(op, LeakyReluAttrs).alpha)


_UNORDERED = 8


def _float_truth(_graph: Graph, op: Op) -> bytes:
    """Packs nn_float_truth."""
    return words(_TRUTH[op.kind] | (_UNORDERED if op.kind is OpKind.NOT_EQUAL else 0))


def _float_scale(graph: Graph, op: Op) -> bytes:
    """Packs nn_float_scale. CAST converts the stored numbers."""
    if op.kind is OpKind.CAST:
        return _reals(1) + words(0)
    quant = quantization(graph, op, op.inputs[0] if op.kind is OpKind.DEQUANTIZE else op.outputs[0])
    return _reals(quant.scale) + words(quant.zero_point)


def _float_flag(graph: Graph, op: Op) -> bytes:
    """Packs nn_float_flag."""
    if op.kind is OpKind.GELU:
        return words(int(attributes(op, GeluAttrs).approximate))
    return words(int(graph.tensors[op.outputs[0]].dtype is DType.BOOL))


def _float_layer(graph: Graph, op: Op) -> bytes:
    """Packs nn_float_head, the bias and the weights, in the model's order."""
    channels = graph.tensors[op.outputs[0]].shape[-1]
    weights, bias = (graph.tensors[t].data if t >= 0 else None for t in op.inputs[1:])
    assert weights is not None  # `graph.floats` checks that weights are constant
    stated = np.zeros(channels, np.float32) if bias is None else bias
    padded = np.pad(stated.astype("<f4"), (0, -channels % 4)).tobytes()
    return _float_limits(graph, op) + words(0, 0) + padded + weights.astype("<f4").tobytes()


PACKINGS: dict[str, Packing] = {
    "conv_plain": _conv,
    "depthwise_plain": _depthwise,
    "transpose_conv_plain": by_phase(_conv),
    "fully_connected_plain": _conv,
    "conv_offset": lambda graph, op: _offset(graph, op) + _conv_unfolded(graph, op),
    "depthwise_offset": _depthwise_offset,
    "fully_connected_offset": lambda graph, op: _offset(graph, op) + _conv(graph, op),
    "add": _add,
    "mul": _mul,
    "prelu": _prelu,
    "lut": lambda graph, op: reference.table(graph, op).astype(np.uint8).tobytes(),
    "difference": _squared_difference,
    "div": _div,
    "compare": _compare,
    "l2_norm": lambda graph, op: words(_zero_points(graph, op)[0]),
    "log_soft": _log_softmax,
    "pool": pool_limits,
    "mean": _mean,
    "pooled_mean": lambda graph, op: _mean(*pooling_of(graph, op)),
    "pooled_average": lambda graph, op: words(*clamp(*pooling_of(graph, op))),
    "product": _product,
    "softmax": _softmax,
    "matmul": _matmul,
    "pad": _pad,
    "detection": _detection,
    "unscaled": lambda _graph, op: words(wide.UNSCALED.index(DEFS[op.kind].numpy)),
    "framed_window": signal.window_block,
    "signal_fft": signal.fft_block,
    "signal_inverse_fft": signal.fft_block,
    "signal_wide_fft": signal.fft_block,
    "signal_wide_inverse_fft": signal.fft_block,
    "channel_bank": signal.bank_block,
    "signal_gains": signal.gains_block,
    "scaled_log": signal.log_block,
    "svdf": svdf_block,
    "lstm": lstm_block,
    "wide_lstm": wide_lstm_block,
    "wide_conv": _wide_conv,
    "wide_depthwise": _wide_conv,
    "wide_transpose_conv": by_phase(_wide_conv),
    "wide_fully_connected": _wide_conv,
    "leaky": _leaky,
    "sigmoid": _sigmoid,
    "wide_lut": _wide_lut,
    "sqrt": _sqrt,
    "wide_matmul": _wide_matmul,
    "wide_softmax": _wide_softmax,
    "convert": _convert,
    "float_limits": _float_limits,
    "float_scaling": _float_scaling,
    "float_truth": _float_truth,
    "float_scale": _float_scale,
    "float_flag": _float_flag,
    "float_layer": _float_layer,
    "float_depthwise": _float_layer,
    "float_dense": _float_layer,
}
