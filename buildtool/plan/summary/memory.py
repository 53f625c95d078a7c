"""The buffers in the arena while a region runs, what the region uses them for, and its fullest step.

Bytes are aligned; bytes that two buffers share count once. Windows count while their group runs, and scratch
while its operator runs; at other times other buffers may use their bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.graph.liveness import alias_roots
from buildtool.graph.partviews import tensors_written_in_place
from buildtool.graph.types import Graph
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.bands import lines
from buildtool.plan.schedule.schedule import Run, Steps
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Group, Plan, Region, Scheme, Step

Bytes = npt.NDArray[np.int64]


class Use(enum.StrEnum):
    """What a region uses a buffer for while it runs."""

    INPUT = "input"  # read by it, whole, or the rows of a streamed image
    OUTPUT = "output"  # made by it, whole
    KEPT = "kept"  # neither: for a later region
    RINGS = "rings"  # rows between its groups, and those that groups of bands keep
    WINDOWS = "windows"  # columns, or rows of a strip, between the operators of a group
    ACCUMULATORS = "accumulators"  # sums of its global poolings
    SCRATCH = "scratch"  # what its kernels need while they run
    WEIGHTS = "weights"  # loaded constants


class LiveBuffer(NamedTuple):
    """A buffer while a region runs: its position in Plan.buffers, and what the region uses it for."""

    buffer: int
    use: Use


class Moment(NamedTuple):
    """A step of a plan: its number, the step, and the aligned bytes that are live in it."""

    number: int
    step: Step
    bytes: int


_SIMPLE = {
    BufferKind.WEIGHTS: Use.WEIGHTS,
    BufferKind.SCRATCH: Use.SCRATCH,
    BufferKind.ACCUMULATOR: Use.ACCUMULATORS,
    BufferKind.LINES: Use.RINGS,
}


class ArenaUse:
    """Finds what each region of a plan uses the plan's buffers for."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self.plan, self.graph = plan, graph
        self.roots = alias_roots(graph)
        self.makers = {t: p for p, op in enumerate(graph.ops) for t in op.outputs}
        self.placing: dict[int, list[int]] = {}  # root -> the operators that write a part of it
        for part in tensors_written_in_place(graph):
            self.placing.setdefault(self.roots[part], []).append(self.makers[part])
        self.order = sorted(range(len(plan.buffers)), key=lambda i: plan.buffers[i].first)
        self.by_turns = {load.buffer for load in plan.loads if load.by_turns}
        self.coming = 0
        self.alive: list[int] = []

    def buffers(self, region: Region, first: int, last: int) -> list[LiveBuffer]:
        """Returns the buffers that are live in steps `first` to `last`, those of a region.

        Callers have to go through the regions in order.
        """
        buffers = self.plan.buffers
        while self.coming < len(self.order) and buffers[self.order[self.coming]].first <= last:
            self.alive.append(self.order[self.coming])
            self.coming += 1
        self.alive = [i for i in self.alive if buffers[i].last >= first]
        groups = {op: group for group in region.groups for op in group.ops}
        read: dict[int, set[Group]] = {}
        for op, group in groups.items():
            for root in {self.roots[t] for t in self.graph.ops[op].inputs if t in self.roots}:
                read.setdefault(root, set()).add(group)
        return [LiveBuffer(i, self._use(buffers[i], groups, read)) for i in sorted(self.alive)]

    def _use(self, buffer: Buffer, groups: dict[int, Group], read: dict[int, set[Group]]) -> Use:
        if buffer.kind in _SIMPLE:
            return _SIMPLE[buffer.kind]
        root = self.roots[buffer.tensors[0]]
        writers = (self.makers.get(root, -1), *self.placing.get(root, ()))
        maker = next((groups[position] for position in writers if position in groups), None)
        if buffer.kind is BufferKind.RING and maker is not None:
            inside = maker.scheme not in (Scheme.OPERATOR, Scheme.BRANCHES)
            inside = inside and read.get(root, set()) <= {maker}
            if maker.scheme is Scheme.SWAPS:  # these windows outlast a step
                inside = inside and buffer.tensors[0] not in lines(self.graph, maker)
            return Use.WINDOWS if inside else Use.RINGS
        if maker is not None:
            return Use.OUTPUT
        return Use.INPUT if root in read else Use.KEPT

    def fullest(
        self, run: Run, live: Sequence[LiveBuffer], first: int
    ) -> tuple[Moment, list[LiveBuffer], dict[int, int]]:
        """Returns a region's first step with the most live bytes, its live buffers, and bytes by operator.

        The last result is operator -> the most live bytes of its steps. `live`: the region's buffers, from
        `buffers`. `first`: the number of the region's first step.
        """
        moments, most = list[Moment](), np.full(max(run.region.ops) + 1 - SOURCE, -1, np.int64)
        for begin, steps in run.portions():
            sizes = self.by_step(run.region, live, first + begin, steps)
            np.maximum.at(most, steps[:, 0] - SOURCE, sizes)
            best = int(sizes.argmax())
            moments.append(Moment(first + begin + best, Step(*steps[best].tolist()), int(sizes[best])))
        alive = {int(op) + SOURCE: int(most[op]) for op in np.flatnonzero(most >= 0)}
        moment = max(moments, key=lambda one: one.bytes)
        live_now = self._live_in_step(self._list_lasting(live), moment.number)
        return moment, live_now + self.in_turn(run.region, live, moment.step.op), alive

    def by_step(self, region: Region, live: Sequence[LiveBuffer], first: int, steps: Steps) -> Bytes:
        """Returns the aligned live bytes in some steps of a region that follow each other.

        `live`: the region's buffers, from `buffers`. `first`: the number of the first of these steps.
        """
        lasting = self._list_lasting(live)
        turns = {p: self.in_turn(region, live, p) for p in (SOURCE, *region.ops)}
        ends = {self.plan.buffers[h.buffer].last + 1 for h in lasting}
        edges = ends | {self.plan.buffers[h.buffer].first for h in lasting}
        inside = sorted(edge - first for edge in edges if first < edge < first + len(steps))
        sizes, ops = np.empty(len(steps), np.int64), steps[:, 0] - SOURCE  # from 0
        for start, stop in pairwise((0, *inside, len(steps))):  # the same buffers last in between
            now, part = self._live_in_step(lasting, first + start), ops[start:stop]
            counts = np.bincount(part)
            for op in np.flatnonzero(counts).tolist():
                counts[op] = self.covered_bytes(now + turns[op + SOURCE])
            sizes[start:stop] = counts[part]
        return sizes

    def _live_in_step(self, lasting: Sequence[LiveBuffer], number: int) -> list[LiveBuffer]:
        """Returns those of the buffers that are live in step `number`."""
        buffers = self.plan.buffers
        return [h for h in lasting if buffers[h.buffer].first <= number <= buffers[h.buffer].last]

    def _list_lasting(self, live: Sequence[LiveBuffer]) -> list[LiveBuffer]:
        """Returns the buffers that keep their bytes as long as they live, whichever operator runs."""
        turning = (Use.WINDOWS, Use.SCRATCH)
        return [h for h in live if h.use not in turning and h.buffer not in self.by_turns]

    def in_turn(self, region: Region, live: Sequence[LiveBuffer], position: int) -> list[LiveBuffer]:
        """Returns the windows, scratch and constants that are in use while one of a region's operators runs.

        `live`: the region's buffers, from `buffers`. `position`: the operator's.
        """
        group = next((g for g in region.groups if position in g.ops), None)
        if group is None:
            return []
        found = []
        for h in live:
            buffer = self.plan.buffers[h.buffer]
            if h.buffer in self.by_turns:
                in_use = buffer.op in group.ops
            elif h.use is Use.SCRATCH:
                in_use = buffer.op in (-1, position)
            else:
                in_use = h.use is Use.WINDOWS and self._window_lives(group, buffer, position)
            if in_use:
                found.append(h)
        return found

    def _window_lives(self, group: Group, buffer: Buffer, position: int) -> bool:
        """Returns whether a window is live while the operator at `position` runs.

        In a strip a window lives from its maker to its last reader, in other groups as long as the group
        runs.
        """
        root = self.roots[buffer.tensors[0]]
        maker = self.makers[root]
        if maker not in group.ops:
            return False
        if group.scheme is not Scheme.HALO:
            return True
        readers = [p for p in group.ops if any(self.roots.get(t) == root for t in self.graph.ops[p].inputs)]
        return maker <= position <= max(readers, default=maker)

    def covered_bytes(self, live: Iterable[LiveBuffer]) -> int:
        """Returns the aligned bytes of the arena that these buffers use. Bytes that they share count once."""
        total = reached = 0
        for start, end in sorted(map(self._span, live)):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return total

    def _span(self, live: LiveBuffer) -> tuple[int, int]:
        buffer = self.plan.buffers[live.buffer]
        return buffer.offset, buffer.offset + round_up(buffer.size, self.plan.alignment)

    def parts(self, live: Sequence[LiveBuffer]) -> tuple[tuple[Use, int], ...]:
        """Returns (use, bytes) of the buffers. Bytes that several windows of a strip share count once."""
        sizes = []
        for use in Use:
            own = [h for h in live if h.use is use]
            spans = map(self._span, own)
            size = self.covered_bytes(own) if use is Use.WINDOWS else sum(end - start for start, end in spans)
            if size:
                sizes.append((use, size))
        return tuple(sizes)
