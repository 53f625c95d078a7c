"""exp, log, tanh, ... of float32, in integers: the same steps as `nn_real.h`, so the same bits on every core.

A float32 is m * 2^e with a whole number m. Qn is a fixed-point number with n fractional bits. The results
differ from the true value by less than `ULP` units in the last place, those of erfc by `ULP_OF_ERFC`.
"""

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
_Int64: TypeAlias = npt.NDArray[np.int64]
_Uint64: TypeAlias = npt.NDArray[np.uint64]

ULP, ULP_OF_ERFC = (
    0.54,
    0.62,
)  # bounds of all functions, and of erfc; `tests/kernels/test_float_functions.py` looks for the worst inputs

_LOG2_E = round(math.log2(math.e) * 2**38)
_LN2 = round(math.log(2) * 2**32)
_LN2_FINE = 24973259072661437  # log(2), Q55
_POWERS = np.array([round(2 ** (i / 32) * 2**31) for i in range(32)], np.uint64)
_FIRST_PART = 22  # of the parts of length 1/32 in which logarithms are computed
# For each part an inverse of its numbers, Q8, and that inverse's logarithm with the opposite sign, Q55.
_INVERSES = [256 if i in (31, 32) else round(256 * 32 / (i + 0.5)) for i in range(22, 46)]
_LOGARITHMS = (
    *(-12681287105390942, -11165125235174943, -9582346703246762, -8152008150861276, -6779316524505067),
    *(-5473352242073460, -4118263402748335, -2970346223504416, -1784648094071035, 0, 0, 1582357164666582),
    *(2778443668846386, 3702309596487196, 4810975440528508, 5789192914449761, 6625165383584883),
    *(7654629619519037, 8535573189300242, 9438597828756934, 10177675991544232, 11123368000905991),
    *(11898210703460272, 12690084272329768),
)
# The series of erf(x) / x in x^2, Q32, from the highest power on; signs alternate.
_ERF = tuple(
    round(2 / math.sqrt(math.pi) / (math.factorial(n) * (2 * n + 1)) * 2**32) for n in reversed(range(9))
)
# The polynomial of exp(x^2) * erfc(x) in 1 / (1 + x / 2) - 0.5825, Q32, from the highest power on.
_ERFC_MIDDLE = 2501818450
_ERFC = (
    *(-149868501, 59975450, 227093831, -230654576, -182481096),
    *(489311862, 71473792, -1000444903, -153372920),
    *(2731139775, 4828249920, 4410281035, 1429438836),
)


def _split(x: Floats) -> tuple[_Uint64, _Int64]:
    """Returns (m, e) with |x| = m * 2^(e - 150), and m at least 2^23 unless x is subnormal."""
    bits = x.view(np.uint32)
    exponent = (bits >> 23 & 255).astype(np.int64)
    mantissa = (bits & 0x7FFFFF).astype(np.uint64) | np.where(exponent > 0, 1 << 23, 0).astype(np.uint64)
    return mantissa, np.maximum(exponent, 1)


