"""Operators that arrange elements anew: TILE, GATHER, blocks of space, depth and batch."""

from __future__ import annotations

import numpy as np

from buildtool.graph.reference.tensors import Values, attributes
from buildtool.graph.types import BatchBlockAttrs, BlockAttrs, GatherAttrs, Graph, Op, TileAttrs


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
