"""Cases of CONV_2D in groups, wide and narrow, and of depthwise layers with multipliers and dilation."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from kernelcases import Case, _weighted, _window, activations, seeds, zero_points

from buildtool.graph.types import ConvAttrs, DepthwiseAttrs, OpKind, Pad


@st.composite
def grouped(draw) -> Case:
    """Two to nine groups of up to 20 input and 20 output channels each, any window."""
    groups, inputs, outputs = draw(st.integers(2, 9)), draw(_channels), draw(_channels)
    h, w = draw(st.integers(1, 6)), draw(st.integers(1, 11))
    rows, cols = draw(_window(h)), draw(_window(w))
    attrs = ConvAttrs(
        (rows[1], cols[1]), (rows[2], cols[2]), Pad(rows[3], rows[4], cols[3], cols[4]), draw(activations)
    )
    return _weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        *(draw(st.booleans()), True),
        *((1, h, w, groups * inputs), (groups * outputs, rows[0], cols[0], inputs), 0),
        (1, rows[5], cols[5], groups * outputs),
        OpKind.CONV_2D,
        attrs,
    )


@st.composite
def spread_depthwise(draw) -> Case:
    """Depthwise layers, multiplied or not, with any stride and dilation of columns."""
    (sw, dw), multiplier = draw(st.tuples(*[st.integers(1, 4)] * 2)), draw(st.sampled_from([1, 1, 2, 5, 8]))
    kh, kw = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    h, w = draw(st.integers(1, 5)), draw(st.integers(1, 24))
    left, right = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    extent = (kw - 1) * dw + 1
    right = max(right, extent - w - left)
    channels = draw(st.sampled_from([1, 3, 8, 16, 21]))
    out = (1, h + 2, (w + left + right - extent) // sw + 1, channels * multiplier)
    pad = Pad(kh // 2 + 1, kh - 1 - kh // 2 + 1, left, right)
    attrs = DepthwiseAttrs((1, sw), (1, dw), pad, draw(activations), multiplier)
    return _weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        *(draw(st.booleans()), True),
        *((1, h, w, channels), (1, kh, kw, channels * multiplier), 3, out),
        OpKind.DEPTHWISE_CONV_2D,
        attrs,
    )


_channels = st.one_of(st.integers(1, 8), st.sampled_from([12, 16, 20]))
