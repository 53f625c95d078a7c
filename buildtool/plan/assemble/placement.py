"""Offsets for buffers: as low as found, with as few overlaps as that needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from buildtool.base.errors import UnsupportedError
from buildtool.base.work import Work
from buildtool.plan.place import arena, greedy
from buildtool.plan.place.arena import arena_problem
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.solver import Status, decide, improve
from buildtool.plan.types import Buffer, Overlap, changed

QUICK_NODES = 2_000  # of the exact search for offsets that meet the bound
LEAST_NODES = 100  # of the same where nothing is left of the request's work
SEARCH_NODES = 20_000  # of the exact search for lower offsets, where greedy orders leave a gap


@dataclass(frozen=True)
class Placed:
    """Buffers with their offsets, and the overlaps they use.

    `height`: the end of the highest, rounded up to the alignment; `bound`: what no placement of
    these buffers with any of the overlaps offered can be lower than.
    """

    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    height: int
    bound: int


def place(buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, work: Work) -> Placed:
    """Offsets as low as found, with as few of the overlaps as that needs."""
    seen = look(buffers, options, alignment, work)
    return searched(place_quickly(buffers, options, alignment, seen, work), options, alignment, work)


@dataclass(frozen=True)
class Look:
    """What a short exact search at the bound has found: a placement there, or that there is none."""

    placed: Placed | None
    bound: int
    impossible: bool


def look(buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, work: Work) -> Look:
    """Looks for a placement at the bound, without any overlap where none is needed for that."""
    problem = arena_problem(buffers, options, alignment)
    least = bound(problem).bytes
    needed = _needed(buffers, options, alignment, least)
    status = Status.UNKNOWN
    for offered in dict.fromkeys((needed, tuple(options))):
        whole = len(offered) == len(options)
        some = problem if whole else arena_problem(buffers, offered, alignment)
        met, status = _within(some, least, work)
        if met is not None:
            return Look(_placed(buffers, offered, met, least), least, False)
    return Look(None, least, status is Status.INFEASIBLE)


def place_quickly(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, seen: Look, work: Work
) -> Placed:
    """The same as `place` without a long search, where the bound is not met.

    Where it is not met by what a short search has `seen`, greedy orders find a placement. One without any
    overlap counts too, so that offering them never costs a byte.
    """
    return seen.placed or _by_greedy_orders(buffers, options, alignment, seen.bound, work)


def _within(problem: arena.Problem, capacity: int, work: Work) -> tuple[arena.Solution | None, Status]:
    """A placement within a capacity, if a short search finds one, and what is proven."""
    try:
        nodes = QUICK_NODES if work.goes_on() else LEAST_NODES
        result = decide(problem, capacity, nodes, work=work)
    except UnsupportedError:
        return None, Status.UNKNOWN
    return result.solution, result.status


def _placed(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], solution: arena.Solution, least: int
) -> Placed:
    placed = tuple(changed(b, offset=o) for b, o in zip(buffers, solution.offsets, strict=True))
    used = tuple(o for o in offered if placed[o.input].touches(placed[o.output]))
    return Placed(placed, used, solution.height, least)


def _by_greedy_orders(
    buffers: Sequence[Buffer], options: Sequence[Overlap], alignment: int, least: int, work: Work
) -> Placed:
    best: tuple[int, tuple[Overlap, ...], arena.Solution] | None = None
    elementwise = tuple(o for o in options if not o.distance)
    every = tuple(options)
    for offered in dict.fromkeys(((), elementwise, every) if work.goes_on() else (every,)):
        solution = greedy.solve(arena_problem(buffers, offered, alignment), work=work)
        if best is None or solution.height < best[0]:
            best = (solution.height, offered, solution)
        if best[0] <= least:
            break
    assert best is not None
    height, offered, solution = best
    needed = _needed(buffers, offered, alignment, height)
    if len(needed) < len(offered) and work.goes_on():
        frugal = greedy.solve(arena_problem(buffers, needed, alignment), work=work)
        if frugal.height <= height:
            offered, solution = needed, frugal
    return _placed(buffers, offered, solution, least)


def searched(placed: Placed, options: Sequence[Overlap], alignment: int, work: Work) -> Placed:
    """The same, or what the exact search finds to be lower, with any of the overlaps."""
    if placed.height <= placed.bound:
        return placed
    problem = arena_problem(placed.buffers, options, alignment)
    start = arena.Solution(tuple(b.offset for b in placed.buffers), placed.height)
    found = improve(problem, start, SEARCH_NODES, work)
    if found.height >= placed.height:
        return placed
    return _placed(placed.buffers, options, found, placed.bound)


def _needed(
    buffers: Sequence[Buffer], offered: Sequence[Overlap], alignment: int, height: int
) -> tuple[Overlap, ...]:
    """Those of the overlaps without which the bytes live in their step would exceed `height`."""
    end = max((b.last for b in buffers), default=0) + 1
    change = [0] * (end + 1)
    for b in buffers:
        change[b.first] += arena.round_up(b.size, alignment)
        change[b.last + 1] -= arena.round_up(b.size, alignment)
    live = list(accumulate(change))
    return tuple(o for o in offered if live[buffers[o.input].last] > height)
