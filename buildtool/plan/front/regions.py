"""The best way to reach a cut within a limit of bytes: best first, backwards from the end of its last region.

A label is a partial region, from some boundary to its end: bytes of the rings so far, the largest of
the blocks' windows, the weight so far. What it asks of what comes before it: rows of the boundary's
tensor, and how far open residuals lag. Labels that ask the same compete: one that is no better in
anything than another is dropped. The next label to be continued is the one whose weight, with the
least that everything before it can cost (`Reach`), is least; so the first region that is no dearer
than all labels left is the best.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from buildtool.plan.front.blocks import Lags
from buildtool.plan.front.chain import Elements
from buildtool.plan.front.reach import INFINITE, Reach
from buildtool.plan.front.tables import Entry, Tables
from buildtool.plan.types import Group, Region


class Links(NamedTuple):
    """Blocks of a partial region, first to last."""

    entry: Entry
    rest: Links | None


class Candidate(NamedTuple):
    """A region of elements [first, end): bytes, weight beyond its elements' own, its blocks.

    No blocks: a single element that runs as one step.
    """

    first: int
    end: int
    bytes: int
    extra: int
    links: Links | None

    def entries(self) -> list[Entry]:
        """Its blocks, first to last."""
        found, links = [], self.links
        while links is not None:
            found.append(links.entry)
            links = links.rest
        return found

    def region(self, e: Elements) -> Region:
        """The region in the plan's terms."""
        if self.links is None:
            return Region((Group((e.positions[self.first],)),))
        return Region(tuple(entry.form.group for entry in self.entries()))


class Label(NamedTuple):
    """A partial region from `boundary` on: what it needs, and what it asks of what comes before it."""

    boundary: int
    weight: int
    rings: int
    window: int
    need: int  # rows of the tensor at the boundary for one step
    wanted: int  # rows of it in all
    lags: Lags
    links: Links | None


class RegionSearch:
    """Regions that end at one cut, within the reach's limit of bytes."""

    def __init__(self, tables: Tables, reach: Reach, end: int) -> None:
        self.t, self.reach, self.end = tables, reach, end
        self.result, self.held = tables.sizes[end - 1], tables.held[end]
        self.weight = INFINITE  # of the best way to the cut
        self.best: Candidate | None = None
        self.expanded = 0
        self._heap: list[tuple[int, int, int, int, Label]] = []
        self._seen: dict[tuple[int, int, tuple[int, ...]], list[Label]] = {}
        self._around: dict[tuple[int, int, int], int] = {}
        self._serial = 0

    def run(self, enough: int) -> None:
        """Finds the best way; stops at once at one of weight `enough`, which nothing can be below."""
        alone = self.end - 1
        if self.t.wholes[alone] <= self.reach.most_bytes and self.reach.best[alone] <= self.reach.limit:
            self.weight = self.reach.best[alone]
            self.best = Candidate(alone, self.end, self.t.wholes[alone], 0, None)
        if self.weight <= enough:
            return
        self._expand(Label(self.end, 0, 0, 0, 0, self.t.e.heights[alone], (), None))
        while self._heap and self.weight > enough:
            least, _, _, _, label = heapq.heappop(self._heap)
            if least >= self.weight:
                break
            if any(label is rival for rival in self._rivals(label)):  # else a better one has come since
                self._expand(label)

    def _expand(self, label: Label) -> None:
        """Puts every block before a partial region: completes it there, and goes on from there."""
        self.expanded += 1
        most, limit = self.reach.most_bytes, self.reach.limit
        lowest = self.t.lowest_first[self.end]
        height = self.t.e.heights[label.boundary - 1]
        tensor = self.t.e.makes[label.boundary - 1]
        rows = max(label.need, *(lag for t, lag in label.lags if t == tensor), 0)
        for entry in self.t.entries[label.boundary - 1]:
            if entry.first < lowest:
                continue
            rings = label.rings + entry.sums
            if label.boundary < self.end:
                rings += self.t.ring(label.boundary, rows, entry.step)
            window = max(label.window, entry.window)
            extra = entry.extra
            if label.wanted < height:
                extra = self.t.extra(entry.block, entry.form, label.wanted)
            weight = label.weight + extra
            if rings + window + self.held > most or weight > limit:
                continue
            links = Links(entry, label.links)
            self._complete(entry, rings + window, weight, links)
            self._continue(entry, label, Label(entry.first, weight, rings, window, 0, 0, (), links))

    def _complete(self, entry: Entry, inside: int, weight: int, links: Links) -> None:
        """The region that begins with this block, if it is the best so far."""
        total = self.reach.best[entry.first] + weight
        if total >= self.weight or total > self.reach.limit:
            return
        key = (entry.first, entry.block.last, entry.step)
        around = self._around.get(key)
        if around is None:
            around = self._around[key] = self.t.around(entry, self.end)
        if inside + around <= self.reach.most_bytes:
            self.weight = total
            self.best = Candidate(entry.first, self.end, inside + around, weight, links)

    def _continue(self, entry: Entry, after: Label, grown: Label) -> None:
        """Keeps a partial region that may still become the best."""
        first = entry.first
        if not first or not self.t.feeds[first - 1] or self.t.last_reader[first - 1] >= self.end:
            return
        lags = self._lags(entry, after)
        if lags is None:
            return
        height = self.t.e.heights[entry.block.last]
        made = min(height, -(-after.wanted // entry.step) * entry.step)
        tall = self.t.rows[first - 1][0]
        wanted = min(tall, max(0, entry.axis.high(made)))
        grown = grown._replace(need=min(entry.need, tall), wanted=wanted, lags=lags)
        tensor = self.t.e.makes[first - 1]
        rows = max(grown.need, *(lag for t, lag in lags if t == tensor), 0)
        least = self.reach.least(first, rows, grown.rings, grown.window, self.result, self.held)
        if least < INFINITE and grown.weight + least < self.weight and self._keep(grown):
            self._serial += 1
            inside = grown.rings + grown.window
            heapq.heappush(self._heap, (grown.weight + least, first, inside, self._serial, grown))

    def _lags(self, entry: Entry, after: Label) -> Lags | None:
        """Open residuals at a block's input; None where a residual's path is not of stride 1."""
        tensor = self.t.e.makes[entry.block.last]
        more = entry.step - 2 + entry.axis.kernel - entry.axis.pad
        found = {t: lag + more for t, lag in after.lags if t != tensor}
        if entry.lags is None or (found and entry.axis.stride != 1):
            return None
        for t, lag in entry.lags:
            found[t] = max(found.get(t, 0), lag)
        return tuple(sorted(found.items()))

    def _rivals(self, label: Label) -> list[Label]:
        return self._seen[label.boundary, label.wanted, tuple(t for t, _ in label.lags)]

    def _keep(self, label: Label) -> bool:
        """False if another label is as good in everything; those that it beats are dropped."""
        key = (label.boundary, label.wanted, tuple(t for t, _ in label.lags))
        rivals = self._seen.setdefault(key, [])
        if any(_as_good(rival, label) for rival in rivals):
            return False
        self._seen[key] = [rival for rival in rivals if not _as_good(label, rival)]
        self._seen[key].append(label)
        return True


def _as_good(a: Label, b: Label) -> bool:
    """Whether `a` needs and asks no more than `b`; both have the same residuals open."""
    return (
        a.weight <= b.weight
        and a.rings <= b.rings
        and a.window <= b.window
        and a.need <= b.need
        and all(x <= y for (_, x), (_, y) in zip(a.lags, b.lags, strict=True))
    )
