"""Of all ways that do as little work within as many bytes, the cheapest.

A price on work (see `priced`) decides first where it is so high that the least work that can be saved
outweighs all that ways may differ by in cost; what is left to choose is the cost.
"""

from __future__ import annotations

import math
from functools import cached_property

from buildtool.plan.search.cuts import Cuts
from buildtool.plan.search.lower_bound import INFINITE
from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.priced import priced
from buildtool.plan.search.tables import Tables


class Ties:
    """Searches in one space; `work`, `cost`: its tables."""

    def __init__(self, work: Tables, cost: Tables) -> None:
        self._work, self._cost = work, cost
        self._cuts: dict[int, Cuts] = {}  # by price

    def cheapest(self, way: Way) -> Way:
        """The cheapest way with the work of a way of least work, in at most its bytes.

        It is the way itself where weights would leave 64 bits.
        """
        cost, work = self._most_extra(way), self._work.before[-1]
        price = 1 << ((self._cost.before[-1] + cost) // self._least_saving).bit_length()
        if (max(work, way.weight) * price + self._cost.before[-1] + max(cost, 0)) * 4 >= INFINITE:
            return way
        cuts = self._cuts.setdefault(price, Cuts(priced(self._cost, price, 1)))
        search = Search(cuts, cost + price * (way.weight - work))
        found = search.least(way.bytes)
        return found if found is not None and search.exact else way

    def _most_extra(self, way: Way) -> int:
        """What a way costs beyond its elements one by one, if every block makes all of its rows."""
        heights, total = self._cost.e.heights, 0
        for region in way.regions:
            for b in region.block_forms:
                total += self._cost.extra(b.block, b.form, heights[b.block.last])
        return total

    @cached_property
    def _least_saving(self) -> int:
        """A divisor of every way's work: what one pixel of each operator takes, as far as they share it."""
        e, shared = self._work.e, 0
        for element in range(self._work.count):
            work = e.work_before[element + 1] - e.work_before[element]
            pixels = e.heights[element] * e.widths[element]
            shared = math.gcd(shared, 1 if work % pixels else work // pixels)
        return max(shared, 1)
