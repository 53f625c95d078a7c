"""Convolutions and dense layers."""

import math
from functools import partial

from buildtool.graph import types as g
from buildtool.graph.geometry import (
    attributes,
    broadcast,
    check_images,
    check_window,
    demand,
    dilated_extent,
    spatial,
)
from buildtool.graph.ops.types import NO_UINT8, CallForm, OpDef, Plain, Shape, Trait
from buildtool.graph.quantrules import LARGEST_RATIO, QuantError, check_ratio, per_tensor, quants
from buildtool.graph.types import DType, Graph, Op, OpKind

_LARGEST_WIDE = 2.0**7  # factor of 64-bit sums, which LiteRT's multiplication demands


def _check_bias(shapes: list[Shape], op: Op, channels: int) -> None:
    demand(len(shapes) == 3, f"{len(shapes)} inputs, expected 3 (-1 for a bias that is absent)")
    if op.inputs[2] >= 0:
        demand(shapes[2] == (channels,), f"the bias has shape {list(shapes[2])}, expected [{channels}]")


def _conv_shape(op: Op, attrs: g.ConvAttrs, shapes: list[Shape], channels: int) -> Shape:
    """Returns the output shape of a convolution with `channels` output channels."""
    demand(min(attrs.dilation) >= 1, f"dilation {list(attrs.dilation)} is not positive")
    _check_bias(shapes, op, channels)
    extent = [dilated_extent(k, d) for k, d in zip(shapes[1][1:3], attrs.dilation, strict=True)]
    return (shapes[0][0], *spatial(shapes[0], attrs, extent), channels)


def _conv_2d_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    check_images(shapes, 2)
    x, (cout, _, _, per_group) = shapes[0], shapes[1]
    attrs = attributes(op, g.ConvAttrs)
    check_window(attrs, crops=True)
    demand(x[3] % per_group == 0, f"{x[3]} input channels do not divide into groups of {per_group}")
    groups = x[3] // per_group
    demand(cout % groups == 0, f"{cout} output channels do not divide into {groups} groups")
    return _conv_shape(op, attrs, shapes, cout)


def _depthwise_conv_2d_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    check_images(shapes, 2)
    x, (one, _, _, cout) = shapes[0], shapes[1]
    attrs = attributes(op, g.DepthwiseAttrs)
    check_window(attrs, crops=True)
    demand(one == 1, f"the filter's first dimension is {one}, expected 1")
    times = attrs.depth_multiplier
    fits = times >= 1 and cout == x[3] * times
    demand(fits, f"{cout} filter channels for {x[3]} input channels times {times}")
    return _conv_shape(op, attrs, shapes, cout)


def _transpose_conv_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    check_images(shapes, 2)
    x, (cout, kh, kw, cin) = shapes[0], shapes[1]
    attrs = attributes(op, g.ConvAttrs)
    check_window(attrs)
    demand(attrs.dilation == (1, 1), "a transposed convolution has no dilation")
    demand(x[3] == cin, f"{x[3]} input channels, the filter has {cin}")
    _check_bias(shapes, op, cout)
    demand(len(outputs[0]) == 4, "the output must have 4 dimensions")
    demand(attrs.pad.top < kh and attrs.pad.left < kw, "the padding is larger than the kernel")
    return (x[0], *outputs[0][1:3], cout)


def _fully_connected_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    demand(len(shapes) == 3 and len(shapes[1]) == 2, "the filter must have 2 dimensions")
    x, (cout, cin) = shapes[0], shapes[1]
    demand(len(x) >= 1 and x[-1] == cin, f"input {list(x)} does not end in the filter's {cin} inputs")
    _check_bias(shapes, op, cout)
    keeps = attributes(op, g.FullyConnectedAttrs).keep_num_dims
    return (*x[:-1], cout) if keeps else (math.prod(x[:-1]), cout)


def _matmul_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs = attributes(op, g.MatmulAttrs)
    demand(len(shapes) == 2 and min(map(len, shapes)) >= 2, "two operands of 2 dimensions or more are needed")
    x, y = shapes
    rows, inner = x[-2:] if not attrs.adj_x else x[:-3:-1]
    height, columns = y[-2:] if not attrs.adj_y else y[:-3:-1]
    demand(inner == height, f"{inner} columns of the first operand for {height} rows of the second")
    return (*broadcast(x[:-2], y[:-2]), rows, columns)


