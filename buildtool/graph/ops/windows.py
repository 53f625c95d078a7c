"""Pools and resizing: functions of a window of the input."""

from functools import partial

from buildtool.graph import quantrules
from buildtool.graph.geometry import attributes, check_window, demand, images, spatial
from buildtool.graph.ops.types import CallForm, Int16, OpDef, Shape, Trait
from buildtool.graph.quantrules import QuantError, quants
from buildtool.graph.types import Graph, Op, OpKind, PoolAttrs


def _pool_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    images(shapes, 1)
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
    images(shapes, 1)
    images(outputs, 1)
    return (shapes[0][0], *outputs[0][1:3], shapes[0][3])


def _pool_scales(graph: Graph, op: Op) -> None:
    """Pools keep the scale (TFLite's tolerance) and the zero point."""
    (a,), out = quants(graph, op)
    if abs(a.scale - out.scale) > 1.0e-6 or a.zero_point != out.zero_point:
        text = "a pool's output is quantised otherwise than its input"
        raise QuantError(text, graph.tensors[op.outputs[0]])


_pool = partial(
    OpDef,
    shape=_pool_shape,
    reference="pooling:pool",
    decode="weighted:pool",
    int16=Int16.READ,
    written="weighted:write_pool",
    types=quantrules.int16_too,
    quant=_pool_scales,
    call=CallForm.ONE_TO_ONE,
    case="pool",
    traits=Trait.SLIDING,
)
_resize = partial(
    OpDef,
    shape=_resize_shape,
    decode="weighted:resize",
    int16=Int16.READ,
    written="weighted:write_resize",
    types=quantrules.int16_too,
    call=CallForm.ONE_TO_ONE,
    case="resize",
    traits=Trait.UNEVEN,
)

DEFS = (
    _pool(OpKind.AVERAGE_POOL_2D, onnx={"AveragePool": "pools:average_pool"}),
    _pool(OpKind.MAX_POOL_2D, onnx={"MaxPool": "pools:max_pool", "GlobalMaxPool": "pools:global_max_pool"}),
    _resize(OpKind.RESIZE_NEAREST_NEIGHBOR, reference="resize:nearest", onnx={"Resize": "pools:resize"}),
    _resize(
        OpKind.RESIZE_BILINEAR,
        reference="resize:bilinear",
        no_uint8="LiteRT's uint8 kernel interpolates in floats",
    ),
)
