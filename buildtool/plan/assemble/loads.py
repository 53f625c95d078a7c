"""Weights in slow memory: which constants are loaded into the arena, when, and how many at a time.

Where there is room for all constants of a region, they are loaded before it begins. Constants of an operator
that runs alone may be loaded in slices of its output channels; it computes each slice over its whole output.
Constants of a streamed region's groups may be loaded into the same memory alternately, at each turn of their
group, or lie on dead rows of the region's input. Where there is room, a load runs while earlier regions
compute, or while the slice before it is used (see `arrivals`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import NamedTuple

from buildtool.base.errors import TargetError
from buildtool.base.session import Session
from buildtool.base.work import Work
from buildtool.graph.types import Graph
from buildtool.plan.assemble.arrivals import FARTHEST, HEAD, Arrivals, Constants, Demand, Room, Way, begins
from buildtool.plan.assemble.arrivals import room as room_of
from buildtool.plan.assemble.assemble import accounting, assemble, region_bounds
from buildtool.plan.assemble.workspace import RegionFacts, Regions, with_turns
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import slices_in_place
from buildtool.plan.schedule.timeline import Timeline, turns
from buildtool.plan.types import Buffer, BufferKind, Load, Plan
from buildtool.target.types import KernelVariant, Target

MOST_BEHIND = 8  # operators of a group whose constants are tried on dead rows
PRICED = 1 << 16  # bytes of the load from which the cost per byte is computed
PARTS = (2, 4, 8, 16)  # numbers of slices that are tried where an operator would wait for its constants
ATTEMPTS = 8  # attempts to meet a limit, each with a smaller one than before


class Haste(NamedTuple):
    """How early constants are loaded: at most `farthest` regions early.

    `in_two`: whether an operator that would wait for its constants loads them in slices, with room for two
    slices. `share`: the part of the room above the smallest arena that early loads may use.
    """

    farthest: int
    in_two: bool
    share: float


# Constants that are live for longer are harder to place.
HASTE = (*(Haste(FARTHEST, True, share) for share in (1, 0.9, 0.75)), Haste(1, True, 1), Haste(1, False, 1))
SPARE = 1.02  # times the smallest arena: below this, different shares of the room make no difference


def _lasting(ways: Mapping[int, Way]) -> int:
    """Bytes of the buffers that are live throughout a region."""
    return sum(round_up(way.bytes, HEAD) for way in ways.values() if way.lasting)


@dataclass(frozen=True)
class Loading:
    """How constants (by operator) are loaded into the arena of a timeline's regions.

    `narrow`: whether slices may be narrower than usual, see `Constants`.
    """

    timeline: Timeline
    target: Target
    kernels: tuple[KernelVariant | None, ...]
    constants: Mapping[int, Constants]
    in_place: str
    strategy: str
    session: Session | None = None
    narrow: bool = True

    def __post_init__(self) -> None:
        board = self.target.board
        if board.alignment % HEAD:
            raise TargetError(
                f"board '{board.name}' aligns buffers to {board.alignment} bytes, but constants in "
                f"the arena have to be aligned to {HEAD}",
                hint=f"alignment = {HEAD} in the board's file",
            )

    @cached_property
    def _regions(self) -> Regions:
        graph, image = self.timeline.graph, self.timeline.image
        return Regions.of(graph, self.kernels, self.target, image, self.in_place, self.session)

    @cached_property
    def _facts(self) -> tuple[RegionFacts, ...]:
        return tuple(map(self._regions.facts, self.timeline.runs))

    @cached_property
    def _arrivals(self) -> Arrivals:
        return Arrivals(self.timeline, self.constants, self._regions.model)

    @cached_property
    def _needs(self) -> tuple[tuple[int, int], ...]:
        """Lower bounds of the bytes that each region needs without constants.

        The second number is the bound for an operator that runs alone, in slices, and does not write over its
        input.
        """
        alone = {region.ops[0] for region in self.timeline.regions if not region.is_streamed}
        bounds = (region_bounds(self.timeline, self._regions, apart) for apart in (frozenset[int](), alone))
        return tuple(zip(*bounds, strict=True))

    @cached_property
    def _in_place(self) -> frozenset[int]:
        """Operators that may write over their input though they compute slices of their channels."""
        graph, alignment = self.timeline.graph, self.target.board.alignment
        ops = {op for op in self.constants if slices_in_place(graph, graph.ops[op])}
        uneven = (
            o.op for o in self._regions.permitted if round_up(o.distance, alignment) % _pixel(graph, o.op)
        )
        return frozenset(ops.difference(uneven))

    def _total(self, index: int, ways: Mapping[int, Way]) -> int:
        """A lower bound of the arena bytes that a region needs with its constants."""
        (whole, apart), space = self._needs[index], self._facts[index].workspace
        sliced = any(way.channels and op not in self._in_place for op, way in ways.items())
        turned = {op: way.bytes for op, way in ways.items() if way.by_turns}
        region, alignment = self.timeline.regions[index], self.target.board.alignment
        beside = with_turns(space, region, turned, alignment).size - space.size if turned else 0
        return (apart if sliced else whole) + beside + _lasting(ways)

    @cached_property
    def least(self) -> int:
        """A lower bound of the arena in bytes. It holds for every way of loading."""
        totals = (self._total(i, self._ways(i, 0)) for i in range(len(self.timeline.regions)))
        return max(totals, default=0)

    def plan(self, limit: float, enough: float, attempts: int = ATTEMPTS) -> Plan:
        """Returns a plan with all constants in the arena: within `limit` bytes, or the lowest that is found.

        It prefers the fastest way that fits: whole blocks before slices, and loads as early as possible. The
        ways are chosen so that no region by itself exceeds the limit. Where the plan still exceeds it, ways
        are chosen for a smaller limit, in at most `attempts` attempts. `enough`: see `assemble`.
        """
        work = self.session.work if self.session else Work()
        target_bytes = goal = max(limit, self.least)
        best: Plan | None = None
        for _ in range(attempts):
            for haste in HASTE:
                if haste.share < 1 and target_bytes < SPARE * self.least:
                    continue
                candidate = self.placed(target_bytes, enough, haste)
                if best is None or candidate.arena_bytes < best.arena_bytes:
                    best = candidate
                if candidate.arena_bytes <= goal or not work.goes_on():
                    return best
            if target_bytes <= 0:
                break
            target_bytes -= max(self.target.board.alignment, candidate.arena_bytes - goal)
        assert best is not None
        return best

    def placed(self, limit: float, enough: float, haste: Haste) -> Plan:
        """Returns a plan whose regions need at most `limit` bytes each, if that is possible."""
        starts, regions = self.timeline.starts, range(len(self.timeline.regions))
        ways = [self._ways(index, limit) for index in regions]
        ways = self._beside(ways, limit) if haste.in_two else ways
        early = min(limit, self.least + haste.share * (limit - self.least))
        begin = begins([self._demand(index, ways[index], early) for index in regions], haste.farthest)
        extra, loads = list[Buffer](), list[Load]()
        for index in regions:
            first, last = starts[begin[index]], starts[index + 1] - 1
            for op, way in ways[index].items():
                if way.lasting:
                    name = f"operator {op} constants"
                    loads.append(Load(op, len(extra), self.constants[op].size, way.channels, way.slots))
                    extra.append(Buffer(BufferKind.WEIGHTS, name, (), way.bytes, first, last, op=op))
        assembled = partial(
            assemble,
            self.timeline,
            self.target,
            self.kernels,
            strategy=self.strategy,
            in_place=self.in_place,
            extra=extra,
            turns={op: way.bytes for own in ways for op, way in own.items() if way.by_turns},
            enough=enough,
            session=self.session,
        )
        sliced = {load.op for load in loads if load.channels}
        placed = assembled(apart=sliced - self._in_place)
        mixed = self._find_mixed(placed, sliced)
        if mixed:
            placed = assembled(apart=sliced - self._in_place | mixed)
        base = len(placed.buffers) - len(extra)
        own_loads = tuple(replace(load, buffer=base + load.buffer) for load in loads)
        complete = self._while_running(replace(placed, loads=own_loads), ways)
        if complete is None:
            return self.placed(limit, enough, haste)
        cost = placed.cost + self._arrivals.cost(complete)
        counted = accounting(placed.image, self.in_place, placed.alignment, is_loaded=True)
        return replace(complete, cost=cost, accounting=counted)

    def _while_running(self, placed: Plan, ways: Sequence[Mapping[int, Way]]) -> Plan | None:
        """Adds to a plan the loads of constants that happen while regions run.

        Returns None if constants find no room on the dead rows of a region. These rows are not used again.
        """
        plan = self._arrivals.by_turns(placed, ways)
        for index, own in enumerate(ways):
            needs = any(way.behind for way in own.values())
            if not needs and not any(way.by_turns for way in own.values()):
                continue
            room = self._room(index)
            extended = self._arrivals.on_dead_rows(plan, index, own, room) if room is not None else None
            if extended is None and needs:
                self._rooms[index] = None
                return None
            plan = extended or plan
        return plan

    def _find_mixed(self, placed: Plan, sliced: Set[int]) -> set[int]:
        """Operators in slices whose output overlaps their input at a distance that is not whole pixels."""
        graph, buffers = self.timeline.graph, placed.buffers
        return {
            o.op
            for o in placed.overlaps
            if o.op in sliced and (buffers[o.input].offset - buffers[o.output].offset) % _pixel(graph, o.op)
        }

    @cached_property
    def _rooms(self) -> dict[int, Room | None]:
        return {}

    def _room(self, index: int) -> Room | None:
        """The dead rows of a region on which constants may lie."""
        if index not in self._rooms:
            self._rooms[index] = room_of(self.timeline, index, self._facts[index].overlaps)
        return self._rooms[index]

    def _beside(self, whole: Sequence[Mapping[int, Way]], limit: float) -> list[Mapping[int, Way]]:
        """Changes the ways of operators that run alone and would wait for their constants.

        These constants are then loaded in slices, with room for two slices: one is loaded while the other is
        used.
        """
        ways: list[Mapping[int, Way]] = []
        for index, region in enumerate(self.timeline.regions):
            own, op = whole[index], region.ops[0]
            alone = not region.is_streamed and op in own and not own[op].channels
            block = self.constants[op] if alone else None
            if block is not None and block.channels >= 2 * max(block.step, block.group):
                before = self._total(index - 1, ways[-1]) if index else 0
                if before + _lasting(own) > limit:
                    own = self._in_two(index, op, own, limit, limit - before)
            ways.append(own)
        return ways

    def _in_two(
        self, index: int, op: int, whole: Mapping[int, Way], limit: float, room: float
    ) -> Mapping[int, Way]:
        """Returns the way that loads an operator's constants in slices, with room for two slices.

        The slices are the widest of which two fit into `room`. If none are that small, they are the narrowest
        that are tried. If these exceed `limit`, the result is `whole`.
        """
        block = self.constants[op]
        for parts in PARTS:
            channels = block.least_width(max(-(-block.channels // parts), block.group))
            way = self._slice(op, channels, 2)
            fits = self._total(index, {op: way}) <= limit and channels < block.channels
            if fits and (way.bytes <= room or parts == PARTS[-1]):
                return {op: way}
        return whole

    def _ways(self, index: int, limit: float) -> Mapping[int, Way]:
        """Operator of a region -> the way its constants are loaded.

        If no way fits, the result has the way with the fewest bytes.
        """
        region = self.timeline.regions[index]
        whole = {op: Way(0, 1, self.constants[op].size) for op in region.ops if op in self.constants}
        if not whole or self._total(index, whole) <= limit:
            return whole
        if region.is_streamed:
            return self._load_at_turns(index, whole, limit) if len(region.groups) > 1 else whole
        op = region.ops[0]
        if self.constants[op].channels > self._least_width(op):
            need = self._needs[index][op not in self._in_place]
            sliced = {op: self._choose_slices(op, limit - need)}
            if self._total(index, sliced) < self._total(index, whole):
                return sliced
        return whole

    def _load_at_turns(self, index: int, whole: Mapping[int, Way], limit: float) -> dict[int, Way]:
        """The ways in a streamed region.

        As few constants are loaded at each turn or on dead rows as the limit allows.
        """
        ways = {op: replace(way, by_turns=True) for op, way in whole.items()}
        if self._total(index, ways) > limit:
            ways = self._least(index, ways)
        run = self.timeline.runs[index]
        counted = Counter(turn.group for turn in turns(run, len(self.timeline.graph.ops)))
        # how often they come if all take turns
        times = {op: counted[i] for i, group in enumerate(run.region.groups) for op in group.ops}
        for op in sorted(whole, key=lambda op: (-times[op], whole[op].bytes, op)):
            candidate = ways | {op: whole[op]}
            if self._total(index, candidate) <= limit:
                ways = candidate
        return ways

    def _least(self, index: int, turned: dict[int, Way]) -> dict[int, Way]:
        """Selects constants of the last group for the dead rows, so that the region's total is smallest.

        Among equal totals it selects the fewest bytes of constants.
        """
        room, last = self._room(index), self.timeline.regions[index].groups[-1]
        ops = [op for op in last.ops if op in turned and not self.constants[op].scattered]
        best, merit = turned, (self._total(index, turned), 0)
        for count in range(1, len(ops) + 1) if room is not None else ():
            for behind in combinations(ops[:MOST_BEHIND], count):
                size = sum(round_up(turned[op].bytes, HEAD) for op in behind)
                assert room is not None
                if size > room.spare:
                    continue
                candidate = turned | {op: replace(turned[op], by_turns=False, behind=True) for op in behind}
                if (self._total(index, candidate), size) < merit:
                    best, merit = candidate, (self._total(index, candidate), size)
        return best

    def _choose_slices(self, op: int, room: float) -> Way:
        """The widest slices that fit into `room`, two of them if possible.

        If none fit, the result is the narrowest slices.
        """
        block, least = self.constants[op], self._least_width(op)
        widths = block.widths[bisect_left(block.widths, least) :]
        for slots in (2, 1):
            fit = bisect_right(widths, room, key=lambda n: self._slice(op, n, slots).bytes)
            if fit:
                even = -(-block.channels // -(-block.channels // widths[fit - 1]))
                return self._slice(op, block.least_width(max(even, least)), slots)
        return self._slice(op, least, 1)

    def _least_width(self, op: int) -> int:
        """The smallest number of channels of an operator's slices."""
        return self.constants[op].step if self.narrow else self.constants[op].usual

    def _slice(self, op: int, channels: int, slots: int) -> Way:
        return Way(channels, slots, slots * self.constants[op].slice_bytes(channels))

    def _demand(self, index: int, ways: Mapping[int, Way], limit: float) -> Demand:
        board, facts, pricer = self.target.board, self._facts[index], self._regions.model.pricer
        bandwidth = board.memory(board.weights).bandwidth
        if any(not way.lasting for way in ways.values()):  # waits for all loads at each of its turns
            hidden = 0.0
        elif board.estimate is not None and bandwidth:
            hidden = facts.macs / board.estimate.macs_per_second * bandwidth
        else:
            hidden = facts.cost * PRICED / max(1.0, pricer.load(PRICED) - pricer.load(0))
        cut = [(self.constants[op].channels, way.channels) for op, way in ways.items() if way.channels]
        slices = max((-(-channels // some) for channels, some in cut), default=1)
        # the first slice is loaded early as well: its buffer is live then
        load = sum(way.bytes // way.slots for way in ways.values() if way.lasting)
        return Demand(_lasting(ways), load, limit - self._total(index, ways), hidden / slices)


def _pixel(graph: Graph, op: int) -> int:
    """Bytes of a pixel of an operator's output."""
    return graph.tensors[graph.ops[op].outputs[0]].pixel_bytes
