"""TFLite's fixed-point arithmetic: real multipliers as integers, rounding, activation ranges.

A real multiplier is `multiplier * 2^(shift - 31)` with a 31-bit multiplier. All functions reproduce
the arithmetic of TFLite's reference kernels to the bit, double rounding included.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from buildtool.base.errors import ModelError
from buildtool.graph.types import Activation, DType, Quantization

RANGES = {
    DType.INT8: (-128, 127),
    DType.UINT8: (0, 255),
    DType.INT16: (-(1 << 15), (1 << 15) - 1),
    DType.INT32: (-(1 << 31), (1 << 31) - 1),
}

_ENDS: dict[Activation, tuple[float | None, float | None]] = {
    Activation.NONE: (None, None),
    Activation.RELU: (0.0, None),
    Activation.RELU6: (0.0, 6.0),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
}
INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1
_LEAST_SHIFT, _MOST_SHIFT = -31, 30
_ROUND_31 = np.int64(1 << 30)


def round_half_away(value: float) -> int:
    """Returns the nearest integer, with halves rounded away from zero, as C's `round` does.

    It is exact for every finite double.
    """
    whole = math.trunc(value)
    return whole + (abs(value - whole) >= 0.5) * (1 if value > 0 else -1)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Returns (multiplier, shift) such that `real` is about multiplier * 2^(shift - 31).

    |multiplier| is at least 2^30 and below 2^31. If |real| is below 2^-32, the result is (0, 0), as in
    TFLite's QuantizeMultiplier. Raises ModelError if `real` is not finite or its shift does not fit a 32-bit
    left shift.
    """
    if not math.isfinite(real):
        raise ModelError(f"a requantisation factor is {real}", hint="check the tensors' scales")
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = round_half_away(fraction * (1 << 31))
    if abs(multiplier) == 1 << 31:  # the fraction was rounded up to 1
        multiplier //= 2
        shift += 1
    if shift < _LEAST_SHIFT:
        return 0, 0
    if shift > _MOST_SHIFT:
        text = f"a requantisation factor of {real:g} is too large"
        raise ModelError(text, hint="check the tensors' scales")
    return multiplier, shift


