"""Tables that weigh cost and work together: a price on every multiply-accumulate.

What is least by such a weight is cheapest among all that does no more work; so a price that brings the
work just below a limit gives the cheapest way on the lower convex hull of cost over work.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from buildtool.plan.search.blocks import Block, Form, Rows
from buildtool.plan.search.tables import Tables, as_rows

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

    def _known_rows(self, last: int) -> Rows:
        return as_rows(self._row(form.block, form.form) for form in self.cost.endings(last))

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
