"""A region's workspace, and other facts of a region that do not depend on the regions around it.

The workspace has the column windows of its groups, the scratch of their kernels, and constants that are
loaded at each turn. The groups of a region never need their memory at the same time. Scratch is needed only
while its operator runs. In a group that runs in strips of whole rows, a window is needed only from its maker
to its last reader. So a region's time is divided into slots, each with the memory that is needed together.
Constants that are loaded at each turn of a group are live in all of its slots.

The points of a front share most of their regions, and so do the plans that are tried for a limit. So each
region's facts are computed once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from buildtool.base.modes import Image, InPlace
from buildtool.base.session import Session
from buildtool.base.store.recent import Recent
from buildtool.graph.liveness import alias_roots, live_ranges, state_of
from buildtool.graph.topology import topology_digest
from buildtool.graph.types import Graph
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.costs import CostModel
from buildtool.plan.schedule.inner import columns_per_call
from buildtool.plan.schedule.overlap import RegionOverlap, of_region, permitted_overlaps
from buildtool.plan.schedule.rings import LineBuffer, lasting_windows, rings, windows
from buildtool.plan.schedule.schedule import Run, count_executed_macs
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.types import Buffer, BufferKind, Group, Overlap, Region, Scheme, replace_numbers
from buildtool.target import catalogue
from buildtool.target.digest import planning_digest
from buildtool.target.types import Contract, KernelVariant, Target


@dataclass(frozen=True)
class Piece:
    """Memory that a region needs from slot `first` to slot `last`: `size` bytes at one place.

    `inside`: its windows and scratch, or an operator's constants. Their offsets count from its start, and
    their lives are not set. `group`: the operators of the group whose turns load these constants.
    """

    first: int
    last: int
    size: int
    inside: tuple[Buffer, ...]
    group: tuple[int, ...] = ()

    def buffers(self, base: int, timeline: Timeline) -> list[Buffer]:
        """The buffers in the piece, with lives and with offsets for a piece at offset `base`."""
        buffers = []
        for b in self.inside:
            lives = [timeline.tensor_lives[t] for t in b.tensors]
            lives = lives or [timeline.lives[op] for op in self.group or (b.op,)]
            first, last = min(life.first for life in lives), max(life.last for life in lives)
            buffers.append(replace_numbers(b, first=first, last=last, offset=base + b.offset))
        return buffers


def _window(k: LineBuffer, offset: int = 0) -> Buffer:
    name = f"tensor {k.tensor} window"
    return Buffer(BufferKind.RING, name, (k.tensor,), k.size, 0, 0, offset, k.rows, k.columns)


def _scratch(op: int, size: int, offset: int = 0) -> Buffer:
    return Buffer(BufferKind.SCRATCH, f"operator {op} scratch", (), size, 0, 0, offset, op=op)


@dataclass(frozen=True)
class Workspace:
    """The memory for windows and scratch of a region's groups. Time is divided into slots.

    `size`: bytes of the fullest slot. `groups`: for each group its number of slots, and its pieces. Slots of
    these pieces count from the group's first slot.
    """

    slots: int
    pieces: tuple[Piece, ...]
    size: int
    groups: tuple[tuple[int, tuple[Piece, ...]], ...]

    @staticmethod
    def of(groups: Iterable[tuple[int, Sequence[Piece]]], alignment: int) -> Workspace:
        """Returns the workspace of groups that run one after the other."""
        pieces, numbered, slots, size = list[Piece](), list[tuple[int, tuple[Piece, ...]]](), 0, 0
        for count, own in groups:
            for slot in range(count):
                sizes = (p.size for p in own if p.first <= slot <= p.last)
                size = max(size, sum(round_up(bytes_, alignment) for bytes_ in sizes))
            pieces += [replace(p, first=slots + p.first, last=slots + p.last) for p in own]
            numbered.append((count, tuple(own)))
            slots += count
        return Workspace(max(slots, 1), tuple(pieces), size, tuple(numbered))

    @property
    def windows(self) -> dict[int, int]:
        """Tensor whose window lies in the workspace -> the window's number of columns."""
        return {t: b.columns for piece in self.pieces for b in piece.inside for t in b.tensors}


