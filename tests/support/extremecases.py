"""Random convolutions and dense layers whose constants are extreme in the ways that kernels must notice.

What real networks have: channels whose output never changes, with a bias near 2^30 and a factor of 2^-30.
What none has, but a file may: weights of -128 side by side, sums that fill an int32, factors of any size.
"""

from __future__ import annotations

import dataclasses

import kernelcases as small
import numpy as np
import vectorcases as large
from hypothesis import strategies as st
from kernelcases import Case, activations, seeds, zero_points

from buildtool.graph.types import Activation, DepthwiseAttrs, OpKind, Pad, Quantization


@st.composite
def squares(draw, bias: bool | None = None) -> Case:
    """DEPTHWISE_CONV_2D of 3 x 3, 5 x 5 and 7 x 7, with any padding, over widths that need several runs.

    `bias`: whether there is one; None: now and then.
    """
    size, stride = draw(st.sampled_from([3, 3, 5, 7])), draw(st.sampled_from([1, 1, 2, 3]))
    pads = [draw(st.integers(0, size)) for _ in range(4)]
    height, width = (
        draw(st.integers(max(size - pads[2 * i] - pads[2 * i + 1], 1), 60 if i else 9)) for i in (0, 1)
    )
    channels = draw(st.one_of(st.integers(4, 13), st.sampled_from([16, 20])))
    out = [(n + pads[2 * i] + pads[2 * i + 1] - size) // stride + 1 for i, n in enumerate((height, width))]
    return small._weighted(
        np.random.default_rng(draw(seeds)),
        (draw(zero_points), draw(zero_points)),
        draw(st.booleans()),
        draw(st.booleans()) if bias is None else bias,
        (1, height, width, channels),
        (1, size, size, channels),
        3,
        (1, *out, channels),
        OpKind.DEPTHWISE_CONV_2D,
        DepthwiseAttrs((stride, stride), (1, 1), Pad(*pads), draw(activations), 1),
    )


@st.composite
def weighted(draw) -> Case:
    """A convolution, depthwise or not, or a dense layer: large or small, any activation."""
    return draw(
        st.one_of(
            small.convolutions(),
            large.convolutions(),
            squares(),
            large.depthwise(),
            small.dense(),
            large.dense(),
        )
    )


def _with(case: Case, weights: np.ndarray, bias: np.ndarray | None, scales: np.ndarray | None) -> Case:
    """`case` with other weights, biases, and weight scales per channel."""
    tensors = list(case.graph.tensors)
    index = case.op.inputs[1]
    old = tensors[index]
    assert old.quant is not None
    quant = old.quant
    if scales is not None:
        values = tuple(float(np.float32(s)) for s in scales)
        quant = Quantization(values, (0,) * len(values), quant.axis)
    tensors[index] = dataclasses.replace(old, data=weights, quant=quant)
    place = case.op.inputs[2] if len(case.op.inputs) > 2 else -1
    if bias is not None and place >= 0:
        tensors[place] = dataclasses.replace(tensors[place], data=bias.astype(np.int32))
    return Case(dataclasses.replace(case.graph, tensors=tuple(tensors)), case.inputs)


def _channels(case: Case) -> int:
    shape = case.graph.tensors[case.op.inputs[1]].shape
    return shape[3] if case.op.kind is OpKind.DEPTHWISE_CONV_2D else shape[0]


def _bias(case: Case) -> np.ndarray:
    place = case.op.inputs[2] if len(case.op.inputs) > 2 else -1
    data = case.graph.tensors[place].data if place >= 0 else None
    return np.zeros(_channels(case), np.int64) if data is None else data.astype(np.int64)


@st.composite
def unchanging_channels(draw) -> Case:
    """Some channels with a scale of next to nothing and a bias as large as goes with it."""
    case = draw(weighted())
    rng = np.random.default_rng(draw(seeds))
    count = _channels(case)
    weights = case.graph.tensors[case.op.inputs[1]]
    assert weights.data is not None and weights.quant is not None
    scales = np.resize(np.array(weights.quant.scales), count)
    dead = rng.random(count) < rng.choice([0.2, 0.9])
    shrunk = scales * np.where(dead, 2.0 ** -rng.integers(14, 31, count), 1.0)
    bias = np.where(dead, rng.choice([-1, 1], count) * (1 << rng.integers(20, 31, count)), _bias(case))
    return _with(case, weights.data, bias, shrunk)


@st.composite
def extreme_sums(draw) -> Case:
    """Weights of -128, biases up to the ends of int32, factors of any size; inputs of one sign."""
    case = draw(weighted())
    rng = np.random.default_rng(draw(seeds))
    count = _channels(case)
    tensor = case.graph.tensors[case.op.inputs[1]]
    assert tensor.data is not None and tensor.quant is not None
    weights = tensor.data
    style = rng.integers(4)
    if style == 0:
        weights = np.where(rng.random(weights.shape) < 0.3, -128, weights).astype(np.int8)
    elif style == 1:
        weights = rng.choice(np.array([-128, 127], np.int8), weights.shape)
    bias = _bias(case)
    if rng.random() < 0.5:
        wild = rng.random(count) < 0.3
        bias = np.where(wild, rng.integers(-(1 << 31), 1 << 31, count), bias)
    scales = np.resize(np.array(tensor.quant.scales), count)
    if rng.random() < 0.5:
        scales = scales * np.where(rng.random(count) < 0.2, 2.0 ** rng.uniform(-24, 12, count), 1.0)
    changed = _with(case, weights, bias, scales)
    if rng.random() < 0.5:
        constant = np.full(case.inputs[0].shape, rng.choice([-128, 127]), np.int8)
        changed = Case(changed.graph, (constant,))
    return changed


@st.composite
def deep(draw) -> Case:
    """Sums of thousands of products of extremes: 1 x 1 convolutions and dense layers."""
    inputs, outputs = draw(st.sampled_from([511, 512, 513, 516, 1024, 2048])), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(seeds))
    shape, kind = (1, 2, 4, inputs), OpKind.CONV_2D
    attrs: object = small.ConvAttrs((1, 1), (1, 1), Pad(), Activation.NONE)
    filter_shape: tuple[int, ...] = (outputs, 1, 1, inputs)
    out: tuple[int, ...] = (1, 2, 4, outputs)
    if draw(st.booleans()):
        shape, filter_shape, out = (3, inputs), (outputs, inputs), (3, outputs)
        kind, attrs = OpKind.FULLY_CONNECTED, small.FullyConnectedAttrs(Activation.NONE)
    zps = (draw(zero_points), draw(zero_points))
    case = small._weighted(rng, zps, True, True, shape, filter_shape, 0, out, kind, attrs)
    weights = rng.choice(np.array([-127, 127, -128], np.int8), filter_shape, p=[0.49, 0.5, 0.01])
    if draw(st.booleans()):
        weights = np.full(filter_shape, rng.choice([-128, -127, 127]), np.int8)
    values = np.full(shape, rng.choice([-128, 127]), np.int8)
    return Case(_with(case, weights, None, None).graph, (values,))


windowed = {
    "square depthwise": squares(),
    "unchanging channels": unchanging_channels(),
    "extreme sums": extreme_sums(),
    "deep sums": deep(),
}
