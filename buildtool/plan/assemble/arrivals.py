"""How constants are loaded into the arena: their bytes, the methods of loading, and the times.

Before their region: a load may begin while an earlier region computes. The next region that needs any
constants waits until this load has ended. So the load costs only the time for the bytes that are not yet
loaded when the regions before it have run.

While their region runs: the groups of a streamed region run alternately, and a turn of a group is the time
from its first step after a step of another group until another group runs. Constants that are loaded again at
each turn have buffers in the region's workspace.

Other constants lie on dead rows of the region's input, which no step reads any more. Mostly the rows of the
input die faster than the output grows over them. So some bytes between the end of the output and the first
row that is still read are always free, and their number grows. Constants of the region's last group may lie
at the end of these free bytes. When the output reaches them, they are loaded again at a higher address.
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
from buildtool.plan.types import SOURCE, Buffer, BufferKind, Load, Plan, Scheme, replace_numbers
from buildtool.target.catalogue import ChannelBytes, channel_bytes, constants_bytes, features, operands
from buildtool.target.types import KernelVariant

HEAD = 16  # bytes to whose multiples the head with the factors, and the weights, are rounded up


@dataclass(frozen=True)
class Constants:
    """The constants that an operator's kernel reads: weights, biases, requantisation factors.

    All sizes are in bytes. The constants are a head, then the factors of all output channels, then their
    weights.

    size: all constants together.
    channels: output channels by which the constants can be cut into slices; 0 if they cannot be cut.
    factors, weights: bytes of each for one output channel.
    step: slices begin and end at multiples of this many channels.
    unit: weights are padded to a multiple of this many channels.
    group: the factors of this many channels belong together. A slice consists of whole groups. Or it lies
        within one group: then it has all factors of the group, but only its own weights.
    tail: bytes behind the weights that the kernel also reads; their values do not matter.
    padded: factors are padded to a multiple of this many channels.
    head: bytes of the head.
    range: the offset in the head at which a slice's range of channels lies; 0 if it is not in the head.
    usual: slices of this many channels or more take little more time than all channels at once.
    scattered: whether the constants are several blocks of the weight image.
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
        """Returns the fewest arena bytes for an operator's constants while the operator runs alone.

        `narrow`: whether slices may be narrower than usual.
        """
        whole, width = round_up(self.size, HEAD), self.step if narrow else self.usual
        return whole if self.channels <= width else min(whole, self.slice_bytes(width))

    def slice_bytes(self, channels: int) -> int:
        """Returns the bytes of a slice with this many channels."""
        weights = self.weights * round_up(channels, self.row_unit(channels)) + self.tail
        factors = self.factors * min(
            round_up(channels, max(self.padded, self.group)), round_up(self.channels, self.padded)
        )
        return round_up(self.head + factors, HEAD) + round_up(weights, HEAD)

    def row_unit(self, channels: int) -> int:
        """Returns the number of channels to a multiple of which the weights of a slice are padded.

        `channels`: output channels of the slice.
        """
        return 1 if channels < self.group else self.unit

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Returns the numbers of output channels that a slice may have, ascending, all below `channels`."""
        steps = range(self.step, self.channels, self.step)
        return tuple(n for n in steps if self.least_width(n) == n)

    def least_width(self, channels: int) -> int:
        """Returns the smallest number of channels from `channels` on that a slice can have."""
        width = round_up(channels, self.step)
        while width % self.group and self.group % width:
            width += self.step
        return width


@dataclass(frozen=True)
class LoadMethod:
    """How one operator's constants are loaded.

    `channels`, `slots` and `by_turns`: as in `Load`. `bytes`: the size of the buffer. `on_dead_rows`: whether
    the constants lie on dead rows of the region's input.
    """

    channels: int
    slots: int
    bytes: int
    by_turns: bool = False
    on_dead_rows: bool = False

    @property
    def lasting(self) -> bool:
        """Returns whether the buffer is live throughout the region."""
        return not (self.by_turns or self.on_dead_rows)


def constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Constants]:
    """Returns operator -> the constants that its kernel reads, by the catalogue's formulas.

    `kernels`: one per operator, None for aliases. Operators without constants are left out.
    """
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

    buffers: the size of its buffers of constants.
    load: the size of the constants that are loaded before it runs.
    room: the bytes of the arena that are free while it runs.
    hides: the bytes of other regions' constants that can be loaded while it computes.
    """

    buffers: int
    load: int
    room: float
    hides: float


