"""How little the elements before a partial region can cost: lower bounds that tell what is hopeless.

For every cut inside a region: the least weight with which everything before the cut can be run, by the
bytes that the part of the region before the cut needs, the ring at the cut included. Three things are
left out, so that the bounds are below the truth: how far open residuals lag (they lag at least as far
as single rows make them), that windows on both sides of the cut share their memory (each side's is
counted alone), and how many rows go into a ring at a time beyond what that does to the shortest one.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from buildtool.modes import InPlace
from buildtool.plan.place.arena import round_up
from buildtool.plan.search.blocks import WHOLE
from buildtool.plan.search.progress import ProgressTable
from buildtool.plan.search.tables import BlockForm, Tables

INFINITE = 1 << 62  # above every weight and every number of bytes: there is no way, or no limit
MOST_STAIRS = 32  # of a cut: beyond it two become one that is below both, which keeps a search's step short

Numbers = npt.NDArray[np.int64]


class Stairs(NamedTuple):
    """With at least `weight`: bytes without windows, and bytes with the largest window.

    By weight, ascending; each needs less of something than the one before it, and no more of anything.
    """

    weight: Numbers
    plain: Numbers
    windowed: Numbers


class CutBounds(NamedTuple):
    """The lower bounds of one cut.

    `apart`: the region's output cannot lie over its input, and comes on top. The bytes are negated, so
    that they ascend.
    """

    apart: bool
    stairs: Stairs
    weight: list[int]
    plain: list[int]
    windowed: list[int]


@dataclass(frozen=True)
class Begun:
    """Blocks that end at a cut as the first of a region: `plain` with the ring at the cut, no windows."""

    apart: bool
    first: Numbers
    extra: Numbers
    plain: Numbers
    windowed: Numbers


@dataclass(frozen=True)
class Continued:
    """Blocks from one cut to another inside of a region: what comes on top of the stairs at the first."""

    first: int
    extra: Numbers
    more: Numbers
    window: Numbers


class LowerBounds:
    """Bounds for one limit of bytes; `best`: cut -> least weight beyond the elements' own before it.

    They are made when they are first asked for, and made anew when `best` has risen.
    """

    def __init__(self, tables: Tables, limit: int) -> None:
        self.t, self.limit = tables, limit
        self.most_bytes = 0
        self.best: list[int] = []
        self.version = [0] * (tables.count + 2)  # cut -> when `best` of any cut before it last rose
        self._made: list[list[CutBounds]] = [[] for _ in range(tables.count + 1)]
        self._made_at = [-1] * (tables.count + 1)
        self.progress = ProgressTable(tables)
        self._growths: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._blocks: dict[int, tuple[list[Begun], list[Continued]]] = {}
        self._steps = [sorted({block_form.step for block_form in ending}) for ending in tables.block_forms]
        self._readers: dict[int, dict[tuple[int, int], BlockForm]] = {}  # cut -> blocks that begin there
        for ending in tables.block_forms:
            for block_form in ending:
                self._readers.setdefault(block_form.first, {})[block_form.block.last, block_form.step] = (
                    block_form
                )
        self._bases: dict[int, dict[int, int]] = {}

    def least(self, block_form: BlockForm, rings: int, window: int, result: int, held: int) -> int:
        """Least weight of everything before a block inside a region that needs so much from there on.

        `rings`, `window`: bytes after the cut before the block; `result`: of the region's output;
        `held`: of all that is whole at its end. INFINITE where nothing keeps the limit.
        """
        ring, more = self._growth(block_form)
        within = self.most_bytes - rings - more
        best = INFINITE
        if self.most_bytes - rings - ring < window + held:
            return INFINITE
        for bounds in self._bounds_at(block_form.first):
            room = within - result if bounds.apart else within
            at = max(bisect_left(bounds.plain, window - room), bisect_left(bounds.windowed, -room))
            if at < len(bounds.weight) and bounds.weight[at] < best:
                best = bounds.weight[at]
        return best

    def _growth(self, block_form: BlockForm) -> tuple[int, int]:
        """Least bytes of the ring that a block reads, and by how much at the least they exceed the base's."""
        key = (block_form.first, block_form.block.last, block_form.step)
        if key not in self._growths:
            bases = self._base(block_form.first)
            ring = {step: self._ring(block_form, step) for step in bases}
            self._growths[key] = min(ring.values()), min(ring[step] - bases[step] for step in bases)
        return self._growths[key]

    def _ring(self, block_form: BlockForm, step: int) -> int:
        """Least bytes of the ring at a block's input, filled `step` rows at a time."""
        height, row = self.t.rows[block_form.first - 1]
        rows = max(
            self.progress.least_rows(block_form, step), min(height, self.t.least_rows[block_form.first])
        )
        return round_up(rows * row, self.t.e.alignment)

    def _base(self, cut: int) -> dict[int, int]:
        """By rows in one go: least bytes of the ring at a cut, whatever block reads it."""
        if cut not in self._bases:
            readers = self._readers.get(cut, {}).values()
            self._bases[cut] = {
                step: min((self._ring(reader, step) for reader in readers), default=0)
                for step in self._steps[cut - 1]
            }
        return self._bases[cut]

    def _bounds_at(self, cut: int) -> list[CutBounds]:
        if self._made_at[cut] < self.version[cut]:
            self._made_at[cut] = self.version[cut]
            self._made[cut] = self._make(cut) if self.t.feeds[cut - 1] else []
        return self._made[cut]

    def _make(self, cut: int) -> list[CutBounds]:
        if cut not in self._blocks:
            self._blocks[cut] = self._begun(cut), self._continued(cut)
        begun, continued = self._blocks[cut]
        found: dict[bool, list[Stairs]] = {}
        best = np.array(self.best[:cut], np.int64)
        for b in begun:
            self._collect(found, b.apart, Stairs(best[b.first] + b.extra, b.plain, b.windowed))
        for c in continued:
            for bounds in self._bounds_at(c.first):
                stairs = bounds.stairs
                weight = stairs.weight[:, None] + c.extra
                plain = stairs.plain[:, None] + c.more
                windowed = np.maximum(stairs.windowed[:, None] + c.more, plain + c.window)
                self._collect(found, bounds.apart, Stairs(weight.ravel(), plain.ravel(), windowed.ravel()))
        return [_staircase(apart, parts) for apart, parts in found.items()]

    def _collect(self, found: dict[bool, list[Stairs]], apart: bool, stairs: Stairs) -> None:
        """Adds what keeps the limits."""
        kept = (stairs.weight <= self.limit) & (stairs.windowed <= self.most_bytes)
        if kept.any():
            found.setdefault(apart, []).append(Stairs(*(part[kept] for part in stairs)))

    def _begun(self, cut: int) -> list[Begun]:
        rows: dict[bool, list[tuple[int, int, int, int]]] = {}
        base = self._base(cut)
        for block_form in self.t.block_forms[cut - 1]:
            source = self.t.sources[block_form.first]
            held = source.size
            if source.streamed:
                held = round_up(self.progress.least_rows(block_form, 1) * source.row, self.t.e.alignment)
            plain = (
                self.t.live[block_form.first] - source.size + held + block_form.sums + base[block_form.step]
            )
            apart = source.streamed or self.t.e.in_place != InPlace.ROWS or source.last >= self.t.count
            row = (block_form.first, block_form.least_extra, plain, plain + block_form.window)
            rows.setdefault(apart, []).append(row)
        return [Begun(apart, *np.array(found, np.int64).T) for apart, found in rows.items()]

    def _continued(self, cut: int) -> list[Continued]:
        rows: dict[int, list[tuple[int, int, int]]] = {}
        base = self._base(cut)
        for block_form in self.t.block_forms[cut - 1]:
            if not block_form.first or not self.t.feeds[block_form.first - 1]:
                continue
            tensor = self.t.e.makes[block_form.first - 1]
            if all(t != tensor or lag < WHOLE for t, lag in block_form.lags):
                more = self._growth(block_form)[1] + block_form.sums + base[block_form.step]
                rows.setdefault(block_form.first, []).append(
                    (block_form.least_extra, more, block_form.window)
                )
        return [Continued(first, *np.array(found, np.int64).T) for first, found in rows.items()]


def _staircase(apart: bool, parts: list[Stairs]) -> CutBounds:
    weight, plain, windowed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((windowed, plain, weight))
    weight = weight[order]
    plain, windowed = np.minimum.accumulate(plain[order]), np.minimum.accumulate(windowed[order])
    last = np.append(weight[1:] != weight[:-1], True)  # of equal weights, which by now has the least of all
    weight, plain, windowed = weight[last], plain[last], windowed[last]
    less = np.append(True, (plain[1:] < plain[:-1]) | (windowed[1:] < windowed[:-1]))
    weight, plain, windowed = weight[less], plain[less], windowed[less]
    while len(weight) > MOST_STAIRS:
        second = np.minimum(np.arange(1, len(weight) + 1, 2), len(weight) - 1)
        weight, plain, windowed = weight[::2], plain[second], windowed[second]
    stairs = Stairs(weight, plain, windowed)
    return CutBounds(apart, stairs, weight.tolist(), (-plain).tolist(), (-windowed).tolist())
