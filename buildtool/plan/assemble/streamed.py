"""From regions, some of them streamed, to a placed plan: what is kept of every tensor, and where.

Tensors between regions are whole. Inside a streamed region a tensor is a ring (between groups) or a
column window (inside a group). The windows and the kernel scratch of different groups of a region are
never in use at the same time, so they may share memory (see `workspace`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from buildtool.graph.digest import topology_digest
from buildtool.graph.liveness import alias_roots, live_ranges
from buildtool.graph.macs import pixel_macs, total_macs
from buildtool.graph.types import Graph, Op
from buildtool.plan.assemble.assemble import accounting, place
from buildtool.plan.assemble.moves import Parted, place_in_parts
from buildtool.plan.assemble.workspace import Life, Workspace, workspace
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.overlap import permitted
from buildtool.plan.schedule.receptive import accumulates, axes, row_inputs, streams
from buildtool.plan.schedule.rings import Kept, accumulator_bytes, rings
from buildtool.plan.schedule.schedule import schedule
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Overlap, Plan, Region, Step
from buildtool.target.registry import target_digest
from buildtool.target.types import KernelVariant, Target


def assemble_streamed(
    graph: Graph,
    target: Target,
    regions: tuple[Region, ...],
    kernels: Sequence[KernelVariant | None],
    *,
    strategy: str,
    in_place: str,
    image: str,
    extra: Sequence[Buffer] = (),
    apart: Container[int] = (),
    moving: bool = True,
) -> Plan:
    """The plan that runs `regions` with `kernels` (one an operator, None for aliases), placed.

    `extra`: buffers of other use, placed with the rest and last in the plan; `apart`: operators
    whose output must not lie on their input; `moving`: whether tensors may move between regions.
    """
    alignment = target.board.alignment
    runs = [schedule(region, graph, image) for region in regions]
    steps = [step for run in runs for step in run]
    lives = _lives(graph, steps, image)
    kept = _rings(graph, regions, image)
    blocks = [workspace(graph, region, kernels, alignment, in_place) for region in regions]
    pieces = [piece for block in blocks for piece in block.pieces]
    inner = {k.tensor for piece in pieces for k, _ in piece.windows}
    buffers = [*_tensors(graph, lives, kept, inner), *_accumulators(graph, regions, lives)]
    options = [
        o for o in _overlaps(graph, regions, runs, kernels, buffers, in_place, image) if o.op not in apart
    ]
    fixed: Container[int] = graph.inputs if image == "resident" else ()
    if not moving:
        fixed = range(len(graph.tensors))
    parted = _placed([*buffers, *extra], options, alignment, _Clock(runs, blocks), fixed)
    placed, known = parted.placed, len(buffers) + len(extra)
    laid = [b for b, i in zip(placed.buffers, parted.origin, strict=True) if i < len(buffers)]
    loaded = [b for b, i in zip(placed.buffers, parted.origin, strict=True) if len(buffers) <= i < known]
    after = [b for b, i in zip(placed.buffers, parted.origin, strict=True) if i >= known]
    inside = [b for piece, at in zip(pieces, after, strict=True) for b in piece.buffers(at.offset, lives)]
    executed = _executed(steps, graph)
    return Plan(
        strategy=strategy,
        topology=topology_digest(graph),
        target=target_digest(target),
        image=image,
        regions=regions,
        kernels=tuple(kernel.name if kernel else "" for kernel in kernels),
        buffers=(*laid, *inside, *loaded),
        overlaps=placed.overlaps,
        alignment=alignment,
        arena_bytes=placed.height,
        arena_bound_bytes=placed.bound,
        macs=sum(pixel_macs(graph, graph.ops[p], n) for p, n in executed.items()),
        macs_layerwise=total_macs(graph),
        cost=CostModel(graph, kernels, target.costs).regions(regions, image, _moved(parted)),
        accounting=accounting(target, image, in_place),
        moves=parted.moves,
    )


class _Clock:
    """Time as placing sees it: every region takes as many ticks as its workspace has slots.

    What is touched in a region is there from its first tick to its last, its workspace's pieces only
    in their own slots: groups take turns over and over, but one turn of each is as good as all.
    """

    def __init__(self, runs: Sequence[Sequence[Step]], blocks: Sequence[Workspace]) -> None:
        self._blocks = blocks
        self._starts = [0, *accumulate(map(len, runs))]  # region -> its first step
        self.ticks = [0, *accumulate(block.slots for block in blocks)]  # region -> its first tick

    def timed(self, buffer: Buffer) -> Buffer:
        """The buffer with its life in ticks."""
        if not self._blocks:
            return buffer  # of a network of aliases
        first = bisect_right(self._starts, buffer.first, hi=len(self._blocks)) - 1
        last = bisect_right(self._starts, buffer.last, hi=len(self._blocks)) - 1
        return replace(buffer, first=self.ticks[first], last=self.ticks[last + 1] - 1)

    def pieces(self) -> list[Buffer]:
        """All pieces of the workspaces, their lives in ticks."""
        return [
            Buffer(BufferKind.SCRATCH, "", (), piece.size, start + piece.first, start + piece.last)
            for start, block in zip(self.ticks, self._blocks, strict=False)
            for piece in block.pieces
        ]

    def lived(self, part: Buffer, whole: Buffer) -> Buffer:
        """A part of a buffer with its life in steps; `whole`: all of it, in steps."""
        timed, first, last = self.timed(whole), whole.first, whole.last
        if part.first != timed.first:
            first = self._starts[bisect_right(self.ticks, part.first) - 1]
        if part.last != timed.last:
            last = self._starts[bisect_right(self.ticks, part.last)] - 1
        return replace(part, first=first, last=last)


def _placed(
    buffers: Sequence[Buffer],
    options: Sequence[Overlap],
    alignment: int,
    clock: _Clock,
    still: Container[int],
) -> Parted:
    """The buffers where they lie, and behind them the workspaces' pieces; with moves where they help.

    Only tensors move, and none of `still`. Lives are in steps, those of the pieces mean nothing.
    """
    timed = [*map(clock.timed, buffers), *clock.pieces()]
    placed = place(timed, options, alignment)
    unmoved = Parted(placed, tuple(range(len(timed))), ())
    fixed = {i for i, b in enumerate(timed) if b.kind is not BufferKind.TENSOR or b.tensors[0] in still}
    parted = place_in_parts(timed, options, alignment, clock.ticks, fixed, placed.height) or unmoved
    lived = tuple(
        clock.lived(b, buffers[i]) if i < len(buffers) else b
        for b, i in zip(parted.placed.buffers, parted.origin, strict=True)
    )
    return replace(parted, placed=replace(parted.placed, buffers=lived))


def _executed(steps: Sequence[Step], graph: Graph) -> dict[int, int]:
    """Operator position -> pixels computed, repetitions included."""
    pixels: dict[int, int] = {}
    for step in steps:
        if step.op != SOURCE and not accumulates(graph, graph.ops[step.op]):
            pixels[step.op] = pixels.get(step.op, 0) + (step.y1 - step.y0) * (step.x1 - step.x0)
        elif step.op != SOURCE:
            pixels[step.op] = 0
    return pixels


def _moved(parted: Parted) -> list[int]:
    """Bytes of every tensor that is copied."""
    return [parted.placed.buffers[move.source].size for move in parted.moves]


def _lives(graph: Graph, steps: Sequence[Step], image: str) -> dict[int, Life]:
    """Root tensors, and operators (as -2 - position), by when their memory is touched."""
    roots = alias_roots(graph)
    lives: dict[int, Life] = {}

    def touch(key: int, number: int) -> None:
        life = lives.get(key)
        lives[key] = Life(life.first if life else number, number)

    streamed = image == "stream"
    for t in graph.inputs:
        if not streamed:
            touch(t, 0)
    for number, step in enumerate(steps):
        if step.op == SOURCE:
            touch(graph.inputs[0], number)
            continue
        touch(-2 - step.op, number)
        op = graph.ops[step.op]
        for t in (*op.inputs, *op.outputs):
            if t in roots:
                touch(roots[t], number)
    kept = list(graph.outputs) + (list(graph.inputs) if image == "resident" else [])
    for t in kept:
        if t in roots:
            touch(roots[t], max(len(steps) - 1, 0))
    return lives


def _rings(graph: Graph, regions: Sequence[Region], image: str) -> dict[int, Kept]:
    """Tensor -> what is kept of it, for the tensors that groups hand on and a streamed image."""
    streamed = (region for region in regions if region.is_streamed)
    return {kept.tensor: kept for region in streamed for kept in rings(graph, region, image)}


def _tensors(
    graph: Graph, lives: Mapping[int, Life], kept: Mapping[int, Kept], inner: set[int]
) -> list[Buffer]:
    """Whole tensors and rings; windows are part of their region's block."""
    names = {t: f"input {i}" for i, t in enumerate(graph.inputs)}
    names |= {t: f"operator {p}" for p, op in enumerate(graph.ops) for t in op.outputs}
    buffers = []
    for r in live_ranges(graph):
        root = r.tensors[0]
        life = lives.get(root)
        if root in inner or life is None:
            continue
        if root in kept:
            k = kept[root]
            buffers.append(
                Buffer(
                    BufferKind.RING,
                    names[root],
                    r.tensors,
                    k.size,
                    life.first,
                    life.last,
                    rows=k.rows,
                    columns=k.columns,
                )
            )
        else:
            buffers.append(Buffer(BufferKind.TENSOR, names[root], r.tensors, r.size, life.first, life.last))
    return buffers


