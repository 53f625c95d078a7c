"""Weights in slow memory: which constants are brought into the arena, when, and how many at a time.

Constants of a region are there before it begins. Those of an operator that runs alone may come in
slices of its output channels, each of which it computes over its whole output, straight to where the
channels belong. Where there is room, they come while the region before computes, and a slice while the
one before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from buildtool.errors import TargetError
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble, region_bounds
from buildtool.plan.assemble.regionfacts import Regions
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Load, Plan, Region
from buildtool.session import Session
from buildtool.target.catalogue import channel_bytes, constants_bytes, features, operands
from buildtool.target.types import KernelVariant, Target

ATTEMPTS = 8  # at keeping a limit, by asking for less than what came out too large
HEAD = 16  # bytes in front of the channels' constants; both parts are rounded up to this


@dataclass(frozen=True)
class Constants:
    """What an operator's kernel reads besides its inputs, in bytes.

    `channels` output channels of `factors` and `weights` bytes each, in this order behind a head;
    0 channels: the block cannot be cut.
    """

    size: int
    channels: int = 0
    factors: int = 0
    weights: int = 0

    def least_bytes(self) -> int:
        """The least that an operator needs of the arena for its constants while it runs alone."""
        whole = round_up(self.size, HEAD)
        return whole if self.channels < 2 else min(whole, self.slice_bytes(1))

    def slice_bytes(self, channels: int) -> int:
        """Bytes of the block for so many of the channels."""
        return round_up(HEAD + self.factors * channels, HEAD) + round_up(self.weights * channels, HEAD)


class RegionNeed(NamedTuple):
    """Bytes of the arena that a region needs at the least, without any constants.

    `apart`: where an operator that runs alone does not write over its input, as one in slices.
    """

    whole: int
    apart: int


@dataclass(frozen=True)
class _Way:
    """How one operator's constants come: see Load."""

    channels: int
    slots: int
    bytes: int  # of the buffer


def _rounded(way: _Way) -> int:
    return round_up(way.bytes, HEAD)


def _total(need: RegionNeed, ways: Mapping[int, _Way]) -> int:
    """Bytes of the arena that a region needs at the least, with its constants."""
    sliced = any(way.channels for way in ways.values())
    return (need.apart if sliced else need.whole) + sum(map(_rounded, ways.values()))


def with_loads(
    plan: Plan,
    graph: Graph,
    target: Target,
    kernels: Sequence[KernelVariant | None],
    constants: Mapping[int, Constants],
    limit: float,
    in_place: str,
    *,
    enough: float = 0,
    session: Session | None = None,
) -> Plan:
    """`plan` with all `constants` (by operator) in the arena, within `limit` bytes if that can be.

    Of what fits, what takes the least time: whole blocks before slices, and as early as possible. Where
    nothing fits, the arena is as low as is found. `enough`: bytes of the arena below which no tensor is
    moved (see `assemble`).
    """
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    loading = Loading(timeline, target, tuple(kernels), constants, in_place, plan.strategy, session)
    return loading.plan(limit, enough)


