"""Arena offsets by greedy orders: items one after the other into the lowest or the tightest gap.

A single order misses the bound on common networks; the best of a few nearly never does. So several
orders are tried, bottom up and top down, and where the bound is still not met, variations of the
best of them in which the item that sticks out moves forward. Everything is deterministic: ties are
broken by a total order, variations come from a fixed generator, and effort is counted in
placements, never in time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from buildtool.plan.place.arena import Permission, Problem, Solution, height, round_up
from buildtool.plan.place.bounds import bound
from buildtool.plan.place.noise import choice, following

VARIATIONS = 240  # orders tried beyond the fixed ones, at most
PLACEMENTS = 60_000  # items placed in variations, at most
SEED = 0x2545F491  # of the variations' generator
ANY_HEIGHT = 1 << 62  # no limit


class Fit(enum.Enum):
    """Which of the gaps that are wide enough an item gets."""

    FIRST = "first"  # the lowest
    BEST = "best"  # the tightest; the top of the arena only if there is no other


class _Neighbour(NamedTuple):
    """An item live at the same time; at offset o it forbids offsets between o - below and o + above."""

    item: int
    below: int
    above: int


@dataclass(frozen=True)
class _Ready:
    """A problem with what every placement needs of it."""

    problem: Problem
    neighbours: tuple[tuple[_Neighbour, ...], ...]
    flipped: bool  # the problem is upside down


class _Trial:
    """One placement, by one order."""

    def __init__(self, ready: _Ready, order: Sequence[int], fit: Fit, offsets: list[int]) -> None:
        self.ready, self.order, self.fit, self.offsets = ready, order, fit, offsets
        self.height = height(ready.problem, offsets)

    def solution(self) -> Solution:
        """The offsets, the right way up."""
        sizes = self.ready.problem.sizes
        if not self.ready.flipped:
            return Solution(tuple(self.offsets), self.height)
        turned = (self.height - o - s for o, s in zip(self.offsets, sizes, strict=True))
        return Solution(tuple(turned), self.height)


def solve(problem: Problem, *, variations: int = VARIATIONS) -> Solution:
    """The lowest placement found; stops as soon as it meets the problem's bound.

    Items with fixed offsets that contradict each other are not noticed here: arena.validate says so.
    """
    least = bound(problem).bytes
    best: _Trial | None = None
    for ready, order, fit in _ways(problem):
        most = ANY_HEIGHT if best is None else best.height - 1
        offsets = _place(ready, order, fit, {}, most)
        if offsets is None:
            continue
        trial = _Trial(ready, order, fit, offsets)
        if best is None or trial.height < best.height:  # fixed items may be as high
            best = trial
        if best.height <= least:
            return best.solution()
    assert best is not None
    for trial in _variations(best, variations):
        if trial.height < best.height:
            best = trial
        if best.height <= least:
            break
    return best.solution()


def _ways(problem: Problem) -> Iterator[tuple[_Ready, Sequence[int], Fit]]:
    """Every fixed order, every fit, bottom up and (where that is possible) top down."""
    ways = [_prepare(problem, flipped=False)]
    if all(i.offset is None and i.alignment == problem.granule for i in problem.items):
        ways.append(_prepare(_upside_down(problem), flipped=True))
    for order in _orders(problem):
        for fit in Fit:
            for ready in ways:
                yield ready, order, fit


def _upside_down(problem: Problem) -> Problem:
    """The same problem with address a standing for -a; only without fixed offsets and mixed alignments.

    offset(in) >= offset(out) + d becomes offset'(out) >= offset'(in) + d + size(in) - size(out).
    """
    sizes = problem.sizes
    items = tuple(replace(item, size=size) for item, size in zip(problem.items, sizes, strict=True))
    permissions = tuple(
        Permission(
            output=p.input,
            input=p.output,
            distance=round_up(p.distance, problem.granule) + sizes[p.input] - sizes[p.output],
        )
        for p in problem.permissions
    )
    return Problem(items, permissions)


def _prepare(problem: Problem, *, flipped: bool) -> _Ready:
    """Finds every item's neighbours in time."""
    allowed = {(p.output, p.input): p.distance for p in problem.permissions}
    items, sizes = problem.items, problem.sizes
    found: list[list[_Neighbour]] = [[] for _ in items]
    active: list[int] = []
    for a in sorted(range(len(items)), key=lambda i: items[i].lower):
        if items[a].lower >= items[a].upper or not sizes[a]:
            continue
        active = [b for b in active if items[b].upper > items[a].lower]
        for b in active:
            found[a].append(_neighbour(b, sizes[a], sizes[b], allowed.get((a, b)), allowed.get((b, a))))
            found[b].append(_neighbour(a, sizes[b], sizes[a], allowed.get((b, a)), allowed.get((a, b))))
        active.append(a)
    return _Ready(problem, tuple(tuple(f) for f in found), flipped)


