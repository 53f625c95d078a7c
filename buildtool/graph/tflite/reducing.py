"""Operators that reduce dimensions, from a file and into one: means, extremes and their places."""

from __future__ import annotations

from buildtool.base.errors import ModelError
from buildtool.graph.tflite.fileops import TYPE_CODES, FileOp, Lowering, OptionValue
from buildtool.graph.tflite.opview import Decoded, OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, MeanAttrs, Op, OpKind


def reduced(view: OpView) -> Decoded:
    """MEAN and its kin; axes from the second input, negative ones from the back, repetitions dropped."""
    kind, rank = OpKind(view.op.name), len(view.input(0).shape)
    axes = tuple(sorted({view.axis(a, rank) for a in view.ints(1)}))
    if not axes:
        what = "mean" if kind is OpKind.MEAN else "reduction"
        view.refuse(f"a {what} over no axis", "remove the operator")
    options = view.optional_options(tflite.ReducerOptions)
    return view.decoded(kind, MeanAttrs(axes, bool(options is not None and options.KeepDims())))


def arg(view: OpView) -> Decoded:
    """ARG_MAX and ARG_MIN."""
    axes = view.ints(1)
    if len(axes) != 1:
        raise ModelError(f"{len(axes)} axes, expected 1")
    return view.decoded(OpKind(view.op.name), AxisAttrs(view.axis(axes[0], len(view.input(0).shape))))


# ---- into a file -------------------------------------------------------------------------------


def write_reduced(low: Lowering, op: Op) -> FileOp:
    """MEAN and its kin; the axes are a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, MeanAttrs)
    axes = low.parameter(op, "axes", attrs.axes)
    options: dict[str, OptionValue] = {"KeepDims": attrs.keep_dims}
    return FileOp(op.kind, 2, (*op.inputs, axes), op.outputs, "ReducerOptions", options)


def write_arg(low: Lowering, op: Op) -> FileOp:
    """ARG_MAX and ARG_MIN; the axis is a tensor."""
    attrs = op.attrs
    assert isinstance(attrs, AxisAttrs)
    axis = low.parameter(op, "axis", attrs.axis)
    table = "ArgMaxOptions" if op.kind is OpKind.ARG_MAX else "ArgMinOptions"
    options: dict[str, OptionValue] = {"OutputType": TYPE_CODES[low.graph.tensors[op.outputs[0]].dtype]}
    return FileOp(op.kind, 2, (*op.inputs, axis), op.outputs, table, options)
