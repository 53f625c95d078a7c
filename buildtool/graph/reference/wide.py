"""Operators of int16 that interpolate in tables (SOFTMAX, LOGISTIC, TANH), CAST, and unscaled int32.

They equal LiteRT's reference kernels (see docs/reference/arithmetic.md). Zero points are 0.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import INT32_MAX, INT32_MIN, RANGES, quantize_multiplier, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.ops import DEFS
from buildtool.graph.reference.tensors import (
    Int64,
    Values,
    float_ratio,
    quantization,
    requantise,
    round_half_away_array,
)
from buildtool.graph.types import DType, Graph, Op, OpKind, SoftmaxAttrs

Table = npt.NDArray[np.int64]
Real = np.floating[Any]
Reals = npt.NDArray[Any]  # of the floats that a Real is

HALVES = RANGES[DType.INT16]
STEPS = 512  # number of steps in an interpolation table over all int16 values
SIGMOID_STEPS = 256
SIGMOID_SCALE = 3 * 4096  # input steps of the interpolation for 1.0


def sample(low: Real, high: Real, unit: Real, function: Callable[[Reals], Reals]) -> Table:
    """Returns the interpolation table of a function from `low` to `high`: int64[513], in steps of 1 / `unit`.

    It is computed in the float type of `low`. As in LiteRT's LUTPopulate, each sample is corrected by half of
    the interpolation's error in the middle between two samples. Where a sample would be infinite, as that of
    EXP may be, it is 0, as on x86-64 and AArch64.
    """
    kind, step = np.asarray(low).dtype, (high - low) / STEPS
    places = low + np.arange(STEPS + 1, dtype=kind) * step
    places[STEPS] = high

    def rounded(values: Reals) -> Reals:
        return np.asarray(round_half_away_array(values), kind)

    with np.errstate(all="ignore"):
        here, middle = function(places) * unit, function(places[:-1] + step / 2) * unit
        after = function(low + np.arange(1, STEPS + 1, dtype=kind) * step) * unit
        samples = rounded(here)
        between = rounded((after + samples[:-1]) / 2)
        samples[:-1] -= rounded((between - rounded(middle)) / 2)
    return np.asarray(np.nan_to_num(np.clip(samples, *HALVES)), np.int64)


def interpolate(x: Int64, table: Table) -> Int64:
    """Returns the interpolated values of a table at int16 values. Slopes and results are modulo 2^16."""
    index = 256 + (x >> 7)
    base, slope = table[index], _wrap_int16(table[index + 1] - table[index])
    return _wrap_int16(base + ((slope * (x & 127) + 64) >> 7))


def _wrap_int16(x: Int64) -> Int64:
    return np.asarray(x.astype(np.int16), np.int64)


@functools.cache
def exponential_table() -> Table:
    """Returns the table of exp(x), x from -10 to 0."""
    ends = np.float64(-10.0), np.float64(0.0)
    return sample(*ends, np.float64(32768.0), lambda x: np.array([*map(math.exp, x)]))


@functools.cache
def reciprocal_table() -> Table:
    """Returns the table of 1 / (1 + x), x from 0 to 1."""
    return sample(np.float64(0.0), np.float64(1.0), np.float64(32768.0), lambda x: 1 / (1 + x))


def softmax_factor(graph: Graph, op: Op) -> tuple[int, int]:
    """Returns (multiplier, shift) that scales differences to steps of 10 / 65535."""
    beta = attributes(op, SoftmaxAttrs).beta
    scale = quantization(graph, op, op.inputs[0]).scale
    return quantize_multiplier(float_ratio(scale, beta, over=1.0) / (10.0 / 65535.0))


def softmax(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SOFTMAX over the last dimension."""
    x = inputs[0].astype(np.int64)
    difference = x - x.max(-1, keepdims=True)
    places = requantise(difference, *softmax_factor(graph, op), 0, (INT32_MIN, INT32_MAX)) + 32767
    exps = interpolate(np.clip(places, *HALVES), exponential_table())
    total = exps.sum(-1, keepdims=True)
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)  # number of bits in each sum
    headroom = 32 - bits
    scaled = ((total << (headroom - 1)) + (1 << 13)) >> 14  # from 65536 for 1 to 131072 for 2
    factor = interpolate(np.clip(scaled - 32768 - 65536, *HALVES), reciprocal_table())
    right = 31 - headroom
    y = (exps * factor + (np.int64(1) << (right - 1))) >> right
    return [np.clip(y, 0, 32767).astype(np.int16)]


