"""Operators as a .tflite file has them: parameter tensors, option tables, versions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from buildtool.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.tflite import lower_moves, lower_recurrent, lower_shape, lower_state, lower_weighted
from buildtool.graph.tflite.fileops import ACTIVATIONS, TYPE_CODES, FileOp, Lowering, OptionValue

POWERS_OF_TWO = False  # of int16 additions; true lets LiteRT shift where all scales are powers of two


def lower(graph: g.Graph) -> Lowering:
    """All operators as the file has them; UnsupportedError for what .tflite cannot express."""
    low = Lowering(graph, list(graph.tensors), [])
    lower_state.begin(low)
    for op in graph.ops:
        if op.kind is g.OpKind.ASSIGN_VARIABLE:
            lower_state.assign_variable(low, op)
        else:
            low.ops.append(_rule(op)(low, op))
    lower_state.end(low)
    return low


def _rule(op: g.Op) -> Callable[[Lowering, g.Op], FileOp]:
    if op.kind not in _RULES:
        raise UnsupportedError(
            f"{op.kind} has no form in .tflite",
            operator=op.place,
            hint="write the network before its rewrite",
        )
    return _RULES[op.kind]


def _elementwise(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.ElementwiseAttrs)
    options: dict[str, OptionValue] = {"FusedActivationFunction": ACTIVATIONS[attrs.activation]}
    if low.graph.tensors[op.inputs[0]].dtype is g.DType.INT16 and op.kind is not g.OpKind.MUL:
        options["PotScaleInt16"] = POWERS_OF_TWO
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


def _gelu(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.GeluAttrs)
    return FileOp("GELU", 2, op.inputs, op.outputs, "GeluOptions", {"Approximate": attrs.approximate})


def _div(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.QuotientAttrs)
    if not attrs.wraps:
        raise UnsupportedError("a quotient whose small values LiteRT computes otherwise", operator=op.place)
    clamp = {"FusedActivationFunction": ACTIVATIONS[attrs.activation]}
    return FileOp("DIV", 2, op.inputs, op.outputs, "DivOptions", {**clamp})


def _softmax(low: Lowering, op: g.Op) -> FileOp:
    attrs = op.attrs
    assert isinstance(attrs, g.SoftmaxAttrs)
    return FileOp("SOFTMAX", 2, op.inputs, op.outputs, "SoftmaxOptions", {"Beta": attrs.beta})


def _cast(low: Lowering, op: g.Op) -> FileOp:
    types = (low.graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    options = dict(zip(("InDataType", "OutDataType"), map(TYPE_CODES.__getitem__, types), strict=True))
    return FileOp("CAST", 1, op.inputs, op.outputs, "CastOptions", options)


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
    g.OpKind.ABS: _plain(2, "AbsOptions"),
    g.OpKind.EXP: _plain(2, "ExpOptions"),
    g.OpKind.LOG: _plain(2),
    g.OpKind.GELU: _gelu,
    g.OpKind.PRELU: _plain(1),
    g.OpKind.NEG: _plain(1, "NegOptions"),
    g.OpKind.SQRT: _plain(1),
    g.OpKind.RSQRT: _plain(2),
    g.OpKind.ELU: _plain(1),
    g.OpKind.RELU_N1_TO_1: _plain(1),
    g.OpKind.RELU_0_TO_1: _plain(1),
    g.OpKind.MAXIMUM: _plain(2, "MaximumMinimumOptions"),
    g.OpKind.MINIMUM: _plain(2, "MaximumMinimumOptions"),
    g.OpKind.SQUARED_DIFFERENCE: _plain(2, "SquaredDifferenceOptions"),
    g.OpKind.DIV: _div,
    g.OpKind.EQUAL: _plain(2, "EqualOptions"),
    g.OpKind.NOT_EQUAL: _plain(2, "NotEqualOptions"),
    g.OpKind.LESS: _plain(2, "LessOptions"),
    g.OpKind.LESS_EQUAL: _plain(2, "LessEqualOptions"),
    g.OpKind.GREATER: _plain(2, "GreaterOptions"),
    g.OpKind.GREATER_EQUAL: _plain(2, "GreaterEqualOptions"),
    g.OpKind.LOGICAL_AND: _plain(1, "LogicalAndOptions"),
    g.OpKind.LOGICAL_OR: _plain(1, "LogicalOrOptions"),
    g.OpKind.LOGICAL_NOT: _plain(1, "LogicalNotOptions"),
    g.OpKind.SELECT_V2: _plain(1, "SelectV2Options"),
    g.OpKind.L2_NORMALIZATION: _plain(2, "L2NormOptions"),
    g.OpKind.LOG_SOFTMAX: _plain(2, "LogSoftmaxOptions"),
    g.OpKind.RESHAPE: lower_shape.reshape,
    g.OpKind.SQUEEZE: lower_shape.squeeze,
    g.OpKind.EXPAND_DIMS: lower_shape.expand_dims,
    g.OpKind.TRANSPOSE: lower_shape.transpose,
    g.OpKind.CONCATENATION: lower_shape.concatenation,
    g.OpKind.SPLIT: lower_shape.split,
    g.OpKind.STRIDED_SLICE: lower_shape.strided_slice,
    g.OpKind.SLICE: lower_shape.slice_,
    g.OpKind.TILE: lower_moves.tile,
    g.OpKind.GATHER: lower_moves.gather,
    g.OpKind.DEPTH_TO_SPACE: lower_moves.squares,
    g.OpKind.SPACE_TO_DEPTH: lower_moves.squares,
    g.OpKind.BATCH_TO_SPACE_ND: lower_moves.batch_blocks,
    g.OpKind.SPACE_TO_BATCH_ND: lower_moves.batch_blocks,
    g.OpKind.REDUCE_MAX: lower_moves.extreme,
    g.OpKind.REDUCE_MIN: lower_moves.extreme,
    g.OpKind.ARG_MAX: lower_moves.arg_extreme,
    g.OpKind.ARG_MIN: lower_moves.arg_extreme,
    g.OpKind.BATCH_MATMUL: lower_moves.batch_matmul,
    g.OpKind.RESIZE_NEAREST_NEIGHBOR: lower_shape.resize,
    g.OpKind.RESIZE_BILINEAR: lower_shape.resize,
    g.OpKind.QUANTIZE: _plain(1, "QuantizeOptions"),
    g.OpKind.CAST: _cast,
    g.OpKind.DEQUANTIZE: _plain(2, "DequantizeOptions"),
    g.OpKind.SVDF: lower_recurrent.svdf,
    g.OpKind.UNIDIRECTIONAL_SEQUENCE_LSTM: lower_recurrent.lstm,
    g.OpKind.READ_VARIABLE: lower_state.read_variable,
    g.OpKind.SHIFT: lower_state.shift,
}
