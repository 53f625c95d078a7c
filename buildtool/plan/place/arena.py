"""Arena problems: items with lifetimes and sizes, placements and their validity, and lower bounds.

Only `arena_problem` depends on plans. Offsets are multiples of each item's alignment. All sizes are
rounded up to the greatest common divisor of the alignments (the granule), so that heights and bounds are
exact for aligned bytes.

A lower bound is a height that no placement can beat. There are two: the bytes that are live at the same time,
and the height that a chain of overlapping items needs. The larger one counts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import accumulate
from math import gcd
from typing import NamedTuple

from buildtool.base.errors import PlanError
from buildtool.plan.types import Buffer, Overlap


class Item(NamedTuple):
    """A piece of memory, live in the half-open interval [lower, upper) of time.

    `size` is in bytes. Its offset is a multiple of `alignment`. `offset`: the offset if it is fixed, else
    None.
    """

    lower: int
    upper: int
    size: int
    alignment: int = 1
    offset: int | None = None


class Permission(NamedTuple):
    """Two items that may overlap if offset(input) >= offset(output) + distance.

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
    def granule(self) -> int:
        """Returns the number of bytes of which every offset is a multiple."""
        return gcd(*(item.alignment for item in self.items)) or 1

    @cached_property
    def bound(self) -> Bound:
        """Returns the best known lower bound of the height of all placements."""
        return _bound(self)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Returns the items' sizes in bytes, rounded up to the granule."""
        return tuple(round_up(item.size, self.granule) for item in self.items)


@dataclass(frozen=True)
class Solution:
    """An offset for every item. `height` is the end of the highest item, with rounded sizes."""

    offsets: tuple[int, ...]
    height: int


def round_up(value: int, multiple: int) -> int:
    """Returns the smallest multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def height(problem: Problem, offsets: Sequence[int]) -> int:
    """Returns the end of the highest item in bytes, with rounded sizes."""
    return max((o + s for o, s in zip(offsets, problem.sizes, strict=True)), default=0)


def validate(problem: Problem, offsets: Sequence[int]) -> None:
    """Raises PlanError unless `offsets` is a legal placement. All pairs that share bytes are checked."""
    items, sizes = problem.items, problem.sizes
    if len(offsets) != len(items):
        raise PlanError(f"there are {len(offsets)} offsets for {len(items)} items")
    for index, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if offset < 0 or offset % item.alignment or item.offset not in (None, offset):
            raise PlanError(f"item {index} lies at {offset}, against its alignment or fixed offset")
    allowed = {(p.output, p.input): p.distance for p in problem.permissions}
    for a, b in _overlapping_pairs(items, sizes, offsets):
        a_on_b, b_on_a = allowed.get((a, b)), allowed.get((b, a))
        a_on_b_safe = a_on_b is not None and offsets[b] >= offsets[a] + a_on_b
        b_on_a_safe = b_on_a is not None and offsets[a] >= offsets[b] + b_on_a
        if not (a_on_b_safe or b_on_a_safe):
            raise PlanError(f"items {a} and {b} overlap at {offsets[a]} and {offsets[b]}")


def _overlapping_pairs(
    items: Sequence[Item], sizes: Sequence[int], offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yields pairs of items that share a byte at some time, the item that is born earlier first.

    Live items are kept in the order of their offsets. An item is compared with those that begin below its
    end, down to its offset minus the largest size.
    """
    live = [i for i, item in enumerate(items) if item.lower < item.upper and sizes[i]]
    live.sort(key=lambda i: items[i].lower)
    largest = max((sizes[i] for i in live), default=0)
    ends: list[tuple[int, int]] = []
    alive: list[tuple[int, int]] = []  # offset and item
    for b in live:
        while ends and ends[0][0] <= items[b].lower:
            dead = heappop(ends)[1]
            del alive[bisect_left(alive, (offsets[dead], dead))]
        begin = bisect_left(alive, (offsets[b] - largest + 1, -1))
        end = bisect_left(alive, (offsets[b] + sizes[b], -1))
        for at, a in alive[begin:end]:
            if at + sizes[a] > offsets[b]:
                yield a, b
        insort(alive, (offsets[b], b))
        heappush(ends, (items[b].upper, b))


