"""Logistic function and hyperbolic tangent of 16-bit numbers, as the gates of LiteRT's LSTM compute them.

Qm.n below is a signed 16-bit number with m integer and n fractional bits, m + n = 15. Both functions give
Q0.15. They have 65,536 arguments at most, and `logistic` and `tanh` are exact for all of them. A product is
rounded, halves up; sums wrap around, except where the comment says that they saturate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import rounding_divide_by_pot

Int64 = npt.NDArray[np.int64]

GATE_INTEGER_BITS = 3  # of a gate's sum, Q3.12
MOST_INTEGER_BITS = 6  # of an argument of `tanh`
_ONE = (1 << 15) - 1
_LEAST = -(1 << 15)
_EIGHTH = 1 << 12  # 1/8 as Q0.15
# round(x * 2^15) of constants that are first rounded to 31 bits
_EXP_MINUS_EIGHTH = 28918  # exp(-1/8)
_THIRD = 10923
_EXP_MINUS_POWERS = ((-2, 25520), (-1, 19875), (0, 12055), (1, 4435), (2, 600), (3, 11), (4, 0))  # exp(-2^k)
_48_OVER_17 = 23130  # Q2.13, as the next two
_MINUS_32_OVER_17 = -15420
_ONE_Q2 = 1 << 13
_NEWTON_STEPS = 3


def _wrap(a: Int64) -> Int64:
    return a.astype(np.int16).astype(np.int64)


def _multiply(a: Int64, b: int | Int64) -> Int64:
    """round(a * b / 2^15), halves up; the one product that does not fit saturates."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, _ONE))


def _shift(a: Int64, bits: int) -> Int64:
    """A * 2^bits, saturated."""
    return np.asarray(np.clip(a << bits, _LEAST, _ONE))


def _exp_of_last_quarter(a: Int64) -> Int64:
    """Exp of Q0.15 in [-1/4, 0): a Taylor series of degree 4 around -1/8; the last sum saturates."""
    x = a + _EIGHTH
    x2 = _multiply(x, x)
    x3 = _multiply(x2, x)
    x4_over_4 = rounding_divide_by_pot(_multiply(x2, x2), 2)
    tail = rounding_divide_by_pot(_multiply(x4_over_4 + x3, _THIRD) + x2, 1)
    return np.asarray(np.minimum(_EXP_MINUS_EIGHTH + _multiply(x + tail, _EXP_MINUS_EIGHTH), _ONE))


def _exp_of_negative(a: Int64, integer_bits: int) -> Int64:
    """Exp of numbers <= 0 with that many integer bits, as Q0.15."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    in_quarter = (a & (quarter - 1)) - quarter
    result = _exp_of_last_quarter(_shift(in_quarter, integer_bits))
    remainder = in_quarter - a
    for power, factor in _EXP_MINUS_POWERS:
        if power < integer_bits:
            digit = remainder & (1 << (fraction_bits + power))
            result = np.where(digit != 0, _multiply(result, factor), result)
    if integer_bits > 5:
        result = np.where(a < -(32 << fraction_bits), 0, result)
    return np.asarray(np.where(a == 0, _ONE, result))


def _reciprocal(a: Int64) -> tuple[Int64, Int64]:
    """2 / (1 + a) as Q2.13, of a in [0, 1] as Q0.15: Newton's method for half the denominator."""
    half = (a + _ONE + 1) >> 1
    x = _48_OVER_17 + _multiply(half, _MINUS_32_OVER_17)
    for _ in range(_NEWTON_STEPS):
        error = _ONE_Q2 - _multiply(half, x)
        x = x + _shift(_multiply(x, error), 2)
    return x, half


def logistic(a: Int64) -> Int64:
    """1 / (1 + exp(-a)) of Q3.12, as Q0.15."""
    negated = np.where(a > 0, -a, a)
    x, _ = _reciprocal(_exp_of_negative(negated, GATE_INTEGER_BITS))
    positive = _shift(x, 1)
    chosen = np.where(a > 0, positive, _ONE - positive)
    return np.asarray(np.where(a == 0, 1 << 14, chosen))


def tanh(a: Int64, integer_bits: int) -> Int64:
    """The hyperbolic tangent of numbers with that many integer bits (0 to 6), as Q0.15."""
    negated = np.where(a < 0, a, -a)
    x, _ = _reciprocal(_exp_of_negative(negated, integer_bits + 1))
    positive = _shift(x - _ONE_Q2, 2)
    chosen = np.where(a < 0, -positive, positive)
    return np.asarray(np.where(a == 0, 0, chosen))
