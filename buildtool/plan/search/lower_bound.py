"""How little the elements before a partial region can cost: lower bounds that tell what is hopeless.

For every cut inside a region: the least weight with which everything before the cut can be run, by the
bytes that the part of the region before the cut needs, the ring at the cut included. Three things are
left out, so that the bounds are below the truth: how far open residuals lag (they lag at least as far
as single rows make them), that windows on both sides of the cut share their memory (each side's is
counted alone), and how many rows go into a ring at a time beyond what that does to the shortest one.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from buildtool.plan.search.columns import Numbers
from buildtool.plan.search.cuts import Cuts
from buildtool.plan.search.tables import BlockForm

Weights = ctypes.Array[ctypes.c_int64]

INFINITE = 1 << 62  # above every weight and every number of bytes: there is no way, or no limit
MOST_STAIRS = 32  # of a cut: beyond it two become one that is below both, which keeps a search's step short


class Stairs(NamedTuple):
    """With at least `weight`: bytes without windows, and bytes with the largest window.

    By weight, ascending; each needs less of something than the one before it, and no more of anything.
    """

    weight: Numbers
    plain: Numbers
    windowed: Numbers


class CutBounds(NamedTuple):
    """The lower bounds of one cut.

    `under`: bytes of the region's input that its output may lie over; the rest of the output comes on top.
    The bytes are negated, so that they ascend.
    """

    under: int
    stairs: Stairs
    weight: list[int]
    plain: list[int]
    windowed: list[int]


class LowerBounds:
    """Bounds for one limit of bytes; `best`: cut -> least weight beyond the elements' own before it.

    `version`: cut -> the round in which that of any cut before it last rose.

    They are made from the first cut on, and made anew when `best` of a cut before has risen.
    """

    def __init__(self, cuts: Cuts, limit: int, best: Weights, version: Weights) -> None:
        self.t, self.cuts, self.limit = cuts.t, cuts, limit
        self.best, self.version = best, version
        self.most_bytes = 0
        self.round = 0
        self._fresh = self._fresh_round = 0  # the bounds of cuts up to `_fresh` are those of that round
        self._made: list[list[CutBounds]] = [[] for _ in range(self.t.count + 1)]
        self._made_at = [-1] * (self.t.count + 1)

    def least(self, block_form: BlockForm, rings: int, window: int, result: int, held: int) -> int:
        """Least weight of everything before a block inside a region that needs so much from there on.

        `rings`, `window`: bytes after the cut before the block; `result`: of the region's output;
        `held`: of all that is whole at its end. INFINITE where nothing keeps the limit.
        """
        ring, more = self.cuts.growth(block_form)
        within = self.most_bytes - rings - more
        best = INFINITE
        if self.most_bytes - rings - ring < window + held:
            return INFINITE
        for bounds in self._made[block_form.first]:
            room = within - max(0, result - bounds.under)
            at = max(bisect_left(bounds.plain, window - room), bisect_left(bounds.windowed, -room))
            if at < len(bounds.weight) and bounds.weight[at] < best:
                best = bounds.weight[at]
        return best

    def refresh(self, end: int) -> None:
        """Brings the bounds of all cuts before `end` up to what `best` is in this round."""
        if self._fresh_round != self.round:
            self._fresh, self._fresh_round = 0, self.round
        for cut in range(self._fresh + 1, end):
            if self._made_at[cut] < self.version[cut]:
                self._made[cut] = self._make(cut) if self.t.feeds[cut - 1] else []
                self._made_at[cut] = self.version[cut]
        self._fresh = max(self._fresh, end - 1)

    def _make(self, cut: int) -> list[CutBounds]:
        begun, continued = self.cuts.blocks(cut)
        found: dict[int, list[Stairs]] = {}
        best = np.array(self.best[:cut], np.int64)
        for b in begun:
            self._collect(found, b.under, Stairs(best[b.first] + b.extra, b.plain, b.windowed))
        for c in continued:
            for bounds in self._made[c.first]:
                stairs = bounds.stairs
                weight = stairs.weight[:, None] + c.extra
                plain = stairs.plain[:, None] + c.more
                windowed = np.maximum(stairs.windowed[:, None] + c.more, plain + c.window)
                self._collect(found, bounds.under, Stairs(weight.ravel(), plain.ravel(), windowed.ravel()))
        return [_staircase(under, parts) for under, parts in found.items()]

    def _collect(self, found: dict[int, list[Stairs]], under: int, stairs: Stairs) -> None:
        """Adds what keeps the limits."""
        kept = (stairs.weight <= self.limit) & (stairs.windowed <= self.most_bytes)
        if kept.any():
            found.setdefault(under, []).append(Stairs(*(part[kept] for part in stairs)))


def _staircase(under: int, parts: list[Stairs]) -> CutBounds:
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
    return CutBounds(under, stairs, weight.tolist(), (-plain).tolist(), (-windowed).tolist())
