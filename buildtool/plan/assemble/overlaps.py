"""Which buffers may lie on each other: an operator's output, or a region's, on an input that dies there.

Of an operator that runs by itself the kernel's contract says how far. Of a streamed region its steps
do: the output may cover what no later step of the region reads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.graph.fusions import fusions
from buildtool.graph.liveness import alias_roots
from buildtool.graph.types import Graph
from buildtool.plan.schedule.overlap import distance
from buildtool.plan.schedule.receptive import accumulates, axes, row_inputs, streams
from buildtool.plan.schedule.schedule import Run, Steps
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Overlap, Region
from buildtool.target.types import Contract, KernelVariant

Ints = npt.NDArray[np.int64]


class RegionOverlap(NamedTuple):
    """What a streamed region's output may lie on, by roots (see alias_roots); the rest as in Overlap."""

    op: int
    source: int
    result: int
    distance: int


def overlaps(
    timeline: Timeline,
    permitted: Sequence[Overlap],
    regions: Iterable[RegionOverlap],
    buffers: Sequence[Buffer],
    apart: Container[int],
) -> list[Overlap]:
    """Every overlap that is safe, by the buffers' positions.

    `permitted`: by the kernels' contracts, with numbers of live ranges as buffers; `regions`: of the
    streamed regions; `apart`: operators whose output must not lie on their input.
    """
    whole = {b.tensors[0]: i for i, b in enumerate(buffers) if b.kind is BufferKind.TENSOR}
    alone = {region.ops[0] for region in timeline.regions if not region.is_streamed}
    roots = [shared.tensors[0] for shared in timeline.ranges]
    by_contract = (
        RegionOverlap(o.op, roots[o.input], roots[o.output], o.distance) for o in permitted if o.op in alone
    )
    return [
        Overlap(o.op, whole[o.source], whole[o.result], o.distance)
        for o in (*by_contract, *regions)
        if o.source in whole and o.result in whole and o.op not in apart
    ]


def of_region(
    graph: Graph,
    run: Run,
    kernels: Sequence[KernelVariant | None],
    last_reads: Mapping[int, int],
    kept: Container[int],
) -> Iterator[RegionOverlap]:
    """Overlaps of a streamed region's output.

    `last_reads`: root that dies -> the operator where it does; `kept`: tensors of the region that are
    never whole.
    """
    roots, ops = alias_roots(graph), run.region.ops
    fusion = next((one for one in fusions(graph) if (one.first, one.last) == (ops[0], ops[-1])), None)
    if fusion is not None:  # each slice may take the place of the branch's end that has its shape
        ends = zip(fusion.parts, fusion.results, strict=True)
        pairs = [(op, part, result) for op, (part, result) in enumerate(ends, fusion.first + 1)]
    else:
        result = roots[graph.ops[ops[-1]].outputs[0]]
        read = {roots[t] for p in ops for t in graph.ops[p].inputs if t in roots} - {result}
        dying = (t for t in sorted(read) if t not in kept and last_reads.get(t, -1) in ops)
        pairs = [(ops[-1], t, result) for t in dying]
    steps = run.steps if pairs else np.empty((0, 5), np.int32)
    for op, source, result in pairs:
        apart = region_distance(graph, steps, source, result, ops)
        by_rows = _distance_of_rows(graph, run.region, kernels, source)
        least = min((d for d in (apart, by_rows) if d is not None), default=None)
        if least is not None and least < graph.tensors[result].size:
            yield RegionOverlap(op, source, result, least)


def _distance_of_rows(
    graph: Graph, region: Region, kernels: Sequence[KernelVariant | None], source: int
) -> int | None:
    """What the kernel's contract says of an operator that is a region by itself and makes whole rows.

    It may be less than what the steps say, since within a call of several rows the kernel goes row by row.
    """
    kernel = kernels[region.ops[0]]
    if len(region.ops) > 1 or region.groups[0].hand_off or kernel is None:
        return None
    op, roots = graph.ops[region.ops[0]], alias_roots(graph)
    operands = [t for t in op.inputs if roots.get(t) == source]
    if len(operands) != 1 or accumulates(graph, op) or kernel.overlap not in (Contract.ROW, Contract.PIXEL):
        return None
    return distance(graph, op, operands[0], kernel.overlap)


def region_distance(graph: Graph, steps: Steps, source: int, result: int, ops: Sequence[int]) -> int | None:
    """Least safe offset(source) - offset(result) in a region with these steps; None if it writes no rows.

    `source` stands for its aliases too: rows are those of the tensor that an operator reads. `ops`: the
    region's operators.
    """
    makers = [position for position in ops if result in graph.ops[position].outputs]
    if any(accumulates(graph, graph.ops[position]) for position in makers):
        return None
    at, needed = later_reads(graph, steps, source, ops)
    written = np.flatnonzero(np.isin(steps[:, 0], makers))
    following = np.searchsorted(at, written)
    matters = following < len(needed)
    rows = steps[written[matters], 2].astype(np.int64)
    apart = rows * graph.tensors[result].row_bytes - needed[following[matters]]
    return max(0, int(apart.max(initial=0)))


def later_reads(graph: Graph, steps: Steps, source: int, ops: Sequence[int]) -> tuple[Ints, Ints]:
    """The steps that read a tensor (by its root), and the first byte of it that is read then or later."""
    roots = alias_roots(graph)
    at, first = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for position in ops:
        op = graph.ops[position]
        for t in (t for t in op.inputs if roots.get(t) == source):
            mine = np.flatnonzero(steps[:, 0] == position)
            row = steps[mine, 1].astype(
                np.int64
            )  # the first row that the step makes, then the first it reads
            if not accumulates(graph, op):
                by_row = streams(graph, op) and t in row_inputs(graph, op)
                row = np.maximum(0, axes(graph, op)[0].lows(row)) if by_row else np.zeros_like(row)
            at.append(mine)
            first.append(row * graph.tensors[t].row_bytes)
    reads = np.concatenate(at)
    order = np.argsort(reads, kind="stable")
    return reads[order], np.minimum.accumulate(np.concatenate(first)[order][::-1])[::-1]
