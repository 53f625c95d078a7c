"""Fixed-point exponentials, reciprocals, roots and logarithms of the reference kernels, with integers only.

Qm.n is a signed number of 16 or 32 bits with m integer and n fractional bits. Products are rounded, halves
up. Left shifts saturate. Sums wrap around unless a comment says otherwise. SOFTMAX, LOG_SOFTMAX, DIV, RSQRT
and L2_NORMALIZATION compute with 32 bits, the gates of an LSTM with 16. `logistic` and `tanh`, which have 16
bits, are exact for all arguments.
"""

from dataclasses import dataclass

import numpy as np

from buildtool.graph.fixedpoint import INT32_MAX, rounding_divide_by_pot
from buildtool.graph.reference.tensors import Int64

_NEWTON_STEPS = 3  # for a reciprocal
_ROOT_STEPS = 5  # Newton steps for an inverse root
# Constants for 32 bits. For 16 bits they are rounded.
_EIGHTH = 1 << 28  # 1/8 as Q0.31
_EXP_MINUS_EIGHTH = 1895147668  # round(exp(-1/8) * 2^31)
_THIRD = 715827883  # round(2^31 / 3)
# round(exp(-2^k) * 2^31) for k = -2..4
_EXP_MINUS_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
_48_OVER_17 = 1515870810  # round(48/17 * 2^29)
_MINUS_32_OVER_17 = -1010580540  # round(-32/17 * 2^29)
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
_LOG_BITS = 6  # integer bits of the sums for a logarithm with 5 integer bits


@dataclass(frozen=True)
class _Word:
    """Arithmetic of signed numbers of `bits` bits, 16 or 32."""

    bits: int

    @property
    def one(self) -> int:
        """The largest number. As a fraction it represents 1."""
        return (1 << (self.bits - 1)) - 1

    def constant(self, value: int) -> int:
        """Returns a 32-bit constant, rounded to `bits` bits."""
        return value if self.bits == 32 else (value + (1 << 15)) >> 16

    def mul(self, a: Int64, b: int | Int64) -> Int64:
        """Returns round(a * b / 2^(bits - 1)), halves up. The one product that does not fit saturates."""
        return np.asarray(np.minimum((a * b + (1 << (self.bits - 2))) >> (self.bits - 1), self.one))

    def up(self, a: Int64, bits: int | Int64) -> Int64:
        """Returns `a` shifted left by `bits`, with saturation."""
        return np.asarray(np.clip(a << np.asarray(bits, np.int64), -self.one - 1, self.one))

    def exp_of_last_quarter(self, a: Int64) -> Int64:
        """Returns exp(a) for a in [-1/4, 0). With 16 bits the result saturates.

        It is a Taylor series of degree 4 around -1/8.
        """
        around = self.constant(_EXP_MINUS_EIGHTH)
        x = a + self.constant(_EIGHTH)
        x2 = self.mul(x, x)
        x3 = self.mul(x2, x)
        x4_over_4 = rounding_divide_by_pot(self.mul(x2, x2), 2)
        tail = rounding_divide_by_pot(self.mul(x4_over_4 + x3, self.constant(_THIRD)) + x2, 1)
        total = around + self.mul(x + tail, around)
        return total if self.bits == 32 else np.asarray(np.minimum(total, self.one))

    def exp_of_negative(self, a: Int64, integer_bits: int) -> Int64:
        """Returns exp(a) for a <= 0.

        The lowest digits of `a` are a part in [-1/4, 0). The result is exp of this part, multiplied by one
        constant for each higher binary digit that is set.
        """
        fraction_bits = self.bits - 1 - integer_bits
        quarter = 1 << (fraction_bits - 2)
        in_quarter = (a & (quarter - 1)) - quarter
        result = self.exp_of_last_quarter(self.up(in_quarter, integer_bits))
        remainder = in_quarter - a
        for power, factor in enumerate(_EXP_MINUS_POWERS, -2):
            if power < integer_bits:
                digit = remainder & (1 << (fraction_bits + power))
                result = np.where(digit != 0, self.mul(result, self.constant(factor)), result)
        if integer_bits > 5:
            result = np.where(a < -(32 << fraction_bits), 0, result)
        return np.asarray(np.where(a == 0, self.one, result))

    def twice_over_one_plus(self, a: Int64) -> Int64:
        """Returns 2 / (1 + a) with 2 integer bits, for fractions in [0, 1].

        It finds the reciprocal of (1 + a)/2 by Newton's method. The first estimate is 48/17 - 32/17 * (1 +
        a)/2.
        """
        half = (a + self.one + 1) >> 1
        x = self.constant(_48_OVER_17) + self.mul(half, self.constant(_MINUS_32_OVER_17))
        for _ in range(_NEWTON_STEPS):
            x = x + self.up(self.mul(x, (1 << (self.bits - 3)) - self.mul(half, x)), 2)
        return x


