"""What a plan comes to, region by region: bytes live while it runs and what they are, work, calls, cost.

Bytes are aligned and counted where buffers lie: what two buffers share counts once. Windows count
while their group runs, scratch while its operator does; in between others may have their place.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from buildtool.graph.liveness import alias_roots
from buildtool.graph.macs import op_macs, pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.assemble.streamed import CALL_COST, MOVE_COST
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import schedule
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Group, Plan, Region, Scheme, Step
from buildtool.target import catalogue
from buildtool.target.types import KernelVariant


class Use(enum.StrEnum):
    """What a buffer is to the region that runs."""

    INPUT = "input"  # read by it, whole, or the rows of a streamed image
    OUTPUT = "output"  # made by it, whole
    KEPT = "kept"  # neither: for later
    RINGS = "rings"  # rows between its groups
    WINDOWS = "windows"  # columns, or rows of a strip, between the operators of a group
    ACCUMULATORS = "accumulators"
    SCRATCH = "scratch"
    WEIGHTS = "weights"


@dataclass(frozen=True)
class Work:
    """What some operators do in all their steps: multiply-accumulates, kernel calls, the target's cost.

    `once`: multiply-accumulates of the same operators run once, one by one.
    """

    macs: int
    once: int
    calls: int
    cost: float

    @property
    def f(self) -> float:
        """Multiply-accumulates executed over those of the operators run once."""
        return self.macs / self.once if self.once else 1.0


@dataclass(frozen=True)
class Held:
    """A buffer while a region runs: its position in Plan.buffers, what it is to the region."""

    buffer: int
    use: Use


@dataclass(frozen=True)
class Moment:
    """A step of a plan, and the aligned bytes live in it."""

    number: int
    step: Step
    bytes: int


@dataclass(frozen=True)
class RegionSummary:
    """One region: its steps [first, last], where it is fullest, what is live there, and its work.

    `parts`: (use, bytes) at the fullest step; they add up to its bytes and `shared`, which is what
    lies on each other. `held`: all buffers that are live in any of its steps. `delivered`: rows of a
    streamed image that it waits for, each a call of its `work` beside those of its groups. `operators`:
    of each, in order: its position, most bytes live in any of its steps, its own work. `moved`: bytes of
    tensors that are copied within the arena before it begins; `work` has their cost.
    """

    first: int
    last: int
    fullest: Moment
    parts: tuple[tuple[Use, int], ...]
    shared: int
    held: tuple[Held, ...]
    at_fullest: tuple[Held, ...]
    work: Work
    groups: tuple[Work, ...]
    delivered: int
    operators: tuple[tuple[int, int, Work], ...]
    moved: int


@dataclass(frozen=True)
class Summary:
    """A plan, region by region.

    `live`: bytes live in the fullest step of all, that of region `fullest`; the rest of the arena is
    lost between buffers. `without_weights`: the same if constants took no memory.
    """

    regions: tuple[RegionSummary, ...]
    fullest: int
    live: int
    without_weights: int


def summarize(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None]) -> Summary:
    """The summary of a placed plan; `kernels`: one an operator, None for aliases."""
    runs = [schedule(region, graph, plan.image) for region in plan.regions]
    by_call = _call_cost(plan, graph, kernels, runs)
    at = _Holders(plan, graph)
    found: list[RegionSummary] = []
    without, number = 0, 0
    moving: dict[int, list[int]] = {}  # step -> bytes of what is moved before it
    for move in plan.moves:
        target = plan.buffers[move.target]
        moving.setdefault(target.first, []).append(target.size)
    for region, run in zip(plan.regions, runs, strict=True):
        moved = moving.get(number, [])
        work = _work(graph, kernels, run, region.ops, by_call, whole=True)
        last = number + len(run) - 1
        held = at.held(region, number, last)
        fullest, live, alive = at.fullest(region, held, number, run)
        bare = [h for h in held if h.use is not Use.WEIGHTS]
        least = fullest if len(bare) == len(held) else at.fullest(region, bare, number, run)[0]
        without = max(without, least.bytes)
        parts = at.parts(live)
        found.append(
            RegionSummary(
                first=number,
                last=last,
                fullest=fullest,
                parts=parts,
                shared=sum(size for _, size in parts) - fullest.bytes,
                held=tuple(held),
                at_fullest=tuple(live),
                work=replace(work, cost=work.cost + sum(map(move_cost, moved))),
                moved=sum(moved),
                groups=tuple(_work(graph, kernels, run, group.ops, by_call) for group in region.groups),
                delivered=sum(step.op == SOURCE for step in run),
                operators=tuple(
                    (op, alive.get(op, 0), _work(graph, kernels, run, (op,), by_call)) for op in region.ops
                ),
            )
        )
        number = last + 1
    live_bytes = max((r.fullest.bytes for r in found), default=0)
    place = next((i for i, r in enumerate(found) if r.fullest.bytes == live_bytes), -1)
    return Summary(tuple(found), place, live_bytes, without)


def peak(plan: Plan, graph: Graph, *, weights: bool = True) -> Moment | None:
    """The first step in which most bytes are live; None for a plan without steps.

    `weights`: whether buffers of constants count.
    """
    at = _Holders(plan, graph)
    best: Moment | None = None
    number = 0
    for region in plan.regions:
        run = schedule(region, graph, plan.image)
        held = at.held(region, number, number + len(run) - 1)
        counted = [h for h in held if weights or h.use is not Use.WEIGHTS]
        moment, _, _ = at.fullest(region, counted, number, run)
        if best is None or moment.bytes > best.bytes:
            best = moment
        number += len(run)
    return best


# ---- memory --------------------------------------------------------------------------------------


class _Holders:
    """Looks up what buffers are to regions."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan, self.graph = plan, graph
        self.roots = alias_roots(graph)
        self.makers = {t: p for p, op in enumerate(graph.ops) for t in op.outputs}
        self.order = sorted(range(len(plan.buffers)), key=lambda i: plan.buffers[i].first)
        self.coming = 0
        self.alive: list[int] = []

    def held(self, region: Region, first: int, last: int) -> list[Held]:
        """The buffers live in steps [first, last]; regions have to be asked for in order."""
        buffers = self.plan.buffers
        while self.coming < len(self.order) and buffers[self.order[self.coming]].first <= last:
            self.alive.append(self.order[self.coming])
            self.coming += 1
        self.alive = [i for i in self.alive if buffers[i].last >= first]
        groups = {op: group for group in region.groups for op in group.ops}
        read: dict[int, set[Group]] = {}
        for op, group in groups.items():
            for t in self.graph.ops[op].inputs:
                if t in self.roots:
                    read.setdefault(self.roots[t], set()).add(group)
        return [Held(i, self._use(buffers[i], groups, read)) for i in sorted(self.alive)]

    def _use(self, buffer: Buffer, groups: dict[int, Group], read: dict[int, set[Group]]) -> Use:
        simple = {
            BufferKind.WEIGHTS: Use.WEIGHTS,
            BufferKind.SCRATCH: Use.SCRATCH,
            BufferKind.ACCUMULATOR: Use.ACCUMULATORS,
        }.get(buffer.kind)
        if simple is not None:
            return simple
        root = self.roots[buffer.tensors[0]]
        maker = groups.get(self.makers.get(root, -1))
        if buffer.kind is BufferKind.RING and maker is not None:
            inside = maker.scheme in (Scheme.HALO, Scheme.H_CACHED) and read.get(root, set()) <= {maker}
            return Use.WINDOWS if inside else Use.RINGS
        if maker is not None:
            return Use.OUTPUT
        return Use.INPUT if root in read else Use.KEPT

    def fullest(
        self, region: Region, held: Sequence[Held], first: int, run: Sequence[Step]
    ) -> tuple[Moment, list[Held], dict[int, int]]:
        """The first step of a region in which most bytes are live, and what is live in it.

        Last: operator -> most bytes live in any of its steps.
        """
        lasting = [h for h in held if h.use not in (Use.WINDOWS, Use.SCRATCH)]
        turns = {p: self._turn(region, held, p) for p in (SOURCE, *region.ops)}
        starts = sorted({first, *(max(first, self.plan.buffers[h.buffer].first) for h in lasting)})
        best, most, most_live = 0, -1, list[Held]()
        seen: set[tuple[int, int]] = set()
        alive: dict[int, int] = {}
        for offset, step in enumerate(run):
            number = first + offset
            state = (bisect_right(starts, number), step.op)
            if state in seen:
                continue  # nothing has begun since an earlier step of the same operator
            seen.add(state)
            live = [h for h in lasting if self._lives(h, number)] + turns[step.op]
            size = self.covered(live)
            alive[step.op] = max(size, alive.get(step.op, 0))
            if size > most:
                best, most, most_live = offset, size, live
        return Moment(first + best, run[best], most), most_live, alive

    def _lives(self, held: Held, number: int) -> bool:
        buffer = self.plan.buffers[held.buffer]
        return buffer.first <= number <= buffer.last

    def _turn(self, region: Region, held: Sequence[Held], position: int) -> list[Held]:
        """Windows and scratch that are in use while an operator of a region runs."""
        group = next((g for g in region.groups if position in g.ops), None)
        if group is None:
            return []
        found = []
        for h in held:
            buffer = self.plan.buffers[h.buffer]
            scratch = h.use is Use.SCRATCH and buffer.op in (-1, position)
            if scratch or (h.use is Use.WINDOWS and self._window_lives(group, buffer, position)):
                found.append(h)
        return found

    def _window_lives(self, group: Group, buffer: Buffer, position: int) -> bool:
        """In strips a window lives from its maker to its last reader, else while its group runs."""
        root = self.roots[buffer.tensors[0]]
        maker = self.makers[root]
        if maker not in group.ops:
            return False
        if group.scheme is not Scheme.HALO:
            return True
        readers = [p for p in group.ops if any(self.roots.get(t) == root for t in self.graph.ops[p].inputs)]
        return maker <= position <= max(readers, default=maker)

    def covered(self, held: Iterable[Held]) -> int:
        """Aligned bytes of the arena that these buffers lie in."""
        total = reached = 0
        for start, end in sorted(map(self._span, held)):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return total

    def _span(self, held: Held) -> tuple[int, int]:
        buffer = self.plan.buffers[held.buffer]
        return buffer.offset, buffer.offset + round_up(buffer.size, self.plan.alignment)

    def parts(self, live: Sequence[Held]) -> tuple[tuple[Use, int], ...]:
        """Bytes by use; windows of a strip that lie on each other count once."""
        found = []
        for use in Use:
            own = [h for h in live if h.use is use]
            spans = map(self._span, own)
            size = self.covered(own) if use is Use.WINDOWS else sum(end - start for start, end in spans)
            if size:
                found.append((use, size))
        return tuple(found)


