"""Operators that move elements and change none: RESHAPE, TRANSPOSE, PAD, SLICE, TILE, GATHER, blocks, ..."""

from __future__ import annotations

import numpy as np

from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.types import (
    AxisAttrs,
    BatchBlockAttrs,
    BlockAttrs,
    GatherAttrs,
    Graph,
    Op,
    PadAttrs,
    PadMode,
    ShuffleAttrs,
    SliceAttrs,
    TileAttrs,
    TransposeAttrs,
)


def reshape(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS."""
    return [inputs[0].reshape(graph.tensors[op.outputs[0]].shape)]


def transpose(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """TRANSPOSE."""
    if isinstance(op.attrs, ShuffleAttrs):
        shape = inputs[0].shape
        groups = inputs[0].reshape(*shape[:3], op.attrs.groups, -1)
        return [np.ascontiguousarray(groups.swapaxes(3, 4)).reshape(shape)]
    return [np.ascontiguousarray(inputs[0].transpose(attributes(op, TransposeAttrs).perm))]


def pad(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """PAD and MIRROR_PAD."""
    attrs = attributes(op, PadAttrs)
    if attrs.mode is PadMode.CONSTANT:
        return [np.pad(inputs[0], attrs.paddings, constant_values=attrs.value)]
    mode = "reflect" if attrs.mode is PadMode.REFLECT else "symmetric"
    return [np.pad(inputs[0], attrs.paddings, mode=mode)]  # type: ignore[call-overload]


def concatenation(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """CONCATENATION of tensors with one quantisation."""
    return [np.concatenate(inputs, axis=attributes(op, AxisAttrs).axis)]


def split(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SPLIT into equal parts."""
    parts = np.split(inputs[0], len(op.outputs), axis=attributes(op, AxisAttrs).axis)
    return [np.ascontiguousarray(part) for part in parts]


def slice_(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SLICE and STRIDED_SLICE; dropped axes have one element."""
    attrs = attributes(op, SliceAttrs)
    picked = inputs[0]
    for axis, (begin, step, extent) in enumerate(zip(attrs.begin, attrs.stride, attrs.extent, strict=True)):
        picked = picked.take(begin + step * np.arange(extent), axis=axis)
    return [picked.reshape(graph.tensors[op.outputs[0]].shape)]


def copy(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """READ_VARIABLE and ASSIGN_VARIABLE: the same bytes."""
    return [inputs[0].copy()]


def shift(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SHIFT: the end of the old value, then the new one."""
    old, new = inputs
    axis = attributes(op, AxisAttrs).axis
    kept = old.take(np.arange(new.shape[axis], old.shape[axis]), axis=axis)
    return [np.concatenate([kept, new], axis=axis)]


def tile(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """TILE."""
    return [np.tile(inputs[0], attributes(op, TileAttrs).multiples)]


def gather(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """GATHER."""
    attrs = attributes(op, GatherAttrs)
    return [np.take(inputs[0], attrs.indices, axis=attrs.axis)]


def depth_to_space(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """DEPTH_TO_SPACE."""
    block, out = attributes(op, BlockAttrs).block, graph.tensors[op.outputs[0]].shape
    batch, rows, columns, _ = inputs[0].shape
    squares = inputs[0].reshape(batch, rows, columns, block, block, out[3])
    return [np.ascontiguousarray(squares.transpose(0, 1, 3, 2, 4, 5)).reshape(out)]


def space_to_depth(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SPACE_TO_DEPTH."""
    block, out = attributes(op, BlockAttrs).block, graph.tensors[op.outputs[0]].shape
    squares = inputs[0].reshape(out[0], out[1], block, out[2], block, inputs[0].shape[3])
    return [np.ascontiguousarray(squares.transpose(0, 1, 3, 2, 4, 5)).reshape(out)]


def space_to_batch(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """SPACE_TO_BATCH_ND: the place within the block is the batch's slower part."""
    attrs, x = attributes(op, BatchBlockAttrs), inputs[0]
    rest = x.ndim - 1 - len(attrs.block)
    padded = np.pad(x, ((0, 0), *attrs.edges, *([(0, 0)] * rest)), constant_values=attrs.value)
    split = [padded.shape[0]]
    for size, block in zip(padded.shape[1:], attrs.block, strict=False):
        split += [size // block, block]
    count = len(attrs.block)
    order = [2 + 2 * i for i in range(count)] + [0] + [1 + 2 * i for i in range(count)]
    order += range(1 + 2 * count, 1 + 2 * count + rest)
    blocks = padded.reshape(*split, *x.shape[1 + count :]).transpose(order)
    return [np.ascontiguousarray(blocks).reshape(graph.tensors[op.outputs[0]].shape)]


def batch_to_space(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """BATCH_TO_SPACE_ND."""
    attrs, x = attributes(op, BatchBlockAttrs), inputs[0]
    count = len(attrs.block)
    batch = graph.tensors[op.outputs[0]].shape[0]
    blocks = x.reshape(*attrs.block, batch, *x.shape[1:])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, blocks.ndim)
    joined = [n * block for n, block in zip(x.shape[1:], attrs.block, strict=False)]
    whole = blocks.transpose(order).reshape(batch, *joined, *x.shape[1 + count :])
    kept = [slice(before, n - after) for n, (before, after) in zip(joined, attrs.edges, strict=True)]
    return [np.ascontiguousarray(whole[(slice(None), *kept)])]
