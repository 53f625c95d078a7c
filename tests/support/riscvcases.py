"""Cases for kernels that compute in tiles and vectors: deeper and wider than kernelcases', all modes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from kernelcases import (
    Case,
    _weighted,
    activation_tensor,
    activations,
    case,
    channels,
    random_int8,
    seeds,
    zero_points,
)

from buildtool.graph.types import (
    Activation,
    ConvAttrs,
    DepthwiseAttrs,
    ElementwiseAttrs,
    OpKind,
    Pad,
)


@st.composite
def depthwise_3x3(draw) -> Case:
    """Any size, stride and padding; rows may be dilated."""
    return _depthwise(draw, (3, 3), most_stride=4, most_size=(12, 16))


@st.composite
def depthwise_rows(draw) -> Case:
    """Kernels of up to seven columns and any height, in rows longer than a tile; rows may be dilated."""
    kernel = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    return _depthwise(draw, kernel, most_stride=2, most_size=(9, 40))


def _depthwise(draw, kernel: tuple[int, int], most_stride: int, most_size: tuple[int, int]) -> Case:
    (kh, kw), stride = kernel, st.integers(1, most_stride)
    sh, sw = draw(stride), draw(stride)
    dh = draw(st.integers(1, 2)) if sh == 1 else 1
    h, w = (draw(st.integers(1, most)) for most in most_size)
    pads = draw(st.tuples(*[st.integers(0, 3)] * 4))
    pads = (pads[0], max(pads[1], (kh - 1) * dh + 1 - h - pads[0]), pads[2], max(pads[3], kw - w - pads[2]))
    out = ((h + pads[0] + pads[1] - (kh - 1) * dh - 1) // sh + 1, (w + pads[2] + pads[3] - kw) // sw + 1)
    c = draw(channels)
    return _weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        *(draw(st.booleans()), True),
        *((1, h, w, c), (1, kh, kw, c), 3, (1, *out, c)),
        OpKind.DEPTHWISE_CONV_2D,
        DepthwiseAttrs((sh, sw), (dh, 1), Pad(*pads), draw(activations), 1),
    )


@st.composite
def deep_convolutions(draw) -> Case:
    """SAME convolutions of 1 x 1 and 3 x 3 whose rows of taps are long enough to be read in place."""
    k, s = draw(st.sampled_from([1, 3])), draw(st.integers(1, 2))
    h, w = draw(st.integers(1, 6)), draw(st.integers(1, 11))
    cin = draw(st.sampled_from([3, 8, 17, 24, 40]))
    cout = draw(st.sampled_from([1, 4, 6, 15, 16, 33]))
    out = (-(-h // s), -(-w // s))
    down, across = (max((o - 1) * s + k - n, 0) for o, n in zip(out, (h, w), strict=True))
    pad = Pad(down // 2, down - down // 2, across // 2, across - across // 2)
    return _weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        *(draw(st.booleans()), True),
        *((1, h, w, cin), (cout, k, k, cin), 0, (1, *out, cout)),
        OpKind.CONV_2D,
        ConvAttrs((s, s), (1, 1), pad, draw(activations)),
    )


@st.composite
def wide(draw) -> Case:
    """ADD, SUB and MUL of equal shapes with more channels than a vector of 128 bits holds."""
    kind = draw(st.sampled_from([OpKind.ADD, OpKind.SUB, OpKind.MUL]))
    rng = np.random.default_rng(draw(seeds))
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.sampled_from([5, 16, 33, 70])))
    scales = [float(np.float32(2.0 ** rng.uniform(-9, 0))) for _ in range(2)]
    spread = max(scales) if kind is not OpKind.MUL else 74.0 * scales[0] * scales[1]
    out = activation_tensor(
        "y", shape, float(np.float32(spread * 2.0 ** rng.uniform(-1, 1))), draw(zero_points)
    )
    inputs = [activation_tensor(f"x{i}", shape, s, draw(zero_points)) for i, s in enumerate(scales)]
    attrs = ElementwiseAttrs(draw(st.sampled_from([Activation.NONE, Activation.RELU, Activation.RELU6])))
    return case(kind, attrs, inputs, [], out, [random_int8(rng, shape) for _ in inputs])
