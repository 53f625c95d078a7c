"""Offsets for buffers: the lowest offsets that are found, with the fewest overlaps that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from buildtool.base.errors import UnsupportedError
from buildtool.base.work import Work
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.solver import Status, decide, improve
from buildtool.plan.types import Buffer, Overlap, replace_numbers

QUICK_NODES = 2_000  # nodes of the exact search for offsets that meet the bound
LEAST_NODES = 100  # nodes of this search where the request's budget of work has ended
SEARCH_NODES = 20_000  # nodes of the exact search for lower offsets, where greedy orders leave a gap


@dataclass(frozen=True)
class Placed:
    """Buffers with their offsets, and the overlaps that these offsets use.

    `height`: the end of the highest buffer in bytes, rounded up to the alignment. `bound`: a lower bound of
    the height of all placements of these buffers with any of the permitted overlaps.
    """

    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    height: int
    bound: int


@dataclass(frozen=True)
class Look:
    """The result of a short exact search for a placement as low as the lower bound.

    placed: the placement; None if none was found.
    bound: the lower bound in bytes.
    impossible: whether the search has proven that there is no such placement.
    """

    placed: Placed | None
    bound: int
    impossible: bool


def place(buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, work: Work) -> Placed:
    """Returns the lowest offsets that are found for `buffers`, with the fewest overlaps that they need.

    `options`: the permitted overlaps. `work`: the budget that the search uses.
    """
    first_look = look(buffers, options, alignment, work)
    return search_placement(
        place_quickly(buffers, options, alignment, first_look, work), options, alignment, work
    )


def look(buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, work: Work) -> Look:
    """Searches briefly for a placement of `buffers` that is as low as the lower bound.

    It first permits only the overlaps that are necessary for this height. `options`: the permitted overlaps.
    `work`: the budget that the search uses.
    """
    problem = arena_problem(buffers, options, alignment)
    least = problem.bound.bytes
    status = Status.UNKNOWN
    for offered in dict.fromkeys((_needed_overlaps(buffers, options, alignment, least), tuple(options))):
        candidate = arena_problem(buffers, offered, alignment) if len(offered) < len(options) else problem
        status = Status.UNKNOWN
        try:
            result = decide(candidate, least, QUICK_NODES if work.goes_on() else LEAST_NODES, work=work)
        except UnsupportedError:
            continue
        if result.solution is not None:
            return Look(_make_placed(buffers, offered, result.solution, least), least, False)
        status = result.status
    return Look(None, least, status is Status.INFEASIBLE)


def place_quickly(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, seen: Look, work: Work
) -> Placed:
    """Returns the placement in `seen`, or if it has none, the best one that greedy orders give.

    The greedy orders are also tried without overlaps, so that permitting overlaps never costs a byte. `seen`:
    the result of `look` for the same buffers and `options` (permitted overlaps).
    """
    if seen.placed:
        return seen.placed
    best: tuple[tuple[Overlap, ...], arena.Solution] | None = None
    every, elementwise = tuple(options), tuple(o for o in options if not o.distance)
    for offered in dict.fromkeys(((), elementwise, every) if work.goes_on() else (every,)):
        solution = greedy.solve(arena_problem(buffers, offered, alignment), work=work)
        if best is None or solution.height < best[1].height:
            best = offered, solution
        if best[1].height <= seen.bound:
            break
    assert best is not None
    offered, solution = best
    needed = _needed_overlaps(buffers, offered, alignment, solution.height)
    if len(needed) < len(offered) and work.goes_on():
        frugal = greedy.solve(arena_problem(buffers, needed, alignment), work=work)
        if frugal.height <= solution.height:
            offered, solution = needed, frugal
    return _make_placed(buffers, offered, solution, seen.bound)


def search_placement(placed: Placed, options: Sequence[Overlap], alignment: int, work: Work) -> Placed:
    """Searches exactly for a placement that is lower than `placed`. Returns it, or `placed` if there is none.

    The search may use any of the overlaps in `options`, and ends after SEARCH_NODES nodes.
    """
    if placed.height <= placed.bound:
        return placed
    problem = arena_problem(placed.buffers, options, alignment)
    start = arena.Solution(tuple(b.offset for b in placed.buffers), placed.height)
    lowest = improve(problem, start, SEARCH_NODES, work)
    if lowest.height >= placed.height:
        return placed
    return _make_placed(placed.buffers, options, lowest, placed.bound)


def _make_placed(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], solution: arena.Solution, least: int
) -> Placed:
    placed = tuple(replace_numbers(b, offset=o) for b, o in zip(buffers, solution.offsets, strict=True))
    used = tuple(o for o in offered if placed[o.input].touches(placed[o.output]))
    return Placed(placed, used, solution.height, least)


def _needed_overlaps(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], alignment: int, height: int
) -> tuple[Overlap, ...]:
    """Returns the overlaps without which more than `height` bytes would be live in their step."""
    change = [0] * (max((b.last for b in buffers), default=0) + 2)
    for b in buffers:
        change[b.first] += arena.round_up(b.size, alignment)
        change[b.last + 1] -= arena.round_up(b.size, alignment)
    live = list(accumulate(change))
    return tuple(o for o in offered if live[buffers[o.input].last] > height)
