"""BatchNormalization: folded into the weights before it, or a depthwise convolution of one tap."""

from __future__ import annotations

import math

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.onnxqdq.context import Context
from buildtool.graph.onnxqdq.file import Array, Node
from buildtool.graph.onnxqdq.values import NO_CLAMP, Constant, Pending, Quantized, Value
from buildtool.graph.onnxqdq.weighted import as_image, depthwise_one, spatial

_WEIGHT = 127  # of a tap: the more, the finer the steps of the bias


def batch_normalization(ctx: Context, node: Node) -> list[Value]:
    """Channels times a factor plus an offset: the factor goes into the weights' scales, exactly."""
    if node.integer("training_mode", 0) or len(node.outputs) != 1:
        raise UnsupportedError("a BatchNormalization in training", hint="export the network for inference")
    scale, offset, mean, variance = (_floats(ctx, node, i) for i in range(1, 5))
    if len({v.size for v in (scale, offset, mean, variance)}) != 1:
        raise ModelError("parameters of different sizes")
    epsilon = node.number("epsilon", 1e-5)
    if not (variance + epsilon > 0).all():
        raise ModelError("a variance that is not positive")
    factor = scale / np.sqrt(variance + epsilon)
    shift = offset - mean * factor
    name = node.input(0)
    before = ctx.value(name)
    folds = isinstance(before, Pending) and before.clamp == NO_CLAMP and ctx.alone(name)
    if isinstance(before, Pending) and folds and before.scaled is not None:
        if factor.size != before.shape[before.channel]:
            raise ModelError(f"{factor.size} factors for {before.shape[before.channel]} channels")
        return [before.scaled(factor, shift)]
    x = ctx.held(node)
    spatial(x, "a BatchNormalization")
    image = as_image(x)
    if factor.size != image.shape[1] or math.prod(image.shape) < 1:
        raise ModelError(f"{factor.size} factors for {image.shape[1]} channels")
    weights = (np.sign(factor) * _WEIGHT).astype(np.int8)
    scales = np.where(factor == 0, 1.0, np.abs(factor)) / _WEIGHT
    return [depthwise_one(ctx, x, weights, scales, Constant(shift))]


def _floats(ctx: Context, node: Node, position: int) -> Array:
    """A parameter: floats, one a channel; some quantisers quantise them like weights."""
    value = ctx.value(node.input(position))
    if isinstance(value, Quantized) and len(value.quant.scales) == 1:
        return (value.data.reshape(-1).astype(np.float64) - value.quant.zero_point) * value.quant.scale
    data = ctx.array(node, position, "a parameter")
    if data.dtype.kind != "f" or data.ndim != 1 or not np.isfinite(data).all():
        raise ModelError("a parameter that is not a vector of finite numbers")
    return data.astype(np.float64)
