"""A region's workspace, and other facts of a region that do not depend on the regions around it.

The workspace is memory that the groups of a region use alternately: for windows of some columns of the
tensors inside a group, for the scratch of kernels, and for constants that are loaded at each turn of a group
(whenever it runs after another group). Groups never need it at the same time. Scratch is needed only while
its operator runs. In a group that runs in strips of whole rows, a window is needed only from its maker to its
last reader. So a region's time is divided into slots, each with the memory that is needed together. Constants
that are loaded at each turn of a group are live in all slots of this group.

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
    """A block of memory that a region needs from slot `first` to slot `last`.

    size: in bytes.
    inside: the windows and scratch in it, or one operator's constants. Their offsets count from the piece's
        start, and their lives are not set.
    group: for constants, the operators of the group that loads them at each turn; else empty.
    """

    first: int
    last: int
    size: int
    inside: tuple[Buffer, ...]
    group: tuple[int, ...] = ()

    def buffers(self, base: int, timeline: Timeline) -> list[Buffer]:
        """Returns the buffers in the piece, with their lives, and with offsets for a piece at `base`."""
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
    """The memory for the windows and the scratch of a region's groups. Time is divided into slots.

    slots: their number.
    pieces: the memory that is needed, with slots that count from the region's start.
    size: bytes of the fullest slot.
    groups: for each group its number of slots, and its pieces with slots that count from the group's start.
    """

    slots: int
    pieces: tuple[Piece, ...]
    size: int
    groups: tuple[tuple[int, tuple[Piece, ...]], ...]

    @staticmethod
    def of(groups: Iterable[tuple[int, Sequence[Piece]]], alignment: int) -> Workspace:
        """Returns the workspace of groups that run one after the other.

        `groups`: for each group its number of slots, and its pieces.
        """
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
        """Returns tensor -> the number of columns of its window, for the tensors with a window here."""
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

    `in_place`: the overlaps that are allowed (see `layerwise.plan`). `columns`: operator -> the largest
    number of columns of a call. If it is None, this is the number of pixels that the group hands off.
    """
    groups = []
    for group in region.groups:
        own = windows(graph, group) if region.is_streamed else ()
        if group.scheme is Scheme.SWAPS:  # windows that outlast a step do not belong to the workspace
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
    """Returns the workspace with the constants that are loaded at each turn of their group.

    `constants`: operator -> bytes of its constants.
    """
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
    """Returns the memory for one strip of a group that runs operator by operator on whole rows.

    A window lives from its maker to its last reader. `own`: the windows of the group. `scratch`: (operator,
    bytes) of each kernel with scratch.
    """
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
            # row y lies at y modulo the window's rows, so in equal windows at the same place
            same = (other.rows, other.columns, other.size) == (k.rows, k.columns, k.size)
            if same and op.inputs.count(other.tensor) == 1 and items[j].upper == items[i].lower + 1:
                permissions.append(arena.Permission(i, j, 0))
    solution = greedy.solve(arena.Problem(tuple(items), tuple(permissions)))
    inside = [_window(k, at) for k, at in zip(own, solution.offsets, strict=False)]
    at_end = zip(scratch, solution.offsets[len(own) :], strict=True)
    inside += [_scratch(op, size, at) for (op, size), at in at_end]
    return Piece(0, 0, round_up(solution.height, alignment), tuple(inside))


class Ticks:
    """The time scale for placing buffers. It has fewer ticks than a plan has steps.

    Every region has as many ticks as its workspace has slots, and its groups follow each other in these
    ticks. A buffer that a region touches is live from the region's first tick to its last. The pieces of its
    workspace are live only in their own slots. Groups alternate many times, but one turn of each is enough
    for placing.
    """

    def __init__(self, timeline: Timeline, workspaces: Sequence[Workspace]) -> None:
        self._timeline, self._workspaces = timeline, workspaces
        self.starts = [0, *accumulate(w.slots for w in workspaces)]  # region -> its first tick

    def timed(self, buffer: Buffer) -> Buffer:
        """Returns the buffer with its life in ticks instead of steps."""
        if not self._workspaces:
            return buffer  # all operators are aliases
        first, last = (self._timeline.region_at(step) for step in (buffer.first, buffer.last))
        return replace_numbers(buffer, first=self.starts[first], last=self.starts[last + 1] - 1)

    def pieces(self) -> list[Buffer]:
        """Returns all pieces of the workspaces as buffers, with their lives in ticks."""
        return [
            Buffer(BufferKind.SCRATCH, "", (), piece.size, start + piece.first, start + piece.last)
            for start, workspace in zip(self.starts, self._workspaces, strict=False)
            for piece in workspace.pieces
        ]

    def in_steps(self, part: Buffer, whole: Buffer, timed: Buffer) -> Buffer:
        """Returns a buffer's part with its life in steps instead of ticks.

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
    """What is computed once for a region.

    workspace: the memory that its groups use alternately.
    rings: the line buffers between its groups.
    macs: executed multiply-accumulates.
    cost: in the target's unit.
    overlaps: how far its output may lie over its inputs.
    """

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

    On the first call the session has no model. It then keeps `model`, or a new one if `model` is None.
    """
    key = (topology_digest(graph), planning_digest(target), _names(kernels))
    return session.remember("costs", key, lambda: model or CostModel(graph, kernels, target.costs))


def _names(kernels: Sequence[KernelVariant | None]) -> tuple[str, ...]:
    return tuple(kernel.name if kernel else "" for kernel in kernels)


@dataclass(frozen=True, eq=False)
class Regions:
    """The facts of one graph's regions, for one set of kernels.

    `kernels`: one per operator, None for aliases. `image` and `in_place`: as in Plan and `assemble`.
    """

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
        """Returns the `Regions` of a graph. A session shares them between graphs of equal topology."""
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
        """Returns the overlaps that the kernels' contracts allow, by positions in the graph's live ranges."""
        resident = self.image == Image.RESIDENT
        return permitted_overlaps(self.graph, live_ranges(self.graph), self.kernels, self.in_place, resident)

    @cached_property
    def _last_reads(self) -> Mapping[int, int]:
        """Returns tensor -> the last operator that reads it, for tensors (roots, see alias_roots) that die.

        Tensors that live to the end of an invoke are left out.
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
        """Returns the facts of a run's region; they are computed once."""
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