def workspace(
    graph: Graph,
    region: Region,
    kernels: Sequence[KernelVariant | None],
    alignment: int,
    in_place: str,
    columns: Mapping[int, int] | None = None,
) -> Workspace:
    """Returns the workspace of a region, group after group.

    `columns`: operator -> the largest number of columns of a call. With None it is the number that its group
    hands off.
    """
    groups = []
    for group in region.groups:
        own = windows(graph, group) if region.is_streamed else ()
        if group.scheme is Scheme.SWAPS:  # what outlasts a step is no workspace
            lasting = lasting_windows(graph, group)
            own = [window for window in own if window not in lasting]
        per_call = columns_per_call(graph, group) if columns is None else columns
        sizes = (
            (op, catalogue.scratch_bytes(kernel, graph, graph.ops[op], per_call.get(op)))
            for op in group.ops
            if (kernel := kernels[op]) is not None
        )
        scratch = [(op, size) for op, size in sizes if size]
        if group.scheme is Scheme.HALO and own:
            groups.append((1, [_strip(graph, group, kernels, own, scratch, alignment, in_place)]))
            continue
        count = max(len(scratch), 1) if own or scratch else 0
        # windows that keep columns between hand-offs are never free
        pieces = [Piece(0, count - 1, k.size, (_window(k),)) for k in own]
        pieces += [Piece(slot, slot, one[1], (_scratch(*one),)) for slot, one in enumerate(scratch)]
        groups.append((count, pieces))
    return Workspace.of(groups, alignment)


def with_turns(space: Workspace, region: Region, constants: Mapping[int, int], alignment: int) -> Workspace:
    """Adds the constants that are loaded at each turn to a workspace. `constants`: operator -> bytes."""
    groups = []
    for group, (slots, pieces) in zip(region.groups, space.groups, strict=True):
        turning = [op for op in group.ops if op in constants]
        count = max(slots, 1) if turning else slots
        blocks = [
            Buffer(BufferKind.WEIGHTS, f"operator {op} constants", (), constants[op], 0, 0, 0, op=op)
            for op in turning
        ]
        groups.append((count, [*pieces, *(Piece(0, count - 1, b.size, (b,), group.ops) for b in blocks)]))
    return Workspace.of(groups, alignment)


def _strip(
    graph: Graph,
    group: Group,
    kernels: Sequence[KernelVariant | None],
    own: Sequence[LineBuffer],
    scratch: Sequence[tuple[int, int]],
    alignment: int,
    in_place: str,
) -> Piece:
    """The memory of a strip. Its operators run in order; a window lives from its maker to its last reader."""
    ops = group.ops
    items = []
    for k in own:
        maker = next(i for i, p in enumerate(ops) if k.tensor in graph.ops[p].outputs)
        reader = max(i for i, p in enumerate(ops) if k.tensor in graph.ops[p].inputs)
        items.append(arena.Item(maker, reader + 1, k.size, alignment))
    items += [arena.Item(ops.index(p), ops.index(p) + 1, size, alignment) for p, size in scratch]
    permissions = []
    for i, k in enumerate(own):
        op, kernel = graph.ops[ops[items[i].lower]], kernels[ops[items[i].lower]]
        if in_place == InPlace.NONE or kernel is None or kernel.overlap is not Contract.PIXEL:
            continue
        for j, other in enumerate(own):
            # rows lie at their number modulo the window's rows: of equal windows, at the same place
            same = (other.rows, other.columns, other.size) == (k.rows, k.columns, k.size)
            if same and op.inputs.count(other.tensor) == 1 and items[j].upper == items[i].lower + 1:
                permissions.append(arena.Permission(i, j, 0))
    solution = greedy.solve(arena.Problem(tuple(items), tuple(permissions)))
    inside = [_window(k, at) for k, at in zip(own, solution.offsets, strict=False)]
    at_end = zip(scratch, solution.offsets[len(own) :], strict=True)
    inside += [_scratch(op, size, at) for (op, size), at in at_end]
    return Piece(0, 0, round_up(solution.height, alignment), tuple(inside))


class Ticks:
    """The time scale for placing. It has fewer ticks than there are steps.

    Every region has as many ticks as its workspace has slots, and its groups follow each other in them. A
    buffer that a region touches is live from the region's first tick to its last; the pieces of its workspace
    are live only in their own slots. Groups alternate many times, but one turn of each is enough for placing.
    """

    def __init__(self, timeline: Timeline, workspaces: Sequence[Workspace]) -> None:
        self._timeline, self._workspaces = timeline, workspaces
        self.starts = [0, *accumulate(w.slots for w in workspaces)]  # region -> its first tick

    def timed(self, buffer: Buffer) -> Buffer:
        """The buffer with its life in ticks."""
        if not self._workspaces:
            return buffer  # of a network of aliases
        first, last = (self._timeline.region_at(step) for step in (buffer.first, buffer.last))
        return replace_numbers(buffer, first=self.starts[first], last=self.starts[last + 1] - 1)

    def pieces(self) -> list[Buffer]:
        """All pieces of the workspaces as buffers, their lives in ticks."""
        return [
            Buffer(BufferKind.SCRATCH, "", (), piece.size, start + piece.first, start + piece.last)
            for start, workspace in zip(self.starts, self._workspaces, strict=False)
            for piece in workspace.pieces
        ]

    def in_steps(self, part: Buffer, whole: Buffer, timed: Buffer) -> Buffer:
        """Converts the life of a buffer's part from ticks to steps.

        `whole`: the buffer with its life in steps. `timed`: the buffer with its life in ticks.
        """
        first, last = whole.first, whole.last
        if part.first != timed.first:
            first = self._timeline.starts[bisect_right(self.starts, part.first) - 1]
        if part.last != timed.last:
            last = self._timeline.starts[bisect_right(self.starts, part.last)] - 1
        return replace_numbers(part, first=first, last=last)