@dataclass(frozen=True)
class Loading:
    """How constants come into the arena of a timeline's regions."""

    timeline: Timeline
    target: Target
    kernels: tuple[KernelVariant | None, ...]
    constants: Mapping[int, Constants]
    in_place: str
    strategy: str
    session: Session | None = None

    def __post_init__(self) -> None:
        board = self.target.board
        if board.alignment % HEAD:
            raise TargetError(
                f"board '{board.name}' aligns buffers to {board.alignment} bytes, but constants in "
                f"the arena have to be aligned to {HEAD}",
                hint=f"alignment = {HEAD} in the board's file",
            )

    @cached_property
    def needs(self) -> tuple[RegionNeed, ...]:
        """What each region needs of the arena, without constants."""
        alone = {region.ops[0] for region in self.timeline.regions if not region.is_streamed}
        bounds = [self._bounds(apart) for apart in (frozenset[int](), frozenset(alone))]
        return tuple(RegionNeed(*both) for both in zip(*bounds, strict=True))

    def _bounds(self, apart: frozenset[int]) -> list[int]:
        timeline = self.timeline
        regions = Regions.of(
            timeline.graph, self.kernels, self.target, timeline.image, self.in_place, self.session
        )
        return region_bounds(timeline, regions, apart)

    @cached_property
    def least(self) -> int:
        """No arena is lower, however constants come: of each region, what it needs and the least of them."""
        pairs = zip(self.timeline.regions, self.needs, strict=True)
        found = (_total(need, self._ways(region, need, 0)) for region, need in pairs)
        return max(found, default=0)

    def plan(self, limit: float, enough: float) -> Plan:
        """The plan within `limit` bytes, or the lowest that is found.

        What is chosen needs no more in any region than is asked for. Where the regions' buffers do not fit
        together within that, less is asked for.
        """
        asked = goal = max(limit, self.least)
        best: Plan | None = None
        for _ in range(ATTEMPTS):
            made = self.placed(asked, enough)
            if best is None or made.arena_bytes < best.arena_bytes:
                best = made
            if made.arena_bytes <= goal or asked <= 0:
                break
            asked -= max(self.target.board.alignment, made.arena_bytes - goal)
        assert best is not None
        return best

    def placed(self, limit: float, enough: float) -> Plan:
        """The plan whose regions need no more than `limit` bytes each, where they can."""
        regions = self.timeline.regions
        spans = [(first, end - 1) for first, end in pairwise(self.timeline.starts)]
        pairs = zip(regions, self.needs, strict=True)
        ways = [self._ways(region, need, limit) for region, need in pairs]
        early = self._early(ways, limit)
        extra, loads, apart = self._buffers(regions, spans, ways, early)
        placed = assemble(
            self.timeline,
            self.target,
            self.kernels,
            strategy=self.strategy,
            in_place=self.in_place,
            extra=extra,
            apart=apart,
            enough=enough,
            session=self.session,
        )
        base = len(placed.buffers) - len(extra)
        costs = CostModel(self.timeline.graph, self.kernels, self.target.costs)
        return replace(
            placed,
            loads=tuple(replace(load, buffer=base + load.buffer) for load in loads),
            cost=placed.cost + sum(map(costs.loading, loads)),
            accounting=(*placed.accounting[:-1], _COUNTED, _NOT_COUNTED),
        )

    def _ways(self, region: Region, need: RegionNeed, limit: float) -> dict[int, _Way]:
        """Per operator of a region, how its constants come; where nothing fits, as they need least."""
        found = {op: _Way(0, 1, self.constants[op].size) for op in region.ops if op in self.constants}
        if len(region.ops) > 1 or region.is_streamed or not found or _total(need, found) <= limit:
            return found
        op = region.ops[0]
        if self.constants[op].channels > 1:
            sliced = {op: self._sliced(op, need.apart, limit)}
            if _total(need, sliced) < _total(need, found):
                return sliced
        return found

    def _sliced(self, op: int, base: int, limit: float) -> _Way:
        """The widest slices that fit, two of them if possible; single channels if nothing does."""
        block = self.constants[op]
        for slots in (2, 1):
            low, high = 0, block.channels - 1
            while low < high:  # the most channels that fit
                middle = (low + high + 1) // 2
                if base + self._slice(op, middle, slots).bytes <= limit:
                    low = middle
                else:
                    high = middle - 1
            if low:
                return self._slice(op, -(-block.channels // -(-block.channels // low)), slots)
        return self._slice(op, 1, 1)

    def _slice(self, op: int, channels: int, slots: int) -> _Way:
        return _Way(channels, slots, slots * self.constants[op].slice_bytes(channels))

    def _early(self, ways: Sequence[Mapping[int, _Way]], limit: float) -> set[int]:
        """Regions whose constants come while the region before computes: all for which there is room."""
        found: set[int] = set()
        for before, index in pairwise(range(len(ways))):
            # a slice comes early as well: the buffer is there then
            more = sum(_rounded(way) for way in ways[index].values())
            if ways[index] and _total(self.needs[before], ways[before]) + more <= limit:
                found.add(index)
        return found

    def _buffers(
        self,
        regions: Sequence[Region],
        spans: Sequence[tuple[int, int]],
        ways: Sequence[Mapping[int, _Way]],
        early: set[int],
    ) -> tuple[list[Buffer], list[Load], set[int]]:
        """Buffers with their lives, the loads into them, and the operators that run in slices."""
        extra: list[Buffer] = []
        loads: list[Load] = []
        sliced: set[int] = set()
        for index, span in enumerate(spans):
            first = spans[index - 1][0] if index in early else span[0]
            for op, way in ways[index].items():
                loads.append(Load(op, len(extra), self.constants[op].size, way.channels, way.slots))
                name = f"operator {op} constants"
                extra.append(Buffer(BufferKind.WEIGHTS, name, (), way.bytes, first, span[1], op=op))
                if way.channels:
                    sliced.add(op)
        return extra, loads, sliced


_COUNTED = "weights are in the arena while their operator runs, and while they come"
_NOT_COUNTED = "stack and the application's memory are not in the arena"


def constants(graph: Graph, kernels: Sequence[KernelVariant | None]) -> dict[int, Constants]:
    """By operator: what its kernel reads besides its inputs, by the catalogue's formulas."""
    found = {}
    for position, kernel in enumerate(kernels):
        if kernel is None:
            continue
        op = graph.ops[position]
        block = constants_bytes(kernel, graph, op)
        read = [graph.tensors[t] for t in operands(kernel, op) if graph.tensors[t].is_constant]
        size = block + sum(round_up(tensor.size, HEAD) for tensor in read)
        if size:
            channel = channel_bytes(kernel, graph, op)
            one_image = graph.tensors[op.outputs[0]].nhwc[0] == 1
            cut = (features(graph, op)["cout"], *channel) if channel and one_image and not read else ()
            found[position] = Constants(size, *cut)
    return found
