"""Arena problems as the search wants them: what instance.c makes of them, in Python, but for the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import gcd

import numpy as np

from buildtool.plan.place.arena import Permission, Problem, round_up
from buildtool.plan.place.instance import Instance, Int32s


def compile_problem(problem: Problem) -> Instance:
    """The instance of a problem that is neither too large nor has too many items."""
    live = tuple(i for i, x in enumerate(problem.items) if x.lower < x.upper and problem.sizes[i] > 0)
    index = {item: position for position, item in enumerate(live)}
    shares = _shares(problem, index)
    unit, coarse = _unit(problem, live, shares)
    sizes = [problem.sizes[i] // unit for i in live]
    alignments = [1 if coarse else problem.items[i].alignment // unit for i in live]
    pins = [-1 if (at := problem.items[i].offset) is None else at // unit for i in live]
    first, last, sections = _sections([(problem.items[i].lower, problem.items[i].upper) for i in live])
    distance = {(index[p.output], index[p.input]): p.distance // unit for p in shares}
    links = _links(first, last, _ints(sizes), distance)
    loose = {i for pair in distance for i in pair}
    savings = [max(0, min(sizes[n], sizes[o] - away)) for (o, n), away in distance.items()]
    kinds = list(zip(first.tolist(), last.tolist(), sizes, alignments, strict=True))
    return Instance(
        unit=unit,
        items=live,
        capped=_is_capped(problem, index, shares),
        sections=sections,
        first=first,
        last=last,
        size=_ints(sizes),
        alignment=_ints(alignments),
        pinned=_ints(pins),
        floor=_floors(alignments, pins, links),
        low=links.low,
        loose=_ints([int(i in loose) for i in range(len(live))]),
        twin=_ints(_twins(kinds, pins, loose)),
        start=links.start,
        neighbour=links.neighbour,
        above=links.above,
        below=links.below,
        share_output=_ints([o for o, _ in distance]),
        share_input=_ints([n for _, n in distance]),
        share_first=_ints([max(first[o], first[n]) for o, n in distance]),
        share_last=_ints([min(last[o], last[n]) for o, n in distance]),
        share_units=_ints(savings),
        share_distance=_ints([min(sizes[o], away) for (o, _), away in distance.items()]),
    )


def _ints(values: Sequence[int]) -> Int32s:
    return np.array(values, dtype=np.int32)


def _shares(problem: Problem, index: Mapping[int, int]) -> list[Permission]:
    """Permissions of items that are live together; distances are multiples of the granule, at least 0."""
    found = []
    for p in problem.permissions:
        if p.output in index and p.input in index:
            a, b = problem.items[p.output], problem.items[p.input]
            if a.lower < b.upper and b.lower < a.upper:
                found.append(Permission(p.output, p.input, round_up(max(0, p.distance), problem.granule)))
    return found


def _is_capped(problem: Problem, index: Mapping[int, int], shares: Sequence[Permission]) -> bool:
    """Whether the search may miss placements; never with the permissions of a network's operators."""
    if any(p.distance < 0 for p in problem.permissions if p.output in index and p.input in index):
        return True
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for p in shares:
        if p.distance == 0:
            sorter.add(p.input, p.output)
    try:
        sorter.prepare()
    except CycleError:
        return True
    return False


def _unit(problem: Problem, live: Sequence[int], shares: Sequence[Permission]) -> tuple[int, bool]:
    """What all offsets are multiples of, in bytes, and whether that alone keeps every alignment.

    Items that lie as low as they can lie on others, so their offsets are sums of sizes, distances
    and fixed offsets, rounded up to alignments.
    """
    unit = gcd(
        *(problem.sizes[i] for i in live),
        *(problem.items[i].offset or 0 for i in live),
        *(p.distance for p in shares),
    )
    alignments = [problem.items[i].alignment for i in live]
    if all(unit % alignment == 0 for alignment in alignments):
        return unit or 1, True
    return gcd(unit, *alignments), False


def _sections(lives: Sequence[tuple[int, int]]) -> tuple[Int32s, Int32s, int]:
    """The sections that each item is live in (half-open), and how many there are."""
    births, deaths = {lower for lower, _ in lives}, {upper for _, upper in lives}
    times = sorted(births | deaths)
    # The stretch from times[k] is a section if something is born as it begins and dies as it ends.
    count = [0]
    for begin, end in pairwise(times):
        count.append(count[-1] + int(begin in births and end in deaths))
    position = {time: k for k, time in enumerate(times)}
    first = _ints([count[position[lower]] for lower, _ in lives])
    last = _ints([count[position[upper]] for _, upper in lives])
    return first, last, count[-1]


@dataclass(frozen=True)
class _Links:
    """Who is live together, and how near they may lie: arrays of Instance."""

    start: Int32s
    neighbour: Int32s
    above: Int32s
    below: Int32s
    low: Int32s


def _links(first: Int32s, last: Int32s, size: Int32s, distance: Mapping[tuple[int, int], int]) -> _Links:
    """The neighbours of all items, as rows of one array; `distance` of (output, input) where permitted."""
    together = (first[:, None] < last[None, :]) & (first[None, :] < last[:, None])
    np.fill_diagonal(together, False)
    start = np.zeros(len(first) + 1, np.int32)
    np.cumsum(together.sum(axis=1), out=start[1:])
    owner, neighbour = np.nonzero(together)
    above, below, low = size[owner], size[neighbour], size.copy()
    for (output, source), away in distance.items():
        for array, i, other in ((above, output, source), (below, source, output)):
            begin = int(start[i])
            link = begin + int(np.searchsorted(neighbour[begin : start[i + 1]], other))
            array[link] = min(int(size[output]), away)
        low[output] = min(int(low[output]), away)
    return _Links(start, neighbour.astype(np.int32), above, below, low)


def _twins(kinds: Sequence[tuple[int, int, int, int]], pins: Sequence[int], loose: set[int]) -> list[int]:
    """For every item the one before it that could take its place, -1 if there is none."""
    latest: dict[tuple[int, int, int, int], int] = {}
    twins = []
    for i, kind in enumerate(kinds):
        if pins[i] >= 0 or i in loose:
            twins.append(-1)
            continue
        twins.append(latest.get(kind, -1))
        latest[kind] = i
    return twins


def _floors(alignments: Sequence[int], pins: Sequence[int], links: _Links) -> Int32s:
    """The lowest offset of every item among the pinned ones alone; a pinned one's own."""
    floors, pinned = np.zeros(len(pins), np.int32), _ints(pins)
    if not (pinned >= 0).any():
        return floors
    fixed = np.flatnonzero(pinned[links.neighbour] >= 0)
    owner = np.searchsorted(links.start, fixed, side="right") - 1
    near: dict[int, list[tuple[int, int, int]]] = {}  # item -> its pinned neighbours: offset, above, below
    for i, link in zip(owner.tolist(), fixed.tolist(), strict=True):
        pin = int(pinned[links.neighbour[link]])
        near.setdefault(i, []).append((pin, int(links.above[link]), int(links.below[link])))
    for i, found in near.items():
        floor = 0
        for pin, above, below in sorted(found):
            if floor + above > pin:
                floor = max(floor, round_up(pin + below, alignments[i]))
        floors[i] = floor
    return np.where(pinned >= 0, pinned, floors)