def arena_problem(buffers: Sequence[Buffer], overlaps: Sequence[Overlap], alignment: int) -> Problem:
    """Returns a plan's buffers and overlaps as an arena problem, whose times are steps."""
    return Problem(
        tuple(Item(b.first, b.last + 1, b.size, alignment) for b in buffers),
        tuple(Permission(o.output, o.input, o.distance) for o in overlaps),
    )


@dataclass(frozen=True)
class Bound:
    """A lower bound of the height of all placements.

    bytes: the bound.
    time: the first time at which the number of live bytes is largest.
    live: that number, less what overlaps can save.
    """

    bytes: int
    time: int
    live: int


def _bound(problem: Problem) -> Bound:
    change: dict[int, int] = {}
    for item, size in zip(problem.items, problem.sizes, strict=True):
        if item.lower < item.upper:
            change[item.lower] = change.get(item.lower, 0) + size
            change[item.upper] = change.get(item.upper, 0) - size
    times = sorted(change)  # at which a life begins or ends
    live = list(accumulate(change[time] for time in times))  # bytes, from then on
    largest = max(problem.sizes, default=0)  # of items that are never live too: they lie somewhere
    if not times:
        return Bound(largest, 0, 0)
    by_output: dict[int, list[Permission]] = {}
    for permission in problem.permissions:
        by_output.setdefault(permission.output, []).append(permission)
    for output, permissions in by_output.items():
        item = problem.items[output]
        if len(permissions) == 1:
            source, saved = problem.items[permissions[0].input], _saving(problem, permissions)
            begin, end = max(item.lower, source.lower), min(item.upper, source.upper)
            for index in range(bisect_left(times, begin), bisect_left(times, end)) if saved else ():
                live[index] -= saved
            continue
        for index in range(bisect_left(times, item.lower), bisect_left(times, item.upper)):
            live[index] -= _saving(problem, _live_permissions(problem, permissions, times[index]))
    ends = [i.offset + s for i, s in zip(problem.items, problem.sizes, strict=True) if i.offset is not None]
    most = max(live)
    climbed = _bound_of_chains(problem, by_output, dict(zip(times, live, strict=True)), most)
    return Bound(max(climbed, *ends, largest), times[live.index(most)], most)


def _saving(problem: Problem, permissions: Sequence[Permission]) -> int:
    """Returns the largest number of an output's bytes that can lie on its inputs.

    `permissions`: those of the output, with inputs that are all live together.

    The output shares at most min(input's size, output's size - distance) bytes with one input, and at most
    (output's size - the smallest distance) with all inputs together. If this is subtracted from the live
    bytes for every live output, each byte of the arena is counted at most once: of the items that share a
    byte, all but one are outputs that lie on another of these items. So the difference is at most the number
    of bytes in use.
    """
    if not permissions:
        return 0
    sizes, granule = problem.sizes, problem.granule
    if len(permissions) == 1:
        (p,) = permissions
        return min(sizes[p.input], max(0, sizes[p.output] - max(0, round_up(p.distance, granule))))
    output_size = sizes[permissions[0].output]
    beyond = [max(0, output_size - max(0, round_up(p.distance, granule))) for p in permissions]
    each = (min(sizes[p.input], b) for p, b in zip(permissions, beyond, strict=True))
    return min(sum(each), max(beyond))


def _live_permissions(problem: Problem, permissions: Sequence[Permission], time: int) -> list[Permission]:
    """Returns the permissions whose input is live at a time."""
    return [p for p in permissions if problem.items[p.input].lower <= time < problem.items[p.input].upper]


@dataclass(frozen=True)
class _Link:
    """An input that may lie on an output.

    `distance`: the input's start is at least this many bytes above the output's. Both are live from `time`
    on.
    """

    input: int
    distance: int
    time: int
    apart: int  # the live sum at `time` if the two do not overlap


_Sized = tuple[Item, int]  # with its rounded size
_LONGEST = 256  # links of a chain that are examined
_ENDLESS = 1 << 62  # higher than any end


