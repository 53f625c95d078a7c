"""By how much a front may miss the exact one, where the budget of its search ended first.

A front misses by at most `factor` if for every way of the space it has a point that needs at most so many
times the way's bytes, and weighs at most so many times its weight. It is proven by a relaxed search (see
`Search.lower_bound`), for limits of bytes that fall by a sixteenth: within each no way weighs less than the
bound, and above the next one every way needs that many bytes at the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from buildtool.plan.search.columns import Columns
from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.regions import INFINITE

FALL = 16  # each limit is lower by this part of it


def factor(columns: Columns, most_extra: int | None, ways: Sequence[Way], exact: Way | None) -> float:
    """The factor by which `ways` may miss; `exact`: no way with as many bytes or more is missed."""
    missed = 1.0
    for size, weight in _corners(columns, most_extra, ways, exact):
        nearest = min((max(way.bytes / size, _over(way.weight, weight)) for way in ways), default=math.inf)
        missed = max(missed, nearest)
    return missed


def over_bound(columns: Columns, weight: int, most_bytes: int) -> float:
    """How many times the least weight of all ways within some bytes a weight may be."""
    bound = Search(columns, relaxed=True).lower_bound(most_bytes)
    return 1.0 if bound is None else _over(weight, bound)


def _over(weight: int, bound: int) -> float:
    if weight <= bound:
        return 1.0
    return weight / bound if bound > 0 else math.inf


def _corners(
    columns: Columns, most_extra: int | None, ways: Sequence[Way], exact: Way | None
) -> Iterator[tuple[int, int]]:
    """(bytes, weight): every way that may be missed needs and weighs at least as much as one of these."""
    relaxed = Search(columns, most_extra, relaxed=True)
    limit = INFINITE if exact is None else exact.bytes - 1
    known = 0 if exact is None else exact.weight  # of fewer bytes nothing weighs less
    while (bound := relaxed.lower_bound(limit)) is not None:
        largest = max((way.bytes for way in ways), default=limit)
        below = min(limit, largest) - max(1, min(limit, largest) // FALL)
        yield max(1, below + 1), max(bound, known)
        if below < 1:
            return
        limit = below
