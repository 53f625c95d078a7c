"""A region's workspace: the column windows of its groups, the scratch of their kernels, constants by turns.

The groups of a region never need theirs at the same time, and scratch is needed only while its
operator runs; in a group that runs in strips of whole rows, a window only from its maker to its last
reader. So a region's time is divided into slots, each with what is needed together. Constants that
come with every turn of a group are there in all of its slots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from buildtool.base.modes import InPlace
from buildtool.graph.types import Graph
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import round_up
from buildtool.plan.schedule.inner import columns_per_call
from buildtool.plan.schedule.rings import LineBuffer, windows
from buildtool.plan.schedule.timeline import Life, Timeline
from buildtool.plan.types import Buffer, BufferKind, Group, Region, Scheme, changed
from buildtool.target import catalogue
from buildtool.target.types import Contract, KernelVariant


@dataclass(frozen=True)
class Piece:
    """Memory that a region needs from slot `first` to slot `last`: `size` bytes at one place.

    `windows` and `scratch` (operator, bytes) lie in it, each at the last number from its start.
    `constants`: the operator whose constants are all of it, `group`: the operators of its group.
    """

    first: int
    last: int
    size: int
    windows: tuple[tuple[LineBuffer, int], ...] = ()
    scratch: tuple[tuple[int, int, int], ...] = ()
    constants: int = -1
    group: tuple[int, ...] = ()

    @cached_property
    def buffer(self) -> Buffer:
        """The piece as a buffer that lives in these slots."""
        return Buffer(BufferKind.SCRATCH, "", (), self.size, self.first, self.last)

    @cached_property
    def _inside(self) -> tuple[Buffer, ...]:
        """What lies in it: offsets from its start, and lives that say nothing."""
        if self.constants >= 0:
            name = f"operator {self.constants} constants"
            return (Buffer(BufferKind.WEIGHTS, name, (), self.size, 0, 0, 0, op=self.constants),)
        kept = ((f"tensor {k.tensor} window", k, at) for k, at in self.windows)
        used = ((f"operator {position} scratch", position, n, at) for position, n, at in self.scratch)
        return (
            *(
                Buffer(BufferKind.RING, n, (k.tensor,), k.size, 0, 0, at, k.rows, k.columns)
                for n, k, at in kept
            ),
            *(Buffer(BufferKind.SCRATCH, name, (), n, 0, 0, at, op=op) for name, op, n, at in used),
        )

    def buffers(self, base: int, timeline: Timeline) -> list[Buffer]:
        """What lies in it, once the piece lies at `base`."""
        found = []
        for b in self._inside:
            life = timeline.tensor_lives[b.tensors[0]] if b.tensors else timeline.lives[b.op]
            if self.constants >= 0:
                together = [timeline.lives[op] for op in self.group]
                life = Life(min(one.first for one in together), max(one.last for one in together))
            found.append(changed(b, first=life.first, last=life.last, offset=base + b.offset))
        return found


@dataclass(frozen=True)
class Workspace:
    """Windows and scratch of a region's groups, by slots; `size`: most bytes of any slot.

    `groups`: of each group its first slot, and the one after its last.
    """

    slots: int
    pieces: tuple[Piece, ...]
    size: int
    groups: tuple[tuple[int, int], ...] = ()

    @property
    def windows(self) -> Iterator[LineBuffer]:
        """The windows that lie in it."""
        return (window for piece in self.pieces for window, _ in piece.windows)


def workspace(
    graph: Graph,
    region: Region,
    kernels: Sequence[KernelVariant | None],
    alignment: int,
    in_place: str,
    columns: Mapping[int, int] | None = None,
) -> Workspace:
    """What each group needs while it runs, group after group.

    `columns`: operator -> the most columns that a call makes; None: as many as its group hands on.
    """
    pieces: list[Piece] = []
    spans: list[tuple[int, int]] = []
    slots = size = 0
    for group in region.groups:
        own = windows(graph, group) if region.is_streamed else []
        wanted = _scratch(graph, group, kernels, columns)
        if group.scheme is Scheme.HALO and own:
            height, offsets = _strip(graph, group, kernels, own, wanted, alignment, in_place)
            laid = zip(wanted, offsets[len(own) :], strict=True)
            scratch = tuple((p, n, at) for (p, n), at in laid)
            pieces.append(Piece(slots, slots, height, tuple(zip(own, offsets, strict=False)), scratch))
            spans.append((slots, slots + 1))
            size, slots = max(size, height), slots + 1
            continue
        end = slots + (max(len(wanted), 1) if own or wanted else 0)
        # windows that keep columns between hand-offs are never free
        pieces += [Piece(slots, end - 1, k.size, ((k, 0),)) for k in own]
        pieces += [Piece(slots + i, slots + i, n, (), ((p, n, 0),)) for i, (p, n) in enumerate(wanted)]
        spans.append((slots, end))
        kept = sum(round_up(k.size, alignment) for k in own)
        size, slots = max(size, kept + max((round_up(n, alignment) for _, n in wanted), default=0)), end
    return Workspace(max(slots, 1), tuple(pieces), size, tuple(spans))


def with_turns(space: Workspace, region: Region, constants: Mapping[int, int], alignment: int) -> Workspace:
    """The same with constants that come by turns: by operator of the region, their bytes."""
    if not any(op in constants for op in region.ops):
        return space
    pieces: list[Piece] = []
    spans: list[tuple[int, int]] = []
    slots = size = 0
    for group, (first, end) in zip(region.groups, space.groups, strict=True):
        count = max(end - first, 1 if any(op in constants for op in group.ops) else 0)
        own = [
            replace(p, first=slots + p.first - first, last=slots + p.last - first)
            for p in space.pieces
            if first <= p.first < end
        ]
        own += [
            Piece(slots, slots + count - 1, constants[op], constants=op, group=group.ops)
            for op in group.ops
            if op in constants
        ]
        for slot in range(slots, slots + count):
            size = max(size, sum(round_up(p.size, alignment) for p in own if p.first <= slot <= p.last))
        spans.append((slots, slots + count))
        pieces, slots = pieces + own, slots + count
    return Workspace(max(slots, 1), tuple(pieces), size, tuple(spans))


def _scratch(
    graph: Graph,
    group: Group,
    kernels: Sequence[KernelVariant | None],
    columns: Mapping[int, int] | None,
) -> list[tuple[int, int]]:
    """(operator, bytes) of those of a group whose kernels want scratch."""
    found = []
    columns = columns_per_call(graph, group) if columns is None else columns
    for position in group.ops:
        kernel, op = kernels[position], graph.ops[position]
        wanted = catalogue.scratch_bytes(kernel, graph, op, columns.get(position)) if kernel else 0
        if wanted:
            found.append((position, wanted))
    return found


def _strip(
    graph: Graph,
    group: Group,
    kernels: Sequence[KernelVariant | None],
    own: Sequence[LineBuffer],
    scratch: Sequence[tuple[int, int]],
    alignment: int,
    in_place: str,
) -> tuple[int, list[int]]:
    """Operators run one after the other within a strip: a window lives from its maker to its last reader."""
    ops = group.ops
    items = []
    for k in own:
        made = next(i for i, p in enumerate(ops) if k.tensor in graph.ops[p].outputs)
        read = max(i for i, p in enumerate(ops) if k.tensor in graph.ops[p].inputs)
        items.append(arena.Item(made, read + 1, k.size, alignment))
    items += [arena.Item(ops.index(p), ops.index(p) + 1, wanted, alignment) for p, wanted in scratch]
    found = []
    for i, k in enumerate(own):
        op, kernel = graph.ops[ops[items[i].lower]], kernels[ops[items[i].lower]]
        if in_place == InPlace.NONE or kernel is None or kernel.overlap is not Contract.PIXEL:
            continue
        for j, other in enumerate(own):
            # rows lie at their number modulo the window's rows: of equal windows, at the same place
            same = (other.rows, other.columns, other.size) == (k.rows, k.columns, k.size)
            if same and op.inputs.count(other.tensor) == 1 and items[j].upper == items[i].lower + 1:
                found.append(arena.Permission(i, j, 0))
    solution = greedy.solve(arena.Problem(tuple(items), tuple(found)))
    return round_up(solution.height, alignment), list(solution.offsets)


class Ticks:
    """Time as placing sees it: fewer moments than steps, and the groups of a region side by side in it.

    Every region takes as many ticks as its workspace has slots. What is touched in a region is there from
    its first tick to its last, the pieces of its workspace only in their own slots: groups take turns over
    and over, but one turn of each is as good as all.
    """

    def __init__(self, timeline: Timeline, workspaces: Sequence[Workspace]) -> None:
        self._timeline, self._workspaces = timeline, workspaces
        self.starts = [0, *accumulate(w.slots for w in workspaces)]  # region -> its first tick

    def timed(self, buffer: Buffer) -> Buffer:
        """The buffer with its life in ticks."""
        if not self._workspaces:
            return buffer  # of a network of aliases
        first, last = (self._timeline.region_at(step) for step in (buffer.first, buffer.last))
        return changed(buffer, first=self.starts[first], last=self.starts[last + 1] - 1)

    def pieces(self) -> list[Buffer]:
        """All pieces of the workspaces, their lives in ticks."""
        return [
            changed(piece.buffer, first=start + piece.first, last=start + piece.last)
            for start, workspace in zip(self.starts, self._workspaces, strict=False)
            for piece in workspace.pieces
        ]

    def lived(self, part: Buffer, whole: Buffer, timed: Buffer) -> Buffer:
        """A part of a buffer with its life in steps; all of the buffer, its life in steps and in ticks."""
        first, last = whole.first, whole.last
        if part.first != timed.first:
            first = self._timeline.starts[bisect_right(self.starts, part.first) - 1]
        if part.last != timed.last:
            last = self._timeline.starts[bisect_right(self.starts, part.last)] - 1
        return changed(part, first=first, last=last)