@functools.cache
def sigmoid_table() -> Table:
    """Returns LiteRT's table of 65536 / (1 + exp(-i / 24)), at most 65535: int64[257].

    At the places `_UP`, LiteRT's table is one above the nearest integer. No formula explains them.
    """
    values = [65536 / (1 + math.exp(-i / 24)) for i in range(SIGMOID_STEPS)]
    return np.array([min(math.floor(v + 0.5) + (i in _UP), 65535) for i, v in enumerate(values)] + [65535])


_UP = {
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41),
    *(43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
}


def sigmoid_factor(scale: float) -> tuple[int, int]:
    """Returns (multiplier, right shift) that scales inputs of LOGISTIC and TANH to steps of 1 / 12288."""
    power = math.log2(scale)
    shift = 12 + round(power)
    if abs(power - round(power)) < 1e-3 and shift in (0, 1):
        return 3 << shift, 0
    factor, right = scale * SIGMOID_SCALE, 0
    while factor <= 32767.0 / 2.0 and right <= 30:
        factor, right = factor * 2.0, right + 1
    return int(factor), right


def logistic(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes LOGISTIC."""
    scale = quantization(graph, op, op.inputs[0]).scale
    return [logistic_of(inputs[0].astype(np.int64), scale).astype(np.int16)]


def logistic_of(values: Int64, scale: float) -> Int64:
    """Returns the logistic function of int16 values with this scale, in steps of 2^-15."""
    x, result = _look_up_sigmoid(values, scale, 9, 0x7FFF << 10)
    return np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes TANH."""
    scale = quantization(graph, op, op.inputs[0]).scale
    return [tanh_of(inputs[0].astype(np.int64), scale).astype(np.int16)]


def tanh_of(values: Int64, scale: float) -> Int64:
    """Returns tanh of int16 values with this scale, as 2 * sigmoid(2x) - 1, in steps of 2^-15."""
    x, result = _look_up_sigmoid(values, scale, 8, 0xFFFF << 8)
    return np.where(x >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1) >> 8


def _look_up_sigmoid(values: Int64, scale: float, bits: int, most: int) -> tuple[Int64, Int64]:
    """Returns x in steps of 1 / 12288, and the interpolated sigmoid of |x|.

    The table has one entry for every 2^bits steps. From its last entry on, the sigmoid is `most`.
    """
    multiplier, right = sigmoid_factor(scale)
    x = (values * multiplier + (1 << right >> 1)) >> right
    place, table = np.abs(x), sigmoid_table()
    index, part = np.minimum(place >> bits, 255), place & ((1 << bits) - 1)
    return x, np.where(place >> bits >= 255, most, (table[index] << bits) + part * np.diff(table)[index])


def cast(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes CAST, which ignores scales. Integers become integers of their low bits.

    Floats are rounded towards 0 and clamped to the type's range; NaN becomes its greatest number.
    """
    (x,), dtype = inputs, graph.tensors[op.outputs[0]].dtype
    if dtype is DType.BOOL:
        return [x != 0]
    if x.dtype == np.float32:
        low, high = RANGES[dtype]
        x = np.clip(np.where(np.isnan(x), high, x).astype(np.float64), low, high)
    return [x.astype(dtype.value)]


# numpy's functions of numbers without scales, by the kernel's code of the operation. DIV has none.
UNSCALED = ("add", "subtract", "multiply", "", "maximum", "minimum")


def unscaled(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes operators of two int32 numbers without scales. Results wrap around.

    Quotients are rounded towards 0.
    """
    a, b = (x.astype(np.int64) for x in inputs)
    if op.kind is OpKind.DIV:
        value = np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
    else:
        value = getattr(np, DEFS[op.kind].numpy)(a, b)
    return [np.asarray(wrap_int32(value)).astype(np.int32)]
