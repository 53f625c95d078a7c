"""Calibration arithmetic: exact accumulators, scales that reach their targets, ranges that include zero."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, Pad
from buildtool.zoo import calibrate


def int8s(rng, *shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def slow_convolution(x, zero_point, filters, attrs, depthwise):
    """Accumulators by loops over output pixels and taps, in Python's integers."""
    n, rows, columns, _ = x.shape
    _, kh, kw, _ = filters.shape
    pad, (sh, sw) = attrs.pad, attrs.stride
    oh = (rows + pad.top + pad.bottom - kh) // sh + 1
    ow = (columns + pad.left + pad.right - kw) // sw + 1
    channels = filters.shape[3] if depthwise else filters.shape[0]
    out = np.zeros((n, oh, ow, channels), dtype=object)
    for b, y, z, i, j in itertools.product(range(n), range(oh), range(ow), range(kh), range(kw)):
        r, c = y * sh + i - pad.top, z * sw + j - pad.left
        if not (0 <= r < rows and 0 <= c < columns):
            continue
        pixel = x[b, r, c].astype(object) - zero_point
        taps = filters[0, i, j].astype(object) if depthwise else filters[:, i, j, :].astype(object)
        out[b, y, z] += pixel * taps if depthwise else taps @ pixel
    return out


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.data())
def test_accumulators_are_exact(data):
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    pad = Pad(*(draw(st.integers(0, 2)) for _ in range(4)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    channels, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    x = int8s(rng, draw(st.integers(1, 2)), draw(st.integers(4, 7)), draw(st.integers(4, 7)), channels)
    zero_point = draw(st.sampled_from((-128, -3, 0, 127)))
    filters = int8s(rng, outputs, *kernel, channels)
    attrs = ConvAttrs(stride=stride, pad=pad)
    sums = calibrate.convolution(x, zero_point, filters, attrs)
    assert sums.tolist() == slow_convolution(x, zero_point, filters, attrs, False).tolist()
    filters = int8s(rng, 1, *kernel, channels)
    attrs = DepthwiseAttrs(stride=stride, pad=pad)
    sums = calibrate.depthwise(x, zero_point, filters, attrs)
    assert sums.tolist() == slow_convolution(x, zero_point, filters, attrs, True).tolist()


@pytest.mark.parametrize("per_channel", [True, False])
def test_scales_and_biases_hit_offset_and_deviation(per_channel):
    rng = np.random.default_rng(7)
    spreads = np.array([100.0, 3000.0, 20000.0]) if per_channel else np.full(3, 900.0)
    accumulators = np.rint(rng.normal(5000, 1, (40, 40, 3)) * 1.0 + rng.normal(0, 1, (40, 40, 3)) * spreads)
    offsets, deviations = np.array([-0.5, 0.25, 2.0]), np.array([1.0, 1.2, 0.8])
    affine = calibrate.affine(accumulators, 0.02, offsets, deviations, per_channel)
    assert len(affine.weight_scales) == (3 if per_channel else 1)
    real = (accumulators + affine.biases) * (0.02 * np.array(affine.weight_scales))
    values = real.reshape(-1, 3)
    assert values.mean(axis=0) == pytest.approx(offsets, abs=0.02)
    # The prior draws a channel's variance towards the layer's: it counts as 8 of 1608 samples.
    expected = deviations if per_channel else np.full(3, deviations[0])
    assert values.std(axis=0)[1:] == pytest.approx(expected[1:], rel=0.05)


@settings(derandomize=True, deadline=None)
@given(
    st.floats(-1e4, 1e4, allow_subnormal=False),
    st.floats(-1e4, 1e4, allow_subnormal=False),
    st.sampled_from((1.0, 1.25)),
)
def test_a_range_is_covered_and_includes_zero(a, b, headroom):
    if max(abs(a), abs(b)) < 1e-3:
        a = 1.0
    quant = calibrate.quantization(np.array([a, b]), headroom)
    assert quant.scale == float(np.float32(quant.scale))
    assert -128 <= quant.zero_point <= 127  # so zero is exact
    low = (-128 - quant.zero_point) * quant.scale
    high = (127 - quant.zero_point) * quant.scale
    slack = 0.51 * quant.scale  # the zero point is rounded
    assert low - slack <= min(a, b, 0.0) and max(a, b, 0.0) <= high + slack
    assert (high - low) <= headroom * (max(a, b, 0.0) - min(a, b, 0.0)) * 1.0001
