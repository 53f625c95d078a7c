"""Operators that reduce dimensions, from a file and into one: means, extremes and their places."""

from __future__ import annotations

from buildtool.graph.geometry import attributes
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.opview import OpView
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, MeanAttrs, Op, OpKind


def reduced(view: OpView) -> None:
    """MEAN and its kin; axes from the second input, negative ones from the back, repetitions dropped."""
    kind, rank = OpKind(view.op.name), len(view.input(0).shape)
    axes = tuple(sorted({view.axis(a, rank) for a in view.ints(1)}))
    if not axes:
        what = "mean" if kind is OpKind.MEAN else "reduction"
        view.refuse(f"a {what} over no axis", "remove the operator")
    options = view.op.options(tflite.ReducerOptions)
    view.same(kind, MeanAttrs(axes, bool(options is not None and options.KeepDims())))


def arg(view: OpView) -> None:
    """ARG_MAX and ARG_MIN."""
    view.same(OpKind(view.op.name), AxisAttrs(view.axis_at(1, len(view.input(0).shape))))


def write_arg(low: Lowering, op: Op) -> FileOp:
    """ARG_MAX and ARG_MIN; the axis is a tensor."""
    axis = low.parameter(op, "axis", attributes(op, AxisAttrs).axis)
    table = "ArgMaxOptions" if op.kind is OpKind.ARG_MAX else "ArgMinOptions"
    options: dict[str, OptionValue] = {"OutputType": low.graph.tensors[op.outputs[0]].dtype}
    return FileOp(op.kind, 2, (*op.inputs, axis), op.outputs, table, options)
