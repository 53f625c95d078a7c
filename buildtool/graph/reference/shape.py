"""Operators that only move elements: RESHAPE, TRANSPOSE, PAD, SLICE, TILE, GATHER, blocks, ..."""

import numpy as np

from buildtool.graph import types as g
from buildtool.graph.geometry import attributes
from buildtool.graph.reference.tensors import Values
from buildtool.graph.types import Graph, Op, OpKind


def reshape(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RESHAPE, SQUEEZE and EXPAND_DIMS."""
    out = graph.tensors[op.outputs[0]]
    return [inputs[0].reshape(out.shape).view(out.dtype.value)]


def transpose(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes TRANSPOSE, or a shuffle of channels."""
    if isinstance(op.attrs, g.ShuffleAttrs):
        shape = inputs[0].shape
        groups = inputs[0].reshape(*shape[:3], op.attrs.groups, -1)
        return [np.ascontiguousarray(groups.swapaxes(3, 4)).reshape(shape)]
    return [np.ascontiguousarray(inputs[0].transpose(attributes(op, g.TransposeAttrs).perm))]


def pad(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes PAD and MIRROR_PAD."""
    attrs = attributes(op, g.PadAttrs)
    if attrs.mode is g.PadMode.CONSTANT:
        return [np.pad(inputs[0], attrs.paddings, constant_values=attrs.value)]
    return [np.pad(inputs[0], attrs.paddings, attrs.mode.lower())]  # type: ignore[call-overload]


def concatenation(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes CONCATENATION of tensors with the same quantisation."""
    return [np.concatenate(inputs, axis=attributes(op, g.AxisAttrs).axis)]


def split(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SPLIT into equal parts."""
    parts = np.split(inputs[0], len(op.outputs), axis=attributes(op, g.AxisAttrs).axis)
    return [np.ascontiguousarray(part) for part in parts]


def slice_(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SLICE and STRIDED_SLICE. The axes that the output lacks have one element."""
    attrs = attributes(op, g.SliceAttrs)
    part = inputs[0]
    for axis, (begin, step, extent) in enumerate(zip(attrs.begin, attrs.stride, attrs.extent, strict=True)):
        part = part.take(begin + step * np.arange(extent), axis=axis)
    return [part.reshape(graph.tensors[op.outputs[0]].shape)]


def copy(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes READ_VARIABLE and ASSIGN_VARIABLE, which copy the bytes."""
    return [inputs[0].copy()]


def shift(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SHIFT: joins the end of the old value and the new value."""
    old, new = inputs
    axis = attributes(op, g.AxisAttrs).axis
    tail = old.take(np.arange(new.shape[axis], old.shape[axis]), axis=axis)
    return [np.concatenate([tail, new], axis=axis)]


def tile(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes TILE."""
    return [np.tile(inputs[0], attributes(op, g.TileAttrs).multiples)]


def gather(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes GATHER. Computed indices outside of the dimension are clamped; LiteRT ends the invoke."""
    attrs = attributes(op, g.GatherAttrs)
    if len(inputs) == 2:
        return [inputs[0][np.clip(inputs[1], 0, inputs[0].shape[0] - 1)]]
    return [np.take(inputs[0], attrs.indices, axis=attrs.axis)]


def squares(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes DEPTH_TO_SPACE and SPACE_TO_DEPTH: swaps two of six dimensions."""
    block, out = attributes(op, g.BlockAttrs).block, graph.tensors[op.outputs[0]].shape
    batch, rows, columns, depth = inputs[0].shape
    split = (batch, rows, columns, block, block, out[3])
    if op.kind is OpKind.SPACE_TO_DEPTH:
        split = (batch, out[1], block, out[2], block, depth)
    return [np.ascontiguousarray(inputs[0].reshape(split).swapaxes(2, 3)).reshape(out)]


def space_to_batch(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SPACE_TO_BATCH_ND. A pixel's place in its block becomes the outer part of the batch index."""
    attrs, x = attributes(op, g.BatchBlockAttrs), inputs[0]
    inner = 1 + len(attrs.block)  # the first dimension without blocks
    padded = np.pad(x, ((0, 0), *attrs.edges, *[(0, 0)] * (x.ndim - inner)), constant_values=attrs.value)
    sides = zip(padded.shape[1:], attrs.block, strict=False)
    split = [n for size, block in sides for n in (size // block, block)]
    blocks = padded.reshape(x.shape[0], *split, *x.shape[inner:])
    within, across = range(2, 2 * inner, 2), range(1, 2 * inner - 1, 2)
    by_place = blocks.transpose(*within, 0, *across, *range(2 * inner - 1, blocks.ndim))
    return [np.ascontiguousarray(by_place).reshape(graph.tensors[op.outputs[0]].shape)]


def batch_to_space(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes BATCH_TO_SPACE_ND."""
    attrs, x = attributes(op, g.BatchBlockAttrs), inputs[0]
    count, batch = len(attrs.block), graph.tensors[op.outputs[0]].shape[0]
    blocks = x.reshape(*attrs.block, batch, *x.shape[1:])
    pairs = (d for i in range(count) for d in (count + 1 + i, i))
    order = [count, *pairs, *range(2 * count + 1, blocks.ndim)]
    joined = [n * block for n, block in zip(x.shape[1:], attrs.block, strict=False)]
    whole = blocks.transpose(order).reshape(batch, *joined, *x.shape[1 + count :])
    slices = [slice(before, n - after) for n, (before, after) in zip(joined, attrs.edges, strict=True)]
    return [np.ascontiguousarray(whole[(slice(None), *slices)])]