def begins(regions: Sequence[Demand], farthest: int = FARTHEST) -> list[int]:
    """Returns for each region the region at whose start the load of its constants begins.

    This is the region itself, or one of the `farthest` regions before it. The largest load is placed first.
    Each load begins where the core waits least for it. Among equally good regions it is the latest one.
    """
    begin = list(range(len(regions)))
    room = [region.room for region in regions]
    hidden = [region.hides for region in regions]
    for index in sorted(begin[1:], key=lambda i: (-regions[i].load, i)):
        own = regions[index]
        best, least = index, float(own.load)
        for at in range(index - 1, max(-1, index - 1 - farthest), -1):
            if room[at] < own.buffers or not own.load:
                break  # the buffer would be live from that region on
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
    """One part of a region's last group: rows that it makes at a time, and what is dead and made by then.

    part: the rows.
    dead: bytes at the start of the region's input that are no longer read when the part begins.
    made: bytes of the region's output that are made when the part ends.
    """

    part: Part
    dead: int
    made: int


class DeadRows(NamedTuple):
    """Dead rows of a region's input on which constants of its last group may lie, behind the output's rows.

    source, result: the input and the output (roots, see alias_roots).
    spare: bytes that are free between the output and the input's living rows during every part of the group,
        wherever the two tensors are placed.
    trail: the parts of the last group, in order.
    """

    source: int
    result: int
    spare: int
    trail: tuple[Trail, ...]


def find_dead_rows(timeline: Timeline, index: int, overlaps: Sequence[RegionOverlap]) -> DeadRows | None:
    """Returns the dead rows with the most free bytes, of all inputs that a region's output may lie over.

    `index`: the region. `overlaps`: the permitted overlaps of its output. Returns None if no input has dead
    rows that can be used.
    """
    run, graph = timeline.runs[index], timeline.graph
    if len(run.region.groups) < 2 or fed_in_parts(graph, graph.ops[run.region.ops[-1]]):
        return None
    candidates, tensors = list[DeadRows](), graph.tensors
    overlaps = [o for o in overlaps if SOURCE not in run.activities or o.source not in graph.inputs]
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
            candidates.append(DeadRows(source, result, spare, trail))
    return max(candidates, key=lambda r: r.spare, default=None)


class Stack(NamedTuple):
    """Constants that lie side by side on dead rows, from a step of the region on.

    step: the step, with which a part of the last group begins.
    offset: the lowest byte of the constants.
    full: whether the constants that were loaded at each turn until this step are among them, too.
    """

    step: int
    offset: int
    full: bool


class Site(NamedTuple):
    """The offsets of a region's input and output. `covers`: whether the two share bytes."""

    source: int
    result: int
    covers: bool


def stacks(dead_rows: DeadRows, size: int, full: int, site: Site) -> list[Stack]:
    """Returns stacks of constants that follow each other in time, each on the dead rows of its time.

    A stack has `size` bytes. As soon as there is room, it has `full` bytes: those of all constants. Each
    stack lasts until the output grows into it. The list is empty if at some time there is no room.
    """
    stacked: list[Stack] = []
    is_full = size == full
    for part, dead, output in dead_rows.trail:
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
    """Where an operator's constants lie: at `offset`, from step `step` of the region's run on."""

    step: int
    offset: int


def places(lowest: Sequence[Stack], own: Sequence[Part], is_last: bool) -> list[Place]:
    """Returns where one operator's constants lie over time, if they are the lowest constants of each stack.

    lowest: the stacks.
    own: the parts (rows made at a time) of the operator's group.
    is_last: whether this is the region's last group. Any other group uses a stack only from its first part
        that begins after the stack.
    """
    by_step: dict[int, Place] = {}  # of stacks that begin before the same part, the latest one
    for stack in lowest:
        after = (part.step for part in own if part.step > stack.step or (is_last and part.step == stack.step))
        step = next(after, None)
        if step is not None:
            by_step[step] = Place(step, stack.offset)
    return [*by_step.values()]


