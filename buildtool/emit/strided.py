"""Boxes and strides: how TRANSPOSE, SLICE, SPLIT, CONCATENATION, PAD and MEAN walk memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.graph.types import Graph, MeanAttrs, Op, OpKind, PadAttrs, SliceAttrs, TransposeAttrs

MAX_RANK = 6  # NN_MAX_RANK in nn.h


@dataclass(frozen=True)
class Copy:
    """out[out_offset + sum(i*out_stride)] = in[in_offset + sum(i*in_stride)] over a box, in bytes."""

    size: tuple[int, ...]
    in_stride: tuple[int, ...]
    out_stride: tuple[int, ...]
    in_offset: int = 0
    out_offset: int = 0


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a row-major array of `shape`."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def merged(copy: Copy) -> Copy:
    """The same copy with dimensions of one element dropped and contiguous neighbours joined."""
    dims: list[tuple[int, int, int]] = []
    for size, a, b in zip(copy.size, copy.in_stride, copy.out_stride, strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == a * size and dims[-1][2] == b * size:
            dims[-1] = (dims[-1][0] * size, a, b)
        else:
            dims.append((size, a, b))
    dims = dims or [(1, 1, 1)]
    return Copy(
        tuple(d[0] for d in dims),
        tuple(d[1] for d in dims),
        tuple(d[2] for d in dims),
        copy.in_offset,
        copy.out_offset,
    )


def _transpose(graph: Graph, op: Op) -> list[Copy]:
    assert isinstance(op.attrs, TransposeAttrs)
    shape = graph.tensors[op.inputs[0]].shape
    strides = row_major(shape)
    out = tuple(shape[p] for p in op.attrs.perm)
    return [Copy(out, tuple(strides[p] for p in op.attrs.perm), row_major(out))]


def _slice(graph: Graph, op: Op) -> list[Copy]:
    assert isinstance(op.attrs, SliceAttrs)
    attrs = op.attrs
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    offset = sum(b * s for b, s in zip(attrs.begin, strides, strict=True))
    steps = tuple(n * s for n, s in zip(attrs.stride, strides, strict=True))
    return [Copy(attrs.extent, steps, row_major(attrs.extent), offset)]


def _split(graph: Graph, op: Op) -> list[Copy]:
    axis = op.attrs.axis  # type: ignore[attr-defined]
    strides = row_major(graph.tensors[op.inputs[0]].shape)
    copies, start = [], 0
    for t in op.outputs:
        shape = graph.tensors[t].shape
        copies.append(Copy(shape, strides, row_major(shape), start * strides[axis]))
        start += shape[axis]
    return copies


def _concatenation(graph: Graph, op: Op) -> list[Copy]:
    axis = op.attrs.axis  # type: ignore[attr-defined]
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    copies, start = [], 0
    for t in op.inputs:
        shape = graph.tensors[t].shape
        copies.append(Copy(shape, row_major(shape), strides, 0, start * strides[axis]))
        start += shape[axis]
    return copies


def _pad(graph: Graph, op: Op) -> list[Copy]:
    assert isinstance(op.attrs, PadAttrs)
    shape = graph.tensors[op.inputs[0]].shape
    strides = row_major(graph.tensors[op.outputs[0]].shape)
    offset = sum(before * s for (before, _), s in zip(op.attrs.paddings, strides, strict=True))
    return [Copy(shape, row_major(shape), strides, 0, offset)]


_COPIES = {
    OpKind.TRANSPOSE: _transpose,
    OpKind.SLICE: _slice,
    OpKind.STRIDED_SLICE: _slice,
    OpKind.SPLIT: _split,
    OpKind.CONCATENATION: _concatenation,
    OpKind.PAD: _pad,
}


def copies(graph: Graph, op: Op) -> list[Copy]:
    """The copies that make a data movement operator: one an output (SPLIT) or an input (others)."""
    return [merged(copy) for copy in _COPIES[op.kind](graph, op)]


@dataclass(frozen=True)
class Reduction:
    """Kept dimensions (in the output's order) and reduced ones, each (size, input stride)."""

    outer: tuple[tuple[int, int], ...]
    inner: tuple[tuple[int, int], ...]


def _joined(dims: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for size, stride in dims:
        if size == 1:
            continue
        if out and out[-1][1] == stride * size:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    return tuple(out) or ((1, 1),)


def reduction(graph: Graph, op: Op) -> Reduction:
    """How a MEAN walks its input."""
    assert isinstance(op.attrs, MeanAttrs)
    shape = graph.tensors[op.inputs[0]].shape
    dims = list(zip(shape, row_major(shape), strict=True))
    kept = [d for i, d in enumerate(dims) if i not in op.attrs.axes]
    reduced = [d for i, d in enumerate(dims) if i in op.attrs.axes]
    return Reduction(_joined(kept), _joined(reduced))
