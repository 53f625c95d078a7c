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

from buildtool.base.distinct import distinct
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
        self._all: dict[int, tuple[Numbers, Stairs]] = {}  # cut -> all of its stairs, and to what they belong
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
                self._made[cut] = self._make(cut) if self.t.e.feeds[cut - 1] else []
                self._made_at[cut] = self.version[cut]
        self._fresh = max(self._fresh, end - 1)

    def _make(self, cut: int) -> list[CutBounds]:
        begun, continued = self.cuts.blocks(cut)
        parts: list[tuple[Numbers, ...]] = []  # each with how far outputs may lie over inputs, then stairs
        best = np.array(self.best[:cut], np.int64)
        for b in begun:
            under = np.full(len(b.first), b.under)
            self._collect(parts, under, best[b.first] + b.extra, b.plain, b.windowed)
        for c in continued:
            if self._made[c.first]:
                under, before = self._all[c.first]
                plain = before.plain[:, None] + c.more
                windowed = np.maximum(before.windowed[:, None] + c.more, plain + c.window)
                weight = before.weight[:, None] + c.extra
                under = np.repeat(under, len(c.extra))
                self._collect(parts, under, weight.ravel(), plain.ravel(), windowed.ravel())
        if not parts:
            return []
        under, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        found = []
        for most in distinct(under).values.tolist():
            among = under == most
            found.append(_staircase(most, *(column[among] for column in columns)))
        all_stairs = (np.concatenate(column) for column in zip(*(b.stairs for b in found), strict=True))
        sizes = [len(b.weight) for b in found]
        self._all[cut] = np.repeat([b.under for b in found], sizes), Stairs(*all_stairs)
        return found

    def _collect(
        self,
        parts: list[tuple[Numbers, ...]],
        under: Numbers,
        weight: Numbers,
        plain: Numbers,
        windowed: Numbers,
    ) -> None:
        """Adds what keeps the limits."""
        kept = (weight <= self.limit) & (windowed <= self.most_bytes)
        if kept.any():
            parts.append((under[kept], weight[kept], plain[kept], windowed[kept]))


def _staircase(under: int, weight: Numbers, plain: Numbers, windowed: Numbers) -> CutBounds:
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
