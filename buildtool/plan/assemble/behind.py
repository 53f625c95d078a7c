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
    _, _, width, channels = graph.tensors[result].nhwc
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
        Trail(part, int(dead), part.y1 * width * channels)
        for part, dead in zip(made, needed[following].tolist(), strict=True)
    )


class Place(NamedTuple):
    """Where constants come to with a step of the run, and the step before which they have to come again."""

    step: int
    end: int
    offset: int


def places(found: Room, size: int, source: int, result: int, covers: bool, steps: int) -> list[Place]:
    """Where `size` bytes of constants lie, one place after the other; empty where there is no room.

    `source`, `result`: where the input and the output lie; `covers`: whether they share bytes; `steps`: of
    the region.
    """
    made: list[Place] = []
    at = -1
    for part, dead, output in found.trail:
        end = result + output if covers else 0
        if at < 0 or at < end:
            at = (source + dead) // LINE * LINE - size
            if at < max(end, source):
                return []
            if made:
                made[-1] = made[-1]._replace(end=part.step)
            made.append(Place(part.step, steps, at))
    return made


def buffers(op: int, offset: int, size: int, found: Sequence[Place], start: int) -> list[Buffer]:
    """The buffers of an operator's constants: `offset` bytes behind each of the places."""
    name = f"operator {op} constants"
    return [
        Buffer(
            BufferKind.WEIGHTS,
            name,
            (),
            size,
            start + place.step,
            start + place.end - 1,
            place.offset + offset,
            op=op,
        )
        for place in found
    ]
