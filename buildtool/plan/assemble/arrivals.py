"""How constants are loaded into the arena: their bytes, the ways of loading, and the times.

Before their region: a load may begin while an earlier region computes. The next region that needs any
constants waits for its end. So a region hides the bytes that are loaded while it computes, and a load may
begin several regions early.

While their region runs: constants that are loaded at each turn have buffers in the region's workspace. Other
constants lie on dead rows of the region's input. Mostly the rows of the input die faster than the output
grows over them. So some bytes between the end of the output and the first row that is still read are always
free, and their number grows. Constants of the region's last group may lie at the end of these free bytes.
When the output reaches them, they are loaded again at a higher address.
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
from buildtool.plan.schedule.receptive import fed_in_parts
from buildtool.plan.schedule.timeline import Part, Timeline, group_of, load_steps, parts
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Scheme, replace_numbers
from buildtool.target.catalogue import ChannelBytes, channel_bytes, constants_bytes, features, operands
from buildtool.target.types import KernelVariant

HEAD = 16  # a head, the channels' factors and their weights are each rounded up to this


@dataclass(frozen=True)
class Constants:
    """The constants that an operator's kernel reads besides its inputs. Sizes are in bytes.

    They are `head` bytes, then `factors` bytes for each of `channels` output channels, then `weights` bytes
    for each. With 0 channels the block cannot be cut, otherwise it can be cut at multiples of `step`. Factors
    are padded to a multiple of `padded` channels, weights to a multiple of `unit`. The kernel also reads
    `tail` bytes behind it, whose values do not matter. The factors of `group` channels belong together: a
    slice consists of whole groups, or lies within one group and has all of its factors, but only its own
    weights. `range`: where in the head a range of channels lies (0: nowhere). Slices of `usual` channels or
    more take little more time than the block. `scattered`: the constants are several blocks of the weight
    image.
    """

    size: int
    channels: int = 0
    factors: int = 0
    weights: int = 0
    step: int = 1
    unit: int = 1
    group: int = 1
    tail: int = 0
    padded: int = 1
    head: int = HEAD
    range: int = 0
    usual: int = 1
    scattered: bool = False

    def least_bytes(self, narrow: bool = True) -> int:
        """The smallest number of arena bytes for an operator's constants while it runs alone.

        Without `narrow`, slices have at least the usual width.
        """
        whole, width = round_up(self.size, HEAD), self.step if narrow else self.usual
        return whole if self.channels <= width else min(whole, self.slice_bytes(width))

    def slice_bytes(self, channels: int) -> int:
        """Bytes of a block with this many channels."""
        weights = self.weights * round_up(channels, self.row_unit(channels)) + self.tail
        factors = self.factors * min(
            round_up(channels, max(self.padded, self.group)), round_up(self.channels, self.padded)
        )
        return round_up(self.head + factors, HEAD) + round_up(weights, HEAD)

    def row_unit(self, channels: int) -> int:
        """The channels to a multiple of which the weights of slices of this width are padded."""
        return 1 if channels < self.group else self.unit

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The possible numbers of channels of a slice, ascending. The number of all channels is left out."""
        steps = range(self.step, self.channels, self.step)
        return tuple(n for n in steps if self.least_width(n) == n)

    def least_width(self, channels: int) -> int:
        """The smallest number of channels, at least `channels`, that any slice can have."""
        width = round_up(channels, self.step)
        while width % self.group and self.group % width:
            width += self.step
        return width


@dataclass(frozen=True)
class Way:
    """How one operator's constants are loaded: see Load."""

    channels: int
    slots: int
    bytes: int  # of the buffer
    by_turns: bool = False
    behind: bool = False  # on dead rows of the region's input

    @property
    def lasting(self) -> bool:
        """Whether the buffer is live throughout the region."""
        return not (self.by_turns or self.behind)


def constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Constants]:
    """Operator -> the constants of its kernel, by the catalogue's formulas."""
    blocks = {}
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
            blocks[position] = Constants(size, *cut, len(read) + bool(block) > 1)
    return blocks


FARTHEST = 64  # a load begins at most this many regions early


