"""A plan over two memories: the same regions, with each buffer in one of two arenas.

The buffers that are read and written most lie where access costs least, as far as both memories have room.
The addresses of the second arena begin where the first one ends (see `Plan.second_at`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from buildtool.base.session import Session
from buildtool.graph.macs import pixel_macs
from buildtool.graph.types import Graph, Op, OpKind
from buildtool.plan.assemble.assemble import contents
from buildtool.plan.assemble.moves import in_order
from buildtool.plan.assemble.workspace import Regions, Ticks
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.spread import spread
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Overlap, Plan, replace_numbers
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant, Target


def over_two(
    plan: Plan,
    graph: Graph,
    target: Target,
    in_place: str,
    capacities: tuple[int, int],
    waits: tuple[int, int],
    session: Session | None = None,
    *,
    caches: tuple[int, int] = (0, 0),
    moving: bool = False,
) -> Plan | None:
    """Returns the plan with its buffers in two arenas of at most these capacities (bytes).

    waits: extra cost per byte that is read or written, for each memory.
    caches: bytes of the data cache of each memory; 0 if it has none.
    moving: whether tensors move as in `plan`. Otherwise no tensor moves.

    Returns None if no placement is found.
    """
    alignment = target.board.alignment
    rooms = (capacities[0] // alignment * alignment, capacities[1] // alignment * alignment)
    if min(rooms) < alignment:
        return None
    kernels = target.kernels_by_name(plan.kernels)
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    regions = Regions.of(graph, kernels, target, plan.image, in_place, session)
    facts, buffers, permitted = contents(timeline, regions)
    spaces = [known.workspace for known in facts]
    ticks, pieces = Ticks(timeline, spaces), [piece for space in spaces for piece in space.pieces]
    if moving:
        inside = sum(len(piece.inside) for piece in pieces)
        parts = list(plan.buffers[: len(plan.buffers) - inside])
        permitted = _of_parts(permitted, buffers, parts, timeline)
        buffers = parts
    prices = []
    for wait, cache in zip(waits, caches, strict=True):
        traffic = _traffic(timeline, kernels, cache)
        touched = [[b] for b in buffers] + [list(piece.inside) for piece in pieces]
        prices.append([wait * sum(map(traffic.of, together)) for together in touched])
    problem = arena_problem([*map(ticks.timed, buffers), *ticks.pieces()], permitted, alignment)
    placement = spread(problem, list(zip(*prices, strict=True)), rooms)
    if placement is None:
        return None
    second_at, total = max(alignment, placement.heights[0]), max(alignment, placement.heights[1])
    total += second_at
    sides = zip(placement.offsets, placement.second, strict=True)
    places = [offset + (second_at if second else 0) for offset, second in sides]
    placed = [replace_numbers(b, offset=at) for b, at in zip(buffers, places, strict=False)]
    for piece, at in zip(pieces, places[len(buffers) :], strict=True):
        placed += piece.buffers(at, timeline)
    moves = in_order(plan.moves, placed) if moving else ()
    if moves is None:
        return None
    moves_saved = () if moving else [plan.buffers[move.source].size for move in plan.moves]
    overlaps = tuple(
        o
        for o in permitted
        if placed[o.input].touches(placed[o.output])
        and placement.second[o.input] == placement.second[o.output]
    )
    return replace(
        plan,
        buffers=tuple(placed),
        overlaps=overlaps,
        arena_bytes=total,
        arena_bound_bytes=min(total, problem.bound.bytes),
        cost=plan.cost - sum(map(regions.model.pricer.move, moves_saved)),
        moves=moves,
        second_at=second_at,
    )


def _of_parts(
    permitted: Sequence[Overlap], buffers: Sequence[Buffer], parts: Sequence[Buffer], timeline: Timeline
) -> list[Overlap]:
    """Returns the permitted overlaps with positions in `parts` instead of `buffers`.

    `parts`: the buffers, where a tensor that moves is several parts, one after the other in time. An overlap
    is left out unless exactly one part of its input and one of its output are live while its operator runs.
    """
    overlaps = []
    for o in permitted:
        life = timeline.lives[o.op]
        live = [i for i, part in enumerate(parts) if part.first <= life.last and life.first <= part.last]
        sources, results = (
            [i for i in live if (parts[i].tensors, parts[i].kind) == (of.tensors, of.kind)]
            for of in (buffers[o.input], buffers[o.output])
        )
        if len(sources) == len(results) == 1:
            overlaps.append(replace_numbers(o, input=sources[0], output=results[0]))
    return overlaps


def in_one(plan: Plan, memory: int, alignment: int) -> Plan:
    """Returns the plan with all buffers in one of two memories (0 or 1).

    The arena in the other memory has `alignment` bytes.
    """
    if memory == 0:
        return replace(plan, arena_bytes=plan.arena_bytes + alignment, second_at=plan.arena_bytes)
    moved = tuple(replace_numbers(buffer, offset=buffer.offset + alignment) for buffer in plan.buffers)
    return replace(plan, buffers=moved, arena_bytes=plan.arena_bytes + alignment, second_at=alignment)


def count_touched_bytes(
    plan: Plan, graph: Graph, target: Target, caches: Sequence[int] = (), session: Session | None = None
) -> tuple[int, ...]:
    """Returns an estimate of the bytes that a plan's kernels read or write in each of its arenas.

    `caches`: bytes of the data cache of each memory; empty where there are no caches. `_traffic` says what is
    counted.
    """
    timeline, kernels = (
        Timeline.of(graph, plan.regions, plan.image, session),
        target.kernels_by_name(plan.kernels),
    )
    touched = []
    for index in range(len(plan.arenas)):
        used = _traffic(timeline, kernels, caches[index] if caches else 0)
        own = (b for b in plan.buffers if index == bool(plan.second_at and b.offset >= plan.second_at))
        touched.append(sum(map(used.of, own)))
    return tuple(touched)


_MIXING = frozenset({OpKind.CONV_2D, OpKind.TRANSPOSE_CONV, OpKind.FULLY_CONNECTED})
_CONVOLVING = frozenset({OpKind.CONV_2D, OpKind.DEPTHWISE_CONV_2D})
_GATHERED_BYTES = 2  # per value in the scratch: kernels widen values for the multiplier
_LINE_COPIES = 3  # copies of a row that a group of bands keeps, with a kernel of 3 rows
_SUM_BYTES = 8  # bytes read and written for every value that is added to a sum


class _Traffic(NamedTuple):
    """Numbers of bytes that kernels read and write.

    tensors: by the tensor's root (see alias_roots).
    scratch: by operator, in its scratch.
    sums: by operator, in the sums of a pooling.
    written: by operator, the bytes that it writes to its outputs.
    """

    tensors: Mapping[int, int]
    scratch: Mapping[int, int]
    sums: Mapping[int, int]
    written: Mapping[int, int]

    def of(self, buffer: Buffer) -> int:
        """Returns how many bytes of a buffer are read and written."""
        if buffer.kind is BufferKind.ACCUMULATOR:
            return self.sums.get(buffer.op, 0)
        if buffer.kind is BufferKind.LINES:
            return _LINE_COPIES * self.written.get(buffer.op, 0)
        return self.tensors.get(buffer.tensors[0], 0) if buffer.tensors else self.scratch.get(buffer.op, 0)


def _traffic(timeline: Timeline, kernels: Sequence[KernelVariant | None], cache: int) -> _Traffic:
    """Estimates how many bytes of each buffer a plan's kernels read or write, to rank buffers by use.

    A kernel with scratch copies windows of the input into it: each tap is read once from the input and
    written once into the scratch. The scratch is read once for every pair of output channels and pixels. A
    kernel without scratch reads the input instead. All other data is read or written once each time that it
    is computed.

    `cache`: bytes of a data cache, or 0. With a cache, data that is used repeatedly is fetched once: scratch
    that fits into the cache, and each row of the input if the rows for one output row fit. Copies, delivered
    rows and loads are not counted.
    """
    graph, roots = timeline.graph, timeline.roots
    pixels: dict[int, int] = {}
    for run in timeline.runs:
        for position, activity in run.activities.items():
            if position >= 0:
                pixels[position] = pixels.get(position, 0) + activity.pixels
    tensors, scratch, sums = dict[int, int](), dict[int, int](), dict[int, int]()
    outputs: dict[int, int] = {}
    for position, count in pixels.items():
        op, kernel = graph.ops[position].as_seen, kernels[position]
        columns = timeline.columns.get(position)
        size = catalogue.scratch_bytes(kernel, graph, op, columns) if kernel else 0
        read, inner = _reads(graph, op, count, bool(size))
        if cache:
            read = min(read, _fetched_bytes(graph, op, count, cache))
            inner = size if size <= cache else inner
        scratch[position] = inner
        sums[position] = 0 if cache else _SUM_BYTES * read // max(1, len(op.inputs))
        activations = [t for t in op.inputs if t in roots]
        for t in activations:
            share = read if op.kind in _MIXING else read * graph.tensors[t].size // _sizes(graph, activations)
            tensors[roots[t]] = tensors.get(roots[t], 0) + share
        for t in op.outputs:
            if t in roots:
                written = _part(graph, op, graph.tensors[t].size, count)
                tensors[roots[t]] = tensors.get(roots[t], 0) + written
                outputs[position] = outputs.get(position, 0) + written
    return _Traffic(tensors, scratch, sums, outputs)


def _sizes(graph: Graph, tensors: Sequence[int]) -> int:
    return max(1, sum(graph.tensors[t].size for t in tensors))


def _part(graph: Graph, op: Op, size: int, pixels: int) -> int:
    """Returns `size` bytes, which belong to an operator's whole output, scaled to `pixels` output pixels.

    The result is above `size` if pixels are computed more than once.
    """
    _, rows, columns, _ = graph.tensors[op.outputs[0]].nhwc
    return size * pixels // max(1, rows * columns)


def _reads(graph: Graph, op: Op, pixels: int, widened: bool) -> tuple[int, int]:
    """Returns the bytes read from the operands, and the bytes read from or written to the scratch.

    `pixels`: the number of output pixels. `widened`: whether the kernel has scratch, into which it copies
    windows.
    """
    macs = pixel_macs(graph, op, pixels)
    if not macs:
        return _part(graph, op, _sizes(graph, [t for t in op.inputs if t >= 0]), pixels), 0
    channels = graph.tensors[op.outputs[0]].nhwc[3] if op.kind in _MIXING else 1
    taps = macs // max(1, channels)
    paired = macs // 2 if op.kind in _MIXING else macs  # a pair of pixels has each tap once for two channels
    return (taps, _GATHERED_BYTES * (taps + paired)) if widened else (max(taps, paired), 0)


def _fetched_bytes(graph: Graph, op: Op, pixels: int, cache: int) -> int:
    """Returns the bytes of the operands that are fetched through a cache of `cache` bytes.

    Each row is fetched once if the rows for one output row fit into the cache. Otherwise it is fetched once
    for each output row that needs it.
    """
    activations = [t for t in op.inputs if not graph.tensors[t].is_constant]
    whole = _part(graph, op, _sizes(graph, activations), pixels)
    window = getattr(op.attrs, "kernel", None)
    height = graph.tensors[op.inputs[1]].shape[1] if op.kind in _CONVOLVING else window[0] if window else 1
    return whole if height * graph.tensors[op.inputs[0]].row_bytes <= cache else whole * height
