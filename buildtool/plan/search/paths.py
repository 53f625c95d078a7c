"""Finds the Pareto front of a whole network: the least weight for every amount of memory.

A weight is multiply-accumulates, or the target's cost (see `tables`). A way is a sequence of regions that
runs the network. For one limit in bytes, the search goes through the cuts (positions between operators) from
the first to the last. The best way to a cut is the best way to some earlier cut, followed by a region that
keeps the limit. Then the limit falls below the bytes of the way that was found. A cut keeps its way if its
last region keeps the new limit and the way to that region has not become heavier: a lower limit never makes a
way lighter.

A search has a budget of labels, that is, of partial regions (see `regions`). Once it is spent, every cut gets
a few more labels for each limit, and the best way that these find; limits then fall in larger steps. These
ways can still run, but better ones may exist: `factor` says by how much.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from buildtool.base.session import remembered
from buildtool.plan.search.regions import INFINITE, Candidate, CutResult, Regions
from buildtool.plan.search.tables import Tables

MOST_LABELS = 200_000  # labels of a search; beyond them it is not exact
LABELS_BEYOND = 50  # labels for each cut and limit once MOST_LABELS are spent
FALL_BEYOND = 16  # limits then fall by at least 1 / FALL_BEYOND of the bytes, as in a relaxed search


@dataclass(frozen=True)
class Way:
    """A way to run the whole network: bytes of its largest region, its weight, its regions in order."""

    bytes: int
    weight: int
    regions: tuple[Candidate, ...]


class Search:
    """Finds ways of least weight within a limit in bytes. Each limit must not be above the one before it."""

    def __init__(
        self,
        tables: Tables,
        most_extra: int | None = None,
        most_labels: int = MOST_LABELS,
        relaxed: bool = False,
    ) -> None:
        """Prepares a search over the elements (operators) and blocks in `tables`.

        most_extra: how much more a way may weigh than all elements run one by one; None: no limit.
        most_labels: the budget of labels.
        relaxed: whether to search only for a lower bound of the weight (see `lower_bound`).
        """
        self.t = tables
        self.most_extra = most_extra = INFINITE // 4 if most_extra is None else most_extra
        count = tables.e.count
        self._best = (ctypes.c_int64 * (count + 1))(*[-INFINITE] * (count + 1))
        # cut -> the last round in which the best weight of an earlier cut rose
        self._version = (ctypes.c_int64 * (count + 2))()
        # `spare`: weight that later blocks may save by leaving out rows
        self._regions = Regions(tables, most_extra + tables.spare, self._best, self._version)
        self._last: list[CutResult | None] = [None] * (count + 1)
        self._rounds = 0
        self.most_labels, self._relaxed = most_labels, relaxed
        self.searched = self.labels = 0
        self.most_bytes = 0  # the latest limit
        self.first: Way | None = None  # the way of the first limit
        self.exact = True  # False once a label was left out because the budget was spent
        self.first_exact = True
        self.exact_way: Way | None = None  # the way of the latest limit while the search was exact

    def least(self, most_bytes: int) -> Way | None:
        """Returns the way of least weight that needs at most `most_bytes` bytes; None if no way fits.

        If `exact` is false afterwards, a better way may exist, even if None is returned.
        """
        if not self._pass(most_bytes):
            return None
        regions: list[Candidate] = []
        cut = self.t.e.count
        while cut:
            last = self._last[cut]
            assert last is not None
            regions.append(self._region(cut, last))
            cut = last.first
        most = max((region.bytes for region in regions), default=0)
        way = Way(most, self.t.before[-1] + self._best[self.t.e.count], tuple(reversed(regions)))
        if self._rounds == 1:
            self.first, self.first_exact = way, self.exact
        if self.exact:
            self.exact_way = way
        return way

    def _pass(self, most_bytes: int) -> bool:
        """Searches all cuts in order within a limit. Returns whether any way keeps it."""
        if most_bytes < 0:  # too little even for a network of aliases, which needs 0 bytes
            return False
        self.begin(most_bytes)
        for end in range(1, self.t.e.count + 1):
            self._set(end, self._to(end, self._best[end]))
        return self._best[self.t.e.count] <= self.most_extra

    def begin(self, most_bytes: int) -> None:
        """Starts again at the first cut, with a lower limit in bytes."""
        self.most_bytes = most_bytes
        self._rounds += 1
        self._best[0] = 0

    def _set(self, cut: int, extra: int) -> None:
        """Sets the extra weight of the best way to a cut.

        It is the weight beyond that of the elements run one by one.
        """
        version, changed = self._version, self._rounds if extra != self._best[cut] else 0
        self._best[cut] = extra
        version[cut + 1] = max(version[cut], version[cut + 1], changed)

    def _to(self, end: int, before: int) -> int:
        """Returns the extra weight of the best way to cut `end`; INFINITE if there is no way.

        `before`: the result for the previous, larger limit.
        """
        last, most_bytes = self._last[end], self.most_bytes
        if last and last.bytes <= most_bytes and self._best[last.first] + last.extra <= before:
            return before
        if before >= INFINITE:
            return INFINITE
        most = 1 if self._relaxed else max(LABELS_BEYOND, self.most_labels - self.labels)
        result = self._regions.search(most_bytes, self._rounds, end, before, most)
        self.searched += 1
        self.labels += result.labels
        self._last[end] = result if result.first >= 0 else None
        if self._relaxed:
            return max(before, result.least)
        self.exact &= result.least == result.weight
        return result.weight

    def lower_bound(self, most_bytes: int) -> int | None:
        """Returns a lower bound of the weight of ways within `most_bytes` bytes; None if no way fits.

        Only for a search that was made with `relaxed`.
        """
        if not self._pass(most_bytes):
            return None
        return self.t.before[-1] + self._best[self.t.e.count]

    @remembered
    def _region(self, end: int, last: CutResult) -> Candidate:
        """Returns the last region of a way to a cut, with its block forms."""
        return Candidate(last.first, end, last.bytes, tuple(map(self.t.form, last.forms)))

    def falling(self, most_bytes: int = INFINITE) -> Iterator[Way]:
        """Yields the best ways within fewer and fewer bytes, the way of least weight first.

        While the search is exact, no way is as good as another in both bytes and weight.
        """
        candidate = None
        while (way := self.least(most_bytes)) is not None:
            if candidate is not None and way.weight > candidate.weight:
                yield candidate
            candidate = way
            most_bytes = next_limit(way.bytes, self.exact)
        if candidate is not None:
            yield candidate


def next_limit(size: int, exact: bool) -> int:
    """Returns the limit in bytes to search next, after a way of `size` bytes.

    `exact`: whether the search is exact; if not, limits fall in larger steps.
    """
    return size - (1 if exact else max(1, size // FALL_BEYOND))


# ---- optimality gap ------------------------------------------------------------------------------------


def factor(tables: Tables, most_extra: int | None, ways: Sequence[Way], exact: Way | None) -> float:
    """Returns the optimality gap of a front whose search ended early, as a factor of at least 1.

    For every way of the search space, one of `ways` has at most `factor` times its bytes and at most `factor`
    times its weight. To prove this, a relaxed search computes lower bounds of weight, for limits that fall by
    a sixteenth each time. A way within a limit weighs at least the bound for this limit. A way above the next
    limit needs more bytes than that limit.

    most_extra: as in `Search`.
    ways: the points of the front.
    exact: the last way that was found while the search was exact, or None. From its bytes upwards the front
        is complete.
    """
    gap = 1.0
    for size, weight in _bound_corners(tables, most_extra, ways, exact):
        nearest = min(
            (max(way.bytes / size, _excess_factor(way.weight, weight)) for way in ways), default=math.inf
        )
        gap = max(gap, nearest)
    return gap


def over_bound(tables: Tables, weight: int, most_bytes: int) -> float:
    """Returns the factor, at least 1, by which a way may be heavier than the lightest one within a limit.

    The lightest way is not known, so the factor is that to a lower bound, which a relaxed search computes.

    weight: of the way, which a search found although its budget ended.
    most_bytes: the limit in bytes.
    """
    bound = Search(tables, relaxed=True).lower_bound(most_bytes)
    return 1.0 if bound is None else _excess_factor(weight, bound)


def _excess_factor(weight: int, bound: int) -> float:
    if weight <= bound:
        return 1.0
    return weight / bound if bound > 0 else math.inf


def _bound_corners(
    tables: Tables, most_extra: int | None, ways: Sequence[Way], exact: Way | None
) -> Iterator[tuple[int, int]]:
    """Yields lower bounds (bytes, weight) for the ways of the space that are not on the front.

    Each of these ways has at least the bytes and at least the weight of one of the pairs.
    """
    relaxed = Search(tables, most_extra, relaxed=True)
    limit = INFINITE if exact is None else exact.bytes - 1
    least_weight = 0 if exact is None else exact.weight  # no way with fewer bytes weighs less
    while (bound := relaxed.lower_bound(limit)) is not None:
        largest = max((way.bytes for way in ways), default=limit)
        below = next_limit(min(limit, largest), False)
        yield max(1, below + 1), max(bound, least_weight)
        if below < 1:
            return
        limit = below
