"""The front of a whole network: the least work for every amount of memory, over all sequences of regions.

Dynamic programming over cuts: the best ways to run the elements before a cut, by the largest
region's bytes and by the work, extended by every region that begins at the cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from buildtool.plan.front.chain import Elements
from buildtool.plan.front.regions import Candidate, Known, RegionSearch
from buildtool.plan.types import Region


@dataclass(frozen=True, slots=True)
class Way:
    """Elements up to a cut: the largest region's bytes, the work, the last region, what is before it."""

    bytes: int
    work: int
    last: Candidate | None = None
    before: Way | None = None

    def regions(self, e: Elements) -> tuple[Region, ...]:
        """The plan's regions, in order."""
        found, way = [], self
        while way.last is not None:
            found.append(way.last.region(e))
            assert way.before is not None
            way = way.before
        return tuple(reversed(found))


def undominated(ways: list[Way]) -> list[Way]:
    """By bytes, ascending; each does less work than the one before it."""
    ways.sort(key=lambda way: (way.bytes, way.work))
    kept: list[Way] = []
    for way in ways:
        if not kept or way.work < kept[-1].work:
            kept.append(way)
    return kept


STAGES = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, float("inf"))


def search(e: Elements, image: str, in_place: bool, max_f: float) -> list[Way]:
    """The undominated ways to run the whole network, by bytes, ascending.

    `max_f`: ways that do more than this times the network's own work are left out. The limit on
    work is raised in stages: what may repeat more work has to need less memory than the best found
    with less.
    """
    total = e.work_before[-1]
    most = max((c.bytes for c in _alone(e, image, in_place)), default=0)
    found: list[Way] = []
    for stage in STAGES:
        limit = min(stage, max_f)
        extra = int(total * (limit - 1.0)) if limit < float("inf") else 1 << 62
        found = undominated([*found, *_solve(e, image, in_place, most, extra)])
        most = min([most, *(way.bytes - 1 for way in found)])
        if stage >= max_f:
            break
    return found


def _solve(e: Elements, image: str, in_place: bool, most: int, extra: int) -> list[Way]:
    """The undominated ways within limits on bytes and on repeated work."""
    count = len(e.positions)
    ways: list[list[Way]] = [[Way(0, 0)]] + [[] for _ in range(count)]
    before: list[list[tuple[int, int]]] = [[(0, 0)]]
    for end in range(1, count + 1):
        known = Known(before)
        most_work = e.work_before[end] + extra
        found: list[Way] = []
        for c in RegionSearch(e, end, image, in_place, most, extra, known).run():
            if c.bytes > most:
                continue
            for way in ways[c.first]:
                size, work = max(way.bytes, c.bytes), way.work + c.work
                if work <= most_work and not known.beats(size, work):
                    found = undominated([*found, Way(size, work, c, way)])
                    known.bytes = [w.bytes for w in found]
                    known.work = [w.work for w in found]
        ways[end] = found
        before.append([(w.bytes, w.work - e.work_before[end]) for w in found])
    return ways[count]


def _alone(e: Elements, image: str, in_place: bool) -> list[Candidate]:
    """Every element as a region of its own: never worse than this."""
    return [
        c
        for end in range(1, len(e.positions) + 1)
        for c in RegionSearch(e, end, image, in_place, 1 << 62, 0).single()
    ]
