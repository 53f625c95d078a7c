"""Operators element by element, and over them, from a file and into one: arithmetic, choices, reductions."""

from __future__ import annotations

import math

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.tflite.fileops import FileOp, Lowering, OptionValue
from buildtool.graph.tflite.flat import Accessor
from buildtool.graph.tflite.opview import OpView, plain
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, DType, ElementwiseAttrs, MeanAttrs, Op, OpKind, QuotientAttrs

POWERS_OF_TWO = False  # of int16 additions; true lets LiteRT shift where all scales are powers of two


def arithmetic(view: OpView) -> None:
    """ADD, SUB, MUL, DIV."""
    kind = OpKind(view.op.name)
    options = view.op.options(getattr(tflite, f"{kind.capitalize()}Options"))
    if kind in (OpKind.ADD, OpKind.SUB):
        _general_scales(view, options)
    attrs = QuotientAttrs if kind is OpKind.DIV else ElementwiseAttrs
    view.same(kind, attrs(view.activation(options)), 2)


def _general_scales(view: OpView, options: Accessor) -> None:
    """Refuses int16 additions whose scales are powers of two and may be shifted, which LiteRT then does."""
    tensors = (view.input(0), view.input(1), view.output)
    if view.output.dtype != "int16" or (options is not None and not options.PotScaleInt16()):
        return
    scales = [t.quant.scale for t in tensors if t.quant is not None and t.quant.scale > 0]
    powers = [math.log2(scale) for scale in scales]
    if len(powers) == 3 and all(abs(power - round(power)) < 1e-3 for power in powers):
        view.refuse(
            "an addition of int16 whose scales are all powers of two, with pot_scale_int16: LiteRT shifts "
            "in place of scaling",
            "set pot_scale_int16 to false, or give one of the three tensors another scale",
        )


def select(view: OpView) -> None:
    """SELECT: a condition of one dimension chooses whole slices of operands of several."""
    condition, first = view.input(0), view.input(1)
    if len(condition.shape) == 1 and len(first.shape) > 1 and condition.elements > 1:
        view.refuse("a condition that chooses whole slices", "give the condition the shape of the operands")
    select_v2(view)


def select_v2(view: OpView) -> None:
    """SELECT_V2: condition and both operands broadcast."""
    view.same(OpKind.SELECT_V2, None, 3)


def l2_normalization(view: OpView) -> None:
    """L2_NORMALIZATION over the last dimension."""
    options = view.op.options(tflite.L2NormOptions)
    if options is not None and options.FusedActivationFunction():
        view.refuse("a fused activation, which LiteRT's int8 kernel has not")
    plain(view)


def prelu(view: OpView) -> None:
    """PRELU (x, alpha)."""
    if not view.input(1).is_constant:
        view.refuse("alpha is not constant")
    plain(view)


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


# ---- into a file -------------------------------------------------------------------------------


def write_arithmetic(low: Lowering, op: Op) -> FileOp:
    """ADD, SUB, MUL."""
    options: dict[str, OptionValue] = {"FusedActivationFunction": attributes(op, ElementwiseAttrs).activation}
    if low.graph.tensors[op.inputs[0]].dtype is DType.INT16 and op.kind is not OpKind.MUL:
        options["PotScaleInt16"] = POWERS_OF_TWO
    return FileOp(op.kind, 2, op.inputs, op.outputs, f"{op.kind.capitalize()}Options", options)


def write_div(low: Lowering, op: Op) -> FileOp:
    """DIV."""
    if not attributes(op, QuotientAttrs).wraps:
        raise UnsupportedError("a quotient whose small values LiteRT computes otherwise", operator=op.place)
    return write_arithmetic(low, op)


def write_cast(low: Lowering, op: Op) -> FileOp:
    """CAST."""
    before, after = (low.graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    options: dict[str, OptionValue] = {"InDataType": before, "OutDataType": after}
    return FileOp("CAST", 1, op.inputs, op.outputs, "CastOptions", options)


def write_arg(low: Lowering, op: Op) -> FileOp:
    """ARG_MAX and ARG_MIN; the axis is a tensor."""
    axis = low.parameter(op, "axis", attributes(op, AxisAttrs).axis)
    table = "ArgMaxOptions" if op.kind is OpKind.ARG_MAX else "ArgMinOptions"
    options: dict[str, OptionValue] = {"OutputType": low.graph.tensors[op.outputs[0]].dtype}
    return FileOp(op.kind, 2, (*op.inputs, axis), op.outputs, table, options)
