"""Operators that reduce several elements to one (pools, means, extremes, positions of extremes); resizing."""

from functools import partial

from buildtool.graph import quantrules
from buildtool.graph.geometry import attributes, axis_of, check_images, check_window, demand, spatial
from buildtool.graph.ops.types import NO_INT16, NO_UINT8, CallForm, OpDef, Plain, Shape, Trait
from buildtool.graph.quantrules import QuantError, check_ratio, per_tensor, quants
from buildtool.graph.types import DType, Graph, MeanAttrs, Op, OpKind, PoolAttrs


def _pool_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    check_images(shapes, 1)
    x, attrs = shapes[0], attributes(op, PoolAttrs)
    check_window(attrs)
    demand(min(attrs.kernel) >= 1, f"window {list(attrs.kernel)} is not positive")
    rows, cols = spatial(x, attrs, attrs.kernel)
    pad, (kh, kw) = attrs.pad, attrs.kernel
    empty = (
        max(pad.top, pad.bottom) >= kh
        or max(pad.left, pad.right) >= kw
        or (rows - 1) * attrs.stride[0] >= x[1] + pad.top
        or (cols - 1) * attrs.stride[1] >= x[2] + pad.left
    )
    demand(not empty, "a pooling window lies wholly in the padding")
    return (x[0], rows, cols, x[3])


def _resize_shape(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    check_images(shapes, 1)
    check_images(outputs, 1)
    return (shapes[0][0], *outputs[0][1:3], shapes[0][3])


def _pool_scales(graph: Graph, op: Op) -> None:
    """Demands that a pool keeps the scale (within TFLite's tolerance) and the zero point."""
    (a,), out = quants(graph, op)
    if abs(a.scale - out.scale) > 1.0e-6 or a.zero_point != out.zero_point:
        raise QuantError(
            "a pool's output and input have different quantisations", graph.tensors[op.outputs[0]]
        )


def _reduction_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs, x = attributes(op, MeanAttrs), shapes[0]
    axes = attrs.axes
    demand(axes == tuple(sorted(set(axes))) and len(axes) > 0, f"axes {list(axes)} are not ascending")
    demand(axes[0] >= 0 and axes[-1] < len(x), f"axes {list(axes)} of {len(x)} dimensions")
    return tuple(1 if i in axes else n for i, n in enumerate(x) if attrs.keep_dims or i not in axes)


def _arg_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    axis = axis_of(op, len(shapes[0]))
    return (*shapes[0][:axis], *shapes[0][axis + 1 :])


def _arg_types(graph: Graph, op: Op) -> None:
    """Checks the types of ARG_MAX and ARG_MIN: positions are integers of 32 or 64 bits."""
    per_tensor(graph.tensors[op.inputs[0]], DType.INT8)
    out = graph.tensors[op.outputs[0]]
    if out.dtype not in (DType.INT32, DType.INT64):
        raise QuantError(f"type {out.dtype}, expected int32 or int64", out)


def product_step(graph: Graph, op: Op) -> float:
    """Returns the factor that REDUCE_PROD applies at each step.

    With it, the last product has the output's scale.
    """
    (x,), out = quants(graph, op)
    count = graph.tensors[op.inputs[0]].elements // graph.tensors[op.outputs[0]].elements
    return float(x.scale / out.scale ** (1 / count))


def _product_scales(graph: Graph, op: Op) -> None:
    check_ratio(product_step(graph, op), graph.tensors[op.outputs[0]], 2.0**7)  # the limit of LiteRT's shift


_pool = partial(
    OpDef,
    bounds="bounds:window",
    shape=_pool_shape,
    reference="reduction:pool",
    decode="weighted:decode_pool",
    written="weighted:write_pool",
    quant=_pool_scales,
    call=CallForm.ONE_TO_ONE,
    case="pool",
    traits=Trait.SLIDING | Trait.CHANNEL,
)
_resize = partial(
    OpDef,
    bounds="bounds:resize",
    shape=_resize_shape,
    decode="weighted:decode_resize",
    written="weighted:write_resize",
    call=CallForm.ONE_TO_ONE,
    case="resize",
    traits=Trait.UNEVEN | Trait.CHANNEL,
)

WINDOWS = (
    _pool(OpKind.AVERAGE_POOL_2D, floats="floats:average_pool", onnx={"AveragePool": "pools:average_pool"}),
    _pool(
        OpKind.MAX_POOL_2D,
        floats="floats:max_pool",
        onnx={"MaxPool": "pools:max_pool", "GlobalMaxPool": "pools:global_max_pool"},
    ),
    _resize(
        OpKind.RESIZE_NEAREST_NEIGHBOR,
        floats="resize:nearest",
        reference="resize:nearest",
        onnx={"Resize": "pools:resize"},
    ),
    _resize(OpKind.RESIZE_BILINEAR, floats="resize:bilinear_of_floats", reference="resize:bilinear"),
)

_reduced = partial(
    OpDef,
    shape=_reduction_shape,
    decode="pointwise:decode_reduce",
    written=Plain(2, "ReducerOptions", MeanAttrs, {"KeepDims": "keep_dims"}, parameters={"axes": "axes"}),
    call=CallForm.REDUCED,
    traits=Trait.CHANNEL,
)
_extreme = partial(
    _reduced,
    bounds="bounds:reduction",
    reference="reduction:extreme",
    quant=quantrules.check_same_quant,
    case="extreme",
)
# The position of an extreme.
_place = partial(
    OpDef,
    shape=_arg_shape,
    reference="reduction:arg_extreme",
    decode="pointwise:decode_arg",
    no_int16=NO_INT16,
    written="pointwise:write_arg",
    types=_arg_types,
    call=CallForm.ARG,
    case="arg",
)

DEFS = (
    _reduced(
        OpKind.MEAN,
        bounds="bounds:reduction",
        floats="floats:mean",
        reference="reduction:mean",
        quant=quantrules.check_first_scale,
        case="mean",
        onnx={"GlobalAveragePool": "pools:global_average_pool", "ReduceMean": "pools:reduce"},
    ),
    _reduced(
        OpKind.SUM,
        floats="floats:total",
        reference="reduction:total",
        quant=quantrules.check_first_scale,
        no_uint8="TensorFlow Lite Micro's kernel does not support uint8",
        case="mean",
        onnx={"ReduceSum": "pools:reduce"},
    ),
    _extreme(OpKind.REDUCE_MAX, floats="floats:largest", onnx={"ReduceMax": "pools:reduce"}),
    _extreme(OpKind.REDUCE_MIN, floats="floats:smallest", onnx={"ReduceMin": "pools:reduce"}),
    _reduced(
        OpKind.REDUCE_PROD,
        floats="floats:product",
        reference="reduction:product",
        quant=_product_scales,
        no_uint8=NO_UINT8,
        case="product",
    ),
    _place(OpKind.ARG_MAX, onnx={"ArgMax": "movement:arg_extreme"}),
    _place(OpKind.ARG_MIN, onnx={"ArgMin": "movement:arg_extreme"}),
)
