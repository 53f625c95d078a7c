"""When constants come: before their region, by turns while it runs, or on dead rows of its input.

Before: what is begun while a region computes is waited for before the next region that needs any constants
runs. So a region hides as many bytes as come while it computes, and constants may begin several regions
early.

While it runs, after everything is placed: turns have their buffers in the region's workspace, dead rows are
where its input lies. A region's output may lie over the rows of its input that nothing reads any more. Mostly
the rows of the input die faster than the output grows: between the output's end and the first row that is
still read some bytes are free all the time, and ever more of them. Constants of the region's last group may
lie there. They come to the end of what is free, and come again, further on, when the output gets to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from buildtool.graph.types import Graph
from buildtool.plan.assemble.constants import HEAD, Constants, Way
from buildtool.plan.assemble.overlaps import RegionOverlap, later_reads
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import Run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.turns import Part, brought, group_of, parts
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Region, Scheme, changed

FARTHEST = 64  # regions that constants begin early at most


@dataclass(frozen=True)
class Demand:
    """A region: bytes of its buffers of constants, those that have to come before it runs, bytes of the arena
    that it leaves free, and bytes that come while it computes.
    """

    buffers: int
    load: int
    room: float
    hides: float


def begins(regions: Sequence[Demand], farthest: int = FARTHEST) -> list[int]:
    """Region -> the one with which its constants begin to come: itself, or one before it, `farthest` at most.

    The largest are taken first; each to where it makes the core wait least, and of these places the latest.
    """
    found = list(range(len(regions)))
    room = [region.room for region in regions]
    left = [region.hides for region in regions]
    for index in sorted(found[1:], key=lambda i: (-regions[i].load, i)):
        own = regions[index]
        best, least = index, float(own.load)
        for at in range(index - 1, max(-1, index - 1 - farthest), -1):
            if room[at] < own.buffers or not own.load:
                break  # the buffer is there from then on
            waits = max(0.0, own.load - max(0.0, left[at]))
            if waits < least:
                best, least = at, waits
        found[index] = best
        if best < index:
            left[best] -= own.load
            for at in range(best, index):
                room[at] -= own.buffers
    return found


class Trail(NamedTuple):
    """While the last group makes a part: bytes of the input that are dead, and of the output then made."""

    part: Part
    dead: int
    made: int


class Room(NamedTuple):
    """Where constants of a region's last group may lie: on the dead rows of `source` before `result`'s.

    `spare`: bytes that are free there in each of the group's parts, wherever the two are placed.
    """

    source: int
    result: int
    spare: int
    trail: tuple[Trail, ...]


def room(timeline: Timeline, index: int, overlaps: Sequence[RegionOverlap]) -> Room | None:
    """The most room that a region has, of the overlaps of its output; None where there is none."""
    run, graph = timeline.runs[index], timeline.graph
    found = [_room(timeline, run, o) for o in overlaps if _has_trail(graph, run)]
    return max((r for r in found if r.spare >= HEAD), key=lambda r: r.spare, default=None)


def _has_trail(graph: Graph, run: Run) -> bool:
    return len(run.region.groups) > 1 and not accumulates(graph, graph.ops[run.region.ops[-1]])


def _room(timeline: Timeline, run: Run, overlap: RegionOverlap) -> Room:
    trail = _trail(timeline, run, overlap.source, overlap.result)
    spare = min((one.dead // HEAD * HEAD - one.made for one in trail), default=0)
    first = trail[0].part.step if trail else 0
    # an overlap that keeps them further apart is there for a reason that is not looked into
    usable = overlap.distance == 0 and first > 0
    return Room(overlap.source, overlap.result, spare // HEAD * HEAD if usable else 0, trail)


def _trail(timeline: Timeline, run: Run, source: int, result: int) -> tuple[Trail, ...]:
    graph = timeline.graph
    at, needed = later_reads(graph, run.steps, source, run.region.ops)
    size = graph.tensors[source].size
    dead = np.minimum(np.append(needed, size), size)
    made = parts(run, timeline, len(run.region.groups) - 1)
    following = np.searchsorted(at, [part.step for part in made])
    return tuple(
        Trail(part, low, part.y1 * graph.tensors[result].row_bytes)
        for part, low in zip(made, dead[following].tolist(), strict=True)
    )


class Stack(NamedTuple):
    """Constants side by side on dead rows, from a part of the last group on that begins with a step.

    `offset`: of the lowest byte; `full`: whether those that took turns before are there, too.
    """

    step: int
    offset: int
    full: bool


class Site(NamedTuple):
    """Where the input and the output lie, and whether they share bytes."""

    source: int
    result: int
    covers: bool


def stacks(found: Room, size: int, full: int, site: Site) -> list[Stack]:
    """Stacks of `size` bytes, one after the other, and of `full` bytes from when there is room for these.

    Each lasts until the output gets to it. Empty where there is no room when it is needed.
    """
    made: list[Stack] = []
    is_full = size == full
    for part, dead, output in found.trail:
        end = max(site.result + output if site.covers else 0, site.source)
        top = (site.source + dead) // HEAD * HEAD
        grows = not is_full and top - full >= end
        is_full = is_full or grows
        if (size or is_full) and (grows or not made or made[-1].offset < end):
            made.append(Stack(part.step, top - (full if is_full else size), is_full))
            if made[-1].offset < end:
                return []
    return made


class Place(NamedTuple):
    """Where an operator's constants lie, from a step of the run on."""

    step: int
    offset: int


