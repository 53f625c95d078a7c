"""Random one-operator graphs larger than the blocks and tiles of vector kernels.

They are like those of `kernelcases`, with more channels and columns, more placements of taps, and factors of
1/2 and more, which few networks have.
"""

import kernelcases as small
import numpy as np
from hypothesis import strategies as st
from kernelcases import CONV, DENSE, DEPTHWISE, Axis, Case, Pair, changed, draw_layer, draw_pair, seeds

from buildtool.graph.types import Activation, OpKind

inputs = st.one_of(st.integers(1, 4), st.sampled_from([7, 8, 15, 16, 17, 24, 32, 33, 48, 64, 80]))
outputs = st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 31, 47, 48, 49, 50, 96, 100]))
channels = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 24, 31, 32, 33, 40, 48, 50]))


@st.composite
def axes(draw, kernels: st.SearchStrategy[int], longest: int) -> Axis:
    """A window with padding SAME or VALID."""
    size, kernel = draw(st.integers(1, longest)), draw(kernels)
    stride = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
    is_same = draw(st.booleans()) or size < kernel
    return Axis.same(size, kernel, stride) if is_same else Axis(size, kernel, stride)


@st.composite
def convolutions(draw) -> Case:
    """CONV_2D. Half of the kernels are 1 x 1."""
    kernels = st.just(1) if draw(st.booleans()) else st.sampled_from([1, 2, 3, 3, 5])
    return draw_layer(
        draw, CONV, draw(axes(kernels, 6)), draw(axes(kernels, 20)), draw(inputs), draw(outputs)
    )


@st.composite
def depthwise(draw) -> Case:
    """DEPTHWISE_CONV_2D: mostly 3 x 3, 5 x 5 and 7 x 7."""
    kernels, count = st.sampled_from([1, 2, 3, 3, 3, 4, 5, 7, 8]), draw(channels)
    return draw_layer(draw, DEPTHWISE, draw(axes(kernels, 8)), draw(axes(kernels, 37)), count, count)


@st.composite
def dense(draw) -> Case:
    rows, width = Axis(draw(st.integers(1, 3))), draw(st.integers(1, 300))
    return draw_layer(draw, DENSE, rows, Axis(1), width, draw(outputs))


@st.composite
def elementwise(draw) -> Case:
    count = draw(st.one_of(channels, st.just(70)))
    return draw_pair(draw, [(1, draw(st.integers(1, 4)), draw(st.integers(1, 9)), count)] * 2)


@st.composite
def sums_of_two(draw) -> Case:
    """ADD or SUB with a number of channels that xcore's vector unit supports."""
    rng = np.random.default_rng(draw(seeds))
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.sampled_from([4, 16, 28, 32, 40])))
    scales = rng.uniform(0.02, 0.08, 2)
    steps = (*scales, float(scales.max() * rng.choice([1, 2, rng.uniform(0.7, 2)])))
    points = [int(n) for n in rng.integers(-128, 128, 3)]
    values = [rng.integers(-128, 128, shape).astype(np.int8) for _ in range(2)]
    activation = draw(st.sampled_from([Activation.NONE, Activation.RELU]))
    return small.binary(draw(st.sampled_from([OpKind.ADD, OpKind.SUB])), activation, steps, points, values)


@st.composite
def pools(draw) -> Case:
    """AVERAGE_POOL_2D and MAX_POOL_2D over small windows, and windows whose sums exceed int16."""
    kernels = st.sampled_from([1, 2, 3, 7, 16, 17])
    return small.draw_pool(draw, draw(axes(kernels, 20)), draw(axes(kernels, 20)), draw(channels))


@st.composite
def column_pools(draw) -> Case:
    """Poolings of one column, some of which has windows of three rows."""
    kernel, width = draw(st.sampled_from([2, 3, 3, 3])), draw(st.integers(1, 3))
    rows = Axis(
        draw(st.integers(kernel, 20)), kernel, draw(st.sampled_from([1, 1, 2])), 1, draw(st.integers(0, 1)), 0
    )
    return small.draw_pool(
        draw, rows, Axis(width, width, 1, 1, 0, 0), draw(st.sampled_from([1, 8, 9, 33, 40]))
    )