def _join(m: _Uint64, exponent: _Int64) -> Floats:
    """Returns m * 2^exponent, rounded to the nearest, halves to even. m is below 2^53."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(m.astype(np.float64), exponent.astype(np.int32)).astype(np.float32)


def _shift(value: _Uint64, count: _Int64) -> _Uint64:
    """Shifts right by `count`, at least 0; by 64 and more it gives 0."""
    far = count > 63
    return np.where(far, 0, value >> np.where(far, 0, count).astype(np.uint64)).astype(np.uint64)


def _quotient(over: _Uint64, under: _Uint64) -> _Uint64:
    """Returns over / under in Q32; the lowest bit is set if there is a remainder. `over` is below `under`."""
    over = over << np.uint64(31)
    return np.asarray(over // under << np.uint64(1) | (over % under != 0), np.uint64)


def _power(m: _Uint64, e: _Int64, negative: npt.NDArray[np.bool_]) -> tuple[_Uint64, _Int64]:
    """Returns (p, n) with exp(x) = p * 2^(n - 31), and p from 2^31 to 2^32.

    The magnitude of x is m * 2^(e - 150); `negative` says where x is below 0.
    """
    size = _shift(m * np.uint64(_LOG2_E), 156 - e).astype(np.int64)  # Q32
    return _power_of_steps(np.where(negative, -size, size))


def _power_of_steps(steps: _Int64) -> tuple[_Uint64, _Int64]:
    """Returns (p, n) with 2^steps = p * 2^(n - 31), and p from 2^31 to 2^32. `steps` is Q32."""
    fraction = (steps & 0xFFFFFFFF).astype(np.uint64)
    y = ((fraction & np.uint64(0x7FFFFFF)) * np.uint64(16) * np.uint64(_LN2)) >> np.uint64(32)  # Q36
    square = y * y >> np.uint64(36)
    cube, fourth = square * y >> np.uint64(36), square * square >> np.uint64(36)
    rest = y + (square >> np.uint64(1)) + cube // np.uint64(6) + fourth // np.uint64(24)
    start = _POWERS[(fraction >> np.uint64(27)).astype(np.intp)]
    return start + (start * rest >> np.uint64(36)), steps >> 32


def exp(x: Floats) -> Floats:
    """Returns e^x."""
    x = np.asarray(x, np.float32)
    inside = np.abs(x) < 128
    safe = np.where(inside, x, np.float32(0))
    p, n = _power(*_split(safe), safe < 0)
    ends = np.where(np.isnan(x), x, np.where(x > 0, np.float32(np.inf), np.float32(0)))
    return np.where(inside, _join(p, n - 31), ends).astype(np.float32)


def _logarithm(x: Floats, bits: int) -> _Int64:
    """Returns the natural logarithm of finite numbers above 0, as Q55.

    The series is computed in Qn, where n is `bits`.
    """
    m, e = _split(x)
    up = 24 - np.frexp(m.astype(np.float64))[1].astype(np.int64)  # of subnormal numbers
    m, e = m << up.astype(np.uint64), e - up - 127
    half = m > 0xB504F3  # above the root of 2
    m, e = np.where(half, m, m << np.uint64(1)), np.where(half, e + 1, e)  # Q24
    part = (m >> np.uint64(19)).astype(np.intp) - _FIRST_PART
    r = m.astype(np.int64) * np.array(_INVERSES, np.int64)[part] - (1 << 32)  # Q32
    q = np.full(r.shape, (1 << bits) // 7, np.int64)
    for divisor in (6, 5, 4, 3, 2, 1):
        q = (1 << bits) // divisor - (r * q >> 32)
    return e * _LN2_FINE + np.array(_LOGARITHMS, np.int64)[part] + (r * q >> (bits - 23))  # Q55


def log(x: Floats) -> Floats:
    """Returns the natural logarithm: -infinity of 0, NaN below 0."""
    x = np.asarray(x, np.float32)
    inside = (x > 0) & np.isfinite(x)
    total = _logarithm(np.where(inside, x, np.float32(1)), 32)
    size = np.abs(total).astype(np.uint64)
    large = size >= 1 << 52
    result = _join(np.where(large, size >> np.uint64(11), size), np.where(large, -44, -55))
    nan, infinite = np.float32(np.nan), np.float32(np.inf)
    ends = np.where(x == 0, -infinite, np.where(x > 0, infinite, nan))
    return np.where(inside, np.where(total < 0, -result, result), ends).astype(np.float32)


def tanh(x: Floats) -> Floats:
    """Returns the hyperbolic tangent."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    m, e = _split(np.where(size < 16, size, np.float32(1)))
    y = _shift(m * m, 268 - 2 * e)  # the square, Q32, where it is small
    q = np.full(y.shape, (62 << 32) // 2835, np.int64)
    for factor in ((17 << 32) // 315, (2 << 32) // 15, (1 << 32) // 3, 1 << 32):
        q = factor - (np.minimum(y, 1 << 26).astype(np.int64) * q >> 32)
    small = _join(m * q.astype(np.uint64) >> np.uint64(4), e - 178)
    p, n = _power(m, e + 1, np.ones(m.shape, np.bool_))
    s = _shift(p, np.maximum(-1 - n, 0))  # exp(-2 |x|), Q32
    one = np.uint64(1 << 32)
    large = _join(_quotient(one - s, one + s), np.full(m.shape, -32, np.int64))
    result = np.where(size < 0.125, small, np.where(size < 16, large, np.float32(1)))
    return np.where(np.isnan(x), x, np.copysign(np.where(size < 2**-14, size, result), x)).astype(np.float32)


def expm1(x: Floats) -> Floats:
    """Returns e^x - 1 for numbers up to 0, and other numbers unchanged."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    m, e = _split(np.where(size < 32, size, np.float32(1)))
    y = _shift(m << np.uint64(6), np.maximum(124 - e, 0))  # Q32, where it is small
    q = np.full(y.shape, (1 << 32) // 40320, np.int64)
    for divisor in (5040, 720, 120, 24, 6, 2, 1):
        q = (1 << 32) // divisor - (np.minimum(y, 1 << 30).astype(np.int64) * q >> 32)
    small = _join(m * q.astype(np.uint64) >> np.uint64(4), e - 178)
    p, n = _power(m, e, np.ones(m.shape, np.bool_))
    large = _join(np.uint64(1 << 32) - _shift(p, np.maximum(-1 - n, 0)), np.full(m.shape, -32, np.int64))
    result = np.where(size < 0.25, small, np.where(size < 32, large, np.float32(1)))
    return np.where(x < 0, np.where(size < 2**-25, x, -result), x).astype(np.float32)


def _tail(m: _Uint64, e: _Int64) -> tuple[_Uint64, _Int64]:
    """Returns (p, n) with erfc(m * 2^(e - 150)) = p * 2^(n - 51), for operands below 10.5."""
    z = _shift(m * m, np.maximum(268 - 2 * e, 0))  # the square, Q32
    high, low = z >> np.uint64(16), z & np.uint64(0xFFFF)
    steps = (high * np.uint64(_LOG2_E) + (low * np.uint64(_LOG2_E) >> np.uint64(16))) >> np.uint64(22)
    p, n = _power_of_steps(-steps.astype(np.int64))
    place = _shift(m << np.uint64(13), np.maximum(133 - e, 0))  # Q30
    t = _quotient(np.full(place.shape, 1 << 31, np.uint64), np.uint64(1 << 31) + (place | np.uint64(1)))
    s, q = t.astype(np.int64) - _ERFC_MIDDLE, np.zeros(t.shape, np.int64)
    for coefficient in _ERFC:
        q = coefficient + (s * (q >> 1) >> 31)
    return p * q.astype(np.uint64) >> np.uint64(12), n


def erf(x: Floats) -> Floats:
    """Returns the error function."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    m, e = _split(np.where(size < 4, size, np.float32(1)))
    y = np.minimum(_shift(m * m, np.maximum(268 - 2 * e, 0)), 1 << 30).astype(np.int64)  # the square, Q32
    q = np.zeros(y.shape, np.int64)
    for factor in _ERF:
        q = factor - (y * q >> 32)
    small = _join(m * q.astype(np.uint64) >> np.uint64(4), e - 178)
    product, n = _tail(m, e)
    large = _join(np.uint64(1 << 51) - _shift(product, np.maximum(-n, 0)), np.full(m.shape, -51, np.int64))
    result = np.where(size < 0.5, small, np.where(size < 4, large, np.float32(1)))
    return np.where(np.isnan(x), x, np.copysign(result, x)).astype(np.float32)


def erfc(x: Floats) -> Floats:
    """Returns the complementary error function."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    m, e = _split(np.where(size < 10.5, size, np.float32(1)))
    product, n = _tail(m, e)
    above = _join(product, n - 51)
    below = _join(np.uint64(1 << 52) - _shift(product, np.maximum(-n, 0)), np.full(m.shape, -51, np.int64))
    ends = np.where(x > 0, np.float32(0), np.float32(2))
    result = np.where(size < 10.5, np.where(x < 0, below, above), ends)
    return np.where(np.isnan(x), x, result).astype(np.float32)


def _high_half(a: _Uint64, b: _Uint64) -> _Uint64:
    """Returns the upper 64 bits of a product."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    return np.asarray(a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half), np.uint64)


def _finite_power(a: Floats, b: Floats) -> Floats:
    """Returns a^b of finite numbers. Those in `a` are above 0."""
    total, (m, e) = _logarithm(a, 35), _split(np.abs(b))
    size = np.abs(total).astype(np.uint64)
    zeros = np.zeros(size.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        up = size >> np.uint64(64 - step) == 0
        size, zeros = np.where(up, size << np.uint64(step), size), zeros + np.where(up, step, 0)
    steps, right = _high_half(size, m * np.uint64(_LOG2_E)), 147 - e + zeros
    left = np.clip(-right, 0, 63).astype(np.uint64)
    far = (right < 0) & (_shift(steps, np.clip(64 + right, 0, 63)) != 0)
    steps = np.where(right < 0, steps << left, _shift(steps, np.maximum(right, 0)))
    far |= steps >= np.uint64(256 << 32)
    down = (total < 0) != (b < 0)
    exact = np.where(far | (total == 0) | (b == 0), np.uint64(0), steps).astype(np.int64)
    p, n = _power_of_steps(np.where(down, -exact, exact))
    return np.where(far, np.where(down, np.float32(0), np.float32(np.inf)), _join(p, n - 31)).astype(
        np.float32
    )


def power(base: Floats, exponent: Floats) -> Floats:
    """Returns base^exponent, with the special cases of C's pow."""
    x, y = np.broadcast_arrays(np.asarray(base, np.float32), np.asarray(exponent, np.float32))
    a, one, infinite = np.abs(x), np.float32(1), np.float32(np.inf)
    whole = np.isfinite(y) & (np.trunc(y) == y)
    odd = whole & (np.abs(y) < 2.0**24) & (np.fmod(y, np.float32(2)) != 0)
    ends = (a == 0) | np.isinf(a) | np.isinf(y)
    plain = ~ends & ~np.isnan(x) & ~np.isnan(y)
    result = _finite_power(np.where(plain, a, one), np.where(plain, y, one))
    result = np.where(ends, np.where((a > 1) == (y > 0), infinite, np.float32(0)), result)
    result = np.where(ends & (a == 1), one, np.where(odd & np.signbit(x), -result, result))
    result = np.where(plain & (x < 0) & ~whole | np.isnan(x) | np.isnan(y), np.float32(np.nan), result)
    return np.where((y == 0) | (x == 1), one, result).astype(np.float32)
