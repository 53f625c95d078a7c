"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION over the last dimension, in integers.

LiteRT's reference SOFTMAX uses integers (its optimised kernel uses floats and gives other results). Qm.n is a
signed 32-bit number with m integer and n fractional bits. A C kernel needs one table,

    exponentials[d] = exp(-d * input scale * beta) as Q0.31, d = largest element - element, 0..255

and then, for each row of elements x (32 bits; `high_mul` and `rounding_shift` are in `fixedpoint`):

    sum    = sum of rounding_shift(exponentials[d], 12)            Q12.19, in any order
    if sum >= SUM_LIMIT: every output is -128                      (every probability is below half a step)
    factor, exponent = reciprocal(sum)                             exponent + 12 - 8
    y      = rounding_shift(high_mul(factor, exponentials[d]), exponent) - 128, clamped to int8

The operator fixes the output scale at 1/256 and the zero point at -128, so the computation does not use them.
LOG_SOFTMAX needs the same table and `LogScaling`.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError
from buildtool.graph import fixedpoint
from buildtool.graph.fixedpoint import INT32_MAX, RANGES, quantize_multiplier, rounding_divide_by_pot
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.curves import WORD, inverse_root, logarithm, reciprocal
from buildtool.graph.reference.tensors import Values, centre, quantization
from buildtool.graph.types import Graph, Op, SoftmaxAttrs

SUM_INTEGER_BITS = 12  # of the sum of exponentials, which is Q12.19
# From this sum on, the exponent of the reciprocal is above 31: all probabilities are below 1/512 and round to
# 0. LiteRT itself aborts on such rows.
SUM_LIMIT = 1 << 28

_DIFF_INTEGER_BITS = 5  # of scaled differences and of logarithms, which are Q5.26
_DIFF_FRACTION_BITS = 31 - _DIFF_INTEGER_BITS
_NORM_OUTPUT_BITS = 7  # outputs of L2_NORMALIZATION are multiples of 2^-7
_LOG_OUTPUT_ZERO = 127  # zero point of LOG_SOFTMAX's output; its scale is 1/16
_LOG_SHIFT = _DIFF_FRACTION_BITS - 4  # from Q5.26 to sixteenths


def exponentials(input_scale: float, beta: float) -> npt.NDArray[np.int32]:
    """Returns exp(-d * input_scale * beta) as Q0.31 for d from 0 to 255: int32[256].

    Negligible values are 0.
    """
    steps = 1 << _DIFF_FRACTION_BITS
    factor = float(np.float32(beta)) * float(np.float32(input_scale)) * steps
    if factor >= 1 << 30:  # only d = 0 fits Q5.26
        return np.array([INT32_MAX, *([0] * 255)], np.int32)
    multiplier, shift = quantize_multiplier(factor)
    if shift < 0:
        raise ModelError(f"the scale {input_scale:g} * beta {beta:g} is too small for a softmax")
    # differences beyond Q5.26 after scaling have an exponential of 0
    radius = math.floor(((1 << _DIFF_INTEGER_BITS) - 1) * steps / (1 << shift))
    d = np.arange(256, dtype=np.int64)
    fits = d <= radius
    scaled = WORD.mul(np.where(fits, -d, 0) << shift, multiplier)
    return np.where(fits, WORD.exp_of_negative(scaled, _DIFF_INTEGER_BITS), 0).astype(np.int32)


def softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SOFTMAX over the last dimension, from int8 to int8 or int16."""
    scale, beta = quantization(graph, op, op.inputs[0]).scale, attributes(op, SoftmaxAttrs).beta
    x, out = inputs[0].astype(np.int64), graph.tensors[op.outputs[0]].dtype
    exps = exponentials(scale, beta).astype(np.int64)[x.max(-1, keepdims=True) - x]
    total = rounding_divide_by_pot(exps, SUM_INTEGER_BITS).sum(-1, keepdims=True)
    bits = 8 * out.size
    factor, exponent = reciprocal(np.minimum(total, SUM_LIMIT - 1))
    scaled = rounding_divide_by_pot(WORD.mul(exps, factor), exponent + SUM_INTEGER_BITS - bits)
    y = np.where(total < SUM_LIMIT, np.minimum(scaled, (1 << bits) - 1), 0)
    return [(y + RANGES[out][0]).astype(out.value)]


def l2_normalization(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes L2_NORMALIZATION: divides each vector along the last dimension by its Euclidean norm."""
    x = centre(graph, op, 0, inputs[0])
    multiplier, shift = inverse_root((x * x).sum(-1, keepdims=True))
    y = fixedpoint.multiply_by_quantized_multiplier(x, multiplier, shift + _NORM_OUTPUT_BITS)
    out = graph.tensors[op.outputs[0]].dtype
    return [np.clip(y, *RANGES[out]).astype(out.value)]


@dataclass(frozen=True)
class LogScaling:
    """The factors of LOG_SOFTMAX: a difference of d steps is `multiplier` * 2^(shift - 31) * d in Q5.26.

    `back` * 2^(back_shift - 31) is the inverse factor. Differences below -`radius` do not count in the sum.
    """

    multiplier: int
    shift: int
    back: int
    back_shift: int
    radius: int


def log_scaling(scale: float) -> LogScaling:
    """Returns the factors for an input scale. Raises ModelError if the scale is too small."""
    factor = float(np.float32(scale)) * (1 << _DIFF_FRACTION_BITS)
    multiplier, shift = quantize_multiplier(min(factor, INT32_MAX))
    if shift < 0:
        raise ModelError(f"the scale {scale:g} is too small for a log softmax")
    back = quantize_multiplier((1 << (31 - shift)) / multiplier)
    return LogScaling(multiplier, shift, *back, math.floor((31 << _DIFF_FRACTION_BITS) / (1 << shift)))


def log_softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes LOG_SOFTMAX: d - log(sum(exp(d))), where d is the difference to the largest element."""
    scale, x = quantization(graph, op, op.inputs[0]).scale, inputs[0].astype(np.int64)
    s = log_scaling(scale)
    d = x - x.max(-1, keepdims=True)
    exps = exponentials(scale, 1.0).astype(np.int64)[-d]
    total = logarithm(rounding_divide_by_pot(exps, SUM_INTEGER_BITS).sum(-1, keepdims=True))
    least = fixedpoint.multiply_by_quantized_multiplier(total + fixedpoint.INT32_MIN, s.back, s.back_shift)
    least = np.maximum(-s.radius - 1, least)
    scaled = fixedpoint.multiply_by_quantized_multiplier(np.where(d > least, d, 0), s.multiplier, s.shift)
    y = rounding_divide_by_pot(scaled - total, _LOG_SHIFT) + _LOG_OUTPUT_ZERO
    out = graph.tensors[op.outputs[0]].dtype
    return [np.where(d > least, np.clip(y, *RANGES[out]), RANGES[out][0]).astype(out.value)]
