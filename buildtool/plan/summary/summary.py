"""What a plan comes to, region by region: bytes live while it runs and what they are, work, calls, cost.

Bytes are aligned and counted where buffers lie: what two buffers share counts once. Windows count
while their group runs, scratch while its operator does; in between others may have their place.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from buildtool.graph.liveness import alias_roots
from buildtool.graph.macs import op_macs, pixel_macs
from buildtool.graph.types import Graph
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.calls import Calls, region_calls
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import schedule
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Group, Plan, Region, Scheme, Step
from buildtool.target.types import Costs, KernelVariant


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


def summarize(plan: Plan, graph: Graph, kernels: Sequence[KernelVariant | None], costs: Costs) -> Summary:
    """The summary of a placed plan; `kernels`: one an operator, None for aliases; `costs`: the target's."""
    runs = [schedule(region, graph, plan.image) for region in plan.regions]
    model = CostModel(graph, kernels, costs)
    at = _Holders(plan, graph)
    found: list[RegionSummary] = []
    without, number = 0, 0
    moving: dict[int, list[int]] = {}  # step -> bytes of what is moved before it
    for move in plan.moves:
        target = plan.buffers[move.target]
        moving.setdefault(target.first, []).append(target.size)
    for region, run in zip(plan.regions, runs, strict=True):
        moved = moving.get(number, [])
        does = region_calls(graph, region, plan.image)
        own = {op: _operator_work(model, plan, region, op, does.operators[op]) for op in region.ops}
        beside = model.delivery(does.delivered) + sum(map(model.pricer.move, moved))
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
                work=_together(own.values(), does.delivered, beside),
                moved=sum(moved),
                groups=tuple(_together(own[op] for op in group.ops) for group in region.groups),
                delivered=does.delivered,
                operators=tuple((op, alive.get(op, 0), own[op]) for op in region.ops),
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


def _operator_work(model: CostModel, plan: Plan, region: Region, op: int, calls: Calls) -> Work:
    """Of one operator of a region, with what it costs that its weights are brought into the arena."""
    graph = model.graph
    cost = model.operator(op, calls, region.is_streamed)
    cost += sum(model.loading(load) for load in plan.loads if load.op == op)
    macs = executed_macs(graph, op, calls.pixels)
    return Work(macs, op_macs(graph, graph.ops[op]), calls.times, cost)


def _together(works: Iterable[Work], more_calls: int = 0, more_cost: float = 0.0) -> Work:
    """The sum of what some operators do, and of calls and costs beside them."""
    every = list(works)
    return Work(
        sum(work.macs for work in every),
        sum(work.once for work in every),
        sum(work.calls for work in every) + more_calls,
        sum(work.cost for work in every) + more_cost,
    )


def executed_macs(graph: Graph, op: int, pixels: int) -> int:
    """Multiply-accumulates of an operator that computes so many pixels, repetitions included."""
    return 0 if accumulates(graph, graph.ops[op]) else pixel_macs(graph, graph.ops[op], pixels)