@dataclass(frozen=True)
class Demand:
    """What a region needs for its constants, and what it leaves for other loads, in bytes.

    `buffers`: the size of its buffers of constants. `load`: the size of the constants that are loaded before
    it runs. `room`: free bytes of the arena. `hides`: the bytes of constants that can be loaded while it
    computes.
    """

    buffers: int
    load: int
    room: float
    hides: float


def begins(regions: Sequence[Demand], farthest: int = FARTHEST) -> list[int]:
    """For each region, the region at whose start the load of its constants begins.

    It is the region itself, or one of the `farthest` regions before it. The largest load is placed first.
    Each load begins where the core waits least for it; among equally good regions, with the latest one.
    """
    begin = list(range(len(regions)))
    room = [region.room for region in regions]
    hidden = [region.hides for region in regions]
    for index in sorted(begin[1:], key=lambda i: (-regions[i].load, i)):
        own = regions[index]
        best, least = index, float(own.load)
        for at in range(index - 1, max(-1, index - 1 - farthest), -1):
            if room[at] < own.buffers or not own.load:
                break  # the buffer is live from then on
            waits = max(0.0, own.load - max(0.0, hidden[at]))
            if waits < least:
                best, least = at, waits
        begin[index] = best
        if best < index:
            hidden[best] -= own.load
            for at in range(best, index):
                room[at] -= own.buffers
    return begin


class Trail(NamedTuple):
    """A part of the last group.

    `dead`: bytes of the input that are no longer read when the part begins. `made`: bytes of the output when
    it ends.
    """

    part: Part
    dead: int
    made: int


class Room(NamedTuple):
    """Where constants of a region's last group may lie: after the rows of `result`, on dead rows of `source`.

    `spare`: bytes that are free there during each of the group's parts, wherever the two tensors are placed.
    """

    source: int
    result: int
    spare: int
    trail: tuple[Trail, ...]


