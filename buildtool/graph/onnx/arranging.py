"""Gather, Tile, Expand; ArgMax, ArgMin."""

from __future__ import annotations

from dataclasses import replace

from buildtool.base.errors import ModelError, UnsupportedError
from buildtool.graph.geometry import picking
from buildtool.graph.onnx.context import Context
from buildtool.graph.onnx.file import Node
from buildtool.graph.onnx.folding import axis_of, broadcast_of
from buildtool.graph.onnx.layout import order_of
from buildtool.graph.onnx.values import Held, Places, Value
from buildtool.graph.onnx.windows import NHWC
from buildtool.graph.ops import ONNX
from buildtool.graph.types import AxisAttrs, OpKind, TileAttrs

_MOST = 4096  # elements gathered


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
    shape = broadcast_of(x.shape, asked)
    wide = replace(x, shape=(1,) * (len(shape) - len(x.shape)) + x.shape)
    return [_tiled(ctx, node, wide, tuple(n // m for n, m in zip(shape, wide.shape, strict=True)))]


def _tiled(ctx: Context, node: Node, x: Held, repeats: tuple[int, ...]) -> Held:
    tensor, order = ctx.build.natural(x)
    sizes = [n * m for n, m in zip(x.shape, repeats, strict=True)]
    attrs = TileAttrs(tuple(repeats[d] for d in order))
    return ctx.build.moved(OpKind.TILE, x, tensor, order, node.outputs[0], sizes, attrs)


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
        left = [d for d in NHWC if d != axis]
    elif len(left) == 4:
        left = [left[d] for d in NHWC]
    own = order_of(x.shape, x.layout)
    order = own if own is not None and [d for d in own if d != axis] == left else (*left, axis)
    tensor = ctx.build.ordered(x, order)
    made = ctx.build.places(node.outputs[0], [x.shape[d] for d in left])
    ctx.build.op(kind, [tensor], [made], AxisAttrs(tuple(order).index(axis)))
    return [Places(made, tuple(x.shape[d] for d in left))]