_NARROW, WORD = _Word(16), _Word(32)
GATE_INTEGER_BITS = 3  # of the sum of a gate, which is Q3.12


def logistic(a: Int64) -> Int64:
    """Returns 1 / (1 + exp(-a)) as Q0.15; `a` is Q3.12."""
    exponential = _NARROW.exp_of_negative(np.where(a > 0, -a, a), GATE_INTEGER_BITS)
    positive = _NARROW.up(_NARROW.twice_over_one_plus(exponential), 1)
    return np.where(a == 0, 1 << 14, np.where(a > 0, positive, _NARROW.one - positive))


def tanh(a: Int64, integer_bits: int) -> Int64:
    """Returns the hyperbolic tangent as Q0.15. `a` has `integer_bits` integer bits, 0 to 6."""
    exponential = _NARROW.exp_of_negative(np.where(a < 0, a, -a), integer_bits + 1)
    positive = _NARROW.up(_NARROW.twice_over_one_plus(exponential) - (1 << 13), 2)
    return np.where(a == 0, 0, np.where(a < 0, -positive, positive))


def _leading_zeros(x: Int64) -> Int64:
    """Returns the number of leading zeros of each 32-bit number >= 0, which is 32 for 0."""
    bits = [32 - int(v).bit_length() for v in x.reshape(-1)]
    return np.asarray(bits, np.int64).reshape(x.shape)


def _one_over_one_plus(x: Int64) -> Int64:
    """Returns 1 / (1 + x) as Q0.31, for Q0.31 numbers in [0, 1)."""
    return WORD.up(WORD.twice_over_one_plus(x), 1)


def reciprocal(x: Int64) -> tuple[Int64, Int64]:
    """Returns (Q0.31 factor in [1/2, 1], bits) for integers x > 0: 1 / x = factor * 2^(-31 - bits)."""
    zeros = _leading_zeros(x)
    return _one_over_one_plus((x << zeros) - (1 << 31)), 31 - zeros


def inverse_root(x: Int64) -> tuple[Int64, Int64]:
    """Returns (multiplier, shift) for integers x >= 0: 1 / sqrt(x) = multiplier * 2^(shift - 31).

    0 counts as 1. x is scaled by a power of 4 to [1/2, 2). Then Newton's method takes five steps from 1.
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
        cube = WORD.up(WORD.mul(WORD.mul(y, y), y), 6)
        y = WORD.up(WORD.mul(np.full_like(y, _THREE_HALVES_Q3), y) - WORD.mul(half, cube), 3)
    y = WORD.mul(y, _ROOT_HALF)
    y, right = np.where(right < 0, y << np.maximum(-right, 0), y), np.maximum(right, 0)
    return np.where(x <= 1, INT32_MAX, y), np.where(x <= 1, 0, -right)


def logarithm(x: Int64) -> Int64:
    """Returns the natural logarithm as Q5.26, for Q12.19 numbers >= 1.

    x is 2^k * r with r close to (1/2)^(1/4). Of two scalings, half a bit apart, the better one is used.
    """
    integer_bits, point = 12, 31 - _LOG_BITS
    quarter = rounding_divide_by_pot(np.asarray(1 << 29, np.int64), _LOG_BITS)
    zeros = _leading_zeros(x)
    r_a = WORD.up(WORD.mul(WORD.up(x, zeros - 1), _ROOT_HALF), 1)
    power_a = WORD.up(((integer_bits - zeros) << point) + quarter, 0)
    rooted = WORD.mul(x, _ROOT_HALF)
    headroom = _leading_zeros(rooted) - 1
    r_b = WORD.up(x, headroom)
    power_b = WORD.up(((integer_bits - headroom) << point) - quarter, 0)
    r, power = np.minimum(r_a, r_b), np.maximum(power_a, power_b)
    p = (r + _FOURTH_ROOT_HALF + 1) >> 1
    q = (r - _FOURTH_ROOT_HALF) * 2
    square = WORD.mul(q, q)
    numerator = WORD.mul(q, r) + WORD.mul(WORD.mul(q, square), _ALPHA_N)
    denominator = WORD.mul(p, _ALPHA_I + q + WORD.mul(square, _ALPHA_D)) + WORD.mul(q, _ALPHA_F)
    scaled = rounding_divide_by_pot(numerator, _LOG_BITS)
    return WORD.up(WORD.mul(power, _LOG_2) + WORD.mul(scaled, _one_over_one_plus(denominator)), 1)
