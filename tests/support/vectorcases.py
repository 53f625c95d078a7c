"""Random layers that are wider than vector kernels' blocks and tiles, or whose constants are extreme.

`windowed` has more channels and columns than that of `kernelcases`. `extreme` has what kernels must notice:
channels whose output never changes, with a bias near 2^30 and a factor of 2^-30, as real networks have them;
weights of -128 side by side, sums that fill an int32 and factors of any size, which only a file may have.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from kernelcases import (
    Axis,
    Case,
    Draw,
    any_axis,
    axis_padding,
    conv_of,
    dense_of,
    depthwise_conv_of,
    generator,
    pool_of,
    quant,
    same_axis,
    sum_of,
    weighted_case,
    with_constants,
    zero_points,
)
from kernelcases import convolutions as small_convolutions
from kernelcases import dense as small_dense

from buildtool.graph import types as g
from buildtool.graph.types import Activation, OpKind

_inputs = st.one_of(st.integers(1, 4), st.sampled_from([7, 8, 15, 16, 17, 24, 32, 33, 48, 64, 80]))
_outputs = st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 31, 47, 48, 49, 50, 96, 100]))
_channels = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 24, 31, 32, 33, 40, 48, 50]))


@st.composite
def _axis(draw: Draw, kernels: st.SearchStrategy[int], longest: int) -> Axis:
    """SAME or VALID."""
    size, kernel, stride = (
        draw(st.integers(1, longest)),
        draw(kernels),
        draw(st.sampled_from([1, 1, 1, 2, 2, 3])),
    )
    if draw(st.booleans()) or size < kernel:
        return same_axis(size, kernel, stride)
    return Axis(size, kernel, stride)


@st.composite
def convolutions(draw: Draw) -> Case:
    """CONV_2D: 1 x 1 as often as not."""
    kernels = st.just(1) if draw(st.booleans()) else st.sampled_from([1, 2, 3, 3, 5])
    return conv_of(draw, draw(_axis(kernels, 6)), draw(_axis(kernels, 20)), draw(_inputs), draw(_outputs))


@st.composite
def depthwise(draw: Draw) -> Case:
    """DEPTHWISE_CONV_2D: mostly 3 x 3, 5 x 5 and 7 x 7."""
    kernels = st.sampled_from([1, 2, 3, 3, 3, 4, 5, 7, 8])
    return depthwise_conv_of(draw, draw(_axis(kernels, 8)), draw(_axis(kernels, 37)), draw(_channels))


@st.composite
def dense(draw: Draw) -> Case:
    """FULLY_CONNECTED: many inputs or outputs."""
    return dense_of(draw, draw(st.integers(1, 3)), draw(st.integers(1, 300)), draw(_outputs))


@st.composite
def elementwise(draw: Draw) -> Case:
    """ADD, SUB, MUL of tensors of one shape."""
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(_channels))
    return sum_of(draw, shape, shape)


@st.composite
def pools(draw: Draw) -> Case:
    """AVERAGE_POOL_2D and MAX_POOL_2D over windows that int16 sums do not hold, and small ones."""
    kernels = st.sampled_from([1, 2, 3, 7, 16, 17])
    return pool_of(draw, draw(_axis(kernels, 20)), draw(_axis(kernels, 20)), draw(_channels))


@st.composite
def large_factors(draw: Draw) -> Case:
    """Convolutions and dense layers with factors from 1/16 to 16, whose sums are small enough to show it."""
    case = draw(st.one_of(convolutions(), depthwise(), dense()))
    rng = generator(draw)
    x, weights, bias, y = case.graph.tensors
    values = rng.integers(-1, 2, weights.shape, dtype=np.int8)
    values *= rng.random(weights.shape) < 4 / weights.elements
    scale = case.scale("x") * case.scale("filter") / 2.0 ** rng.uniform(-4, 4)
    return with_constants(case, values, rng.integers(-40, 41, bias.shape)).changed(
        rng.integers(-8, 9, x.shape, dtype=np.int8),
        x={"quant": quant(case.scale("x"), int(rng.integers(-3, 4)))},
        y={"quant": quant(scale, y.quant.zero_point)},
    )


windowed = {
    "convolution": convolutions(),
    "depthwise": depthwise(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pool": pools(),
    "large factors": large_factors(),
}


# ---- groups, tiles, dilated rows -------------------------------------------------------------------


@st.composite
def grouped(draw: Draw) -> Case:
    """CONV_2D of two to nine groups of up to 20 input and 20 output channels each, any window."""
    each = st.one_of(st.integers(1, 8), st.sampled_from([12, 16, 20]))
    groups, inputs, outputs = draw(st.integers(2, 9)), draw(each), draw(each)
    rows, columns = draw(any_axis(6)), draw(any_axis(11))
    return conv_of(draw, rows, columns, groups * inputs, groups * outputs, groups=groups)


@st.composite
def spread_depthwise(draw: Draw) -> Case:
    """Depthwise layers, multiplied or not, with any stride and dilation of columns."""
    taps, wide = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    width, before, after = draw(st.integers(1, 24)), draw(st.integers(0, 6)), draw(st.integers(0, 6))
    after = max(after, (wide - 1) * dilation + 1 - width - before)
    rows = Axis(draw(st.integers(1, 5)), taps, 1, taps // 2 + 1, taps - taps // 2)
    columns = Axis(width, wide, stride, before, after, dilation)
    multiplier, count = draw(st.sampled_from([1, 1, 2, 5, 8])), draw(st.sampled_from([1, 3, 8, 16, 21]))
    return depthwise_conv_of(draw, rows, columns, count, multiplier=multiplier)


def depthwise_of(rng: np.random.Generator, kernel: tuple[int, int], dilation: tuple[int, int]) -> Case:
    """A depthwise layer with stride 1, up to 40 columns and 24 channels, any padding."""
    h, w, channels = (int(rng.integers(1, end)) for end in (9, 41, 25))
    channels = int(rng.choice([max(4, channels), 16]))
    axes = []
    for size, taps, apart in zip((h, w), kernel, dilation, strict=True):
        extent = (taps - 1) * apart + 1
        before, after = (int(n) for n in rng.integers(0, extent + 1, 2))
        axes.append(Axis(size, taps, 1, before, max(after, extent - size - before), apart))
    activation = Activation(rng.choice(list(Activation)))
    attrs = g.DepthwiseAttrs((1, 1), dilation, axis_padding(*axes), activation, 1)
    first, second = (int(n) for n in rng.integers(-128, 128, 2))
    shape, filter_shape = (1, h, w, channels), (1, *kernel, channels)
    return weighted_case(rng, OpKind.DEPTHWISE_CONV_2D, attrs, shape, filter_shape, points=(first, second))


def _tiled(draw: Draw, kernel: tuple[int, int], most_stride: int, most_size: tuple[int, int]) -> Case:
    """A depthwise layer of any size and padding; rows are dilated where their stride is 1."""
    axes = []
    for place, (taps, most) in enumerate(zip(kernel, most_size, strict=True)):
        size, stride = draw(st.integers(1, most)), draw(st.integers(1, most_stride))
        dilation = draw(st.integers(1, 2)) if place == 0 and stride == 1 else 1
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        after = max(after, (taps - 1) * dilation + 1 - size - before)
        axes.append(Axis(size, taps, stride, before, after, dilation))
    return depthwise_conv_of(draw, *axes, draw(st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 17]))))


@st.composite
def depthwise_3x3(draw: Draw) -> Case:
    """Any size, stride and padding; rows may be dilated."""
    return _tiled(draw, (3, 3), most_stride=4, most_size=(12, 16))


@st.composite
def depthwise_rows(draw: Draw) -> Case:
    """Kernels of up to seven columns and any height, in rows longer than a tile; rows may be dilated."""
    kernel = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    return _tiled(draw, kernel, most_stride=2, most_size=(9, 40))


@st.composite
def deep_convolutions(draw: Draw) -> Case:
    """SAME convolutions of 1 x 1 and 3 x 3 whose rows of taps are long enough to be read in place."""
    taps, stride = draw(st.sampled_from([1, 3])), draw(st.integers(1, 2))
    rows, columns = (same_axis(draw(st.integers(1, most)), taps, stride) for most in (6, 11))
    inputs, outputs = draw(st.sampled_from([3, 8, 17, 24, 40])), draw(st.sampled_from([1, 4, 6, 15, 16, 33]))
    return conv_of(draw, rows, columns, inputs, outputs)


@st.composite
def wide(draw: Draw) -> Case:
    """ADD, SUB and MUL of equal shapes with more channels than a vector of 128 bits holds."""
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.sampled_from([5, 16, 33, 70])))
    return sum_of(draw, shape, shape)


# ---- extreme constants -----------------------------------------------------------------------------


@st.composite
def squares(draw: Draw, bias: bool | None = None) -> Case:
    """DEPTHWISE_CONV_2D of 3 x 3, 5 x 5 and 7 x 7, with any padding, over widths that need several runs.

    `bias`: whether there is one; None: now and then.
    """
    size, stride = draw(st.sampled_from([3, 3, 5, 7])), draw(st.sampled_from([1, 1, 2, 3]))
    axes = []
    for most in (9, 60):
        before, after = draw(st.integers(0, size)), draw(st.integers(0, size))
        axes.append(Axis(draw(st.integers(max(size - before - after, 1), most)), size, stride, before, after))
    channels = draw(st.one_of(st.integers(4, 13), st.sampled_from([16, 20])))
    return depthwise_conv_of(draw, *axes, channels, bias=draw(st.booleans()) if bias is None else bias)


def weighted() -> st.SearchStrategy[Case]:
    """A convolution, depthwise or not, or a dense layer: large or small, any activation."""
    return st.one_of(small_convolutions(), convolutions(), squares(), depthwise(), small_dense(), dense())


def _constants(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A layer's weights, its biases, and a weight scale for each channel."""
    weights = case.graph.tensors[case.op.inputs[1]]
    count = weights.shape[3 if case.op.kind is OpKind.DEPTHWISE_CONV_2D else 0]
    data = case.graph.tensors[case.op.inputs[2]].data if case.op.inputs[2] >= 0 else None
    bias = np.zeros(count, np.int64) if data is None else data.astype(np.int64)
    return weights.data, bias, np.resize(np.array(weights.quant.scales), count)


