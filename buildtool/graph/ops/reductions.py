"""Reductions along axes: means, extremes, and the places of extremes."""

from buildtool.graph import quantrules
from buildtool.graph.geometry import attributes, axis_of, demand
from buildtool.graph.ops.types import NO_UINT8, CallForm, Int16, OpDef, Plain, Shape, Spelling
from buildtool.graph.quantrules import QuantError, per_tensor, quants, ratio
from buildtool.graph.types import DType, Graph, MeanAttrs, Op, OpKind

_WRITTEN = Plain(2, "ReducerOptions", MeanAttrs, {"KeepDims": "keep_dims"}, parameters={"axes": "axes"})


def _reduced_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs, x = attributes(op, MeanAttrs), shapes[0]
    axes = attrs.axes
    demand(axes == tuple(sorted(set(axes))) and len(axes) > 0, f"axes {list(axes)}")
    demand(axes[0] >= 0 and axes[-1] < len(x), f"axes {list(axes)} of {len(x)} dimensions")
    return tuple(1 if i in axes else n for i, n in enumerate(x) if attrs.keep_dims or i not in axes)


def _arg_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    axis = axis_of(op, len(shapes[0]))
    return (*shapes[0][:axis], *shapes[0][axis + 1 :])


def _arg_types(graph: Graph, op: Op) -> None:
    """ARG_MAX, ARG_MIN: places are integers of 32 or 64 bits."""
    per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
    out = graph.tensors[op.outputs[0]]
    if out.dtype not in (DType.INT32, DType.INT64):
        raise QuantError(f"type {out.dtype}, expected int32 or int64", out)


def product_step(graph: Graph, op: Op) -> float:
    """REDUCE_PROD: the factor of every step, for the last product to have the output's scale."""
    (x,), out = quants(graph, op)
    count = graph.tensors[op.inputs[0]].elements // graph.tensors[op.outputs[0]].elements
    return float(x.scale / out.scale ** (1 / count))


def _product_scales(graph: Graph, op: Op) -> None:
    ratio(product_step(graph, op), graph.tensors[op.outputs[0]], 2.0**7)  # LiteRT shifts by no more


def _extreme(kind: OpKind, onnx: str) -> OpDef:
    return OpDef(
        kind,
        _reduced_shape,
        "reduction:extreme",
        read=(Spelling(kind, "pointwise:reduced"),),
        written=_WRITTEN,
        quant=quantrules.unchanged,
        call=CallForm.REDUCED,
        case="extreme",
        onnx={onnx: "pools:reduced"},
    )


def _place(kind: OpKind, onnx: str) -> OpDef:
    return OpDef(
        kind,
        _arg_shape,
        "reduction:arg_extreme",
        read=(Spelling(kind, "pointwise:arg", Int16.NOT_IN_LITERT),),
        written="pointwise:write_arg",
        types=_arg_types,
        call=CallForm.ARG,
        case="arg",
        onnx={onnx: "arranging:arg_extreme"},
    )


DEFS = (
    OpDef(
        OpKind.MEAN,
        _reduced_shape,
        "reduction:mean",
        read=(Spelling("MEAN", "pointwise:reduced", Int16.READ),),
        written=_WRITTEN,
        types=quantrules.int16_too,
        quant=quantrules.one_to_one,
        call=CallForm.REDUCED,
        case="mean",
        onnx={"GlobalAveragePool": "pools:global_average_pool", "ReduceMean": "pools:reduced"},
    ),
    _extreme(OpKind.REDUCE_MAX, "ReduceMax"),
    _extreme(OpKind.REDUCE_MIN, "ReduceMin"),
    OpDef(
        OpKind.REDUCE_PROD,
        _reduced_shape,
        "reduction:product",
        read=(Spelling("REDUCE_PROD", "pointwise:reduced"),),
        written=_WRITTEN,
        quant=_product_scales,
        no_uint8=NO_UINT8,
        call=CallForm.REDUCED,
        case="product",
    ),
    _place(OpKind.ARG_MAX, "ArgMax"),
    _place(OpKind.ARG_MIN, "ArgMin"),
)
