"""Weights in slow memory: which constants are brought into the arena, when, and how many at a time.

Constants of a region are there before it begins. Those of an operator that runs alone may come in
slices of its output channels, each of which it computes over its whole output, straight to where the
channels belong. Where there is room, they come while the region before computes, and a slice while the
one before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from buildtool.errors import TargetError
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import assemble
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


@dataclass(frozen=True)
class _Way:
    """How one operator's constants come: see Load."""

    channels: int
    slots: int
    bytes: int  # of the buffer


def with_loads(
    plan: Plan,
    graph: Graph,
    target: Target,
    kernels: Sequence[KernelVariant | None],
    constants: Mapping[int, Constants],
    limit: int,
    in_place: str,
    *,
    enough: float = 0,
    session: Session | None = None,
) -> Plan:
    """`plan` with all `constants` (by operator) in the arena, within `limit` bytes if that can be.

    Of what fits, what takes the least time: whole blocks before slices, and as early as possible.
    `enough`: bytes of the arena below which no tensor is moved (see `assemble`).
    """
    if target.board.alignment % HEAD:
        raise TargetError(
            f"board '{target.board.name}' aligns buffers to {target.board.alignment} bytes, but constants in "
            f"the arena have to be aligned to {HEAD}",
            hint=f"alignment = {HEAD} in the board's file",
        )
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    asked = limit
    best: Plan | None = None
    for _ in range(ATTEMPTS):
        made = _Loader(plan, timeline, target, tuple(kernels), constants, asked, in_place, enough).plan()
        if best is None or made.arena_bytes < best.arena_bytes:
            best = made
        if made.arena_bytes <= limit:
            return made
        asked -= max(target.board.alignment, made.arena_bytes - limit)
    assert best is not None
    return best


@dataclass(frozen=True)
class _Loader:
    plan_without: Plan
    timeline: Timeline
    target: Target
    kernels: tuple[KernelVariant | None, ...]
    constants: Mapping[int, Constants]
    limit: int
    in_place: str
    enough: float

    def plan(self) -> Plan:
        """Chooses, and places everything again."""
        regions = self.timeline.regions
        spans = [(first, end - 1) for first, end in pairwise(self.timeline.starts)]
        live = [self._live(span) for span in spans]
        ways = [self._ways(region, used) for region, used in zip(regions, live, strict=True)]
        early = self._early(regions, live, ways)
        extra, loads, apart = self._buffers(regions, spans, ways, early)
        placed = assemble(
            self.timeline,
            self.target,
            self.kernels,
            strategy=self.plan_without.strategy,
            in_place=self.in_place,
            extra=extra,
            apart=apart,
            enough=self.enough,
        )
        base = len(placed.buffers) - len(extra)
        costs = CostModel(self.timeline.graph, self.kernels, self.target.costs)
        return replace(
            placed,
            loads=tuple(replace(load, buffer=base + load.buffer) for load in loads),
            cost=placed.cost + sum(map(costs.loading, loads)),
            accounting=(*placed.accounting[:-1], _COUNTED, _NOT_COUNTED),
        )

    def _live(self, span: tuple[int, int]) -> int:
        """Bytes of the arena that are in use in some step of a region, without any constants."""
        places = sorted(
            (b.offset, b.offset + b.size)
            for b in self.plan_without.buffers
            if b.first <= span[1] and span[0] <= b.last
        )
        total = reached = 0
        for start, end in places:
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return round_up(total, self.target.board.alignment)

    def _ways(self, region: Region, live: int) -> dict[int, _Way]:
        """Per operator of a region, how its constants come."""
        found = {op: _Way(0, 1, self.constants[op].size) for op in region.ops if op in self.constants}
        if len(region.ops) > 1 or region.is_streamed or not found:
            return found
        op = region.ops[0]
        if live + found[op].bytes > self.limit and self.constants[op].channels > 1:
            found[op] = self._sliced(op, live)
        return found

    def _sliced(self, op: int, live: int) -> _Way:
        """The widest slices that fit, two of them if possible; single channels if nothing does."""
        block = self.constants[op]
        for slots in (2, 1):
            low, high = 0, block.channels - 1
            while low < high:  # the most channels that fit
                middle = (low + high + 1) // 2
                way = self._slice(op, middle, slots)
                if live + way.bytes <= self.limit:
                    low = middle
                else:
                    high = middle - 1
            if low:
                return self._slice(op, -(-block.channels // -(-block.channels // low)), slots)
        return self._slice(op, 1, 1)

    def _slice(self, op: int, channels: int, slots: int) -> _Way:
        return _Way(channels, slots, slots * self.constants[op].slice_bytes(channels))

    def _early(
        self, regions: Sequence[Region], live: Sequence[int], ways: Sequence[Mapping[int, _Way]]
    ) -> set[int]:
        """Regions whose constants come while the region before computes: all for which there is room."""

        def needs(index: int) -> int:
            return sum(way.bytes for way in ways[index].values())

        found: set[int] = set()
        for before, index in pairwise(range(len(regions))):
            # a slice comes early as well: the buffer is there then
            if ways[index] and live[before] + needs(before) + needs(index) <= self.limit:
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
