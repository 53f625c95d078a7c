"""Operators of networks that run on a sliding window (see `graph.hop`): rings, rows and sums."""

from typing import Any

import numpy as np
import numpy.typing as npt

from buildtool.graph.fixedpoint import wrap_int32
from buildtool.graph.geometry import attributes
from buildtool.graph.hop.pooling import pooling_of
from buildtool.graph.reference import reduction, tensors
from buildtool.graph.reference.tensors import Int64, Values
from buildtool.graph.types import Graph, Op, OpKind, RingAttrs, RowsAttrs, SlidingAttrs

_PLACE = 4  # bytes of a ring's place


def _ring(state: Values, rows: int, row_bytes: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Returns a ring's rows as bytes, oldest first, and the index at which the oldest row is stored."""
    raw = np.ascontiguousarray(state).view(np.uint8)
    size = rows * row_bytes
    place = int(raw[size + -size % _PLACE :][:_PLACE].view("<i4")[0])
    return np.roll(raw[:size].reshape(rows, row_bytes), -place, axis=0), place


def _pushed(state: Values, attrs: RingAttrs, new: npt.NDArray[np.uint8]) -> Values:
    """Returns the state of a ring after its oldest rows were replaced by the rows `new`."""
    rows, place = _ring(state, attrs.rows, new.shape[1])
    after = (place + len(new)) % attrs.rows
    raw = np.ascontiguousarray(state).view(np.uint8).copy()
    size = rows.size
    raw[:size] = np.roll(np.concatenate([rows[len(new) :], new]), after, axis=0).reshape(-1)
    raw[size + -size % _PLACE :][:_PLACE] = np.array([after], "<i4").view(np.uint8)
    return raw.view(state.dtype)


def _row_bytes(value: Values) -> npt.NDArray[np.uint8]:
    """Returns the rows of an image as bytes."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(value.shape[1], -1)


def ring_push(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes RING_PUSH: replaces the oldest rows of a ring by new ones."""
    attrs = attributes(op, RingAttrs)
    new = _row_bytes(inputs[1])[attrs.first : attrs.first + attrs.count]
    return [_pushed(inputs[0], attrs, new)]


def rows(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes ROWS: joins rows of rings and other images."""
    attrs, out = attributes(op, RowsAttrs), graph.tensors[op.outputs[0]]
    held = [
        _ring(value, size, out.row_bytes)[0] if size else _row_bytes(value)
        for value, size in zip(inputs, attrs.ring_rows, strict=True)
    ]
    joined = np.concatenate([held[source][first : first + count] for source, first, count in attrs.pieces])
    return [joined.reshape(-1).view(out.dtype.value).reshape(out.shape)]


def row_sums(_graph: Graph, _op: Op, inputs: list[Values]) -> list[Values]:
    """Computes ROW_SUMS: the sums of each channel over all rows and columns, modulo 2^32."""
    total = wrap_int32(inputs[0][0].astype(np.int64).sum(axis=(0, 1)))
    return [np.asarray(total).astype(np.int32).reshape(1, 1, 1, -1)]


def _blocks(rows: npt.NDArray[Any], blocks: tuple[int, ...]) -> list[npt.NDArray[Any]]:
    """Returns the first rows of `rows` in blocks. `blocks`: the number of rows of each block."""
    return np.split(rows[: sum(blocks)], np.cumsum(blocks)[:-1])


def sliding_sum(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SLIDING_SUM: the sums of each channel over the window, modulo 2^32."""
    attrs, (last, state, *first) = attributes(op, SlidingAttrs), inputs
    channels, dtype, count = last.shape[3], f"<i{attrs.bytes}", len(attrs.blocks)
    rows = last[0].astype(np.int64)
    entering = np.array([block.sum(axis=(0, 1)) for block in _blocks(rows, attrs.blocks)])
    old, _ = _ring(state, attrs.entries, channels * attrs.bytes)
    leaving = old[:count].reshape(-1).view(dtype).reshape(-1, channels).astype(np.int64)
    new = np.ascontiguousarray(entering.astype(dtype)).view(np.uint8).reshape(count, -1)
    after = _pushed(state, RingAttrs(attrs.entries, 0, count), new)
    raw = after.view(np.uint8)
    totals = raw[-4 * channels :].view("<i4").astype(np.int64) + entering.sum(axis=0) - leaving.sum(axis=0)
    raw[-4 * channels :] = wrap_int32(totals).astype("<i4").view(np.uint8)
    total = totals + rows[attrs.entering :].sum(axis=(0, 1))
    total = total + sum(value.reshape(-1).astype(np.int64) for value in first)
    return [wrap_int32(total).astype(np.int32).reshape(1, 1, 1, -1), after]


def sliding_max(_graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes SLIDING_MAX: the maxima of each channel over the window."""
    attrs, (last, state, *first) = attributes(op, SlidingAttrs), inputs
    entering = np.array([block.max(axis=(0, 1)) for block in _blocks(last[0], attrs.blocks)], last.dtype)
    new = np.ascontiguousarray(entering).view(np.uint8).reshape(len(attrs.blocks), -1)
    after = _pushed(state, RingAttrs(attrs.entries, 0, len(attrs.blocks)), new)
    ring, _ = _ring(after, attrs.entries, new.shape[1])
    maxima = [ring.reshape(-1).view(last.dtype).reshape(-1, last.shape[3]).max(axis=0)]
    edges = [last[0, attrs.entering :], *(value[0] for value in first)]
    maxima += [edge.max(axis=(0, 1)) for edge in edges if len(edge)]
    return [np.max(maxima, axis=0).astype(last.dtype).reshape(1, 1, 1, -1), after]


def mean_of_sums(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes MEAN_OF_SUMS: a MEAN, or a SUM, from the sums of its input."""
    alone, pooling = pooling_of(graph, op)
    count = reduction.mean_count(alone, pooling)
    zero_point = tensors.quantization(alone, pooling, 0).zero_point
    total = wrap_int32(inputs[0].astype(np.int64) - count * zero_point)
    finish = reduction.finish_mean if pooling.kind is OpKind.MEAN else reduction.finish_total
    return [finish(alone, pooling, total).reshape(graph.tensors[op.outputs[0]].shape)]


def average_of_sums(graph: Graph, op: Op, inputs: list[Values]) -> list[Values]:
    """Computes AVERAGE_OF_SUMS: an AVERAGE_POOL_2D from the sums of its input."""
    alone, pooling = pooling_of(graph, op)
    total: Int64 = inputs[0].astype(np.int64)
    average = reduction.average(alone, pooling, total, np.asarray(reduction.pool_count(pooling)))
    return [average.reshape(graph.tensors[op.outputs[0]].shape)]
