"""Layer normalisation of an LSTM's gate: 16-bit numbers less their mean, over their standard deviation.

mean     = sum * 1024 / n                                      towards zero
variance = (sum of squares * (2^20 / n) - mean^2) / 2^20       towards zero; below 1: the guard
inverse  = 1 / sqrt(variance)                                  by Newton's method
y        = requantise(round((requantise(1024 * x - mean) * weight + bias) / 1024))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import (
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)

Int64 = npt.NDArray[np.int64]

_HALF_SQRT_2 = 1518500250  # round(sqrt(2) / 2 * 2^31)
_NEWTON_STEPS = 5
_THREE_HALVES = (1 << 28) + (1 << 27)  # Q3.28


@dataclass(frozen=True)
class LayerNorm:
    """Weights (16 bits) and biases (32 bits) of the cells; (multiplier, shift); the guard of the variance."""

    weights: Int64
    bias: Int64
    factor: tuple[int, int]
    guard: int


def _towards_zero(x: int, divisor: int) -> int:
    return x // divisor if x >= 0 else -(-x // divisor)


def _multiply(a: int, b: int) -> int:
    return int(saturating_rounding_doubling_high_mul(np.asarray(a, np.int64), b))


def _shifted(a: int, bits: int) -> int:
    return min(max(a << bits, -(1 << 31)), (1 << 31) - 1)


def inverse_square_root(value: int) -> tuple[int, int]:
    """(multiplier, shift) of 1 / sqrt(value), value >= 1."""
    if value <= 1:
        return (1 << 31) - 1, 0
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (32 - value.bit_length() - 1) // 2 - 1
    shift -= pairs
    value <<= 2 * pairs
    number = value >> 1  # Q3.28
    half = int(rounding_divide_by_pot(np.asarray(number, np.int64), 1))
    x = 1 << 28
    for _ in range(_NEWTON_STEPS):
        cube = _shifted(_multiply(_multiply(x, x), x), 6)
        x = _shifted(_multiply(_THREE_HALVES, x) - _multiply(half, cube), 3)
    x = _multiply(x, _HALF_SQRT_2)
    if shift < 0:
        return x << -shift, 0
    return x, -shift


def normalise(norm: LayerNorm, x: Int64) -> Int64:
    """Every row of `x` (batch, cells), clamped to 16 bits."""
    made = [_row(norm, row) for row in x]
    return np.stack(made)


def _row(norm: LayerNorm, x: Int64) -> Int64:
    count, total = len(x), int(x.sum())
    mean = _towards_zero(total * 1024, count)
    squares = int((x * x).sum())
    variance = _towards_zero(squares * ((1 << 20) // count) - mean * mean, 1 << 20)
    multiplier, shift = inverse_square_root(norm.guard if variance < 1 else variance)
    rescaled = multiply_by_quantized_multiplier(1024 * x - mean, multiplier, shift)
    weighted = wrap_int32(wrap_int32(rescaled * norm.weights) + norm.bias)
    rounded = (np.abs(weighted) + 512) // 1024 * np.sign(weighted)
    scaled = multiply_by_quantized_multiplier(rounded, norm.factor[0], norm.factor[1] + 12)
    return np.asarray(np.clip(scaled, -32768, 32767))