def _accumulators(graph: Graph, regions: Sequence[Region], lives: Mapping[int, Life]) -> list[Buffer]:
    buffers = []
    for region in regions:
        for position in region.ops if region.is_streamed else ():
            if accumulates(graph, graph.ops[position]):
                life, size = lives[-2 - position], accumulator_bytes(graph, position)
                name = f"operator {position} sums"
                buffers.append(
                    Buffer(BufferKind.ACCUMULATOR, name, (), size, life.first, life.last, op=position)
                )
    return buffers


def _overlaps(
    graph: Graph,
    regions: Sequence[Region],
    runs: Sequence[Sequence[Step]],
    kernels: Sequence[KernelVariant | None],
    buffers: Sequence[Buffer],
    in_place: str,
    image: str,
) -> list[Overlap]:
    """What may lie on what: by contract in regions of one step, by replay in streamed ones."""
    whole = {b.tensors[0]: i for i, b in enumerate(buffers) if b.kind is BufferKind.TENSOR}
    ranges = live_ranges(graph)
    alone = {region.ops[0] for region in regions if not region.is_streamed}
    found = []
    for o in permitted(graph, ranges, kernels, in_place, image == "resident"):
        pair = (ranges[o.input].tensors[0], ranges[o.output].tensors[0])
        if o.op in alone and all(t in whole for t in pair):
            found.append(Overlap(o.op, whole[pair[0]], whole[pair[1]], o.distance))
    if in_place != "rows":
        return found
    roots = alias_roots(graph)
    last_use = {roots[t]: p for p, op in enumerate(graph.ops) for t in op.inputs if t in roots}
    pinned = {roots[t] for t in graph.outputs if t in roots}
    pinned |= set(graph.inputs) if image == "resident" else set()
    for region, run in zip(regions, runs, strict=True):
        if not region.is_streamed:
            continue
        result = roots[graph.ops[region.ops[-1]].outputs[0]]
        read = {roots[t] for p in region.ops for t in graph.ops[p].inputs if t in roots}
        for t in sorted(read & set(whole) - pinned - {result}):
            distance = region_distance(graph, run, t, result) if last_use[t] in region.ops else None
            if distance is not None and distance < graph.tensors[result].size:
                found.append(Overlap(region.ops[-1], whole[t], whole[result], distance))
    return found