@st.composite
def unchanging_channels(draw: Draw) -> Case:
    """Some channels with a scale of next to nothing and a bias as large as goes with it."""
    case = draw(weighted())
    rng = generator(draw)
    weights, bias, scales = _constants(case)
    count = len(bias)
    dead = rng.random(count) < rng.choice([0.2, 0.9])
    shrunk = scales * np.where(dead, 2.0 ** -rng.integers(14, 31, count), 1.0)
    large = rng.choice([-1, 1], count) * (1 << rng.integers(20, 31, count))
    return with_constants(case, weights, np.where(dead, large, bias), shrunk)


@st.composite
def extreme_sums(draw: Draw) -> Case:
    """Weights of -128, biases up to the ends of int32, factors of any size; inputs of one sign."""
    case = draw(weighted())
    rng = generator(draw)
    weights, bias, scales = _constants(case)
    count, style = len(bias), rng.integers(4)
    if style == 0:
        weights = np.where(rng.random(weights.shape) < 0.3, -128, weights).astype(np.int8)
    elif style == 1:
        weights = rng.choice(np.array([-128, 127], np.int8), weights.shape)
    if rng.random() < 0.5:
        bias = np.where(rng.random(count) < 0.3, rng.integers(-(1 << 31), 1 << 31, count), bias)
    if rng.random() < 0.5:
        scales = scales * np.where(rng.random(count) < 0.2, 2.0 ** rng.uniform(-24, 12, count), 1.0)
    changed = with_constants(case, weights, bias, scales)
    if rng.random() < 0.5:
        changed = changed.changed(np.full(case.inputs[0].shape, rng.choice([-128, 127]), np.int8))
    return changed