def quantize_multipliers(reals: Sequence[float]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the multipliers and the shifts of `quantize_multiplier` for many factors."""
    values = np.array(reals, np.float64)
    fractions, shifts = np.frexp(values)
    for real in values[~np.isfinite(values) | (shifts >= _MOST_SHIFT)].tolist():
        quantize_multiplier(real)  # may raise the error
    multipliers = np.floor(np.abs(fractions) * (1 << 31) + 0.5).astype(np.int64)  # exact in 53 bits
    rounded_up = multipliers == 1 << 31  # to 1
    multipliers, shifts = np.where(rounded_up, 1 << 30, multipliers), shifts.astype(np.int64) + rounded_up
    fits = shifts >= _LEAST_SHIFT
    return np.where(fits, np.sign(values).astype(np.int64) * multipliers, 0), np.where(fits, shifts, 0)


DENSE_LOW_BITS = 16
_DENSE_STEPS = 256  # outputs differ from the zero point by at most 255


def dense_multiplier(real: float) -> tuple[int, int, int]:
    """Returns (multiplier, low, shift) for FULLY_CONNECTED's requantisation in integers.

    The reference computes round(sum * real) in double precision, halves away from zero. With factor =
    multiplier * 2^16 + low, this integer formula gives the same results:

        sign(sum) * ((|sum| * factor + 2^(46 - shift)) >> (47 - shift))

    It holds for every int32 sum whose output is less than 256 away from the zero point. Farther away both
    outputs are clamped. Both formulas are odd step functions of the sum, so they are equal if they step at
    the same sums. Each of the 256 steps gives a lower and an upper bound for the factor. In most cases 31
    bits suffice, and `low` is 0.
    """
    _, shift = quantize_multiplier(real)
    bits = 31 + DENSE_LOW_BITS - shift
    least, greatest = 0, (1 << (31 + DENSE_LOW_BITS)) - 1
    if real == 0.0:
        return 0, 0, 0
    for step in range(1, _DENSE_STEPS + 1):
        first = _first_sum(real, step - 0.5)
        if first > INT32_MAX:
            break
        edge = (2 * step - 1) << (bits - 1)
        least = max(least, -(-edge // first))
        if first > 1:
            greatest = min(greatest, -(-edge // (first - 1)) - 1)
    high = -(-least >> DENSE_LOW_BITS)
    if high << DENSE_LOW_BITS <= greatest and high <= INT32_MAX:
        return high, 0, shift
    if least > greatest:
        raise ModelError(f"the requantisation factor {real!r} has no exact integer form")
    return least >> DENSE_LOW_BITS, least & ((1 << DENSE_LOW_BITS) - 1), shift


def _first_sum(real: float, edge: float) -> int:
    """Returns the smallest positive sum for which sum * real, in double precision, is at least `edge`."""
    first = max(math.ceil(edge / real), 1)
    while first * real < edge:
        first += 1
    while first > 1 and (first - 1) * real >= edge:
        first -= 1
    return first


def wrap_int32(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns `x` wrapped to int32 (modulo 2^32), as a two's complement machine stores it."""
    return x.astype(np.int32).astype(np.int64)


def saturating_rounding_doubling_high_mul(
    a: npt.NDArray[np.int64], b: int | npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns round(a * b / 2^31) of int32 values, with halves rounded up.

    (-2^31)^2 saturates to 2^31 - 1. Adding 2^30 and shifting gives the same as gemmlowp's sign-dependent
    nudge and truncating division: ceil((ab + 1 - 2^30) / 2^31) = floor((ab + 2^30) / 2^31).
    """
    product = a * b
    product += _ROUND_31
    product >>= 31
    return np.asarray(np.minimum(product, INT32_MAX))


def rounding_divide_by_pot(
    x: npt.NDArray[np.int64], exponent: int | npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns round(x / 2^exponent). Halves are rounded away from zero. Exponents are 0 to 31."""
    exponents = np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponents) >> 1
    # x >> 63 is -1 for negative x, which turns "halves up" into "halves away from zero".
    nudged = x + half + (np.minimum(x, 0) >> 63) * (exponents > 0)
    return np.asarray(nudged >> exponents)


def multiply_by_quantized_multiplier(
    x: npt.ArrayLike, multiplier: int | npt.ArrayLike, shift: int | npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Returns x * multiplier * 2^(shift - 31) with both of TFLite's roundings. The arguments broadcast.

    `x` holds int32 values. The result is an int64 array of values that fit int32. A positive shift first
    moves x left, modulo 2^32, as the C code does.
    """
    values = np.asarray(x, np.int64)
    shifts = np.asarray(shift, np.int64)
    left = np.maximum(shifts, 0)
    if np.any(left):
        values = wrap_int32(values << left)
    high = saturating_rounding_doubling_high_mul(values, np.asarray(multiplier, np.int64))
    return rounding_divide_by_pot(high, np.maximum(-shifts, 0))


def multiply_wide(
    x: npt.NDArray[np.int64], multiplier: npt.ArrayLike, shift: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Returns x * multiplier * 2^(shift - 31) for 64-bit sums `x`.

    Like LiteRT's MultiplyByQuantizedMultiplier(int64_t, ...), it uses 15 bits of the multiplier, rounds
    halves up and cuts the result to 32 bits.
    """
    reduced, total = reduce_multiplier(np.asarray(multiplier, np.int64)), 15 - np.asarray(shift, np.int64)
    return wrap_int32((x * reduced + (np.int64(1) << (total - 1))) >> total)


def reduce_multiplier(multiplier: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns a 31-bit multiplier rounded to 15 bits."""
    return np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)


def divide_towards_zero(a: npt.NDArray[np.int64], b: int) -> npt.NDArray[np.int64]:
    """Returns the quotient a / b rounded towards zero, as in C. `b` is above 0."""
    return np.asarray(np.sign(a) * (np.abs(a) // b))


def quantize_value(real: float, quant: Quantization) -> int:
    """Returns `real` as an unclamped integer of a per-tensor quantisation. The division is in float32."""
    with np.errstate(all="ignore"):
        scaled = float(np.float32(real) / np.float32(quant.scale))
    if not INT32_MIN <= scaled <= INT32_MAX:
        raise ModelError(f"{real:g} does not fit a quantisation with scale {quant.scale:g}")
    return round_half_away(scaled) + quant.zero_point


def activation_range(activation: Activation, quant: Quantization, dtype: DType) -> tuple[int, int]:
    """Returns the lowest and highest quantised output of a fused activation, both inclusive.

    This is TFLite's CalculateActivationRangeQuantized.
    """
    (low, high), (lower, upper) = RANGES[dtype], _ENDS[activation]
    low = low if lower is None else max(low, quantize_value(lower, quant))
    return low, high if upper is None else min(high, quantize_value(upper, quant))