def region_distance(graph: Graph, run: Sequence[Step], source: int, result: int) -> int | None:
    """Least safe offset(source) - offset(result), replaying a region; None if it writes no rows.

    `source` stands for its aliases too: rows are those of the tensor that an operator reads.
    """
    roots = alias_roots(graph)
    out_row = graph.tensors[result].nhwc[2] * graph.tensors[result].nhwc[3]
    needed: int | None = None  # first byte of the source that is still read
    distance = 0
    for step in reversed(run):
        if step.op == SOURCE:
            continue
        op = graph.ops[step.op]
        for t in op.inputs:
            if roots.get(t) == source:
                low = _first_byte(graph, op, t, step)
                needed = low if needed is None else min(needed, low)
        if result in op.outputs:
            if accumulates(graph, op):
                return None
            if needed is not None:
                distance = max(distance, step.y1 * out_row - needed)
    return distance


def _first_byte(graph: Graph, op: Op, tensor: int, step: Step) -> int:
    """Where in `tensor` a step begins to read."""
    _, _, width, channels = graph.tensors[tensor].nhwc
    if not streams(graph, op) or accumulates(graph, op):
        return step.y0 * width * channels if accumulates(graph, op) else 0
    if tensor not in row_inputs(graph, op):
        return 0
    return max(0, axes(graph, op)[0].low(step.y0)) * width * channels
