"""Fixed-point reciprocals, roots and logarithms of the reference kernels, in integers alone.

Qm.n is a signed 32-bit number with m integer and n fractional bits, m + n = 31. Products and shifts are those
of fixedpoint.py; what does not fit 32 bits saturates. DIV, RSQRT, L2_NORMALIZATION and LOG_SOFTMAX use them.
"""

from __future__ import annotations

import numpy as np

from buildtool.graph.fixedpoint import (
    INT32_MAX,
    INT32_MIN,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from buildtool.graph.reference.tensors import Int64

_RECIPROCAL_STEPS = 3  # of Newton's method
_48_OVER_17 = 1515870810  # round(48/17 * 2^29)
_MINUS_32_OVER_17 = -1010580540  # round(-32/17 * 2^29)
_ONE_Q2 = 1 << 29

_ROOT_STEPS = 5  # of Newton's method
_ONE_Q3 = 1 << 28
_THREE_HALVES_Q3 = (1 << 28) + (1 << 27)
_ROOT_HALF = 1518500250  # round(sqrt(1/2) * 2^31)

_LOG_2 = 1488522236  # round(log(2) * 2^31)
_FOURTH_ROOT_HALF = 1805811301  # round((1/2)^(1/4) * 2^31)
# The logarithm's rational approximation around (1/2)^(1/4), in Q0.31; r is the fourth root of 2.
_ALPHA_N = 117049297  # 11/240 * r
_ALPHA_D = 127690142  # 1/20 * r
_ALPHA_I = 1057819769  # 2/r - r
_ALPHA_F = 638450708  # 1/4 * r
_LOG_BITS = 6  # integer bits while a logarithm of 5 integer bits is summed up


def _mul(a: Int64, b: int | Int64) -> Int64:
    return saturating_rounding_doubling_high_mul(a, b)


def _saturated(a: Int64) -> Int64:
    return np.asarray(np.clip(a, INT32_MIN, INT32_MAX))


def _up(a: Int64, bits: int | Int64) -> Int64:
    """`a` shifted left, saturating."""
    return _saturated(a << np.asarray(bits, np.int64))


def _leading_zeros(x: Int64) -> Int64:
    """Zeros before the first one of each 32-bit number (not negative); 32 of 0."""
    bits = [32 - int(v).bit_length() for v in x.reshape(-1)]
    return np.asarray(bits, np.int64).reshape(x.shape)


def one_over_one_plus(x: Int64) -> Int64:
    """1 / (1 + x) of Q0.31 numbers in [0, 1), as Q0.31: Newton's method from 48/17 - 32/17 * (1 + x)/2."""
    half = (x + INT32_MAX + 1) >> 1
    y = _48_OVER_17 + _mul(half, _MINUS_32_OVER_17)
    for _ in range(_RECIPROCAL_STEPS):
        y = y + _up(_mul(y, _ONE_Q2 - _mul(half, y)), 2)
    return _up(y, 1)


def reciprocal(x: Int64) -> tuple[Int64, Int64]:
    """(factor, bits) of whole numbers x > 0: 1 / x = factor * 2^(-31 - bits), factor in [1/2, 1] as Q0.31."""
    zeros = _leading_zeros(x)
    return one_over_one_plus((x << zeros) - (1 << 31)), 31 - zeros


def inverse_root(x: Int64) -> tuple[Int64, Int64]:
    """(multiplier, shift) of whole numbers x >= 0: 1 / sqrt(x) = multiplier * 2^(shift - 31); of 0 as of 1.

    Five of Newton's steps for x scaled by a power of 4 to [1/2, 2), from 1.
    """
    value, right = np.maximum(x, 2), np.full(x.shape, 11, np.int64)
    while np.any(value >= 1 << 29):
        large = value >= 1 << 29
        value, right = np.where(large, value >> 2, value), right + large
    pairs = (_leading_zeros(value) - 1) // 2 - 1
    right = right - pairs
    scaled = (value << (2 * pairs)) >> 1
    half = rounding_divide_by_pot(scaled, 1)
    y = np.full(x.shape, _ONE_Q3, np.int64)
    for _ in range(_ROOT_STEPS):
        cube = _up(_mul(_mul(y, y), y), 6)
        y = _up(_mul(np.full_like(y, _THREE_HALVES_Q3), y) - _mul(half, cube), 3)
    y = _mul(y, _ROOT_HALF)
    y, right = np.where(right < 0, y << np.maximum(-right, 0), y), np.maximum(right, 0)
    return np.where(x <= 1, INT32_MAX, y), np.where(x <= 1, 0, -right)


def logarithm(x: Int64) -> Int64:
    """The logarithm of Q12.19 numbers >= 1, as Q5.26.

    x is 2^k * r with r near (1/2)^(1/4), by the better of two scalings that lie half a bit apart.
    """
    integer_bits, point = 12, 31 - _LOG_BITS
    quarter = rounding_divide_by_pot(np.asarray(1 << 29, np.int64), _LOG_BITS)
    zeros = _leading_zeros(x)
    r_a = _up(_mul(_up(x, zeros - 1), _ROOT_HALF), 1)
    power_a = _saturated(((integer_bits - zeros) << point) + quarter)
    rooted = _mul(x, _ROOT_HALF)
    headroom = _leading_zeros(rooted) - 1
    r_b = _up(x, headroom)
    power_b = _saturated(((integer_bits - headroom) << point) - quarter)
    r, power = np.minimum(r_a, r_b), np.maximum(power_a, power_b)
    p = (r + _FOURTH_ROOT_HALF + 1) >> 1
    q = (r - _FOURTH_ROOT_HALF) * 2
    square = _mul(q, q)
    numerator = _mul(q, r) + _mul(_mul(q, square), _ALPHA_N)
    denominator = _mul(p, _ALPHA_I + q + _mul(square, _ALPHA_D)) + _mul(q, _ALPHA_F)
    scaled = rounding_divide_by_pot(numerator, _LOG_BITS)
    return _up(_mul(power, _LOG_2) + _mul(scaled, one_over_one_plus(denominator)), 1)
