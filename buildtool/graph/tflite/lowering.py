"""Operators as a .tflite file has them: parameter tensors, option tables, versions."""

from __future__ import annotations

import numpy as np

from buildtool.base.errors import UnsupportedError
from buildtool.graph import types as g
from buildtool.graph.ops import DEFS
from buildtool.graph.ops.types import Plain, load
from buildtool.graph.tflite import lower_state
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
            low.ops.append(_lowered(low, op))
    lower_state.end(low)
    return low


def _lowered(low: Lowering, op: g.Op) -> FileOp:
    written = DEFS[op.kind].written
    if written is None:
        raise UnsupportedError(
            f"{op.kind} has no form in .tflite",
            operator=op.place,
            hint="write the network before its rewrite",
        )
    if isinstance(written, Plain):
        return FileOp(op.kind, written.version, op.inputs, op.outputs, written.options)
    made: FileOp = load("graph.tflite", written)(low, op)
    return made


def elementwise(low: Lowering, op: g.Op) -> FileOp:
    """ADD, SUB, MUL."""
    attrs = op.attrs
    assert isinstance(attrs, g.ElementwiseAttrs)
    options: dict[str, OptionValue] = {"FusedActivationFunction": ACTIVATIONS[attrs.activation]}
    if low.graph.tensors[op.inputs[0]].dtype is g.DType.INT16 and op.kind is not g.OpKind.MUL:
        options["PotScaleInt16"] = POWERS_OF_TWO
    return FileOp(op.kind, 2, op.inputs, op.outputs, f"{op.kind.capitalize()}Options", options)


def pad(low: Lowering, op: g.Op) -> FileOp:
    """PAD, PADV2, MIRROR_PAD."""
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


def leaky_relu(low: Lowering, op: g.Op) -> FileOp:
    """LEAKY_RELU."""
    attrs = op.attrs
    assert isinstance(attrs, g.LeakyReluAttrs)
    return FileOp("LEAKY_RELU", 2, op.inputs, op.outputs, "LeakyReluOptions", {"Alpha": attrs.alpha})


def gelu(low: Lowering, op: g.Op) -> FileOp:
    """GELU."""
    attrs = op.attrs
    assert isinstance(attrs, g.GeluAttrs)
    return FileOp("GELU", 2, op.inputs, op.outputs, "GeluOptions", {"Approximate": attrs.approximate})


def div(low: Lowering, op: g.Op) -> FileOp:
    """DIV."""
    attrs = op.attrs
    assert isinstance(attrs, g.QuotientAttrs)
    if not attrs.wraps:
        raise UnsupportedError("a quotient whose small values LiteRT computes otherwise", operator=op.place)
    clamp = {"FusedActivationFunction": ACTIVATIONS[attrs.activation]}
    return FileOp("DIV", 2, op.inputs, op.outputs, "DivOptions", {**clamp})


def softmax(low: Lowering, op: g.Op) -> FileOp:
    """SOFTMAX."""
    attrs = op.attrs
    assert isinstance(attrs, g.SoftmaxAttrs)
    return FileOp("SOFTMAX", 2, op.inputs, op.outputs, "SoftmaxOptions", {"Beta": attrs.beta})


def cast(low: Lowering, op: g.Op) -> FileOp:
    """CAST."""
    types = (low.graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    options = dict(zip(("InDataType", "OutDataType"), map(TYPE_CODES.__getitem__, types), strict=True))
    return FileOp("CAST", 1, op.inputs, op.outputs, "CastOptions", options)
