"""Compiles arena problems for the search: instance.c in Python, without the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import gcd

import numpy as np

from buildtool.plan.place.arena import Permission, Problem, round_up
from buildtool.plan.place.instance import ARRAYS, Instance


def compile_problem(problem: Problem) -> Instance:
    """Returns the instance of a problem whose size and number of items are within the limits."""
    live = tuple(i for i, x in enumerate(problem.items) if x.lower < x.upper and problem.sizes[i] > 0)
    index = {item: position for position, item in enumerate(live)}
    shares = _find_shares(problem, index)
    unit, coarse = _find_unit(problem, live, shares)
    size = [problem.sizes[i] // unit for i in live]
    alignment = [1 if coarse else problem.items[i].alignment // unit for i in live]
    pinned = [-1 if (at := problem.items[i].offset) is None else at // unit for i in live]
    first, last, sections = _find_sections([(problem.items[i].lower, problem.items[i].upper) for i in live])
    distance = {(index[p.output], index[p.input]): p.distance // unit for p in shares}
    loose = [int(any(i in pair for pair in distance)) for i in range(len(live))]
    # items that are live together, and how near they may lie
    nearer = {(o, n): min(size[o], away) for (o, n), away in distance.items()}
    items = range(len(live))
    links = [(i, j) for i in items for j in items if i != j and first[i] < last[j] and first[j] < last[i]]
    above = [nearer.get((i, j), size[i]) for i, j in links]
    below = [nearer.get((j, i), size[j]) for i, j in links]
    kinds = list(zip(first, last, size, alignment, strict=True))
    pins: list[list[tuple[int, int, int]]] = [[] for _ in live]  # an item's pinned neighbours
    for (i, j), over, under in zip(links, above, below, strict=True):
        if pinned[j] >= 0:
            pins[i].append((pinned[j], over, under))
    arrays = {
        **{"first": first, "last": last, "size": size, "alignment": alignment, "pinned": pinned},
        "floor": [_find_floor(pinned[i], alignment[i], pins[i]) for i in items],
        "low": [min([size[i], *(away for (o, _), away in nearer.items() if o == i)]) for i in items],
        "loose": loose,
        "twin": _find_twins(kinds, pinned, loose),
        "start": [sum(i < k for i, _ in links) for k in range(len(live) + 1)],
        **{"neighbour": [j for _, j in links], "above": above, "below": below},
        "share_output": [o for o, _ in distance],
        "share_input": [n for _, n in distance],
        "share_first": [max(first[o], first[n]) for o, n in distance],
        "share_last": [min(last[o], last[n]) for o, n in distance],
        "share_units": [max(0, min(size[n], size[o] - away)) for (o, n), away in distance.items()],
        "share_distance": list(nearer.values()),
    }
    capped = _is_capped(problem, index, shares)
    return Instance(unit, live, capped, sections, **{k: np.array(arrays[k], np.int32) for k in ARRAYS})


def _find_shares(problem: Problem, index: Mapping[int, int]) -> list[Permission]:
    """Returns permissions of items that are live together. Distances are multiples of the granule, >= 0."""
    shares = []
    for p in problem.permissions:
        if p.output in index and p.input in index:
            a, b = problem.items[p.output], problem.items[p.input]
            if a.lower < b.upper and b.lower < a.upper:
                shares.append(Permission(p.output, p.input, round_up(max(0, p.distance), problem.granule)))
    return shares


def _is_capped(problem: Problem, index: Mapping[int, int], shares: Sequence[Permission]) -> bool:
    """Whether the search may miss placements. It cannot with the permissions of a network's operators."""
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


def _find_unit(problem: Problem, live: Sequence[int], shares: Sequence[Permission]) -> tuple[int, bool]:
    """Returns the unit of all offsets, in bytes, and whether it satisfies every alignment.

    An item at its lowest place lies on others. So its offset is a sum of sizes, distances and fixed offsets,
    rounded up to alignments.
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


def _find_sections(lives: Sequence[tuple[int, int]]) -> tuple[list[int], list[int], int]:
    """Returns the first and last section (half-open) of each item, and the number of sections."""
    births, deaths = {lower for lower, _ in lives}, {upper for _, upper in lives}
    times = sorted(births | deaths)
    # The interval from times[k] is a section if an item is born at its start and one dies at its end.
    count = [0]
    for begin, end in pairwise(times):
        count.append(count[-1] + int(begin in births and end in deaths))
    at = dict(zip(times, count, strict=False))
    return [at[lower] for lower, _ in lives], [at[upper] for _, upper in lives], count[-1]


def _find_twins(
    kinds: Sequence[tuple[int, int, int, int]], pinned: Sequence[int], loose: Sequence[int]
) -> list[int]:
    """Returns for each item the earlier item that could take its place, or -1."""
    latest: dict[tuple[int, int, int, int], int] = {}
    twins = []
    for i, kind in enumerate(kinds):
        is_free = pinned[i] < 0 and not loose[i]
        twins.append(latest.get(kind, -1) if is_free else -1)
        if is_free:
            latest[kind] = i
    return twins


def _find_floor(pin: int, alignment: int, pins: Sequence[tuple[int, int, int]]) -> int:
    """Returns the lowest offset of an item among pinned ones (offset, above, below). A pin is its own."""
    floor = 0
    for at, above, below in sorted(pins):
        if floor + above > at:
            floor = max(floor, round_up(at + below, alignment))
    return pin if pin >= 0 else floor