def _bound_of_chains(
    problem: Problem, by_output: dict[int, list[Permission]], live: dict[int, int], best: int
) -> int:
    """Returns the lower bound from chains of items that may overlap; at least `best`.

    `by_output`: output -> its permissions. `live`: time -> live bytes, less what overlaps can save.

    A chain is items x0, x1, x2 ... of which each may lie on the one before it: x1 at d1 bytes above the start
    of x0 or higher, x2 at d2 bytes above the start of x1 or higher, and so on. If two neighbours of the chain
    do not overlap, all items that are live at their time lie side by side. If all neighbours overlap, the
    chain is one piece of memory, in which x_k begins at d1 + ... + d_k or above. All other items that are
    live throughout lie outside of it. So a link ends a chain if at its time at most `best` bytes are live
    side by side.
    """
    best_links = ((o, _best_link(problem, permissions, live)) for o, permissions in by_output.items())
    links = {o: link for o, link in best_links if link is not None and link.apart > best}
    if not links:
        return best
    beside = _loose_at(problem, {link.time for link in links.values()})
    ends = _chain_ends(problem, links)
    sizes = problem.sizes
    for start, lowest in links.items():
        climbed, extent, apart, at, visited = 0, sizes[start], lowest.apart, start, {start}
        first = last = lowest.time
        surrounding = beside[first]
        while at in links and links[at].input not in visited and len(visited) <= _LONGEST:
            link = links[at]
            first, last, apart = min(first, link.time), max(last, link.time), min(apart, link.apart)
            surrounding = [
                (item, size) for item, size in surrounding if item.lower <= first and last < item.upper
            ]
            outside = sum(size for _, size in surrounding)
            if min(apart, max(extent, climbed + ends[at]) + outside) <= best:
                break  # longer chains are not higher
            climbed += link.distance
            extent = max(extent, climbed + sizes[link.input])
            best = max(best, min(apart, extent + outside))
            at = link.input
            visited.add(at)
    return best


def _loose_at(problem: Problem, times: Iterable[int]) -> dict[int, list[_Sized]]:
    """Returns time -> the items that are live then and have no permission to overlap.

    Items that live for one moment only are left out.
    """
    linked = {i for p in problem.permissions for i in (p.input, p.output)}
    every = enumerate(zip(problem.items, problem.sizes, strict=True))
    loose = (sized for i, sized in every if i not in linked and sized[0].upper - sized[0].lower > 1)
    waiting = sorted(loose, key=lambda sized: sized[0].lower, reverse=True)
    loose_at, active = dict[int, list[_Sized]](), list[_Sized]()
    for time in sorted(times):
        while waiting and waiting[-1][0].lower <= time:
            active.append(waiting.pop())
        active = loose_at[time] = [sized for sized in active if time < sized[0].upper]
    return loose_at


def _chain_ends(problem: Problem, links: Mapping[int, _Link]) -> dict[int, int]:
    """Returns item -> a lower bound of the height of the chain that begins with it, from the item's start.

    The value is `_ENDLESS` if the chain is a cycle.
    """
    ends: dict[int, int] = {}
    for start in links:
        path, at = [], start
        while at in links and at not in ends:
            ends[at] = _ENDLESS  # until the end of its chain is known
            path.append(at)
            at = links[at].input
        end = ends.get(at, problem.sizes[at])
        for item in reversed(path):
            if end < _ENDLESS:
                end = max(problem.sizes[item], links[item].distance + end)
            ends[item] = end
    return ends


def _best_link(problem: Problem, permissions: Sequence[Permission], live: dict[int, int]) -> _Link | None:
    """Returns the permission of one output that saves the most bytes; None if none saves any.

    `live`: time -> live bytes, less what overlaps can save.
    """
    output = problem.items[permissions[0].output]
    best: _Link | None = None
    most = 0
    for p in permissions:
        source = problem.items[p.input]
        time = max(output.lower, source.lower)
        if time >= min(output.upper, source.upper):
            continue
        if len(permissions) == 1:
            saved = _saving(problem, permissions)
        else:
            alive = _live_permissions(problem, permissions, time)
            saved = _saving(problem, alive) - _saving(problem, [q for q in alive if q is not p])
        if saved > most:
            distance = max(0, round_up(p.distance, problem.granule))
            best, most = _Link(p.input, distance, time, live[time] + saved), saved
    return best
