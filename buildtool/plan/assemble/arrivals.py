"""Constants as they are brought into the arena: their bytes, the ways in which they come, and when.

Before their region: what is begun while a region computes is waited for before the next region that needs
any constants runs. So a region hides as many bytes as come while it computes, and constants may begin several
regions early.

While it runs, after everything is placed: turns have their buffers in the region's workspace, dead rows are
where its input lies. A region's output may lie over the rows of its input that nothing reads any more. Mostly
the rows of the input die faster than the output grows: between the output's end and the first row that is
still read some bytes are free all the time, and ever more of them. Constants of the region's last group may
lie there. They come to the end of what is free, and come again, further on, when the output gets to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from buildtool.graph.types import Graph
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.overlap import RegionOverlap, later_reads
from buildtool.plan.schedule.receptive import accumulates
from buildtool.plan.schedule.timeline import Part, Timeline, group_of, load_steps, parts
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Scheme, replace_numbers
from buildtool.target.catalogue import ChannelBytes, channel_bytes, constants_bytes, features, operands
from buildtool.target.types import KernelVariant

HEAD = 16  # bytes in front of the channels' constants; both parts are rounded up to this


@dataclass(frozen=True)
class Constants:
    """What an operator's kernel reads besides its inputs, in bytes.

    `channels` output channels of `factors` and `weights` bytes each, in this order behind a head;
    0 channels: the block cannot be cut, and where it can, then at multiples of `step`. There are bytes for
    a multiple of `unit` channels, and `tail` bytes behind them that are read, whatever is in them. The
    factors of `group` channels belong together: a slice lies within such a group, whose factors all come, or
    consists of whole groups. `scattered`: they are several blocks of the weight image.
    """

    size: int
    channels: int = 0
    factors: int = 0
    weights: int = 0
    step: int = 1
    unit: int = 1
    group: int = 1
    tail: int = 0
    scattered: bool = False

    def least_bytes(self) -> int:
        """The least that an operator needs of the arena for its constants while it runs alone."""
        whole = round_up(self.size, HEAD)
        return whole if self.channels <= self.step else min(whole, self.slice_bytes(self.step))

    def slice_bytes(self, channels: int) -> int:
        """Bytes of the block for some of the channels."""
        weights = self.weights * round_up(channels, self.unit) + self.tail
        factors = self.factors * round_up(channels, max(self.unit, self.group))
        return round_up(HEAD + factors, HEAD) + round_up(weights, HEAD)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many channels a slice can have that are not all of them, ascending."""
        steps = range(self.step, self.channels, self.step)
        return tuple(n for n in steps if self.least_width(n) == n)

    def least_width(self, channels: int) -> int:
        """The fewest channels of a slice, `channels` or more, that it can have wherever it begins."""
        found = round_up(channels, self.step)
        while found % self.group and self.group % found:
            found += self.step
        return found


@dataclass(frozen=True)
class Way:
    """How one operator's constants come: see Load."""

    channels: int
    slots: int
    bytes: int  # of the buffer
    by_turns: bool = False
    behind: bool = False  # on dead rows of the region's input

    @property
    def lasting(self) -> bool:
        """Whether the buffer is there throughout the region."""
        return not (self.by_turns or self.behind)


def constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Constants]:
    """By operator: what its kernel reads besides its inputs, by the catalogue's formulas."""
    found = {}
    for position, kernel in enumerate(kernels):
        if kernel is None:
            continue
        op = graph.ops[position]
        block = constants_bytes(kernel, graph, op)
        read = [graph.tensors[t] for t in operands(kernel, graph, op) if graph.tensors[t].is_constant]
        size = block + sum(round_up(tensor.size, HEAD) for tensor in read)
        if size:
            channel = channel_bytes(kernel, graph, op)
            one_image = graph.tensors[op.outputs[0]].nhwc[0] == 1
            cuts = channel is not None and one_image and not read
            cut = (features(graph, op)["cout"], *channel) if channel and cuts else (0, *ChannelBytes())
            found[position] = Constants(size, *cut, len(read) + bool(block) > 1)
    return found


FARTHEST = 64  # regions that constants begin early at most


