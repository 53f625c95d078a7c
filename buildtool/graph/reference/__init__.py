"""The reference executor: every operator in numpy, equal to the bit to LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from buildtool.errors import BuildtoolError, UsageError
from buildtool.graph.reference import (
    activation,
    convolution,
    elementwise,
    pooling,
    reduction,
    resize,
    shape,
    softmax,
)
from buildtool.graph.reference.activation import table
from buildtool.graph.reference.tensors import Rule, Values
from buildtool.graph.types import Graph, Op, OpKind, Tensor

__all__ = ["execute", "table"]

_RULES: dict[OpKind, Rule] = {
    OpKind.CONV_2D: convolution.conv_2d,
    OpKind.DEPTHWISE_CONV_2D: convolution.depthwise_conv_2d,
    OpKind.TRANSPOSE_CONV: convolution.transpose_conv,
    OpKind.FULLY_CONNECTED: convolution.fully_connected,
    OpKind.ADD: elementwise.add_sub,
    OpKind.SUB: elementwise.add_sub,
    OpKind.MUL: elementwise.mul,
    OpKind.PRELU: elementwise.prelu,
    OpKind.PAD: shape.pad,
    OpKind.MIRROR_PAD: shape.pad,
    OpKind.AVERAGE_POOL_2D: pooling.pool,
    OpKind.MAX_POOL_2D: pooling.pool,
    OpKind.MEAN: reduction.mean,
    OpKind.SOFTMAX: softmax.softmax,
    OpKind.LOGISTIC: activation.apply_table,
    OpKind.TANH: activation.apply_table,
    OpKind.HARD_SWISH: activation.apply_table,
    OpKind.RELU: activation.apply_table,
    OpKind.RELU6: activation.apply_table,
    OpKind.LEAKY_RELU: activation.apply_table,
    OpKind.QUANTIZE: activation.quantize,
    OpKind.DEQUANTIZE: activation.dequantize,
    OpKind.RESHAPE: shape.reshape,
    OpKind.SQUEEZE: shape.reshape,
    OpKind.EXPAND_DIMS: shape.reshape,
    OpKind.TRANSPOSE: shape.transpose,
    OpKind.CONCATENATION: shape.concatenation,
    OpKind.SPLIT: shape.split,
    OpKind.STRIDED_SLICE: shape.slice_,
    OpKind.SLICE: shape.slice_,
    OpKind.RESIZE_NEAREST_NEIGHBOR: resize.nearest,
    OpKind.RESIZE_BILINEAR: resize.bilinear,
}


def execute(graph: Graph, inputs: Sequence[Values]) -> dict[int, Values]:
    """Runs the graph: the value of every activation tensor (inputs too) by index.

    `inputs` in the order of `graph.inputs`, of the tensors' own types and shapes; UsageError
    otherwise.
    """
    if len(inputs) != len(graph.inputs):
        raise UsageError(f"the network has {len(graph.inputs)} inputs, {len(inputs)} were given")
    values: dict[int, Values] = {}
    for index, value in zip(graph.inputs, inputs, strict=True):
        values[index] = _checked(graph.tensors[index], np.asarray(value))
    for op in graph.ops:
        values.update(zip(op.outputs, execute_op(graph, op, values), strict=True))
    return values


def execute_op(graph: Graph, op: Op, values: dict[int, Values]) -> list[Values]:
    """The outputs of one operator; `values` holds the activations it reads."""
    operands = []
    for index in op.inputs:
        if index >= 0:
            data = graph.tensors[index].data
            operands.append(values[index] if data is None else data)
    try:
        made = _RULES[op.kind](graph, op, operands)
    except BuildtoolError as error:
        raise error.at(operator=op.place) from None
    for index, value in zip(op.outputs, made, strict=True):
        _checked(graph.tensors[index], value)
    return made


def _checked(tensor: Tensor, value: Values) -> Values:
    """The value, if it has the tensor's shape and type."""
    if value.shape != tensor.shape or value.dtype != np.dtype(tensor.dtype.value):
        raise UsageError(
            f"expected {tensor.dtype} {list(tensor.shape)}, got {value.dtype} {list(value.shape)}",
            tensor=tensor.name,
        )
    return value