@st.composite
def deep(draw: Draw) -> Case:
    """Sums of thousands of products of extremes: 1 x 1 convolutions and dense layers."""
    inputs, outputs = draw(st.sampled_from([511, 512, 513, 516, 1024, 2048])), draw(st.integers(1, 6))
    rng = generator(draw)
    shape, filter_shape, kind = (1, 2, 4, inputs), (outputs, 1, 1, inputs), OpKind.CONV_2D
    attrs = g.ConvAttrs()
    if draw(st.booleans()):
        shape, filter_shape, kind = (3, inputs), (outputs, inputs), OpKind.FULLY_CONNECTED
        attrs = g.FullyConnectedAttrs(Activation.NONE)
    points = (draw(zero_points), draw(zero_points))
    case = weighted_case(rng, kind, attrs, shape, filter_shape, points=points)
    weights = rng.choice(np.array([-127, 127, -128], np.int8), filter_shape, p=[0.49, 0.5, 0.01])
    if draw(st.booleans()):
        weights = np.full(filter_shape, rng.choice([-128, -127, 127]), np.int8)
    return with_constants(case, weights).changed(np.full(shape, rng.choice([-128, 127]), np.int8))


extreme = {
    "square depthwise": squares(),
    "unchanging channels": unchanging_channels(),
    "extreme sums": extreme_sums(),
    "deep sums": deep(),
}
