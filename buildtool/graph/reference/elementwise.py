"""ADD, SUB, MUL and PRELU: int8, inputs broadcast as numpy does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from buildtool.graph.fixedpoint import (
    RANGES,
    activation_range,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from buildtool.graph.reference.tensors import (
    Values,
    attributes,
    centred,
    float_ratio,
    output_quantization,
    quantization,
    requantise,
)
from buildtool.graph.types import DType, ElementwiseAttrs, Graph, Op, OpKind, WidenedAttrs

ADD_LEFT_SHIFT = 20  # both inputs of ADD and SUB move left so far before they are scaled
ADD_LEFT_SHIFTS = {DType.INT8: ADD_LEFT_SHIFT, DType.INT16: 15}


@dataclass(frozen=True)
class AddMultipliers:
    """ADD's and SUB's (multiplier, shift) of the first input, the second, and the output."""

    first: tuple[int, int]
    second: tuple[int, int]
    output: tuple[int, int]


def add_multipliers(graph: Graph, op: Op) -> AddMultipliers:
    """Both inputs are brought to twice the larger scale, 2^-20 of it a step; 2^-15 of int16."""
    scales = [quantization(graph, op, t).scale for t in op.inputs[:2]]
    twice_larger = 2 * max(scales)
    left = ADD_LEFT_SHIFTS[graph.tensors[op.outputs[0]].dtype]
    return AddMultipliers(
        quantize_multiplier(scales[0] / twice_larger),
        quantize_multiplier(scales[1] / twice_larger),
        quantize_multiplier(twice_larger / ((1 << left) * output_quantization(graph, op).scale)),
    )


def add_sub(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """ADD and SUB."""
    attrs = attributes(op, ElementwiseAttrs)
    multipliers = add_multipliers(graph, op)
    operands = summands(op, inputs)
    a, b = (
        multiply_by_quantized_multiplier(centred(graph, op, i, operands[i]) << ADD_LEFT_SHIFT, *pair)
        for i, pair in enumerate((multipliers.first, multipliers.second))
    )
    out, quant = graph.tensors[op.outputs[0]], output_quantization(graph, op)
    limits = activation_range(attrs.activation, quant, out.dtype)
    total = a - b if op.kind is OpKind.SUB else a + b
    return [requantise(total, *multipliers.output, quant.zero_point, limits).astype(out.dtype.value)]


def summands(op: Op, inputs: list[Values]) -> list[Values]:
    """Both operands of an ADD, the second one with the channels that are not made."""
    if not isinstance(op.attrs, WidenedAttrs):
        return inputs
    whole, narrow, filling = inputs
    behind = whole.shape[-1] - narrow.shape[-1] - op.attrs.before
    sides = [(0, 0)] * (narrow.ndim - 1) + [(op.attrs.before, behind)]
    return [whole, np.pad(narrow, sides, constant_values=filling[0])]


def mul_multiplier(graph: Graph, op: Op) -> tuple[int, int]:
    """MUL's (multiplier, shift); TFLite computes the factor in float32."""
    scales = [quantization(graph, op, t).scale for t in op.inputs[:2]]
    return quantize_multiplier(float_ratio(*scales, over=output_quantization(graph, op).scale))


def mul(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """MUL."""
    attrs = attributes(op, ElementwiseAttrs)
    product = centred(graph, op, 0, inputs[0]) * centred(graph, op, 1, inputs[1])
    out, quant = graph.tensors[op.outputs[0]], output_quantization(graph, op)
    limits = activation_range(attrs.activation, quant, out.dtype)
    return [requantise(product, *mul_multiplier(graph, op), quant.zero_point, limits).astype(out.dtype.value)]


def prelu_multipliers(graph: Graph, op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """PRELU's (multiplier, shift) of inputs >= 0 and of inputs < 0 times alpha; float32 factors."""
    source, alpha = (quantization(graph, op, t).scale for t in op.inputs[:2])
    out = output_quantization(graph, op).scale
    return (
        quantize_multiplier(float_ratio(source, over=out)),
        quantize_multiplier(float_ratio(source, alpha, over=out)),
    )


def prelu(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """PRELU: alpha broadcasts against the input."""
    x, alpha = centred(graph, op, 0, inputs[0]), centred(graph, op, 1, inputs[1])
    positive, negative = prelu_multipliers(graph, op)
    out, quant = graph.tensors[op.outputs[0]], output_quantization(graph, op)
    limits = RANGES[out.dtype]
    y = np.where(
        x >= 0,
        requantise(x, *positive, quant.zero_point, limits),
        requantise(x * alpha, *negative, quant.zero_point, limits),
    )
    return [y.astype(out.dtype.value)]