@st.composite
def filled_pools(draw) -> Case:
    """AVERAGE_POOL_2D whose padding counts: any padding with which every window meets the input."""
    walked = []
    for longest in (9, 20):
        kernel, stride = draw(st.sampled_from([1, 2, 3, 3, 3, 5, 14])), draw(st.sampled_from([1, 1, 2, 3]))
        before, after = draw(st.integers(0, kernel - 1)), draw(st.integers(0, kernel - 1))
        length = draw(st.integers(max(kernel - before - after, 1), longest))
        walked.append(Axis(length, kernel, stride, 1, before, after))
    return small.draw_pool(draw, *walked, draw(channels), draw(st.sampled_from([-128, -5, 0, 127])))


@st.composite
def large_factors(draw) -> Case:
    """Convolutions and dense layers with factors from 1/16 to 16 and small sums."""
    case = draw(st.one_of(convolutions(), depthwise(), dense()))
    rng = np.random.default_rng(draw(seeds))
    x, weights, bias, _ = case.graph.tensors
    values = rng.integers(-1, 2, weights.shape, dtype=np.int8)
    values *= rng.random(weights.shape) < 4 / weights.elements
    biases = rng.integers(-40, 41, bias.shape)
    scale = x.quant.scale * max(weights.quant.scales) / 2.0 ** rng.uniform(-4, 4)
    # Close to the zero point, so that sums stay small.
    near = np.clip(rng.integers(-8, 9, x.shape) + x.quant.zero_point, -128, 127).astype(np.int8)
    return changed(case, values, biases, steps=(x.quant.scale, scale), values=near)


@st.composite
def grouped(draw) -> Case:
    """CONV_2D in two to nine groups of up to 20 input and 20 output channels each, any window."""
    of_a_group = st.one_of(st.integers(1, 8), st.sampled_from([12, 16, 20]))
    groups, cin, cout = draw(st.integers(2, 9)), draw(of_a_group), draw(of_a_group)
    rows, columns = (draw(small.windows(draw(st.integers(1, most)))) for most in (6, 11))
    return draw_layer(draw, CONV, rows, columns, groups * cin, groups * cout, groups=groups)


