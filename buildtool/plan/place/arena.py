"""Arena problems: items with lifetimes and sizes, what a placement is, and when it is legal.

Nothing here knows of networks. Offsets are multiples of each item's alignment; all sizes are
rounded up to the greatest common divisor of the alignments (the granule), so that heights and
bounds are exact over aligned bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple

from buildtool.errors import PlanError


class Item(NamedTuple):
    """A piece of memory, live in the half-open interval [lower, upper) of time.

    `size` in bytes; the offset is a multiple of `alignment`; `offset`: where it has to lie.
    """

    lower: int
    upper: int
    size: int
    alignment: int = 1
    offset: int | None = None


class Permission(NamedTuple):
    """Two items that may overlap: allowed where offset(input) >= offset(output) + distance.

    `output` and `input` are positions in Problem.items, `distance` in bytes (it may be negative).
    """

    output: int
    input: int
    distance: int


@dataclass(frozen=True)
class Problem:
    """Items to place, and the pairs of them that may overlap (each pair once)."""

    items: tuple[Item, ...]
    permissions: tuple[Permission, ...] = ()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What functions of the problem alone have told of it, by their names; a problem never changes."""
        return {}

    @cached_property
    def granule(self) -> int:
        """What every offset is a multiple of."""
        return gcd(*(item.alignment for item in self.items)) or 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Sizes in bytes, rounded up to the granule."""
        return tuple(round_up(item.size, self.granule) for item in self.items)


@dataclass(frozen=True)
class Solution:
    """An offset for every item; `height` is the end of the highest one (of rounded sizes)."""

    offsets: tuple[int, ...]
    height: int


def round_up(value: int, multiple: int) -> int:
    """The least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def height(problem: Problem, offsets: Sequence[int]) -> int:
    """End of the highest item, in rounded bytes."""
    return max((o + s for o, s in zip(offsets, problem.sizes, strict=True)), default=0)


def validate(problem: Problem, offsets: Sequence[int]) -> None:
    """Raises PlanError unless `offsets` is a legal placement (checked pair by pair)."""
    allowed = {(p.output, p.input): p.distance for p in problem.permissions}
    items, sizes = problem.items, problem.sizes
    if len(offsets) != len(items):
        raise PlanError(f"there are {len(offsets)} offsets for {len(items)} items")
    for index, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if offset < 0 or offset % item.alignment or item.offset not in (None, offset):
            raise PlanError(f"item {index} lies at {offset}, against its alignment or fixed offset")
    order = sorted(range(len(items)), key=lambda i: items[i].lower)
    for position, a in enumerate(order):
        for b in order[position + 1 :]:
            if items[b].lower >= items[a].upper:
                break
            if items[b].lower >= items[b].upper or not (sizes[a] and sizes[b]):
                continue
            apart = offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]
            a_on_b, b_on_a = allowed.get((a, b)), allowed.get((b, a))
            a_on_b_safe = a_on_b is not None and offsets[b] >= offsets[a] + a_on_b
            b_on_a_safe = b_on_a is not None and offsets[a] >= offsets[b] + b_on_a
            if not (apart or a_on_b_safe or b_on_a_safe):
                raise PlanError(f"items {a} and {b} overlap at {offsets[a]} and {offsets[b]}")