def _weighted_types(graph: Graph, op: Op) -> None:
    """Checks the types and scales of CONV_2D and other layers with weights.

    Their operands are the activation, the filter (int8, zero points 0) and the bias (int32, or -1 if absent).
    With int16 activations the bias is int64; the reader widens an int32 bias.
    """
    x, weights = graph.tensors[op.inputs[0]], graph.tensors[op.inputs[1]]
    wide = x.dtype is DType.INT16
    ends = (graph.tensors[op.outputs[0]], x)
    out, source = (per_tensor(tensor, DType.INT16 if wide else DType.INT8) for tensor in ends)
    if weights.dtype != DType.INT8 or weights.data is None:
        raise QuantError("the filter must be an int8 constant", weights)
    if weights.quant is None:
        raise QuantError("the filter has no scale", weights)
    if any(weights.quant.zero_points) and not isinstance(op.attrs, g.AsUint8):
        raise QuantError("the filter's zero points must be 0", weights)
    axis = 3 if op.kind == OpKind.DEPTHWISE_CONV_2D else 0
    if len(weights.quant.scales) > 1 and weights.quant.axis != axis:
        raise QuantError(f"the filter is quantised along axis {weights.quant.axis}, expected {axis}", weights)
    sizes = weights.quant.scales
    if min(sizes) <= 0:
        sizes = tuple(abs(scale) for scale in sizes if scale != 0)
    for scale in (min(sizes), max(sizes)) if sizes else ():
        check_ratio(source.scale * scale / out.scale, weights, _LARGEST_WIDE if wide else LARGEST_RATIO)
    if op.inputs[2] >= 0:
        bias = graph.tensors[op.inputs[2]]
        expected = DType.INT64 if wide else DType.INT32
        if bias.dtype is not expected or bias.data is None:
            raise QuantError(f"the bias must be an {expected} constant", bias)


def _matmul_scales(graph: Graph, op: Op) -> None:
    (a, b), out = quants(graph, op)
    result = graph.tensors[op.outputs[0]]
    limit = _LARGEST_WIDE if result.dtype is DType.INT16 else LARGEST_RATIO
    check_ratio(a.scale * b.scale / out.scale, result, limit)


# An operator with weights and an optional bias.
_layer = partial(
    OpDef,
    bounds="bounds:weighted",
    types=_weighted_types,
    call=CallForm.ONE_TO_ONE,
    case="conv",
    traits=Trait.SLIDING,
    operands=3,
    optional=frozenset({2}),
)

DEFS = (
    _layer(
        OpKind.CONV_2D,
        int4_weights=True,
        shape=_conv_2d_shape,
        reference="convolution:conv_2d",
        floats="floats:convolution",
        decode="weighted:decode_conv_2d",
        written="weighted:write_convolution",
        onnx={"Conv": "weighted:conv"},
    ),
    _layer(
        OpKind.DEPTHWISE_CONV_2D,
        int4_weights=True,
        traits=Trait.SLIDING | Trait.CHANNEL,
        shape=_depthwise_conv_2d_shape,
        reference="convolution:depthwise_conv_2d",
        floats="floats:convolution",
        decode="weighted:decode_depthwise_conv_2d",
        written="weighted:write_convolution",
        onnx={"BatchNormalization": "weighted:batch_normalization"},
    ),
    _layer(
        OpKind.TRANSPOSE_CONV,
        shape=_transpose_conv_shape,
        reference="convolution:transpose_conv",
        decode="weighted:decode_transpose_conv",
        written="weighted:write_transpose_convolution",
        case="transpose_conv",
        traits=Trait.UNEVEN,
        onnx={"ConvTranspose": "weighted:conv_transpose"},
    ),
    _layer(
        OpKind.FULLY_CONNECTED,
        int4_weights=True,
        shape=_fully_connected_shape,
        reference="convolution:fully_connected",
        floats="floats:fully_connected",
        decode="weighted:decode_fully_connected",
        written="weighted:write_fully_connected",
        call=CallForm.ROWS,
        case="dense",
        traits=Trait.NONE,
        onnx={"Gemm": "weighted:gemm"},
    ),
    OpDef(
        OpKind.BATCH_MATMUL,
        _matmul_shape,
        "matmul:batch_matmul",
        floats="floats:matmul",
        written=Plain(2, "BatchMatMulOptions", g.MatmulAttrs, {"AdjX": "adj_x", "AdjY": "adj_y"}),
        quant=_matmul_scales,
        call=CallForm.MATRICES,
        case="matmul",
        operands=2,
        onnx={"MatMul": "weighted:matmul"},
        no_uint8=NO_UINT8,
    ),
)
