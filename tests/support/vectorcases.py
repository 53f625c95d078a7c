"""Random one-operator graphs whose sizes reach across the blocks and tiles of vector kernels.

As `kernelcases`, but with more channels and columns, and with factors of 1/2 and more, which few
networks have and every kernel must get right.
"""

from __future__ import annotations

import dataclasses

import kernelcases as small
import numpy as np
from hypothesis import strategies as st
from kernelcases import Case, activations, seeds, zero_points

from buildtool.graph.types import (
    ConvAttrs,
    DepthwiseAttrs,
    ElementwiseAttrs,
    FullyConnectedAttrs,
    OpKind,
    Pad,
    PoolAttrs,
)

inputs = st.one_of(st.integers(1, 4), st.sampled_from([7, 8, 15, 16, 17, 24, 32, 33, 48, 64, 80]))
outputs = st.one_of(st.integers(1, 9), st.sampled_from([12, 16, 31, 47, 48, 49, 50, 96, 100]))
channels = st.one_of(st.integers(1, 9), st.sampled_from([15, 16, 17, 24, 31, 32, 33, 40, 48, 50]))


@st.composite
def axis(draw, kernels, longest):
    """(input size, kernel, stride, before, after, output size), SAME or VALID."""
    size, kernel = draw(st.integers(1, longest)), draw(kernels)
    stride = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
    if draw(st.booleans()) or size < kernel:
        out = -(-size // stride)
        total = max((out - 1) * stride + kernel - size, 0)
        before, after = total // 2, total - total // 2
    else:
        out, before, after = (size - kernel) // stride + 1, 0, 0
    return size, kernel, stride, before, after, out


def _conv_parts(rows, columns):
    strides = (rows[2], columns[2])
    return strides, Pad(rows[3], rows[4], columns[3], columns[4]), (1, rows[5], columns[5])


@st.composite
def convolutions(draw) -> Case:
    """CONV_2D: 1 x 1 as often as not."""
    kernels = st.just(1) if draw(st.booleans()) else st.sampled_from([1, 2, 3, 3, 5])
    rows, columns = draw(axis(kernels, 6)), draw(axis(kernels, 20))
    cin, cout = draw(inputs), draw(outputs)
    strides, pad, out = _conv_parts(rows, columns)
    return small._weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        True,
        (1, rows[0], columns[0], cin),
        (cout, rows[1], columns[1], cin),
        0,
        (*out, cout),
        OpKind.CONV_2D,
        ConvAttrs(strides, (1, 1), pad, draw(activations)),
    )


@st.composite
def depthwise(draw) -> Case:
    """DEPTHWISE_CONV_2D: mostly 3 x 3, 5 x 5 and 7 x 7."""
    rows, columns = (
        draw(axis(st.sampled_from([1, 2, 3, 3, 3, 4, 5, 7, 8]), 37 if i else 8)) for i in range(2)
    )
    count = draw(channels)
    strides, pad, out = _conv_parts(rows, columns)
    return small._weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        True,
        (1, rows[0], columns[0], count),
        (1, rows[1], columns[1], count),
        3,
        (*out, count),
        OpKind.DEPTHWISE_CONV_2D,
        DepthwiseAttrs(strides, (1, 1), pad, draw(activations), 1),
    )


@st.composite
def dense(draw) -> Case:
    """FULLY_CONNECTED: many inputs or outputs."""
    rows, width, count = draw(st.integers(1, 3)), draw(st.integers(1, 300)), draw(outputs)
    return small._weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        True,
        (rows, width),
        (count, width),
        0,
        (rows, count),
        OpKind.FULLY_CONNECTED,
        FullyConnectedAttrs(draw(activations)),
    )


@st.composite
def elementwise(draw) -> Case:
    """ADD, SUB, MUL of tensors of one shape."""
    case = draw(small.elementwise())
    shape = (1, draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(channels))
    rng = np.random.default_rng(draw(seeds))
    tensors = tuple(dataclasses.replace(t, shape=shape) for t in case.graph.tensors)
    assert isinstance(case.op.attrs, ElementwiseAttrs)
    return Case(
        dataclasses.replace(case.graph, tensors=tensors),
        (small.random_int8(rng, shape), small.random_int8(rng, shape)),
    )


@st.composite
def pools(draw) -> Case:
    """AVERAGE_POOL_2D and MAX_POOL_2D over windows that int16 sums do not hold, and small ones."""
    kernels = st.sampled_from([1, 2, 3, 7, 16, 17])
    rows, columns = draw(axis(kernels, 20)), draw(axis(kernels, 20))
    count = draw(channels)
    strides, pad, out = _conv_parts(rows, columns)
    kind = draw(st.sampled_from([OpKind.AVERAGE_POOL_2D, OpKind.MAX_POOL_2D]))
    rng = np.random.default_rng(draw(seeds))
    scale, zero_point = small.random_scale(rng), draw(zero_points)
    shape = (1, rows[0], columns[0], count)
    x = small.activation_tensor("x", shape, scale, zero_point)
    y = small.activation_tensor("y", (*out, count), scale, zero_point)
    attrs = PoolAttrs((rows[1], columns[1]), strides, pad, draw(activations))
    return small.case(kind, attrs, [x], [], y, [small.random_int8(rng, shape)])


@st.composite
def large_factors(draw) -> Case:
    """Convolutions and dense layers with factors from 1/16 to 16, whose sums are small enough to show it."""
    case = draw(st.one_of(convolutions(), depthwise(), dense()))
    rng = np.random.default_rng(draw(seeds))
    graph, op = case.graph, case.op
    x, weights, bias, y = graph.tensors
    assert weights.data is not None and weights.quant is not None and x.quant is not None
    values = rng.integers(-1, 2, weights.shape, dtype=np.int8) * (
        rng.random(weights.shape) < 4 / weights.elements
    )
    data = rng.integers(-40, 41, bias.shape).astype(np.int32)
    scale = float(np.float32(x.quant.scale * max(weights.quant.scales) / 2.0 ** rng.uniform(-4, 4)))
    tensors = (
        dataclasses.replace(x, quant=small.quant(x.quant.scale, int(rng.integers(-3, 4)))),
        dataclasses.replace(weights, data=values.astype(np.int8)),
        dataclasses.replace(bias, data=data),
        dataclasses.replace(y, quant=small.quant(scale, y.quant.zero_point)),
    )
    value = rng.integers(-8, 9, x.shape, dtype=np.int8)
    assert op.inputs == (0, 1, 2)
    return Case(dataclasses.replace(graph, tensors=tensors), (value,))


windowed = {
    "convolution": convolutions(),
    "depthwise": depthwise(),
    "dense": dense(),
    "elementwise": elementwise(),
    "pool": pools(),
    "large factors": large_factors(),
}