def room(timeline: Timeline, index: int, overlaps: Sequence[RegionOverlap]) -> Room | None:
    """The largest room among the overlaps of a region's output; None where there is no room."""
    run, graph = timeline.runs[index], timeline.graph
    if len(run.region.groups) < 2 or fed_in_parts(graph, graph.ops[run.region.ops[-1]]):
        return None
    rooms, tensors = list[Room](), graph.tensors
    # only overlaps without a distance: the others have reasons that are not analysed here
    for source, result in ((o.source, o.result) for o in overlaps if o.distance == 0):
        at, needed = later_reads(graph, run.steps, source, run.region.ops)
        dead = np.minimum(np.append(needed, tensors[source].size), tensors[source].size)
        group_parts = parts(run, timeline, len(run.region.groups) - 1)
        low = dead[np.searchsorted(at, [part.step for part in group_parts])].tolist()
        rows = zip(group_parts, low, strict=True)
        trail = tuple(Trail(part, end, part.y1 * tensors[result].row_bytes) for part, end in rows)
        spare = min((one.dead // HEAD * HEAD - one.made for one in trail), default=0) // HEAD * HEAD
        if spare >= HEAD and trail[0].part.step > 0:
            rooms.append(Room(source, result, spare, trail))
    return max(rooms, key=lambda r: r.spare, default=None)


class Stack(NamedTuple):
    """Constants that lie side by side on dead rows from `step` on. A part of the last group begins at `step`.

    `offset`: the lowest byte. `full`: whether the stack includes the constants that were loaded at each turn
    before.
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
    """Returns stacks that follow each other in time: of `size` bytes, later of `full` bytes if there is room.

    Each stack lasts until the output grows into it. The list is empty if at some time there is no room.
    """
    stacked: list[Stack] = []
    is_full = size == full
    for part, dead, output in on.trail:
        end = max(site.result + output if site.covers else 0, site.source)
        top = (site.source + dead) // HEAD * HEAD
        grows = not is_full and top - full >= end
        is_full = is_full or grows
        if (size or is_full) and (grows or not stacked or stacked[-1].offset < end):
            stacked.append(Stack(part.step, top - (full if is_full else size), is_full))
            if stacked[-1].offset < end:
                return []
    return stacked


class Place(NamedTuple):
    """The offset of an operator's constants from a step of the run on."""

    step: int
    offset: int


def places(lowest: Sequence[Stack], own: Sequence[Part], is_last: bool) -> list[Place]:
    """The places of one operator's constants over time, if they are the lowest constants in each stack.

    `own`: the parts of the operator's group. `is_last`: whether this is the region's last group. Another
    group uses a new stack from the first part that it begins after the stack.
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
    """Adds to plans the loads that happen while a timeline's regions run. `constants`: by operator."""

    timeline: Timeline
    constants: Mapping[int, Constants]
    model: CostModel

    def cost(self, plan: Plan) -> float:
        """The cost of all loads of a plan, repetitions included."""
        return sum(
            self.model.loading(load) for _, load in load_steps(self.timeline, plan.loads, plan.buffers)
        )

    def by_turns(self, plan: Plan, ways: Sequence[Mapping[int, Way]]) -> Plan:
        """Adds the loads that repeat at each turn to the placed plan, and returns it."""
        at = {b.op: i for i, b in enumerate(plan.buffers) if b.kind is BufferKind.WEIGHTS}
        turning = [op for own in ways for op, way in own.items() if way.by_turns]
        loads = [Load(op, at[op], self.constants[op].size, by_turns=True) for op in turning]
        return replace(plan, loads=tuple(sorted([*plan.loads, *loads], key=_order)))

    def on_dead_rows(self, plan: Plan, index: int, ways: Mapping[int, Way], on: Room) -> Plan | None:
        """Places constants of a region on dead rows of its input, and returns the plan.

        Returns None if there is no room for the constants that have to lie there. Constants that are loaded
        at each turn are placed there, too, if that costs less.
        """
        region = self.timeline.regions[index]
        behind = [op for op, way in ways.items() if way.behind]
        others = [
            op
            for op, way in ways.items()
            if way.by_turns
            and not self.constants[op].scattered
            and region.groups[group_of(region, op)].scheme is not Scheme.BRANCHES
        ]
        plans = (self._stack_constants(plan, index, behind, more, on) for more in (others, []))
        return min((made for made in plans if made is not None), key=self.cost, default=None)

    def _stack_constants(
        self, plan: Plan, index: int, needed: Sequence[int], others: Sequence[int], on: Room
    ) -> Plan | None:
        """Places constants on dead rows: of `needed` at once, of `others` as soon as there is room."""
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
        """The buffers of an operator's constants, which follow each other in time.

        `lowest`: stacks whose `offset` is the offset of these constants.
        """
        run, (start, end) = self.timeline.runs[index], self.timeline.starts[index : index + 2]
        group = group_of(run.region, op)
        spots = places(lowest, parts(run, self.timeline, group), group == len(run.region.groups) - 1)
        ends = [*(start + place.step for place in spots[1:]), end]
        name, size = f"operator {op} constants", self.constants[op].size
        return [
            Buffer(BufferKind.WEIGHTS, name, (), size, start + place.step, following - 1, place.offset, op=op)
            for place, following in zip(spots, ends, strict=False)
        ]


def _extend_loads(plan: Plan, more: Sequence[Buffer]) -> Plan:
    """Adds buffers for an operator's constants to a plan, with their loads.

    If the operator has a buffer that is loaded at each turn, that buffer's life ends where the new ones
    begin.
    """
    op, buffers = more[0].op, list(plan.buffers)
    turns = next((load.buffer for load in plan.loads if load.op == op), None)
    if turns is not None:
        if buffers[turns].first >= more[0].first:
            return plan
        buffers[turns] = replace_numbers(buffers[turns], last=more[0].first - 1)
    loads = [*plan.loads, *(Load(op, len(buffers) + i, b.size) for i, b in enumerate(more))]
    return replace(plan, buffers=(*buffers, *more), loads=tuple(sorted(loads, key=_order)))


def _order(load: Load) -> tuple[int, bool, int]:
    """A sorting key: it puts an operator's loads in the order in which they begin."""
    return load.op, not load.by_turns, load.buffer
