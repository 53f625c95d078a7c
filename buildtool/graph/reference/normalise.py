"""L2_NORMALIZATION and LOG_SOFTMAX over the last dimension, in integers.

A C kernel of LOG_SOFTMAX needs SOFTMAX's table of exponentials (see softmax.py) and `LogScaling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from buildtool.base.errors import ModelError
from buildtool.graph.fixedpoint import (
    INT32_MAX,
    INT32_MIN,
    RANGES,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from buildtool.graph.reference.rootlog import inverse_root, logarithm
from buildtool.graph.reference.softmax import SUM_INTEGER_BITS, exponentials
from buildtool.graph.reference.tensors import Values, centred, quantization
from buildtool.graph.types import Graph, Op

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
