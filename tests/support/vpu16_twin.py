"""The XS3 unit's requantisation on 16 bits once more, a number at a time, from what its instructions do.

Nothing here is shared with what buildtool computes: Python integers of any size, and fractions of them.

    made = expected(case.graph, case.op, case.inputs[0], factors)   # an operator's output
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from buildtool.graph.reference import execute_op
from buildtool.graph.types import ConvAttrs, Graph, Op, OpKind


def saturated(value: int, bits: int) -> int:
    """Symmetric: of 8 bits -127 to 127."""
    most = (1 << (bits - 1)) - 1
    return max(-most, min(most, value))


def half_up(value: Fraction) -> int:
    """The nearest integer, halves towards +infinity."""
    return floor(value + Fraction(1, 2))


def vlsat(acc: int, shift: int) -> int:
    """An accumulator as an element of 16 bits."""
    return saturated(half_up(Fraction(acc, 1 << shift)), 16)


def vlashr(value: int, right: int) -> int:
    """Rounds down; to the left where `right` is below 0."""
    return saturated(floor(Fraction(value) / Fraction(2) ** right), 16)


def vlmul(value: int, factor: int) -> int:
    """The factor has 14 bits behind the point."""
    return saturated(half_up(Fraction(value * factor, 1 << 14)), 16)


def vladd(value: int, other: int) -> int:
    """A sum of 16 bits."""
    return saturated(value + other, 16)


def vdepth8(value: int) -> int:
    """The upper 8 bits of 16."""
    return saturated(half_up(Fraction(value, 256)), 8)


def output(acc: int, down: int, up: int, factor: int, bias: int) -> int:
    """What is stored for an accumulator: lanes below -127.5 are written apart, VDEPTH8 makes no -128."""
    x = vlsat(acc, down)
    if up:
        x = vlashr(x, -up)
    z = vladd(vlmul(x, factor), bias)
    return -128 if vladd(z, 0x7F80) < 0 else vdepth8(z)


def sums(graph: Graph, op: Op, x: np.ndarray) -> np.ndarray:
    """The sums of products, without bias, of the input as it is; padding has the zero point."""
    quant = graph.tensors[op.inputs[0]].quant
    weights = graph.tensors[op.inputs[1]].data.astype(np.int64)
    if op.kind is OpKind.FULLY_CONNECTED:
        return x.reshape(-1, weights.shape[1]).astype(np.int64) @ weights.T
    attrs = op.attrs
    assert isinstance(attrs, ConvAttrs)
    _, rows, columns, channels = graph.tensors[op.outputs[0]].shape
    edges = ((0, 0), (attrs.pad.top, 99), (attrs.pad.left, 99), (0, 0))
    padded = np.pad(x.astype(np.int64), edges, constant_values=quant.zero_point)
    total = np.zeros((1, rows, columns, channels), np.int64)
    for i in range(weights.shape[1]):
        for k in range(weights.shape[2]):
            y0, x0 = i * attrs.dilation[0], k * attrs.dilation[1]
            taps = padded[:, y0:, x0:][:, :: attrs.stride[0], :: attrs.stride[1]][:, :rows, :columns]
            is_depthwise = op.kind is OpKind.DEPTHWISE_CONV_2D
            total += taps * weights[0, i, k] if is_depthwise else taps @ weights[:, i, k].T
    return total


def expected(graph: Graph, op: Op, x: np.ndarray, factors: Any, limits: tuple[int, int]) -> np.ndarray:
    """The operator's output by the unit; channels that it does not requantise are the reference's."""
    (made,) = execute_op(graph, op, {op.inputs[0]: x})
    made = made.copy()
    found = sums(graph, op, x).reshape(made.shape)
    for channel in np.flatnonzero(factors.rounded):
        names = ("down", "up", "factor", "bias")
        numbers = [int(getattr(factors, name)[channel]) for name in names]
        start, values = int(factors.start[channel]), found[..., channel]
        known = {acc: output(int(acc) + start, *numbers) for acc in np.unique(values)}
        made[..., channel] = np.clip(np.vectorize(known.get)(values), *limits)
    return made
