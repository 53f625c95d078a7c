"""The XS3 unit's requantisation on 16 bits, number by number, from the definition of its instructions.

It shares no arithmetic with buildtool: it uses Python's integers and fractions.

    made = expected(case.graph, case.op, case.inputs[0], factors, *lanes_of(...))   # an operator's output
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from buildtool.emit.blocks import clamp
from buildtool.graph.reference import execute_op
from buildtool.graph.types import ConvAttrs, Graph, Op, OpKind


def saturated(value: int, bits: int) -> int:
    """Saturates symmetrically: -127 to 127 for 8 bits."""
    most = (1 << (bits - 1)) - 1
    return max(-most, min(most, value))


def half_up(value: Fraction) -> int:
    """Rounds to the nearest integer, halves towards +infinity."""
    return floor(value + Fraction(1, 2))


def vlsat(acc: int, shift: int) -> int:
    """Shifts an accumulator to 16 bits."""
    return saturated(half_up(Fraction(acc, 1 << shift)), 16)


def vlashr(value: int, right: int) -> int:
    """Shifts right and rounds down. Shifts left where `right` is below 0."""
    return saturated(floor(Fraction(value) / Fraction(2) ** right), 16)


def vlmul(value: int, factor: int) -> int:
    """Multiplies by a factor with 14 fraction bits."""
    return saturated(half_up(Fraction(value * factor, 1 << 14)), 16)


def vladd(value: int, other: int) -> int:
    """Adds in 16 bits."""
    return saturated(value + other, 16)


def vdepth8(value: int) -> int:
    """Rounds 16 bits to the upper 8."""
    return saturated(half_up(Fraction(value, 256)), 8)


def output(acc: int, down: int, up: int, factor: int, bias: int, whole: bool) -> int:
    """Returns the output for an accumulator.

    `whole`: the outputs of a group lie side by side. VDEPTH8 makes them, but cannot make -128: lanes below
    -127.5 are found by their sign and stored apart. Otherwise half a step is added and the upper byte stored.
    """
    x = vlsat(acc, down)
    if up:
        x = vlashr(x, -up)
    y = vlmul(x, factor)
    if not whole:
        return floor(Fraction(vladd(y, bias + 128), 256))
    z = vladd(y, bias)
    is_above = saturated(-32641 - z, 16) < 0
    return vdepth8(z) if is_above else -128


def rounded_sums(factors: Any, found: np.ndarray, lanes: slice) -> np.ndarray:
    """Returns the same z for arrays of sums, lanes last, in steps of the output, before rounding."""
    start, down, up, factor, bias = (
        getattr(factors, name)[lanes] for name in ("start", "down", "up", "factor", "bias")
    )
    x = np.clip(np.floor((found + start) / 2.0**down + 0.5), -32767, 32767) * 2.0**up
    y = np.clip(np.floor(np.clip(x, -32767, 32767) * factor / 2.0**14 + 0.5), -32767, 32767)
    return np.clip(y + bias, -32767, 32767) / 256


def sums(graph: Graph, op: Op, x: np.ndarray) -> np.ndarray:
    """Returns the sums of products, without bias. Padding has the zero point."""
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


def expected(graph: Graph, op: Op, x: np.ndarray, factors: Any, lanes: np.ndarray, whole: np.ndarray) -> Any:
    """Returns the operator's output on the unit. Groups that stay exact have the reference's values.

    `lanes`: the channels of each group. A channel in two groups takes the last group's value.
    """
    (exact,) = execute_op(graph, op, {op.inputs[0]: x})
    result, totals = exact.copy(), sums(graph, op, x).reshape(exact.shape)
    limits = clamp(graph, op, op.attrs.activation)
    for lane, channel in enumerate(lanes.reshape(-1)):
        if channel < 0:
            continue
        result[..., channel] = exact[..., channel]
        if factors.rounded[lane]:
            numbers = [int(getattr(factors, name)[lane]) for name in ("down", "up", "factor", "bias")]
            start, values = int(factors.start[lane]), totals[..., channel]
            is_whole = bool(whole[lane // 16])
            outputs = {acc: output(int(acc) + start, *numbers, is_whole) for acc in np.unique(values)}
            result[..., channel] = np.clip(np.vectorize(outputs.get)(values), *limits)
    return result