MOST_REGIONS = 4096  # regions whose facts are kept, about a kilobyte each


class RegionFacts(NamedTuple):
    """A region's workspace, rings, multiply-accumulates, cost, and overlaps of its output with its inputs."""

    workspace: Workspace
    rings: tuple[LineBuffer, ...]
    macs: int
    cost: float
    overlaps: tuple[RegionOverlap, ...]


def known_costs(
    session: Session,
    graph: Graph,
    kernels: Sequence[KernelVariant | None],
    target: Target,
    model: CostModel | None = None,
) -> CostModel:
    """Returns the cost model that a session keeps for a graph's operators.

    On the first call the session has none, and keeps `model` or a new one.
    """
    key = (topology_digest(graph), planning_digest(target), _names(kernels))
    return session.remember("costs", key, lambda: model or CostModel(graph, kernels, target.costs))


def _names(kernels: Sequence[KernelVariant | None]) -> tuple[str, ...]:
    return tuple(kernel.name if kernel else "" for kernel in kernels)


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one graph with one set of kernels; the fields are as in `assemble`."""

    graph: Graph
    kernels: Sequence[KernelVariant | None]
    target: Target
    image: str
    in_place: str
    model: CostModel

    @staticmethod
    def of(
        graph: Graph,
        kernels: Sequence[KernelVariant | None],
        target: Target,
        image: str,
        in_place: str,
        session: Session | None,
    ) -> Regions:
        """Returns the regions of a graph; a session shares them between graphs of equal topology."""
        if session is None:
            return Regions(graph, kernels, target, image, in_place, CostModel(graph, kernels, target.costs))
        numbers = (graph.inputs, graph.outputs, tuple((op.inputs, op.outputs) for op in graph.ops))
        key = (topology_digest(graph), numbers, planning_digest(target), _names(kernels), image, in_place)
        model = known_costs(session, graph, kernels, target)
        return session.remember(
            "regions", key, lambda: Regions(graph, kernels, target, image, in_place, model)
        )

    @cached_property
    def permitted(self) -> tuple[Overlap, ...]:
        """The overlaps that the kernels' contracts allow, by positions of live ranges."""
        resident = self.image == Image.RESIDENT
        return permitted_overlaps(self.graph, live_ranges(self.graph), self.kernels, self.in_place, resident)

    @cached_property
    def _last_reads(self) -> Mapping[int, int]:
        """Root (see alias_roots) -> the last operator that reads it.

        Tensors that live to the end are left out.
        """
        roots = alias_roots(self.graph)
        lasting = {roots[t] for t in (*self.graph.outputs, *state_of(self.graph)) if t in roots}
        lasting |= set(self.graph.inputs) if self.image == Image.RESIDENT else set()
        reads = {roots[t]: p for p, op in enumerate(self.graph.ops) for t in op.inputs if t in roots}
        return {t: p for t, p in reads.items() if t not in lasting}

    @cached_property
    def _known(self) -> Recent[Region, RegionFacts]:
        return Recent(MOST_REGIONS)

    def facts(self, run: Run) -> RegionFacts:
        """The facts of a run's region."""
        facts = self._known.get(run.region)
        if facts is not None:
            return facts
        graph, region, alignment = self.graph, run.region, self.target.board.alignment
        columns = {op: activity.columns for op, activity in run.activities.items()}
        space = workspace(graph, region, self.kernels, alignment, self.in_place, columns)
        in_rings = tuple(rings(graph, run))
        partial = {*space.windows, *(ring.tensor for ring in in_rings)}
        overlaps: tuple[RegionOverlap, ...] = ()
        if self.in_place == InPlace.ROWS and region.is_streamed:
            overlaps = tuple(of_region(graph, run, self.kernels, self._last_reads, partial))
        cost = self.model.region(region, self.image)
        facts = RegionFacts(space, in_rings, count_executed_macs(graph, run), cost, overlaps)
        self._known.put(region, facts)
        return facts
