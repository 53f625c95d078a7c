"""Tables that weigh cost and work together: a price on every multiply-accumulate.

What is least by such a weight is cheapest among all that does no more work; so a price that brings the
work just below a limit gives the cheapest way on the lower convex hull of cost over work.

A price that is so high that the least work that can be saved outweighs all that ways may differ by in cost
decides first; what is left to choose is the cost: so the cheapest is found of all ways that do as little work
within as many bytes (`Ties`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from buildtool.plan.search.blocks import Block, Form, Rows
from buildtool.plan.search.forms import as_rows
from buildtool.plan.search.paths import Search, Way
from buildtool.plan.search.regions import INFINITE, Columns
from buildtool.plan.search.tables import Tables

SCALE = 1024  # of weights: prices are in 1 / SCALE of a weight of cost


@dataclass(frozen=True)
class Priced(Tables):
    """The tables of `cost`, each weight `scale` times, and `price` for every multiply-accumulate."""

    cost: Tables
    price: int
    scale: int

    @cached_property
    def before(self) -> tuple[int, ...]:
        """As in Tables."""
        both = zip(self.cost.before, self.e.work_before, strict=True)
        return tuple(self.scale * cost + self.price * work for cost, work in both)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """As in Tables."""
        return self.cost.keys

    def _kept_as(self, last: int) -> None:
        """Nobody keeps these rows: what a session has of an element's chain are weights without a price."""

    def _rows(self, last: int) -> Rows:
        """The forms of `cost`; as in every row, windows without the constants, which `_placed` adds."""
        return as_rows(
            self._row(one.block, one.form)._replace(window=one.window - self.e.constants(one.first, last))
            for one in self.cost.endings(last)
        )

    def extra(self, block: Block, form: Form, wanted: int) -> int:
        """As in Tables."""
        height = self.e.heights[block.last]
        made = min(height, -(-wanted // block.step) * block.step)
        once = self.e.work_before[block.last + 1] - self.e.work_before[block.first]
        work = (block.work if made == height else self.blocks.work_of(block, made)) - once
        return self.scale * self.cost.extra(block, form, wanted) + self.price * work


def priced(cost: Tables, price: int, scale: int = SCALE) -> Priced:
    """Tables of cost with a price on work, in 1 / scale of a weight of cost."""
    return Priced(cost.e, cost.blocks, cost.objective, cost, price, scale)


# ---- the cheapest of ways that do as little work ------------------------------------------------------


class Ties:
    """Searches in one space; `work`, `cost`: its tables."""

    def __init__(self, work: Tables, cost: Tables) -> None:
        self._work, self._cost = work, cost
        self._columns: dict[int, Columns] = {}  # by price

    def cheapest(self, way: Way) -> Way | None:
        """The cheapest way with the work of a way of least work, in at most its bytes.

        None where weights would leave 64 bits, or the search ends before it is proven.
        """
        # beyond the elements one by one, if every block makes all of its rows
        forms = [one for region in way.regions for one in region.block_forms]
        heights, work = self._cost.e.heights, self._work.before[-1]
        cost = sum(self._cost.extra(one.block, one.form, heights[one.block.last]) for one in forms)
        price = 1 << ((self._cost.before[-1] + cost) // self._least_saving).bit_length()
        if (max(work, way.weight) * price + self._cost.before[-1] + max(cost, 0)) * 4 >= INFINITE:
            return None
        columns = self._columns.setdefault(price, Columns(priced(self._cost, price, 1)))
        search = Search(columns, cost + price * (way.weight - work))
        found = search.least(way.bytes)
        return found if search.exact else None

    @cached_property
    def _least_saving(self) -> int:
        """A divisor of every way's work: what one pixel of each operator takes, as far as they share it."""
        e, shared = self._work.e, 0
        for element in range(self._work.count):
            work = e.work_before[element + 1] - e.work_before[element]
            pixels = e.heights[element] * e.widths[element]
            shared = math.gcd(shared, 1 if work % pixels else work // pixels)
        return max(shared, 1)