def _neighbour(other: int, size: int, other_size: int, under: int | None, over: int | None) -> _Neighbour:
    """What `other` forbids an item of `size`; `under`: distance if the item is the output of the two."""
    return _Neighbour(
        other,
        size if under is None else min(size, under),
        other_size if over is None else min(other_size, over),
    )


def _orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Orders that do well on networks, by what they put first; ties: size, then later birth, then index."""
    items, sizes = problem.items, problem.sizes
    crowd = _crowds(problem)
    length = [item.upper - item.lower for item in items]
    keys: tuple[Callable[[int], int | tuple[int, int]], ...] = (
        lambda i: -sizes[i],
        lambda i: -crowd[i],
        lambda i: (-crowd[i], -items[i].lower),
        lambda i: -sizes[i] * length[i],
        lambda i: -length[i],
        lambda i: items[i].lower,
        lambda i: -items[i].upper,
        lambda i: items[i].upper,
    )
    plain = sorted(range(len(items)), key=lambda i: (-sizes[i], -items[i].lower, i))
    half = (max((i.upper for i in items), default=0) - min((i.lower for i in items), default=0)) / 2
    for key in keys:
        order = sorted(plain, key=key)  # stable: ties stay as in `plain`
        yield tuple(order)
        yield tuple(sorted(order, key=lambda i: length[i] < half))


def _crowds(problem: Problem) -> list[int]:
    """For every item, the largest live sum during its life."""
    items, sizes = problem.items, problem.sizes
    births = sorted(range(len(items)), key=lambda i: items[i].lower)
    crowd = [0] * len(items)
    active: list[int] = []
    for position, a in enumerate(births):
        active = [b for b in active if items[b].upper > items[a].lower]
        active.append(a)
        if position + 1 < len(births) and items[births[position + 1]].lower == items[a].lower:
            continue
        live = sum(sizes[b] for b in active)
        for b in active:
            crowd[b] = max(crowd[b], live)
    return crowd


def _place(
    ready: _Ready, order: Sequence[int], fit: Fit, known: Mapping[int, int], most: int
) -> list[int] | None:
    """Offsets of all items, placed in `order`; fixed ones first. None where one ends above `most` bytes.

    `known`: item -> offset, of the first ones of the order, where another order began with them too.
    """
    problem = ready.problem
    offsets, sizes, items = [-1] * len(problem.items), problem.sizes, problem.items
    for i, item in enumerate(items):
        if item.offset is not None:
            offsets[i] = item.offset
    for i, offset in known.items():
        offsets[i] = offset
    find = _first_gap if fit is Fit.FIRST else _best_gap
    for i in order:
        if offsets[i] < 0:
            forbidden = [
                (offset - below, offset + above)
                for other, below, above in ready.neighbours[i]
                if (offset := offsets[other]) >= 0
            ]
            forbidden.sort()
            offsets[i] = find(forbidden, items[i].alignment)
            if offsets[i] + sizes[i] > most:
                return None
    return offsets


def _first_gap(forbidden: Sequence[tuple[int, int]], alignment: int) -> int:
    """The lowest offset outside all of the open intervals, which come in ascending order."""
    offset = 0
    for low, high in forbidden:
        if offset <= low:
            return offset
        if offset < high:
            offset = -(-high // alignment) * alignment
    return offset


def _best_gap(forbidden: Sequence[tuple[int, int]], alignment: int) -> int:
    """The same in the tightest gap; above all where there is none."""
    offset, tightest, chosen = 0, -1, -1
    for low, high in forbidden:
        if offset <= low and (chosen < 0 or low - offset < tightest):
            tightest, chosen = low - offset, offset
        if offset < high:
            offset = -(-high // alignment) * alignment
    return offset if chosen < 0 else chosen


def _variations(start: _Trial, count: int) -> Iterator[_Trial]:
    """Placements by orders near the start's: an item at the top, or one it collides with, moves forward.

    A variation that is not higher than the one before replaces it; the others are not carried to their end.
    """
    ready, current, state = start.ready, start, SEED
    sizes = ready.problem.sizes
    for _ in range(min(count, PLACEMENTS // max(len(sizes), 1))):
        peaks = [i for i in current.order if current.offsets[i] + sizes[i] == current.height]
        state, pick = _next(state, len(peaks))
        near = [peaks[pick], *(n.item for n in ready.neighbours[peaks[pick]])]
        state, pick = _next(state, len(near))
        state, place = _next(state, max(current.order.index(near[pick]), 1))
        order = [i for i in current.order if i != near[pick]]
        order.insert(place, near[pick])
        known = {i: current.offsets[i] for i in order[:place]}
        offsets = _place(ready, order, start.fit, known, current.height)
        if offsets is not None:
            current = _Trial(ready, order, start.fit, offsets)
            yield current


def _next(state: int, choices: int) -> tuple[int, int]:
    """The generator's next state, and a choice by it."""
    state = following(state)
    return state, choice(state, choices)
