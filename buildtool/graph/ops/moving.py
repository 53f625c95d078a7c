"""Operators of networks that run on a sliding window (see `graph.hop`). Only planning makes them."""

import math
from functools import partial

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes, demand, same
from buildtool.graph.ops.types import CallForm, OpDef, Shape
from buildtool.graph.quantrules import QuantError
from buildtool.graph.types import Graph, Op, OpKind


def _rows_shape(op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    attrs = attributes(op, g.RowsAttrs)
    demand(len(attrs.ring_rows) == len(shapes), "ring_rows has a number for each input")
    _, _, width, channels = outputs[0]
    for source, first, rows in attrs.pieces:
        demand(0 <= source < len(shapes) and first >= 0 and rows >= 1, "a piece without rows")
        size = attrs.ring_rows[source]
        if not size:
            demand(shapes[source][2:] == (width, channels), f"rows of {list(shapes[source])}")
            size = shapes[source][1]
        demand(first + rows <= size, f"rows {first} to {first + rows - 1} of {size}")
    return (1, sum(rows for _, _, rows in attrs.pieces), width, channels)


def _sums_shape(_op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    return (1, 1, 1, shapes[0][3])


def _sliding_shape(op: Op, shapes: list[Shape], _outputs: list[Shape]) -> Shape:
    attrs = attributes(op, g.SlidingAttrs)
    fits = len(shapes) in (2, 3) and min(attrs.blocks, default=0) > 0 and attrs.entering <= shapes[0][1]
    demand(fits, "the rows that enter are not there")
    return (1, 1, 1, shapes[0][3])


def _pooled_shape(_op: Op, shapes: list[Shape], outputs: list[Shape]) -> Shape:
    demand(math.prod(shapes[0]) == math.prod(outputs[0]), f"sums of shape {list(shapes[0])}")
    return outputs[0]


def _one_type(graph: Graph, op: Op) -> None:
    """Demands one type for all tensors. It may be any type."""
    out = graph.tensors[op.outputs[0]]
    for t in op.inputs:
        if graph.tensors[t].dtype != out.dtype:
            raise QuantError(f"type {graph.tensors[t].dtype}, expected {out.dtype}", graph.tensors[t])


def _any_types(_graph: Graph, _op: Op) -> None:
    """Accepts all types: the rewrite has chosen them."""


_sliding = partial(
    OpDef,
    shape=_sliding_shape,
    types=_any_types,
    call=CallForm.MOVING,
    operands=None,
    results=2,
    state={1: 1},
)
_pooled = partial(OpDef, shape=_pooled_shape, types=_any_types, call=CallForm.MOVING)

DEFS = (
    OpDef(
        OpKind.RING_PUSH,
        same,
        "moving:ring_push",
        types=_one_type,
        call=CallForm.MOVING,
        operands=2,
        state={0: 0},
    ),
    OpDef(OpKind.ROWS, _rows_shape, "moving:rows", types=_one_type, call=CallForm.MOVING, operands=None),
    OpDef(OpKind.ROW_SUMS, _sums_shape, "moving:row_sums", types=_any_types, call=CallForm.MOVING),
    _sliding(OpKind.SLIDING_SUM, reference="moving:sliding_sum"),
    _sliding(OpKind.SLIDING_MAX, reference="moving:sliding_max"),
    _pooled(OpKind.MEAN_OF_SUMS, reference="moving:mean_of_sums"),
    _pooled(OpKind.AVERAGE_OF_SUMS, reference="moving:average_of_sums"),
)
