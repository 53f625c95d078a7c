"""How little the elements before a partial region can cost: lower bounds that tell what is hopeless.

For every cut inside a region, and for every number of rows that the block before it makes in one go:
the least weight with which everything before the cut can be run, by the bytes that the part of the
region before the cut needs. Two things are left out, so that the bounds are below the truth: how far
open residuals lag (they lag at least as far as single rows make them), and that windows on both sides
of the cut share their memory (each side's is counted alone).
"""

from __future__ import annotations

from typing import NamedTuple

from buildtool.plan.arena import round_up
from buildtool.plan.front.blocks import WHOLE
from buildtool.plan.front.tables import Entry, Tables

INFINITE = 1 << 62
MOST_STAIRS = 24  # of a staircase; more are joined in pairs, each taken at its best


class Stair(NamedTuple):
    """With at least this weight: bytes without windows, and bytes with the largest window."""

    weight: int
    plain: int
    windowed: int


class Reached(NamedTuple):
    """What a cut can be reached with: kind and step of the block before it, and the staircase.

    `apart`: the region's output cannot lie over its input, and comes on top.
    """

    apart: bool
    step: int
    stairs: list[Stair]


class Reach:
    """Bounds for one limit of bytes; `best`: cut -> least weight beyond the elements' own before it.

    They are made when they are first asked for, and made anew when `best` has risen.
    """

    def __init__(self, tables: Tables, limit: int) -> None:
        self.t, self.limit = tables, limit
        self.most_bytes = 0
        self.best: list[int] = []
        self.version = [0] * (tables.count + 2)  # cut -> when `best` of any cut before it last rose
        self._made: list[list[Reached]] = [[] for _ in range(tables.count + 1)]
        self._made_at = [-1] * (tables.count + 1)

    def least(self, cut: int, rows: int, rings: int, window: int, result: int, held: int) -> int:
        """Least weight of everything before a cut inside a region that needs so much after it.

        `rows`: needed of the tensor at the cut; `rings`, `window`: bytes after the cut; `result`: of
        the region's output; `held`: of all that is whole at its end. INFINITE where nothing keeps the
        limit.
        """
        height, row = self.t.rows[cut - 1]
        rows = max(rows, self.t.least_rows[cut])
        best = INFINITE
        for apart, step, stairs in self._reached(cut):
            room = self.most_bytes - rings - round_up(min(height, rows + step - 1) * row, self.t.e.alignment)
            if room < window + held:
                continue
            if apart:
                room -= result
            low, high = 0, len(stairs)
            while low < high:
                middle = (low + high) // 2
                stair = stairs[middle]
                if stair.plain + window <= room and stair.windowed <= room:
                    high = middle
                else:
                    low = middle + 1
            if low < len(stairs) and stairs[low].weight < best:
                best = stairs[low].weight
        return best

    def _reached(self, cut: int) -> list[Reached]:
        if self._made_at[cut] < self.version[cut]:
            self._made_at[cut] = self.version[cut]
            self._made[cut] = self._make(cut) if self.t.feeds[cut - 1] else []
        return self._made[cut]

    def _make(self, cut: int) -> list[Reached]:
        found: dict[tuple[bool, int], list[Stair]] = {}
        for entry in self.t.entries[cut - 1]:
            self._begin(entry, found)
            if entry.first and self.t.feeds[entry.first - 1]:
                self._continue(entry, found)
        return [Reached(apart, step, _staircase(stairs)) for (apart, step), stairs in found.items() if stairs]

    def _begin(self, entry: Entry, found: dict[tuple[bool, int], list[Stair]]) -> None:
        """Regions that begin with this block."""
        source = self.t.sources[entry.first]
        weight = self.best[entry.first] + entry.least_extra
        held = source.size
        if source.streamed:
            held = round_up(min(source.rows, entry.need) * source.row, self.t.e.alignment)
        plain = self.t.live[entry.first] - source.size + held + entry.sums
        if weight <= self.limit and plain + entry.window <= self.most_bytes:
            apart = source.streamed or self.t.e.in_place != "rows" or source.last >= self.t.count
            found.setdefault((apart, entry.step), []).append(Stair(weight, plain, plain + entry.window))

    def _continue(self, entry: Entry, found: dict[tuple[bool, int], list[Stair]]) -> None:
        """Regions in which this block follows others."""
        cut = entry.first
        tensor = self.t.e.makes[cut - 1]
        rows = max(entry.need, self.t.least_rows[cut], *(lag for t, lag in entry.lags if t == tensor), 0)
        if rows >= WHOLE:
            return
        for apart, step, stairs in self._reached(cut):
            more = self.t.ring(cut, rows, step) + entry.sums
            into = found.setdefault((apart, entry.step), [])
            for stair in stairs:
                weight, plain = stair.weight + entry.least_extra, stair.plain + more
                windowed = max(stair.windowed + more, plain + entry.window)
                if windowed <= self.most_bytes and weight <= self.limit:
                    into.append(Stair(weight, plain, windowed))


def _staircase(stairs: list[Stair]) -> list[Stair]:
    """By weight; each needs less of something than the ones before it, and no more of anything."""
    stairs.sort()
    kept: list[Stair] = []
    for stair in stairs:
        plain, windowed = stair.plain, stair.windowed
        if kept:
            before = kept[-1]
            if plain >= before.plain and windowed >= before.windowed:
                continue
            plain, windowed = min(plain, before.plain), min(windowed, before.windowed)
            if stair.weight == before.weight:
                kept.pop()
        kept.append(Stair(stair.weight, plain, windowed))
    while len(kept) > MOST_STAIRS:
        pairs = zip(kept[::2], [*kept[1::2], kept[-1]], strict=False)  # of an odd number the last with itself
        kept = [Stair(a.weight, b.plain, b.windowed) for a, b in pairs]
    return kept
