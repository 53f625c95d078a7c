"""The front of a whole network: the least weight for every amount of memory, over all sequences of regions.

For one limit of bytes the cuts are gone through from the first to the last; the best way to a cut is
the best way to some earlier one and a region that keeps the limit. Then the limit falls below what
the way found needs. A cut whose last region keeps the new limit, and whose way there has not become
dearer, keeps its way: a lower limit never makes anything cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from buildtool.plan.search.cuts import Cuts
from buildtool.plan.search.lower_bound import INFINITE, LowerBounds
from buildtool.plan.search.regions import Candidate, RegionSearch


@dataclass(frozen=True)
class Way:
    """How all elements run: the largest region's bytes, the weight, the regions in order."""

    bytes: int
    weight: int
    regions: tuple[Candidate, ...]


class Search:
    """Ways of least weight for limits of bytes that never rise."""

    def __init__(self, cuts: Cuts, most_extra: int | None = None) -> None:
        """`most_extra`: ways whose weight is further beyond the elements' own are left out."""
        self.t = tables = cuts.t
        self.most_extra = most_extra = INFINITE // 4 if most_extra is None else most_extra
        # what may be won back later by blocks that leave rows out
        spare = -sum(
            min([0, *(block_form.least_extra for block_form in ending)]) for ending in tables.block_forms
        )
        self.lower_bounds = LowerBounds(cuts, most_extra + spare)
        self._last: list[Candidate | None] = [None] * (tables.count + 1)
        self._rounds = 0
        self.searched = self.expanded = 0
        self.first: Way | None = None  # of the first limit that was asked for

    def least(self, most_bytes: int) -> Way | None:
        """The way of least weight that needs at most so many bytes; None if there is none."""
        if most_bytes < 0:  # not even a network of aliases, which needs none
            return None
        lower_bounds, count = self.lower_bounds, self.t.count
        before = lower_bounds.best or [-INFINITE] * (count + 1)
        self._rounds += 1
        lower_bounds.most_bytes = most_bytes
        lower_bounds.best = [0] + [INFINITE] * count
        for end in range(1, count + 1):
            lower_bounds.best[end] = self._to(end, before[end])
            risen = self._rounds if lower_bounds.best[end] != before[end] else 0
            lower_bounds.version[end + 1] = max(
                lower_bounds.version[end], lower_bounds.version[end + 1], risen
            )
        if lower_bounds.best[count] > self.most_extra:
            return None
        found = self._way()
        if self._rounds == 1:
            self.first = found
        return found

    def _to(self, end: int, before: int) -> int:
        """The least weight of the ways to a cut; `before`: with more bytes."""
        last = self._last[end]
        if (
            last
            and last.bytes <= self.lower_bounds.most_bytes
            and self.lower_bounds.best[last.first] + last.extra <= before
        ):
            return before
        if before >= INFINITE:
            return INFINITE
        found = RegionSearch(self.t, self.lower_bounds, end)
        found.run(before)
        self.searched += 1
        self.expanded += found.expanded
        self._last[end] = found.best
        return found.weight

    def _way(self) -> Way:
        regions: list[Candidate] = []
        cut = self.t.count
        while cut:
            last = self._last[cut]
            assert last is not None
            regions.append(last)
            cut = last.first
        regions.reverse()
        most = max((region.bytes for region in regions), default=0)
        return Way(most, self.t.before[-1] + self.lower_bounds.best[self.t.count], tuple(regions))

    def falling(self, most_bytes: int = INFINITE) -> Iterator[Way]:
        """The undominated ways within a limit of bytes, least weight first."""
        found: Way | None = None
        while (way := self.least(most_bytes)) is not None:
            if found is not None and way.weight > found.weight:
                yield found
            found = way
            most_bytes = way.bytes - 1
        if found is not None:
            yield found
