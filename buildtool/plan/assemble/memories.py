"""A plan over two memories: the same regions, with each buffer in the one or the other arena.

What is read and written most goes where that costs least, as far as both memories hold what is in them. The
addresses of the second arena begin where the first one ends (see `Plan.second_at`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from buildtool.base.session import Session
from buildtool.graph.types import Graph
from buildtool.plan.assemble.assemble import contents
from buildtool.plan.assemble.moves import in_order
from buildtool.plan.assemble.regionfacts import Regions
from buildtool.plan.assemble.workspace import Piece, Ticks
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.spread import Spread, spread
from buildtool.plan.schedule.timeline import Timeline
from buildtool.plan.schedule.traffic import Traffic, traffic
from buildtool.plan.types import Buffer, BufferKind, Overlap, Plan, changed
from buildtool.target.types import Target


def over_two(
    plan: Plan,
    graph: Graph,
    target: Target,
    in_place: str,
    capacities: tuple[int, int],
    waits: tuple[int, int],
    session: Session | None = None,
    *,
    caches: tuple[int, int] = (0, 0),
    moving: bool = False,
) -> Plan | None:
    """The plan's regions with their buffers in two arenas of at most these capacities (bytes).

    `waits`: what a byte that is read or written costs in each memory, beyond what kernels cost.
    `caches`: bytes of data that are kept in one before each. `moving`: tensors move where they do in the
    plan; otherwise none does. None where no placement is found.
    """
    alignment = target.board.alignment
    rooms = (capacities[0] // alignment * alignment, capacities[1] // alignment * alignment)
    if min(rooms) < alignment:
        return None
    kernels = target.named(plan.kernels)
    timeline = Timeline.of(graph, plan.regions, plan.image, session)
    regions = Regions.of(graph, kernels, target, plan.image, in_place, session)
    facts, buffers, permitted = contents(timeline, regions)
    spaces = [known.workspace for known in facts]
    ticks, pieces = Ticks(timeline, spaces), [piece for space in spaces for piece in space.pieces]
    if moving:
        inside = sum(len(piece.buffers(0, timeline)) for piece in pieces)
        parts = list(plan.buffers[: len(plan.buffers) - inside])
        permitted = _of_parts(permitted, buffers, parts, timeline)
        buffers = parts
    prices = []
    for wait, cache in zip(waits, caches, strict=True):
        used = traffic(timeline, kernels, cache)
        touched = [*(_touched(used, b) for b in buffers), *(_inside(used, piece) for piece in pieces)]
        prices.append([size * wait for size in touched])
    problem = arena_problem([*map(ticks.timed, buffers), *ticks.pieces()], permitted, alignment)
    found = spread(problem, list(zip(*prices, strict=True)), rooms)
    if found is None:
        return None
    laid = _laid(found, buffers, pieces, timeline, alignment)
    moves = in_order(plan.moves, laid) if moving else ()
    if moves is None:
        return None
    saved = () if moving else [plan.buffers[move.source].size for move in plan.moves]
    second_at = max(alignment, found.heights[0])
    total = second_at + max(alignment, found.heights[1])
    return replace(
        plan,
        buffers=tuple(laid),
        overlaps=_used(permitted, laid, found),
        arena_bytes=total,
        arena_bound_bytes=min(total, bound(problem).bytes),
        cost=plan.cost - sum(map(regions.model.pricer.move, saved)),
        moves=moves,
        second_at=second_at,
    )


def _laid(
    found: Spread, buffers: Sequence[Buffer], pieces: Sequence[Piece], timeline: Timeline, alignment: int
) -> list[Buffer]:
    """The buffers where they lie, then what lies in the pieces."""
    second_at = max(alignment, found.heights[0])
    sides = zip(found.offsets, found.second, strict=True)
    places = [offset + (second_at if second else 0) for offset, second in sides]
    laid = [changed(b, offset=at) for b, at in zip(buffers, places, strict=False)]
    for piece, at in zip(pieces, places[len(buffers) :], strict=True):
        laid += piece.buffers(at, timeline)
    return laid


def _of_parts(
    permitted: Sequence[Overlap], buffers: Sequence[Buffer], parts: Sequence[Buffer], timeline: Timeline
) -> list[Overlap]:
    """Overlaps of buffers as those of their parts that are there while the operator runs."""
    found = []
    for o in permitted:
        life = timeline.lives[o.op]

        def there(of: Buffer, first: int = life.first, last: int = life.last) -> list[int]:
            same = (i for i, part in enumerate(parts) if part.tensors == of.tensors and part.kind == of.kind)
            return [i for i in same if parts[i].first <= last and first <= parts[i].last]

        sources, results = there(buffers[o.input]), there(buffers[o.output])
        if len(sources) == len(results) == 1:
            found.append(changed(o, input=sources[0], output=results[0]))
    return found


def in_one(plan: Plan, memory: int, alignment: int) -> Plan:
    """The plan as it is with everything in one of two memories (0, 1); the other one's arena has one unit."""
    if memory == 0:
        return replace(plan, arena_bytes=plan.arena_bytes + alignment, second_at=plan.arena_bytes)
    moved = tuple(changed(buffer, offset=buffer.offset + alignment) for buffer in plan.buffers)
    return replace(plan, buffers=moved, arena_bytes=plan.arena_bytes + alignment, second_at=alignment)


def _touched(used: Traffic, buffer: Buffer) -> int:
    """Bytes read and written of a buffer."""
    if buffer.kind is BufferKind.ACCUMULATOR:
        return used.sums.get(buffer.op, 0)
    return used.tensors.get(buffer.tensors[0], 0) if buffer.tensors else used.scratch.get(buffer.op, 0)


def _inside(used: Traffic, piece: Piece) -> int:
    """Bytes read and written of what lies in a piece of a workspace."""
    windows = sum(used.tensors.get(window.tensor, 0) for window, _ in piece.windows)
    return windows + sum(used.scratch.get(op, 0) for op, _, _ in piece.scratch)


def _used(permitted: Sequence[Overlap], laid: Sequence[Buffer], found: Spread) -> tuple[Overlap, ...]:
    """The overlaps that the placement makes use of; the buffers they name come first in `laid`."""
    return tuple(
        o
        for o in permitted
        if laid[o.input].touches(laid[o.output]) and found.second[o.input] == found.second[o.output]
    )


def touched_bytes(
    plan: Plan, graph: Graph, target: Target, caches: Sequence[int] = (), session: Session | None = None
) -> tuple[int, ...]:
    """Bytes that the plan's kernels bring from or write to each of its arenas, by the estimate of `traffic`.

    `caches`: bytes of data that are kept before each memory; none where they are missing.
    """
    timeline, kernels = Timeline.of(graph, plan.regions, plan.image, session), target.named(plan.kernels)
    found = []
    for index in range(len(plan.arenas)):
        used = traffic(timeline, kernels, caches[index] if caches else 0)
        own = [b for b in plan.buffers if index == bool(plan.second_at and b.offset >= plan.second_at)]
        found.append(sum(_touched(used, buffer) for buffer in own))
    return tuple(found)
