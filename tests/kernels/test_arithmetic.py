"""The C arithmetic equals TFLite's for every sign, shift and extreme, not only for values in networks."""

import math
from ctypes import POINTER, c_int32, c_size_t

import numpy as np
import pytest
from ckernels import compile_library

from buildtool.graph.fixedpoint import (
    dense_multiplier,
    multiply_by_quantized_multiplier,
)

# Whole arrays in one call: a million calls from Python would take minutes.
SHIM = """
#include <stddef.h>
#include "nn_conv.h"
#include "nn_wide.h"
void requantise(size_t count, const int32_t *value, const int32_t *multiplier, const int32_t *shift,
                int32_t *result);
void dense(size_t count, const int32_t *sum, const int32_t *multiplier, const int32_t *shift,
           const int32_t *low, int32_t *result);
void wide_dense(size_t count, const int32_t *sum, const int32_t *low, const int32_t *high,
                const int32_t *shift, int32_t *result);
void wide_dense(size_t count, const int32_t *sum, const int32_t *low, const int32_t *high,
                const int32_t *shift, int32_t *result) {
    const nn_wide_constants common = {-32768, 32767, 64, 0};
    for (size_t i = 0; i < count; i++) {
        const nn_wide_dense_channel channel = {0, 0, low[i], high[i], shift[i], 0};
        result[i] = nn_wide_dense_output(sum[i], &channel, &common);
    }
}
void requantise(size_t count, const int32_t *value, const int32_t *multiplier, const int32_t *shift,
                int32_t *result) {
    for (size_t i = 0; i < count; i++) {
        result[i] = nn_requantise(value[i], multiplier[i], shift[i]);
    }
}
void dense(size_t count, const int32_t *sum, const int32_t *multiplier, const int32_t *shift,
           const int32_t *low, int32_t *result) {
    const nn_conv_constants common = {0, 0, -128, 127};
    for (size_t i = 0; i < count; i++) {
        const nn_dense_channel channel = {0, multiplier[i], shift[i], low[i]};
        result[i] = nn_dense_output(sum[i], &channel, &common);
    }
}
"""
EDGES = (-(2**31), 1 - 2**31, -(2**30), -1, 0, 1, 2**30 - 1, 2**30, 2**31 - 1)
# Converters that fold batch norm late give channels negative scales: their multipliers are negative.
MULTIPLIERS = (0, 1, 2**30, 2**30 + 1, 2**31 - 1, -1, -(2**30), 1 - 2**31)


def sums(rng, count):
    """Draws int32 values: any, small ones, and the ends of the range."""
    wild, small = rng.integers(-(2**31), 2**31, count), rng.integers(-2000, 2001, count)
    return np.choose(rng.integers(0, 5, count), [wild, wild, small, small, rng.choice(EDGES, count)])


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The functions of the library, for arrays of the same length."""
    source = tmp_path_factory.mktemp("shim") / "shim.c"
    source.write_text(SHIM)
    library = compile_library([source])

    def function(name):
        def call(*arrays):
            inputs = [np.ascontiguousarray(array, np.int32) for array in np.broadcast_arrays(*arrays)]
            result = np.empty_like(inputs[0])
            pointers = [array.ctypes.data_as(POINTER(c_int32)) for array in (*inputs, result)]
            getattr(library, name)(c_size_t(result.size), *pointers)
            return result

        return call

    return {name: function(name) for name in ("requantise", "dense", "wide_dense")}


def test_requantisation(shim):
    """All combinations of extremes at every shift, and a hundred thousand random triples."""
    rng, count = np.random.default_rng(1), 100_000
    grid = np.meshgrid(EDGES, MULTIPLIERS, np.arange(-31, 31))
    multipliers = rng.integers(2**30, 2**31, count) * rng.choice([-1, 1], count)
    multipliers = np.where(rng.random(count) < 0.2, rng.integers(0, 2**31, count), multipliers)
    random = (sums(rng, count), multipliers, rng.integers(-31, 31, count))
    value, multiplier, shift = (np.append(a, b) for a, b in zip(grid, random, strict=True))
    expected = multiply_by_quantized_multiplier(value, multiplier, shift)
    np.testing.assert_array_equal(shim["requantise"](value, multiplier, shift), expected)


def rounded(product):
    """Rounds to the nearest integers, halves away from zero."""
    whole = np.floor(abs(product))
    return np.copysign(whole + (abs(product) - whole >= 0.5), product)


def test_a_dense_layer_rounds_as_doubles_do(shim):
    """Random sums with random factors, and for each factor the sums on both sides of a step."""
    rng = np.random.default_rng(2)
    for real in 2.0 ** rng.uniform(-31, 8, 400):
        multiplier, low, shift = dense_multiplier(float(real))
        edges = np.round((np.arange(-256, 256) + 0.5) / real)
        near = np.clip(np.concatenate((edges - 1, edges, edges + 1)), -(2**31), 2**31 - 1)
        value = np.concatenate((near, sums(rng, 500))).astype(np.int64)
        expected = np.clip(rounded(value.astype(np.float64) * real), -128, 127)
        np.testing.assert_array_equal(
            shim["dense"](value, multiplier, shift, low), expected, err_msg=str(real)
        )


SCALES = [1 / 6, 1 / 3, 0.5, 0.25, 1.0, 2.0, 1 / 96, 0.1, 1 / 1536, 3 / 2**20, 2.0**-16, 1e-9]


def test_a_dense_layer_of_int16_rounds_as_doubles_do(shim):
    """Random sums, and the sums on both sides of many steps, with factors of few bits and of many."""
    rng = np.random.default_rng(3)
    for real in (*SCALES, *2.0 ** rng.uniform(-33, 3, 300)):
        fraction, power = math.frexp(real)
        factor = np.uint64(fraction * 2.0**53)
        halves = (factor & np.uint64(2**32 - 1)).astype(np.uint32).view(np.int32), factor >> np.uint64(32)
        steps = np.round((rng.integers(-32768, 32768, 500) + 0.5) / real)
        near = np.clip((steps[:, None] + np.arange(-1, 2)).reshape(-1), -(2**31), 2**31 - 1)
        value = np.concatenate((near, sums(rng, 500))).astype(np.int64)
        expected = np.clip(rounded(value.astype(np.float64) * real), -32768, 32767)
        found = shim["wide_dense"](value, *halves, 53 - power)
        np.testing.assert_array_equal(found, expected, err_msg=str(real))


@pytest.mark.parametrize("scale", [1 / 6, 1 / 3, 0.5, 0.25, 1.0, 2.0, 1 / 96, 0.1, 1 / 1536])
def test_a_dense_layer_at_its_ties(shim, scale):
    """Sums that fall on a half, or a rounding error away from one."""
    multiplier, low, shift = dense_multiplier(scale)
    near = np.round((np.arange(-128, 127) + 0.5) / scale)
    total = (near[:, None] + np.arange(-2, 3)).reshape(-1)
    expected = np.clip(rounded(total * scale), -128, 127)
    np.testing.assert_array_equal(shim["dense"](total, multiplier, shift, low), expected)
