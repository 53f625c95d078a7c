"""How many bytes a plan's kernels bring from, or write to, each buffer: an estimate that ranks them by use.

Counted are an operator's accesses as kernels make them that gather windows into scratch, if they have some:
each tap is read once from the input and written once into the scratch, which is read once for every pair of
output channels and pixels; without scratch the input is read in its place. Everything else is read or written
once for each time that it is computed. Behind a cache what is used again and again comes once: the scratch
that the cache holds, and of the input each row, if it holds the rows that one row of the output needs. What a
copy, a delivered row or a load touches is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from buildtool.graph.macs import pixel_macs
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.schedule.timeline import Timeline
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant

_MIXING = frozenset({OpKind.CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED})
_CONVOLVING = frozenset({OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D})
_GATHERED_BYTES = 2  # of a value in the scratch: kernels widen it for the multiplier
_SUM_BYTES = 8  # read and written for every value that is added to a sum


class Traffic(NamedTuple):
    """Bytes read and written: of tensors by their root (see alias_roots), of scratch and sums by operator."""

    tensors: Mapping[int, int]
    scratch: Mapping[int, int]
    sums: Mapping[int, int]


def traffic(timeline: Timeline, kernels: Sequence[KernelVariant | None], cache: int = 0) -> Traffic:
    """What the steps of a timeline read and write, with `kernels` (one an operator, None for aliases).

    `cache`: bytes of data that are kept in one before the memory; 0: there is none.
    """
    graph, roots = timeline.graph, timeline.roots
    pixels: dict[int, int] = {}
    for run in timeline.runs:
        for running, activity in run.activities.items():
            pixels[running] = pixels.get(running, 0) + activity.pixels
    tensors: dict[int, int] = {}
    scratch: dict[int, int] = {}
    sums: dict[int, int] = {}
    for position, count in pixels.items():
        if position < 0:
            continue
        op, kernel = graph.ops[position].as_seen, kernels[position]
        columns = timeline.columns.get(position)
        size = catalogue.scratch_bytes(kernel, graph, op, columns) if kernel else 0
        read, inner = _reads(graph, op, count, bool(size))
        if cache:
            read = min(read, _fetched(graph, op, count, cache))
            inner = size if size <= cache else inner
        scratch[position] = inner
        sums[position] = 0 if cache else _SUM_BYTES * read // max(1, len(op.inputs))
        activations = [t for t in op.inputs if t in roots]
        for t in activations:
            share = read if op.kind in _MIXING else read * graph.tensors[t].size // _sizes(graph, activations)
            tensors[roots[t]] = tensors.get(roots[t], 0) + share
        for t in op.outputs:
            if t in roots:
                tensors[roots[t]] = tensors.get(roots[t], 0) + _part(graph, op, graph.tensors[t].size, count)
    return Traffic(tensors, scratch, sums)


def _sizes(graph: Graph, tensors: Sequence[int]) -> int:
    return max(1, sum(graph.tensors[t].size for t in tensors))


def _part(graph: Graph, op: Op, size: int, pixels: int) -> int:
    """Of `size` bytes for the whole output those of some pixels; more than all where some are made again."""
    _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
    return size * pixels // max(1, rows * columns)


def _reads(graph: Graph, op: Op, pixels: int, widened: bool) -> tuple[int, int]:
    """Bytes that are read of the operands, and those read and written of the scratch."""
    macs = pixel_macs(graph, op, pixels)
    if not macs:
        return _part(graph, op, _sizes(graph, [t for t in op.inputs if t >= 0]), pixels), 0
    channels = graph.tensors[op.outputs[0]].nhwc[3] if op.kind in _MIXING else 1
    taps = macs // max(1, channels)
    paired = macs // 2 if op.kind in _MIXING else macs  # a pair of pixels has each tap once for two channels
    if not widened:
        return max(taps, paired), 0
    return taps, _GATHERED_BYTES * (taps + paired)


def _fetched(graph: Graph, op: Op, pixels: int, cache: int) -> int:
    """Bytes of the operands that come from behind a cache: each row once, or for every row that needs it."""
    whole = _part(
        graph, op, _sizes(graph, [t for t in op.inputs if not graph.tensors[t].is_constant]), pixels
    )
    window = getattr(op.attrs, "kernel", None)
    height = graph.tensors[op.inputs[1]].shape[1] if op.kind in _CONVOLVING else window[0] if window else 1
    return whole if height * graph.tensors[op.inputs[0]].row_bytes <= cache else whole * height
