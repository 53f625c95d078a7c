"""Constants on rows of a region's input that are dead: behind the output's rows, which follow there later.

A region's output may lie over the rows of its input that nothing reads any more. Mostly the rows of the
input die faster than the output grows: between the output's end and the first row that is still read some
bytes are free all the time, and ever more of them. Constants of the region's last group may lie there. They
come to the end of what is free, and come again, further on, when the output gets to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from buildtool.graph.types import Graph
from buildtool.plan.assemble.overlaps import RegionOverlap, first_bytes
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.schedule import Run
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.turns import Part, parts
from buildtool.plan.types import Buffer, BufferKind

LINE = 16  # bytes to which constants are aligned


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
    return max((r for r in found if r.spare >= LINE), key=lambda r: r.spare, default=None)


def _has_trail(graph: Graph, run: Run) -> bool:
    return len(run.region.groups) > 1 and not accumulates(graph, graph.ops[run.region.ops[-1]])


def _room(timeline: Timeline, run: Run, overlap: RegionOverlap) -> Room:
    trail = _trail(timeline, run, overlap.source, overlap.result)
    spare = min((one.dead // LINE * LINE - one.made for one in trail), default=0)
    first = trail[0].part.step if trail else 0
    # an overlap that keeps them further apart is there for a reason that is not looked into
    usable = overlap.distance == 0 and first > 0
    return Room(overlap.source, overlap.result, spare // LINE * LINE if usable else 0, trail)


def _trail(timeline: Timeline, run: Run, source: int, result: int) -> tuple[Trail, ...]:
    graph, roots, steps = timeline.graph, timeline.roots, run.steps
    size = graph.tensors[source].size
    row = graph.tensors[result].row_bytes
    at, first = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for position in run.region.ops:
        op = graph.ops[position]
        mine = np.flatnonzero(steps[:, 0] == position)
        for t in op.inputs:
            if roots.get(t) == source:
                at.append(mine)
                first.append(first_bytes(graph, op, t, steps[mine, 1]))
    reads = np.concatenate(at)
    order = np.argsort(reads, kind="stable")
    needed = np.minimum.accumulate(np.concatenate([*first, [size]])[[*order, len(reads)]][::-1])[::-1]
    made = parts(run, timeline, len(run.region.groups) - 1)
    following = np.searchsorted(reads[order], [part.step for part in made])
    return tuple(
        Trail(part, int(dead), part.y1 * row)
        for part, dead in zip(made, needed[following].tolist(), strict=True)
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
        top = (site.source + dead) // LINE * LINE
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


def buffers(op: int, size: int, found: Sequence[Place], start: int, end: int) -> list[Buffer]:
    """The buffers of an operator's constants at some places; `start`, `end`: the region's steps."""
    ends = [*(start + place.step for place in found[1:]), *([end] if found else [])]
    name = f"operator {op} constants"
    return [
        Buffer(BufferKind.WEIGHTS, name, (), size, start + place.step, last - 1, place.offset, op=op)
        for place, last in zip(found, ends, strict=True)
    ]
