"""A region's workspace: the column windows of its groups, and the scratch of their kernels.

The groups of a region never need theirs at the same time, so all share one piece of the arena. In a
group that runs in strips of whole rows, neither do operators that are not neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from buildtool.graph.types import Graph
from buildtool.plan import arena, greedy
from buildtool.plan.arena import round_up
from buildtool.plan.rings import Kept, windows
from buildtool.plan.types import Buffer, BufferKind, Group, Region, Scheme
from buildtool.target import catalogue
from buildtool.target.types import Contract, KernelVariant


@dataclass(frozen=True)
class Life:
    """First and last step in which something is touched."""

    first: int
    last: int


@dataclass(frozen=True)
class Workspace:
    """Windows and scratch of a region's groups, each with its offset in the piece."""

    size: int
    windows: tuple[tuple[Kept, int], ...]
    scratch: tuple[tuple[int, int, int], ...]  # operator, bytes, offset

    def pieces(self, base: int, lives: Mapping[int, Life]) -> list[Buffer]:
        """The buffers, once the piece lies at `base`."""
        found = []
        for k, offset in self.windows:
            life = lives[k.tensor]
            found.append(
                Buffer(
                    BufferKind.RING,
                    f"tensor {k.tensor} window",
                    (k.tensor,),
                    k.size,
                    life.first,
                    life.last,
                    base + offset,
                    k.rows,
                    k.columns,
                )
            )
        for position, size, offset in self.scratch:
            life = lives[-2 - position]
            name = f"operator {position} scratch"
            found.append(
                Buffer(BufferKind.SCRATCH, name, (), size, life.first, life.last, base + offset, op=position)
            )
        return found


def workspace(
    graph: Graph,
    region: Region,
    kernels: Sequence[KernelVariant | None],
    alignment: int,
    in_place: str,
) -> Workspace:
    """Lays out what each group needs while it runs; groups do not need theirs at the same time."""
    size = 0
    held: list[tuple[Kept, int]] = []
    scratch: list[tuple[int, int, int]] = []
    for group in region.groups:
        own = windows(graph, group) if region.is_streamed else []
        wanted = _scratch(graph, group, kernels)
        if group.scheme is Scheme.HALO:
            height, offsets = _strip(graph, group, kernels, own, wanted, alignment, in_place)
        else:
            height, offsets = _side_by_side(own, wanted, alignment)
        held += zip(own, offsets, strict=False)
        places = offsets[len(own) :]
        scratch += [(p, n, place_) for (p, n), place_ in zip(wanted, places, strict=True)]
        size = max(size, height)
    return Workspace(size, tuple(held), tuple(scratch))


def _scratch(graph: Graph, group: Group, kernels: Sequence[KernelVariant | None]) -> list[tuple[int, int]]:
    """(operator, bytes) of those of a group whose kernels want scratch."""
    found = []
    for position in group.ops:
        kernel = kernels[position]
        wanted = catalogue.scratch_bytes(kernel, graph, graph.ops[position]) if kernel else 0
        if wanted:
            found.append((position, wanted))
    return found


def _side_by_side(
    own: Sequence[Kept], scratch: Sequence[tuple[int, int]], alignment: int
) -> tuple[int, list[int]]:
    """Windows that keep columns between hand-offs are never free; one operator's scratch lies behind them."""
    place_, offsets = 0, []
    for k in own:
        offsets.append(place_)
        place_ = round_up(place_ + k.size, alignment)
    most = max((round_up(wanted, alignment) for _, wanted in scratch), default=0)
    return place_ + most, [*offsets, *(place_ for _ in scratch)]


def _strip(
    graph: Graph,
    group: Group,
    kernels: Sequence[KernelVariant | None],
    own: Sequence[Kept],
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
        if in_place == "none" or kernel is None or kernel.overlap is not Contract.PIXEL:
            continue
        for j, other in enumerate(own):
            # rows lie at their number modulo the window's rows: of equal windows, at the same place
            same = (other.rows, other.columns, other.size) == (k.rows, k.columns, k.size)
            if same and op.inputs.count(other.tensor) == 1 and items[j].upper == items[i].lower + 1:
                found.append(arena.Permission(i, j, 0))
    solution = greedy.solve(arena.Problem(tuple(items), tuple(found)))
    return round_up(solution.height, alignment), list(solution.offsets)
