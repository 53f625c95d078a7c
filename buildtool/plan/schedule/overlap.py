"""How far an output may lie over an input that dies there, and which buffers may therefore share bytes.

For an operator that runs by itself, the kernel's overlap contract says how far. For a streamed region, its
steps do: its output may cover the bytes that no later step of the region reads.

With the output at address o and the input at i, `distance` is the smallest d such that every i >= o + d is
safe. Writing output row q touches at most [o, o + (q + 1) * out_row). Under the contract `row` the kernel may
from row q on still read the input rows from i + max(0, q * stride - pad) * in_row on. It reads no more rows
once q * stride - pad is beyond the input. So

    d = max over q of (q + 1) * out_row - max(0, q * stride - pad) * in_row.

With dilation, taps only lie further up in memory. Under the contract `pixel`, element e is written after all
elements up to e have been read: d = max over all e except the last of (e + 1) * (bytes of an output element -
bytes of an input element), which is 0 if both have the same size.

Under the contract `parts` (of a concatenation) the output has m lines of S bytes. In each line this part has
n bytes, and the parts before it have s bytes. Writing its line q ends below its own lines from q + 1 on if i
+ (q + 1) * n >= o + q * S + s + n. Writing the parts before it ends at o + (m - 1) * S + s:

    d = (m - 1) * (S - n) + s for the first part, (m - 1) * S + s for the others.

With one line (parts below each other) each part may already lie where it is copied to.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.base.modes import Image, InPlace
from buildtool.graph.fusions import fusions
from buildtool.graph.liveness import LiveRange, alias_roots, state_of
from buildtool.graph.ops import ALIAS_KINDS, PIXEL_KINDS, SLIDING_KINDS
from buildtool.graph.partviews import parts
from buildtool.graph.types import AxisAttrs, Graph, Op, OpKind, Tensor
from buildtool.plan.schedule.axis import Axis
from buildtool.plan.schedule.delivery import delivered_image
from buildtool.plan.schedule.receptive import axes, fed_in_parts, row_inputs, streams
from buildtool.plan.schedule.schedule import Run, Steps
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Overlap, Region
from buildtool.target.types import Contract, KernelVariant

IN_PLACE = tuple(InPlace)  # the contracts that may be used: all, `pixel` only, none


def distance(graph: Graph, op: Op, operand: int, contract: Contract) -> int | None:
    """Returns the smallest safe distance in bytes from the output's start to the start of input `operand`.

    The kernel's contract and the shapes decide. The caller checks that the operand dies here. Returns None if
    the two may not overlap.
    """
    if len(op.outputs) != 1 or op.outputs[0] in parts(graph):
        return None  # the bytes between the output's pixels belong to other tensors
    source, result = graph.tensors[operand], graph.tensors[op.outputs[0]]
    same_shape = source.shape == result.shape  # a broadcast operand is read again and again
    if contract is Contract.PIXEL and same_shape:
        return max(0, (result.elements - 1) * (result.dtype.size - source.dtype.size))
    if contract is Contract.ROW:
        along = op.kind in PIXEL_KINDS and same_shape
        along = along or (op.kind in SLIDING_KINDS and operand == op.inputs[0])
        # in a batch, the rows of the next image do not follow this image's rows
        single = result.nhwc[0] == source.nhwc[0] == 1
        return _row_distance(axes(graph, op)[0], source, result) if along and single else None
    # a part that is copied to several places must not be overwritten
    if contract is Contract.PARTS and op.kind is OpKind.CONCATENATION and op.inputs.count(operand) == 1:
        assert isinstance(op.attrs, AxisAttrs)
        lines = math.prod(result.shape[: op.attrs.axis])
        before = op.inputs[: op.inputs.index(operand)]
        own = source.size // lines if not before else 0
        offset = sum(graph.tensors[t].size for t in before) // lines
        return (lines - 1) * (result.size // lines - own) + offset
    return None


def _row_distance(rows: Axis, source: Tensor, result: Tensor) -> int:
    """Returns the distance in bytes under the contract `row`, by the formula at the top of this file.

    `rows`: the operator's row axis. The formula is linear in q on both sides of one bend, so the ends of both
    sides are enough.
    """
    stride, pad = rows.stride, rows.pad
    in_rows, out_rows = source.nhwc[1], result.nhwc[1]
    in_row, out_row = source.size // max(in_rows, 1), result.size // max(out_rows, 1)
    reading = min(out_rows, -(-(in_rows + pad) // stride))  # output rows whose window begins in the input
    bend = -(-pad // stride)  # the first output row whose window does not begin above the input
    ends = {0, bend - 1, bend, reading - 1} & set(range(reading))
    return max(((q + 1) * out_row - max(0, q * stride - pad) * in_row for q in ends), default=0)


def slices_in_place(graph: Graph, op: Op) -> bool:
    """Returns whether an operator that computes slices of its channels may still write over its input.

    Each slice of channels reads all of the input, except in a depthwise convolution: there each output
    channel depends on the same input channel only. If the output lies whole pixels below the input, no slice
    writes over bytes that another one reads. This does not hold in a wider tensor, whose pixels are further
    apart.
    """
    if op.kind is not OpKind.DEPTHWISE_CONV_2D or op.seen:
        return False
    return graph.tensors[op.inputs[0]].nhwc[3] == graph.tensors[op.outputs[0]].nhwc[3]


def permitted_overlaps(
    graph: Graph,
    ranges: Sequence[LiveRange],
    kernels: Sequence[KernelVariant | None],
    in_place: str,
    resident: bool,
) -> tuple[Overlap, ...]:
    """Returns every overlap of an operator's output with its input that the kernels' contracts allow.

    The input has to die at the operator, which reads it once. It must not be a network output nor, if
    `resident`, a network input. Overlaps that save nothing are left out.

    ranges: the graph's live ranges. The buffers of the overlaps are positions in it.
    kernels: one per operator, None for aliases.
    in_place: the contracts that may be used.
    resident: whether the network's inputs stay in memory to the end.
    """
    contracts = {
        InPlace.ROWS: {Contract.ROW, Contract.PIXEL, Contract.PARTS},
        InPlace.ELEMENTWISE: {Contract.PIXEL},
        InPlace.NONE: set(),
    }[InPlace(in_place)]
    holder = {t: index for index, r in enumerate(ranges) for t in r.tensors}
    overlaps, states = [], state_of(graph)
    for position, (op, kernel) in enumerate(zip(graph.ops, kernels, strict=True)):
        if kernel is None or kernel.overlap not in contracts or op.kind in ALIAS_KINDS:
            continue
        if op.outputs[0] in states:
            continue
        holders = [holder[t] for t in op.inputs if t in holder]
        for operand in (t for t in op.inputs if t in holder and holders.count(holder[t]) == 1):
            life = ranges[holder[operand]]
            if life.last != position or life.is_output or (resident and life.is_input):
                continue
            offset = distance(graph, op, operand, kernel.overlap)
            if offset is not None and offset < graph.tensors[op.outputs[0]].size:
                overlaps.append(Overlap(position, holder[operand], holder[op.outputs[0]], offset))
    return tuple(overlaps)


Ints = npt.NDArray[np.int64]


class RegionOverlap(NamedTuple):
    """Permission for a streamed region's output to lie over an input. `op` and `distance` are as in Overlap.

    `source`, `result`: the roots (see alias_roots) of the input and of the output.
    """

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
    """Returns every safe overlap, with `input` and `output` as positions in `buffers`.

    permitted: the result of `permitted_overlaps`, with positions of live ranges.
    regions: the overlaps of the streamed regions (see `of_region`).
    apart: operators whose output must not lie over their input.
    """
    whole = {b.tensors[0]: i for i, b in enumerate(buffers) if b.kind is BufferKind.TENSOR}
    image = delivered_image(timeline.graph).input if timeline.image == Image.STREAM else -1
    in_ring = [(image, i) for i, b in enumerate(buffers) if b.rows and image in b.tensors[:1]]
    sources = whole | dict(in_ring)
    alone = {region.ops[0] for region in timeline.regions if not region.is_streamed}
    roots = [shared.tensors[0] for shared in timeline.ranges]
    by_contract = (
        RegionOverlap(o.op, roots[o.input], roots[o.output], o.distance) for o in permitted if o.op in alone
    )
    return [
        Overlap(o.op, sources[o.source], whole[o.result], o.distance)
        for o in (*by_contract, *regions)
        if o.source in sources and o.result in whole and o.op not in apart
    ]


def of_region(
    graph: Graph,
    run: Run,
    kernels: Sequence[KernelVariant | None],
    last_reads: Mapping[int, int],
    kept: Container[int],
) -> Iterator[RegionOverlap]:
    """Yields the safe overlaps of a streamed region's outputs with tensors that die in the region.

    kernels: one per operator of the graph, None for aliases.
    last_reads: root (see alias_roots) of a tensor that dies -> the operator where it dies.
    kept: tensors of the region that are never whole.
    """
    roots, ops = alias_roots(graph), run.region.ops
    image = delivered_image(graph).tensor if SOURCE in run.activities else -1
    in_ring = image in kept
    fusion = next((one for one in fusions(graph) if (one.first, one.last) == (ops[0], ops[-1])), None)
    if fusion is not None:  # each slice may take the place of the branch's end that has its shape
        ends = zip(fusion.parts, fusion.results, strict=True)
        pairs = [(op, part, result) for op, (part, result) in enumerate(ends, fusion.first + 1)]
    else:
        result = roots[graph.ops[ops[-1]].outputs[0]]
        read = {roots[t] for p in ops for t in graph.ops[p].inputs if t in roots} - {result}
        read -= {roots[image]} if in_ring else set()
        dying = (t for t in sorted(read) if t not in kept and last_reads.get(t, -1) in ops)
        pairs = [(ops[-1], t, result) for t in dying]
    steps = run.steps if pairs else np.empty((0, 5), np.int32)
    for op, source, result in pairs:
        from_steps = region_distance(graph, steps, source, result, ops)
        from_contract = _distance_of_rows(graph, run.region, kernels, source)
        least = min((d for d in (from_steps, from_contract) if d is not None), default=None)
        if least is not None and least < graph.tensors[result].size:
            yield RegionOverlap(op, source, result, least)
    if fusion is None and in_ring:
        after_image = image_distance(graph, run, roots[image], result)
        if after_image is not None and after_image < graph.tensors[result].size:
            yield RegionOverlap(ops[-1], roots[image], result, after_image)


def image_distance(graph: Graph, run: Run, image: int, result: int) -> int | None:
    """Returns how many bytes of a region's output are made before its first group ends.

    The rest of the output may lie over the ring of a streamed image that only this group reads. Returns None
    if other groups read it, too, or if the output is not made row by row. `image`, `result`: the roots of
    both.
    """
    roots, (first, *later) = alias_roots(graph), run.region.groups
    last = graph.ops[run.region.ops[-1]]
    read = {roots.get(t) for group in later for position in group.ops for t in graph.ops[position].inputs}
    if not later or image in read or fed_in_parts(graph, last):
        return None
    rows = made = 0  # of the output: so far, and up to the first group's last step so far
    for _, steps in run.portions():
        own = np.flatnonzero(np.isin(steps[:, 0], (SOURCE, *first.ops)))
        ends = np.where(steps[:, 0] == run.region.ops[-1], steps[:, 2], 0)
        if len(own):
            made = max(rows, int(ends[: own[-1]].max(initial=0)))
        rows = max(rows, int(ends.max(initial=0)))
    return made * graph.tensors[result].row_bytes


def _distance_of_rows(
    graph: Graph, region: Region, kernels: Sequence[KernelVariant | None], source: int
) -> int | None:
    """Returns the distance by the kernel's contract, for an operator that is a region and makes whole rows.

    It may be less than the distance that follows from the steps, because the kernel works row by row within a
    call of several rows. Returns None for any other region, and where the contract allows no overlap.
    """
    kernel = kernels[region.ops[0]]
    if len(region.ops) > 1 or region.groups[0].hand_off or kernel is None:
        return None
    op, roots = graph.ops[region.ops[0]], alias_roots(graph)
    operands = [t for t in op.inputs if roots.get(t) == source]
    if len(operands) != 1 or fed_in_parts(graph, op) or kernel.overlap not in (Contract.ROW, Contract.PIXEL):
        return None
    return distance(graph, op, operands[0], kernel.overlap)


def region_distance(graph: Graph, steps: Steps, source: int, result: int, ops: Sequence[int]) -> int | None:
    """Returns the smallest difference offset(source) - offset(result) that is safe in a region's steps.

    The unit is bytes. `ops`: the region's operators. `source` stands for its aliases, too; the rows are those
    of the alias that an operator reads. Returns None if the result is not made row by row.
    """
    makers = [position for position in ops if result in graph.ops[position].outputs]
    if any(fed_in_parts(graph, graph.ops[position]) for position in makers):
        return None
    at, needed = later_reads(graph, steps, source, ops)
    written = np.flatnonzero(np.isin(steps[:, 0], makers))
    following = np.searchsorted(at, written)
    matters = following < len(needed)
    rows = steps[written[matters], 2].astype(np.int64)
    apart = rows * graph.tensors[result].row_bytes - needed[following[matters]]
    return max(0, int(apart.max(initial=0)))


def later_reads(graph: Graph, steps: Steps, source: int, ops: Sequence[int]) -> tuple[Ints, Ints]:
    """Returns the steps that read a tensor, and for each the lowest byte that it or a later step reads.

    `source`: the tensor's root (see alias_roots). `ops`: the operators whose steps are looked at.
    """
    roots = alias_roots(graph)
    at, first = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for position in ops:
        op = graph.ops[position]
        for t in (t for t in op.inputs if roots.get(t) == source):
            mine = np.flatnonzero((steps[:, 0] == position) & (steps[:, 1] < steps[:, 2]))
            # the first row that the step makes; below, the first row that it reads
            row = steps[mine, 1].astype(np.int64)
            if not fed_in_parts(graph, op):
                by_row = streams(graph, op) and t in row_inputs(graph, op)
                row = np.maximum(0, axes(graph, op)[0].lows(row)) if by_row else np.zeros_like(row)
            at.append(mine)
            first.append(row * graph.tensors[t].row_bytes)
    reads = np.concatenate(at)
    order = np.argsort(reads, kind="stable")
    return reads[order], np.minimum.accumulate(np.concatenate(first)[order][::-1])[::-1]
