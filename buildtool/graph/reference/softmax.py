"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION over the last dimension, in integers.

SOFTMAX has exponentials and the reciprocal as fixed-point numbers.

LiteRT's reference kernel uses no float here (its optimised one does, and differs). Qm.n below is a
signed 32-bit number with m integer and n fractional bits. A C kernel needs one table,

    exponentials[d] = exp(-d * input scale * beta) as Q0.31, d = largest element - element, 0..255

and then, for each row of elements x (all 32 bits; `high_mul`, `rounding_shift` as in fixedpoint.py):

    sum    = sum of rounding_shift(exponentials[d], 12)            Q12.19, order does not matter
    if sum >= SUM_LIMIT: every output is -128                      (nothing reaches half a step)
    factor, exponent = reciprocal(sum)
    y      = rounding_shift(high_mul(factor, exponentials[d]), exponent) - 128, clamped to int8

Output scale and zero point are fixed at 1/256 and -128 by the operator; they do not take part.
LOG_SOFTMAX takes the same table, and `LogScaling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError
from buildtool.graph.fixedpoint import (
    INT32_MAX,
    INT32_MIN,
    RANGES,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from buildtool.graph.reference.rootlog import inverse_root, logarithm
from buildtool.graph.reference.tensors import Values, attributes, centred, quantization
from buildtool.graph.types import Graph, Op, SoftmaxAttrs

Int64 = npt.NDArray[np.int64]

SUM_INTEGER_BITS = 12  # of the sum of exponentials, Q12.19
# From here on the reciprocal's exponent exceeds 31: all probabilities are below 1/512 and round to 0
# (LiteRT itself aborts on such rows).
SUM_LIMIT = 1 << 28
RECIPROCAL_STEPS = 3  # of Newton's method

_DIFF_INTEGER_BITS = 5  # of the scaled differences, Q5.26
_DIFF_FRACTION_BITS = 31 - _DIFF_INTEGER_BITS
_EIGHTH = 1 << 28  # 1/8 as Q0.31
_EXP_MINUS_EIGHTH = 1895147668  # round(exp(-1/8) * 2^31)
_THIRD = 715827883  # round(2^31 / 3)
# round(exp(-2^k) * 2^31) for k = -2..4
_EXP_MINUS_POWERS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
_48_OVER_17 = 1515870810  # round(48/17 * 2^29)
_MINUS_32_OVER_17 = -1010580540  # round(-32/17 * 2^29)
_ONE_Q2 = 1 << 29


def _high_mul(a: Int64, b: int | Int64) -> Int64:
    return saturating_rounding_doubling_high_mul(a, b)


def _saturating_shift(a: Int64, bits: int) -> Int64:
    return np.asarray(np.clip(a << bits, INT32_MIN, INT32_MAX))


def _exp_of_last_quarter(a: Int64) -> Int64:
    """Exp of Q0.31 in [-1/4, 0): a Taylor series of degree 4 around -1/8."""
    x = a + _EIGHTH
    x2 = _high_mul(x, x)
    x3 = _high_mul(x2, x)
    x4_over_4 = rounding_divide_by_pot(_high_mul(x2, x2), 2)
    tail = rounding_divide_by_pot(_high_mul(x4_over_4 + x3, _THIRD) + x2, 1)
    return _EXP_MINUS_EIGHTH + _high_mul(x + tail, _EXP_MINUS_EIGHTH)


def _exp_of_negative(a: Int64) -> Int64:
    """Exp of Q5.26 numbers <= 0, as Q0.31: the last quarter's, times one factor a binary digit."""
    quarter = 1 << (_DIFF_FRACTION_BITS - 2)
    in_quarter = (a & (quarter - 1)) - quarter
    result = _exp_of_last_quarter(_saturating_shift(in_quarter, _DIFF_INTEGER_BITS))
    remainder = in_quarter - a
    for power, factor in _EXP_MINUS_POWERS:
        digit = remainder & (1 << (_DIFF_FRACTION_BITS + power))
        result = np.where(digit != 0, _high_mul(result, factor), result)
    return np.where(a == 0, INT32_MAX, result)


def exponentials(input_scale: float, beta: float) -> npt.NDArray[np.int32]:
    """int32[256]: exp(-d * input_scale * beta) as Q0.31 for d = 0..255, 0 where it is negligible."""
    steps = 1 << _DIFF_FRACTION_BITS
    if float(np.float32(beta)) * float(np.float32(input_scale)) * steps >= 1 << 30:  # all but 0 leave Q5.26
        return np.array([INT32_MAX, *([0] * 255)], np.int32)
    multiplier, shift = quantize_multiplier(
        min(float(np.float32(beta)) * float(np.float32(input_scale)) * steps, INT32_MAX)
    )
    if shift < 0:
        raise ModelError(f"softmax cannot tell values {input_scale:g} * {beta:g} apart")
    # Differences that leave Q5.26 after scaling count as exp(-infinity).
    radius = math.floor(((1 << _DIFF_INTEGER_BITS) - 1) * steps / (1 << shift))
    d = np.arange(256, dtype=np.int64)
    used = d <= radius
    scaled = _high_mul(np.where(used, -d, 0) << shift, multiplier)
    return np.where(used, _exp_of_negative(scaled), 0).astype(np.int32)


def reciprocal(total: Int64, bits: int = 8) -> tuple[Int64, Int64]:
    """(factor Q0.31, exponent) so that probability * 2^bits = factor * exponential / 2^exponent.

    `total` is a sum of exponentials, Q12.19, 2^19 <= total < SUM_LIMIT. Newton's method for
    1 / (1 + x), x = total normalised to [1, 2) minus 1, started at 48/17 - 32/17 * (1 + x)/2.
    """
    length = np.asarray([int(t).bit_length() for t in total.reshape(-1)], np.int64).reshape(total.shape)
    fraction = (total << (32 - length)) - (np.int64(1) << 31)
    half_denominator = (fraction + INT32_MAX + 1) >> 1
    x = _48_OVER_17 + _high_mul(half_denominator, _MINUS_32_OVER_17)
    for _ in range(RECIPROCAL_STEPS):
        error = _ONE_Q2 - _high_mul(half_denominator, x)
        x = x + _saturating_shift(_high_mul(x, error), 2)
    integer_bits = SUM_INTEGER_BITS - (32 - length)
    return _saturating_shift(x, 1), integer_bits + 31 - bits


def softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SOFTMAX over the last dimension, of int8 to int8 or int16."""
    attrs = attributes(op, SoftmaxAttrs)
    scale = quantization(graph, op, op.inputs[0]).scale
    x = inputs[0].astype(np.int64)
    exps = exponentials(scale, attrs.beta).astype(np.int64)[x.max(-1, keepdims=True) - x]
    total = rounding_divide_by_pot(exps, SUM_INTEGER_BITS).sum(-1, keepdims=True)
    out = graph.tensors[op.outputs[0]].dtype
    bits = 8 * out.size
    factor, exponent = reciprocal(np.minimum(total, SUM_LIMIT - 1), bits)
    scaled = rounding_divide_by_pot(_high_mul(exps, factor), exponent)
    y = np.where(total < SUM_LIMIT, np.minimum(scaled, (1 << bits) - 1), 0)
    return [(y + RANGES[out][0]).astype(out.value)]


NORM_OUTPUT_BITS = 7  # outputs are multiples of 2^-7
LOG_OUTPUT_ZERO = 127  # the zero point of LOG_SOFTMAX's output, of scale 1/16
_FRACTION_BITS = 26  # of differences and logarithms, Q5.26
_LOG_SHIFT = 31 - 5 - 4  # from Q5.26 to sixteenths


def l2_normalization(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Each element over the root of the sum of all squares of the last dimension."""
    x = centred(graph, op, 0, inputs[0])
    multiplier, shift = inverse_root((x * x).sum(-1, keepdims=True))
    y = multiply_by_quantized_multiplier(x, multiplier, shift + NORM_OUTPUT_BITS)
    out = graph.tensors[op.outputs[0]].dtype
    return [np.clip(y, *RANGES[out]).astype(out.value)]


@dataclass(frozen=True)
class LogScaling:
    """How LOG_SOFTMAX scales.

    A difference of d steps is `multiplier` * 2^(shift - 31) * d in Q5.26; `back` * 2^(back_shift - 31) is the
    way back; differences below -`radius` do not count in the sum.
    """

    multiplier: int
    shift: int
    back: int
    back_shift: int
    radius: int


def log_scaling(scale: float) -> LogScaling:
    """The factors for an input of that scale; ModelError where it is too small to tell values apart."""
    multiplier, shift = quantize_multiplier(min(float(np.float32(scale)) * (1 << _FRACTION_BITS), INT32_MAX))
    if shift < 0:
        raise ModelError(f"a log softmax cannot tell values of scale {scale:g} apart")
    back, back_shift = quantize_multiplier((1 << (31 - shift)) / multiplier)
    return LogScaling(multiplier, shift, back, back_shift, math.floor((31 << _FRACTION_BITS) / (1 << shift)))


def log_softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """LOG_SOFTMAX: differences to the largest element, less the logarithm of the sum of exponentials."""
    scale = quantization(graph, op, op.inputs[0]).scale
    s = log_scaling(scale)
    x = inputs[0].astype(np.int64)
    d = x - x.max(-1, keepdims=True)
    exps = exponentials(scale, 1.0).astype(np.int64)[-d]
    total = logarithm(rounding_divide_by_pot(exps, SUM_INTEGER_BITS).sum(-1, keepdims=True))
    least = np.maximum(
        -s.radius - 1, multiply_by_quantized_multiplier(total + INT32_MIN, s.back, s.back_shift)
    )
    scaled = multiply_by_quantized_multiplier(np.where(d > least, d, 0), s.multiplier, s.shift)
    y = rounding_divide_by_pot(scaled - total, _LOG_SHIFT) + LOG_OUTPUT_ZERO
    out = graph.tensors[op.outputs[0]].dtype
    low, high = RANGES[out]
    return [np.where(d > least, np.clip(y, low, high), low).astype(out.value)]