@dataclass(frozen=True)
class Demand:
    """A region: bytes of its buffers of constants, of the constants that have to come before it runs, of the
    arena that it leaves free, and of the constants that come while it computes.
    """

    buffers: int
    load: int
    room: float
    hides: float


def begins(regions: Sequence[Demand], farthest: int = FARTHEST) -> list[int]:
    """Region -> the one with which its constants begin to come: itself, or one before it, `farthest` at most.

    The largest are taken first; each to where it makes the core wait least, and of these places the latest.
    """
    begin = list(range(len(regions)))
    room = [region.room for region in regions]
    left = [region.hides for region in regions]
    for index in sorted(begin[1:], key=lambda i: (-regions[i].load, i)):
        own = regions[index]
        best, least = index, float(own.load)
        for at in range(index - 1, max(-1, index - 1 - farthest), -1):
            if room[at] < own.buffers or not own.load:
                break  # the buffer is there from then on
            waits = max(0.0, own.load - max(0.0, left[at]))
            if waits < least:
                best, least = at, waits
        begin[index] = best
        if best < index:
            left[best] -= own.load
            for at in range(best, index):
                room[at] -= own.buffers
    return begin


class Trail(NamedTuple):
    """While the last group makes a part: bytes of the input that are dead, and of the output then made."""

    part: Part
    dead: int
    made: int


class Room(NamedTuple):
    """Where constants of a region's last group may lie: on dead rows of `source`, before those of `result`.

    `spare`: bytes that are free there in each of the group's parts, wherever the two are placed.
    """

    source: int
    result: int
    spare: int
    trail: tuple[Trail, ...]


