"""Gather, Tile, Expand; ReduceMax, ReduceMin, ArgMax, ArgMin; MatMul of two activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import GeometryError, broadcast
from buildtool.graph.onnx import weighted
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Node
from buildtool.graph.onnx.folding import axis_of
from buildtool.graph.onnx.layout import lying, order_of
from buildtool.graph.onnx.pools import reduced_axes
from buildtool.graph.onnx.values import Held, Pending, Places, Quantized, Value
from buildtool.graph.ops import ONNX
from buildtool.graph.picking import picking
from buildtool.graph.types import (
    AxisAttrs,
    MatmulAttrs,
    MeanAttrs,
    OpKind,
    TileAttrs,
)

_MOST = 4096  # elements gathered
_TO_NHWC = (0, 2, 3, 1)


def gather(ctx: Context, node: Node) -> list[Value]:
    """Gather with constant indices: GATHER, or a slice."""
    x, indices = ctx.held(node, integers=True), ctx.array(node, 1, "the indices")
    axis = axis_of(node, len(x.shape))
    size = x.shape[axis]
    if indices.dtype.kind not in "iu" or not 1 <= indices.size <= _MOST:
        raise ModelError(f"{indices.size} indices of type {indices.dtype}")
    places = [int(i) + size if i < 0 else int(i) for i in indices.reshape(-1)]
    if not 0 <= min(places) <= max(places) < size:
        raise ModelError(f"an index is outside a dimension of {size}")
    tensor, order = ctx.build.natural(x)
    kind, attrs = picking([x.shape[d] for d in order], order.index(axis), places)
    taken = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    made = ctx.build.moved(kind, x, tensor, order, node.outputs[0], taken, attrs)
    return [replace(made, shape=(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))]


def tile(ctx: Context, node: Node) -> list[Value]:
    """Tile."""
    x, repeats = ctx.held(node, integers=True), ctx.ints(node, 1, "the repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        raise ModelError(f"repeats {list(repeats[:16])} of {len(x.shape)} dimensions")
    return [_tiled(ctx, node, x, repeats)]


def expand(ctx: Context, node: Node) -> list[Value]:
    """Expand: a TILE of dimensions of one element."""
    x, asked = ctx.held(node, integers=True), ctx.ints(node, 1, "the shape")
    if len(asked) > 16 or min(asked, default=1) < 1:
        raise ModelError(f"the shape {list(asked[:16])}")
    shape = _broadcast(x.shape, asked)
    wide = replace(x, shape=(1,) * (len(shape) - len(x.shape)) + x.shape)
    return [_tiled(ctx, node, wide, tuple(n // m for n, m in zip(shape, wide.shape, strict=True)))]


def _broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape of both together; ModelError where there is none."""
    try:
        return broadcast(tuple(a), tuple(b))
    except GeometryError as error:
        raise ModelError(str(error)) from None


def _tiled(ctx: Context, node: Node, x: Held, repeats: tuple[int, ...]) -> Held:
    tensor, order = ctx.build.natural(x)
    sizes = [n * m for n, m in zip(x.shape, repeats, strict=True)]
    attrs = TileAttrs(tuple(repeats[d] for d in order))
    return ctx.build.moved(OpKind.TILE, x, tensor, order, node.outputs[0], sizes, attrs)


def extreme(ctx: Context, node: Node) -> list[Value]:
    """ReduceMax or ReduceMin; axes as an attribute or as an operand."""
    kind = ONNX[node.kind].kind
    x = ctx.held(node, integers=True)
    gone = reduced_axes(ctx, node, len(x.shape))
    if gone is None:
        return [x]
    tensor, order = ctx.build.natural(x)
    places = tuple(sorted(order.index(a) for a in gone))
    kept = [1 if d in gone else n for d, n in enumerate(x.shape)]
    held = ctx.build.moved(kind, x, tensor, order, node.outputs[0], kept, MeanAttrs(places, True))
    if not node.integer("keepdims", 1):
        held = replace(held, shape=tuple(n for d, n in enumerate(x.shape) if d not in gone))
    return [held]


def arg_extreme(ctx: Context, node: Node) -> list[Value]:
    """ArgMax or ArgMin at the network's end: int64, without the dimension, images channels last."""
    kind = ONNX[node.kind].kind
    x = ctx.held(node, integers=True)
    if node.integer("select_last_index", 0):
        hint = "take the first one"
        raise UnsupportedError("the last of several equal elements is asked for", hint=hint)
    rank = len(x.shape)
    axis = axis_of(node, rank)
    left = [d for d in range(rank) if d != axis]
    if node.integer("keepdims", 1) and rank == 4:
        left = [d for d in _TO_NHWC if d != axis]
    elif len(left) == 4:
        left = [left[d] for d in _TO_NHWC]
    own = order_of(x.shape, x.layout)
    order = own if own is not None and [d for d in own if d != axis] == left else (*left, axis)
    tensor = ctx.build.ordered(x, order)
    made = ctx.build.places(node.outputs[0], [x.shape[d] for d in left])
    ctx.build.op(kind, [tensor], [made], AxisAttrs(tuple(order).index(axis)))
    return [Places(made, tuple(x.shape[d] for d in left))]


def matmul(ctx: Context, node: Node) -> list[Value]:
    """MatMul: of an activation and a constant matrix a dense layer, of any others BATCH_MATMUL."""
    second = ctx.value(node.input(1))
    first = ctx.value(node.input(0))
    computed = (Held, Pending)
    if isinstance(first, computed) and not isinstance(second, computed) and _is_dense(second):
        return weighted.matmul(ctx, node)
    x, y = (ctx.operand(node, i) for i in range(2))
    shapes = [v.data.shape if isinstance(v, Quantized) else v.shape for v in (x, y)]
    if min(map(len, shapes)) < 2 or shapes[0][-1] != shapes[1][-2]:
        raise UnsupportedError(
            f"a MatMul of {list(shapes[0])} and {list(shapes[1])}", hint="reshape vectors to matrices"
        )
    shape = (*_broadcast(shapes[0][:-2], shapes[1][:-2]), shapes[0][-2], shapes[1][-1])
    if isinstance(x, Quantized) and isinstance(y, Quantized):
        raise UnsupportedError("a product of two constants", hint="fold constants before exporting")
    tensors = []
    for i, (v, own) in enumerate(zip((x, y), shapes, strict=True)):
        if isinstance(v, Quantized):
            tensors.append(ctx.build.constant(f"{node.outputs[0]}/constant{i}", v.data, v.quant))
        else:
            tensors.append(ctx.build.ordered(v, range(len(own))))
    return [ctx.pending(OpKind.BATCH_MATMUL, tensors, shape, *lying(shape, range(len(shape))), MatmulAttrs())]


def _is_dense(weights: Value) -> bool:
    """Whether a dense layer takes the constant: a matrix whose zero points are 0, or can be made so."""
    if not isinstance(weights, Quantized) or len(weights.quant.scales) > 1:
        return True
    data = weights.data.astype(np.int64) - weights.quant.zero_point
    return data.ndim <= 2 and -128 <= data.min(initial=0) <= data.max(initial=0) <= 127