@st.composite
def spread_depthwise(draw) -> Case:
    """Depthwise layers of any depth multiplier, and any stride and dilation of columns."""
    stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    kh, kw, w, left = (draw(st.integers(low, most)) for low, most in ((1, 3), (1, 7), (1, 24), (0, 6)))
    right = max(draw(st.integers(0, 6)), (kw - 1) * dilation + 1 - w - left)
    rows = Axis(draw(st.integers(1, 5)), kh, 1, 1, kh // 2 + 1, kh - kh // 2)
    count, multiplier = draw(st.sampled_from([1, 3, 8, 16, 21])), draw(st.sampled_from([1, 1, 2, 5, 8]))
    columns = Axis(w, kw, stride, dilation, left, right)
    return draw_layer(draw, DEPTHWISE, rows, columns, count, count * multiplier)


@st.composite
def one_column(draw, kind: OpKind, least: int = 2) -> Case:
    """Layers with one column of `least` to nine taps, on up to 40 rows of one column, which may be padded."""
    kernel, height, stride = draw(st.integers(least, 9)), draw(st.integers(1, 40)), draw(st.integers(1, 2))
    dilation = draw(st.integers(1, 2)) if stride == 1 else 1
    extent, top, bottom = (kernel - 1) * dilation + 1, *(draw(st.integers(0, kernel)) for _ in "tb")
    rows = Axis(height, kernel, stride, dilation, top, max(bottom, extent - height - top))
    cin = draw(st.one_of(st.integers(1, 24), st.sampled_from([16, 33])))
    return draw_layer(draw, kind, rows, Axis(1), cin, cin if kind is DEPTHWISE else draw(st.integers(1, 20)))


@st.composite
def taps(
    draw, kernels: list[tuple[int, int, int]], most_size: Pair = (8, 40), strides: tuple[int, ...] = (1,)
) -> Case:
    """A depthwise layer with one of these kernels: (rows, columns, greatest dilation).

    It has up to 24 channels, and any padding (none along an axis of one element). Without dilation, it has
    one of the strides.
    """
    *kernel, most = draw(st.sampled_from(kernels))
    spread = (draw(st.integers(1, most)), draw(st.integers(min(2, most), most)))
    walked = []
    for longest, size, dilation in zip(most_size, kernel, spread, strict=True):
        length, extent = draw(st.integers(1, longest)), (size - 1) * dilation + 1
        before, after = (draw(st.integers(0, extent if longest > 1 else 0)) for _ in range(2))
        stride = draw(st.sampled_from(strides)) if dilation == 1 else 1
        walked.append(Axis(length, size, stride, dilation, before, max(after, extent - length - before)))
    count = draw(st.one_of(st.integers(2, 24), st.just(16)))
    return draw_layer(draw, DEPTHWISE, *walked, count, count)


@st.composite
def depthwise_rows(draw, kernel: Pair = (0, 0), most_stride: int = 2, most_size: Pair = (9, 40)) -> Case:
    """Kernels of up to 7 x 7, on rows longer than a tile. Rows may be dilated."""
    kh, kw = kernel if any(kernel) else (draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    (h, w), (sh, sw) = (
        [draw(st.integers(1, most)) for most in pair] for pair in (most_size, [most_stride] * 2)
    )
    dh = draw(st.integers(1, 2)) if sh == 1 else 1
    top, bottom, left, right = (draw(st.integers(0, 3)) for _ in range(4))
    rows = Axis(h, kh, sh, dh, top, max(bottom, (kh - 1) * dh + 1 - h - top))
    count = draw(small.channels)
    return draw_layer(
        draw, DEPTHWISE, rows, Axis(w, kw, sw, 1, left, max(right, kw - w - left)), count, count
    )


@st.composite
def large_windows(draw) -> Case:
    """Depthwise layers of windows of more than 8 rows or more than 16 columns, and any depth multiplier."""
    kernel = draw(st.sampled_from([(9, 1), (9, 3), (12, 9), (13, 2), (1, 17), (5, 9), (17, 5)]))
    sizes = zip(kernel, (draw(st.integers(1, 12)), draw(st.integers(1, 20))), strict=True)
    walked = []
    for taps, size in sizes:
        before, after = draw(st.integers(0, taps)), draw(st.integers(0, taps))
        walked.append(Axis(size, taps, draw(st.integers(1, 2)), 1, before, max(after, taps - size - before)))
    count, multiplier = draw(st.sampled_from([1, 3, 8, 16, 21])), draw(st.sampled_from([1, 1, 2, 3]))
    return draw_layer(draw, DEPTHWISE, *walked, count, count * multiplier)


def depthwise_3x3() -> st.SearchStrategy[Case]:
    """3 x 3 kernels of any size, stride and padding. Rows may be dilated."""
    return depthwise_rows((3, 3), 4, (12, 16))


@st.composite
def deep_convolutions(draw) -> Case:
    """SAME convolutions of 1 x 1 and 3 x 3. Their rows of taps are long enough to be read in place."""
    kernel, stride = draw(st.sampled_from([1, 3])), draw(st.integers(1, 2))
    rows, columns = (Axis.same(draw(st.integers(1, most)), kernel, stride) for most in (6, 11))
    cin, cout = draw(st.sampled_from([3, 8, 17, 24, 40])), draw(st.sampled_from([1, 4, 6, 15, 16, 33]))
    return draw_layer(draw, CONV, rows, columns, cin, cout)


windowed = {
    "convolution": convolutions(),
    "depthwise": depthwise(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pool": pools(),
    "filled pool": filled_pools(),
    "large factors": large_factors(),
}


# ---- extreme constants -------------------------------------------------------------------------------
#
# Real networks have channels whose output never changes, with a bias near 2^30 and a factor of 2^-30.
# A file may also have weights of -128 side by side, sums that fill an int32, and factors of any size.


@st.composite
def squares(draw, bias: bool | None = None) -> Case:
    """DEPTHWISE_CONV_2D of 3 x 3, 5 x 5 and 7 x 7, with any padding, on rows of several tiles.

    `bias`: whether there is one. None: drawn.
    """
    size, stride = draw(st.sampled_from([3, 3, 5, 7])), draw(st.sampled_from([1, 1, 2, 3]))
    walked = []
    for longest in (9, 60):
        before, after = draw(st.integers(0, size)), draw(st.integers(0, size))
        length = draw(st.integers(max(size - before - after, 1), longest))
        walked.append(Axis(length, size, stride, 1, before, after))
    count = draw(st.one_of(st.integers(4, 13), st.sampled_from([16, 20])))
    bias = draw(st.booleans()) if bias is None else bias
    return draw_layer(draw, DEPTHWISE, *walked, count, count, bias=bias)


# Convolutions, depthwise or not, and dense layers: large or small, of any activation.
weighted = st.one_of(
    *(small.convolutions(), convolutions(), squares(), depthwise()),
    *(small.dense(), dense()),
)


def _read_constants(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns weights, and biases and weight scales of every channel."""
    _, weights, *bias, _ = case.graph.tensors
    count = weights.shape[3 if case.op.kind is DEPTHWISE else 0]
    biases = bias[0].data.astype(np.int64) if bias else np.zeros(count, np.int64)
    return weights.data, biases, np.resize(np.array(weights.quant.scales), count)


@st.composite
def unchanging_channels(draw) -> Case:
    """Some channels with a tiny scale and a large bias, so that their output never changes."""
    case = draw(weighted)
    rng, (_, bias, scales) = np.random.default_rng(draw(seeds)), _read_constants(case)
    dead = rng.random(len(bias)) < rng.choice([0.2, 0.9])
    huge = rng.choice([-1, 1], len(bias)) * (1 << rng.integers(20, 31, len(bias)))
    shrunk = scales * np.where(dead, 2.0 ** -rng.integers(14, 31, len(bias)), 1.0)
    return changed(case, None, np.where(dead, huge, bias), shrunk)


@st.composite
def extreme_sums(draw) -> Case:
    """Weights of -128, biases up to the ends of int32, factors of any size, inputs of one value."""
    case = draw(weighted)
    rng, (weights, bias, scales) = np.random.default_rng(draw(seeds)), _read_constants(case)
    style, count = rng.integers(4), len(bias)
    if style == 0:
        weights = np.where(rng.random(weights.shape) < 0.3, -128, weights).astype(np.int8)
    elif style == 1:
        weights = rng.choice(np.array([-128, 127], np.int8), weights.shape)
    if rng.random() < 0.5:
        bias = np.where(rng.random(count) < 0.3, rng.integers(-(1 << 31), 1 << 31, count), bias)
    if rng.random() < 0.5:
        scales = scales * np.where(rng.random(count) < 0.2, 2.0 ** rng.uniform(-24, 12, count), 1.0)
    values = case.inputs[0]
    if rng.random() < 0.5:
        values = np.full(values.shape, rng.choice([-128, 127]), np.int8)
    return changed(case, weights, bias, scales, values=values)


@st.composite
def deep(draw) -> Case:
    """1 x 1 convolutions and dense layers whose sums have thousands of extreme products."""
    cin, cout = draw(st.sampled_from([511, 512, 513, 516, 1024, 2048])), draw(st.integers(1, 6))
    kind, rows, columns = draw(st.sampled_from([(CONV, Axis(2), Axis(4)), (DENSE, Axis(3), Axis(1))]))
    case = draw_layer(draw, kind, rows, columns, cin, cout, activation=Activation.NONE)
    rng, (weights, _, _) = np.random.default_rng(draw(seeds)), _read_constants(case)
    extremes = rng.choice(np.array([-127, 127, -128], np.int8), weights.shape, p=[0.49, 0.5, 0.01])
    if draw(st.booleans()):
        extremes = np.full(weights.shape, rng.choice([-128, -127, 127]), np.int8)
    values = np.full(case.inputs[0].shape, rng.choice([-128, 127]), np.int8)
    return changed(case, extremes, values=values)


extreme = {
    "square depthwise": squares(),
    "unchanging channels": unchanging_channels(),
    "extreme sums": extreme_sums(),
    "deep sums": deep(),
}
