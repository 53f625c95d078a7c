"""SVDF, int8 with a 16-bit state: a filter over the features of each step, then one over the last steps.

    state  every feature's last `memory` sums, the newest last: shifted by one, then
           newest = clamp16(requantise(sum of weights_feature * (x - input zero point)))
    y      = clamp8(requantise(bias + sum of weights_time * state over a unit's features) + zero point)

All sums are modulo 2^32. The factors are computed in float32.
"""

from __future__ import annotations

import numpy as np

from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier, wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import (
    Factor,
    Values,
    centred,
    float_ratio,
    output_quantization,
    quantization,
    requantise,
)
from buildtool.graph.types import Graph, Op, SvdfAttrs


def svdf_scales(graph: Graph, op: Op) -> tuple[float, float]:
    """The real factors of the sums over features, and of those over time."""
    x, feature, time, _, state = op.inputs
    scale = {t: quantization(graph, op, t).scale for t in (x, feature, time, state)}
    out = output_quantization(graph, op).scale
    first = float_ratio(scale[x], scale[feature], over=scale[state])
    return first, float_ratio(scale[state], scale[time], over=out)


def svdf_factors(graph: Graph, op: Op) -> tuple[Factor, Factor]:
    """(multiplier, shift) of the sums over features, and of those over time."""
    first, second = svdf_scales(graph, op)
    return quantize_multiplier(first), quantize_multiplier(second)


def svdf(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """One step; the output and the new state."""
    attrs = attributes(op, SvdfAttrs)
    feature, time, state = inputs[1].astype(np.int64), inputs[2].astype(np.int64), inputs[-1]
    of_features, of_time = svdf_factors(graph, op)
    sums = centred(graph, op, 0, inputs[0]) @ feature.T
    newest = np.clip(multiply_by_quantized_multiplier(wrap_int32(sums), *of_features), -32768, 32767)
    batch, (features, memory) = len(sums), time.shape
    history = np.roll(state.reshape(batch, features, memory).astype(np.int64), -1, axis=2)
    history[:, :, -1] = newest
    units = (history * time).sum(2).reshape(batch, features // attrs.rank, attrs.rank).sum(2)
    if op.inputs[3] >= 0:
        units = units + inputs[3].astype(np.int64)
    zero_point = output_quantization(graph, op).zero_point
    y = requantise(wrap_int32(units), *of_time, zero_point, (-128, 127))
    return [y.astype(np.int8), history.astype(np.int16).reshape(state.shape)]
