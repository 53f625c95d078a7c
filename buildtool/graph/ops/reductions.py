"""Reductions along axes: means, extremes, and the places of extremes."""

from functools import partial

from buildtool.graph import quantrules
from buildtool.graph.geometry import attributes, axis_of, demand
from buildtool.graph.ops.types import NO_UINT8, CallForm, Int16, OpDef, Plain, Shape
from buildtool.graph.quantrules import QuantError, per_tensor, quants, ratio
from buildtool.graph.types import DType, Graph, MeanAttrs, Op, OpKind


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


_reduced = partial(
    OpDef,
    shape=_reduced_shape,
    decode="pointwise:reduced",
    written=Plain(2, "ReducerOptions", MeanAttrs, {"KeepDims": "keep_dims"}, parameters={"axes": "axes"}),
    call=CallForm.REDUCED,
)
_extreme = partial(_reduced, reference="reduction:extreme", quant=quantrules.unchanged, case="extreme")
# The place of an extreme.
_place = partial(
    OpDef,
    shape=_arg_shape,
    reference="reduction:arg_extreme",
    decode="pointwise:arg",
    int16=Int16.NOT_IN_LITERT,
    written="pointwise:write_arg",
    types=_arg_types,
    call=CallForm.ARG,
    case="arg",
)

DEFS = (
    _reduced(
        OpKind.MEAN,
        reference="reduction:mean",
        int16=Int16.READ,
        types=quantrules.int16_too,
        quant=quantrules.one_to_one,
        case="mean",
        onnx={"GlobalAveragePool": "pools:global_average_pool", "ReduceMean": "pools:reduced"},
    ),
    _extreme(OpKind.REDUCE_MAX, onnx={"ReduceMax": "pools:reduced"}),
    _extreme(OpKind.REDUCE_MIN, onnx={"ReduceMin": "pools:reduced"}),
    _reduced(
        OpKind.REDUCE_PROD,
        reference="reduction:product",
        quant=_product_scales,
        no_uint8=NO_UINT8,
        case="product",
    ),
    _place(OpKind.ARG_MAX, onnx={"ArgMax": "movement:arg_extreme"}),
    _place(OpKind.ARG_MIN, onnx={"ArgMin": "movement:arg_extreme"}),
)