def room(timeline: Timeline, index: int, overlaps: Sequence[RegionOverlap]) -> Room | None:
    """The most room that a region has, of the overlaps of its output; None where there is none."""
    run, graph = timeline.runs[index], timeline.graph
    if len(run.region.groups) < 2 or accumulates(graph, graph.ops[run.region.ops[-1]]):
        return None
    rooms, tensors = list[Room](), graph.tensors
    # an overlap that keeps them further apart is there for a reason that is not looked into
    for source, result in ((o.source, o.result) for o in overlaps if o.distance == 0):
        at, needed = later_reads(graph, run.steps, source, run.region.ops)
        dead = np.minimum(np.append(needed, tensors[source].size), tensors[source].size)
        made = parts(run, timeline, len(run.region.groups) - 1)
        low = dead[np.searchsorted(at, [part.step for part in made])].tolist()
        rows = zip(made, low, strict=True)
        trail = tuple(Trail(part, end, part.y1 * tensors[result].row_bytes) for part, end in rows)
        spare = min((one.dead // HEAD * HEAD - one.made for one in trail), default=0) // HEAD * HEAD
        if spare >= HEAD and trail[0].part.step > 0:
            rooms.append(Room(source, result, spare, trail))
    return max(rooms, key=lambda r: r.spare, default=None)


class Stack(NamedTuple):
    """Constants side by side on dead rows, from a part of the last group on that begins with a step.

    `offset`: of the lowest byte; `full`: whether the constants that took turns before are there, too.
    """

    step: int
    offset: int
    full: bool


class Site(NamedTuple):
    """Where the input and the output lie, and whether they share bytes."""

    source: int
    result: int
    covers: bool


def stacks(on: Room, size: int, full: int, site: Site) -> list[Stack]:
    """Stacks of `size` bytes, one after the other, and of `full` bytes from when there is room for these.

    Each lasts until the output gets to it. Empty where there is no room when it is needed.
    """
    made: list[Stack] = []
    is_full = size == full
    for part, dead, output in on.trail:
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


def places(lowest: Sequence[Stack], own: Sequence[Part], is_last: bool) -> list[Place]:
    """Where an operator's constants lie that are the lowest of some stacks.

    `own`: the parts of its group, `is_last`: whether that is the region's last group. Others find a new stack
    with the first rows that they make after it began.
    """
    by_step: dict[int, Place] = {}  # of two stacks that began before the same rows, the later one
    for stack in lowest:
        after = (part.step for part in own if part.step > stack.step or (is_last and part.step == stack.step))
        step = next(after, None)
        if step is not None:
            by_step[step] = Place(step, stack.offset)
    return [*by_step.values()]


@dataclass(frozen=True)
class Arrivals:
    """What comes while a timeline's regions run; `constants`: by operator."""

    timeline: Timeline
    constants: Mapping[int, Constants]
    model: CostModel

    def cost(self, plan: Plan) -> float:
        """The cost of all loads of a plan, each time that they are brought."""
        return sum(
            self.model.loading(load) for _, load in load_steps(self.timeline, plan.loads, plan.buffers)
        )

    def by_turns(self, plan: Plan, ways: Sequence[Mapping[int, Way]]) -> Plan:
        """A placed plan with the loads of constants that take turns."""
        at = {b.op: i for i, b in enumerate(plan.buffers) if b.kind is BufferKind.WEIGHTS}
        turning = [op for own in ways for op, way in own.items() if way.by_turns]
        loads = [Load(op, at[op], self.constants[op].size, by_turns=True) for op in turning]
        return replace(plan, loads=tuple(sorted([*plan.loads, *loads], key=_order)))

    def on_dead_rows(self, plan: Plan, index: int, ways: Mapping[int, Way], on: Room) -> Plan | None:
        """The plan with constants of a region on dead rows of its input; None where those that need it find
        no room there. Constants that took turns come there as well, if less is brought then.
        """
        region = self.timeline.regions[index]
        needed = [op for op, way in ways.items() if way.behind]
        others = [
            op
            for op, way in ways.items()
            if way.by_turns
            and not self.constants[op].scattered
            and region.groups[group_of(region, op)].scheme is not Scheme.BRANCHES
        ]
        tried = (self._stack_constants(plan, index, needed, more, on) for more in (others, []))
        return min((made for made in tried if made is not None), key=self.cost, default=None)

    def _stack_constants(
        self, plan: Plan, index: int, needed: Sequence[int], others: Sequence[int], on: Room
    ) -> Plan | None:
        """The plan with constants on dead rows; those of `others` from when there is room."""
        ops = [*needed, *others]
        if not ops:
            return plan
        sizes = [round_up(self.constants[op].size, HEAD) for op in ops]
        start, end = self.timeline.starts[index : index + 2]
        source, result = (
            next(b for b in plan.buffers if tensor in b.tensors and b.first < end and b.last >= start)
            for tensor in (on.source, on.result)
        )
        site = Site(source.offset, result.offset, source.touches(result))
        lowest = stacks(on, sum(sizes[: len(needed)]), sum(sizes), site)
        for op, offset in zip(ops, accumulate([0, *sizes[:-1]]), strict=True):
            own = [s._replace(offset=s.offset + offset) for s in lowest if s.full or op in needed]
            buffers = self._buffers(index, op, own)
            if buffers:
                plan = _extend_loads(plan, buffers)
            elif op in needed:
                return None
        return plan

    def _buffers(self, index: int, op: int, lowest: Sequence[Stack]) -> list[Buffer]:
        """The buffers of an operator's constants, one after the other, at the lowest bytes of some stacks."""
        run, (start, end) = self.timeline.runs[index], self.timeline.starts[index : index + 2]
        group = group_of(run.region, op)
        lying = places(lowest, parts(run, self.timeline, group), group == len(run.region.groups) - 1)
        ends = [*(start + place.step for place in lying[1:]), end]
        name, size = f"operator {op} constants", self.constants[op].size
        return [
            Buffer(BufferKind.WEIGHTS, name, (), size, start + place.step, following - 1, place.offset, op=op)
            for place, following in zip(lying, ends, strict=False)
        ]


def _extend_loads(plan: Plan, more: Sequence[Buffer]) -> Plan:
    """The plan with further buffers for the constants of an operator, which begin where its turns end."""
    op, buffers = more[0].op, list(plan.buffers)
    turns = next((load.buffer for load in plan.loads if load.op == op), None)
    if turns is not None:
        if buffers[turns].first >= more[0].first:
            return plan
        buffers[turns] = replace_numbers(buffers[turns], last=more[0].first - 1)
    loads = [*plan.loads, *(Load(op, len(buffers) + i, b.size) for i, b in enumerate(more))]
    return replace(plan, buffers=(*buffers, *more), loads=tuple(sorted(loads, key=_order)))


def _order(load: Load) -> tuple[int, bool, int]:
    """An operator's loads in the order in which they begin."""
    return load.op, not load.by_turns, load.buffer