# ---- work ----------------------------------------------------------------------------------------


def _work(
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    run: Sequence[Step],
    ops: Sequence[int],
    by_call: float,
    whole: bool = False,
) -> Work:
    """Of some of a region's operators; of the `whole` region with the deliveries of rows."""
    pixels = dict.fromkeys(ops, 0)
    calls = 0
    for step in run:
        calls += step.op in pixels or (step.op == SOURCE and whole)
        if step.op in pixels:
            pixels[step.op] += (step.y1 - step.y0) * (step.x1 - step.x0)
    macs = sum(executed_macs(graph, op, n) for op, n in pixels.items())
    once = sum(op_macs(graph, graph.ops[op]) for op in ops)
    cost = sum(_cost(graph, kernels, op, n) for op, n in pixels.items())
    return Work(macs, once, calls, cost + by_call * calls)


def executed_macs(graph: Graph, op: int, pixels: int) -> int:
    """Multiply-accumulates of an operator that computes so many pixels, repetitions included."""
    return 0 if accumulates(graph, graph.ops[op]) else pixel_macs(graph, graph.ops[op], pixels)


def _cost(graph: Graph, kernels: Sequence[KernelVariant | None], op: int, pixels: int) -> float:
    """The target's estimate in proportion to the pixels; the whole for a pooling fed part by part."""
    kernel = kernels[op]
    if kernel is None:
        return 0.0
    _, height, width, _ = graph.tensors[graph.ops[op].outputs[0]].nhwc
    share = 1.0 if accumulates(graph, graph.ops[op]) else pixels / max(1, height * width)
    return catalogue.cost(kernel, graph, graph.ops[op]) * share


def move_cost(size: int) -> float:
    """The estimate for a tensor of so many bytes that is copied within the arena."""
    return CALL_COST + MOVE_COST * size


def _call_cost(
    plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None], runs: Sequence[Sequence[Step]]
) -> float:
    """What the plan's cost counts for one call: what the operators' own costs leave of it."""
    steps = [step for run in runs for step in run]
    pixels: dict[int, int] = {}
    for step in steps:
        if step.op != SOURCE:
            pixels[step.op] = pixels.get(step.op, 0) + (step.y1 - step.y0) * (step.x1 - step.x0)
    own = sum(_cost(graph, kernels, op, n) for op, n in pixels.items())
    own += sum(move_cost(plan.buffers[move.target].size) for move in plan.moves)
    return max(0.0, plan.cost - own) / len(steps) if steps else 0.0
