"""Lower bounds of arena problems: heights that no placement can beat.

Two arguments, the better of which counts: what is live at once, and where a chain of items that lie
on each other has to climb.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from buildtool.plan.place.arena import Item, Permission, Problem, round_up


@dataclass(frozen=True)
class Bound:
    """No placement is lower than `bytes`; `time`: the first at which most is live, `live` bytes then."""

    bytes: int
    time: int
    live: int


def bound(problem: Problem) -> Bound:
    """The best lower bound known of the height of every placement."""
    if "bound" not in problem.facts:
        problem.facts["bound"] = _bound(problem)
    known: Bound = problem.facts["bound"]
    return known


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
            live[index] -= _saving(problem, _alive(problem, permissions, times[index]))
    ends = [i.offset + s for i, s in zip(problem.items, problem.sizes, strict=True) if i.offset is not None]
    most = max(live)
    climbed = _chains(problem, by_output, dict(zip(times, live, strict=True)), most)
    return Bound(max(climbed, *ends, largest), times[live.index(most)], most)


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
    sizes, granule = problem.sizes, problem.granule
    own = sizes[permissions[0].output]
    beyond = [max(0, own - max(0, round_up(p.distance, granule))) for p in permissions]
    each = (min(sizes[p.input], b) for p, b in zip(permissions, beyond, strict=True))
    return min(sum(each), max(beyond))


def _alive(problem: Problem, permissions: Sequence[Permission], time: int) -> list[Permission]:
    """The permissions whose input is live."""
    return [p for p in permissions if problem.items[p.input].lower <= time < problem.items[p.input].upper]


@dataclass(frozen=True)
class _Link:
    """An output and an input that may lie on it, from `time` on both live."""

    input: int
    distance: int
    time: int
    apart: int  # the live sum at `time` if the two do not overlap


_Sized = tuple[Item, int]  # with its rounded size
_LONGEST = 256  # links of a chain that are looked at
_ENDLESS = 1 << 62  # higher than any end


def _chains(problem: Problem, by_output: dict[int, list[Permission]], live: dict[int, int], best: int) -> int:
    """The bound that chains give, `best` at the least: x1 may lie on x0 from d1 on, x2 on x1 from d2 on, ...

    Either two neighbours of the chain do not overlap, and what is live at their time is all of it
    side by side; or all do, and then they are one piece of memory in which x_k begins at d1 + ... + d_k
    or above, and whatever is live all the while lies outside of it. So a link at whose time no more than
    `best` is live side by side ends a chain.
    """
    found = ((o, _link(problem, permissions, live)) for o, permissions in by_output.items())
    links = {o: link for o, link in found if link is not None and link.apart > best}
    if not links:
        return best
    linked = {i for p in problem.permissions for i in (p.input, p.output)}
    loose = [
        (item, size)
        for index, (item, size) in enumerate(zip(problem.items, problem.sizes, strict=True))
        if index not in linked and item.upper - item.lower > 1
    ]
    beside, active = dict[int, list[_Sized]](), list[_Sized]()  # time of a link -> the loose items live then
    waiting = sorted(loose, key=lambda sized: sized[0].lower, reverse=True)
    for time in sorted({link.time for link in links.values()}):
        while waiting and waiting[-1][0].lower <= time:
            active.append(waiting.pop())
        active = beside[time] = [sized for sized in active if time < sized[0].upper]
    reach = _reaches(problem, links)
    sizes = problem.sizes
    for start, lowest in links.items():
        climbed, extent, apart, at, seen = 0, sizes[start], lowest.apart, start, {start}
        first = last = lowest.time
        around = beside[first]
        while at in links and links[at].input not in seen and len(seen) <= _LONGEST:
            link = links[at]
            first, last, apart = min(first, link.time), max(last, link.time), min(apart, link.apart)
            around = [(item, size) for item, size in around if item.lower <= first and last < item.upper]
            outside = sum(size for _, size in around)
            if min(apart, max(extent, climbed + reach[at]) + outside) <= best:
                break  # what follows is not higher
            climbed += link.distance
            extent = max(extent, climbed + sizes[link.input])
            best = max(best, min(apart, extent + outside))
            at = link.input
            seen.add(at)
    return best


def _reaches(problem: Problem, links: Mapping[int, _Link]) -> dict[int, int]:
    """Item -> where the highest end of the chain from it on is at the least, from its own start.

    `_ENDLESS` where the chain goes round.
    """
    found: dict[int, int] = {}
    for start in links:
        path, at = [], start
        while at in links and at not in found:
            found[at] = _ENDLESS  # until its chain has come to an end
            path.append(at)
            at = links[at].input
        reach = found.get(at, problem.sizes[at])
        for item in reversed(path):
            if reach < _ENDLESS:
                reach = max(problem.sizes[item], links[item].distance + reach)
            found[item] = reach
    return found


def _link(problem: Problem, permissions: Sequence[Permission], live: dict[int, int]) -> _Link | None:
    """The permission of one output that saves most; None if none saves anything."""
    output = problem.items[permissions[0].output]
    best: _Link | None = None
    most = 0
    for p in permissions:
        source = problem.items[p.input]
        time = max(output.lower, source.lower)
        if time >= min(output.upper, source.upper):
            continue
        alive = permissions if len(permissions) == 1 else _alive(problem, permissions, time)
        saved = _saving(problem, alive) - _saving(problem, [q for q in alive if q is not p])
        if saved > most:
            distance = max(0, round_up(p.distance, problem.granule))
            best, most = _Link(p.input, distance, time, live[time] + saved), saved
    return best
