"""Lower bounds of arena problems: heights that no placement can beat.

Two arguments, the better of which counts: what is live at once, and where a chain of items that lie
on each other has to climb.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from buildtool.plan.place.arena import Item, Permission, Problem, round_up


@dataclass(frozen=True)
class Bound:
    """No placement is lower than `bytes`; `time`: the first at which most is live, `live` bytes then."""

    bytes: int
    time: int
    live: int


def bound(problem: Problem) -> Bound:
    """The best lower bound known of the height of every placement."""
    times, live = _live_sums(problem)
    largest = max(problem.sizes, default=0)  # of items that are never live too: they lie somewhere
    if not times:
        return Bound(largest, 0, 0)
    by_output: dict[int, list[Permission]] = {}
    for permission in problem.permissions:
        by_output.setdefault(permission.output, []).append(permission)
    for output, permissions in by_output.items():
        item = problem.items[output]
        for index in range(bisect_left(times, item.lower), bisect_left(times, item.upper)):
            alive = [p for p in permissions if _is_live(problem.items[p.input], times[index])]
            live[index] -= _saving(problem, alive)
    ends = [i.offset + s for i, s in zip(problem.items, problem.sizes, strict=True) if i.offset is not None]
    most = max(live)
    return Bound(
        max(most, _chains(problem, by_output, dict(zip(times, live, strict=True))), *ends, largest),
        times[live.index(most)],
        most,
    )


def _saving(problem: Problem, permissions: Sequence[Permission]) -> int:
    """Most bytes of one output that can lie on the inputs of `permissions`, all live at one time.

    It overlaps its k-th input in at most min(size of that input, its own size - distance) bytes, and
    all of them in at most (its own size - the least distance). Subtracting that from every live
    output leaves each byte of the arena counted at most once: of the items that share a byte,
    pairwise permitted, all but one are outputs of another one there. So the remainder of the live
    sum is no more than the bytes in use.
    """
    if not permissions:
        return 0
    sizes = problem.sizes
    own = sizes[permissions[0].output]
    beyond = [max(0, own - max(0, round_up(p.distance, problem.granule))) for p in permissions]
    each = (min(sizes[p.input], b) for p, b in zip(permissions, beyond, strict=True))
    return min(sum(each), max(beyond))


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


@dataclass(frozen=True)
class _Link:
    """An output and an input that may lie on it, from `time` on both live."""

    input: int
    distance: int
    time: int
    apart: int  # the live sum at `time` if the two do not overlap


_LONGEST = 256  # links of a chain that are looked at


def _chains(problem: Problem, by_output: dict[int, list[Permission]], live: dict[int, int]) -> int:
    """The bound that chains give: x1 may lie on x0 from d1 on, x2 on x1 from d2 on, and so forth.

    Either two neighbours of the chain do not overlap, and what is live at their time is all of it
    side by side; or all do, and then they are one piece of memory in which x_k begins at d1 + ... + d_k
    or above, and whatever is live all the while lies outside of it.
    """
    links = {o: link for o, found in by_output.items() if (link := _link(problem, found, live)) is not None}
    linked = {i for p in problem.permissions for i in (p.input, p.output)}
    loose = [
        (item, size)
        for index, (item, size) in enumerate(zip(problem.items, problem.sizes, strict=True))
        if index not in linked and item.upper - item.lower > 1
    ]
    return max((_climb(problem, start, links, loose) for start in links), default=0)


def _link(problem: Problem, permissions: Sequence[Permission], live: dict[int, int]) -> _Link | None:
    """The permission of one output that saves most; None if that is nothing."""
    output = problem.items[permissions[0].output]
    best: _Link | None = None
    most = 0
    for p in permissions:
        source = problem.items[p.input]
        time = max(output.lower, source.lower)
        if time >= min(output.upper, source.upper):
            continue
        alive = [q for q in permissions if _is_live(problem.items[q.input], time)]
        saved = _saving(problem, alive) - _saving(problem, [q for q in alive if q is not p])
        if saved > most:
            distance = max(0, round_up(p.distance, problem.granule))
            best, most = _Link(p.input, distance, time, live[time] + saved), saved
    return best


def _climb(problem: Problem, start: int, links: dict[int, _Link], loose: Sequence[tuple[Item, int]]) -> int:
    """The best bound of the chains that begin with `start` as their lowest item."""
    best, climbed, extent = 0, 0, problem.sizes[start]
    apart: int | None = None
    first = last = 0
    seen, at = {start}, start
    while at in links and links[at].input not in seen and len(seen) <= _LONGEST:
        link = links[at]
        first = link.time if apart is None else min(first, link.time)
        last = link.time if apart is None else max(last, link.time)
        apart = link.apart if apart is None else min(apart, link.apart)
        climbed += link.distance
        extent = max(extent, climbed + problem.sizes[link.input])
        beside = sum(size for item, size in loose if item.lower <= first and last < item.upper)
        best = max(best, min(apart, extent + beside))
        at = link.input
        seen.add(at)
    return best