@dataclass(frozen=True)
class Arrivals:
    """Adds to plans the loads of constants that happen while regions run.

    All plans have the regions of `timeline`. `constants`: by operator. `model`: gives the cost of a load.
    """

    timeline: Timeline
    constants: Mapping[int, Constants]
    model: CostModel

    def cost(self, plan: Plan) -> float:
        """Returns the cost of all loads of a plan, repetitions included."""
        return sum(
            self.model.loading(load) for _, load in load_steps(self.timeline, plan.loads, plan.buffers)
        )

    def by_turns(self, plan: Plan, methods: Sequence[Mapping[int, LoadMethod]]) -> Plan:
        """Returns the placed plan with loads for the constants that are loaded at each turn of their group.

        `methods`: for each region, operator -> how its constants are loaded. The plan already has the buffers
        of these constants.
        """
        at = {b.op: i for i, b in enumerate(plan.buffers) if b.kind is BufferKind.WEIGHTS}
        turning = [op for own in methods for op, method in own.items() if method.by_turns]
        loads = [Load(op, at[op], self.constants[op].size, by_turns=True) for op in turning]
        return replace(plan, loads=tuple(sorted([*plan.loads, *loads], key=_order)))

    def on_dead_rows(
        self, plan: Plan, index: int, methods: Mapping[int, LoadMethod], dead_rows: DeadRows
    ) -> Plan | None:
        """Returns the plan with constants of region `index` on dead rows of its input.

        `methods`: operator of the region -> how its constants are loaded. Constants that are loaded at each
        turn also move to the dead rows if that costs less. Returns None if the constants whose method is
        `on_dead_rows` do not fit.
        """
        region = self.timeline.regions[index]
        needed = [op for op, method in methods.items() if method.on_dead_rows]
        others = [
            op
            for op, method in methods.items()
            if method.by_turns
            and not self.constants[op].scattered
            and region.groups[group_of(region, op)].scheme is not Scheme.BRANCHES
        ]
        plans = (self._stack_constants(plan, index, needed, more, dead_rows) for more in (others, []))
        return min((made for made in plans if made is not None), key=self.cost, default=None)

    def _stack_constants(
        self, plan: Plan, index: int, needed: Sequence[int], others: Sequence[int], dead_rows: DeadRows
    ) -> Plan | None:
        """Returns the plan with constants on dead rows of a region; None if those in `needed` do not fit.

        `index`: the region. `needed`: operators whose constants lie there from the beginning. `others`:
        operators whose constants lie there as soon as there is room.
        """
        ops = [*needed, *others]
        if not ops:
            return plan
        sizes = [round_up(self.constants[op].size, HEAD) for op in ops]
        start, end = self.timeline.starts[index : index + 2]
        source, result = (
            next(b for b in plan.buffers if tensor in b.tensors and b.first < end and b.last >= start)
            for tensor in (dead_rows.source, dead_rows.result)
        )
        site = Site(source.offset, result.offset, source.touches(result))
        lowest = stacks(dead_rows, sum(sizes[: len(needed)]), sum(sizes), site)
        for op, offset in zip(ops, accumulate([0, *sizes[:-1]]), strict=True):
            own = [s._replace(offset=s.offset + offset) for s in lowest if s.full or op in needed]
            buffers = self._buffers(index, op, own)
            if buffers:
                plan = _extend_loads(plan, buffers)
            elif op in needed:
                return None
        return plan

    def _buffers(self, index: int, op: int, lowest: Sequence[Stack]) -> list[Buffer]:
        """Returns the buffers of one operator's constants on dead rows, which follow each other in time.

        `lowest`: stacks in which `offset` is the offset of these constants.
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
    """Returns the plan with more buffers for one operator's constants, and a load into each of them.

    `more`: the buffers, in the order of their lives. If the operator already has a buffer that is loaded at
    each turn, that buffer's life now ends before the first of `more`. If its life would then be empty, the
    plan stays as it is.
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
    """Returns a sorting key that puts an operator's loads in the order in which they begin."""
    return load.op, not load.by_turns, load.buffer
