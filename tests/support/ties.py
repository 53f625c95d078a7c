"""Layers whose sums requantise to halves, where roundings differ: weights are 0, biases are the sums."""

from __future__ import annotations

import kernelcases as small
import numpy as np
from kernelcases import DENSE, DEPTHWISE, Axis, Case

from buildtool.emit.blocks import channel_factors
from buildtool.graph.fixedpoint import (
    INT32_MAX,
    INT32_MIN,
    multiply_by_quantized_multiplier,
    saturating_rounding_doubling_high_mul,
)
from buildtool.graph.types import Activation, ConvAttrs, OpKind

CHANNELS = 240
ZERO_POINT = 3  # of the output
SCALE = 1 / 3  # of the input: so that factors need all their bits


def _layer(kind: OpKind, scales: np.ndarray, bias: np.ndarray, activation: Activation) -> Case:
    cin, points = CHANNELS if kind is DEPTHWISE else 1, (0, ZERO_POINT)
    rng = np.random.default_rng(0)
    made = small.layer(rng, kind, Axis(1), Axis(1), cin, CHANNELS, activation, points=points)
    nothing, values = (np.zeros(data.shape, np.int8) for data in (made.graph.tensors[1], made.inputs[0]))
    return small.changed(made, nothing, bias, scales, steps=(SCALE, 1.0), values=values)


def layer(
    kind: OpKind,
    seed: int,
    exponents: tuple[float, float],
    activation: Activation,
    greatest: int = INT32_MAX,
) -> tuple[Case, int]:
    """A layer with factors of 2^exponents, and how many of its sums a VRSHL alone would round wrongly.

    Half of the sums are the least that make a quotient end in a half, or one beside; the other half are
    anything, up to the greatest.
    """
    rng = np.random.default_rng(seed)
    scales = (2.0 ** rng.uniform(*exponents, CHANNELS)).astype(np.float32)
    plain = _layer(kind, scales, np.zeros(CHANNELS), activation)
    factors = np.array(channel_factors(plain.graph, plain.op), np.int64)
    multipliers, right = factors[:, 0], np.maximum(-factors[:, 1], 0)
    halves = (2 * rng.integers(-128, 128, CHANNELS) + 1) << np.maximum(right - 1, 0)
    bias = -(-((halves << 31) - (1 << 30)) // np.maximum(multipliers, 1))
    bias = np.clip(bias + rng.choice([0, 0, -1, 1], CHANNELS), INT32_MIN, INT32_MAX)
    anything = rng.integers(INT32_MIN, INT32_MAX, CHANNELS, endpoint=True) >> rng.integers(0, 32, CHANNELS)
    bias = np.clip(np.where(rng.random(CHANNELS) < 0.5, bias, anything), ~greatest, greatest)
    made = _layer(kind, scales, bias, activation)
    wrong = 0
    if kind is not DENSE:
        high = saturating_rounding_doubling_high_mul(bias << np.maximum(factors[:, 1], 0), multipliers)
        up = (high + ((np.int64(1) << right) >> 1)) >> right
        wanted = multiply_by_quantized_multiplier(bias, multipliers, factors[:, 1])
        wrong = int(np.sum((up != wanted) & (np.abs(wanted) < 120)))
    return made, wrong


def expected(case: Case) -> np.ndarray:
    """What fixed-point arithmetic says, without any kernel; for convolutions."""
    graph, op = case.graph, case.op
    factors = np.array(channel_factors(graph, op), np.int64)
    bias = graph.tensors[op.inputs[2]].data
    assert bias is not None
    scaled = multiply_by_quantized_multiplier(bias.astype(np.int64), factors[:, 0], factors[:, 1])
    assert isinstance(op.attrs, ConvAttrs)
    low = ZERO_POINT if op.attrs.activation is Activation.RELU else -128
    return np.clip(scaled + ZERO_POINT, low, 127).astype(np.int8)
