"""Weights in slow memory: which constants are loaded into the arena, when, and how many at a time.

If all constants of a region fit into the arena, they are loaded before the region begins. If they do not fit,
there are three other methods:
- The constants of an operator that runs alone are loaded in slices of its output channels. The operator
  computes its whole output for one slice after the other.
- The groups of a streamed region run alternately. They load their constants into the same memory, each group
  at each of its turns, that is, whenever it runs after another group.
- Constants of a streamed region lie on dead rows of the region's input (rows that are no longer read).

If there is room, a load runs while earlier regions compute, or while the slice before it is used (see
`arrivals`).
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
from buildtool.plan.assemble.arrivals import (
    FARTHEST,
    HEAD,
    Arrivals,
    Constants,
    DeadRows,
    Demand,
    LoadMethod,
    begins,
    find_dead_rows,
)
from buildtool.plan.assemble.assemble import accounting, assemble, region_bounds
from buildtool.plan.assemble.workspace import RegionFacts, Regions, with_turns
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.overlap import slices_in_place
from buildtool.plan.schedule.timeline import Timeline, turns
from buildtool.plan.types import Buffer, BufferKind, Load, Plan
from buildtool.target.types import KernelVariant, Target

MOST_ON_DEAD_ROWS = 8  # operators of a group whose constants are tried on dead rows
PRICED = 1 << 16  # the cost per byte is that of a load of this many bytes
SLICE_COUNTS = (2, 4, 8, 16)  # tried in this order where an operator would wait for its constants
ATTEMPTS = 8  # attempts to meet a limit; each attempt uses a smaller limit than the one before


class Earliness(NamedTuple):
    """How early constants are loaded.

    `farthest`: a load begins at most this many regions early. `double_buffered`: whether an operator that
    would wait for its constants loads them in slices, with room for two slices. `share`: early loads may use
    this part of the bytes that the limit leaves above the smallest arena.
    """

    farthest: int
    double_buffered: bool
    share: float


# In the order in which they are tried: constants that are live for longer are harder to place.
EARLINESS = (
    *(Earliness(FARTHEST, True, share) for share in (1, 0.9, 0.75)),
    Earliness(1, True, 1),
    Earliness(1, False, 1),
)
SPARE = 1.02  # times the smallest arena; with less memory than this, the share of early loads does not matter


def _lasting(methods: Mapping[int, LoadMethod]) -> int:
    """Returns the bytes of the buffers that are live throughout a region.

    `methods`: operator of the region -> how its constants are loaded.
    """
    return sum(round_up(method.bytes, HEAD) for method in methods.values() if method.lasting)


@dataclass(frozen=True)
class Loading:
    """Loads constants into the arena of a plan whose regions are those of `timeline`.

    `kernels`: one per operator, None for aliases. `constants`: by operator. `in_place` and `strategy`: as in
    `assemble`. `narrow`: whether slices may be narrower than usual (see `Constants`).
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
    def _bounds(self) -> tuple[tuple[int, int], ...]:
        """Returns for each region two lower bounds of the bytes that it needs without constants.

        The first bound always holds. The second one is for an operator that runs alone and computes slices of
        its channels, so that its output does not lie over its input.
        """
        alone = {region.ops[0] for region in self.timeline.regions if not region.is_streamed}
        bounds = (
            region_bounds(self.timeline, self._regions, not_in_place)
            for not_in_place in (frozenset[int](), alone)
        )
        return tuple(zip(*bounds, strict=True))

    @cached_property
    def _sliced_in_place(self) -> frozenset[int]:
        """Returns the operators that may write over their input although they compute slices of channels."""
        graph, alignment = self.timeline.graph, self.target.board.alignment
        ops = {op for op in self.constants if slices_in_place(graph, graph.ops[op])}
        uneven = (
            o.op for o in self._regions.permitted if round_up(o.distance, alignment) % _pixel(graph, o.op)
        )
        return frozenset(ops.difference(uneven))

    def _total(self, index: int, methods: Mapping[int, LoadMethod]) -> int:
        """Returns a lower bound of the arena in bytes while a region runs, with its constants.

        `methods`: operator of the region -> how its constants are loaded.
        """
        (bound, bound_in_slices), space = self._bounds[index], self._facts[index].workspace
        sliced = any(method.channels and op not in self._sliced_in_place for op, method in methods.items())
        at_turns = {op: method.bytes for op, method in methods.items() if method.by_turns}
        region, alignment = self.timeline.regions[index], self.target.board.alignment
        turn_bytes = with_turns(space, region, at_turns, alignment).size - space.size if at_turns else 0
        return (bound_in_slices if sliced else bound) + turn_bytes + _lasting(methods)

    @cached_property
    def least(self) -> int:
        """Returns a lower bound of the arena in bytes, however constants are loaded."""
        totals = (self._total(i, self._methods(i, 0)) for i in range(len(self.timeline.regions)))
        return max(totals, default=0)

    def plan(self, limit: float, enough: float, attempts: int = ATTEMPTS) -> Plan:
        """Returns a plan with all constants in the arena: within `limit` bytes, or the smallest plan found.

        It prefers the fastest methods that fit: all constants at once before slices, and loads as early as
        possible. The methods are chosen so that no region by itself exceeds the limit. If the plan still
        exceeds it, methods are chosen for a smaller limit, in at most `attempts` attempts. `enough`: tensors
        are moved only where the arena would be larger than this, in bytes (see `assemble`).
        """
        work = self.session.work if self.session else Work()
        target_bytes = goal = max(limit, self.least)
        best: Plan | None = None
        for _ in range(attempts):
            for earliness in EARLINESS:
                if earliness.share < 1 and target_bytes < SPARE * self.least:
                    continue
                candidate = self.placed(target_bytes, enough, earliness)
                if best is None or candidate.arena_bytes < best.arena_bytes:
                    best = candidate
                if candidate.arena_bytes <= goal or not work.goes_on():
                    return best
            if target_bytes <= 0:
                break
            target_bytes -= max(self.target.board.alignment, candidate.arena_bytes - goal)
        assert best is not None
        return best

    def placed(self, limit: float, enough: float, earliness: Earliness) -> Plan:
        """Returns a plan whose regions need at most `limit` bytes each, if that is possible.

        `enough`: as in `plan`. `earliness`: how early constants are loaded.
        """
        starts, regions = self.timeline.starts, range(len(self.timeline.regions))
        methods = [self._methods(index, limit) for index in regions]
        methods = self._with_double_buffers(methods, limit) if earliness.double_buffered else methods
        early = min(limit, self.least + earliness.share * (limit - self.least))
        begin = begins([self._demand(index, methods[index], early) for index in regions], earliness.farthest)
        extra, loads = list[Buffer](), list[Load]()
        for index in regions:
            first, last = starts[begin[index]], starts[index + 1] - 1
            for op, method in methods[index].items():
                if method.lasting:
                    name = f"operator {op} constants"
                    loads.append(Load(op, len(extra), self.constants[op].size, method.channels, method.slots))
                    extra.append(Buffer(BufferKind.WEIGHTS, name, (), method.bytes, first, last, op=op))
        assembled = partial(
            assemble,
            self.timeline,
            self.target,
            self.kernels,
            strategy=self.strategy,
            in_place=self.in_place,
            extra=extra,
            turns={op: method.bytes for own in methods for op, method in own.items() if method.by_turns},
            enough=enough,
            session=self.session,
        )
        sliced = {load.op for load in loads if load.channels}
        placed = assembled(not_in_place=sliced - self._sliced_in_place)
        uneven = self._find_uneven_overlaps(placed, sliced)
        if uneven:
            placed = assembled(not_in_place=sliced - self._sliced_in_place | uneven)
        base = len(placed.buffers) - len(extra)
        own_loads = tuple(replace(load, buffer=base + load.buffer) for load in loads)
        complete = self._while_running(replace(placed, loads=own_loads), methods)
        if complete is None:
            return self.placed(limit, enough, earliness)
        cost = placed.cost + self._arrivals.cost(complete)
        counted = accounting(placed.image, self.in_place, placed.alignment, is_loaded=True)
        return replace(complete, cost=cost, accounting=counted)

    def _while_running(self, placed: Plan, methods: Sequence[Mapping[int, LoadMethod]]) -> Plan | None:
        """Adds to a plan the loads that happen while regions run. Returns the new plan.

        `methods`: for each region, operator -> how its constants are loaded. Returns None if constants do not
        fit on the dead rows of a region. The next attempt then does not use these dead rows.
        """
        plan = self._arrivals.by_turns(placed, methods)
        for index, own in enumerate(methods):
            needs = any(method.on_dead_rows for method in own.values())
            if not needs and not any(method.by_turns for method in own.values()):
                continue
            dead_rows = self._dead_rows(index)
            extended = (
                self._arrivals.on_dead_rows(plan, index, own, dead_rows) if dead_rows is not None else None
            )
            if extended is None and needs:
                self._known_dead_rows[index] = None
                return None
            plan = extended or plan
        return plan

    def _find_uneven_overlaps(self, placed: Plan, sliced: Set[int]) -> set[int]:
        """Returns the operators whose output lies over their input, but not whole pixels below it.

        Only operators in `sliced` are examined, which compute slices of their channels. With such a distance,
        one slice of the output would overwrite input that the next slice reads.
        """
        graph, buffers = self.timeline.graph, placed.buffers
        return {
            o.op
            for o in placed.overlaps
            if o.op in sliced and (buffers[o.input].offset - buffers[o.output].offset) % _pixel(graph, o.op)
        }

    @cached_property
    def _known_dead_rows(self) -> dict[int, DeadRows | None]:
        return {}

    def _dead_rows(self, index: int) -> DeadRows | None:
        """Returns the dead rows of a region's input on which constants may lie; None if it has none."""
        if index not in self._known_dead_rows:
            self._known_dead_rows[index] = find_dead_rows(self.timeline, index, self._facts[index].overlaps)
        return self._known_dead_rows[index]

    def _with_double_buffers(
        self, whole: Sequence[Mapping[int, LoadMethod]], limit: float
    ) -> list[Mapping[int, LoadMethod]]:
        """Returns the methods of all regions; operators that would wait for constants get double buffers.

        These are operators that run alone. Their constants are loaded in slices, with room for two slices:
        one slice is loaded while the other one is used. `whole`: the methods of all regions without double
        buffers.
        """
        methods: list[Mapping[int, LoadMethod]] = []
        for index, region in enumerate(self.timeline.regions):
            own, op = whole[index], region.ops[0]
            alone = not region.is_streamed and op in own and not own[op].channels
            block = self.constants[op] if alone else None
            if block is not None and block.channels >= 2 * max(block.step, block.group):
                before = self._total(index - 1, methods[-1]) if index else 0
                if before + _lasting(own) > limit:
                    own = self._double_buffer(index, op, own, limit, limit - before)
            methods.append(own)
        return methods

    def _double_buffer(
        self, index: int, op: int, whole: Mapping[int, LoadMethod], limit: float, room: float
    ) -> Mapping[int, LoadMethod]:
        """Returns a region's method that loads an operator's constants in slices, with room for two slices.

        The slices are the widest ones of which two fit into `room` bytes. If none of the tried widths is that
        small, it is the narrowest of these widths. If the region then exceeds `limit` bytes, the result is
        `whole`, the method without a double buffer.
        """
        block = self.constants[op]
        for parts in SLICE_COUNTS:
            channels = block.least_width(max(-(-block.channels // parts), block.group))
            method = self._slice(op, channels, 2)
            fits = self._total(index, {op: method}) <= limit and channels < block.channels
            if fits and (method.bytes <= room or parts == SLICE_COUNTS[-1]):
                return {op: method}
        return whole

    def _methods(self, index: int, limit: float) -> Mapping[int, LoadMethod]:
        """Returns how a region's constants (by operator) are loaded so that it needs at most `limit` bytes.

        If no method fits, the result has the method with the fewest bytes. Operators without constants are
        left out.
        """
        region = self.timeline.regions[index]
        whole = {op: LoadMethod(0, 1, self.constants[op].size) for op in region.ops if op in self.constants}
        if not whole or self._total(index, whole) <= limit:
            return whole
        if region.is_streamed:
            return self._load_at_turns(index, whole, limit) if len(region.groups) > 1 else whole
        op = region.ops[0]
        if self.constants[op].channels > self._least_width(op):
            need = self._bounds[index][op not in self._sliced_in_place]
            sliced = {op: self._choose_slices(op, limit - need)}
            if self._total(index, sliced) < self._total(index, whole):
                return sliced
        return whole

    def _load_at_turns(
        self, index: int, whole: Mapping[int, LoadMethod], limit: float
    ) -> dict[int, LoadMethod]:
        """Returns how the constants of a streamed region are loaded, if not all of them fit before it begins.

        `whole`: the methods that load all constants before the region begins. As few constants as the limit
        allows are loaded at each turn or lie on dead rows.
        """
        methods = {op: replace(method, by_turns=True) for op, method in whole.items()}
        if self._total(index, methods) > limit:
            methods = self._select_for_dead_rows(index, methods)
        run = self.timeline.runs[index]
        counted = Counter(turn.group for turn in turns(run, len(self.timeline.graph.ops)))
        # operator -> how often its constants are loaded if all are loaded at each turn
        times = {op: counted[i] for i, group in enumerate(run.region.groups) for op in group.ops}
        for op in sorted(whole, key=lambda op: (-times[op], whole[op].bytes, op)):
            candidate = methods | {op: whole[op]}
            if self._total(index, candidate) <= limit:
                methods = candidate
        return methods

    def _select_for_dead_rows(self, index: int, at_turns: dict[int, LoadMethod]) -> dict[int, LoadMethod]:
        """Returns a region's methods where constants of its last group may lie on dead rows of its input.

        `at_turns`: the methods if all constants are loaded at each turn. The selection is the one with which
        the region needs the least memory; among equal ones, the one with the fewest bytes on dead rows.
        """
        dead_rows, last = self._dead_rows(index), self.timeline.regions[index].groups[-1]
        ops = [op for op in last.ops if op in at_turns and not self.constants[op].scattered]
        best, merit = at_turns, (self._total(index, at_turns), 0)
        for count in range(1, len(ops) + 1) if dead_rows is not None else ():
            for selected in combinations(ops[:MOST_ON_DEAD_ROWS], count):
                size = sum(round_up(at_turns[op].bytes, HEAD) for op in selected)
                assert dead_rows is not None
                if size > dead_rows.spare:
                    continue
                candidate = at_turns | {
                    op: replace(at_turns[op], by_turns=False, on_dead_rows=True) for op in selected
                }
                if (self._total(index, candidate), size) < merit:
                    best, merit = candidate, (self._total(index, candidate), size)
        return best

    def _choose_slices(self, op: int, room: float) -> LoadMethod:
        """Returns the method with the widest slices that fit into `room` bytes, two at a time if possible.

        If no slices fit, the result has the narrowest slices.
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
        """Returns the smallest number of output channels that a slice of an operator may have."""
        return self.constants[op].step if self.narrow else self.constants[op].usual

    def _slice(self, op: int, channels: int, slots: int) -> LoadMethod:
        return LoadMethod(channels, slots, slots * self.constants[op].slice_bytes(channels))

    def _demand(self, index: int, methods: Mapping[int, LoadMethod], limit: float) -> Demand:
        board, facts, pricer = self.target.board, self._facts[index], self._regions.model.pricer
        bandwidth = board.memory(board.weights).bandwidth
        if any(not method.lasting for method in methods.values()):  # each turn waits for all loads
            hidden = 0.0
        elif board.estimate is not None and bandwidth:
            hidden = facts.macs / board.estimate.macs_per_second * bandwidth
        else:
            hidden = facts.cost * PRICED / max(1.0, pricer.load(PRICED) - pricer.load(0))
        cut = [
            (self.constants[op].channels, method.channels)
            for op, method in methods.items()
            if method.channels
        ]
        slices = max((-(-channels // some) for channels, some in cut), default=1)
        # the first slice is loaded early as well: its buffer is live then
        load = sum(method.bytes // method.slots for method in methods.values() if method.lasting)
        return Demand(_lasting(methods), load, limit - self._total(index, methods), hidden / slices)


def _pixel(graph: Graph, op: int) -> int:
    """Returns the bytes of a pixel of an operator's output."""
    return graph.tensors[graph.ops[op].outputs[0]].pixel_bytes
