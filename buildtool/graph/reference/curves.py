"""Functions of one byte: roots, clamps at 1, the negated byte; activation.py makes tables of them."""

from __future__ import annotations

import math

import numpy as np

from buildtool.graph.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier, quantize_value
from buildtool.graph.reference.rootlog import inverse_root
from buildtool.graph.reference.tensors import (
    Int64,
    float_ratio,
    output_quantization,
    quantization,
    requantise,
)
from buildtool.graph.types import Graph, Op, OpKind

_ROOT_BITS = 20  # that an inverse root is shifted left by


def negated(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """NEG: the stored byte negated modulo 256, whatever scales and zero points say, as the reference does."""
    stored = x + quantization(graph, op, op.inputs[0]).zero_point
    return np.where(stored == limits[0], limits[0], -stored)


def root(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """SQRT: float32, rounded down; LiteRT stops at values below zero, which here give the least output."""
    scale, out = quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op)
    real = np.float32(scale) * np.maximum(x, 0).astype(np.float32)
    y = np.trunc(np.sqrt(real) / np.float32(out.scale)).astype(np.int64) + out.zero_point
    return np.where(x < 0, limits[0], np.clip(y, *limits))


def inverse_square_root(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """RSQRT in integers; of 0 the greatest output, of values below zero, where LiteRT stops, the least."""
    scale, out = quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op)
    multiplier, shift = quantize_multiplier(1 / (float(np.sqrt(np.float32(scale))) * out.scale))
    factor, factor_shift = inverse_root(np.maximum(x, 0))
    data = multiply_by_quantized_multiplier(1, factor, factor_shift + _ROOT_BITS)
    y = requantise(data, multiplier, shift - _ROOT_BITS, out.zero_point, limits)
    return np.where(x > 0, y, np.where(x == 0, limits[1], limits[0]))


def clamped(graph: Graph, op: Op, x: Int64, limits: tuple[int, int]) -> Int64:
    """RELU_N1_TO_1 and RELU_0_TO_1: rescaled by a float32 ratio, cut at the quantised -1 or 0 and 1."""
    scale, out = quantization(graph, op, op.inputs[0]).scale, output_quantization(graph, op)
    least = -1.0 if op.kind is OpKind.RELU_N1_TO_1 else 0.0
    low, high = max(limits[0], quantize_value(least, out)), min(limits[1], quantize_value(1.0, out))
    pair = quantize_multiplier(float_ratio(scale, over=out.scale))
    return requantise(x, *pair, out.zero_point, (low, high))


def elu(value: float) -> float:
    """ELU of a real number."""
    return math.expm1(value) if value < 0 else value
