"""Which input rows and columns an operator reads that enlarges its input, or makes it less, by any ratio.

The tables are made by the arithmetic of the reference kernels: positions of RESIZE_NEAREST_NEIGHBOR in
float32, those of RESIZE_BILINEAR in fixed point.
"""

from __future__ import annotations

import numpy as np

from buildtool.graph.reference.resize import bilinear_positions, nearest_indices
from buildtool.graph.types import BlockAttrs, ConvAttrs, Graph, Op, OpKind, ResizeAttrs
from buildtool.plan.schedule.axis import Axis, table

RESIZES = frozenset({OpKind.RESIZE_NEAREST_NEIGHBOR, OpKind.RESIZE_BILINEAR})
# Whose windows do not move by a whole stride.
UNEVEN = RESIZES | {OpKind.TRANSPOSE_CONV, OpKind.DEPTH_TO_SPACE}


def uneven_axes(graph: Graph, op: Op) -> tuple[Axis, Axis]:
    """Rows and columns of an operator in UNEVEN."""
    source, result = graph.tensors[op.inputs[0]].nhwc, graph.tensors[op.outputs[0]].nhwc
    if op.kind is OpKind.TRANSPOSE_CONV:
        assert isinstance(op.attrs, ConvAttrs)
        kernel, pad = graph.tensors[op.inputs[1]].shape[1:3], op.attrs.pad
        return (
            _scattered(source[1], result[1], kernel[0], op.attrs.stride[0], pad.top),
            _scattered(source[2], result[2], kernel[1], op.attrs.stride[1], pad.left),
        )
    if isinstance(op.attrs, BlockAttrs):
        return _dealt(result[1], op.attrs.block), _dealt(result[2], op.attrs.block)
    assert isinstance(op.attrs, ResizeAttrs)
    of = _nearest if op.kind is OpKind.RESIZE_NEAREST_NEIGHBOR else _bilinear
    return of(source[1], result[1], op.attrs), of(source[2], result[2], op.attrs)


def _scattered(size: int, out: int, kernel: int, stride: int, pad: int) -> Axis:
    """Input i adds to the outputs [i * stride - pad, i * stride - pad + kernel)."""
    at = np.arange(out, dtype=np.int64) + pad
    first, end = -((kernel - 1 - at) // stride), at // stride + 1
    return table(np.clip(first, 0, size), np.clip(end, 0, size))


def _dealt(out: int, block: int) -> Axis:
    """Each input makes a block of outputs."""
    at = np.arange(out, dtype=np.int64) // block
    return table(at, at + 1)


def _nearest(size: int, out: int, attrs: ResizeAttrs) -> Axis:
    index = nearest_indices(size, out, attrs)
    return table(index, index + 1)


def _bilinear(size: int, out: int, attrs: ResizeAttrs) -> Axis:
    lower, upper, _ = bilinear_positions(size, out, attrs)
    return table(np.minimum(lower, size - 1), upper + 1)
