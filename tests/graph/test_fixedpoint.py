"""Fixed-point arithmetic equals the C definitions, written in unbounded integers and fractions."""

import math
import operator
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.base.errors import ModelError
from buildtool.graph.fixedpoint import (
    activation_range,
    dense_multiplier,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantize_multipliers,
    round_half_away,
)
from buildtool.graph.types import Activation, DType, Quantization

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=200)
INT32 = st.integers(-(2**31), 2**31 - 1)
FACTORS = st.floats(2.0**-31, 2.0**10) | st.sampled_from([0.5, 1.0, 0.25, 1 - 2.0**-33, 1 + 2.0**-40])


def divide_truncating(a, b):
    """C's integer division."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def high_mul(a, b):
    """SaturatingRoundingDoublingHighMul as gemmlowp defines it."""
    if a == b == -(2**31):
        return 2**31 - 1
    nudge = 2**30 if a * b >= 0 else 1 - 2**30
    return divide_truncating(a * b + nudge, 2**31)


def divide_by_pot(x, exponent):
    """RoundingDivideByPOT as gemmlowp defines it."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


@EXAMPLES
@given(values=st.lists(INT32, min_size=1, max_size=6), real=FACTORS)
def test_multiplication_wraps_the_left_shift_and_rounds_twice(values, real):
    multiplier, shift = quantize_multiplier(real)
    wrapped = [((v << max(shift, 0)) + 2**31) % 2**32 - 2**31 for v in values]
    expected = [divide_by_pot(high_mul(v, multiplier), max(-shift, 0)) for v in wrapped]
    assert multiply_by_quantized_multiplier(values, multiplier, shift).tolist() == expected


@EXAMPLES
@given(real=FACTORS | FACTORS.map(lambda f: -f))
def test_a_multiplier_is_the_nearest_31_bit_number(real):
    multiplier, shift = quantize_multiplier(real)
    assert 2**30 <= abs(multiplier) < 2**31
    step = Fraction(2) ** (shift - 31)
    error = abs(Fraction(real) - multiplier * step)
    # Where rounding reaches the next power of two, the step is twice as wide.
    assert error <= step / 2 / (2 if abs(multiplier) == 2**30 and abs(real) < 2.0 ** (shift - 1) else 1)


def test_factors_at_the_edges():
    assert quantize_multiplier(0.0) == (0, 0)
    assert quantize_multiplier(2.0**-33) == (0, 0)
    assert quantize_multiplier(2.0**-32) == (2**30, -31)
    assert quantize_multiplier(1 - 2.0**-40) == (2**30, 1)
    for real in (math.inf, math.nan, 2.0**31, 2.0**30 * (1 - 2.0**-33)):
        for function, argument in ((quantize_multiplier, real), (quantize_multipliers, [1.0, real])):
            with pytest.raises(ModelError):
                function(argument)


def test_many_factors_are_those_of_one_at_a_time():
    rng = random.Random(0)
    halves = [(k + 0.5) / 2**31 for k in (2**30, 2**30 + 1, 2**31 - 2, 2**31 - 1)]
    reals = [0.0, -0.0, 5e-324, 1 - 2.0**-33, 1 - 2.0**-32, 2.0**-32, 2.0**30 * 0.75, *halves]
    reals += [rng.random() * 2.0 ** rng.randint(-40, 30) for _ in range(2000)]
    reals += [-real for real in reals]
    multipliers, shifts = quantize_multipliers(reals)
    together = zip(multipliers.tolist(), shifts.tolist(), strict=True)
    assert list(together) == list(map(quantize_multiplier, reals))


@EXAMPLES
@given(
    # Products of float32 scales, as in networks. Some short decimals (0.7) have no exact integer form.
    real=st.builds(operator.mul, st.floats(2.0**-12, 2.0, width=32), st.floats(2.0**-12, 4.0, width=32))
    | st.sampled_from([0.5, 0.25, 1.0, 1 / 3, 2 / 3]),
    seed=st.integers(0, 999),
)
def test_integers_reproduce_a_dense_layers_double_precision(real, seed):
    multiplier, low, shift = dense_multiplier(real)
    assert 0 <= multiplier < 2**31 and 0 <= low < 2**16
    rng = np.random.default_rng(seed)
    edges = (rng.integers(0, 256, 30) + 0.5) / real  # where the output steps, the hardest sums
    sums = {int(e) + d for e in edges for d in (-1, 0, 1, 2)}
    sums |= set(rng.integers(0, int(256 / real) + 1, 30).tolist())
    for total in sorted(s for s in sums if 0 <= s < 2**31):
        expected = min(round_half_away(float(total) * real), 256)
        product = total * ((multiplier << 16) + low)
        assert min((product + (1 << (46 - shift))) >> (47 - shift), 256) == expected


def test_activation_ranges_stay_inside_the_type():
    wide = Quantization((0.001,), (-128,))
    assert activation_range(Activation.RELU6, wide, DType.INT8) == (-128, 127)
    assert activation_range(Activation.RELU, Quantization((0.5,), (0,)), DType.UINT8) == (0, 255)
    with pytest.raises(ModelError):
        activation_range(Activation.RELU6, Quantization((1e-12,), (0,)), DType.INT8)
