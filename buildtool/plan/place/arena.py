"""Arena problems: items with lifetimes and sizes, what a placement is, and when it is legal.

Only `arena_problem` knows of plans. Offsets are multiples of each item's alignment; all sizes are
rounded up to the greatest common divisor of the alignments (the granule), so that heights and
bounds are exact over aligned bytes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from math import gcd
from typing import Any, NamedTuple

from buildtool.base.errors import PlanError
from buildtool.plan.types import Buffer, Overlap


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
    items, sizes = problem.items, problem.sizes
    if len(offsets) != len(items):
        raise PlanError(f"there are {len(offsets)} offsets for {len(items)} items")
    for index, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if offset < 0 or offset % item.alignment or item.offset not in (None, offset):
            raise PlanError(f"item {index} lies at {offset}, against its alignment or fixed offset")
    allowed = {(p.output, p.input): p.distance for p in problem.permissions}
    for a, b in _together(items, sizes, offsets):
        a_on_b, b_on_a = allowed.get((a, b)), allowed.get((b, a))
        a_on_b_safe = a_on_b is not None and offsets[b] >= offsets[a] + a_on_b
        b_on_a_safe = b_on_a is not None and offsets[a] >= offsets[b] + b_on_a
        if not (a_on_b_safe or b_on_a_safe):
            raise PlanError(f"items {a} and {b} overlap at {offsets[a]} and {offsets[b]}")


def _together(
    items: Sequence[Item], sizes: Sequence[int], offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Pairs of items that share a byte at some time; the one that is there first comes first.

    The items alive are kept in the order of their offsets. Those that lie on each other are few, so one is
    looked for among items that begin below it and are no larger than the largest.
    """
    live = sorted(
        (i for i, item in enumerate(items) if item.lower < item.upper and sizes[i]),
        key=lambda i: items[i].lower,
    )
    largest = max((sizes[i] for i in live), default=0)
    ends: list[tuple[int, int]] = []
    alive: list[tuple[int, int]] = []  # offset and item
    for b in live:
        while ends and ends[0][0] <= items[b].lower:
            gone = heappop(ends)[1]
            del alive[bisect_left(alive, (offsets[gone], gone))]
        begin = bisect_left(alive, (offsets[b] - largest + 1, -1))
        end = bisect_left(alive, (offsets[b] + sizes[b], -1))
        for at, a in alive[begin:end]:
            if at + sizes[a] > offsets[b]:
                yield a, b
        insort(alive, (offsets[b], b))
        heappush(ends, (items[b].upper, b))


def arena_problem(buffers: Sequence[Buffer], overlaps: Sequence[Overlap], alignment: int) -> Problem:
    """A plan's buffers and overlaps as an arena problem, whose times are steps."""
    return Problem(
        tuple(Item(b.first, b.last + 1, b.size, alignment) for b in buffers),
        tuple(Permission(o.output, o.input, o.distance) for o in overlaps),
    )