def places(found: Sequence[Stack], own: Sequence[Part], is_last: bool) -> list[Place]:
    """Where an operator's constants lie that are the lowest ones of some stacks.

    `own`: what its group makes, `is_last`: as the last one of the region. Others find a new stack with the
    first rows that they make after it began.
    """
    made: dict[int, Place] = {}  # by step: of two stacks that began before the same rows, the later one
    for stack in found:
        after = (part.step for part in own if part.step > stack.step or (is_last and part.step == stack.step))
        step = next(after, None)
        if step is not None:
            made[step] = Place(step, stack.offset)
    return [*made.values()]


def buffers_at(op: int, size: int, found: Sequence[Place], start: int, end: int) -> list[Buffer]:
    """The buffers of an operator's constants at some places; `start`, `end`: the region's steps."""
    ends = [*(start + place.step for place in found[1:]), *([end] if found else [])]
    name = f"operator {op} constants"
    return [
        Buffer(BufferKind.WEIGHTS, name, (), size, start + place.step, last - 1, place.offset, op=op)
        for place, last in zip(found, ends, strict=True)
    ]


@dataclass(frozen=True)
class Arrivals:
    """What comes while a timeline's regions run; `constants`: by operator."""

    timeline: Timeline
    constants: Mapping[int, Constants]
    model: CostModel

    def brought(self, plan: Plan) -> list[Load]:
        """Every load of a plan, each time that it is brought."""
        return [load for _, load in brought(self.timeline, plan.loads, plan.buffers)]

    def by_turns(self, plan: Plan, ways: Sequence[Mapping[int, Way]]) -> Plan:
        """A placed plan with the loads of constants that take turns."""
        at = {b.op: i for i, b in enumerate(plan.buffers) if b.kind is BufferKind.WEIGHTS}
        found = [
            Load(op, at[op], self.constants[op].size, by_turns=True)
            for own in ways
            for op, way in own.items()
            if way.by_turns
        ]
        return replace(plan, loads=tuple(sorted([*plan.loads, *found], key=_order)))

    def on_dead_rows(self, plan: Plan, index: int, ways: Mapping[int, Way], room: Room) -> Plan | None:
        """The plan with constants of a region on dead rows of its input; None where those that need it find
        no room there. Those that took turns come there as well, if less is brought then.
        """
        needed = [op for op, way in ways.items() if way.behind]
        region = self.timeline.regions[index]
        others = [op for op, way in ways.items() if way.by_turns and self._wanders(region, op)]
        made = (self._stacked(plan, index, needed, more, room) for more in (others, []))
        found = [tried for tried in made if tried is not None]
        return min(found, key=self._cost, default=None)

    def _cost(self, plan: Plan) -> float:
        return sum(map(self.model.loading, self.brought(plan)))

    def _wanders(self, region: Region, op: int) -> bool:
        """Whether an operator's constants can come to one place after the other."""
        scheme = region.groups[group_of(region, op)].scheme
        return scheme is not Scheme.BRANCHES and not self.constants[op].scattered

    def _stacked(
        self, plan: Plan, index: int, needed: Sequence[int], others: Sequence[int], room: Room
    ) -> Plan | None:
        """The plan with constants on dead rows; those of `others` from when there is room."""
        ops = [*needed, *others]
        if not ops:
            return plan
        sizes = [round_up(self.constants[op].size, HEAD) for op in ops]
        most = sum(sizes[: len(needed)])
        start, end = self.timeline.starts[index : index + 2]
        found = stacks(room, most, sum(sizes), _site(plan.buffers, room, start, end))
        for op, offset in zip(ops, accumulate([0, *sizes[:-1]]), strict=True):
            below = [Stack(s.step, s.offset + offset, s.full) for s in found if s.full or op in needed]
            made = self._places(index, op, below)
            if made:
                plan = _led_on(plan, made)
            elif op in needed:
                return None
        return plan

    def _places(self, index: int, op: int, found: Sequence[Stack]) -> list[Buffer]:
        """An operator's buffers, one after the other, at the lowest bytes of some stacks."""
        run, timeline = self.timeline.runs[index], self.timeline
        group, (start, end) = group_of(run.region, op), timeline.starts[index : index + 2]
        is_last = group == len(run.region.groups) - 1
        lying = places(found, parts(run, timeline, group), is_last)
        return buffers_at(op, self.constants[op].size, lying, start, end)


def _led_on(plan: Plan, made: Sequence[Buffer]) -> Plan:
    """The plan with further buffers for the constants of an operator, which begin where its turns end."""
    op, buffers = made[0].op, list(plan.buffers)
    turns = next((load.buffer for load in plan.loads if load.op == op), None)
    if turns is not None:
        if buffers[turns].first >= made[0].first:
            return plan
        buffers[turns] = changed(buffers[turns], last=made[0].first - 1)
    size = made[0].size
    loads = [*plan.loads, *(Load(op, len(buffers) + i, size) for i in range(len(made)))]
    return replace(plan, buffers=(*buffers, *made), loads=tuple(sorted(loads, key=_order)))


def _order(load: Load) -> tuple[int, bool, int]:
    """An operator's loads in the order in which they begin."""
    return load.op, not load.by_turns, load.buffer


def _site(buffers: Sequence[Buffer], room: Room, start: int, end: int) -> Site:
    """Where a region's input and output lie; `start`, `end`: its steps."""
    source, result = (
        next(b for b in buffers if tensor in b.tensors and b.first < end and b.last >= start)
        for tensor in (room.source, room.result)
    )
    return Site(source.offset, result.offset, source.touches(result))
