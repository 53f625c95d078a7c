"""Constants that come while a streamed region runs: by turns, and on dead rows of its input (see `behind`).

They come after everything is placed: turns have their buffers in the region's workspace, dead rows are
where its input lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from buildtool.plan.assemble import behind
from buildtool.plan.assemble.behind import Room, Stack
from buildtool.plan.assemble.constants import HEAD, Constants, Way
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.turns import brought, group_of, parts
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Region, Scheme, changed


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
        found = behind.stacks(room, most, sum(sizes), _site(plan.buffers, room, start, end))
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
        places = behind.places(found, parts(run, timeline, group), is_last)
        return behind.buffers(op, self.constants[op].size, places, start, end)


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


def _site(buffers: Sequence[Buffer], room: Room, start: int, end: int) -> behind.Site:
    """Where a region's input and output lie; `start`, `end`: its steps."""
    source, result = (
        next(b for b in buffers if tensor in b.tensors and b.first < end and b.last >= start)
        for tensor in (room.source, room.result)
    )
    covers = source.offset < result.offset + result.size and result.offset < source.offset + source.size
    return behind.Site(source.offset, result.offset, covers)
