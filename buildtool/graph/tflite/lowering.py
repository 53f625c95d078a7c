"""Operators as a .tflite file has them: parameter tensors, option tables, versions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.tflite import lower_shape, lower_weighted
from buildtool.graph.tflite.fileops import ACTIVATIONS, FileOp, Lowering, OptionValue


def lower(graph: g.Graph) -> Lowering:
    """All operators as the file has them; UnsupportedError for what .tflite cannot express."""
    low = Lowering(graph, list(graph.tensors), [])
    for op in graph.ops:
        low.ops.append(_RULES[op.kind](low, op))
    return low


def _elementwise(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ElementwiseAttrs)
    options: dict[str, OptionValue] = {"FusedActivationFunction": ACTIVATIONS[attrs.activation]}
    table = {g.OpKind.ADD: "AddOptions", g.OpKind.SUB: "SubOptions", g.OpKind.MUL: "MulOptions"}[op.kind]
    return FileOp(op.kind, 2, op.inputs, op.outputs, table, options)


def _pad(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.PadAttrs)
    operand = low.parameter(op, "paddings", attrs.paddings)
    if attrs.mode is not g.PadMode.CONSTANT:
        mode = 0 if attrs.mode is g.PadMode.REFLECT else 1
        inputs = (*op.inputs, operand)
        return FileOp("MIRROR_PAD", 2, inputs, op.outputs, "MirrorPadOptions", {"Mode": mode})
    source = low.graph.tensors[op.inputs[0]]
    if source.quant is None or attrs.value == source.quant.zero_point:
        return FileOp("PAD", 2, (*op.inputs, operand), op.outputs, "PadOptions")
    data = np.array([attrs.value], source.dtype.value)
    value = low.add(op, "padding_value", data, source.dtype, source.quant)
    return FileOp("PADV2", 2, (*op.inputs, operand, value), op.outputs, "PadV2Options")


def _leaky_relu(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.LeakyReluAttrs)
    return FileOp("LEAKY_RELU", 2, op.inputs, op.outputs, "LeakyReluOptions", {"Alpha": attrs.alpha})


def _softmax(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.SoftmaxAttrs)
    return FileOp("SOFTMAX", 2, op.inputs, op.outputs, "SoftmaxOptions", {"Beta": attrs.beta})


def _plain(version: int, table: str = "") -> Callable[[Lowering, g.Op], FileOp]:
    """The rule of operators without parameters."""
    return lambda low, op: FileOp(op.kind, version, op.inputs, op.outputs, table)


_RULES: dict[g.OpKind, Callable[[Lowering, g.Op], FileOp]] = {
    g.OpKind.CONV_2D: lower_weighted.convolution,
    g.OpKind.DEPTHWISE_CONV_2D: lower_weighted.convolution,
    g.OpKind.TRANSPOSE_CONV: lower_weighted.transpose_convolution,
    g.OpKind.FULLY_CONNECTED: lower_weighted.fully_connected,
    g.OpKind.ADD: _elementwise,
    g.OpKind.SUB: _elementwise,
    g.OpKind.MUL: _elementwise,
    g.OpKind.PAD: _pad,
    g.OpKind.MIRROR_PAD: _pad,
    g.OpKind.AVERAGE_POOL_2D: lower_weighted.pool,
    g.OpKind.MAX_POOL_2D: lower_weighted.pool,
    g.OpKind.MEAN: lower_shape.mean,
    g.OpKind.SOFTMAX: _softmax,
    g.OpKind.LOGISTIC: _plain(2),
    g.OpKind.TANH: _plain(2),
    g.OpKind.HARD_SWISH: _plain(1, "HardSwishOptions"),
    g.OpKind.RELU: _plain(2),
    g.OpKind.RELU6: _plain(2),
    g.OpKind.LEAKY_RELU: _leaky_relu,
    g.OpKind.PRELU: _plain(1),
    g.OpKind.RESHAPE: lower_shape.reshape,
    g.OpKind.SQUEEZE: lower_shape.squeeze,
    g.OpKind.EXPAND_DIMS: lower_shape.expand_dims,
    g.OpKind.TRANSPOSE: lower_shape.transpose,
    g.OpKind.CONCATENATION: lower_shape.concatenation,
    g.OpKind.SPLIT: lower_shape.split,
    g.OpKind.STRIDED_SLICE: lower_shape.strided_slice,
    g.OpKind.SLICE: lower_shape.slice_,
    g.OpKind.RESIZE_NEAREST_NEIGHBOR: lower_shape.resize,
    g.OpKind.RESIZE_BILINEAR: lower_shape.resize,
    g.OpKind.QUANTIZE: _plain(1, "QuantizeOptions"),
    g.OpKind.DEQUANTIZE: _plain(2, "DequantizeOptions"),
}
