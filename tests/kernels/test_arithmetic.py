"""The C arithmetic equals TFLite's at every sign, shift and extreme, not only where networks go."""

import numpy as np
import pytest
from ckernels import compile_library
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.graph.fixedpoint import (
    dense_multiplier,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

SHIM = """
#include "nn_conv.h"
int32_t requantise(int32_t value, int32_t multiplier, int32_t shift);
int32_t dense(int32_t sum, int32_t multiplier, int32_t shift, int32_t low);
int32_t requantise(int32_t value, int32_t multiplier, int32_t shift) {
    return nn_requantise(value, multiplier, shift);
}
int32_t dense(int32_t sum, int32_t multiplier, int32_t shift, int32_t low) {
    const nn_dense_channel channel = {0, multiplier, shift, low};
    const nn_conv_constants common = {0, 0, -128, 127};
    return nn_dense_output(sum, &channel, &common);
}
"""
EXAMPLES = settings(max_examples=1500, derandomize=True, deadline=None)
INT32 = st.one_of(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-2000, 2000),
    st.sampled_from([-(2**31), 1 - 2**31, -(2**30), 2**30 - 1, 2**30, 2**31 - 1]),
)
# Converters that fold batch norm late give channels negative scales: their multipliers are negative.
MULTIPLIER = st.one_of(
    st.integers(2**30, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(1 - 2**31, -(2**30)),
    st.sampled_from([0, 1, 2**30, 2**31 - 1, -1, -(2**30), 1 - 2**31]),
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    source = tmp_path_factory.mktemp("shim") / "shim.c"
    source.write_text(SHIM)
    return compile_library([source])


@EXAMPLES
@given(value=INT32, multiplier=MULTIPLIER, shift=st.integers(-31, 30))
def test_requantisation(shim, value, multiplier, shift):
    wanted = int(multiply_by_quantized_multiplier(value, multiplier, shift))
    assert shim.requantise(value, multiplier, shift) == wanted


@EXAMPLES
@given(sum_=INT32, real=st.floats(2.0**-31, 2.0**8, exclude_max=True))
def test_a_dense_layer_rounds_as_doubles_do(shim, sum_, real):
    multiplier, low, shift = dense_multiplier(real)
    product = np.float64(sum_) * np.float64(real)
    whole = np.floor(abs(product))
    wanted = int(np.copysign(whole + (abs(product) - whole >= 0.5), product))
    assert shim.dense(sum_, multiplier, shift, low) == max(-128, min(127, wanted))


@pytest.mark.parametrize("scale", [1 / 6, 1 / 3, 0.5, 0.25, 1.0, 2.0, 1 / 96, 0.1, 1 / 1536])
def test_a_dense_layer_at_its_ties(shim, scale):
    """Sums that fall on a half, or a rounding error away from one."""
    multiplier, low, shift = dense_multiplier(scale)
    for step in range(-128, 127):
        near = round((step + 0.5) / scale)
        for total in range(near - 2, near + 3):
            product = abs(total * scale)
            wanted = int(np.floor(product) + (product - np.floor(product) >= 0.5)) * (1 if total > 0 else -1)
            assert shim.dense(total, multiplier, shift, low) == max(-128, min(127, wanted)), (total, scale)


def test_multipliers_of_real_factors_survive_the_way_to_c(shim):
    for real in np.geomspace(2.0**-31, 2.0**20, 400):
        multiplier, shift = quantize_multiplier(float(real))
        value = int(min(2.0**30, 100 / real))
        assert abs(shim.requantise(value, multiplier, shift) - value * real) <= 1.0
