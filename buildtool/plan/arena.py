"""Arena problems: items with lifetimes and sizes, what a placement is, and what none can beat.

Nothing here knows of networks. Offsets are multiples of each item's alignment; all sizes are
rounded up to the greatest common divisor of the alignments (the granule), so that heights and
bounds are exact over aligned bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from buildtool.errors import PlanError


@dataclass(frozen=True)
class Item:
    """A piece of memory, live in the half-open interval [lower, upper) of time.

    `size` in bytes; the offset is a multiple of `alignment`; `offset`: where it has to lie.
    """

    lower: int
    upper: int
    size: int
    alignment: int = 1
    offset: int | None = None


@dataclass(frozen=True)
class Permission:
    """Two items that may overlap: allowed where offset(input) >= offset(output) + distance.

    `output` and `input` are positions in Problem.items, `distance` in bytes (it may be negative).
    """

    output: int
    input: int
    distance: int


@dataclass(frozen=True)
class Bound:
    """No placement is lower than `bytes`; the first time at which that is so."""

    bytes: int
    time: int


@dataclass(frozen=True)
class Problem:
    """Items to place, and the pairs of them that may overlap (each pair once)."""

    items: tuple[Item, ...]
    permissions: tuple[Permission, ...] = ()

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


def bound(problem: Problem) -> Bound:
    """The largest live sum, permitted overlaps subtracted: a lower bound of every placement's height.

    At any time an output overlaps its k-th input in at most min(size of that input, its own size -
    distance) bytes, and all its inputs in at most (its own size - the least distance). Subtracting
    that from every live output leaves each byte of the arena counted at most once: of the items that
    share a byte, pairwise permitted, all but one are outputs of another one there. So the remainder
    is no more than the bytes in use.
    """
    times, live = _live_sums(problem)
    by_output: dict[int, list[Permission]] = {}
    for permission in problem.permissions:
        by_output.setdefault(permission.output, []).append(permission)
    for output, permissions in by_output.items():
        item = problem.items[output]
        for index in range(bisect_left(times, item.lower), bisect_left(times, item.upper)):
            alive = [p for p in permissions if _is_live(problem.items[p.input], times[index])]
            live[index] -= _saving(problem, alive)
    if not times:
        return Bound(0, 0)
    ends = [i.offset + s for i, s in zip(problem.items, problem.sizes, strict=True) if i.offset is not None]
    most = max(live)
    return Bound(max(most, *ends, 0), times[live.index(most)])


def _saving(problem: Problem, permissions: Sequence[Permission]) -> int:
    """Most bytes of one output that can lie on the inputs of `permissions`."""
    if not permissions:
        return 0
    sizes = problem.sizes
    own = sizes[permissions[0].output]
    each = [
        max(0, min(sizes[p.input], own - max(0, round_up(p.distance, problem.granule)))) for p in permissions
    ]
    least = min(max(0, round_up(p.distance, problem.granule)) for p in permissions)
    return min(sum(each), max(0, own - least))


def _is_live(item: Item, time: int) -> bool:
    return item.lower <= time < item.upper


def _live_sums(problem: Problem) -> tuple[list[int], list[int]]:
    """The times at which a life begins or ends, ascending, and the bytes live from then on."""
    change: dict[int, int] = {}
    for item, size in zip(problem.items, problem.sizes, strict=True):
        if item.lower < item.upper:
            change[item.lower] = change.get(item.lower, 0) + size
            change[item.upper] = change.get(item.upper, 0) - size
    times = sorted(change)
    sums, live = [], 0
    for time in times:
        live += change[time]
        sums.append(live)
    return times, sums


def height(problem: Problem, offsets: Sequence[int]) -> int:
    """End of the highest item, in rounded bytes."""
    return max((o + s for o, s in zip(offsets, problem.sizes, strict=True)), default=0)


def validate(problem: Problem, offsets: Sequence[int]) -> None:
    """Raises PlanError unless `offsets` is a legal placement (checked pair by pair)."""
    allowed = {(p.output, p.input): p.distance for p in problem.permissions}
    items, sizes = problem.items, problem.sizes
    if len(offsets) != len(items):
        raise PlanError(f"{len(offsets)} offsets for {len(items)} items")
    for index, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if offset < 0 or offset % item.alignment or item.offset not in (None, offset):
            raise PlanError(f"item {index} lies at {offset}, where it must not")
    order = sorted(range(len(items)), key=lambda i: items[i].lower)
    for position, a in enumerate(order):
        for b in order[position + 1 :]:
            if items[b].lower >= items[a].upper:
                break
            if items[b].lower >= items[b].upper:
                continue
            apart = offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]
            a_on_b, b_on_a = allowed.get((a, b)), allowed.get((b, a))
            a_on_b_safe = a_on_b is not None and offsets[b] >= offsets[a] + a_on_b
            b_on_a_safe = b_on_a is not None and offsets[a] >= offsets[b] + b_on_a
            if not (apart or a_on_b_safe or b_on_a_safe):
                raise PlanError(f"items {a} and {b} overlap at {offsets[a]} and {offsets[b]}")
