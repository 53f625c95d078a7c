"""The cheapest of the ways that do as little work, by a price on every multiply-accumulate.

The price is so high that the least work that can be saved outweighs all that ways may differ by in cost. So
the work decides first; what is left to choose is the cost.
"""

from __future__ import annotations

import math
from functools import cached_property

from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.regions import INFINITE
from buildtool.plan.search.tables import Tables


class Ties:
    """Searches in one space; `cost`: its tables for the least cost."""

    def __init__(self, cost: Tables) -> None:
        self._cost = cost
        self._priced: dict[int, Tables] = {}  # by price

    def cheapest(self, way: Way) -> Way | None:
        """The cheapest way with the work of a way of least work, in at most its bytes.

        None where weights would leave 64 bits, or the search ends before it is proven.
        """
        # beyond the elements one by one, if every block makes all of its rows
        e, before = self._cost.e, self._cost.before[-1]
        forms = [form for region in way.regions for form in region.block_forms]
        cost, work = (
            sum(self._cost.extra(form, e.heights[form.block.last]) for form in forms),
            e.work_before[-1],
        )
        price = 1 << ((before + cost) // self._least_saving).bit_length()
        if (max(work, way.weight) * price + before + max(cost, 0)) * 4 >= INFINITE:
            return None
        tables = self._priced.setdefault(price, Tables(self._cost.boundaries, 1, price))
        search = Search(tables, cost + price * (way.weight - work))
        found = search.least(way.bytes)
        return found if search.exact else None

    @cached_property
    def _least_saving(self) -> int:
        """A divisor of every way's work: what one pixel of each operator takes, as far as they share it."""
        e, shared = self._cost.e, 0
        for element in range(e.count):
            work = e.work_before[element + 1] - e.work_before[element]
            pixels = e.heights[element] * e.widths[element]
            shared = math.gcd(shared, 1 if work % pixels else work // pixels)
        return max(shared, 1)
