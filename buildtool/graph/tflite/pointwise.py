"""Decodes and writes elementwise operators (arithmetic, SELECT) and reductions."""

import math

from buildtool.base.errors import UnsupportedError
from buildtool.graph.geometry import attributes
from buildtool.graph.ops.types import option_table
from buildtool.graph.tflite.fileops import FileOp, Lowering
from buildtool.graph.tflite.opview import OpView, decode_plain
from buildtool.graph.tflite.schema import tflite
from buildtool.graph.types import AxisAttrs, DType, ElementwiseAttrs, MeanAttrs, Op, OpKind, QuotientAttrs

# pot_scale_int16 of int16 additions. If it is true, LiteRT shifts where all scales are powers of two.
POWERS_OF_TWO = False
_POTS = (OpKind.ADD, OpKind.SUB)


def decode_arithmetic(view: OpView) -> None:
    """Decodes ADD, SUB, MUL and DIV."""
    kind = view.kind
    options = view.op.options(getattr(tflite, option_table(kind)))
    if kind in _POTS and view.output.dtype == "int16":
        tensors = (view.input(0), view.input(1), view.output)
        scales = [t.quant.scale for t in tensors if t.quant is not None and t.quant.scale > 0]
        powers = [scale for scale in scales if abs(math.log2(scale) - round(math.log2(scale))) < 1e-3]
        if len(powers) == 3 and (options is None or options.PotScaleInt16()):
            view.refuse(
                "an int16 addition with pot_scale_int16 whose scales are all powers of two: "
                "LiteRT shifts instead of scaling",
                "set pot_scale_int16 to false, or change the scale of one of the three tensors",
            )
    attrs = QuotientAttrs if kind is OpKind.DIV else ElementwiseAttrs
    view.emit_like_file(kind, attrs(view.activation(options)), 2)


def decode_select(view: OpView) -> None:
    """Decodes SELECT. Refuses a condition of one dimension: in TFLite it selects whole slices."""
    condition, first = view.input(0), view.input(1)
    if len(condition.shape) == 1 and len(first.shape) > 1 and condition.elements > 1:
        view.refuse("the condition selects whole slices", "give the condition the shape of the operands")
    decode_select_v2(view)


def decode_select_v2(view: OpView) -> None:
    """Decodes SELECT_V2. The condition and both operands broadcast."""
    view.emit_like_file(OpKind.SELECT_V2, None, 3)


def decode_l2_normalization(view: OpView) -> None:
    """Decodes L2_NORMALIZATION over the last dimension."""
    options = view.op.options(tflite.L2NormOptions)
    if options is not None and options.FusedActivationFunction():
        view.refuse("a fused activation, which LiteRT's int8 kernel does not support")
    decode_plain(view)


def decode_prelu(view: OpView) -> None:
    """Decodes PRELU (x, alpha)."""
    if not view.input(1).is_constant:
        view.refuse("alpha is not constant")
    decode_plain(view)


def decode_reduce(view: OpView) -> None:
    """Decodes MEAN and other reductions. The second input gives the axes; repeated axes count once."""
    rank, options = len(view.input(0).shape), view.op.options(tflite.ReducerOptions)
    axes = tuple(sorted({view.axis(a, rank) for a in view.ints(1)}))
    if not axes:
        what = "mean" if view.kind is OpKind.MEAN else "reduction"
        view.refuse(f"a {what} without axes", "remove the operator")
    view.emit_like_file(view.kind, MeanAttrs(axes, bool(options is not None and options.KeepDims())))


def decode_arg(view: OpView) -> None:
    """Decodes ARG_MAX and ARG_MIN."""
    view.emit_like_file(view.kind, AxisAttrs(view.read_axis(1, len(view.input(0).shape))))


# ---- into a file -------------------------------------------------------------------------------


def write_arithmetic(low: Lowering, op: Op) -> FileOp:
    """Writes ADD, SUB and MUL."""
    wide = low.graph.tensors[op.inputs[0]].dtype is DType.INT16 and op.kind in _POTS
    activation = attributes(op, ElementwiseAttrs).activation
    if wide:
        return low.file_op(op, 2, FusedActivationFunction=activation, PotScaleInt16=POWERS_OF_TWO)
    return low.file_op(op, 2, FusedActivationFunction=activation)


def write_div(low: Lowering, op: Op) -> FileOp:
    """Writes DIV."""
    if not attributes(op, QuotientAttrs).wraps:
        raise UnsupportedError("LiteRT computes small values of this quotient differently", operator=op.place)
    return write_arithmetic(low, op)


def write_cast(low: Lowering, op: Op) -> FileOp:
    """Writes CAST."""
    before, after = (low.graph.tensors[t].dtype for t in (op.inputs[0], op.outputs[0]))
    return low.file_op(op, 1, InDataType=before, OutDataType=after)


def write_arg(low: Lowering, op: Op) -> FileOp:
    """Writes ARG_MAX and ARG_MIN. The axis is a tensor in the file."""
    axis = low.parameter(op, "axis", attributes(op, AxisAttrs).axis)
    return low.file_op(op, 2, axis, OutputType=low.graph.tensors[op.outputs[0]].dtype)
